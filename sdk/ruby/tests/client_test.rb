# frozen_string_literal: true

require "pp"
require_relative "helper"

class ClientTest < Minitest::Test
  SENT = { id: "msg_1", status: "sent" }.freeze
  EMAIL = { from: "ada@example.com", to: "grace@example.net", subject: "Hello", text: "Hi" }.freeze

  def client(*answers, **options)
    @transport = FakeTransport.new(answers)
    @clock = FakeClock.new
    Postrider::Client.new(
      api_key: KEY, base_url: "https://mail.example.com/", transport: @transport, clock: @clock, **options
    )
  end

  def ok(data = SENT, headers = {})
    FakeTransport.json(200, data, headers)
  end

  def test_request
    client = client(ok(SENT, "x-request-id" => "req_1", "ratelimit-limit" => "10"))
    assert_equal SENT, client.emails.send(EMAIL.merge(variables: {}), idempotency_key: "order-1")
    request = @transport.requests.first
    assert_equal ["POST", "https://mail.example.com/emails"], [request.http_method, request.url]
    assert_equal '{"from":"ada@example.com","to":"grace@example.net","subject":"Hello","text":"Hi","variables":{}}', request.body
    assert_equal ["Bearer #{KEY}", "order-1"], request.headers.values_at("Authorization", "Idempotency-Key")
    assert_match(%r{\Apostrider-ruby/\d}, request.headers["User-Agent"])
    assert_equal ["req_1", 10], [client.last_response.request_id, client.last_response.rate_limit[:limit]]
    assert_nil Thread.new { client.last_response }.value
  end

  def test_the_last_response_has_neither_body_nor_key
    client = client(ok(SENT, "x-echo" => "Bearer #{KEY}"))
    client.emails.send(EMAIL)
    assert_equal [200, "Bearer [API key]", ""], [client.last_response.status, client.last_response.header("x-echo"), client.last_response.body]
  end

  def test_a_failing_callback_is_no_failure_of_the_call
    client = client(ok(SENT.merge(warnings: ["a field"])), on_warning: ->(_) { raise "broken" })
    assert_output(nil, /on_warning failed: broken/) { assert_equal SENT[:id], client.emails.send(EMAIL)[:id] }
  end

  def test_params_are_keywords_or_a_hash_and_options_are_keywords
    client = client(ok, ok, ok)
    client.emails.send(**EMAIL, headers: { "X-Flow" => "a" }, idempotency_key: "k", extra_headers: { "X-Trace" => "t" })
    client.emails.send({ "from" => "a@b.c", to: ["d@e.f"] }, idempotency_key: "k")
    client.emails.send("from" => "a@b.c", to: ["d@e.f"])
    bodies = @transport.requests.map { |request| JSON.parse(request.body) }
    assert_equal({ "X-Flow" => "a" }, bodies[0]["headers"])
    refute bodies[0].key?("idempotency_key")
    assert_equal ["k", "t"], @transport.requests[0].headers.values_at("Idempotency-Key", "x-trace")
    assert_equal [{ "from" => "a@b.c", "to" => ["d@e.f"] }] * 2, bodies[1..]
    error = assert_raises(ArgumentError) { client.emails.send({ from: "a@b.c" }, to: ["d@e.f"]) }
    assert_includes error.message, "to"
    assert_raises(ArgumentError) { client.emails.get("msg_1", timeuot: 3) }
  end

  def test_no_param_has_the_name_of_an_option
    operations = JSON.parse(File.read(File.join(__dir__, "../../operations.json")))
    names = operations["operations"].flat_map { |one| one["query_parameters"].map { |parameter| parameter["name"] } }
    names += JSON.generate(operations).scan(/"properties":\{"(\w+)"/).flatten
    assert_empty names.map(&:to_sym) & Postrider::Resource::OPTIONS
  end

  def test_query_path_and_times
    client = client(ok({ emails: [] }), ok({ email: {} }))
    client.emails.list(status: %w[sent bounced], tag: ["a:b", "c:d"], q: "a b&c=é", created_after: Time.utc(2026), cursor: nil)
    client.emails.get("msg/1 ?")
    list, get = @transport.requests
    assert_equal "https://mail.example.com/emails?status=sent%2Cbounced&tag=a%3Ab&tag=c%3Ad&q=a%20b%26c%3D%C3%A9&" \
                 "created_after=2026-01-01T00%3A00%3A00.000Z", list.url
    assert_equal "https://mail.example.com/emails/msg%2F1%20%3F", get.url
    refute get.headers.key?("Idempotency-Key")
  end

  def test_retries_keep_the_idempotency_key
    lost = Postrider::ConnectionError.new("lost", "reset")
    client = client(lost, FakeTransport.error(503, "service_unavailable", {}, "retry-after" => "3"), ok)
    client.emails.send(**EMAIL)
    keys = @transport.requests.map { |request| request.headers["Idempotency-Key"] }
    assert_equal [3, 1], [keys.size, keys.uniq.size]
    assert_match(/\A\h{8}-\h{4}-4\h{3}-[89ab]\h{3}-\h{12}\z/, keys.first)
    assert_equal [0.25, 3.0], @clock.sleeps
  end

  def test_retry_after_as_a_date
    headers = { "date" => "Thu, 01 Jan 2026 10:00:00 GMT", "retry-after" => "Thu, 01 Jan 2026 10:00:05 GMT" }
    client(FakeTransport.error(429, "rate_limit_exceeded", {}, headers), ok).account.get
    assert_equal [5.0], @clock.sleeps
  end

  def test_a_wait_beyond_the_deadline_fails_at_once
    client = client(FakeTransport.error(429, "rate_limit_exceeded", {}, "retry-after" => "31"))
    failure = assert_raises(Postrider::RateLimitError) { client.account.get }
    assert_equal [31.0, []], [failure.retry_after, @clock.sleeps]
  end

  def test_what_is_retried
    reset = Postrider::ConnectionError.new("", "reset")
    refused = Postrider::ConnectionError.new("", "refused", unsent: true)
    certificate = Postrider::ConnectionError.new("", "tls", unsent: true, permanent: true)
    page = Postrider::Response.new(502, { "content-type" => "text/html" }, "<html>")
    cut = Postrider::UnexpectedResponseError.truncated(Postrider::Response.new(200), "lost")
    error = FakeTransport.method(:error)
    {
      [true, reset] => true, [false, reset] => false, [false, refused] => true, [true, certificate] => false,
      [true, page] => true, [false, page] => false, [true, cut] => true, [false, cut] => false,
      [true, error.(408, "request_timeout")] => true, [true, error.(500, "internal_error")] => true,
      [false, error.(500, "internal_error")] => false, [true, error.(502, "mail_server_error")] => true,
      [false, error.(503, "service_unavailable")] => true, [false, error.(429, "rate_limit_exceeded")] => true,
      [true, error.(409, "idempotency_in_progress")] => true, [true, error.(409, "idempotency_conflict")] => false,
      [true, error.(429, "plan_limit")] => false, [true, error.(422, "validation_error")] => false,
      [true, error.(504, "send_unconfirmed")] => false, [true, Postrider::TimeoutError.new] => false
    }.each do |(repeatable, answer), retried|
      operation = Postrider::Operation.new(name: "x", http_method: "POST", path: "/x", retry: repeatable)
      client = client(answer, ok({ done: true }))
      if retried
        assert_equal({ done: true }, client.call(operation), answer.inspect)
      else
        assert_raises(Postrider::Error) { client.call(operation) }
      end
      assert_equal retried ? 2 : 1, @transport.requests.size
    end
  end

  def test_errors_have_their_fields
    client = client(
      FakeTransport.error(400, "validation_error", { details: { fields: { from: "is required" } }, doc_url: "https://d/e" },
                          "x-request-id" => "req_9"),
      FakeTransport.error(422, "validation_error",
                          { details: { category_unsubscribed: ["a@x"], category: "newsletter", email_id: "msg_2" } }),
      FakeTransport.error(429, "plan_limit", { upgrade_url: "/plan", details: { limit: "daily", used: 100, cap: 100 } }),
      FakeTransport.error(418, "teapot")
    )
    failure = assert_raises(Postrider::ValidationError) { client.emails.send(**EMAIL) }
    assert_equal({ from: "is required" }, failure.fields)
    assert_equal [400, "validation_error", "req_9", "https://d/e"],
                 [failure.status, failure.code, failure.request_id, failure.doc_url]
    failure = assert_raises(Postrider::SuppressedRecipientError) { client.emails.send(**EMAIL) }
    assert_equal [["a@x"], "newsletter", "msg_2"], [failure.suppressed, failure.category, failure.email_id]
    failure = assert_raises(Postrider::PlanLimitError) { client.emails.send(**EMAIL) }
    assert_equal ["/plan", "daily", 100], [failure.upgrade_url, failure.limit, failure.cap]
    assert_instance_of Postrider::ApiError, assert_raises(Postrider::ApiError) { client.emails.send(**EMAIL) }
  end

  def test_resolve
    unconfirmed = ok({ email: { id: "msg_3", status: "failed", failure: { reason: "unconfirmed" } } })
    lost = FakeTransport.error(504, "send_unconfirmed", { details: { email_id: "msg_3" } })
    client = client(lost, unconfirmed, ok({ email: { id: "msg_3", status: "sent" } }))
    failure = assert_raises(Postrider::SendUnconfirmedError) { client.emails.send(**EMAIL) }
    assert_equal "sent", failure.resolve[:status]
    assert_equal "https://mail.example.com/emails/msg_3", @transport.requests.last.url
    client = client(lost, *[unconfirmed] * 9)
    failure = assert_raises(Postrider::SendUnconfirmedError) { client.emails.send(**EMAIL) }
    assert_equal "failed", failure.resolve(timeout: 5)[:status]
    missing = FakeTransport.error(404, "not_found")
    client = client(lost, missing, unconfirmed, *[missing] * 9)
    failure = assert_raises(Postrider::SendUnconfirmedError) { client.emails.send(**EMAIL) }
    assert_raises(Postrider::NotFoundError) { failure.resolve(timeout: 5) }
  end

  def page(ids, following)
    ok({ emails: ids.map { |id| { id: id } }, has_more: !following.nil?, next_cursor: following })
  end

  def test_pages
    client = client(page(%w[a b], "n1"), page([], "n2"), page(%w[c], nil))
    emails = client.emails.list(limit: 2)
    assert_equal [true, 2, "n1"], [emails[:has_more], emails.items.size, emails.to_h[:next_cursor]]
    assert_equal "a", emails.first[:id]
    assert_equal 1, @transport.requests.size
    assert_equal %w[a b c], emails.map { |email| email[:id] }
    assert_includes @transport.requests[2].url, "cursor=n2"
    client = client(page(%w[a], "n1"), page(%w[a], "n1"))
    assert_raises(Postrider::UnexpectedResponseError) { client.emails.list.to_a }
  end

  def test_cursors_that_go_in_a_circle
    pages = %w[a b a b a b a].map { |cursor| ok({ emails: [{ id: "msg_1" }], has_more: true, next_cursor: cursor }) }
    list = client(*pages).emails.list
    2.times { assert_raises(Postrider::UnexpectedResponseError) { list.to_a } }
    assert_equal 5, @transport.requests.size
  end

  def test_headers_of_the_caller
    headers = { "authorization" => "no", "ACCEPT" => "text/html", "User-Agent" => "shop/1.0", "idempotency-key" => "order-2" }
    client(ok).emails.send(EMAIL, extra_headers: headers)
    sent = @transport.requests.first.headers
    assert_equal ["Bearer #{KEY}", "application/json", "order-2"], sent.values_at("Authorization", "Accept", "Idempotency-Key")
    assert_equal ["postrider-ruby/#{Postrider::VERSION} shop/1.0", 6], [sent["User-Agent"], sent.size]
  end

  def test_warnings_reach_the_callback
    heard = []
    client(ok(SENT.merge(warnings: ["`colour` was ignored"])), on_warning: ->(one) { heard << one }).emails.send(**EMAIL)
    assert_equal ["`colour` was ignored"], heard
  end

  def test_unknown_values_and_keys_are_kept
    client = client(ok({ email: { status: "teleported", "New Field" => [1] } }))
    assert_equal({ status: "teleported", "New Field": [1] }, client.emails.get("msg_1")[:email])
  end

  def test_cancellation_ends_a_wait
    client = client(FakeTransport.error(503, "service_unavailable", {}, "retry-after" => "9"))
    asked = 0
    assert_raises(Postrider::CancelledError) { client.account.get(cancelled: -> { (asked += 1) > 3 }) }
  end

  def test_configuration
    {
      ["", "https://x"] => "POSTRIDER_API_KEY", ["rnl_abc\nx-evil: 1", "https://x"] => "line break",
      ["rnl_abc\n", "https://x"] => "line break", ["rnl_ä", "https://x"] => "copy it again", [KEY, ""] => "POSTRIDER_BASE_URL",
      [KEY, "mail.example.com"] => "https://", [KEY, "https://a:b@mail.example.com"] => "without a user",
      [KEY, "http://mail.example.com"] => "allow_insecure_http", [KEY, "http://127.0.0.1.example.com"] => "allow_insecure_http"
    }.each do |(key, url), hint|
      failure = assert_raises(Postrider::ConfigurationError) { Postrider::Client.new(api_key: key, base_url: url) }
      assert_includes failure.message, hint
      refute_includes shown(failure), "rnl_"
    end
    Postrider::Client.new(api_key: KEY, base_url: "http://mail.internal", allow_insecure_http: true)
  end

  def test_wrong_values_are_not_sent
    client = client()
    cycle = {}
    cycle[:variables] = cycle
    [
      -> { client.emails.send(EMAIL, idempotency_key: "a\r\nx-evil: 1") },
      -> { client.account.get(extra_headers: { "a\r\nb" => "c" }) },
      *%w[Transfer-Encoding content-length HOST Connection Proxy-Authorization].map do |name|
        -> { client.emails.send(EMAIL, extra_headers: { name => "1" }) }
      end,
      -> { client.emails.get("") },
      -> { client.emails.get("..") },
      -> { client.emails.send(**EMAIL, subject: "\xff") },
      -> { client.emails.send(**EMAIL, expires_in: Float::NAN) },
      -> { client.emails.send(cycle) }
    ].each { |call| assert_raises(Postrider::ConfigurationError, &call) }
    assert_empty @transport.requests
  end

  def test_nothing_shows_the_key
    echo = Postrider::Response.new(500, { "content-type" => "text/html", "x-echo" => KEY }, "<p>Authorization: Bearer #{KEY}")
    client = client(echo, echo, echo, FakeTransport.error(403, "forbidden", { message: "key #{KEY}" }))
    failures = Array.new(2) { assert_raises(Postrider::Error) { client.account.get } }
    unreachable = Postrider::Client.new(api_key: KEY, base_url: "http://127.0.0.1:9", max_retries: 0)
    failures << assert_raises(Postrider::ConnectionError) { unreachable.account.get }
    failures << assert_raises(NoMethodError) { client.teleport }
    failures << assert_raises(NoMethodError) { client.emails.teleport }
    texts = failures.map { |failure| shown(failure) }
    texts += [client, unreachable, client.emails, @transport.requests, client.dev].map(&:inspect)
    texts << client.instance_variables.map { |name| client.instance_variable_get(name).inspect }.join
    texts << JSON.generate([client, client.emails]) << PP.pp([client, @transport.requests], +"")
    texts.each { |text| refute_includes text, KEY }
    assert_includes client.inspect, "https://mail.example.com"
    assert_raises(TypeError) { Marshal.dump(client) }
  end
end
