# frozen_string_literal: true

require "securerandom"
require_relative "helper"

# Calls of a real server.
class ServerTest < Minitest::Test
  def test_send_list_and_stream
    client = DevServer.get(self).client
    start = client.webhook_events.list(order: "asc", limit: 1)
    to = "stream#{SecureRandom.hex(4)}@example.net"
    email = { from: "Ada <ada@example.com>", to: [to], subject: "Hello", text: "Hi", tags: { flow: "ruby" } }
    sent = client.emails.send(email, idempotency_key: to)
    assert_equal sent, client.emails.send(email, idempotency_key: to)
    assert_equal "true", client.last_response.header("idempotent-replayed")
    failure = assert_raises(Postrider::IdempotencyConflictError) do
      client.emails.send(email.merge(text: "Other"), idempotency_key: to)
    end
    assert_equal 409, failure.status
    more = client.emails.send_batch(emails: [email] * 4)[:data]
    wanted = [sent[:id], *more.map { |one| one[:id] }]
    left = wanted.dup
    client.webhook_events.stream(types: ["email.delivered"], after: start[:next_cursor]) do |event|
      assert_instance_of Postrider::Events::EmailDelivered, event
      left.delete(event.data[:email_id])
      break if left.empty?
    end
    page = client.emails.list(limit: 2)
    assert_equal 2, page.items.size
    assert_empty wanted - page.map { |one| one[:id] }
    assert_includes client.emails.raw(sent[:id]), "Subject: Hello"
  end

  def test_free_maps_keep_their_keys
    client = DevServer.get(self).client
    data = { "Plan Name" => "trial", nestedKey: { aB: 1 } }
    id = client.events.send(name: "user.created", user_id: SecureRandom.hex(4), data: data).dig(:event, :id)
    assert_equal({ "Plan Name": "trial", nestedKey: { aB: 1 } }, client.events.get(id).dig(:event, :data))
  end
end
