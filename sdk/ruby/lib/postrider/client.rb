# frozen_string_literal: true

require "json"
require_relative "clock"
require_relative "dev"
require_relative "event_stream"
require_relative "failure"
require_relative "page"
require_relative "request_builder"
require_relative "resource_tree"
require_relative "transport"
require_relative "version"

module Postrider
  # The API of a postrider server. A client can be used by several threads; it keeps connections open.
  class Client
    include ResourceTree

    # Threads whose last answer is kept, before those of ended threads are deleted.
    THREADS_MAX = 64

    # Seconds until a stream is tried again at most, whatever the server asks for.
    STREAM_WAIT_MAX = 300

    # The inbox of `postrider dev`.
    attr_reader :dev

    # api_key:             nil: POSTRIDER_API_KEY of the environment
    # base_url:            nil: POSTRIDER_BASE_URL of the environment
    # timeout:             seconds for a call with all its retries
    # on_warning:          a function that gets the warnings of the API, for example `logger.method(:warn)`
    # allow_insecure_http: accepts `http:` for other hosts than this one
    # ca_file:             authorities to trust instead of the system's, in PEM
    def initialize(api_key: nil, base_url: nil, timeout: 30, max_retries: 2, on_warning: nil, allow_insecure_http: false,
                   ca_file: nil, user_agent: nil, transport: nil, clock: Clock.new)
      agent = "postrider-ruby/#{VERSION} #{user_agent.to_s.gsub(/[^\x20-\x7e]/, '')}".strip
      @requests = RequestBuilder.new(api_key, base_url, allow_insecure_http, agent)
      @timeout = timeout
      @max_retries = max_retries
      @on_warning = on_warning
      @transport = transport || Transport.new(ca_file: ca_file)
      @clock = clock
      @dev = Dev.new(self, clock)
      @lock = Mutex.new
      @last_responses = {}.compare_by_identity
      make_resources
    end

    # The last answer that the current thread got, also one of a failed call, without its body: status, rate limit,
    # request id and headers.
    def last_response
      @lock.synchronize { @last_responses[Thread.current] }
    end

    # Calls an operation. Use the resources instead, for example `client.emails.send`.
    # Returns the answer's JSON, or its bytes if it is another media type.
    def call(operation, path = [], params = {}, options = {})
      request = @requests.build(operation, path, params, options)
      cancelled = options[:cancelled]
      deadline = @clock.monotonic + (options[:timeout] || @timeout)
      attempt = 0
      begin
        left = [0.001, deadline - @clock.monotonic].max
        result(operation, remember(@transport.call(request, timeout: left, cancelled: cancelled)))
      rescue Error => e
        raise if attempt >= (options[:max_retries] || @max_retries) || !Failure.retryable?(e, operation)

        wait = wait_after(e, attempt)
        raise if @clock.monotonic + wait >= deadline

        pause(wait, cancelled)
        attempt += 1
        retry
      end
    end

    # Gets the first page of a list.
    def page(operation, path, params, options)
      field = operation.pages.to_sym
      fetch = ->(cursor) { call(operation, path, params.to_h.transform_keys(&:to_sym).merge(cursor: cursor), options) }
      Page.new(call(operation, path, params, options), field, &fetch)
    end

    # Reads a stream of events. Use `client.webhook_events.stream` instead.
    def stream(operation, params, options)
      params = params.to_h.transform_keys(&:to_sym)
      events = EventStream.new(@transport, @requests, params.delete(:after))
      attempt = 0
      loop do
        wait = nil
        begin
          events.read(stream_request(operation, params, options, events.cursor), options[:cancelled]) do |event|
            attempt = 0
            yield event
          end
        rescue Error => e
          # Before the first connection it tries as often as a call, so that a wrong base URL is noticed.
          raise if !events.connected? && attempt >= @max_retries
          raise unless e.respond_to?(:status) && e.status >= 500 || Failure.retryable?(e, operation)

          wait = [wait_after(e, attempt), STREAM_WAIT_MAX].min
        end
        pause(wait || backoff(attempt), options[:cancelled])
        attempt += 1
      end
    end

    # Closes the connections that are kept open. The client can be used again.
    def close
      @transport.close
    end

    def inspect
      "#<#{self.class} #{@requests.inspect[/http\S+(?=>)/]} api_key=[hidden]>"
    end

    private

    def stream_request(operation, params, options, cursor)
      headers = (options[:extra_headers] || {}).merge(cursor ? { "Last-Event-ID" => cursor } : {})
      @requests.build(operation, [], params, options.merge(extra_headers: headers))
    end

    def remember(response)
      @lock.synchronize do
        @last_responses.delete_if { |thread, _| !thread.alive? } if @last_responses.size >= THREADS_MAX
        @last_responses[Thread.current] = @requests.redact(Response.new(response.status, response.headers))
      end
      response
    end

    def result(operation, response)
      raise failure(response) unless (200..299).cover?(response.status)

      held = Failure.of_held(@requests.redact(response)) if response.status == 202
      raise held if held
      return content(response) unless operation.json?

      data = parsed(response.body)
      raise UnexpectedResponseError.of(@requests.redact(response)) unless data.is_a?(Hash)

      Array(data[:warnings]).each { |warning| pass(warning.is_a?(String) ? warning : JSON.generate(warning)) } if @on_warning
      data
    end

    def pass(warning)
      @on_warning.call(warning)
    rescue StandardError => e
      # The call has succeeded: it must not look as if it had failed.
      warn "postrider: on_warning failed: #{e.message}"
    end

    def failure(response)
      failure = Failure.of(@requests.redact(response))
      failure.resolve_by { |id, timeout| resolve(id, timeout) } if failure.is_a?(SendUnconfirmedError)
      failure
    end

    def content(response)
      type = response.content_type.downcase
      # A page of a proxy is no raw email and no table; an attachment can be HTML.
      if type.empty? || (type.start_with?("text/html") && response.request_id.nil?)
        raise UnexpectedResponseError.of(@requests.redact(response))
      end

      text = type.start_with?("text/") ? response.body.dup.force_encoding(Encoding::UTF_8) : response.body
      text.valid_encoding? ? text : response.body
    end

    def parsed(body)
      JSON.parse(body, symbolize_names: true, max_nesting: 256)
    rescue JSON::ParserError, EncodingError
      nil
    end

    def wait_after(failure, attempt)
      asked = failure.response.retry_after(@clock.now) if failure.respond_to?(:response)
      asked || backoff(attempt)
    end

    def backoff(attempt)
      @clock.random * [8.0, 0.5 * (2**[attempt, 10].min)].min
    end

    def pause(seconds, cancelled)
      while seconds.positive?
        raise CancelledError, "The call was cancelled." if cancelled&.call

        slice = cancelled ? [seconds, 0.05].min : seconds
        @clock.sleep(slice)
        seconds -= slice
      end
    end

    # Returns the email once it is no longer failed, or as it is at the end of the time.
    def resolve(id, timeout)
      deadline = @clock.monotonic + timeout
      wait = 0.5
      loop do
        is_last = @clock.monotonic + wait >= deadline
        email = email_of(id, [0.1, deadline - @clock.monotonic].max, is_last)
        return email if email && (is_last || email[:status] != "failed")

        @clock.sleep(wait)
        wait = [2 * wait, 8.0].min
      end
    end

    # An email that was not stored yet is nil, except at the end.
    def email_of(id, timeout, is_last)
      emails.get(id, timeout: [timeout, @timeout].min)[:email] || {}
    rescue NotFoundError
      raise if is_last
    end
  end
end
