# frozen_string_literal: true

module Postrider
  # A text that no inspection, conversion to JSON or serialization shows.
  class Secret
    def initialize(text)
      # A closure has no instance variable that a dump could show.
      define_singleton_method(:reveal) { text }
    end

    def redact(text)
      text.include?(reveal) ? text.gsub(reveal, "[API key]") : text
    end

    def inspect
      "[hidden]"
    end
    alias to_s inspect

    def as_json(*)
      inspect
    end

    def to_json(*)
      "\"#{inspect}\""
    end
  end
end
