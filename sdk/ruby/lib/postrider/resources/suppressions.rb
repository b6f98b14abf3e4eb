# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Addresses that get no email.
    class Suppressions < Resource
      LIST = Operation.new(
        name: "suppressions.list", http_method: "GET", path: "/suppressions",
        query: %w[limit cursor email reason source created_after created_before], pages: "suppressions", retry: true
      )
      CREATE = Operation.new(
        name: "suppressions.create", http_method: "POST", path: "/suppressions",
        body: true
      )
      CHECK = Operation.new(
        name: "suppressions.check", http_method: "POST", path: "/suppressions/check",
        body: true, retry: true
      )
      IMPORT = Operation.new(
        name: "suppressions.import", http_method: "POST", path: "/suppressions/import",
        body: true
      )
      DRY_RUN_IMPORT = Operation.new(
        name: "suppressions.dryRunImport", http_method: "POST", path: "/suppressions/import/dry-run",
        body: true, retry: true
      )
      LIST_IMPORTS = Operation.new(
        name: "suppressions.listImports", http_method: "GET", path: "/suppressions/import",
        query: %w[limit cursor], pages: "imports", retry: true
      )
      GET_IMPORT = Operation.new(
        name: "suppressions.getImport", http_method: "GET", path: "/suppressions/import/{id}",
        retry: true
      )
      EXPORT = Operation.new(
        name: "suppressions.export", http_method: "GET", path: "/suppressions/export",
        query: %w[email reason source created_after created_before], accept: "text/csv; charset=utf-8", retry: true
      )
      GET = Operation.new(
        name: "suppressions.get", http_method: "GET", path: "/suppressions/{id_or_email}",
        retry: true
      )
      DELETE = Operation.new(
        name: "suppressions.delete", http_method: "DELETE", path: "/suppressions/{id_or_email}",
        query: %w[force], retry: true
      )
      private_constant :LIST, :CREATE, :CHECK, :IMPORT, :DRY_RUN_IMPORT, :LIST_IMPORTS, :GET_IMPORT, :EXPORT, :GET, :DELETE

      # List suppressions, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `email`: An address, or `@domain.tld`
      # - `reason`: Any of these reasons, separated by commas: hard_bounce, soft_bounce, complaint, unsubscribe,
      #   smtp_failure, manual, import
      # - `source`: Any of these sources, separated by commas: system, api, dashboard, recipient, import
      # - `created_after`: Only those created after this time
      # - `created_before`: Only those created before this time
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Create suppressions.
      #
      # - `email`: An address, or `@domain.tld`
      # - `emails`: Several addresses or domains
      # - `note`: Free text
      # - `expires_at`: Expiry; never if omitted
      #
      # Returns the answer, a hash.
      def create(params = nil, **keywords)
        call(CREATE, [], params, keywords)
      end

      # Check whether addresses are suppressed.
      #
      # Returns the answer, a hash.
      def check(params = nil, **keywords)
        call(CHECK, [], params, keywords)
      end

      # Import suppressions from CSV.
      #
      # - `csv` (required): The list: CSV with a column of addresses, with or without a header line
      #
      # Returns the answer, a hash.
      def import(params = nil, **keywords)
        call(IMPORT, [], params, keywords)
      end

      # Show what an import of suppressions would do.
      #
      # - `csv` (required): The list: CSV with a column of addresses, with or without a header line
      #
      # Returns the answer, a hash.
      def dry_run_import(params = nil, **keywords)
        call(DRY_RUN_IMPORT, [], params, keywords)
      end

      # List imports, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      #
      # Returns a Page.
      def list_imports(params = nil, **keywords)
        page(LIST_IMPORTS, [], params, keywords)
      end

      # Get the progress of an import.
      #
      # id: The import's id (`imp_…`)
      #
      # Returns the answer, a hash.
      def get_import(id, **options)
        call(GET_IMPORT, [id], {}, options)
      end

      # Export suppressions as CSV.
      #
      # - `email`: An address, or `@domain.tld`
      # - `reason`: Any of these reasons, separated by commas: hard_bounce, soft_bounce, complaint, unsubscribe,
      #   smtp_failure, manual, import
      # - `source`: Any of these sources, separated by commas: system, api, dashboard, recipient, import
      # - `created_after`: Only those created after this time
      # - `created_before`: Only those created before this time
      #
      # Returns the bytes of text/csv; charset=utf-8.
      def export(params = nil, **keywords)
        call(EXPORT, [], params, keywords)
      end

      # Get a suppression.
      #
      # id_or_email: The suppression's id (`sup_…`), or the address
      #
      # Returns the answer, a hash.
      def get(id_or_email, **options)
        call(GET, [id_or_email], {}, options)
      end

      # Delete a suppression.
      #
      # - `force`: Also delete a suppression caused by a complaint
      #
      # id_or_email: The suppression's id (`sup_…`), or the address
      #
      # Returns the answer, a hash.
      def delete(id_or_email, params = nil, **keywords)
        call(DELETE, [id_or_email], params, keywords)
      end
    end
  end
end
