# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # What credentials and users did.
    class AuditLog < Resource
      LIST = Operation.new(
        name: "auditLog.list", http_method: "GET", path: "/audit-log",
        query: %w[limit cursor api_key_id grant_id user_id operation object_id created_after created_before], pages: "entries", retry: true
      )
      private_constant :LIST

      # List what credentials and users did in the last 90 days, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `api_key_id`: Filter by API key
      # - `grant_id`: Filter by the grant of an app
      # - `user_id`: Filter by user
      # - `operation`: Filter by operation, like `delete_domain`
      # - `object_id`: Filter by the id of the object, or of the approval
      # - `created_after`: Only entries after this time
      # - `created_before`: Only entries before this time
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end
    end
  end
end
