# Generated from sdk/operations.json by sdk/generate; do not edit.

"""`Postrider`: the client."""

from __future__ import annotations

from functools import cached_property

from . import resources as _resources
from ._sync import SyncClient


class Postrider(SyncClient):
    """A client of the API of a postrider server.

    api_key: default: the environment's POSTRIDER_API_KEY
    base_url: address of the API; default: POSTRIDER_BASE_URL
    timeout: deadline of a call with its retries, in seconds
    max_retries: how often a call is repeated after a failure that may pass
    on_warning: called with each warning of the API; default: the logger "postrider"
    allow_insecure_http: accept http:// for other hosts than this machine
    """

    @cached_property
    def emails(self) -> _resources.Emails:
        """Emails that were sent or are waiting."""
        return _resources.Emails(self)

    @cached_property
    def account(self) -> _resources.Account:
        """The account that the API key belongs to."""
        return _resources.Account(self)

    @cached_property
    def logs(self) -> _resources.Logs:
        """Log of API requests."""
        return _resources.Logs(self)

    @cached_property
    def api_keys(self) -> _resources.ApiKeys:
        """API keys."""
        return _resources.ApiKeys(self)

    @cached_property
    def smtp_credentials(self) -> _resources.SmtpCredentials:
        """Credentials for sending by SMTP."""
        return _resources.SmtpCredentials(self)

    @cached_property
    def domains(self) -> _resources.Domains:
        """Sending and receiving domains."""
        return _resources.Domains(self)

    @cached_property
    def dns_credentials(self) -> _resources.DnsCredentials:
        """Saved credentials of DNS providers."""
        return _resources.DnsCredentials(self)

    @cached_property
    def suppressions(self) -> _resources.Suppressions:
        """Addresses that get no email."""
        return _resources.Suppressions(self)

    @cached_property
    def category_opt_outs(self) -> _resources.CategoryOptOuts:
        """People who do not want a category of email."""
        return _resources.CategoryOptOuts(self)

    @cached_property
    def templates(self) -> _resources.Templates:
        """Templates of emails."""
        return _resources.Templates(self)

    @cached_property
    def events(self) -> _resources.Events:
        """Product events: what people did in your product."""
        return _resources.Events(self)

    @cached_property
    def funnels(self) -> _resources.Funnels:
        """Funnels over product events."""
        return _resources.Funnels(self)

    @cached_property
    def conversions(self) -> _resources.Conversions:
        """Conversions."""
        return _resources.Conversions(self)

    @cached_property
    def visits(self) -> _resources.Visits:
        """Visits of the website."""
        return _resources.Visits(self)

    @cached_property
    def webhooks(self) -> _resources.Webhooks:
        """Webhooks."""
        return _resources.Webhooks(self)

    @cached_property
    def webhook_events(self) -> _resources.WebhookEvents:
        """The stream of webhook events."""
        return _resources.WebhookEvents(self)

    @cached_property
    def received_emails(self) -> _resources.ReceivedEmails:
        """Received emails."""
        return _resources.ReceivedEmails(self)

    @cached_property
    def automations(self) -> _resources.Automations:
        """Automations: emails and steps that a product event starts."""
        return _resources.Automations(self)

    @cached_property
    def affiliates(self) -> _resources.Affiliates:
        """Affiliates of the program."""
        return _resources.Affiliates(self)

    @cached_property
    def affiliate_campaigns(self) -> _resources.AffiliateCampaigns:
        """Campaigns of the affiliate program: commissions and terms."""
        return _resources.AffiliateCampaigns(self)

    @cached_property
    def affiliate_referrals(self) -> _resources.AffiliateReferrals:
        """People that affiliates referred."""
        return _resources.AffiliateReferrals(self)

    @cached_property
    def affiliate_commissions(self) -> _resources.AffiliateCommissions:
        """What affiliates earned."""
        return _resources.AffiliateCommissions(self)

    @cached_property
    def affiliate_payouts(self) -> _resources.AffiliatePayouts:
        """Payments to affiliates."""
        return _resources.AffiliatePayouts(self)

    @cached_property
    def grants(self) -> _resources.Grants:
        """What users have allowed apps to do."""
        return _resources.Grants(self)

    @cached_property
    def approvals(self) -> _resources.Approvals:
        """Requests that wait for a person's approval."""
        return _resources.Approvals(self)

    @cached_property
    def audit_log(self) -> _resources.AuditLog:
        """What credentials and users did."""
        return _resources.AuditLog(self)
