# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Publishing of a domain's DNS records.
    class DomainsDns < Resource
      APPLY = Operation.new(
        name: "domains.dns.apply", http_method: "POST", path: "/domains/{id_or_name}/dns/apply",
        body: true
      )
      CONNECT = Operation.new(
        name: "domains.dns.connect", http_method: "POST", path: "/domains/{id_or_name}/dns/connect"
      )
      private_constant :APPLY, :CONNECT

      # Publish the records at a DNS provider.
      #
      # - `provider` (required): The DNS provider of the zone
      # - `credentials`: An object. cloudflare: `api_token`; route53: `access_key_id`, `secret_access_key`, `session_token?`,
      #   `region?`, `hosted_zone_id?`; digitalocean: `api_token`; hetzner: `api_token`; gandi: `api_token`;
      #   rfc2136: `server`, `key_name`, `algorithm?`, `secret`; bunny: `api_token`; desec: `api_token`;
      #   dnsimple: `account_id`, `api_token`; gcore: `api_token`; godaddy: `api_key`, `api_secret`; hostinger:
      #   `api_token`; infomaniak: `api_token`; ionos: `api_token`; linode: `api_token`; namecom: `username`,
      #   `api_token`; netlify: `api_token`; ns1: `api_token`; porkbun: `api_key`, `secret_api_key`; scaleway:
      #   `api_token`; vercel: `api_token`; vultr: `api_token`
      # - `use_saved`: Whether to use the saved credentials for the provider
      # - `dry_run`: Preview the changes without publishing them
      # - `merge_spf`: Whether to add the service's include to an existing SPF record
      #
      # id_or_name: The domain's id (`dom_…`) or name
      #
      # Returns the answer, a hash.
      def apply(id_or_name, params = nil, **keywords)
        call(APPLY, [id_or_name], params, keywords)
      end

      # Get the URL of the DNS provider's page where the records are approved.
      #
      # id_or_name: The domain's id (`dom_…`) or name
      #
      # Returns the answer, a hash.
      def connect(id_or_name, **options)
        call(CONNECT, [id_or_name], {}, options)
      end
    end
  end
end
