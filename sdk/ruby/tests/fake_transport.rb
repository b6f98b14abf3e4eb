# frozen_string_literal: true

# Answers with responses that a test gives, and keeps the requests.
class FakeTransport
  attr_reader :requests

  def initialize(answers)
    @answers = answers
    @requests = []
  end

  def call(request, timeout:, cancelled: nil)
    raise "no time" unless timeout.positive? && (cancelled.nil? || cancelled.respond_to?(:call))

    @requests << request
    answer = @answers.shift || raise("no answer is left")
    answer.is_a?(Exception) ? raise(answer) : answer
  end

  def self.json(status, data, headers = {})
    Postrider::Response.new(status, { "content-type" => "application/json" }.merge(headers), JSON.generate(data))
  end

  def self.error(status, code, error = {}, headers = {})
    json(status, { error: { message: "Refused", code: code }.merge(error) }, headers)
  end
end

# A clock whose time passes only by sleeping, and whose chance is always a half.
class FakeClock < Postrider::Clock
  attr_reader :sleeps

  def initialize
    super
    @time = 0.0
    @sleeps = []
  end

  def monotonic
    @time
  end

  def sleep(seconds)
    @sleeps << seconds
    @time += seconds
  end

  def random
    0.5
  end
end
