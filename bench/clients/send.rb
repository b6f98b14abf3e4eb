# frozen_string_literal: true

# Times of bare requests and of `emails.send`, in turns, as JSON.
require "json"
require "net/http"
require_relative "../../sdk/ruby/lib/postrider"

EMAIL = { from: "ada@example.com", to: "grace@example.net", subject: "Hello", text: "Hello Grace" }.freeze
HEADERS = { "Authorization" => "Bearer #{ENV.fetch('POSTRIDER_API_KEY')}", "Content-Type" => "application/json" }.freeze
client = Postrider::Client.new
address = URI(ENV.fetch("POSTRIDER_BASE_URL"))
http = Net::HTTP.new(address.host, address.port).start
kinds = {
  "bare" => -> { JSON.parse(http.post("/emails", JSON.generate(EMAIL), HEADERS).body) },
  "sdk" => -> { client.emails.send(EMAIL) }
}
times = { "bare" => [], "sdk" => [] }
now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond) }
(-500...Integer(ENV.fetch("COUNT"))).each do |number|
  kinds.each do |kind, send|
    started = now.call
    send.call
    times[kind] << (now.call - started) if number >= 0
  end
end
puts JSON.generate(times)
