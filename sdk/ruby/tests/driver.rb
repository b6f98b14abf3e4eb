# frozen_string_literal: true

# Answers each JSON line of standard input with one line.
require "json"
require_relative "../lib/postrider"

# Exposes the SDK to sdk/run.
class Driver
  REQUESTS = %w[new call iterate verify test_header stream resolve_unconfirmed wait_for_email last_response].freeze
  FIELDS = %i[
    status code request_id doc_url headers details fields suppressed category email_id reason limit used cap resets_at
    upgrade_url remaining reset retry_after content_type excerpt approval_id url expires_at
  ].freeze

  def answer(request)
    @warnings = []
    name = REQUESTS.find { |one| request.key?(one) } || raise("unknown request")
    public_send("on_#{name}", request[name], request)
  end

  def on_new(given, _request)
    @client = Postrider::Client.new(
      api_key: given["api_key"], base_url: given["base_url"], timeout: (given["timeout_ms"] || 30_000) / 1000.0,
      max_retries: given["max_retries"] || 2, on_warning: ->(warning) { @warnings << warning }
    )
    { data: nil }
  end

  def on_call(name, request)
    data = call(name, request)
    last = @client.last_response
    data = { base64: [data].pack("m0") } if data.is_a?(String) && !last.content_type.start_with?("text/")
    data = data.to_h if data.is_a?(Postrider::Page)
    { data: data, headers: last.headers, request_id: last.request_id, warnings: @warnings }
  end

  def on_iterate(name, request)
    { data: call(name, request).first(request["count_max"] || 1_000_000) }
  end

  def on_verify(given, _request)
    event = Postrider::Webhooks.construct_event(
      given["payload"], given["headers"], given["secrets"], tolerance: given["tolerance_s"] || 300, now: given["now"]
    )
    { data: fields(event) }
  end

  def on_test_header(given, _request)
    { data: Postrider::Webhooks.generate_test_header(
      payload: given["payload"], secret: given["secret"], timestamp: given["timestamp"], id: given["event_id"] || "evt_test"
    ) }
  end

  def on_stream(given, _request)
    { data: @client.webhook_events.stream(given.slice("types", "after")).first(given["count"]).map { |one| fields(one) } }
  end

  def on_resolve_unconfirmed(call, request)
    call(call["call"], call)
    raise "the call did not fail with SendUnconfirmedError"
  rescue Postrider::SendUnconfirmedError => e
    { data: e.resolve(timeout: (request["timeout_ms"] || 60_000) / 1000.0) }
  end

  def on_wait_for_email(wanted, _request)
    timeout = (wanted["timeout_ms"] || 30_000) / 1000.0
    { data: @client.dev.wait_for_email(to: wanted["to"], subject: wanted["subject"], timeout: timeout) }
  end

  def on_last_response(_given, _request)
    last = @client.last_response
    { data: { status: last.status, request_id: last.request_id, rate_limit: last.rate_limit } }
  end

  def error(failure)
    name = failure.class.name.delete_prefix("Postrider::")
    known = FIELDS.select { |field| failure.respond_to?(field) }.to_h { |field| [field, failure.public_send(field)] }
    { class: name == "Error" ? "PostriderError" : name, message: failure.message, **known }
  end

  private

  def call(name, request)
    *resources, method = name.gsub(/[A-Z]/) { |letter| "_#{letter.downcase}" }.split(".")
    resource = resources.reduce(@client) { |parent, child| parent.public_send(child) }
    options = (request["options"] || {}).transform_keys(&:to_sym)
    options[:timeout] = options.delete(:timeout_ms) / 1000.0 if options[:timeout_ms]
    options[:extra_headers] = options.delete(:headers) if options[:headers]
    if (wait = options.delete(:cancel_after_ms))
      ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + wait / 1000.0
      options[:cancelled] = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) >= ends }
    end
    arguments = request["path"] || []
    arguments += [request["params"] || {}] if resource.method(method).parameters.include?(%i[opt params])
    resource.public_send(method, *arguments, **options)
  end

  def fields(event)
    { id: event.id, cursor: event.cursor, **event.to_h }
  end
end

$stdout.sync = true
driver = Driver.new
$stdin.each_line do |line|
  request = JSON.parse(line)
  reply = begin
    { ok: driver.answer(request) }
  rescue Postrider::Error => e
    { error: driver.error(e) }
  rescue StandardError => e
    { error: { class: e.class.name, message: e.full_message(highlight: false) } }
  end
  puts JSON.generate({ id: request["id"] }.merge(reply))
end
