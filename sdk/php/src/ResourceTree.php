<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider;

/**
 * The resources of a client.
 *
 * @internal
 */
trait ResourceTree
{
    /** Emails that were sent or are waiting. */
    public readonly Resource\Emails $emails;
    /** The account that the API key belongs to. */
    public readonly Resource\Account $account;
    /** Log of API requests. */
    public readonly Resource\Logs $logs;
    /** API keys. */
    public readonly Resource\ApiKeys $apiKeys;
    /** Credentials for sending by SMTP. */
    public readonly Resource\SmtpCredentials $smtpCredentials;
    /** Sending and receiving domains. */
    public readonly Resource\Domains $domains;
    /** Saved credentials of DNS providers. */
    public readonly Resource\DnsCredentials $dnsCredentials;
    /** Addresses that get no email. */
    public readonly Resource\Suppressions $suppressions;
    /** People who do not want a category of email. */
    public readonly Resource\CategoryOptOuts $categoryOptOuts;
    /** Templates of emails. */
    public readonly Resource\Templates $templates;
    /** Product events: what people did in your product. */
    public readonly Resource\Events $events;
    /** Funnels over product events. */
    public readonly Resource\Funnels $funnels;
    /** Conversions. */
    public readonly Resource\Conversions $conversions;
    /** Visits of the website. */
    public readonly Resource\Visits $visits;
    /** Webhooks. */
    public readonly Resource\Webhooks $webhooks;
    /** The stream of webhook events. */
    public readonly Resource\WebhookEvents $webhookEvents;
    /** Received emails. */
    public readonly Resource\ReceivedEmails $receivedEmails;
    /** Automations: emails and steps that a product event starts. */
    public readonly Resource\Automations $automations;
    /** Affiliates of the program. */
    public readonly Resource\Affiliates $affiliates;
    /** Campaigns of the affiliate program: commissions and terms. */
    public readonly Resource\AffiliateCampaigns $affiliateCampaigns;
    /** People that affiliates referred. */
    public readonly Resource\AffiliateReferrals $affiliateReferrals;
    /** What affiliates earned. */
    public readonly Resource\AffiliateCommissions $affiliateCommissions;
    /** Payments to affiliates. */
    public readonly Resource\AffiliatePayouts $affiliatePayouts;
    /** What users have allowed apps to do. */
    public readonly Resource\Grants $grants;
    /** Requests that wait for a person's approval. */
    public readonly Resource\Approvals $approvals;
    /** What credentials and users did. */
    public readonly Resource\AuditLog $auditLog;

    private function makeResources(): void
    {
        $this->emails = new Resource\Emails($this);
        $this->account = new Resource\Account($this);
        $this->logs = new Resource\Logs($this);
        $this->apiKeys = new Resource\ApiKeys($this);
        $this->smtpCredentials = new Resource\SmtpCredentials($this);
        $this->domains = new Resource\Domains($this);
        $this->dnsCredentials = new Resource\DnsCredentials($this);
        $this->suppressions = new Resource\Suppressions($this);
        $this->categoryOptOuts = new Resource\CategoryOptOuts($this);
        $this->templates = new Resource\Templates($this);
        $this->events = new Resource\Events($this);
        $this->funnels = new Resource\Funnels($this);
        $this->conversions = new Resource\Conversions($this);
        $this->visits = new Resource\Visits($this);
        $this->webhooks = new Resource\Webhooks($this);
        $this->webhookEvents = new Resource\WebhookEvents($this);
        $this->receivedEmails = new Resource\ReceivedEmails($this);
        $this->automations = new Resource\Automations($this);
        $this->affiliates = new Resource\Affiliates($this);
        $this->affiliateCampaigns = new Resource\AffiliateCampaigns($this);
        $this->affiliateReferrals = new Resource\AffiliateReferrals($this);
        $this->affiliateCommissions = new Resource\AffiliateCommissions($this);
        $this->affiliatePayouts = new Resource\AffiliatePayouts($this);
        $this->grants = new Resource\Grants($this);
        $this->approvals = new Resource\Approvals($this);
        $this->auditLog = new Resource\AuditLog($this);
    }
}
