# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # API keys.
    class ApiKeys < Resource
      CREATE = Operation.new(
        name: "apiKeys.create", http_method: "POST", path: "/api-keys",
        body: true
      )
      LIST = Operation.new(
        name: "apiKeys.list", http_method: "GET", path: "/api-keys",
        query: %w[limit cursor], pages: "api_keys", retry: true
      )
      GET = Operation.new(
        name: "apiKeys.get", http_method: "GET", path: "/api-keys/{id}",
        retry: true
      )
      UPDATE = Operation.new(
        name: "apiKeys.update", http_method: "PATCH", path: "/api-keys/{id}",
        body: true, retry: true
      )
      DELETE = Operation.new(
        name: "apiKeys.delete", http_method: "DELETE", path: "/api-keys/{id}",
        retry: true
      )
      ROTATE = Operation.new(
        name: "apiKeys.rotate", http_method: "POST", path: "/api-keys/{id}/rotate",
        body: true
      )
      private_constant :CREATE, :LIST, :GET, :UPDATE, :DELETE, :ROTATE

      # Create an API key; its secret is shown once.
      #
      # - `name` (required): The name
      # - `domain_id`: The only domain (`dom_…`) that the credential may send from; null allows all
      # - `allowed_ips`: Addresses and networks that may use the credential; empty allows all
      # - `expires_at`: When the credential expires
      # - `policy`: The rules for the client below its scope
      # - `scope` (required): The scope
      #
      # Returns the answer, a hash.
      def create(params = nil, **keywords)
        call(CREATE, [], params, keywords)
      end

      # List API keys, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get an API key.
      #
      # id: The API key's id (`key_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end

      # Rename, enable or disable an API key, or set its allowed addresses.
      #
      # - `name`: The name
      # - `allowed_ips`: Addresses and networks that may use the credential; empty allows all
      # - `enabled`: Whether the credential is enabled
      # - `policy`: The rules for the client below its scope; null removes all rules
      #
      # id: The API key's id (`key_…`)
      #
      # Returns the answer, a hash.
      def update(id, params = nil, **keywords)
        call(UPDATE, [id], params, keywords)
      end

      # Delete an API key.
      #
      # id: The API key's id (`key_…`)
      #
      # Returns the answer, a hash.
      def delete(id, **options)
        call(DELETE, [id], {}, options)
      end

      # Rotate an API key's secret; the previous one stays valid for a grace period.
      #
      # - `grace_hours`: For how many hours the previous secret stays valid
      #
      # id: The API key's id (`key_…`)
      #
      # Returns the answer, a hash.
      def rotate(id, params = nil, **keywords)
        call(ROTATE, [id], params, keywords)
      end
    end
  end
end
