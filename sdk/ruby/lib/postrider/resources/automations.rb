# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"
require_relative "automations_versions"
require_relative "automations_runs"

module Postrider
  module Resources
    # Automations: emails and steps that a product event starts.
    class Automations < Resource
      CREATE = Operation.new(
        name: "automations.create", http_method: "POST", path: "/automations",
        body: true
      )
      LIST = Operation.new(
        name: "automations.list", http_method: "GET", path: "/automations",
        query: %w[limit cursor status], pages: "automations", retry: true
      )
      GET = Operation.new(
        name: "automations.get", http_method: "GET", path: "/automations/{id}",
        retry: true
      )
      UPDATE = Operation.new(
        name: "automations.update", http_method: "POST", path: "/automations/{id}",
        body: true
      )
      ACTIVATE = Operation.new(
        name: "automations.activate", http_method: "POST", path: "/automations/{id}",
        body: true
      )
      PAUSE = Operation.new(
        name: "automations.pause", http_method: "POST", path: "/automations/{id}",
        body: true
      )
      ARCHIVE = Operation.new(
        name: "automations.archive", http_method: "POST", path: "/automations/{id}",
        body: true
      )
      CANCEL_RUNS = Operation.new(
        name: "automations.cancelRuns", http_method: "POST", path: "/automations/{id}",
        body: true
      )
      DELETE = Operation.new(
        name: "automations.delete", http_method: "DELETE", path: "/automations/{id}",
        retry: true
      )
      DUPLICATE = Operation.new(
        name: "automations.duplicate", http_method: "POST", path: "/automations/{id}/duplicate",
        body: true
      )
      DRY_RUN = Operation.new(
        name: "automations.dryRun", http_method: "POST", path: "/automations/{id}/dry-run",
        body: true, retry: true
      )
      REPLAY = Operation.new(
        name: "automations.replay", http_method: "POST", path: "/automations/{id}/replay",
        body: true, retry: true
      )
      STEP_COUNTS = Operation.new(
        name: "automations.stepCounts", http_method: "GET", path: "/automations/{id}/step-counts",
        query: %w[version], retry: true
      )
      private_constant :CREATE, :LIST, :GET, :UPDATE, :ACTIVATE, :PAUSE, :ARCHIVE, :CANCEL_RUNS, :DELETE, :DUPLICATE, :DRY_RUN, :REPLAY, :STEP_COUNTS

      # Published versions of an automation.
      attr_reader :versions
      # Runs of an automation, each for one person.
      attr_reader :runs

      def initialize(client)
        super
        @versions = AutomationsVersions.new(client)
        @runs = AutomationsRuns.new(client)
      end

      # Create an automation, as a draft.
      #
      # - `name` (required): The name
      # - `steps` (required): The steps of a run, in order
      #
      # Returns the answer, a hash.
      def create(params = nil, **keywords)
        call(CREATE, [], params, keywords)
      end

      # List automations, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `status`: Only these values: draft, active, paused, archived; several separated by commas
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get an automation.
      #
      # id: The automation's id (`aut_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end

      # Activate, pause, archive or edit an automation, or cancel its runs.
      #
      # - `action`: The action to perform
      # - `name`: The name
      # - `steps`: The steps of a run, in order
      #
      # id: The automation's id (`aut_…`)
      #
      # Returns the answer, a hash.
      def update(id, params = nil, **keywords)
        call(UPDATE, [id], params, keywords)
      end

      # Activate an automation, so that events start runs.
      #
      # id: The automation's id (`aut_…`)
      #
      # Returns the answer, a hash.
      def activate(id, **options)
        call(ACTIVATE, [id], { action: "activate" }, options)
      end

      # Pause an automation and its runs.
      #
      # id: The automation's id (`aut_…`)
      #
      # Returns the answer, a hash.
      def pause(id, **options)
        call(PAUSE, [id], { action: "pause" }, options)
      end

      # Archive an automation and cancel its runs.
      #
      # id: The automation's id (`aut_…`)
      #
      # Returns the answer, a hash.
      def archive(id, **options)
        call(ARCHIVE, [id], { action: "archive" }, options)
      end

      # Cancel all runs of an automation.
      #
      # id: The automation's id (`aut_…`)
      #
      # Returns the answer, a hash.
      def cancel_runs(id, **options)
        call(CANCEL_RUNS, [id], { action: "cancel_runs" }, options)
      end

      # Delete an automation and its runs.
      #
      # id: The automation's id (`aut_…`)
      #
      # Returns the answer, a hash.
      def delete(id, **options)
        call(DELETE, [id], {}, options)
      end

      # Copy an automation into a new draft.
      #
      # - `name`: The name; derived from the original's if absent
      #
      # id: The automation's id (`aut_…`)
      #
      # Returns the answer, a hash.
      def duplicate(id, params = nil, **keywords)
        call(DUPLICATE, [id], params, keywords)
      end

      # Run an automation as a test, without sending anything.
      #
      # - `steps`: The steps; the stored ones if omitted
      # - `user_id`: The person's user id in your product
      # - `email`: The person's email address
      # - `data`: Event data, at most 65536 bytes and 32 levels. Automations receive it unchanged; credentials in it are
      #   stored as `REDACTED`. For sign-ups and subscriptions: `id`, `visitor_id`, `gclid`, `gbraid`, `wbraid`
      #   (or the cookie `rnl_ad`), `came_from`, `signup_method`, `invited`, `internal`, `value`, `currency`
      #
      # id: The automation's id (`aut_…`)
      #
      # Returns the answer, a hash.
      def dry_run(id, params = nil, **keywords)
        call(DRY_RUN, [id], params, keywords)
      end

      # Run past events as a test, without sending anything.
      #
      # - `steps`: The steps; the stored ones if omitted
      # - `limit`: The number of past events, newest first; default: 100
      #
      # id: The automation's id (`aut_…`)
      #
      # Returns the answer, a hash.
      def replay(id, params = nil, **keywords)
        call(REPLAY, [id], params, keywords)
      end

      # Get the number of runs at each step.
      #
      # - `version`: The version whose steps are counted; the current one if omitted
      #
      # id: The automation's id (`aut_…`)
      #
      # Returns the answer, a hash.
      def step_counts(id, params = nil, **keywords)
        call(STEP_COUNTS, [id], params, keywords)
      end
    end
  end
end
