<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Laravel\Facades;

use Illuminate\Support\Facades\Facade;
use Postrider\Client;
use Postrider\Resource;

/**
 * The client of the application: `Postrider::emails()->send([…])`.
 *
 * @method static Resource\Emails emails() Emails that were sent or are waiting.
 * @method static Resource\Account account() The account that the API key belongs to.
 * @method static Resource\Logs logs() Log of API requests.
 * @method static Resource\ApiKeys apiKeys() API keys.
 * @method static Resource\SmtpCredentials smtpCredentials() Credentials for sending by SMTP.
 * @method static Resource\Domains domains() Sending and receiving domains.
 * @method static Resource\DnsCredentials dnsCredentials() Saved credentials of DNS providers.
 * @method static Resource\Suppressions suppressions() Addresses that get no email.
 * @method static Resource\CategoryOptOuts categoryOptOuts() People who do not want a category of email.
 * @method static Resource\Templates templates() Templates of emails.
 * @method static Resource\Events events() Product events: what people did in your product.
 * @method static Resource\Funnels funnels() Funnels over product events.
 * @method static Resource\Conversions conversions() Conversions.
 * @method static Resource\Visits visits() Visits of the website.
 * @method static Resource\Webhooks webhooks() Webhooks.
 * @method static Resource\WebhookEvents webhookEvents() The stream of webhook events.
 * @method static Resource\ReceivedEmails receivedEmails() Received emails.
 * @method static Resource\Automations automations() Automations: emails and steps that a product event starts.
 * @method static Resource\Affiliates affiliates() Affiliates of the program.
 * @method static Resource\AffiliateCampaigns affiliateCampaigns() Campaigns of the affiliate program: commissions and terms.
 * @method static Resource\AffiliateReferrals affiliateReferrals() People that affiliates referred.
 * @method static Resource\AffiliateCommissions affiliateCommissions() What affiliates earned.
 * @method static Resource\AffiliatePayouts affiliatePayouts() Payments to affiliates.
 * @method static Resource\Grants grants() What users have allowed apps to do.
 * @method static Resource\Approvals approvals() Requests that wait for a person's approval.
 * @method static Resource\AuditLog auditLog() What credentials and users did.
 * @method static \Postrider\Dev dev()
 * @method static ?\Postrider\Response lastResponse()
 */
final class Postrider extends Facade
{
    public static function __callStatic($method, $arguments)
    {
        $client = self::getFacadeRoot();
        $isResource = $client instanceof Client && $arguments === [] && property_exists($client, $method)
            && \is_object($client->$method ?? null);

        return $isResource ? $client->$method : parent::__callStatic($method, $arguments);
    }

    protected static function getFacadeAccessor(): string
    {
        return Client::class;
    }
}
