# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

module Postrider
  # The version of this SDK.
  VERSION = "0.1.0"
  # The version of the API that it speaks.
  SERVICE_VERSION = "2026-11-01"
end
