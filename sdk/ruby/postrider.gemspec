# frozen_string_literal: true

require_relative "lib/postrider/version"

Gem::Specification.new do |spec|
  spec.name = "postrider"
  spec.version = Postrider::VERSION
  spec.summary = "Client of the API of a postrider mail server"
  spec.description = "Sends and receives email by a postrider server: the whole API, webhooks, the stream of events, and a " \
                     "delivery method for ActionMailer."
  spec.authors = ["The postrider authors"]
  spec.license = "MIT"
  spec.homepage = "https://rubygems.org/gems/postrider"
  spec.required_ruby_version = ">= 3.1"
  spec.metadata = { "rubygems_mfa_required" => "true" }
  spec.files = Dir["lib/**/*.rb", "sig/**/*.rbs", "README.md", "LICENSE"].sort
end
