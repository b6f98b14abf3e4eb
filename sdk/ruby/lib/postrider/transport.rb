# frozen_string_literal: true

require "net/http"
require "openssl"
require "uri"
require_relative "connection"
require_relative "errors"
require_relative "mailbox"

module Postrider
  # Sends requests by net/http and keeps connections open for the next ones. It follows no redirects and repeats nothing.
  #
  # Each exchange runs in a thread of its own. The caller's thread waits for its parts, so that the deadline holds whatever
  # blocks: name resolution, connecting, TLS, a header that comes byte by byte, a body that stops.
  class Transport
    # Bytes of an answer that are read.
    ANSWER_MAX = 256 * 1024 * 1024
    # Bytes of an error's body that are read; the rest is left out.
    ERROR_MAX = 1024 * 1024
    CONNECTIONS_MAX = 8
    # Seconds after which a kept connection is not used again.
    IDLE_MAX = 30
    # How often `cancelled` is asked, in seconds.
    CANCELLATION_PERIOD = 0.02

    # ca_file: certificates of the authorities to trust, in PEM; nil for the system's.
    def initialize(ca_file: nil)
      @ca_file = ca_file
      @lock = Mutex.new
      @kept = []
      @process = Process.pid
    end

    # Returns the Response. Raises ConnectionError, UnexpectedResponseError, TimeoutError or CancelledError.
    def call(request, timeout:, cancelled: nil)
      head = nil
      limit = 0
      body = +"".b
      exchange(request, timeout: timeout, cancelled: cancelled) do |part|
        if part.is_a?(Response)
          head = part
          limit = head.status >= 400 ? ERROR_MAX : ANSWER_MAX
          next
        end
        body << part
        next if body.bytesize <= limit
        raise UnexpectedResponseError.too_large(head, limit) if head.status < 400

        body = body.byteslice(0, limit)
        break
      end
      Response.new(head.status, head.headers, body)
    end

    # Yields the head of the answer as a Response, then pieces of its body as they arrive.
    #
    # timeout: seconds until the answer must be complete; nil for no limit
    # silence: seconds without any byte after which the connection counts as lost
    # cancelled: a function that is asked while the caller waits
    def exchange(request, timeout: nil, silence: nil, cancelled: nil)
      parts = Mailbox.new
      started = heard = monotonic
      answering = false
      worker = Thread.new { carry_out(request, parts) }
      loop do
        raise CancelledError, "The call was cancelled." if cancelled&.call

        waits = [timeout && (started + timeout - monotonic), silence && (heard + silence - monotonic)].compact
        part = parts.take([*waits, cancelled && CANCELLATION_PERIOD].compact.min)
        case part
        when nil
          raise timeout_error(timeout, answering) if timeout && monotonic - started >= timeout
          next unless silence && monotonic - heard >= silence

          raise ConnectionError.new("The server sent nothing for #{silence} s.", "reset")
        when Error then raise part
        when :done then return
        else
          heard = monotonic
          answering = true
          yield part
        end
      end
    ensure
      worker&.kill
    end

    # Closes the connections that wait for another request.
    def close
      connections = @lock.synchronize { @kept.tap { @kept = [] } }
      connections.each { |connection| finish(connection) }
    end

    def inspect
      "#<#{self.class}>"
    end

    private

    def carry_out(request, parts)
      Thread.current.report_on_exception = false
      uri = URI.parse(request.url)
      head = connection = nil
      connecting = true
      connection = (take_kept if request.repeatable) || prepared(uri)
      connection.start unless connection.started?
      connecting = false
      connection.header_begins
      connection.request(net_request(request, uri)) do |incoming|
        connection.header_ended
        head = head_of(incoming)
        parts.put(head)
        read_body(incoming) { |piece| parts.put(piece) }
      end
      keep(connection)
      connection = nil
      parts.put(:done)
    rescue StandardError => e
      parts.put(head ? UnexpectedResponseError.truncated(head, reason_of(e)) : failure(e, uri, connecting))
    ensure
      finish(connection)
    end

    def timeout_error(seconds, answering)
      what = answering ? "The answer was not complete" : "The server did not answer"
      advice = "Raise `timeout`, or check the server and the network between."
      TimeoutError.new(format("%<what>s within %<seconds>.3g s. %<advice>s", what: what, seconds: seconds, advice: advice))
    end

    def prepared(uri)
      connection = Connection.new(uri.hostname, uri.port)
      connection.use_ssl = uri.scheme == "https"
      connection.ca_file = @ca_file
      connection.max_retries = 0
      connection.keep_alive_timeout = IDLE_MAX
      # The caller's deadline ends the thread.
      connection.open_timeout = connection.read_timeout = connection.write_timeout = nil
      connection
    end

    def net_request(request, uri)
      headers = request.headers.merge("Accept-Encoding" => "identity")
      headers["Content-Length"] = "0" if request.body.nil? && !%w[GET HEAD DELETE].include?(request.http_method)
      outgoing = Net::HTTPGenericRequest.new(request.http_method, !request.body.nil?, true, uri.request_uri, headers)
      outgoing.body = request.body
      outgoing
    end

    def head_of(incoming)
      Response.new(incoming.code.to_i, incoming.each_header.to_h)
    end

    # net/http takes a body that ends too early for a whole one.
    def read_body(incoming)
      expected = incoming.content_length unless incoming.chunked?
      received = 0
      incoming.read_body do |piece|
        received += piece.bytesize
        yield piece
      end
      return unless expected && incoming.class.body_permitted? && received < expected

      raise EOFError, "#{received} of #{expected} bytes came"
    end

    def take_kept
      @lock.synchronize do
        # A connection must not be shared with the parent process.
        @kept = [] if @process != Process.pid
        @process = Process.pid
        @kept.pop
      end
    end

    def keep(connection)
      surplus = @lock.synchronize do
        next connection if @process != Process.pid || @kept.size >= CONNECTIONS_MAX

        @kept.push(connection)
        nil
      end
      finish(surplus)
    end

    def finish(connection)
      connection&.finish if connection&.started?
    rescue StandardError
      # It is closed.
    end

    def failure(error, uri, connecting)
      at = "#{uri.host}:#{uri.port}"
      case error
      when Error then error
      when SocketError then ConnectionError.new("The name of #{uri.host} cannot be resolved: check the base URL. " \
                                                "(#{error.message})", "dns", unsent: true)
      when Errno::ECONNREFUSED, Errno::EHOSTUNREACH, Errno::ENETUNREACH, Errno::EADDRNOTAVAIL
        ConnectionError.new("Nothing accepts connections at #{at}: check the base URL and that the server runs. " \
                            "(#{error.class.name})", "refused", unsent: true)
      when Net::HTTPBadResponse, Net::HTTPHeaderSyntaxError, Net::ProtocolError
        # Its message would repeat what the server sent.
        UnexpectedResponseError.new("The answer of #{at} is no HTTP: check the base URL.", Response.new(0))
      else failure_of_stream(error, at, uri, connecting)
      end
    end

    def failure_of_stream(error, at, uri, connecting)
      if error.is_a?(OpenSSL::SSL::SSLError) && error.message.include?("certificate verify failed")
        ConnectionError.new("The certificate of #{at} is not trusted: check the host name in the base URL, or give the " \
                            "certificate of your own authority as `ca_file`. (#{error.message})",
                            "tls", unsent: true, permanent: true)
      elsif error.is_a?(OpenSSL::SSL::SSLError) || (connecting && uri.scheme == "https" && lost?(error))
        ConnectionError.new("#{at} does not speak TLS: check scheme and port of the base URL. (#{error.message})",
                            "tls", unsent: connecting)
      elsif lost?(error)
        ConnectionError.new("#{at} closed the connection without an answer. (#{error.class.name})", "reset", unsent: connecting)
      else
        ConnectionError.new("The call of #{at} failed. (#{error.class.name}: #{error.message})", "other", unsent: connecting)
      end
    end

    def lost?(error)
      case error
      when IOError, Errno::ECONNRESET, Errno::EPIPE, Errno::ECONNABORTED then true
      else false
      end
    end

    def reason_of(error)
      error.is_a?(EOFError) && error.message.include?(" of ") ? error.message : error.class.name
    end

    def monotonic
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
