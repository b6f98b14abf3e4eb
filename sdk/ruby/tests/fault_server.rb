# frozen_string_literal: true

require "openssl"
require "socket"

# A server that misbehaves. It gives one of its answers to each request; the last one repeats:
# {status:, headers:, body:, bytes: size of the body, mode: :keep, :reset, :hang,
# :slow_headers, :slow_body, :cut, :drop (says that it keeps the connection and closes it) or :raw (body is the whole answer)}.
class FaultServer
  attr_reader :port, :url, :requests

  # certificate: [certificate, key] for TLS
  def initialize(*answers, certificate: nil)
    @answers = answers
    @requests = Queue.new
    @listener = TCPServer.new("127.0.0.1", 0)
    @port = @listener.addr[1]
    @url = "#{certificate ? 'https' : 'http'}://127.0.0.1:#{@port}"
    @context = certificate && OpenSSL::SSL::SSLContext.new.tap { |context| context.add_certificate(*certificate) }
    @threads = []
    @acceptor = Thread.new { accept }
  end

  # The request that came next: {method:, path:, headers:, body:, connection:}.
  def request
    @requests.pop
  end

  def close
    @acceptor.kill.join
    @threads.each { |thread| thread.kill.join }
    @listener.close
  end

  def self.open(*answers, **options)
    server = new(*answers, **options)
    yield server
  ensure
    server&.close
  end

  private

  def accept
    (1..).each do |number|
      socket = @listener.accept
      @threads << Thread.new do
        Thread.current.report_on_exception = false
        serve(socket, number)
      rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
        # The client left.
      ensure
        socket.close
      end
    end
  end

  def serve(socket, number)
    client = socket
    client = OpenSSL::SSL::SSLSocket.new(socket, @context).tap(&:accept) if @context
    while (request = read(client))
      @requests << request.merge(connection: number)
      return unless answer(client, @answers.size > 1 ? @answers.shift : @answers.first)
    end
  ensure
    client.close if client && @context
  end

  def read(client)
    method, path = client.gets&.match(/\A([A-Z]+) (\S+) HTTP/)&.captures
    return unless method

    headers = {}
    while (line = client.gets) && !line.strip.empty?
      name, value = line.split(":", 2)
      headers[name.downcase] = value.strip
    end
    body = client.read(headers["content-length"].to_i)
    { method: method, path: path, headers: headers, body: body.to_s.dup.force_encoding(Encoding::UTF_8) }
  end

  # Whether the connection can be used again.
  def answer(client, answer)
    body = answer[:body] || "x" * (answer[:bytes] || 0)
    case answer[:mode]
    when :reset
      client.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
      return false
    when :hang
      client.read(1)
      return false
    when :raw
      client.write(body)
      return false
    end
    head = head(answer, body)
    case answer[:mode]
    when :slow_headers then drip(client, head)
    when :slow_body
      client.write(head)
      drip(client, body)
    else client.write(head + (answer[:mode] == :cut ? body[0, body.size / 2] : body))
    end
    answer[:mode] == :keep
  end

  def head(answer, body)
    headers = { "content-type" => "application/json", "content-length" => body.bytesize }.merge(answer[:headers] || {}).compact
    lines = headers.map { |name, value| "#{name}: #{value}\r\n" }.join
    "HTTP/1.1 #{answer[:status]} Answer\r\n#{lines}#{"connection: close\r\n" unless %i[keep drop].include?(answer[:mode])}\r\n"
  end

  # Writes a byte now and then until the other end leaves.
  def drip(client, text)
    text.each_char do |letter|
      client.write(letter)
      sleep(0.05)
    end
  end
end
