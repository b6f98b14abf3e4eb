# frozen_string_literal: true

require "minitest/autorun"
require "json"
require "socket"
require_relative "../lib/postrider"
require_relative "dev_server"
require_relative "fake_transport"
require_relative "fault_server"

KEY = "rnl_secretsecretsecretsecret"
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

# All that a log could show of an error: also of the errors before it.
def shown(failure)
  [failure.full_message(highlight: false), failure.inspect, Marshal.load(Marshal.dump(failure.backtrace)).to_s,
   failure.instance_variables.map { |name| failure.instance_variable_get(name).inspect }].join("\n")
end
