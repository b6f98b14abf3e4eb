# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Log of API requests.
    class Logs < Resource
      LIST = Operation.new(
        name: "logs.list", http_method: "GET", path: "/logs",
        query: %w[limit cursor method status path operation api_key_id user_id created_after created_before], pages: "logs", retry: true
      )
      GET = Operation.new(
        name: "logs.get", http_method: "GET", path: "/logs/{id}",
        retry: true
      )
      private_constant :LIST, :GET

      # List API requests of the last 30 days, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `method`: Filter by method, like `POST`
      # - `status`: Filter by status or status class, like `404` or `4xx`
      # - `path`: Filter by path prefix, like `/emails`
      # - `operation`: Filter by operation, like `send_email`
      # - `api_key_id`: Filter by API key (`key_…`)
      # - `user_id`: Filter by the user (`user_…`) whose session made the request
      # - `created_after`: Only requests received after this time
      # - `created_before`: Only requests received before this time
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get an API request.
      #
      # id: The request's id (`req_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end
    end
  end
end
