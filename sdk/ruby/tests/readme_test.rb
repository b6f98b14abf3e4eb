# frozen_string_literal: true

require "rack"
require "rack/mock"
require "tempfile"
require_relative "helper"

# Runs the examples of README.md.
class ReadmeTest < Minitest::Test
  EXAMPLES = File.read(File.join(__dir__, "../README.md"), encoding: Encoding::UTF_8).scan(/^```ruby\n(.*?)^```/m).flatten

  def test_calls
    server = DevServer.get(self)
    program = EXAMPLES.grep(/\bclient\b/).join("\n")
    environment = { "POSTRIDER_API_KEY" => server.api_key, "POSTRIDER_BASE_URL" => server.url }
    command = [environment, Gem.ruby, "-I#{File.expand_path('../lib', __dir__)}", "-e", program]
    output = IO.popen(command, err: %i[child out], &:read)
    assert $?.success?, output
    assert_match(/\Amsg_\w+\n.*subject.*email\.delivered \S+@example\.net\n\z/m, output)
  end

  def test_webhook
    ENV["POSTRIDER_WEBHOOK_SECRET"] = SECRET
    program = EXAMPLES.grep(/WebhookEndpoint/).first
    # The value of the last expression is the endpoint.
    endpoint = eval(program, binding, "README.md") # rubocop:disable Security/Eval
    body = '{"type":"email.bounced","created_at":"t","data":{"event_id":"evt_1","rcpt_to":"grace@example.net"}}'
    post = lambda do |secret|
      headers = Postrider::Webhooks.generate_test_header(payload: body, secret: secret)
      headers = headers.transform_keys { |name| "HTTP_#{name.upcase.tr('-', '_')}" }
      Rack::MockRequest.new(endpoint).post("/", headers.merge(input: body)).status
    end
    _, warned = capture_io { assert_equal [204, 401], [post.call(SECRET), post.call("whsec_Zm9yZ2Vk")] }
    assert_equal "grace@example.net bounced\n", warned
  ensure
    ENV.delete("POSTRIDER_WEBHOOK_SECRET")
  end

  def test_mailer
    require "action_mailer"
    settings, mailer = EXAMPLES.grep(/action_mailer|ApplicationMailer/)
    program = <<~RUBY
      require "rails"
      require "action_mailer/railtie"
      require "postrider"
      class Application < Rails::Application
        config.eager_load = false
        config.logger = Logger.new(nil)
        #{settings}
      end
      Application.initialize!
      class ApplicationMailer < ActionMailer::Base
        default from: "ada@example.com"
      end
      #{mailer.sub('mail to: order.email, subject: "Your report"', 'mail to: order.email, subject: "Your report", body: "Hi"')}
      Dir.chdir(ARGV[0])
      File.binwrite("logo.png", "PNG")
      order = Struct.new(:id, :email, :csv).new(4712, "grace@example.net", "a,b")
      print ReportMailer.report(order).deliver_now["X-Postrider-Email-Id"].value
    RUBY
    server = DevServer.get(self)
    # In development, Rails would write a secret into a file.
    environment = { "POSTRIDER_API_KEY" => server.api_key, "POSTRIDER_BASE_URL" => server.url,
                    "RAILS_ENV" => "production", "SECRET_KEY_BASE" => "test" }
    Dir.mktmpdir do |folder|
      command = [environment, Gem.ruby, "-I#{File.expand_path('../lib', __dir__)}", "-e", program, folder]
      assert_match(/\Amsg_\w+\z/, IO.popen(command, err: %i[child out], &:read))
    end
  end
end
