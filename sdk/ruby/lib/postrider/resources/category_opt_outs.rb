# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # People who do not want a category of email.
    class CategoryOptOuts < Resource
      LIST = Operation.new(
        name: "categoryOptOuts.list", http_method: "GET", path: "/category-opt-outs",
        query: %w[limit cursor email category], pages: "category_opt_outs", retry: true
      )
      CREATE = Operation.new(
        name: "categoryOptOuts.create", http_method: "POST", path: "/category-opt-outs",
        body: true
      )
      DELETE = Operation.new(
        name: "categoryOptOuts.delete", http_method: "DELETE", path: "/category-opt-outs/{id}",
        retry: true
      )
      private_constant :LIST, :CREATE, :DELETE

      # List opt-outs, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `email`: Filter by email address
      # - `category`: Filter by category: product, newsletter; several separated by commas
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Opt an address out of a category.
      #
      # - `email` (required): The address
      # - `category` (required): The category
      #
      # Returns the answer, a hash.
      def create(params = nil, **keywords)
        call(CREATE, [], params, keywords)
      end

      # Delete an opt-out.
      #
      # id: The opt-out's id (`opt_…`)
      #
      # Returns the answer, a hash.
      def delete(id, **options)
        call(DELETE, [id], {}, options)
      end
    end
  end
end
