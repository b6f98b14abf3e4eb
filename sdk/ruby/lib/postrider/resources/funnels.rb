# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Funnels over product events.
    class Funnels < Resource
      GET = Operation.new(
        name: "funnels.get", http_method: "GET", path: "/funnels",
        query: %w[steps from to group_by], retry: true
      )
      private_constant :GET

      # Get a funnel: how many people did a sequence of steps.
      #
      # - `steps` (required): The steps in order: event names and `visit`. For each person the first occurrence of a step counts
      # - `from`: Start of the range of the first step, a time or a UTC date. Default: 30 days before `to`
      # - `to`: End of the range (exclusive). Default: now
      # - `group_by`: Group by the source of the first visit, by `came_from` or by `signup_method`; at most 50 groups, the
      #   others as `(other)`
      #
      # Returns the answer, a hash.
      def get(params = nil, **keywords)
        call(GET, [], params, keywords)
      end
    end
  end
end
