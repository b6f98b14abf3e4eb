# frozen_string_literal: true

require "rack"
require "rack/mock"
require_relative "helper"

class WebhooksTest < Minitest::Test
  Webhooks = Postrider::Webhooks
  TIME = 1_767_261_601
  BODY = '{"type":"email.delivered","created_at":"2026-01-01T10:00:01.000Z","data":{"event_id":"evt_01TEST",' \
         '"email_id":"msg_01TEST","status":"delivered"}}'
  SERVICE = "t=1767261601,v1=73d1d171b7792518bf34eb652caafd4d13e94b75b22b20e832da53925b9329e7"
  STANDARD = "v1,leGq6P5XZxszBtppSdgPTG85IB61BP80s0YeiHeC2vU="
  STANDARD_HEADERS = {
    "webhook-id" => "evt_01TEST", "webhook-timestamp" => "1767261601", "webhook-signature" => STANDARD
  }.freeze

  def test_vector
    headers = Webhooks.generate_test_header(payload: BODY, secret: SECRET, timestamp: TIME, id: "evt_01TEST")
    assert_equal [SERVICE, STANDARD], headers.values_at("Service-Signature", "webhook-signature")
  end

  def test_right_signatures
    [
      { "Service-Signature" => SERVICE },
      { "SERVICE-SIGNATURE" => SERVICE },
      { "HTTP_SERVICE_SIGNATURE" => SERVICE, "rack.version" => [1, 3] },
      STANDARD_HEADERS,
      STANDARD_HEADERS.transform_values { |value| [value] },
      { "Service-Signature" => [SERVICE, "v1=00"], "rack.input" => StringIO.new("x") },
      { "Service-Signature" => "t=#{TIME},v1=00", "service-signature" => SERVICE },
      STANDARD_HEADERS.merge("webhook-signature" => ["v1,AAAA", STANDARD]),
      STANDARD_HEADERS.merge("webhook-signature" => "v1,AAAA,#{STANDARD}"),
      STANDARD_HEADERS.merge("webhook-signature" => "v1,AAAA v2,x #{STANDARD}"),
      { "Service-Signature" => SERVICE.sub(",v1", ",v1=00,v1") },
      STANDARD_HEADERS.merge("Service-Signature" => "t=1,v1=00")
    ].each do |headers|
      event = Webhooks.construct_event(BODY, headers, ["whsec_b3RoZXI=", SECRET], now: TIME + 299)
      assert_instance_of Postrider::Events::EmailDelivered, event
      assert_equal %w[evt_01TEST msg_01TEST], [event.id, event.data[:email_id]]
    end
  end

  def test_wrong_signatures
    [
      [{}, BODY],
      [{ "Service-Signature" => SERVICE }, "#{BODY} "],
      [{ "Service-Signature" => SERVICE.sub("601", "602") }, BODY],
      [{ "Service-Signature" => "t=,v1=" }, BODY],
      [{ "Service-Signature" => ["t=1,v1=00", SERVICE] }, BODY],
      [STANDARD_HEADERS.merge("webhook-id" => %w[evt_01TEST evt_01TEST]), BODY],
      [STANDARD_HEADERS.merge("webhook-timestamp" => [TIME.to_s] * 2), BODY],
      [{ "Service-Signature" => "\xff", "webhook-signature" => "v1,", "webhook-timestamp" => "now" }, BODY],
      *['[]', '{"data":{}}', '{"type":5,"data":{}}', '{"type":"x"}', '{"type":"x","data":null}', '{"type":"x","data":[]}'].map do |body|
        [Webhooks.generate_test_header(payload: body, secret: SECRET, timestamp: TIME), body]
      end
    ].each do |headers, body|
      assert_raises(Postrider::SignatureError) { Webhooks.construct_event(body, headers, SECRET, now: TIME) }
    end
  end

  def test_a_wrong_clock_names_both_times
    [302, -302].each do |shift|
      failure = assert_raises(Postrider::TimestampError) do
        Webhooks.construct_event(BODY, { "service-signature" => SERVICE }, SECRET, now: TIME + shift)
      end
      assert_includes failure.message, "2026-01-01T10:00:01Z"
      assert_includes failure.message, Time.at(TIME + shift).utc.iso8601
    end
  end

  def test_an_empty_secret_is_none
    forged = { "Service-Signature" => "t=#{TIME},v1=#{OpenSSL::HMAC.hexdigest('SHA256', '', "#{TIME}.#{BODY}")}" }
    ["", nil, [], [""]].each do |secret|
      assert_raises(Postrider::ConfigurationError) { Webhooks.construct_event(BODY, forged, secret, now: TIME) }
    end
  end

  def test_unknown_types_are_passed_on
    body = '{"type":"email.teleported","created_at":"t","data":{"event_id":"evt_2","x":1}}'
    headers = Webhooks.generate_test_header(payload: body, secret: SECRET)
    event = Webhooks.construct_event(body, headers, SECRET)
    assert_instance_of Postrider::WebhookEvent, event
    assert_equal body, JSON.generate(event)
    event => { type: "email.teleported", data: { x: } }
    assert_equal 1, x
  end

  def test_rack_endpoint
    seen = []
    endpoint = Postrider::WebhookEndpoint.new(secret: SECRET) { |event| seen << event }
    request = Rack::MockRequest.new(Rack::Lint.new(endpoint))
    headers = Webhooks.generate_test_header(payload: BODY, secret: SECRET).transform_keys { |name| "HTTP_#{name.upcase.tr('-', '_')}" }
    assert_equal 204, request.post("/", headers.merge(input: BODY)).status
    assert_equal ["evt_01TEST"], seen.map(&:id)
    wrong = request.post("/", headers.merge(input: "#{BODY} "))
    assert_equal [401, true], [wrong.status, wrong.body.include?("signature is wrong")]
    assert_equal 405, request.get("/").status
    failing = Postrider::WebhookEndpoint.new(secret: SECRET) { raise IOError, "the database is away" }
    assert_raises(IOError) { Rack::MockRequest.new(failing).post("/", headers.merge(input: BODY)) }
    refute_includes endpoint.inspect, SECRET
  end

  def test_requests_of_rack
    headers = Webhooks.generate_test_header(payload: BODY, secret: SECRET).transform_keys { |name| "HTTP_#{name.upcase.tr('-', '_')}" }
    request = Rack::Request.new(Rack::MockRequest.env_for("/", headers.merge(method: "POST", input: BODY)))
    request.body.read
    assert_equal "evt_01TEST", Webhooks.event_from_request(request, SECRET).id
  end

  def test_requests_of_rails
    require "action_controller"
    headers = Webhooks.generate_test_header(payload: BODY, secret: SECRET).transform_keys { |name| "HTTP_#{name.upcase.tr('-', '_')}" }
    environment = Rack::MockRequest.env_for("/", headers.merge(method: "POST", input: BODY, "CONTENT_TYPE" => "application/json"))
    request = ActionDispatch::Request.new(environment)
    assert_equal "email.delivered", request.request_parameters["type"]
    assert_equal "evt_01TEST", Webhooks.event_from_request(request, SECRET).id
  end
end
