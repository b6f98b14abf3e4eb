# frozen_string_literal: true

module Postrider
  # How the SDK calls one operation of the API. The generated resources make these.
  #
  # path:     with `{name}` for each path parameter
  # query:    names of the params that belong into the query
  # repeated: those whose array is a parameter for each value; other arrays are joined by commas
  # body:     whether the request has a body
  # accept:   media type of the answer
  # pages:    field of the answer with the items of a page; nil: no list
  # retry:    whether a call may be repeated although it may have been carried out
  Operation = Struct.new(
    :name, :http_method, :path, :query, :repeated, :body, :accept, :pages, :idempotent, :retry, keyword_init: true
  ) do
    def initialize(query: [], repeated: [], accept: "application/json", **fields)
      super
      freeze
    end

    def json?
      accept == "application/json"
    end
  end
end
