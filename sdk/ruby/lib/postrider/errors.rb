# frozen_string_literal: true

# The errors of the SDK: those with behaviour of their own, and those that follow from a table.
require_relative "error_bases"
require_relative "error_classes"
