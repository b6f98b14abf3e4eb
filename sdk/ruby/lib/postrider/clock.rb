# frozen_string_literal: true

module Postrider
  # Time and chance for retries. Tests replace it.
  class Clock
    def now
      Time.now
    end

    # Seconds of a clock that nobody sets.
    def monotonic
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def sleep(seconds)
      Kernel.sleep(seconds)
    end

    # A number from 0 to 1.
    def random
      Kernel.rand
    end
  end
end
