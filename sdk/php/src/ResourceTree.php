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
    /** The account that the API key belongs to. */
    public readonly Resource\Account $account;
    /** Campaigns of the affiliate program: commissions and terms. */
    public readonly Resource\AffiliateCampaigns $affiliateCampaigns;
    /** What affiliates earned. */
    public readonly Resource\AffiliateCommissions $affiliateCommissions;
    /** Payments to affiliates. */
    public readonly Resource\AffiliatePayouts $affiliatePayouts;
    /** People that affiliates referred. */
    public readonly Resource\AffiliateReferrals $affiliateReferrals;
    /** Affiliates of the program. */
    public readonly Resource\Affiliates $affiliates;
    /** API keys. */
    public readonly Resource\ApiKeys $apiKeys;
    /** Automations: emails and steps that a product event starts. */
    public readonly Resource\Automations $automations;
    /** People who do not want a category of email. */
    public readonly Resource\CategoryOptOuts $categoryOptOuts;
    /** Conversions. */
    public readonly Resource\Conversions $conversions;
    /** Saved credentials of DNS providers. */
    public readonly Resource\DnsCredentials $dnsCredentials;
    /** Sending and receiving domains. */
    public readonly Resource\Domains $domains;
    /** Emails that were sent or are waiting. */
    public readonly Resource\Emails $emails;
    /** Product events: what people did in your product. */
    public readonly Resource\Events $events;
    /** Funnels over product events. */
    public readonly Resource\Funnels $funnels;
    /** Log of API requests. */
    public readonly Resource\Logs $logs;
    /** Received emails. */
    public readonly Resource\ReceivedEmails $receivedEmails;
    /** Credentials for sending by SMTP. */
    public readonly Resource\SmtpCredentials $smtpCredentials;
    /** Addresses that get no email. */
    public readonly Resource\Suppressions $suppressions;
    /** Templates of emails. */
    public readonly Resource\Templates $templates;
    /** Visits of the website. */
    public readonly Resource\Visits $visits;
    /** The stream of webhook events. */
    public readonly Resource\WebhookEvents $webhookEvents;
    /** Webhooks. */
    public readonly Resource\Webhooks $webhooks;

    private function makeResources(): void
    {
        $this->account = new Resource\Account($this);
        $this->affiliateCampaigns = new Resource\AffiliateCampaigns($this);
        $this->affiliateCommissions = new Resource\AffiliateCommissions($this);
        $this->affiliatePayouts = new Resource\AffiliatePayouts($this);
        $this->affiliateReferrals = new Resource\AffiliateReferrals($this);
        $this->affiliates = new Resource\Affiliates($this);
        $this->apiKeys = new Resource\ApiKeys($this);
        $this->automations = new Resource\Automations($this);
        $this->categoryOptOuts = new Resource\CategoryOptOuts($this);
        $this->conversions = new Resource\Conversions($this);
        $this->dnsCredentials = new Resource\DnsCredentials($this);
        $this->domains = new Resource\Domains($this);
        $this->emails = new Resource\Emails($this);
        $this->events = new Resource\Events($this);
        $this->funnels = new Resource\Funnels($this);
        $this->logs = new Resource\Logs($this);
        $this->receivedEmails = new Resource\ReceivedEmails($this);
        $this->smtpCredentials = new Resource\SmtpCredentials($this);
        $this->suppressions = new Resource\Suppressions($this);
        $this->templates = new Resource\Templates($this);
        $this->visits = new Resource\Visits($this);
        $this->webhookEvents = new Resource\WebhookEvents($this);
        $this->webhooks = new Resource\Webhooks($this);
    }
}
