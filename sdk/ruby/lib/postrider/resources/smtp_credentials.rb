# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Credentials for sending by SMTP.
    class SmtpCredentials < Resource
      CREATE = Operation.new(
        name: "smtpCredentials.create", http_method: "POST", path: "/smtp-credentials",
        body: true
      )
      LIST = Operation.new(
        name: "smtpCredentials.list", http_method: "GET", path: "/smtp-credentials",
        query: %w[limit cursor], pages: "smtp_credentials", retry: true
      )
      GET = Operation.new(
        name: "smtpCredentials.get", http_method: "GET", path: "/smtp-credentials/{id}",
        retry: true
      )
      UPDATE = Operation.new(
        name: "smtpCredentials.update", http_method: "PATCH", path: "/smtp-credentials/{id}",
        body: true, retry: true
      )
      DELETE = Operation.new(
        name: "smtpCredentials.delete", http_method: "DELETE", path: "/smtp-credentials/{id}",
        retry: true
      )
      ROTATE = Operation.new(
        name: "smtpCredentials.rotate", http_method: "POST", path: "/smtp-credentials/{id}/rotate",
        body: true
      )
      private_constant :CREATE, :LIST, :GET, :UPDATE, :DELETE, :ROTATE

      # Create an SMTP credential; its password is shown once.
      #
      # - `name` (required): The name
      # - `domain_id`: The only domain (`dom_…`) that the credential may send from; null allows all
      # - `allowed_ips`: Addresses and networks that may use the credential; empty allows all
      # - `expires_at`: When the credential expires
      # - `policy`: The rules for the client below its scope
      #
      # Returns the answer, a hash.
      def create(params = nil, **keywords)
        call(CREATE, [], params, keywords)
      end

      # List SMTP credentials, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get an SMTP credential.
      #
      # id: The SMTP credential's id (`smtp_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end

      # Rename, enable or disable an SMTP credential, or set its allowed addresses.
      #
      # - `name`: The name
      # - `allowed_ips`: Addresses and networks that may use the credential; empty allows all
      # - `enabled`: Whether the credential is enabled
      # - `policy`: The rules for the client below its scope; null removes all rules
      #
      # id: The SMTP credential's id (`smtp_…`)
      #
      # Returns the answer, a hash.
      def update(id, params = nil, **keywords)
        call(UPDATE, [id], params, keywords)
      end

      # Delete an SMTP credential.
      #
      # id: The SMTP credential's id (`smtp_…`)
      #
      # Returns the answer, a hash.
      def delete(id, **options)
        call(DELETE, [id], {}, options)
      end

      # Rotate an SMTP credential's password; the previous one stays valid for a grace period.
      #
      # - `grace_hours`: For how many hours the previous secret stays valid
      #
      # id: The SMTP credential's id (`smtp_…`)
      #
      # Returns the answer, a hash.
      def rotate(id, params = nil, **keywords)
        call(ROTATE, [id], params, keywords)
      end
    end
  end
end
