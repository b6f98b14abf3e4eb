# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # The account that the API key belongs to.
    class Account < Resource
      GET = Operation.new(
        name: "account.get", http_method: "GET", path: "/account",
        retry: true
      )
      private_constant :GET

      # Get the account, its limits and its usage.
      #
      # Returns the answer, a hash.
      def get(**options)
        call(GET, [], {}, options)
      end
    end
  end
end
