# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Attachments of an email.
    class EmailsAttachments < Resource
      GET = Operation.new(
        name: "emails.attachments.get", http_method: "GET", path: "/emails/{id}/attachments/{att_id}",
        accept: "application/octet-stream", retry: true
      )
      private_constant :GET

      # Get an attachment of an email.
      #
      # id: The email's id (`msg_…`)
      # att_id: The attachment's id (`att_0` is the first)
      #
      # Returns the bytes of application/octet-stream.
      def get(id, att_id, **options)
        call(GET, [id, att_id], {}, options)
      end
    end
  end
end
