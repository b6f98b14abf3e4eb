// Generated from sdk/operations.json by sdk/generate; do not edit.

// Parameters of methods, in camelCase. Methods accept the API's names, too.

import type {
  AffiliateCampaignCommissionDuration,
  AffiliateCampaignCommissionType,
  AffiliateCampaignProductRateCommissionType,
  AffiliateCampaignVisibility,
  AffiliateCommissionStatus,
  AffiliatePayoutStatus,
  AffiliateReferralSource,
  AffiliateReferralStatus,
  AffiliateStatus,
  ApiKeyScope,
  ApprovalKind,
  ApprovalStatus,
  AutomationAction,
  AutomationRunStepType,
  CategoryOptOutCategory,
  ConditionOperator,
  ConversionKind,
  CreateAffiliateStatus,
  DnsProvider,
  DomainStatus,
  EmailCategory,
  EmailMetric,
  EmailMetricsDimension,
  FunnelGrouping,
  GetReceivedEmailAttachments,
  Granularity,
  ListEmailsStatus,
  ListReceivedEmailsOrder,
  ListWebhookEventsOrder,
  OnSuppressed,
  Reentry,
  ReplayWebhookDeliveriesStatus,
  ReverseAffiliateCommissionReason,
  SpamStatus,
  TemplateStatus,
  TemplateVariableType,
  TlsMode,
  WebhookEventType,
  WebhookRetryPolicy,
} from "./types.js";

/** A rate that applies from a number of paying customers; `commission_type` selects one of the two rates */
export interface AffiliateCampaignTierInput {
  /** Number of paying customers, including the current one */
  minPaidCustomers: number;
  /** The percentage in basis points */
  commissionBps: number;
  /** The amount in minor units */
  commissionFlatCents: number;
}

/** Params of `domains.dns.apply`. */
export interface ApplyDomainDnsParams {
  /** The DNS provider of the zone */
  provider: DnsProvider;
  /**
   * An object. cloudflare: `api_token`; route53: `access_key_id`, `secret_access_key`, `session_token?`,
   * `region?`, `hosted_zone_id?`; digitalocean: `api_token`; hetzner: `api_token`; gandi: `api_token`;
   * rfc2136: `server`, `key_name`, `algorithm?`, `secret`; bunny: `api_token`; desec: `api_token`; dnsimple:
   * `account_id`, `api_token`; gcore: `api_token`; godaddy: `api_key`, `api_secret`; hostinger: `api_token`;
   * infomaniak: `api_token`; ionos: `api_token`; linode: `api_token`; namecom: `username`, `api_token`;
   * netlify: `api_token`; ns1: `api_token`; porkbun: `api_key`, `secret_api_key`; scaleway: `api_token`;
   * vercel: `api_token`; vultr: `api_token`
   */
  credentials?: Record<string, string> | null;
  /** Whether to use the saved credentials for the provider */
  useSaved?: boolean | null;
  /** Preview the changes without publishing them */
  dryRun?: boolean | null;
  /** Whether to add the service's include to an existing SPF record */
  mergeSpf?: boolean | null;
}

/** Params of `affiliates.approve`. */
export interface ApproveAffiliateParams {
  /** Whether to notify the partner by email; defaults to true */
  sendEmail?: boolean | null;
}

/** Comparisons of which all or any must be true */
export interface AutomationConditionInput {
  /** All must be true */
  all?: ConditionTermInput[] | null;
  /** At least one must be true */
  any?: ConditionTermInput[] | null;
}

/** A step; its other fields depend on its type */
export interface AutomationStepInput {
  /** The step type */
  type: AutomationRunStepType;
  /** Key by which other steps refer to this step */
  key?: string | null;
  /** The name */
  name?: string | null;
  [field: string]: unknown;
}

/** The trigger that starts a run */
export interface AutomationTriggerInput {
  /** The event name: your own (`user.created`) or the service's (`email.opened`) */
  event: string;
  filter?: AutomationConditionInput | null;
  /** Events that cancel the person's runs */
  cancelOnEvents?: string[] | null;
  /** Whether a person can have several runs */
  reentry?: Reentry | null;
  /** Whether opens and clicks by machines trigger as well */
  includeMachine?: boolean | null;
}

/** An email to send. Without `template`, `from`, `subject`, and `html` or `text` are required */
export interface BatchItem {
  /** The author: `Ada <ada@example.com>`; its domain must be verified */
  from?: string | EmailAddress | null;
  /** Recipients */
  to: string | string[];
  /** Recipients of a copy */
  cc?: string | string[] | null;
  /** Recipients of a blind copy */
  bcc?: string | string[] | null;
  /** Addresses for replies (also `replyTo`) */
  replyTo?: string | string[] | null;
  /** The subject */
  subject?: string | null;
  /** The HTML body (also `htmlBody`, `html_body`) */
  html?: string | null;
  /** The plain-text body (also `textBody`, `text_body`, `plain_body`) */
  text?: string | null;
  /** Custom headers; headers that control transport are rejected */
  headers?: Record<string, string> | null;
  /** Stored with the email and sent along with its events */
  tags?: EmailTagInput[] | Record<string, string> | null;
  /** The category */
  category?: EmailCategory | null;
  /** When to send the email; attachments are not supported (also `scheduledAt`) */
  scheduledAt?: string | Date | null;
  /** Lifetime in seconds: the email is sent with priority and fails after this time */
  expiresIn?: number | null;
  /** If some recipients are suppressed: `skip` sends to the others, `fail` rejects the email */
  onSuppressed?: OnSuppressed | null;
  /** Managed unsubscribe (RFC 8058) */
  unsubscribe?: boolean | null;
  /**
   * A published template: its alias, its id (`tpl_…`), or an object. It provides the bodies, and the subject,
   * author, reply addresses and category if they are omitted (also `template_id`, `templateId`,
   * `template_alias`, `templateAlias`)
   */
  template?: string | EmailTemplate | null;
  /**
   * The template's variables by name (also `template_data`, `templateData`, `data_variables`,
   * `dataVariables`, `dynamic_template_data`)
   */
  variables?: Record<string, unknown> | null;
  /**
   * Idempotency key of this email: for 24 hours the same email with the same key, in any batch, is not sent
   * again and gets the same entry (also `idempotencyKey`)
   */
  idempotencyKey?: string | null;
  /** A React element instead of `html`, rendered by the package `@react-email/render`, which must be installed. */
  react?: object | null;
}

/** Params of `suppressions.check`. */
export interface CheckSuppressionsParams {
  emails: string[];
}

/** The rules for the client below its scope */
export interface ClientPolicyRequest {
  /** The recipients that it may send to: addresses and patterns like `*@example.com`; empty allows all */
  recipients?: string[] | null;
  /** The only sender address */
  from?: string | null;
  /** Maximum number of recipients per day (UTC) */
  sendsPerDay?: number | null;
  /** The categories of email that it may send; empty allows all */
  categories?: EmailCategory[] | null;
  /** The kinds of operations that wait for a person's approval */
  approve?: ApprovalKind[] | null;
}

/** The partner's own rate; takes precedence over the campaign's */
export interface CommissionOverride {
  commissionType: "percent";
  /** The percentage of a sale in basis points */
  commissionBps: number;
}

/** A comparison */
export interface ConditionTermInput {
  /** The field to compare: `event.data.plan`, `event.email`, `wait.received` */
  field: string;
  /** The comparison operator */
  op: ConditionOperator;
  /** The value to compare with; may be a reference */
  value?: unknown;
}

/** Params of `automations.stepCounts`. */
export interface CountAutomationStepsParams {
  /** The version whose steps are counted; the current one if omitted */
  version?: number;
}

/** Params of `events.counts`. */
export interface CountEventsParams {
  /**
   * Filter by event names, separated by commas; all if omitted. `visit` counts visits. At most 1,000 names
   * per account are counted separately, the others as `(other)`
   */
  name?: string[];
  /**
   * Start: a timestamp, or a date in UTC. The first period is the one that contains it. Default: 30 days
   * before `to` (with `hour`: one day)
   */
  from?: string;
  /** End, exclusive. Default: now, including the current period */
  to?: string;
  /**
   * Length of a period: at most 92 days with `hour`, three years with `day`. Hours and days are in UTC;
   * counts are stored for two years
   */
  granularity?: Granularity;
}

/** Params of `visits.counts`. */
export interface CountVisitsParams {
  /**
   * Start: a timestamp, or a date in UTC. The first day is the one that contains it. Default: 30 days before
   * `to`
   */
  from?: string;
  /** End, exclusive. Default: now, including today */
  to?: string;
}

/** Params of `affiliateCampaigns.create`. */
export interface CreateAffiliateCampaignParams {
  /** The unique name of the campaign */
  name: string;
  /** The people who can see the campaign; defaults to `public` */
  visibility?: AffiliateCampaignVisibility | null;
  /** Whether partners who apply with the program's form are approved automatically; defaults to false */
  autoApprove?: boolean | null;
  /** The rate that applies; defaults to `percent` */
  commissionType?: AffiliateCampaignCommissionType | null;
  /** The percentage of a sale in basis points, with `percent` */
  commissionBps?: number | null;
  /** The amount per sale in minor units, with `flat` */
  commissionFlatCents?: number | null;
  /** Whether the first sale or all sales earn a commission; defaults to `recurring` */
  commissionDuration?: AffiliateCampaignCommissionDuration | null;
  /** For how many months sales earn a commission; null is unlimited */
  recurringMonths?: number | null;
  /** Maximum commission per sale */
  maxCommissionCents?: number | null;
  /** Rates by number of paying customers */
  tiers?: AffiliateCampaignTierInput[] | null;
  /** Rates of products and prices */
  productRates?: CreateAffiliateCampaignProductRate[] | null;
  /** The recruiting partner's percentage of the same sale in basis points; defaults to 0 */
  secondTierBps?: number | null;
  /** The amount per lead in minor units; defaults to 0 */
  leadBountyCents?: number | null;
  /** For how many days a visit is credited to the partner */
  cookieDays?: number | null;
  /** For how many days a commission is held for refunds */
  holdDays?: number | null;
  /** When the campaign was archived and stopped accepting partners; null restores it */
  archivedAt?: string | Date | null;
  /** Whether it becomes the default campaign */
  makeDefault?: boolean | null;
}

/** The rate of a product or of one of its prices */
export interface CreateAffiliateCampaignProductRate {
  /** The payment processor's product id */
  productId: string;
  /** The payment processor's price id; null applies to all prices of the product */
  priceId?: string | null;
  /** The rate that applies; `none` earns nothing */
  commissionType: AffiliateCampaignProductRateCommissionType;
  /** The percentage in basis points, with `percent` */
  commissionBps?: number;
  /** The amount in minor units, with `flat` */
  commissionFlatCents?: number;
  /** A label for your own use */
  label?: string | null;
}

/** Params of `affiliates.links.create`. */
export interface CreateAffiliateLinkParams {
  /** The token of the link; it is not changed */
  token: string;
  /** The destination: a path or a URL on the website */
  destinationUrl?: string | null;
  /** A label for your own use */
  label?: string | null;
}

/** Params of `affiliates.create`. */
export interface CreateAffiliateParams {
  /** The person's email address */
  email: string;
  /** The given name */
  firstName?: string | null;
  /** The family name */
  lastName?: string | null;
  /** The company */
  company?: string | null;
  /** The website; `https://` is optional */
  website?: string | null;
  /** Two letters (ISO 3166-1) */
  country?: string | null;
  /** The campaign, by id (`cmp_…`) or name */
  campaignId?: string | null;
  /** Tags for the owner's use */
  tags?: string[] | null;
  /** Private notes */
  notes?: string | null;
  /** The token of the partner's link; derived from the name if omitted */
  token?: string | null;
  /** The initial status; defaults to `active` */
  status?: CreateAffiliateStatus | null;
  /** The address for PayPal payouts */
  paypalEmail?: string | null;
  /** Whether to notify the partner by email; defaults to true */
  sendInvite?: boolean | null;
}

/** Params of `affiliateReferrals.create`. */
export interface CreateAffiliateReferralParams {
  /** The partner's id (`aff_…`); either this or `token` is required */
  affiliateId?: string | null;
  /** The token of a link of the partner */
  token?: string | null;
  /** The person's email address */
  email: string;
  /** The payment processor's customer id; assigns later payments to the referral */
  processorCustomerId?: string | null;
  /** A tag for the partner's reports */
  subId?: string | null;
}

/** Params of `apiKeys.create`. */
export interface CreateApiKeyParams {
  /** The name */
  name: string;
  /** The only domain (`dom_…`) that the credential may send from; null allows all */
  domainId?: string | null;
  /** Addresses and networks that may use the credential; empty allows all */
  allowedIps?: string[] | null;
  /** When the credential expires */
  expiresAt?: string | Date | null;
  /** The rules for the client below its scope */
  policy?: ClientPolicyRequest | null;
  /** The scope */
  scope: ApiKeyScope;
}

/** Params of `automations.create`. */
export interface CreateAutomationParams {
  /** The name */
  name: string;
  trigger: AutomationTriggerInput;
  /** The steps of a run, in order */
  steps: AutomationStepInput[];
}

/** Params of `categoryOptOuts.create`. */
export interface CreateCategoryOptOutParams {
  /** The address */
  email: string;
  /** The category */
  category: CategoryOptOutCategory;
}

/** Params of `domains.claims.create`. */
export interface CreateDomainClaimParams {
  /** The domain */
  name: string;
}

/** Params of `domains.create`. */
export interface CreateDomainParams {
  /** The domain, like `example.com` or a subdomain, `mail.example.com` */
  name: string;
  /** Whether opens are tracked by a pixel in the HTML */
  openTracking?: boolean | null;
  /** Whether links in the HTML are rewritten to track clicks */
  clickTracking?: boolean | null;
  /** `opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS */
  tlsMode?: TlsMode | null;
  /** Whether mail to the domain is received */
  inboundEnabled?: boolean | null;
  /**
   * Addresses that receive mail: `support@example.com`, sub-addresses (`support+*@example.com`) or all
   * (`*@example.com`); empty means all. `postmaster` always receives mail
   */
  inboundAddresses?: string[] | null;
  /** Your own host for tracking links; null uses the service's host */
  trackingHost?: string | null;
  /** The selector of the RSA key; generated if omitted */
  dkimSelector?: string | null;
  /** An existing RSA key of 2,048 to 4,096 bits in PEM; a new key is generated if omitted */
  dkimPrivateKey?: string | null;
}

/** Params of `smtpCredentials.create`. */
export interface CreateSmtpCredentialParams {
  /** The name */
  name: string;
  /** The only domain (`dom_…`) that the credential may send from; null allows all */
  domainId?: string | null;
  /** Addresses and networks that may use the credential; empty allows all */
  allowedIps?: string[] | null;
  /** When the credential expires */
  expiresAt?: string | Date | null;
  /** The rules for the client below its scope */
  policy?: ClientPolicyRequest | null;
}

/** Params of `suppressions.create`. */
export interface CreateSuppressionParams {
  /** An address, or `@domain.tld` */
  email?: string | null;
  /** Several addresses or domains */
  emails?: string[] | null;
  /** Free text */
  note?: string | null;
  /** Expiry; never if omitted */
  expiresAt?: string | Date | null;
}

/** Params of `templates.create`. */
export interface CreateTemplateParams {
  /** Name, unique in the account */
  name?: string | null;
  /** Name for API calls, unique in the account */
  alias?: string | null;
  /** Category */
  category?: EmailCategory | null;
  /** Managed unsubscribe; always on for product and newsletter */
  unsubscribeEnabled?: boolean | null;
  /** Default author, unless the send request has one: `Ada <ada@example.com>` or an object */
  from?: string | EmailAddress | null;
  /** Default `Reply-To`, unless the send request has one */
  replyTo?: string | string[] | null;
  /** Markup of the subject */
  subject?: string | null;
  /** Markup of the preview text after the subject */
  preheader?: string | null;
  /** Markup of the HTML body */
  html?: string | null;
  /**
   * MJML source of the HTML body, in place of `html`, which is compiled from it. Null removes the source and
   * keeps the compiled `html`; a new `html` removes the source
   */
  mjml?: string | null;
  /** Markup of the plain-text body */
  text?: string | null;
  /** Declared variables; undeclared ones are required */
  variables?: TemplateVariableInput[] | null;
}

/** Params of `webhooks.create`. */
export interface CreateWebhookParams {
  /** URL for deliveries: https, at a public address */
  url: string;
  /**
   * The events to send; empty: all except email.cancelled, domain.verified, domain.degraded,
   * suppression.created, suppression.deleted, webhook.disabled, which must be named
   */
  events?: WebhookEventType[] | null;
  /** Whether events are sent; default: true */
  enabled?: boolean | null;
  /** Your description */
  description?: string | null;
  /** Only events of these domains (`dom_…`) are sent; empty: all */
  domainIds?: string[] | null;
  /**
   * Only mail received for these addresses is sent: an address (`support@example.com`), its sub-addresses
   * (`support+*@example.com`) or a whole domain (`*@example.com`); empty: all received mail. Other events are
   * not affected
   */
  inboundAddresses?: string[] | null;
  /** `default`: five attempts within five minutes; `extended`: eight within 28 hours */
  retryPolicy?: WebhookRetryPolicy | null;
}

/** Params of `domains.delete`. */
export interface DeleteDomainParams {
  /** Delete the domain even if emails from it are scheduled */
  force?: boolean;
}

/** Params of `suppressions.delete`. */
export interface DeleteSuppressionParams {
  /** Also delete a suppression caused by a complaint */
  force?: boolean;
}

/** Params of `automations.dryRun`. */
export interface DryRunAutomationParams {
  trigger?: AutomationTriggerInput | null;
  /** The steps; the stored ones if omitted */
  steps?: AutomationStepInput[] | null;
  /** The person's user id in your product */
  userId?: string | null;
  /** The person's email address */
  email?: string | null;
  /**
   * Event data, at most 65536 bytes and 32 levels. Automations receive it unchanged; credentials in it are
   * stored as `REDACTED`. For sign-ups and subscriptions: `id`, `visitor_id`, `gclid`, `gbraid`, `wbraid` (or
   * the cookie `rnl_ad`), `came_from`, `signup_method`, `invited`, `internal`, `value`, `currency`
   */
  data?: Record<string, unknown> | null;
}

/** Params of `suppressions.dryRunImport`. */
export interface DryRunSuppressionImportParams {
  /** The list: CSV with a column of addresses, with or without a header line */
  csv: string;
}

/** Params of `automations.duplicate`. */
export interface DuplicateAutomationParams {
  /** The name; derived from the original's if absent */
  name?: string | null;
}

/** Params of `templates.duplicate`. */
export interface DuplicateTemplateParams {
  /** Name; default: `… (copy)` */
  name?: string | null;
  /** Alias; none by default */
  alias?: string | null;
}

/** An address and a display name */
export interface EmailAddress {
  /** The address */
  email: string;
  /** The display name */
  name?: string | null;
}

/** A file */
export interface EmailAttachment {
  /** The file name; not accepted: .exe, .bat, .cmd, .com, .scr, .js, .vbs, .dll */
  name: string;
  /** The content type */
  contentType?: string;
  /** The content in base64, at most 10 MB decoded */
  data: string | Uint8Array;
  /** The Content-ID that `cid:` in the HTML refers to; makes the file inline */
  contentId?: string;
}

/** A tag */
export interface EmailTagInput {
  /** The name, without a colon */
  name: string;
  /** The value */
  value: string;
}

/** A template */
export interface EmailTemplate {
  /** Its id */
  id?: string;
  /** The template's alias, instead of its id */
  alias?: string;
  /** A version other than the published one */
  version?: number;
  /** The template's variables by name */
  variables?: Record<string, unknown>;
}

/** Params of `suppressions.export`. */
export interface ExportSuppressionsParams {
  /** An address, or `@domain.tld` */
  email?: string;
  /**
   * Any of these reasons, separated by commas: hard_bounce, soft_bounce, complaint, unsubscribe,
   * smtp_failure, manual, import
   */
  reason?: string | readonly string[];
  /** Any of these sources, separated by commas: system, api, dashboard, recipient, import */
  source?: string | readonly string[];
  /** Only those created after this time */
  createdAfter?: string | Date;
  /** Only those created before this time */
  createdBefore?: string | Date;
}

/** Params of `receivedEmails.forward`. */
export interface ForwardReceivedEmailParams {
  /** Recipients */
  to: string | string[];
  /** Text above the forwarded message */
  text?: string | null;
}

/** Params of `domains.dmarc`. */
export interface GetDomainDmarcParams {
  /**
   * Start of the range, a time or a UTC date; extended to the start of its day. Default: 30 days before `to`.
   * At most 92 days; reports are retained for thirteen months
   */
  from?: string;
  /** End of the range (exclusive), extended to the end of its day. Default: now */
  to?: string;
}

/** Params of `emails.metrics`. */
export interface GetEmailMetricsParams {
  /**
   * Start: a timestamp, or a date in UTC. The first period is the one that contains it. Default: 30 days
   * before `to` (with `hour`: one day)
   */
  from?: string;
  /** End, exclusive. Default: now, including the current period */
  to?: string;
  /**
   * Length of a period: at most 92 days with `hour`, three years with `day`. Hours and days are in UTC;
   * counts are stored for two years
   */
  granularity?: Granularity;
  /**
   * Group by sending domain, by tag (`name:value`), by template alias, by the provider of the recipient's
   * mail host (known from the first attempt on, so `sent` is not counted by provider), or by category. With
   * several dimensions, each has its own rows. At most 100 values per hour are counted apart, the others
   * together as `(other)`: other domains, other tags and so on. With a filter, pairs of category and domain
   * are the values, so that `category` can be `(other)` too: email of the domain whose category was not
   * counted apart. The category of email that was counted before counts had categories is `(unknown)`
   */
  dimensions?: EmailMetricsDimension[];
  /** Count the email of this sending domain only. With a filter, `dimensions` can be `domain` and `category` */
  domain?: string;
  /** Count the email of this category only, alone or together with `domain` */
  category?: EmailCategory;
  /** Counters to return, and `delivery_time`: how long deliveries took; all if omitted */
  metrics?: EmailMetric[];
}

/** Params of `funnels.get`. */
export interface GetFunnelParams {
  /** The steps in order: event names and `visit`. For each person the first occurrence of a step counts */
  steps: string[];
  /** Start of the range of the first step, a time or a UTC date. Default: 30 days before `to` */
  from?: string;
  /** End of the range (exclusive). Default: now */
  to?: string;
  /**
   * Group by the source of the first visit, by `came_from` or by `signup_method`; at most 50 groups, the
   * others as `(other)`
   */
  groupBy?: FunnelGrouping;
}

/** Params of `receivedEmails.get`. */
export interface GetReceivedEmailParams {
  /**
   * `inline`: attachments are included in base64; `none`: only their metadata. Fetch large attachments one by
   * one
   */
  attachments?: GetReceivedEmailAttachments;
}

/** Params of `suppressions.import`. */
export interface ImportSuppressionsParams {
  /** The list: CSV with a column of addresses, with or without a header line */
  csv: string;
}

/** Params of `affiliateCampaigns.list`. */
export interface ListAffiliateCampaignsParams {
  /** Whether to include archived campaigns */
  includeArchived?: boolean;
}

/** Params of `affiliateCommissions.list`. */
export interface ListAffiliateCommissionsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Filter by status; several separated by commas */
  status?: AffiliateCommissionStatus[];
  /** The partner (`aff_…`) */
  affiliateId?: string;
  /** The referral (`ref_…`) */
  referralId?: string;
  /** The payout (`pay_…`) that the commissions are in */
  payoutId?: string;
  /** Filter by currency; several separated by commas */
  currency?: string[];
  /** Only those created at this time or later */
  createdAfter?: string | Date;
  /** Only those created before this time */
  createdBefore?: string | Date;
}

/** Params of `affiliates.links.list`. */
export interface ListAffiliateLinksParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
}

/** Params of `affiliatePayouts.list`. */
export interface ListAffiliatePayoutsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Filter by status; several separated by commas */
  status?: AffiliatePayoutStatus[];
  /** The partner (`aff_…`) */
  affiliateId?: string;
  /** The payout run (`prn_…`) */
  runId?: string;
}

/** Params of `affiliateReferrals.list`. */
export interface ListAffiliateReferralsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Filter by status; several separated by commas */
  status?: AffiliateReferralStatus[];
  /** Filter by source; several separated by commas */
  source?: AffiliateReferralSource[];
  /** The partner (`aff_…`) */
  affiliateId?: string;
  /** The exact email address, case-insensitive */
  email?: string;
  /** Only those created at this time or later */
  createdAfter?: string | Date;
  /** Only those created before this time */
  createdBefore?: string | Date;
}

/** Params of `affiliates.list`. */
export interface ListAffiliatesParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Filter by status; several separated by commas */
  status?: AffiliateStatus[];
  /** The campaign, by id (`cmp_…`) or name */
  campaignId?: string;
  /** The exact email address, case-insensitive */
  email?: string;
}

/** Params of `apiKeys.list`. */
export interface ListApiKeysParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
}

/** Params of `approvals.list`. */
export interface ListApprovalsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Filter by status */
  status?: ApprovalStatus;
}

/** Params of `auditLog.list`. */
export interface ListAuditLogParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Filter by API key */
  apiKeyId?: string;
  /** Filter by the grant of an app */
  grantId?: string;
  /** Filter by user */
  userId?: string;
  /** Filter by operation, like `delete_domain` */
  operation?: string;
  /** Filter by the id of the object, or of the approval */
  objectId?: string;
  /** Only entries after this time */
  createdAfter?: string | Date;
  /** Only entries before this time */
  createdBefore?: string | Date;
}

/** Params of `automations.runs.list`. */
export interface ListAutomationRunsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Only these values: queued, running, waiting, completed, failed, cancelled; several separated by commas */
  status?: string | readonly string[];
  /** Filter by the person's email address */
  email?: string;
  /** Filter by the person's `user_id` in the product */
  userId?: string;
}

/** Params of `automations.versions.list`. */
export interface ListAutomationVersionsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
}

/** Params of `automations.list`. */
export interface ListAutomationsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Only these values: draft, active, paused, archived; several separated by commas */
  status?: string | readonly string[];
}

/** Params of `categoryOptOuts.list`. */
export interface ListCategoryOptOutsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Filter by email address */
  email?: string;
  /** Filter by category: product, newsletter; several separated by commas */
  category?: string | readonly string[];
}

/** Params of `conversions.list`. */
export interface ListConversionsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Filter by kind */
  kind?: ConversionKind;
  /** Filter by the measured source of the first visit */
  source?: string;
  /** Filter by email address */
  email?: string;
  /** Filter by user id */
  userId?: string;
  /** Only those whose event was received after this time */
  createdAfter?: string | Date;
  /** Only those whose event was received before this time */
  createdBefore?: string | Date;
}

/** Params of `domains.claims.list`. */
export interface ListDomainClaimsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
}

/** Params of `domains.list`. */
export interface ListDomainsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Filter by verification status */
  status?: DomainStatus[];
  /** Filter by text in the name */
  q?: string;
}

/** Params of `emails.attempts.list`. */
export interface ListEmailAttemptsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
}

/** Params of `emails.events.list`. */
export interface ListEmailEventsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
}

/** Params of `emails.list`. */
export interface ListEmailsParams {
  /**
   * Maximum number of entries. With filters a page may be shorter, or empty, while `has_more` is true: a
   * request reads a bounded number of emails. Continue with `next_cursor`
   */
  limit?: number;
  /** `next_cursor` of the previous page; repeat the same filters */
  cursor?: string;
  /** Filter by status; several separated by commas */
  status?: ListEmailsStatus[];
  /** Filter by recipient address in `to`, `cc` or `bcc`; several separated by commas */
  to?: string | readonly string[];
  /** Filter by sender address; several separated by commas */
  from?: string | readonly string[];
  /** Filter by tag, `name:value`; if repeated, all must match */
  tag?: string[];
  /** Filter by category; several separated by commas */
  category?: EmailCategory[];
  /** Filter by template, by id or by the alias used when sending; several separated by commas */
  template?: string | readonly string[];
  /** Filter by sending domain (`dom_…`); several separated by commas */
  domainId?: string | readonly string[];
  /** Words in the subject; all must match, in any order, case-insensitive */
  q?: string;
  /** Only emails accepted after this time */
  createdAfter?: string | Date;
  /** Only emails accepted before this time */
  createdBefore?: string | Date;
}

/** Params of `events.list`. */
export interface ListEventsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Filter by event name */
  name?: string;
  /** Filter by email address */
  email?: string;
  /** Filter by user id */
  userId?: string;
  /** Only events received after this time */
  createdAfter?: string | Date;
  /** Only events received before this time */
  createdBefore?: string | Date;
}

/** Params of `grants.list`. */
export interface ListGrantsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
}

/** Params of `logs.list`. */
export interface ListLogsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Filter by method, like `POST` */
  method?: string;
  /** Filter by status or status class, like `404` or `4xx` */
  status?: string;
  /** Filter by path prefix, like `/emails` */
  path?: string;
  /** Filter by operation, like `send_email` */
  operation?: string;
  /** Filter by API key (`key_…`) */
  apiKeyId?: string;
  /** Filter by the user (`user_…`) whose session made the request */
  userId?: string;
  /** Only requests received after this time */
  createdAfter?: string | Date;
  /** Only requests received before this time */
  createdBefore?: string | Date;
}

/** Params of `receivedEmails.list`. */
export interface ListReceivedEmailsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /**
   * `desc`: newest first. `asc`: in the order of arrival; the last page has a cursor too, and later arrivals
   * follow it without gaps
   */
  order?: ListReceivedEmailsOrder;
  /** Envelope recipient; any of several, separated by commas */
  to?: string | readonly string[];
  /** Address of the author or of the envelope sender; any of several, separated by commas */
  from?: string | readonly string[];
  /** Receiving domain (`dom_…`); any of several, separated by commas */
  domainId?: string | readonly string[];
  /** Spam status; any of several, separated by commas */
  spamStatus?: SpamStatus[];
  /** Only those received after this time */
  receivedAfter?: string | Date;
  /** Only those received before this time */
  receivedBefore?: string | Date;
}

/** Params of `smtpCredentials.list`. */
export interface ListSmtpCredentialsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
}

/** Params of `suppressions.listImports`. */
export interface ListSuppressionImportsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
}

/** Params of `suppressions.list`. */
export interface ListSuppressionsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** An address, or `@domain.tld` */
  email?: string;
  /**
   * Any of these reasons, separated by commas: hard_bounce, soft_bounce, complaint, unsubscribe,
   * smtp_failure, manual, import
   */
  reason?: string | readonly string[];
  /** Any of these sources, separated by commas: system, api, dashboard, recipient, import */
  source?: string | readonly string[];
  /** Only those created after this time */
  createdAfter?: string | Date;
  /** Only those created before this time */
  createdBefore?: string | Date;
}

/** Params of `templates.versions.list`. */
export interface ListTemplateVersionsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
}

/** Params of `templates.list`. */
export interface ListTemplatesParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Any of these, separated by commas: transactional, product, newsletter */
  category?: string | readonly string[];
  /** Any of these, separated by commas: draft, published, archived */
  status?: string | readonly string[];
}

/** Params of `webhooks.deliveries.list`. */
export interface ListWebhookDeliveriesParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /** Any of these, separated by commas: pending, delivered, failed */
  status?: string | readonly string[];
  /**
   * Any of these, separated by commas: email.received, email.sent, email.delivered, email.delivery_delayed,
   * email.bounced, email.complained, email.opened, email.clicked, email.failed, email.suppressed,
   * email.scheduled, contact.unsubscribed, automation.started, automation.step_completed,
   * automation.completed, automation.failed, email.cancelled, domain.verified, domain.degraded,
   * suppression.created, suppression.deleted, webhook.disabled, affiliate.created, affiliate.approved,
   * affiliate.updated, referral.created, referral.converted, commission.created, commission.earned,
   * commission.reversed, commission.paid, payout.created, payout.paid, payout.failed
   */
  type?: string | readonly string[];
  /** Only those created after this time */
  createdAfter?: string | Date;
  /** Only those created before this time */
  createdBefore?: string | Date;
}

/** Params of `webhookEvents.list`. */
export interface ListWebhookEventsParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
  /**
   * Any of these, separated by commas: email.received, email.sent, email.delivered, email.delivery_delayed,
   * email.bounced, email.complained, email.opened, email.clicked, email.failed, email.suppressed,
   * email.scheduled, contact.unsubscribed, automation.started, automation.step_completed,
   * automation.completed, automation.failed, email.cancelled, domain.verified, domain.degraded,
   * suppression.created, suppression.deleted, webhook.disabled, affiliate.created, affiliate.approved,
   * affiliate.updated, referral.created, referral.converted, commission.created, commission.earned,
   * commission.reversed, commission.paid, payout.created, payout.paid, payout.failed
   */
  types?: string | readonly string[];
  /** `asc`: oldest first, and the last page has a cursor too, for polling; `desc`: newest first */
  order?: ListWebhookEventsOrder;
}

/** Params of `webhooks.list`. */
export interface ListWebhooksParams {
  /** Number of entries */
  limit?: number;
  /** `next_cursor` of the previous page */
  cursor?: string;
}

/** Params of `affiliatePayouts.markPaid`. */
export interface MarkAffiliatePayoutPaidParams {
  /** Reference of the payment, as proof */
  reference: string;
}

/** Params of `templates.preview`. */
export interface PreviewTemplateParams {
  /** The template's variables by name */
  variables?: Record<string, unknown> | null;
  /** The version to render; default: the draft */
  version?: "draft" | number | null;
  changes?: UnsavedTemplateDraft | null;
}

/** Params of `templates.publish`. */
export interface PublishTemplateParams {
  /** Note of the version */
  note?: string | null;
}

/** Params of `affiliates.reject`. */
export interface RejectAffiliateParams {
  /** The reason, as free text */
  reason?: string | null;
  /** Whether to notify the partner by email; defaults to true */
  sendEmail?: boolean | null;
}

/** Params of `automations.replay`. */
export interface ReplayAutomationParams {
  trigger?: AutomationTriggerInput | null;
  /** The steps; the stored ones if omitted */
  steps?: AutomationStepInput[] | null;
  /** The number of past events, newest first; default: 100 */
  limit?: number | null;
}

/** Params of `webhooks.replay`. */
export interface ReplayWebhookDeliveriesParams {
  /** Deliveries created at this time or later */
  since: string | Date;
  /** Deliveries created before this time; default: now */
  until?: string | Date | null;
  /** Deliveries with this status */
  status?: ReplayWebhookDeliveriesStatus | null;
  /** Deliveries of these events; default: all */
  events?: WebhookEventType[] | null;
}

/** Params of `receivedEmails.reply`. */
export interface ReplyToReceivedEmailParams {
  /** The HTML body */
  html?: string | null;
  /** The plain-text body */
  text?: string | null;
}

/** Params of `emails.resend`. */
export interface ResendEmailParams {
  /**
   * Whether the new email also has the attachments; without them, the response has the warning
   * `attachments_omitted`
   */
  attachments?: boolean | null;
}

/** Params of `affiliateCommissions.reverse`. */
export interface ReverseAffiliateCommissionParams {
  /** Reverses the commission */
  status: "reversed";
  /** The reason; `fraud` also reverses the recruiting partner's commission */
  reason?: ReverseAffiliateCommissionReason | null;
  /** Your team's note; sent with the event */
  note?: string | null;
}

/** Params of `templates.rollBack`. */
export interface RollBackTemplateParams {
  /** The version to publish again */
  version: number;
  /** Note of the version */
  note?: string | null;
}

/** Params of `apiKeys.rotate`. */
export interface RotateApiKeyParams {
  /** For how many hours the previous secret stays valid */
  graceHours?: number | null;
}

/** Params of `smtpCredentials.rotate`. */
export interface RotateSmtpCredentialParams {
  /** For how many hours the previous secret stays valid */
  graceHours?: number | null;
}

/** Params of `webhooks.rotateSecret`. */
export interface RotateWebhookSecretParams {
  /** Hours during which the old secret still signs, in addition to the new one */
  graceHours?: number | null;
}

/** Params of `dnsCredentials.save`. */
export interface SaveDnsCredentialsParams {
  /**
   * An object. cloudflare: `api_token`; route53: `access_key_id`, `secret_access_key`, `session_token?`,
   * `region?`, `hosted_zone_id?`; digitalocean: `api_token`; hetzner: `api_token`; gandi: `api_token`;
   * rfc2136: `server`, `key_name`, `algorithm?`, `secret`; bunny: `api_token`; desec: `api_token`; dnsimple:
   * `account_id`, `api_token`; gcore: `api_token`; godaddy: `api_key`, `api_secret`; hostinger: `api_token`;
   * infomaniak: `api_token`; ionos: `api_token`; linode: `api_token`; namecom: `username`, `api_token`;
   * netlify: `api_token`; ns1: `api_token`; porkbun: `api_key`, `secret_api_key`; scaleway: `api_token`;
   * vercel: `api_token`; vultr: `api_token`
   */
  credentials: Record<string, string>;
}

/** Params of `emails.sendBatch`. */
export interface SendBatchParams {
  emails: BatchItem[];
}

/** Params of `emails.send`. */
export interface SendEmailParams {
  /** The author: `Ada <ada@example.com>`; its domain must be verified */
  from?: string | EmailAddress | null;
  /** Recipients */
  to: string | string[];
  /** Recipients of a copy */
  cc?: string | string[] | null;
  /** Recipients of a blind copy */
  bcc?: string | string[] | null;
  /** Addresses for replies (also `replyTo`) */
  replyTo?: string | string[] | null;
  /** The subject */
  subject?: string | null;
  /** The HTML body (also `htmlBody`, `html_body`) */
  html?: string | null;
  /** The plain-text body (also `textBody`, `text_body`, `plain_body`) */
  text?: string | null;
  /** Custom headers; headers that control transport are rejected */
  headers?: Record<string, string> | null;
  /** Stored with the email and sent along with its events */
  tags?: EmailTagInput[] | Record<string, string> | null;
  /** The attachments */
  attachments?: EmailAttachment[] | null;
  /** The category */
  category?: EmailCategory | null;
  /** When to send the email; attachments are not supported (also `scheduledAt`) */
  scheduledAt?: string | Date | null;
  /** Lifetime in seconds: the email is sent with priority and fails after this time */
  expiresIn?: number | null;
  /** If some recipients are suppressed: `skip` sends to the others, `fail` rejects the email */
  onSuppressed?: OnSuppressed | null;
  /** Managed unsubscribe (RFC 8058) */
  unsubscribe?: boolean | null;
  /**
   * A published template: its alias, its id (`tpl_…`), or an object. It provides the bodies, and the subject,
   * author, reply addresses and category if they are omitted (also `template_id`, `templateId`,
   * `template_alias`, `templateAlias`)
   */
  template?: string | EmailTemplate | null;
  /**
   * The template's variables by name (also `template_data`, `templateData`, `data_variables`,
   * `dataVariables`, `dynamic_template_data`)
   */
  variables?: Record<string, unknown> | null;
  /** A React element instead of `html`, rendered by the package `@react-email/render`, which must be installed. */
  react?: object | null;
}

/** Params of `events.send`. */
export interface SendEventParams {
  /**
   * The event name, like `user.created`. No control characters, no leading or trailing spaces, no name of an
   * event of the service (`email.delivered`)
   */
  name?: string | null;
  /** Alias of `name`; one of them is required */
  type?: string | null;
  /** The person's user id in your product */
  userId?: string | null;
  /** The person's email address */
  email?: string | null;
  /**
   * Event data, at most 65536 bytes and 32 levels. Automations receive it unchanged; credentials in it are
   * stored as `REDACTED`. For sign-ups and subscriptions: `id`, `visitor_id`, `gclid`, `gbraid`, `wbraid` (or
   * the cookie `rnl_ad`), `came_from`, `signup_method`, `invited`, `internal`, `value`, `currency`
   */
  data?: Record<string, unknown> | null;
  /** Dashboard sessions only: run an automation as a test without sending anything */
  dryRun?: boolean | null;
  /** Dashboard sessions only: run an automation as a test and send its messages */
  testSend?: boolean | null;
  /** Dashboard sessions only: the automation to test */
  automationId?: string | null;
}

/** Params of `affiliates.suspend`. */
export interface SuspendAffiliateParams {
  /** The reason, as free text */
  reason?: string | null;
}

/** A declared variable */
export interface TemplateVariableInput {
  /** Name */
  key: string;
  /** Type; default: `string` */
  type?: TemplateVariableType;
  /** Whether a send without it is refused; default: true unless there is a fallback */
  required?: boolean;
  /** Value if the send request has none */
  fallbackValue?: unknown;
}

/** Params of `emails.testEvent`. */
export interface TestEventParams {
  /** The event name */
  event: string;
  /** The email that the event is about (`msg_…`) */
  emailId?: string | null;
  /** Whether to send it to subscribed endpoints; defaults to true */
  deliver?: boolean | null;
}

/** Params of `templates.testSend`. */
export interface TestTemplateParams {
  /** Recipients: an address or a list */
  to: string | string[];
  /** Author; default: the template's */
  from?: string | EmailAddress | null;
  /** The template's variables by name */
  variables?: Record<string, unknown> | null;
  /** The version to render; default: the draft */
  version?: "draft" | number | null;
}

/** Params of `webhooks.test`. */
export interface TestWebhookParams {
  /** An event name */
  event: string;
}

/**
 * Content that a preview renders in place of the draft's; it is not stored. Null removes a field; `name` and
 * `alias` have no effect
 */
export interface UnsavedTemplateDraft {
  /** Name, unique in the account */
  name?: string | null;
  /** Name for API calls, unique in the account */
  alias?: string | null;
  /** Category */
  category?: EmailCategory | null;
  /** Managed unsubscribe; always on for product and newsletter */
  unsubscribeEnabled?: boolean | null;
  /** Default author, unless the send request has one: `Ada <ada@example.com>` or an object */
  from?: string | EmailAddress | null;
  /** Default `Reply-To`, unless the send request has one */
  replyTo?: string | string[] | null;
  /** Markup of the subject */
  subject?: string | null;
  /** Markup of the preview text after the subject */
  preheader?: string | null;
  /** Markup of the HTML body */
  html?: string | null;
  /**
   * MJML source of the HTML body, in place of `html`, which is compiled from it. Null removes the source and
   * keeps the compiled `html`; a new `html` removes the source
   */
  mjml?: string | null;
  /** Markup of the plain-text body */
  text?: string | null;
  /** Declared variables; undeclared ones are required */
  variables?: TemplateVariableInput[] | null;
}

/** Params of `affiliateCampaigns.update`. */
export interface UpdateAffiliateCampaignParams {
  /** The unique name of the campaign */
  name?: string | null;
  /** The people who can see the campaign; defaults to `public` */
  visibility?: AffiliateCampaignVisibility | null;
  /** Whether partners who apply with the program's form are approved automatically; defaults to false */
  autoApprove?: boolean | null;
  /** The rate that applies; defaults to `percent` */
  commissionType?: AffiliateCampaignCommissionType | null;
  /** The percentage of a sale in basis points, with `percent` */
  commissionBps?: number | null;
  /** The amount per sale in minor units, with `flat` */
  commissionFlatCents?: number | null;
  /** Whether the first sale or all sales earn a commission; defaults to `recurring` */
  commissionDuration?: AffiliateCampaignCommissionDuration | null;
  /** For how many months sales earn a commission; null is unlimited */
  recurringMonths?: number | null;
  /** Maximum commission per sale */
  maxCommissionCents?: number | null;
  /** Rates by number of paying customers */
  tiers?: AffiliateCampaignTierInput[] | null;
  /** Rates of products and prices */
  productRates?: CreateAffiliateCampaignProductRate[] | null;
  /** The recruiting partner's percentage of the same sale in basis points; defaults to 0 */
  secondTierBps?: number | null;
  /** The amount per lead in minor units; defaults to 0 */
  leadBountyCents?: number | null;
  /** For how many days a visit is credited to the partner */
  cookieDays?: number | null;
  /** For how many days a commission is held for refunds */
  holdDays?: number | null;
  /** When the campaign was archived and stopped accepting partners; null restores it */
  archivedAt?: string | Date | null;
  /** Whether it becomes the default campaign */
  makeDefault?: boolean | null;
}

/** Params of `affiliates.update`. */
export interface UpdateAffiliateParams {
  /** The given name */
  firstName?: string | null;
  /** The family name */
  lastName?: string | null;
  /** The company */
  company?: string | null;
  /** The website; `https://` is optional */
  website?: string | null;
  /** Two letters (ISO 3166-1) */
  country?: string | null;
  /** The campaign, by id (`cmp_…`) or name */
  campaignId?: string | null;
  /** Tags for the owner's use */
  tags?: string[] | null;
  /** Private notes */
  notes?: string | null;
  /** The partner that recruited this one (`aff_…`) */
  parentAffiliateId?: string | null;
  /** The URL that receives the partner's own events */
  postbackUrl?: string | null;
  /** Whether the partner has opted out of email, except security email and email it requests */
  emailOptOut?: boolean | null;
  /** The partner's own rate; takes precedence over the campaign's */
  commissionOverride?: CommissionOverride | null;
  /** The new token of the primary link; the old one stops working */
  token?: string | null;
}

/** Params of `apiKeys.update`. */
export interface UpdateApiKeyParams {
  /** The name */
  name?: string | null;
  /** Addresses and networks that may use the credential; empty allows all */
  allowedIps?: string[] | null;
  /** Whether the credential is enabled */
  enabled?: boolean | null;
  /** The rules for the client below its scope; null removes all rules */
  policy?: ClientPolicyRequest | null;
}

/** Params of `automations.update`. */
export interface UpdateAutomationParams {
  /** The action to perform */
  action?: AutomationAction | null;
  /** The name */
  name?: string | null;
  trigger?: AutomationTriggerInput | null;
  /** The steps of a run, in order */
  steps?: AutomationStepInput[] | null;
}

/** Params of `domains.update`. */
export interface UpdateDomainParams {
  /** Whether opens are tracked by a pixel in the HTML */
  openTracking?: boolean | null;
  /** Whether links in the HTML are rewritten to track clicks */
  clickTracking?: boolean | null;
  /** `opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS */
  tlsMode?: TlsMode | null;
  /** Whether mail to the domain is received */
  inboundEnabled?: boolean | null;
  /**
   * Addresses that receive mail: `support@example.com`, sub-addresses (`support+*@example.com`) or all
   * (`*@example.com`); empty means all. `postmaster` always receives mail
   */
  inboundAddresses?: string[] | null;
  /** Your own host for tracking links; null uses the service's host */
  trackingHost?: string | null;
}

/** Params of `emails.update`. */
export interface UpdateEmailParams {
  /** The new time to send the email */
  scheduledAt?: string | Date | null;
  /** Cancels the email; must be true */
  cancel?: boolean | null;
}

/** Params of `smtpCredentials.update`. */
export interface UpdateSmtpCredentialParams {
  /** The name */
  name?: string | null;
  /** Addresses and networks that may use the credential; empty allows all */
  allowedIps?: string[] | null;
  /** Whether the credential is enabled */
  enabled?: boolean | null;
  /** The rules for the client below its scope; null removes all rules */
  policy?: ClientPolicyRequest | null;
}

/** Params of `templates.update`. */
export interface UpdateTemplateParams {
  /** Name, unique in the account */
  name?: string | null;
  /** Name for API calls, unique in the account */
  alias?: string | null;
  /** Category */
  category?: EmailCategory | null;
  /** Managed unsubscribe; always on for product and newsletter */
  unsubscribeEnabled?: boolean | null;
  /** Default author, unless the send request has one: `Ada <ada@example.com>` or an object */
  from?: string | EmailAddress | null;
  /** Default `Reply-To`, unless the send request has one */
  replyTo?: string | string[] | null;
  /** Markup of the subject */
  subject?: string | null;
  /** Markup of the preview text after the subject */
  preheader?: string | null;
  /** Markup of the HTML body */
  html?: string | null;
  /**
   * MJML source of the HTML body, in place of `html`, which is compiled from it. Null removes the source and
   * keeps the compiled `html`; a new `html` removes the source
   */
  mjml?: string | null;
  /** Markup of the plain-text body */
  text?: string | null;
  /** Declared variables; undeclared ones are required */
  variables?: TemplateVariableInput[] | null;
  /** `archived`, or the status before archiving */
  status?: TemplateStatus | null;
  /** The `draft_version` that the client has seen: 409 if it has changed */
  ifVersion?: number | null;
}

/** Params of `webhooks.update`. */
export interface UpdateWebhookParams {
  /** URL for deliveries: https, at a public address */
  url?: string | null;
  /**
   * The events to send; empty: all except email.cancelled, domain.verified, domain.degraded,
   * suppression.created, suppression.deleted, webhook.disabled, which must be named
   */
  events?: WebhookEventType[] | null;
  /** Whether events are sent; default: true */
  enabled?: boolean | null;
  /** Your description */
  description?: string | null;
  /** Only events of these domains (`dom_…`) are sent; empty: all */
  domainIds?: string[] | null;
  /**
   * Only mail received for these addresses is sent: an address (`support@example.com`), its sub-addresses
   * (`support+*@example.com`) or a whole domain (`*@example.com`); empty: all received mail. Other events are
   * not affected
   */
  inboundAddresses?: string[] | null;
  /** `default`: five attempts within five minutes; `extended`: eight within 28 hours */
  retryPolicy?: WebhookRetryPolicy | null;
}
