# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Saved credentials of DNS providers.
    class DnsCredentials < Resource
      LIST = Operation.new(
        name: "dnsCredentials.list", http_method: "GET", path: "/dns-credentials",
        retry: true
      )
      SAVE = Operation.new(
        name: "dnsCredentials.save", http_method: "PUT", path: "/dns-credentials/{provider}",
        body: true, retry: true
      )
      DELETE = Operation.new(
        name: "dnsCredentials.delete", http_method: "DELETE", path: "/dns-credentials/{provider}",
        retry: true
      )
      private_constant :LIST, :SAVE, :DELETE

      # List the DNS providers with saved credentials.
      #
      # Returns the answer, a hash.
      def list(**options)
        call(LIST, [], {}, options)
      end

      # Save credentials for a DNS provider.
      #
      # - `credentials` (required): An object. cloudflare: `api_token`; route53: `access_key_id`, `secret_access_key`, `session_token?`,
      #   `region?`, `hosted_zone_id?`; digitalocean: `api_token`; hetzner: `api_token`; gandi: `api_token`;
      #   rfc2136: `server`, `key_name`, `algorithm?`, `secret`; bunny: `api_token`; desec: `api_token`;
      #   dnsimple: `account_id`, `api_token`; gcore: `api_token`; godaddy: `api_key`, `api_secret`; hostinger:
      #   `api_token`; infomaniak: `api_token`; ionos: `api_token`; linode: `api_token`; namecom: `username`,
      #   `api_token`; netlify: `api_token`; ns1: `api_token`; porkbun: `api_key`, `secret_api_key`; scaleway:
      #   `api_token`; vercel: `api_token`; vultr: `api_token`
      #
      # provider: The provider
      #
      # Returns the answer, a hash.
      def save(provider, params = nil, **keywords)
        call(SAVE, [provider], params, keywords)
      end

      # Delete the credentials for a DNS provider.
      #
      # provider: The provider
      #
      # Returns the answer, a hash.
      def delete(provider, **options)
        call(DELETE, [provider], {}, options)
      end
    end
  end
end
