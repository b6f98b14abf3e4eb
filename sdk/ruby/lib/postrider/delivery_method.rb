# frozen_string_literal: true

require "json"
require_relative "client"

module Postrider
  # Sends messages of the gem `mail`, and so of ActionMailer, by `POST /emails`.
  #
  # After sending, the header field `X-Postrider-Email-Id` of the message is the email's id (`msg_…`).
  class DeliveryMethod
    # Header fields that the server writes itself, and those that become options.
    OWN = %w[
      from to cc bcc sender subject date message-id reply-to return-path mime-version content-type content-transfer-encoding
      content-disposition content-id content-description x-postrider-email-id
    ].freeze
    EMAIL_ID = "X-Postrider-Email-Id"
    CLIENTS_MAX = 16
    # RFC 2045 section 5.1. Names with `*` or `%` have another meaning in RFC 2231; the API does not take them.
    TOKEN = /\A[!\#$%&'*+.^_`{|}~0-9A-Za-z-]+\z/
    PARAMETER_NAME = /\A[!\#$&'+.^_`{|}~0-9A-Za-z-]+\z/

    @lock = Mutex.new
    @clients = {}

    class << self
      # Messages with the same settings share a client and its connections.
      def client_for(settings)
        @lock.synchronize do
          @clients[settings] ||= begin
            @clients.shift if @clients.size >= CLIENTS_MAX
            Client.new(user_agent: "mail", **settings)
          end
        end
      end
    end

    attr_reader :settings

    # settings: the keywords of Client.new, or `client`.
    def initialize(settings = {})
      @settings = settings.to_h.transform_keys(&:to_sym)
    end

    def deliver!(mail)
      fields, options = HeaderFields.new(mail).params_and_options
      params = message(mail).merge(fields).reject { |_, value| value.nil? || value == [] || value == {} }
      sent = client.emails.send(params, **options)
      mail.header[EMAIL_ID] = nil if mail.header[EMAIL_ID]
      mail.header[EMAIL_ID] = sent[:id].to_s
      sent
    end

    def inspect
      "#<#{self.class}>"
    end

    private

    def client
      settings[:client] || self.class.client_for(settings.except(:return_response))
    end

    def message(mail)
      from = addresses(mail, :from)
      raise ArgumentError, "An email can have only one author." if from.size > 1

      html, text = bodies(mail)
      {
        from: from.first&.format,
        **recipients(mail),
        reply_to: addresses(mail, :reply_to).map(&:format),
        subject: mail.subject,
        html: html && text_of(html),
        text: text && text_of(text),
        attachments: attachments(mail, [html, text])
      }
    end

    def addresses(mail, name)
      field = mail[name]
      return [] if field.nil?

      field.respond_to?(:addrs) ? field.addrs : raise(ConfigurationError, "`#{name}` is no list of addresses.")
    end

    # The envelope decides who gets the message; the header gives names, and who gets a copy. The API requires `to`: if
    # none of `To` remains, those of `Cc` become `to`. Recipients that only the envelope has get a blind copy, as by SMTP,
    # unless `to` is still empty. Those of `Bcc` never become `to`, because they would see each other.
    def recipients(mail)
      wanted = mail.smtp_envelope_to.map { |one| Mail::Address.new(one).address }
      named = %i[to cc bcc].to_h do |field|
        [field, addresses(mail, field).select { |one| wanted.include?(one.address) }]
      end
      others = wanted - named.values.flatten.map(&:address)
      named = named.transform_values { |addresses| addresses.map(&:format) }
      named = named.merge(to: named[:cc], cc: []) if named[:to].empty?
      field = named[:to].empty? ? :to : :bcc
      named.merge(field => named[field] + others)
    end

    def bodies(mail)
      return [mail.html_part, mail.text_part] if mail.multipart?
      return [nil, nil] if mail.attachment?

      mail.mime_type == "text/html" ? [mail, nil] : [nil, mail]
    end

    def text_of(part)
      part.decoded.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
    end

    # All parts that are no body: also those without a name, such as invitations.
    def attachments(mail, bodies)
      parts = mail.multipart? ? mail.all_parts.reject(&:multipart?) : [mail]
      parts.reject { |part| bodies.any? { |body| body.equal?(part) } }.map.with_index(1) do |part, number|
        attachment = {
          name: part.filename || "attachment-#{number}",
          content_type: content_type(part),
          data: [part.body.decoded].pack("m0")
        }
        attachment[:content_id] = part.cid if part.content_disposition.to_s.start_with?("inline") && part.cid
        attachment
      end
    end

    # The type with its parameters, except those that the API refuses: they name the file, separate parts, or have a value
    # that is no token, such as a list of codecs. A charset in which the data is invalid is left out too: the gem declares
    # UTF-8 for all text.
    def content_type(part)
      parameters = part.content_type_parameters.to_h.select do |name, value|
        PARAMETER_NAME.match?(name) && TOKEN.match?(value) && !%w[name filename boundary].include?(name.downcase) &&
          (!name.casecmp?("charset") || valid_in?(value, part.body.decoded))
      end
      [part.mime_type || "application/octet-stream", *parameters.map { |name, value| "#{name}=#{value}" }].join("; ")
    end

    # True for a charset that Ruby does not know.
    def valid_in?(charset, data)
      data.dup.force_encoding(charset).valid_encoding?
    rescue ArgumentError
      true
    end

    # What the header of a message says beside addresses and subject. `Service-*` fields are those of SMTP.
    class HeaderFields
      OPTIONS = {
        "service-category" => :category, "service-scheduled-at" => :scheduled_at, "service-template" => :template,
        "service-variables" => :variables, "service-unsubscribe" => :unsubscribe
      }.freeze

      def initialize(mail)
        @mail = mail
      end

      # The params of `emails.send`, and the options of the call.
      def params_and_options
        params = { headers: {}, tags: {} }
        options = {}
        fields = @mail.header.fields.reject { |field| OWN.include?(field.name.downcase) }
        refuse_repeated(fields)
        fields.each do |field|
          name = field.name.downcase
          value = field.decoded.to_s
          case name
          when "idempotency-key", "service-idempotency-key" then options[:idempotency_key] = value
          when "x-tag" then params[:tags][value.tr(":", "-")] ||= "true"
          when /\Ax-metadata-(.+)/ then params[:tags][metadata_name(field.name)] = value
          when "service-tags" then params[:tags].merge!(tags(value))
          when *OPTIONS.keys then params[OPTIONS[name]] = option(name, value)
          else params[:headers][field.name] = value
          end
        end
        [params, options]
      end

      private

      # `X-Tag` may occur several times: each is a tag.
      def refuse_repeated(fields)
        _, same = fields.group_by { |field| field.name.downcase }.find { |name, all| all.size > 1 && name != "x-tag" }
        return if same.nil?

        raise ConfigurationError,
              "The header #{same.last.name} occurs more than once, which the API cannot send: give it one value"
      end

      def metadata_name(name)
        name["X-Metadata-".length..]
      end

      # `flow=welcome, step=2`, or JSON: an object or a list of `{name, value}`.
      def tags(value)
        return value.split(",").to_h { |pair| pair.strip.split("=", 2).then { |name, text| [name, text.to_s] } } unless
          value.start_with?("{", "[")

        parsed = JSON.parse(value)
        parsed.is_a?(Array) ? parsed.to_h { |tag| tag.values_at("name", "value") } : parsed
      end

      def option(name, value)
        case name
        when "service-variables" then JSON.parse(value)
        when "service-unsubscribe" then value.strip.casecmp?("true")
        else value
        end
      end
    end
    private_constant :HeaderFields
  end
end
