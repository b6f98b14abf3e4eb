# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "resources/emails"
require_relative "resources/emails_events"
require_relative "resources/emails_attempts"
require_relative "resources/emails_attachments"
require_relative "resources/account"
require_relative "resources/logs"
require_relative "resources/api_keys"
require_relative "resources/smtp_credentials"
require_relative "resources/domains"
require_relative "resources/domains_dkim"
require_relative "resources/domains_claims"
require_relative "resources/domains_dns"
require_relative "resources/dns_credentials"
require_relative "resources/suppressions"
require_relative "resources/category_opt_outs"
require_relative "resources/templates"
require_relative "resources/templates_versions"
require_relative "resources/events"
require_relative "resources/funnels"
require_relative "resources/conversions"
require_relative "resources/visits"
require_relative "resources/webhooks"
require_relative "resources/webhooks_deliveries"
require_relative "resources/webhook_events"
require_relative "resources/received_emails"
require_relative "resources/received_emails_attachments"
require_relative "resources/automations"
require_relative "resources/automations_versions"
require_relative "resources/automations_runs"
require_relative "resources/affiliates"
require_relative "resources/affiliates_links"
require_relative "resources/affiliate_campaigns"
require_relative "resources/affiliate_referrals"
require_relative "resources/affiliate_commissions"
require_relative "resources/affiliate_payouts"
require_relative "resources/grants"
require_relative "resources/approvals"
require_relative "resources/audit_log"

module Postrider
  # The resources of a client.
  module ResourceTree
    # Emails that were sent or are waiting.
    attr_reader :emails

    # The account that the API key belongs to.
    attr_reader :account

    # Log of API requests.
    attr_reader :logs

    # API keys.
    attr_reader :api_keys

    # Credentials for sending by SMTP.
    attr_reader :smtp_credentials

    # Sending and receiving domains.
    attr_reader :domains

    # Saved credentials of DNS providers.
    attr_reader :dns_credentials

    # Addresses that get no email.
    attr_reader :suppressions

    # People who do not want a category of email.
    attr_reader :category_opt_outs

    # Templates of emails.
    attr_reader :templates

    # Product events: what people did in your product.
    attr_reader :events

    # Funnels over product events.
    attr_reader :funnels

    # Conversions.
    attr_reader :conversions

    # Visits of the website.
    attr_reader :visits

    # Webhooks.
    attr_reader :webhooks

    # The stream of webhook events.
    attr_reader :webhook_events

    # Received emails.
    attr_reader :received_emails

    # Automations: emails and steps that a product event starts.
    attr_reader :automations

    # Affiliates of the program.
    attr_reader :affiliates

    # Campaigns of the affiliate program: commissions and terms.
    attr_reader :affiliate_campaigns

    # People that affiliates referred.
    attr_reader :affiliate_referrals

    # What affiliates earned.
    attr_reader :affiliate_commissions

    # Payments to affiliates.
    attr_reader :affiliate_payouts

    # What users have allowed apps to do.
    attr_reader :grants

    # Requests that wait for a person's approval.
    attr_reader :approvals

    # What credentials and users did.
    attr_reader :audit_log

    private

    def make_resources
      @emails = Resources::Emails.new(self)
      @account = Resources::Account.new(self)
      @logs = Resources::Logs.new(self)
      @api_keys = Resources::ApiKeys.new(self)
      @smtp_credentials = Resources::SmtpCredentials.new(self)
      @domains = Resources::Domains.new(self)
      @dns_credentials = Resources::DnsCredentials.new(self)
      @suppressions = Resources::Suppressions.new(self)
      @category_opt_outs = Resources::CategoryOptOuts.new(self)
      @templates = Resources::Templates.new(self)
      @events = Resources::Events.new(self)
      @funnels = Resources::Funnels.new(self)
      @conversions = Resources::Conversions.new(self)
      @visits = Resources::Visits.new(self)
      @webhooks = Resources::Webhooks.new(self)
      @webhook_events = Resources::WebhookEvents.new(self)
      @received_emails = Resources::ReceivedEmails.new(self)
      @automations = Resources::Automations.new(self)
      @affiliates = Resources::Affiliates.new(self)
      @affiliate_campaigns = Resources::AffiliateCampaigns.new(self)
      @affiliate_referrals = Resources::AffiliateReferrals.new(self)
      @affiliate_commissions = Resources::AffiliateCommissions.new(self)
      @affiliate_payouts = Resources::AffiliatePayouts.new(self)
      @grants = Resources::Grants.new(self)
      @approvals = Resources::Approvals.new(self)
      @audit_log = Resources::AuditLog.new(self)
    end
  end
end
