# frozen_string_literal: true

require_relative "errors"
require_relative "operation"

module Postrider
  # The inbox of `postrider dev`, for tests of applications.
  class Dev
    MESSAGES = Operation.new(
      name: "dev.waitForEmail", http_method: "GET", path: "/messages", query: %w[to subject wait], retry: true
    )
    MESSAGE = Operation.new(name: "dev.waitForEmail", http_method: "GET", path: "/messages/{id}", retry: true)

    def initialize(client, clock)
      @client = client
      @clock = clock
    end

    # Waits for a message to this address and with this in its subject, and returns it with its text and HTML. Raises TimeoutError if none comes.
    def wait_for_email(to: nil, subject: nil, timeout: 30)
      deadline = @clock.monotonic + timeout
      loop do
        # The server waits for at most a minute.
        left = (deadline - @clock.monotonic).clamp(0.0, 30.0)
        params = { to: to, subject: subject, wait: "#{(left * 1000).to_i}ms" }
        message = Array(@client.call(MESSAGES, [], params, { timeout: left + 10 })[:messages]).first
        return @client.call(MESSAGE, [message[:id].to_s]) if message
        break if @clock.monotonic >= deadline
      end
      raise TimeoutError, "No such message came within #{timeout} s. Check `to` and `subject`, and that the server runs " \
                          "as `postrider dev`."
    end
  end
end
