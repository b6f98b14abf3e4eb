# frozen_string_literal: true

module Postrider
  # An event of the account. The types that this SDK knows have classes in Postrider::Events; others are of this class.
  class WebhookEvent
    # The same for every delivery of the event.
    attr_reader :id
    # For example `email.delivered`.
    attr_reader :type
    # When it happened, in ISO 8601.
    attr_reader :created_at
    # A hash with symbols as keys.
    attr_reader :data
    # The event's place in the stream, to resume after it; nil for webhooks.
    attr_reader :cursor

    def initialize(id:, type:, created_at:, data:, cursor: nil)
      @id = id
      @type = type
      @created_at = created_at
      @data = data
      @cursor = cursor
    end

    # event: `type`, `created_at`, `data`, and `id` in the stream. Returns nil if this is no event.
    def self.from_hash(event, cursor = nil)
      return unless event.is_a?(Hash) && event[:type].is_a?(String) && event[:data].is_a?(Hash)

      id = event[:id] || event[:data][:event_id]
      Events::TYPES.fetch(event[:type], WebhookEvent).new(
        id: id.to_s, type: event[:type], created_at: event[:created_at].to_s, data: event[:data], cursor: cursor
      )
    end

    def [](name)
      data[name]
    end

    def to_h
      { type: type, created_at: created_at, data: data }
    end

    def deconstruct_keys(_names)
      { id: id, cursor: cursor, **to_h }
    end

    def to_json(*options)
      to_h.to_json(*options)
    end
  end
end
