# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Rotation of a domain's DKIM key.
    class DomainsDkim < Resource
      ROTATE = Operation.new(
        name: "domains.dkim.rotate", http_method: "POST", path: "/domains/{id_or_name}/dkim/rotate"
      )
      CANCEL_ROTATION = Operation.new(
        name: "domains.dkim.cancelRotation", http_method: "DELETE", path: "/domains/{id_or_name}/dkim/rotate",
        retry: true
      )
      private_constant :ROTATE, :CANCEL_ROTATION

      # Rotate the DKIM keys.
      #
      # id_or_name: The domain's id (`dom_…`) or name
      #
      # Returns the answer, a hash.
      def rotate(id_or_name, **options)
        call(ROTATE, [id_or_name], {}, options)
      end

      # Cancel a rotation whose keys do not sign yet.
      #
      # id_or_name: The domain's id (`dom_…`) or name
      #
      # Returns the answer, a hash.
      def cancel_rotation(id_or_name, **options)
        call(CANCEL_ROTATION, [id_or_name], {}, options)
      end
    end
  end
end
