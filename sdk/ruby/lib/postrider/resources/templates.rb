# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"
require_relative "templates_versions"

module Postrider
  module Resources
    # Templates of emails.
    class Templates < Resource
      CREATE = Operation.new(
        name: "templates.create", http_method: "POST", path: "/templates",
        body: true
      )
      LIST = Operation.new(
        name: "templates.list", http_method: "GET", path: "/templates",
        query: %w[limit cursor category status], pages: "templates", retry: true
      )
      GET = Operation.new(
        name: "templates.get", http_method: "GET", path: "/templates/{id_or_alias}",
        retry: true
      )
      UPDATE = Operation.new(
        name: "templates.update", http_method: "PATCH", path: "/templates/{id_or_alias}",
        body: true, retry: true
      )
      DELETE = Operation.new(
        name: "templates.delete", http_method: "DELETE", path: "/templates/{id_or_alias}",
        retry: true
      )
      PUBLISH = Operation.new(
        name: "templates.publish", http_method: "POST", path: "/templates/{id_or_alias}/publish",
        body: true
      )
      ROLL_BACK = Operation.new(
        name: "templates.rollBack", http_method: "POST", path: "/templates/{id_or_alias}/rollback",
        body: true
      )
      PREVIEW = Operation.new(
        name: "templates.preview", http_method: "POST", path: "/templates/{id_or_alias}/preview",
        body: true, retry: true
      )
      TEST_SEND = Operation.new(
        name: "templates.testSend", http_method: "POST", path: "/templates/{id_or_alias}/test-send",
        body: true
      )
      DUPLICATE = Operation.new(
        name: "templates.duplicate", http_method: "POST", path: "/templates/{id_or_alias}/duplicate",
        body: true
      )
      private_constant :CREATE, :LIST, :GET, :UPDATE, :DELETE, :PUBLISH, :ROLL_BACK, :PREVIEW, :TEST_SEND, :DUPLICATE

      # Published versions of a template.
      attr_reader :versions

      def initialize(client)
        super
        @versions = TemplatesVersions.new(client)
      end

      # Create a template.
      #
      # - `name`: Name, unique in the account
      # - `alias`: Name for API calls, unique in the account
      # - `category`: Category
      # - `unsubscribe_enabled`: Managed unsubscribe; always on for product and newsletter
      # - `from`: Default author, unless the send request has one: `Ada <ada@example.com>` or an object
      # - `reply_to`: Default `Reply-To`, unless the send request has one
      # - `subject`: Markup of the subject
      # - `preheader`: Markup of the preview text after the subject
      # - `html`: Markup of the HTML body
      # - `mjml`: MJML source of the HTML body, in place of `html`, which is compiled from it. Null removes the source
      #   and keeps the compiled `html`; a new `html` removes the source
      # - `text`: Markup of the plain-text body
      # - `variables`: Declared variables; undeclared ones are required
      #
      # Returns the answer, a hash.
      def create(params = nil, **keywords)
        call(CREATE, [], params, keywords)
      end

      # List templates, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `category`: Any of these, separated by commas: transactional, product, newsletter
      # - `status`: Any of these, separated by commas: draft, published, archived
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get a template.
      #
      # id_or_alias: The template's id (`tpl_…`) or alias
      #
      # Returns the answer, a hash.
      def get(id_or_alias, **options)
        call(GET, [id_or_alias], {}, options)
      end

      # Update the draft of a template.
      #
      # - `name`: Name, unique in the account
      # - `alias`: Name for API calls, unique in the account
      # - `category`: Category
      # - `unsubscribe_enabled`: Managed unsubscribe; always on for product and newsletter
      # - `from`: Default author, unless the send request has one: `Ada <ada@example.com>` or an object
      # - `reply_to`: Default `Reply-To`, unless the send request has one
      # - `subject`: Markup of the subject
      # - `preheader`: Markup of the preview text after the subject
      # - `html`: Markup of the HTML body
      # - `mjml`: MJML source of the HTML body, in place of `html`, which is compiled from it. Null removes the source
      #   and keeps the compiled `html`; a new `html` removes the source
      # - `text`: Markup of the plain-text body
      # - `variables`: Declared variables; undeclared ones are required
      # - `status`: `archived`, or the status before archiving
      # - `if_version`: The `draft_version` that the client has seen: 409 if it has changed
      #
      # id_or_alias: The template's id (`tpl_…`) or alias
      #
      # Returns the answer, a hash.
      def update(id_or_alias, params = nil, **keywords)
        call(UPDATE, [id_or_alias], params, keywords)
      end

      # Delete a template and its versions.
      #
      # id_or_alias: The template's id (`tpl_…`) or alias
      #
      # Returns the answer, a hash.
      def delete(id_or_alias, **options)
        call(DELETE, [id_or_alias], {}, options)
      end

      # Publish the draft as a new version.
      #
      # - `note`: Note of the version
      #
      # id_or_alias: The template's id (`tpl_…`) or alias
      #
      # Returns the answer, a hash.
      def publish(id_or_alias, params = nil, **keywords)
        call(PUBLISH, [id_or_alias], params, keywords)
      end

      # Publish a copy of an earlier version.
      #
      # - `version` (required): The version to publish again
      # - `note`: Note of the version
      #
      # id_or_alias: The template's id (`tpl_…`) or alias
      #
      # Returns the answer, a hash.
      def roll_back(id_or_alias, params = nil, **keywords)
        call(ROLL_BACK, [id_or_alias], params, keywords)
      end

      # Render a template without sending it.
      #
      # - `variables`: The template's variables by name
      # - `version`: The version to render; default: the draft
      #
      # id_or_alias: The template's id (`tpl_…`) or alias
      #
      # Returns the answer, a hash.
      def preview(id_or_alias, params = nil, **keywords)
        call(PREVIEW, [id_or_alias], params, keywords)
      end

      # Send a test email from a template.
      #
      # - `to` (required): Recipients: an address or a list
      # - `from`: Author; default: the template's
      # - `variables`: The template's variables by name
      # - `version`: The version to render; default: the draft
      #
      # id_or_alias: The template's id (`tpl_…`) or alias
      #
      # Returns the answer, a hash.
      def test_send(id_or_alias, params = nil, **keywords)
        call(TEST_SEND, [id_or_alias], params, keywords)
      end

      # Copy the draft into a new template.
      #
      # - `name`: Name; default: `… (copy)`
      # - `alias`: Alias; none by default
      #
      # id_or_alias: The template's id (`tpl_…`) or alias
      #
      # Returns the answer, a hash.
      def duplicate(id_or_alias, params = nil, **keywords)
        call(DUPLICATE, [id_or_alias], params, keywords)
      end
    end
  end
end
