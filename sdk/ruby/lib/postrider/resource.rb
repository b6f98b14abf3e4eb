# frozen_string_literal: true

require_relative "operation"

module Postrider
  # The base of the generated resources.
  #
  # A method takes its params as keywords or as a hash: `send(from: …, to: …)` and `send({ from: …, to: … })` are the same.
  # The options of all calls are keywords in both cases.
  class Resource
    # idempotency_key: keeps a call that is made twice from being carried out twice; each call gets a random one
    # if_match:        the value of If-Match
    # timeout:         seconds for the call with all its retries
    # max_retries:     how often the call is repeated at most
    # cancelled:       a function that is asked while the call waits; the call ends when it returns true
    # extra_headers:   more header fields
    OPTIONS = %i[idempotency_key if_match timeout max_retries cancelled extra_headers].freeze

    def initialize(client)
      @client = client
    end

    def inspect
      "#<#{self.class}>"
    end

    private

    def call(operation, path, params = {}, keywords = {})
      params, options = divided(params, keywords)
      @client.call(operation, path, params, options)
    end

    def page(operation, path, params = {}, keywords = {})
      params, options = divided(params, keywords)
      @client.page(operation, path, params, options)
    end

    # params is nil if the fields are among the keywords.
    def divided(params, keywords)
      options, others = keywords.partition { |name, _| OPTIONS.include?(name) }.map(&:to_h)
      return [others, options] if params.nil?
      raise ArgumentError, "params must be a hash" unless params.respond_to?(:to_h)
      raise ArgumentError, "unknown option: #{others.keys.join(', ')}" unless others.empty?

      [params.to_h, options]
    end
  end
end
