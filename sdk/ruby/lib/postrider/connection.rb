# frozen_string_literal: true

require "net/http"
require_relative "errors"

module Postrider
  # A connection of net/http that reads a header section up to a limit; net/http itself has none.
  class Connection < Net::HTTP
    HEADER_MAX = 256 * 1024

    # Counts the bytes of lines.
    module HeaderLimit
      # Bytes that the header section may still have; nil within a body.
      attr_accessor :header_left

      def readuntil(*)
        line = super
        @header_left -= line.bytesize if @header_left
        check_header(@header_left && @header_left.negative?)
        line
      end

      private

      # Within a body, the buffer has at most what one read gives.
      def rbuf_fill
        super.tap { check_header(@rbuf.bytesize > 2 * HEADER_MAX) }
      end

      def check_header(too_large)
        return unless too_large

        raise UnexpectedResponseError.new("The header of the answer is larger than #{HEADER_MAX} bytes: check the base URL.",
                                          Response.new(0))
      end
    end

    # The next lines are those of a header section.
    def header_begins
      @socket.header_left = HEADER_MAX
    end

    def header_ended
      @socket.header_left = nil
    end

    private

    def connect
      super
      @socket.extend(HeaderLimit)
      header_begins
    end
  end
  private_constant :Connection
end
