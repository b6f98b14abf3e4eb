# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Runs of an automation, each for one person.
    class AutomationsRuns < Resource
      LIST = Operation.new(
        name: "automations.runs.list", http_method: "GET", path: "/automations/{id}/runs",
        query: %w[limit cursor status email user_id], pages: "runs", retry: true
      )
      GET = Operation.new(
        name: "automations.runs.get", http_method: "GET", path: "/automations/{id}/runs/{run}",
        retry: true
      )
      CANCEL = Operation.new(
        name: "automations.runs.cancel", http_method: "POST", path: "/automations/{id}/runs/{run}/cancel"
      )
      private_constant :LIST, :GET, :CANCEL

      # List runs, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `status`: Only these values: queued, running, waiting, completed, failed, cancelled; several separated by commas
      # - `email`: Filter by the person's email address
      # - `user_id`: Filter by the person's `user_id` in the product
      #
      # id: The automation's id (`aut_…`)
      #
      # Returns a Page.
      def list(id, params = nil, **keywords)
        page(LIST, [id], params, keywords)
      end

      # Get a run, step by step.
      #
      # id: The automation's id (`aut_…`)
      # run: The run's id (`run_…`)
      #
      # Returns the answer, a hash.
      def get(id, run, **options)
        call(GET, [id, run], {}, options)
      end

      # Cancel a run.
      #
      # id: The automation's id (`aut_…`)
      # run: The run's id (`run_…`)
      #
      # Returns the answer, a hash.
      def cancel(id, run, **options)
        call(CANCEL, [id, run], {}, options)
      end
    end
  end
end
