# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Published versions of a template.
    class TemplatesVersions < Resource
      LIST = Operation.new(
        name: "templates.versions.list", http_method: "GET", path: "/templates/{id_or_alias}/versions",
        query: %w[limit cursor], pages: "versions", retry: true
      )
      GET = Operation.new(
        name: "templates.versions.get", http_method: "GET", path: "/templates/{id_or_alias}/versions/{number}",
        retry: true
      )
      private_constant :LIST, :GET

      # List versions, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      #
      # id_or_alias: The template's id (`tpl_…`) or alias
      #
      # Returns a Page.
      def list(id_or_alias, params = nil, **keywords)
        page(LIST, [id_or_alias], params, keywords)
      end

      # Get a version.
      #
      # id_or_alias: The template's id (`tpl_…`) or alias
      # number: The version's number
      #
      # Returns the answer, a hash.
      def get(id_or_alias, number, **options)
        call(GET, [id_or_alias, number], {}, options)
      end
    end
  end
end
