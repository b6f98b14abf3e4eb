# frozen_string_literal: true

require "json"
require_relative "failure"
require_relative "transport"
require_relative "webhook_event"

module Postrider
  # Reads events from one connection (server-sent events).
  class EventStream
    # Seconds without any byte after which the connection counts as lost.
    SILENCE = 60
    EVENT_MAX = 1024 * 1024

    # The last `id` that came, also one without an event.
    attr_reader :cursor

    def initialize(transport, requests, cursor)
      @transport = transport
      @requests = requests
      @cursor = cursor
      @connected = false
    end

    # Whether there was a stream.
    def connected?
      @connected
    end

    # Yields events until the connection ends. Raises an error if it is lost or the server refuses.
    def read(request, cancelled)
      head = nil
      buffer = +"".b
      @transport.exchange(request, silence: SILENCE, cancelled: cancelled) do |part|
        if part.is_a?(Response)
          head = part
          @connected ||= stream?(head)
          next
        end
        buffer << part
        if stream?(head)
          while (block = buffer.slice!(/\A.*?(?:\r\n\r\n|\n\n|\r\r)/mn))
            check_size(head, block)
            event = parse(block)
            yield event if event
          end
          check_size(head, buffer)
        elsif buffer.bytesize > Transport::ERROR_MAX
          break
        end
      end
      raise Failure.of(@requests.redact(Response.new(head.status, head.headers, buffer))) unless stream?(head)
    end

    private

    def stream?(head)
      head.status == 200 && head.content_type.start_with?("text/event-stream")
    end

    def check_size(head, text)
      raise UnexpectedResponseError.too_large(head, EVENT_MAX) if text.bytesize > EVENT_MAX
    end

    def parse(block)
      data = []
      block.force_encoding(Encoding::UTF_8).scrub.split(/\r\n|\n|\r/).each do |line|
        name, value = line.split(/: ?/, 2)
        @cursor = value.to_s if name == "id"
        data << value.to_s if name == "data"
      end
      return if data.empty?

      event = JSON.parse(data.join("\n"), symbolize_names: true, max_nesting: 128)
      WebhookEvent.from_hash(event, @cursor)
    rescue JSON::ParserError
      nil
    end
  end
end
