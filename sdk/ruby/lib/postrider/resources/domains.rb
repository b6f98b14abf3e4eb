# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"
require_relative "domains_dkim"
require_relative "domains_claims"
require_relative "domains_dns"

module Postrider
  module Resources
    # Sending and receiving domains.
    class Domains < Resource
      CREATE = Operation.new(
        name: "domains.create", http_method: "POST", path: "/domains",
        body: true
      )
      LIST = Operation.new(
        name: "domains.list", http_method: "GET", path: "/domains",
        query: %w[limit cursor status q], pages: "domains", retry: true
      )
      GET = Operation.new(
        name: "domains.get", http_method: "GET", path: "/domains/{id_or_name}",
        retry: true
      )
      UPDATE = Operation.new(
        name: "domains.update", http_method: "PATCH", path: "/domains/{id_or_name}",
        body: true, retry: true
      )
      DELETE = Operation.new(
        name: "domains.delete", http_method: "DELETE", path: "/domains/{id_or_name}",
        query: %w[force], retry: true
      )
      ZONE_FILE = Operation.new(
        name: "domains.zoneFile", http_method: "GET", path: "/domains/{id_or_name}/zone-file",
        accept: "text/plain; charset=utf-8", retry: true
      )
      DMARC = Operation.new(
        name: "domains.dmarc", http_method: "GET", path: "/domains/{id_or_name}/dmarc",
        query: %w[from to], retry: true
      )
      VERIFY = Operation.new(
        name: "domains.verify", http_method: "POST", path: "/domains/{id_or_name}/verify"
      )
      private_constant :CREATE, :LIST, :GET, :UPDATE, :DELETE, :ZONE_FILE, :DMARC, :VERIFY

      # Rotation of a domain's DKIM key.
      attr_reader :dkim
      # Claims on domains that another account has.
      attr_reader :claims
      # Publishing of a domain's DNS records.
      attr_reader :dns

      def initialize(client)
        super
        @dkim = DomainsDkim.new(client)
        @claims = DomainsClaims.new(client)
        @dns = DomainsDns.new(client)
      end

      # Add a domain, and get the records to publish.
      #
      # - `name` (required): The domain, like `example.com` or a subdomain, `mail.example.com`
      # - `open_tracking`: Whether opens are tracked by a pixel in the HTML
      # - `click_tracking`: Whether links in the HTML are rewritten to track clicks
      # - `tls_mode`: `opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS
      # - `inbound_enabled`: Whether mail to the domain is received
      # - `inbound_addresses`: Addresses that receive mail: `support@example.com`, sub-addresses (`support+*@example.com`) or all
      #   (`*@example.com`); empty means all. `postmaster` always receives mail
      # - `tracking_host`: Your own host for tracking links; null uses the service's host
      # - `dkim_selector`: The selector of the RSA key; generated if omitted
      # - `dkim_private_key`: An existing RSA key of 2,048 to 4,096 bits in PEM; a new key is generated if omitted
      #
      # Returns the answer, a hash.
      def create(params = nil, **keywords)
        call(CREATE, [], params, keywords)
      end

      # List domains, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `status`: Filter by verification status
      # - `q`: Filter by text in the name
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get a domain and the status of its records.
      #
      # id_or_name: The domain's id (`dom_…`) or name
      #
      # Returns the answer, a hash.
      def get(id_or_name, **options)
        call(GET, [id_or_name], {}, options)
      end

      # Update a domain's settings.
      #
      # - `open_tracking`: Whether opens are tracked by a pixel in the HTML
      # - `click_tracking`: Whether links in the HTML are rewritten to track clicks
      # - `tls_mode`: `opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS
      # - `inbound_enabled`: Whether mail to the domain is received
      # - `inbound_addresses`: Addresses that receive mail: `support@example.com`, sub-addresses (`support+*@example.com`) or all
      #   (`*@example.com`); empty means all. `postmaster` always receives mail
      # - `tracking_host`: Your own host for tracking links; null uses the service's host
      #
      # id_or_name: The domain's id (`dom_…`) or name
      #
      # Returns the answer, a hash.
      def update(id_or_name, params = nil, **keywords)
        call(UPDATE, [id_or_name], params, keywords)
      end

      # Delete a domain.
      #
      # - `force`: Delete the domain even if emails from it are scheduled
      #
      # id_or_name: The domain's id (`dom_…`) or name
      #
      # Returns the answer, a hash.
      def delete(id_or_name, params = nil, **keywords)
        call(DELETE, [id_or_name], params, keywords)
      end

      # Get the records as a zone file.
      #
      # id_or_name: The domain's id (`dom_…`) or name
      #
      # Returns the bytes of text/plain; charset=utf-8.
      def zone_file(id_or_name, **options)
        call(ZONE_FILE, [id_or_name], {}, options)
      end

      # Get a summary of the DMARC reports about a domain.
      #
      # - `from`: Start of the range, a time or a UTC date; extended to the start of its day. Default: 30 days before
      #   `to`. At most 92 days; reports are retained for thirteen months
      # - `to`: End of the range (exclusive), extended to the end of its day. Default: now
      #
      # id_or_name: The domain's id (`dom_…`) or name
      #
      # Returns the answer, a hash.
      def dmarc(id_or_name, params = nil, **keywords)
        call(DMARC, [id_or_name], params, keywords)
      end

      # Verify a domain's records now.
      #
      # id_or_name: The domain's id (`dom_…`) or name
      #
      # Returns the answer, a hash.
      def verify(id_or_name, **options)
        call(VERIFY, [id_or_name], {}, options)
      end
    end
  end
end
