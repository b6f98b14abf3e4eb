# frozen_string_literal: true

require "tempfile"
require_relative "helper"

# Calls of a server that misbehaves.
class TransportTest < Minitest::Test
  JSON_BODY = '{"account":{"id":"acct_1"}}'
  HTML = { "content-type" => "text/html" }.freeze

  def failure(server, url: server.url, **options)
    client = Postrider::Client.new(api_key: KEY, base_url: url, timeout: 5, max_retries: 0)
    failure = assert_raises(Postrider::Error) { client.account.get(**options) }
    refute_includes shown(failure), KEY
    failure
  end

  def test_connections_are_kept
    FaultServer.open({ status: 200, body: JSON_BODY, mode: :keep }) do |server|
      client = Postrider::Client.new(api_key: KEY, base_url: server.url)
      2.times { client.account.get }
      assert_equal [1, 1], [server.request[:connection], server.request[:connection]]
      client.close
      client.account.get
      assert_equal 2, server.request[:connection]
    end
  end

  def test_a_call_that_must_not_repeat_has_a_connection_of_its_own
    FaultServer.open({ status: 200, body: '{"template":{}}', mode: :keep }) do |server|
      client = Postrider::Client.new(api_key: KEY, base_url: server.url)
      2.times { client.templates.create(name: "x") }
      assert_equal [1, 2], [server.request[:connection], server.request[:connection]]
    end
  end

  def test_a_kept_connection_that_was_closed_is_made_again
    FaultServer.open({ status: 200, body: JSON_BODY, mode: :drop }) do |server|
      client = Postrider::Client.new(api_key: KEY, base_url: server.url)
      3.times { assert_equal "acct_1", client.account.get.dig(:account, :id) }
      assert_equal [1, 2, 3], Array.new(3) { server.request[:connection] }
    end
  end

  def test_threads_share_a_client
    FaultServer.open({ status: 200, body: JSON_BODY, mode: :keep }) do |server|
      client = Postrider::Client.new(api_key: KEY, base_url: server.url)
      ids = Array.new(12) { Thread.new { Array.new(5) { client.account.get.dig(:account, :id) } } }.flat_map(&:value)
      assert_equal ["acct_1"] * 60, ids
    end
  end

  def test_a_forked_process_has_connections_of_its_own
    FaultServer.open({ status: 200, body: JSON_BODY, mode: :keep }) do |server|
      client = Postrider::Client.new(api_key: KEY, base_url: server.url)
      client.account.get
      child = fork { exit!(client.account.get.dig(:account, :id) == "acct_1") }
      assert Process.wait2(child)[1].success?
      client.account.get
      assert_equal [1, 2, 1], Array.new(3) { server.request[:connection] }
    end
  end

  {
    web_site: [{ status: 200, headers: HTML, body: "<h1>Shop" }, 200, "base URL"],
    no_such_page: [{ status: 404, headers: HTML, body: "<h1>Not found" }, 404, "base URL"],
    proxy: [{ status: 502, headers: HTML, body: "<h1>Bad gateway" }, 502, "proxy"],
    status_413: [{ status: 413, headers: HTML, body: "<h1>Too large" }, 413, "proxy"],
    empty: [{ status: 200, body: "" }, 200, "empty"],
    list: [{ status: 200, body: "[1]" }, 200, "JSON"],
    half: [{ status: 200, body: '{"a":' }, 200, "JSON"],
    bytes: [{ status: 200, body: "\xff\xfe{" }, 200, "JSON"],
    redirect: [{ status: 301, headers: { "location" => "https://other.example/" } }, 301, "https://other.example/"],
    other_error: [{ status: 422, body: '{"error":"no"}' }, 422, "base URL"],
    huge: [{ status: 400, bytes: 10_000_000 }, 400, "base URL"],
    cut: [{ status: 200, body: JSON_BODY, mode: :cut }, 200, "too early"],
    cut_error: [{ status: 500, bytes: 100, mode: :cut }, 500, "too early"],
    no_http: [{ body: "220 mail.example.com ESMTP\r\n", mode: :raw }, 0, "base URL"]
  }.each do |name, (answer, status, hint)|
    define_method("test_answer_that_is_not_the_apis_#{name}") do
      FaultServer.open(answer) do |server|
        failure = failure(server)
        assert_instance_of Postrider::UnexpectedResponseError, failure
        assert_equal status, failure.status
        assert_includes failure.message, hint
        assert_operator failure.excerpt.size, :<=, 200
        server.request
        assert_empty server.requests
      end
    end
  end

  def test_an_endless_error_is_cut_off
    FaultServer.open({ status: 400, headers: { "content-length" => 1 << 30 }, bytes: 3_000_000, mode: :keep }) do |server|
      assert_equal 1024 * 1024, failure(server).response.body.bytesize
    end
  end

  def test_endless_headers_are_cut_off
    FaultServer.open({ status: 200, headers: { "x-long" => "x" * 3_000_000 }, body: JSON_BODY, mode: :keep }) do |server|
      assert_instance_of Postrider::UnexpectedResponseError, failure(server)
    end
    FaultServer.open({ mode: :raw, body: "HTTP/1.1 200 OK\r\n#{"x: #{'y' * 99}\r\n" * 30_000}" }) do |server|
      assert_instance_of Postrider::UnexpectedResponseError, failure(server)
    end
  end

  %i[hang slow_headers slow_body].each do |mode|
    define_method("test_the_deadline_holds_#{mode}") do
      FaultServer.open({ status: 200, body: " " * 9999, mode: mode }) do |server|
        failure = failure(server, timeout: 0.3)
        assert_instance_of Postrider::TimeoutError, failure
        assert_includes failure.message, "0.3 s"
      end
    end
  end

  def test_the_deadline_holds_while_tls_is_negotiated
    silent = TCPServer.new("127.0.0.1", 0)
    failure = failure(nil, url: "https://127.0.0.1:#{silent.addr[1]}", timeout: 0.3)
    assert_instance_of Postrider::TimeoutError, failure
  ensure
    silent&.close
  end

  def test_cancellation
    FaultServer.open({ mode: :hang }) do |server|
      asked = 0
      assert_instance_of Postrider::CancelledError, failure(server, cancelled: -> { (asked += 1) > 3 })
    end
  end

  def test_reset
    FaultServer.open({ mode: :reset }) do |server|
      failure = failure(server)
      assert_instance_of Postrider::ConnectionError, failure
      assert_equal ["reset", false], [failure.reason, failure.unsent?]
    end
  end

  def test_refused
    server = FaultServer.new({ mode: :reset })
    server.close
    failure = failure(server)
    assert_instance_of Postrider::ConnectionError, failure
    assert_equal ["refused", true], [failure.reason, failure.unsent?]
    assert_includes failure.message, "127.0.0.1:#{server.port}"
  end

  def test_unknown_host
    failure = failure(nil, url: "https://no-such-host.invalid")
    assert_instance_of Postrider::ConnectionError, failure
    assert_equal "dns", failure.reason
  end

  def test_tls
    certificate, key = self_signed
    file = Tempfile.new("postrider")
    file.write(certificate.to_pem)
    file.close
    FaultServer.open({ status: 200, body: JSON_BODY }, certificate: [certificate, key]) do |server|
      failure = failure(server)
      assert_instance_of Postrider::ConnectionError, failure
      assert_equal ["tls", true], [failure.reason, failure.permanent?]
      assert_includes failure.message, "ca_file"
      client = Postrider::Client.new(api_key: KEY, base_url: server.url, ca_file: file.path)
      assert_equal "acct_1", client.account.get.dig(:account, :id)
    end
    FaultServer.open({ status: 400, body: "x" }) do |plain|
      failure = failure(plain, url: plain.url.sub("http:", "https:"))
      assert_instance_of Postrider::ConnectionError, failure
      assert_equal "tls", failure.reason
    end
  ensure
    file&.unlink
  end

  def self_signed
    key = OpenSSL::PKey::EC.generate("prime256v1")
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = 1
    certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=127.0.0.1")
    certificate.public_key = key
    certificate.not_before = Time.now - 60
    certificate.not_after = Time.now + 3600
    extensions = OpenSSL::X509::ExtensionFactory.new(certificate, certificate)
    certificate.add_extension(extensions.create_extension("subjectAltName", "IP:127.0.0.1"))
    [certificate.sign(key, "SHA256"), key]
  end

  def test_stream
    event = lambda do |number|
      "event: email.sent\r\nid: c#{number}\r\ndata: {\"id\":\"evt_#{number}\",\"type\":\"email.sent\",\"created_at\":\"t\"," \
        "\r\ndata: \"data\":{\"email_id\":\"msg_#{number}\"}}\r\n\r\n"
    end
    stream = { "content-type" => "text/event-stream", "content-length" => nil }
    FaultServer.open(
      { status: 200, headers: stream, body: ": hello\n\n#{event.call(1)}id: c9\ndata: {\"half" },
      { status: 200, headers: stream, body: ":\nid: c1b\n\n" },
      { mode: :reset },
      { status: 502, headers: HTML, body: "<h1>Bad gateway" },
      { status: 200, headers: stream, body: event.call(2).gsub("\r\n", "\n") },
      { status: 401, body: '{"error":{"message":"Unauthorized","code":"unauthorized"}}' }
    ) do |server|
      client = Postrider::Client.new(api_key: KEY, base_url: server.url, clock: FakeClock.new)
      seen = []
      assert_raises(Postrider::AuthenticationError) do
        client.webhook_events.stream(types: ["email.sent"], after: "c0") do |one|
          seen << [one.id, one.cursor, one.data[:email_id], one.class]
        end
      end
      sent = Postrider::Events::EmailSent
      assert_equal [["evt_1", "c1", "msg_1", sent], ["evt_2", "c2", "msg_2", sent]], seen
      cursors = Array.new(6) { server.request[:headers]["last-event-id"] }
      assert_equal %w[c0 c1 c1b c1b c1b c2], cursors
    end
  end

  def test_a_stream_of_a_server_that_was_never_there
    clock = FakeClock.new
    client = Postrider::Client.new(api_key: KEY, base_url: "http://127.0.0.1:9", clock: clock)
    assert_raises(Postrider::ConnectionError) { client.webhook_events.stream.first }
    assert_equal [0.25, 0.5], clock.sleeps
  end

  def test_a_stream_can_be_left_and_cancelled
    stream = { "content-type" => "text/event-stream", "content-length" => 1 << 20 }
    body = "id: c1\ndata: {\"id\":\"evt_1\",\"type\":\"moon.landed\",\"data\":{}}\n\n"
    FaultServer.open({ status: 200, headers: stream, body: body, mode: :keep }) do |server|
      client = Postrider::Client.new(api_key: KEY, base_url: server.url)
      assert_equal "moon.landed", client.webhook_events.stream.first.type
      seen = 0
      assert_raises(Postrider::CancelledError) do
        client.webhook_events.stream(cancelled: -> { seen.positive? }) { seen += 1 }
      end
    end
  end
end
