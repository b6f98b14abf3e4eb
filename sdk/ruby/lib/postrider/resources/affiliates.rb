# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"
require_relative "affiliates_links"

module Postrider
  module Resources
    # Affiliates of the program.
    class Affiliates < Resource
      LIST = Operation.new(
        name: "affiliates.list", http_method: "GET", path: "/affiliates",
        query: %w[limit cursor status campaign_id email], pages: "data", retry: true
      )
      CREATE = Operation.new(
        name: "affiliates.create", http_method: "POST", path: "/affiliates",
        body: true, idempotent: true, retry: true
      )
      GET = Operation.new(
        name: "affiliates.get", http_method: "GET", path: "/affiliates/{id}",
        retry: true
      )
      UPDATE = Operation.new(
        name: "affiliates.update", http_method: "PATCH", path: "/affiliates/{id}",
        body: true, retry: true
      )
      DELETE = Operation.new(
        name: "affiliates.delete", http_method: "DELETE", path: "/affiliates/{id}",
        retry: true
      )
      APPROVE = Operation.new(
        name: "affiliates.approve", http_method: "POST", path: "/affiliates/{id}/approve",
        body: true, idempotent: true, retry: true
      )
      REJECT = Operation.new(
        name: "affiliates.reject", http_method: "POST", path: "/affiliates/{id}/reject",
        body: true, idempotent: true, retry: true
      )
      SUSPEND = Operation.new(
        name: "affiliates.suspend", http_method: "POST", path: "/affiliates/{id}/suspend",
        body: true, idempotent: true, retry: true
      )
      CREATE_LOGIN_LINK = Operation.new(
        name: "affiliates.createLoginLink", http_method: "POST", path: "/affiliates/{id}/login-link",
        body: true, idempotent: true, retry: true
      )
      private_constant :LIST, :CREATE, :GET, :UPDATE, :DELETE, :APPROVE, :REJECT, :SUSPEND, :CREATE_LOGIN_LINK

      # Links of an affiliate.
      attr_reader :links

      def initialize(client)
        super
        @links = AffiliatesLinks.new(client)
      end

      # List partners, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `status`: Filter by status; several separated by commas
      # - `campaign_id`: The campaign, by id (`cmp_…`) or name
      # - `email`: The exact email address, case-insensitive
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Add a partner.
      #
      # - `email` (required): The person's email address
      # - `first_name`: The given name
      # - `last_name`: The family name
      # - `company`: The company
      # - `website`: The website; `https://` is optional
      # - `country`: Two letters (ISO 3166-1)
      # - `campaign_id`: The campaign, by id (`cmp_…`) or name
      # - `tags`: Tags for the owner's use
      # - `notes`: Private notes
      # - `token`: The token of the partner's link; derived from the name if omitted
      # - `status`: The initial status; defaults to `active`
      # - `paypal_email`: The address for PayPal payouts
      # - `send_invite`: Whether to notify the partner by email; defaults to true
      #
      # Returns the answer, a hash.
      def create(params = nil, **keywords)
        call(CREATE, [], params, keywords)
      end

      # Get a partner with all its links.
      #
      # id: The partner's id (`aff_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end

      # Update a partner.
      #
      # - `first_name`: The given name
      # - `last_name`: The family name
      # - `company`: The company
      # - `website`: The website; `https://` is optional
      # - `country`: Two letters (ISO 3166-1)
      # - `campaign_id`: The campaign, by id (`cmp_…`) or name
      # - `tags`: Tags for the owner's use
      # - `notes`: Private notes
      # - `parent_affiliate_id`: The partner that recruited this one (`aff_…`)
      # - `postback_url`: The URL that receives the partner's own events
      # - `email_opt_out`: Whether the partner has opted out of email, except security email and email it requests
      # - `commission_override`: The partner's own rate; takes precedence over the campaign's
      # - `token`: The new token of the primary link; the old one stops working
      #
      # id: The partner's id (`aff_…`)
      #
      # Returns the answer, a hash.
      def update(id, params = nil, **keywords)
        call(UPDATE, [id], params, keywords)
      end

      # Delete a partner that has never been paid.
      #
      # id: The partner's id (`aff_…`)
      #
      # Returns the answer, a hash.
      def delete(id, **options)
        call(DELETE, [id], {}, options)
      end

      # Approve a partner.
      #
      # - `send_email`: Whether to notify the partner by email; defaults to true
      #
      # id: The partner's id (`aff_…`)
      #
      # Returns the answer, a hash.
      def approve(id, params = nil, **keywords)
        call(APPROVE, [id], params, keywords)
      end

      # Reject a partner.
      #
      # - `reason`: The reason, as free text
      # - `send_email`: Whether to notify the partner by email; defaults to true
      #
      # id: The partner's id (`aff_…`)
      #
      # Returns the answer, a hash.
      def reject(id, params = nil, **keywords)
        call(REJECT, [id], params, keywords)
      end

      # Suspend a partner: its links stop redirecting and its payouts stop.
      #
      # - `reason`: The reason, as free text
      #
      # id: The partner's id (`aff_…`)
      #
      # Returns the answer, a hash.
      def suspend(id, params = nil, **keywords)
        call(SUSPEND, [id], params, keywords)
      end

      # Create a one-time link that signs a partner in to the portal; it expires after a minute.
      #
      # id: The partner's id (`aff_…`)
      #
      # Returns the answer, a hash.
      def create_login_link(id, **options)
        call(CREATE_LOGIN_LINK, [id], {}, options)
      end
    end
  end
end
