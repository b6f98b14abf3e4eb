# Generated from sdk/operations.json by sdk/generate; do not edit.

"""`AsyncPostrider`: the client for asyncio and trio."""

from __future__ import annotations

from functools import cached_property

from . import async_resources as _resources
from ._async import AsyncClient


class AsyncPostrider(AsyncClient):
    """A client for asyncio and trio; needs httpx.

    api_key: default: the environment's POSTRIDER_API_KEY
    base_url: address of the API; default: POSTRIDER_BASE_URL
    timeout: deadline of a call with its retries, in seconds
    max_retries: how often a call is repeated after a failure that may pass
    on_warning: called with each warning of the API; default: the logger "postrider"
    allow_insecure_http: accept http:// for other hosts than this machine
    """

    @cached_property
    def emails(self) -> _resources.AsyncEmails:
        """Emails that were sent or are waiting."""
        return _resources.AsyncEmails(self)

    @cached_property
    def account(self) -> _resources.AsyncAccount:
        """The account that the API key belongs to."""
        return _resources.AsyncAccount(self)

    @cached_property
    def logs(self) -> _resources.AsyncLogs:
        """Log of API requests."""
        return _resources.AsyncLogs(self)

    @cached_property
    def api_keys(self) -> _resources.AsyncApiKeys:
        """API keys."""
        return _resources.AsyncApiKeys(self)

    @cached_property
    def smtp_credentials(self) -> _resources.AsyncSmtpCredentials:
        """Credentials for sending by SMTP."""
        return _resources.AsyncSmtpCredentials(self)

    @cached_property
    def domains(self) -> _resources.AsyncDomains:
        """Sending and receiving domains."""
        return _resources.AsyncDomains(self)

    @cached_property
    def dns_credentials(self) -> _resources.AsyncDnsCredentials:
        """Saved credentials of DNS providers."""
        return _resources.AsyncDnsCredentials(self)

    @cached_property
    def suppressions(self) -> _resources.AsyncSuppressions:
        """Addresses that get no email."""
        return _resources.AsyncSuppressions(self)

    @cached_property
    def category_opt_outs(self) -> _resources.AsyncCategoryOptOuts:
        """People who do not want a category of email."""
        return _resources.AsyncCategoryOptOuts(self)

    @cached_property
    def templates(self) -> _resources.AsyncTemplates:
        """Templates of emails."""
        return _resources.AsyncTemplates(self)

    @cached_property
    def events(self) -> _resources.AsyncEvents:
        """Product events: what people did in your product."""
        return _resources.AsyncEvents(self)

    @cached_property
    def funnels(self) -> _resources.AsyncFunnels:
        """Funnels over product events."""
        return _resources.AsyncFunnels(self)

    @cached_property
    def conversions(self) -> _resources.AsyncConversions:
        """Conversions."""
        return _resources.AsyncConversions(self)

    @cached_property
    def visits(self) -> _resources.AsyncVisits:
        """Visits of the website."""
        return _resources.AsyncVisits(self)

    @cached_property
    def webhooks(self) -> _resources.AsyncWebhooks:
        """Webhooks."""
        return _resources.AsyncWebhooks(self)

    @cached_property
    def webhook_events(self) -> _resources.AsyncWebhookEvents:
        """The stream of webhook events."""
        return _resources.AsyncWebhookEvents(self)

    @cached_property
    def received_emails(self) -> _resources.AsyncReceivedEmails:
        """Received emails."""
        return _resources.AsyncReceivedEmails(self)

    @cached_property
    def automations(self) -> _resources.AsyncAutomations:
        """Automations: emails and steps that a product event starts."""
        return _resources.AsyncAutomations(self)

    @cached_property
    def affiliates(self) -> _resources.AsyncAffiliates:
        """Affiliates of the program."""
        return _resources.AsyncAffiliates(self)

    @cached_property
    def affiliate_campaigns(self) -> _resources.AsyncAffiliateCampaigns:
        """Campaigns of the affiliate program: commissions and terms."""
        return _resources.AsyncAffiliateCampaigns(self)

    @cached_property
    def affiliate_referrals(self) -> _resources.AsyncAffiliateReferrals:
        """People that affiliates referred."""
        return _resources.AsyncAffiliateReferrals(self)

    @cached_property
    def affiliate_commissions(self) -> _resources.AsyncAffiliateCommissions:
        """What affiliates earned."""
        return _resources.AsyncAffiliateCommissions(self)

    @cached_property
    def affiliate_payouts(self) -> _resources.AsyncAffiliatePayouts:
        """Payments to affiliates."""
        return _resources.AsyncAffiliatePayouts(self)

    @cached_property
    def grants(self) -> _resources.AsyncGrants:
        """What users have allowed apps to do."""
        return _resources.AsyncGrants(self)

    @cached_property
    def approvals(self) -> _resources.AsyncApprovals:
        """Requests that wait for a person's approval."""
        return _resources.AsyncApprovals(self)

    @cached_property
    def audit_log(self) -> _resources.AsyncAuditLog:
        """What credentials and users did."""
        return _resources.AsyncAuditLog(self)
