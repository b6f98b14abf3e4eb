# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Visits of the website.
    class Visits < Resource
      COUNTS = Operation.new(
        name: "visits.counts", http_method: "GET", path: "/visits",
        query: %w[from to], retry: true
      )
      private_constant :COUNTS

      # Count visits and conversions by day and source.
      #
      # - `from`: Start: a timestamp, or a date in UTC. The first day is the one that contains it. Default: 30 days
      #   before `to`
      # - `to`: End, exclusive. Default: now, including today
      #
      # Returns the answer, a hash.
      def counts(params = nil, **keywords)
        call(COUNTS, [], params, keywords)
      end
    end
  end
end
