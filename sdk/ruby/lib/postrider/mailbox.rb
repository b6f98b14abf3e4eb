# frozen_string_literal: true

module Postrider
  # Hands parts of an answer from the thread that reads them to the one that waits for them. It holds a bounded number.
  class Mailbox
    CAPACITY = 16

    def initialize
      @lock = Mutex.new
      @filled = ConditionVariable.new
      @emptied = ConditionVariable.new
      @parts = []
    end

    def put(part)
      @lock.synchronize do
        @emptied.wait(@lock) while @parts.size >= CAPACITY
        @parts.push(part)
        @filled.signal
      end
    end

    # Returns nil if nothing comes within the time. seconds: nil to wait for ever.
    def take(seconds)
      @lock.synchronize do
        @filled.wait(@lock, seconds) if @parts.empty? && (seconds.nil? || seconds.positive?)
        @emptied.signal
        @parts.shift
      end
    end
  end
end
