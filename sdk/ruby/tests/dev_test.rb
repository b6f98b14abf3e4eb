# frozen_string_literal: true

require_relative "helper"

class DevTest < Minitest::Test
  # Answers without a message, after the time that the request asks to wait.
  class EmptyInbox < FakeTransport
    def initialize(clock)
      super([])
      @clock = clock
    end

    def call(request, timeout:, cancelled: nil)
      @requests << request
      wait = request.url[/wait=(\d+)ms/, 1].to_i / 1000.0
      raise "the server would answer too late" if wait >= timeout

      @clock.sleep(wait)
      FakeTransport.json(200, { total: 0, messages: [] })
    end
  end

  def client(transport, clock)
    Postrider::Client.new(api_key: KEY, base_url: "http://localhost:8025", transport: transport, clock: clock)
  end

  def test_a_message_is_waited_for
    found = FakeTransport.json(200, { messages: [{ id: 1, subject: "Code 123456" }] })
    transport = FakeTransport.new([found, FakeTransport.json(200, { id: 1, subject: "Code 123456", text: "Hi" })])
    message = client(transport, FakeClock.new).dev.wait_for_email(to: "ada+x@example.net", timeout: 10)
    assert_equal ["Code 123456", "Hi"], message.values_at(:subject, :text)
    assert_equal "http://localhost:8025/messages/1", transport.requests.last.url
    assert_equal "http://localhost:8025/messages?to=ada%2Bx%40example.net&wait=10000ms", transport.requests.first.url
  end

  def test_waiting_ends
    clock = FakeClock.new
    transport = EmptyInbox.new(clock)
    failure = assert_raises(Postrider::TimeoutError) { client(transport, clock).dev.wait_for_email(timeout: 70) }
    assert_includes failure.message, "postrider dev"
    waits = transport.requests.map { |request| request.url[/wait=(\d+)/, 1] }
    assert_equal %w[30000 30000 10000], waits
  end
end
