# frozen_string_literal: true

require "forwardable"
require_relative "errors"

module Postrider
  # One page of a list. It can be read like the answer's hash (`page[:emails]`, `page[:has_more]`). `each`, and with it all
  # of Enumerable, goes over the items of this page and of all later ones, which are fetched when they are needed.
  class Page
    include Enumerable
    extend Forwardable

    def_delegators :@answer, :[], :dig, :key?, :to_json

    # fetch: a function that gets the answer at a cursor; field: the field of the answer with the items.
    # number: the position in the list; seen: the position that each cursor of the list led to.
    def initialize(answer, field, number = 0, seen = {}, &fetch)
      @answer = answer
      @field = field
      @number = number
      @seen = seen
      @fetch = fetch
    end

    # The items of this page.
    def items
      Array(@answer[@field])
    end

    def more?
      @answer[:has_more] == true && @answer[:next_cursor].is_a?(String)
    end

    # nil after the last page.
    def next_page
      return unless more?

      cursor = @answer[:next_cursor]
      if (@seen[cursor] ||= @number) < @number
        raise UnexpectedResponseError.new("The server repeats a cursor, so the list would never end.", Response.new(200))
      end

      Page.new(@fetch.call(cursor), @field, @number + 1, @seen, &@fetch)
    end

    def each(&block)
      return enum_for(:each) unless block

      each_page { |page| page.items.each(&block) }
      self
    end

    def each_page
      return enum_for(:each_page) unless block_given?

      page = self
      while page
        yield page
        page = page.next_page
      end
    end

    # The answer of this page.
    def to_h
      @answer
    end

    def deconstruct_keys(_names)
      @answer
    end

    def inspect
      "#<#{self.class} #{@field}: #{items.size}#{', more' if more?}>"
    end
  end
end
