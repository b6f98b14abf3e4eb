# frozen_string_literal: true

require "action_mailer"
require "securerandom"
require_relative "helper"
require_relative "../lib/postrider/action_mailer"

ActionMailer::Base.logger = nil

# A mailer as applications write them.
class ReportMailer < ActionMailer::Base
  default from: '"Ada \"the first\" Löve" <ada@example.com>'

  def report(key, **more)
    attachments["list.csv"] = "a,b\r\n1,2\r\n"
    attachments.inline["logo.png"] = "\x89PNG\r\n".b
    headers "X-Tag" => "welcome", "X-Metadata-Order" => "4711", "Idempotency-Key" => key, "X-Flow" => "Größe",
            "References" => "<a@b> <c@d>", "Service-Category" => "product"
    mail(to: ["Grace <grace@example.net>", "linus@example.net"], cc: "cc@example.net", bcc: "bcc@example.net",
         reply_to: "help@example.com", subject: "Grüße", **more) do |format|
      format.text { render plain: "Schöne Grüße" }
      format.html { render html: "<p>Hi <img src=\"#{attachments['logo.png'].url}\"></p>".html_safe }
    end
  end

  def plain
    headers "Service-Tags" => "flow=welcome, step=2", "Service-Template" => "welcome", "Service-Unsubscribe" => "true",
            "Service-Variables" => '{"name": "Grace"}'
    mail(to: "grace@example.net", subject: "Plain", body: "Hi", content_type: "text/plain")
  end

  def invitation
    mail(to: "grace@example.net", subject: "Meeting") do |format|
      format.html { render html: "<p>Hi</p>".html_safe }
      format.ics { render plain: "BEGIN:VCALENDAR" }
    end
  end
end

class ActionMailerTest < Minitest::Test
  def deliver(message, *answers)
    answers = [FakeTransport.json(200, { id: "msg_1", status: "sent" })] if answers.empty?
    @transport = FakeTransport.new(answers)
    client = Postrider::Client.new(api_key: KEY, base_url: "https://mail.example.com", transport: @transport, max_retries: 0)
    message.delivery_method(Postrider::DeliveryMethod, client: client)
    message.deliver_now
    message
  end

  def params
    JSON.parse(@transport.requests.last.body)
  end

  def test_params
    answers = %w[msg_1 msg_2].map { |id| FakeTransport.json(200, { id: id, status: "sent" }) }
    message = deliver(ReportMailer.report("order-1"), *answers)
    assert_equal "msg_1", message["X-Postrider-Email-Id"].value
    message.deliver_now
    assert_equal "msg_2", message["X-Postrider-Email-Id"].value
    assert_equal "order-1", @transport.requests.first.headers["Idempotency-Key"]
    sent = params
    content_id = sent["attachments"].find { |one| one["name"] == "logo.png" }["content_id"]
    assert_includes sent["html"], "cid:#{content_id}"
    assert_equal({
      "from" => '"Ada \"the first\" Löve" <ada@example.com>', "to" => ["Grace <grace@example.net>", "linus@example.net"],
      "cc" => ["cc@example.net"], "bcc" => ["bcc@example.net"], "reply_to" => ["help@example.com"], "subject" => "Grüße",
      "html" => sent["html"], "text" => "Schöne Grüße",
      "attachments" => [
        { "name" => "logo.png", "content_type" => "image/png", "data" => ["\x89PNG\r\n".b].pack("m0"), "content_id" => content_id },
        { "name" => "list.csv", "content_type" => "text/csv; charset=UTF-8", "data" => ["a,b\r\n1,2\r\n"].pack("m0") }
      ],
      "headers" => { "X-Flow" => "Größe", "References" => "<a@b> <c@d>" },
      "tags" => { "welcome" => "true", "Order" => "4711" }, "category" => "product"
    }, sent)
  end

  def test_options_of_smtp
    deliver(ReportMailer.plain)
    assert_equal({ "flow" => "welcome", "step" => "2" }, params["tags"])
    assert_equal ["welcome", true, { "name" => "Grace" }], params.values_at("template", "unsubscribe", "variables")
    assert_equal ["Hi", false], [params["text"], params.key?("html")]
  end

  def test_parts_that_are_no_body_are_attached
    deliver(ReportMailer.invitation)
    assert_equal [["text/calendar; charset=UTF-8", ["BEGIN:VCALENDAR"].pack("m0")]],
                 params["attachments"].map { |one| one.values_at("content_type", "data") }
  end

  def test_an_envelope_reaches_its_recipients_only
    message = ReportMailer.report("order-2")
    message.smtp_envelope_to = ["test@example.org"]
    deliver(message)
    assert_equal [["test@example.org"], nil, nil], params.values_at("to", "cc", "bcc")
  end

  def test_recipients_of_the_envelope_alone_get_a_blind_copy
    message = ReportMailer.plain
    message.smtp_envelope_to = ["grace@example.net", "hidden@example.net"]
    deliver(message)
    assert_equal [["grace@example.net"], nil, ["hidden@example.net"]], params.values_at("to", "cc", "bcc")
  end

  def test_copies_become_to_if_no_other_recipient_remains
    message = ReportMailer.report("order-3")
    message.smtp_envelope_to = ["cc@example.net", "bcc@example.net"]
    deliver(message)
    assert_equal [["cc@example.net"], nil, ["bcc@example.net"]], params.values_at("to", "cc", "bcc")
  end

  def test_recipients_of_the_envelope_alone_get_a_blind_copy_beside_copies
    message = ReportMailer.report("order-4")
    message.smtp_envelope_to = ["cc@example.net", "hidden@example.net"]
    deliver(message)
    assert_equal [["cc@example.net"], nil, ["hidden@example.net"]], params.values_at("to", "cc", "bcc")
  end

  def test_content_types_keep_their_parameters
    message = ReportMailer.invitation
    message.attachments["meeting.ics"] = { mime_type: "text/calendar; method=REQUEST", content: "BEGIN:VCALENDAR" }
    message.attachments["list.csv"] = { mime_type: "text/csv; charset=ISO-8859-1", content: "gr\xFC\xDFe".b }
    message.attachments["Größe.pdf"] = "x"
    message.add_part(Mail::Part.new("Content-Type: text/x-log; name*0=\"a\"; name*1=\".log\"; format=flowed\r\n\r\nx"))
    message.add_part(Mail::Part.new("Content-Type: video/mp4; codecs=\"avc1.42E01E, mp4a.40.2\"; charset=\"\"; level=3\r\n\r\nx"))
    deliver(message)
    assert_equal ["application/pdf", "text/calendar; charset=UTF-8", "text/calendar; method=REQUEST; charset=UTF-8",
                  "text/csv; charset=ISO-8859-1", "text/x-log; format=flowed; charset=UTF-8", "video/mp4; level=3"],
                 params["attachments"].map { |one| one["content_type"] }.sort
  end

  def test_a_charset_in_which_an_attachment_is_invalid_is_left_out
    message = ReportMailer.invitation
    message.attachments["latin1.csv"] = "gr\xFC\xDFe".b
    message.attachments["utf8.csv"] = "grüße"
    deliver(message)
    assert_equal [["latin1.csv", "text/csv", "gr\xFC\xDFe".b], ["utf8.csv", "text/csv; charset=UTF-8", "grüße".b]],
                 params["attachments"].map { |one| [*one.values_at("name", "content_type"), one["data"].unpack1("m")] }
                                      .select { |name, *| name.end_with?(".csv") }.sort
  end

  def test_a_header_field_that_occurs_twice_is_refused
    %w[x-twice idempotency-key service-category x-metadata-order].each do |name|
      message = ReportMailer.plain
      [name.upcase, name].each { |one| message.header.fields << Mail::Field.new(one, "1") }
      failure = assert_raises(Postrider::ConfigurationError) { deliver(message) }
      assert_includes failure.message, "#{name} occurs more than once"
    end
  end

  def test_each_tag_has_a_header_field
    message = ReportMailer.invitation
    %w[welcome trial].each { |tag| message.header.fields << Mail::Field.new("X-Tag", tag) }
    deliver(message)
    assert_equal({ "welcome" => "true", "trial" => "true" }, params["tags"])
  end

  def test_several_authors_and_malformed_addresses_are_refused
    two = ReportMailer.plain.tap { |message| message.from = ["a@example.com", "b@example.com"] }
    assert_raises(ArgumentError) { deliver(two) }
    malformed = ReportMailer.plain.tap { |message| message.header["Reply-To"] = "help@@example <" }
    failure = assert_raises(Postrider::ConfigurationError) { deliver(malformed) }
    assert_includes failure.message, "reply_to"
  end

  def test_the_gem_mail_alone
    mail = Mail.new(from: "ada@example.com", to: "grace@example.net", subject: "Hello", body: "Hi")
    @transport = FakeTransport.new([FakeTransport.json(200, { id: "msg_1" })])
    client = Postrider::Client.new(api_key: KEY, base_url: "https://mail.example.com", transport: @transport)
    mail.delivery_method(Postrider::DeliveryMethod, client: client)
    mail.deliver
    assert_equal({ "from" => "ada@example.com", "to" => ["grace@example.net"], "subject" => "Hello", "text" => "Hi" }, params)
  end

  def test_failures_reach_the_caller
    error = FakeTransport.error(422, "validation_error", { message: "Recipient is suppressed", details: { suppressed: ["a@b"] } })
    failure = assert_raises(Postrider::SuppressedRecipientError) { deliver(ReportMailer.plain, error) }
    assert_includes failure.message, "Recipient is suppressed"
  end

  def test_delivery_by_a_server
    server = DevServer.get(self)
    ActionMailer::Base.delivery_method = :postrider
    ActionMailer::Base.postrider_settings = { api_key: server.api_key, base_url: server.url }
    key = "order-#{SecureRandom.hex(4)}"
    first = nil
    raw = server.raw_of_delivered do
      first = ReportMailer.report(key).deliver_now
      first["X-Postrider-Email-Id"].value
    end
    id = first["X-Postrider-Email-Id"].value
    assert_match(/\Amsg_/, id)
    email = server.client.emails.get(id)[:email]
    assert_equal ["product", [%w[Order 4711], %w[welcome true]]],
                 [email[:category], email[:tags].map { |tag| tag.values_at(:name, :value) }.sort]
    ["list.csv", ["a,b\r\n1,2\r\n"].pack("m0"), "X-Flow:", "multipart/alternative"].each do |text|
      assert_includes raw, text
    end
    parsed = Mail.read_from_string(raw)
    assert_includes parsed.html_part.decoded, "cid:#{parsed.attachments['logo.png'].cid}"
    assert_equal "\x89PNG\r\n".b, parsed.attachments["logo.png"].decoded.b
    refute_includes ActionMailer::Base.postrider_settings.inspect + first.delivery_method.inspect, "Client"
  ensure
    ActionMailer::Base.delivery_method = :test
  end

  def test_settings_in_rails
    skip "rails is missing (apt install ruby-railties)" unless system(Gem.ruby, "-e", 'require "rails"', err: File::NULL)
    program = <<~RUBY
      require "rails"
      require "action_mailer/railtie"
      require "postrider"
      class Application < Rails::Application
        config.eager_load = false
        config.logger = Logger.new(nil)
        config.action_mailer.delivery_method = :postrider
        config.action_mailer.postrider_settings = { base_url: "https://mail.example.com" }
      end
      Application.initialize!
      print ActionMailer::Base.delivery_method, ActionMailer::Base.postrider_settings[:base_url], ActionMailer::Base.delivery_methods[:postrider]
    RUBY
    # In development, Rails would write a secret into a file.
    environment = { "RAILS_ENV" => "production", "SECRET_KEY_BASE" => "test" }
    output = IO.popen([environment, Gem.ruby, "-I#{File.expand_path('../lib', __dir__)}", "-e", program], err: %i[child out], &:read)
    assert_equal "postriderhttps://mail.example.comPostrider::DeliveryMethod", output
  end
end
