# frozen_string_literal: true

require "fileutils"
require "json"
require "tmpdir"

# Runs `postrider dev` for all tests of a process.
class DevServer
  attr_reader :url, :api_key

  def self.program
    ENV["TEST_POSTRIDER"] || File.expand_path("../../../target/debug/postrider", __dir__)
  end

  # Skips the test if there is no server to run.
  def self.get(test)
    test.skip("no server to run: build postrider, or set TEST_POSTRIDER") unless File.executable?(program)
    @get ||= new
  end

  def initialize
    folder = Dir.mktmpdir("postrider-ruby-")
    any = "127.0.0.1:0"
    log = File.join(folder, "log")
    command = [self.class.program, "dev", "--json", "--data-dir", File.join(folder, "data"), "--api", any, "--submission", any,
               "--mx", any]
    @output = IO.popen(command, err: log)
    owner = Process.pid
    Minitest.after_run do
      next unless Process.pid == owner

      Process.kill("TERM", @output.pid)
      @output.close
      FileUtils.rm_rf(folder)
    end
    line = @output.gets || raise(File.read(log))
    ready = JSON.parse(line)
    @url = ready["api"]
    @api_key = ready["api_key"]
  end

  def client(**options)
    Postrider::Client.new(api_key: api_key, base_url: url, **options)
  end

  # Waits until the email whose id the block returns was delivered, and returns its raw message.
  def raw_of_delivered
    client = client()
    start = client.webhook_events.list(order: "asc", limit: 1)[:next_cursor]
    id = yield
    client.webhook_events.stream(types: ["email.delivered"], after: start).find { |event| event.data[:email_id] == id }
    client.emails.raw(id)
  end
end
