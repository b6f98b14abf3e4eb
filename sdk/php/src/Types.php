<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider;

/**
 * The shapes of params, answers and events, for static analysis:
 * `@phpstan-import-type Email from \Postrider\Types`.
 *
 * @phpstan-type AccessLevel 'sandbox'|'self_test'|'production'|string
 * @phpstan-type Account array{
 *     account: AccountDetails,
 *     limits: AccountLimits,
 *     usage: AccountUsage,
 * }
 * @phpstan-type AccountDetails array{
 *     id: string,
 *     email: string,
 *     plan: 'free'|'pro'|'scale'|'dedicated'|string,
 *     access_level: 'sandbox'|'self_test'|'production'|string,
 *     sandbox_sender: string|null,
 *     suspended: bool,
 *     features: AccountFeatures,
 *     created_at: string,
 * }
 * @phpstan-type AccountFeatures array{
 *     inbound: bool,
 *     automations: bool,
 *     sms: bool,
 *     affiliates: bool,
 * }
 * @phpstan-type AccountLimits array{
 *     emails_per_month: int|null,
 *     emails_per_day: int|null,
 *     domains: int|null,
 *     requests_per_second: int,
 *     retention_days: int,
 *     storage: AccountLimitsStorage,
 * }
 * @phpstan-type AccountLimitsStorage array{
 *     email_bytes: int|null,
 *     suppressions: int|null,
 *     category_opt_outs: int|null,
 *     templates: int|null,
 *     template_bytes: int|null,
 *     product_events: int|null,
 *     product_event_bytes: int|null,
 *     received_emails: int|null,
 *     received_bytes: int|null,
 *     automations: int|null,
 *     automation_bytes: int|null,
 *     webhooks: int|null,
 *     api_keys: int|null,
 *     smtp_credentials: int|null,
 *     users: int|null,
 *     domain_claims: int|null,
 *     affiliates: int|null,
 *     affiliate_links: int|null,
 *     affiliate_campaigns: int|null,
 *     affiliate_referrals: int|null,
 *     affiliate_event_bytes: int|null,
 * }
 * @phpstan-type AccountUsage array{
 *     period_start: string,
 *     period_end: string,
 *     emails_month: int,
 *     emails_day: int,
 *     domains: int,
 *     overage: int,
 *     resets_at: string,
 *     storage: AccountUsageStorage,
 * }
 * @phpstan-type AccountUsageStorage array{
 *     email_bytes: int|null,
 *     suppressions: int|null,
 *     category_opt_outs: int|null,
 *     templates: int|null,
 *     template_bytes: int|null,
 *     product_events: int|null,
 *     product_event_bytes: int|null,
 *     received_emails: int|null,
 *     received_bytes: int|null,
 *     automations: int|null,
 *     automation_bytes: int|null,
 *     webhooks: int|null,
 *     api_keys: int|null,
 *     smtp_credentials: int|null,
 *     users: int|null,
 *     domain_claims: int|null,
 *     affiliates: int|null,
 *     affiliate_links: int|null,
 *     affiliate_campaigns: int|null,
 *     affiliate_referrals: int|null,
 *     affiliate_event_bytes: int|null,
 * }
 * @phpstan-type Affiliate array{
 *     object: 'affiliate'|string,
 *     id: string,
 *     email: string,
 *     first_name: string|null,
 *     last_name: string|null,
 *     company: string|null,
 *     website: string|null,
 *     country: string|null,
 *     status: 'invited'|'pending'|'active'|'suspended'|'rejected'|string,
 *     source: 'api'|'import'|'portal'|string,
 *     campaign_id: string,
 *     parent_affiliate_id: string|null,
 *     tags: list<string>,
 *     payout_method: 'paypal'|'wise'|'bank'|'other'|'stripe'|string|null,
 *     payout_ready: bool,
 *     approved_at: string|null,
 *     links: list<AffiliateLink>,
 *     created_at: string,
 *     updated_at: string,
 * }
 * @phpstan-type AffiliateApprovedData array{
 *     event_id?: string,
 *     affiliate?: Affiliate,
 *     program_id?: string,
 *     affiliate_id?: string,
 * }
 * @phpstan-type AffiliateCampaign array{
 *     object: 'affiliate_campaign'|string,
 *     id: string,
 *     name: string,
 *     is_default: bool,
 *     visibility: 'public'|'private'|'unlisted'|string,
 *     auto_approve: bool,
 *     commission_type: 'percent'|'flat'|string,
 *     commission_bps: int,
 *     commission_flat_cents: int,
 *     commission_duration: 'once'|'recurring'|string,
 *     recurring_months: int|null,
 *     max_commission_cents: int|null,
 *     tiers: list<AffiliateCampaignTier>,
 *     product_rates: list<AffiliateCampaignProductRate>,
 *     second_tier_bps: int,
 *     lead_bounty_cents: int,
 *     cookie_days: int,
 *     hold_days: int,
 *     archived_at: string|null,
 *     created_at: string,
 *     updated_at: string,
 *     affiliate_count?: int,
 * }
 * @phpstan-type AffiliateCampaignCommissionDuration 'once'|'recurring'|string
 * @phpstan-type AffiliateCampaignCommissionType 'percent'|'flat'|string
 * @phpstan-type AffiliateCampaignProductRate array{
 *     product_id: string,
 *     price_id: string|null,
 *     commission_type: 'percent'|'flat'|'none'|string,
 *     commission_bps: int,
 *     commission_flat_cents: int,
 *     label: string|null,
 * }
 * @phpstan-type AffiliateCampaignProductRateCommissionType 'percent'|'flat'|'none'|string
 * @phpstan-type AffiliateCampaignTier array{
 *     min_paid_customers: int,
 *     commission_bps: int,
 *     commission_flat_cents: int,
 * }
 * @phpstan-type AffiliateCampaignVisibility 'public'|'private'|'unlisted'|string
 * @phpstan-type AffiliateCommission array{
 *     object: 'affiliate_commission'|string,
 *     id: string,
 *     affiliate_id: string,
 *     referral_id: string,
 *     tier: int,
 *     status: 'pending'|'earned'|'paid'|'reversed'|string,
 *     amount_cents: int,
 *     sale_amount_cents: int,
 *     currency: string,
 *     description: string,
 *     processor_invoice_id: string|null,
 *     processor_charge_id: string|null,
 *     earns_at: string,
 *     earned_at: string|null,
 *     paid_at: string|null,
 *     reversed_at: string|null,
 *     reverse_reason: 'refund'|'dispute'|'fraud'|'manual'|'partner_deleted'|'blocked'|'expired'|'excluded'|string|null,
 *     payout_id: string|null,
 *     created_at: string,
 *     updated_at: string,
 * }
 * @phpstan-type AffiliateCommissionDetail array{
 *     commission: AffiliateCommission,
 *     formula: string,
 *     calculation: AffiliateCommissionDetailCalculation|null,
 * }
 * @phpstan-type AffiliateCommissionDetailCalculation array{
 *     currency: string,
 *     paid_cents: int,
 *     tax_cents: int,
 *     base_cents: int,
 *     remaining_base_cents: int,
 *     paying_customers: int,
 *     rates: list<AffiliateCommissionDetailCalculationRate>,
 *     cap: AffiliateCommissionDetailCalculationCap|null,
 * }
 * @phpstan-type AffiliateCommissionDetailCalculationCap array{
 *     max_commission_cents: int,
 *     currency: string,
 *     effect: 'unreached'|'hit'|'other_currency'|string,
 * }
 * @phpstan-type AffiliateCommissionDetailCalculationCapEffect 'unreached'|'hit'|'other_currency'|string
 * @phpstan-type AffiliateCommissionDetailCalculationRate array{
 *     base_cents: int,
 *     commission_bps: int|null,
 *     commission_flat_cents: int|null,
 *     rule: 'override'|'product'|'tier'|'base'|'second_tier'|string,
 *     product: string|null,
 *     min_paid_customers: int|null,
 * }
 * @phpstan-type AffiliateCommissionDetailCalculationRateRule 'override'|'product'|'tier'|'base'|'second_tier'|string
 * @phpstan-type AffiliateCommissionStatus 'pending'|'earned'|'paid'|'reversed'|string
 * @phpstan-type AffiliateCreatedData array{
 *     event_id?: string,
 *     affiliate?: Affiliate,
 *     program_id?: string,
 *     affiliate_id?: string,
 * }
 * @phpstan-type AffiliateLink array{
 *     object: 'affiliate_link'|string,
 *     id: string,
 *     affiliate_id: string,
 *     token: string,
 *     url: string,
 *     destination_url: string|null,
 *     label: string|null,
 *     is_primary: bool,
 *     created_at: string,
 * }
 * @phpstan-type AffiliatePayout array{
 *     object: 'affiliate_payout'|string,
 *     id: string,
 *     affiliate_id: string,
 *     run_id: string,
 *     amount_cents: int,
 *     currency: string,
 *     method: 'paypal'|'wise'|'bank'|'other'|'stripe'|string,
 *     status: 'draft'|'processing'|'paid'|'failed'|string,
 *     processor_transfer_id: string|null,
 *     external_reference: string|null,
 *     failure_reason: string|null,
 *     paid_at: string|null,
 *     created_at: string,
 *     updated_at: string,
 * }
 * @phpstan-type AffiliatePayoutMethod 'paypal'|'wise'|'bank'|'other'|'stripe'|string
 * @phpstan-type AffiliatePayoutStatus 'draft'|'processing'|'paid'|'failed'|string
 * @phpstan-type AffiliateReferral array{
 *     object: 'affiliate_referral'|string,
 *     id: string,
 *     affiliate_id: string,
 *     status: 'lead'|'trialing'|'active'|'cancelled'|'refunded'|'rejected'|string,
 *     source: 'api'|'signup'|'checkout'|'metadata'|string,
 *     email: string|null,
 *     processor_customer_id: string|null,
 *     sub_id: string|null,
 *     blocked_reason: 'self_referral'|'existing_customer'|string|null,
 *     revenue_cents: int,
 *     currency: string|null,
 *     converted_at: string|null,
 *     expires_at: string,
 *     created_at: string,
 *     updated_at: string,
 * }
 * @phpstan-type AffiliateReferralBlockedReason 'self_referral'|'existing_customer'|string
 * @phpstan-type AffiliateReferralSource 'api'|'signup'|'checkout'|'metadata'|string
 * @phpstan-type AffiliateReferralStatus 'lead'|'trialing'|'active'|'cancelled'|'refunded'|'rejected'|string
 * @phpstan-type AffiliateSource 'api'|'import'|'portal'|string
 * @phpstan-type AffiliateStatus 'invited'|'pending'|'active'|'suspended'|'rejected'|string
 * @phpstan-type AffiliateUpdatedData array{
 *     event_id?: string,
 *     affiliate?: Affiliate,
 *     program_id?: string,
 *     affiliate_id?: string,
 * }
 * @phpstan-type ApiKey array{
 *     id: string,
 *     name: string,
 *     scope: 'full'|'sending'|string,
 *     hint: string,
 *     enabled: bool,
 *     domain_id: string|null,
 *     allowed_ips: list<string>,
 *     last_used_at: string|null,
 *     last_used_ip: string|null,
 *     expires_at: string|null,
 *     policy: ClientPolicy|null,
 *     created_at: string,
 * }
 * @phpstan-type ApiKeyScope 'full'|'sending'|string
 * @phpstan-type ApplyDomainDnsParams array{
 *     provider: 'cloudflare'|'route53'|'digitalocean'|'hetzner'|'gandi'|'rfc2136'|'bunny'|'desec'|'dnsimple'|'gcore'|'godaddy'|'hostinger'|'infomaniak'|'ionos'|'linode'|'namecom'|'netlify'|'ns1'|'porkbun'|'scaleway'|'vercel'|'vultr'|string,
 *     credentials?: array<string, string>|null,
 *     use_saved?: bool|null,
 *     dry_run?: bool|null,
 *     merge_spf?: bool|null,
 * }
 * @phpstan-type ApplyDomainDnsResponse array{
 *     domain: Domain,
 *     changes: list<DnsChange>,
 *     applied: bool,
 *     warnings?: list<string>,
 * }
 * @phpstan-type Approval array{
 *     id: string,
 *     status: 'pending'|'expired'|'rejected'|'approved'|'executing'|'executed'|'failed'|'interrupted'|string,
 *     kind: 'send'|'delete'|'manage'|string,
 *     client_id: string,
 *     operation: string,
 *     method: string,
 *     path: string,
 *     idempotency_key: string|null,
 *     if_match: string|null,
 *     body: string|null,
 *     emails: list<ApprovalEmail>|null,
 *     hash: string,
 *     url: string,
 *     created_at: string,
 *     expires_at: string,
 *     decided_by: string|null,
 *     decided_at: string|null,
 *     response_status: int|null,
 *     error_code: string|null,
 *     response: array<string, mixed>|null,
 * }
 * @phpstan-type ApprovalAttachment array{
 *     name: string,
 *     content_type: string,
 *     size_bytes: int,
 *     sha256: string,
 * }
 * @phpstan-type ApprovalEmail array{
 *     from: string,
 *     recipients: list<string>,
 *     to: list<string>,
 *     cc: list<string>,
 *     bcc: list<string>,
 *     reply_to: list<string>,
 *     subject: string,
 *     text: string|null,
 *     html: string|null,
 *     headers: list<ApprovalHeader>,
 *     attachments: list<ApprovalAttachment>,
 *     category: 'transactional'|'product'|'newsletter'|string,
 *     scheduled_at: string|null,
 * }
 * @phpstan-type ApprovalHeader array{
 *     name: string,
 *     value: string,
 * }
 * @phpstan-type ApprovalKind 'send'|'delete'|'manage'|string
 * @phpstan-type ApprovalStatus 'pending'|'expired'|'rejected'|'approved'|'executing'|'executed'|'failed'|'interrupted'|string
 * @phpstan-type ApproveAffiliateParams array{
 *     send_email?: bool|null,
 * }
 * @phpstan-type ApproveAffiliateResponse array{
 *     affiliate: Affiliate,
 *     warnings?: list<string>,
 * }
 * @phpstan-type Attempt array{
 *     n: int,
 *     recipient: string|null,
 *     mx_host: string|null,
 *     ip: string|null,
 *     tls: AttemptTls|null,
 *     smtp_code: int|null,
 *     enhanced_code: string|null,
 *     response: string|null,
 *     error: string|null,
 *     phase: string,
 *     duration_ms: int,
 *     created_at: string,
 *     next_attempt_at: string|null,
 *     transcript: string,
 * }
 * @phpstan-type AttemptList array{
 *     attempts: list<Attempt>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type AttemptTls array{
 *     version: string,
 *     cipher: string,
 *     verified: bool,
 *     policy: 'dane'|'mta-sts'|'opportunistic'|string,
 * }
 * @phpstan-type AttemptTlsPolicy 'dane'|'mta-sts'|'opportunistic'|string
 * @phpstan-type AuditEntry array{
 *     id: string,
 *     operation: string,
 *     object_id: string|null,
 *     path: string,
 *     status: int,
 *     error_code: string|null,
 *     surface: 'api'|'dashboard'|'mcp'|'approval'|string,
 *     api_key_id: string|null,
 *     grant_id: string|null,
 *     user_id: string|null,
 *     approval_id: string|null,
 *     approved_by: string|null,
 *     ip: string|null,
 *     created_at: string,
 * }
 * @phpstan-type AuditEntrySurface 'api'|'dashboard'|'mcp'|'approval'|string
 * @phpstan-type AuthenticationResult 'none'|'pass'|'fail'|'softfail'|'neutral'|'temperror'|'permerror'|string
 * @phpstan-type Automation array{
 *     id: string,
 *     name: string,
 *     status: 'draft'|'active'|'paused'|'archived'|string,
 *     version: int,
 *     trigger: AutomationTrigger,
 *     steps: list<AutomationStep>,
 *     counts: AutomationCounts,
 *     created_at: string,
 *     updated_at: string,
 *     activated_at: string|null,
 * }
 * @phpstan-type AutomationAction 'activate'|'pause'|'archive'|'cancel_runs'|string
 * @phpstan-type AutomationCompletedData array{
 *     event_id?: string,
 *     automation_id?: string,
 *     automation_name?: string,
 *     run_id?: string,
 *     status?: string,
 *     event_name?: string,
 *     source_event_id?: string,
 *     user_id?: string,
 *     email?: string,
 *     step_index?: int|null,
 *     step_type?: string|null,
 *     error?: string|null,
 *     ended_by?: string,
 *     started_at?: string,
 *     completed_at?: string,
 * }
 * @phpstan-type AutomationCondition array{
 *     all?: list<ConditionTerm>|null,
 *     any?: list<ConditionTerm>|null,
 * }
 * @phpstan-type AutomationCounts array{
 *     running: int,
 *     waiting: int,
 *     completed: int,
 *     failed: int,
 *     cancelled: int,
 * }
 * @phpstan-type AutomationFailedData array{
 *     event_id?: string,
 *     automation_id?: string,
 *     automation_name?: string,
 *     run_id?: string,
 *     status?: string,
 *     event_name?: string,
 *     source_event_id?: string,
 *     user_id?: string,
 *     email?: string,
 *     step_index?: int,
 *     step_type?: string,
 *     error?: string,
 *     ended_by?: string|null,
 *     started_at?: string,
 *     completed_at?: string,
 * }
 * @phpstan-type AutomationReplay array{
 *     totals: AutomationReplayTotals,
 *     events: list<AutomationReplayEvent>,
 *     complete: bool,
 * }
 * @phpstan-type AutomationReplayEvent array{
 *     event_id: string,
 *     created_at: string,
 *     user_id: string|null,
 *     email: string|null,
 *     effect: 'run'|'filtered'|'repeated'|string,
 *     messages: list<AutomationReplayEventMessage>,
 *     status: 'queued'|'running'|'waiting'|'completed'|'failed'|'cancelled'|string|null,
 *     ended_by: 'all_steps'|'condition'|string|null,
 *     last_step_index: int|null,
 *     error: string|null,
 *     past_run: AutomationReplayEventPastRun|null,
 * }
 * @phpstan-type AutomationReplayEventEffect 'run'|'filtered'|'repeated'|string
 * @phpstan-type AutomationReplayEventMessage array{
 *     step_index: int,
 *     type: 'send_email'|'delay'|'wait_for_event'|'condition'|'sms'|string,
 *     text: string,
 *     suppressed: bool,
 * }
 * @phpstan-type AutomationReplayEventPastRun array{
 *     id: string,
 *     automation_version: int,
 *     status: 'queued'|'running'|'waiting'|'completed'|'failed'|'cancelled'|string,
 *     messages_sent: int,
 * }
 * @phpstan-type AutomationReplayTotals array{
 *     events: int,
 *     runs: int,
 *     reached: int,
 *     messages: int,
 *     suppressed: int,
 *     failed: int,
 *     past_runs: int,
 *     past_messages: int,
 * }
 * @phpstan-type AutomationRun array{
 *     id: string,
 *     automation_id: string,
 *     automation_version: int,
 *     status: 'queued'|'running'|'waiting'|'completed'|'failed'|'cancelled'|string,
 *     mode: 'live'|'dry_run'|'test_send'|string,
 *     event_id: string,
 *     event_name: string,
 *     user_id: string|null,
 *     email: string|null,
 *     current_step_index: int,
 *     steps: list<AutomationRunStep>,
 *     wait: AutomationRunWait|null,
 *     ended_by: 'all_steps'|'condition'|string|null,
 *     cancelled_by: 'event'|'api'|string|null,
 *     error: string|null,
 *     created_at: string,
 *     started_at: string|null,
 *     completed_at: string|null,
 * }
 * @phpstan-type AutomationRunCancelledBy 'event'|'api'|string
 * @phpstan-type AutomationRunEndedBy 'all_steps'|'condition'|string
 * @phpstan-type AutomationRunMode 'live'|'dry_run'|'test_send'|string
 * @phpstan-type AutomationRunStatus 'queued'|'running'|'waiting'|'completed'|'failed'|'cancelled'|string
 * @phpstan-type AutomationRunStep array{
 *     index: int,
 *     key: string|null,
 *     type: 'send_email'|'delay'|'wait_for_event'|'condition'|'sms'|string,
 *     status: 'pending'|'running'|'waiting'|'completed'|'failed'|'skipped'|string,
 *     output: array<string, mixed>|null,
 *     error: string|null,
 *     started_at: string|null,
 *     completed_at: string|null,
 * }
 * @phpstan-type AutomationRunStepStatus 'pending'|'running'|'waiting'|'completed'|'failed'|'skipped'|string
 * @phpstan-type AutomationRunStepType 'send_email'|'delay'|'wait_for_event'|'condition'|'sms'|string
 * @phpstan-type AutomationRunWait array{
 *     event: string|null,
 *     until: string,
 * }
 * @phpstan-type AutomationStartedData array{
 *     event_id?: string,
 *     automation_id?: string,
 *     automation_name?: string,
 *     run_id?: string,
 *     status?: string,
 *     event_name?: string,
 *     source_event_id?: string,
 *     user_id?: string,
 *     email?: string,
 *     step_index?: int|null,
 *     step_type?: string|null,
 *     error?: string|null,
 *     ended_by?: string|null,
 *     started_at?: string,
 *     completed_at?: string|null,
 * }
 * @phpstan-type AutomationStatus 'draft'|'active'|'paused'|'archived'|string
 * @phpstan-type AutomationStep array{
 *     type: 'send_email'|'delay'|'wait_for_event'|'condition'|'sms'|string,
 *     key?: string|null,
 *     name?: string|null,
 * }
 * @phpstan-type AutomationStepCompletedData array{
 *     event_id?: string,
 *     automation_id?: string,
 *     automation_name?: string,
 *     run_id?: string,
 *     status?: string,
 *     event_name?: string,
 *     step_index?: int,
 *     step_type?: string,
 *     error?: string|null,
 *     output?: StepOutput,
 * }
 * @phpstan-type AutomationStepCounts array{
 *     version: int,
 *     steps: list<AutomationStepCountsStep>,
 *     runs: int,
 *     has_more: bool,
 *     has_more_waiting: bool,
 * }
 * @phpstan-type AutomationStepCountsStep array{
 *     index: int,
 *     waiting: int,
 *     passed: int,
 *     failed: int,
 *     ended: int,
 *     cancelled: int,
 * }
 * @phpstan-type AutomationTrigger array{
 *     event: string,
 *     filter?: AutomationCondition|null,
 *     cancel_on_events?: list<string>|null,
 *     reentry?: 'always'|'once'|'while_not_running'|string|null,
 *     include_machine?: bool|null,
 * }
 * @phpstan-type AutomationVersion array{
 *     version: int,
 *     trigger: AutomationTrigger,
 *     steps: list<AutomationStep>,
 *     created_at: string,
 * }
 * @phpstan-type BatchItem array{
 *     from?: string|EmailAddress|null,
 *     to: string|list<string>,
 *     cc?: string|list<string>|null,
 *     bcc?: string|list<string>|null,
 *     reply_to?: string|list<string>|null,
 *     subject?: string|null,
 *     html?: string|null,
 *     text?: string|null,
 *     headers?: array<string, string>|null,
 *     tags?: list<EmailTag>|array<string, string>|null,
 *     category?: 'transactional'|'product'|'newsletter'|string|null,
 *     scheduled_at?: string|\DateTimeInterface|null,
 *     expires_in?: int|null,
 *     on_suppressed?: 'fail'|'skip'|string|null,
 *     unsubscribe?: bool|null,
 *     template?: string|EmailTemplate|null,
 *     variables?: array<string, mixed>|null,
 *     idempotency_key?: string|null,
 * }
 * @phpstan-type BatchResult array{
 *     index: int,
 *     id: string|null,
 *     status: 'sent'|'scheduled'|'failed'|string,
 *     warnings?: list<string>,
 *     replayed?: bool,
 *     error?: BatchResultError,
 * }
 * @phpstan-type BatchResultError array{
 *     message: string,
 *     code: string,
 *     details?: array<string, mixed>,
 *     upgrade_url?: string,
 * }
 * @phpstan-type BatchResultStatus 'sent'|'scheduled'|'failed'|string
 * @phpstan-type CancelAutomationRunResponse array{
 *     run: AutomationRun,
 * }
 * @phpstan-type CancelEmailResponse array{
 *     email: EmailDetail,
 * }
 * @phpstan-type CategoryOptOut array{
 *     id: string,
 *     email: string,
 *     category: 'product'|'newsletter'|string,
 *     category_label: string,
 *     source: 'system'|'api'|'dashboard'|'recipient'|'import'|string,
 *     email_id: string|null,
 *     created_at: string,
 * }
 * @phpstan-type CategoryOptOutCategory 'product'|'newsletter'|string
 * @phpstan-type CategoryOptOutList array{
 *     category_opt_outs: list<CategoryOptOut>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type CheckSuppressionsParams array{
 *     emails: list<string>,
 * }
 * @phpstan-type CheckSuppressionsResponse array{
 *     data: list<SuppressionCheck>,
 *     warnings?: list<string>,
 * }
 * @phpstan-type ClientPolicy array{
 *     recipients: list<string>,
 *     from: string|null,
 *     sends_per_day: int|null,
 *     categories: list<'transactional'|'product'|'newsletter'|string>,
 *     approve: list<'send'|'delete'|'manage'|string>,
 * }
 * @phpstan-type ClientPolicyRequest array{
 *     recipients?: list<string>|null,
 *     from?: string|null,
 *     sends_per_day?: int|null,
 *     categories?: list<'transactional'|'product'|'newsletter'|string>|null,
 *     approve?: list<'send'|'delete'|'manage'|string>|null,
 * }
 * @phpstan-type CommissionCreatedData array{
 *     event_id?: string,
 *     commission?: AffiliateCommission,
 *     program_id?: string,
 *     affiliate_id?: string,
 * }
 * @phpstan-type CommissionEarnedData array{
 *     event_id?: string,
 *     commission?: AffiliateCommission,
 *     program_id?: string,
 *     affiliate_id?: string,
 * }
 * @phpstan-type CommissionOverride array{
 *     commission_type: 'percent'|string,
 *     commission_bps: int,
 * }
 * @phpstan-type CommissionPaidData array{
 *     event_id?: string,
 *     commission?: AffiliateCommission,
 *     payout_id?: string,
 *     program_id?: string,
 *     affiliate_id?: string,
 * }
 * @phpstan-type CommissionReversedData array{
 *     event_id?: string,
 *     commission?: AffiliateCommission,
 *     program_id?: string,
 *     affiliate_id?: string,
 * }
 * @phpstan-type ConditionOperator 'eq'|'neq'|'gt'|'gte'|'lt'|'lte'|'contains'|'starts_with'|'ends_with'|'exists'|'is_empty'|'in'|string
 * @phpstan-type ConditionTerm array{
 *     field: string,
 *     op: 'eq'|'neq'|'gt'|'gte'|'lt'|'lte'|'contains'|'starts_with'|'ends_with'|'exists'|'is_empty'|'in'|string,
 *     value?: mixed,
 * }
 * @phpstan-type ConnectDns array{
 *     url: string,
 * }
 * @phpstan-type ContactUnsubscribedData array{
 *     event_id?: string,
 *     email_id?: string,
 *     email?: string,
 *     source?: string,
 *     scope?: string,
 *     category?: string,
 *     category_label?: string,
 *     suppression_id?: string|null,
 *     category_opt_out_id?: string,
 * }
 * @phpstan-type Conversion array{
 *     event_id: string,
 *     kind: 'sign_up'|'subscription'|string,
 *     subject_id: string,
 *     user_id: string|null,
 *     email: string|null,
 *     visitor_id: string|null,
 *     source: string|null,
 *     came_from: string|null,
 *     signup_method: string|null,
 *     gclid: string|null,
 *     gbraid: string|null,
 *     wbraid: string|null,
 *     value: int|float|null,
 *     currency: string|null,
 *     occurred_at: string,
 * }
 * @phpstan-type ConversionKind 'sign_up'|'subscription'|string
 * @phpstan-type ConversionList array{
 *     conversions: list<Conversion>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type CountAutomationStepsParams array{
 *     version?: int,
 * }
 * @phpstan-type CountAutomationStepsResponse array{
 *     step_counts: AutomationStepCounts,
 * }
 * @phpstan-type CountEventsParams array{
 *     name?: list<string>,
 *     from?: string,
 *     to?: string,
 *     granularity?: 'hour'|'day'|string,
 * }
 * @phpstan-type CountVisitsParams array{
 *     from?: string,
 *     to?: string,
 * }
 * @phpstan-type CreateAffiliateCampaignParams array{
 *     name: string,
 *     visibility?: 'public'|'private'|'unlisted'|string|null,
 *     auto_approve?: bool|null,
 *     commission_type?: 'percent'|'flat'|string|null,
 *     commission_bps?: int|null,
 *     commission_flat_cents?: int|null,
 *     commission_duration?: 'once'|'recurring'|string|null,
 *     recurring_months?: int|null,
 *     max_commission_cents?: int|null,
 *     tiers?: list<AffiliateCampaignTier>|null,
 *     product_rates?: list<CreateAffiliateCampaignProductRate>|null,
 *     second_tier_bps?: int|null,
 *     lead_bounty_cents?: int|null,
 *     cookie_days?: int|null,
 *     hold_days?: int|null,
 *     archived_at?: string|\DateTimeInterface|null,
 *     make_default?: bool|null,
 * }
 * @phpstan-type CreateAffiliateCampaignProductRate array{
 *     product_id: string,
 *     price_id?: string|null,
 *     commission_type: 'percent'|'flat'|'none'|string,
 *     commission_bps?: int,
 *     commission_flat_cents?: int,
 *     label?: string|null,
 * }
 * @phpstan-type CreateAffiliateCampaignResponse array{
 *     campaign: AffiliateCampaign,
 *     warnings?: list<string>,
 * }
 * @phpstan-type CreateAffiliateLinkParams array{
 *     token: string,
 *     destination_url?: string|null,
 *     label?: string|null,
 * }
 * @phpstan-type CreateAffiliateLinkResponse array{
 *     link: AffiliateLink,
 *     warnings?: list<string>,
 * }
 * @phpstan-type CreateAffiliateLoginLinkResponse array{
 *     object: 'affiliate_login_link'|string,
 *     url: string,
 *     expires_at: string,
 *     warnings?: list<string>,
 * }
 * @phpstan-type CreateAffiliateParams array{
 *     email: string,
 *     first_name?: string|null,
 *     last_name?: string|null,
 *     company?: string|null,
 *     website?: string|null,
 *     country?: string|null,
 *     campaign_id?: string|null,
 *     tags?: list<string>|null,
 *     notes?: string|null,
 *     token?: string|null,
 *     status?: 'active'|'pending'|'invited'|string|null,
 *     paypal_email?: string|null,
 *     send_invite?: bool|null,
 * }
 * @phpstan-type CreateAffiliateReferralParams array{
 *     affiliate_id?: string|null,
 *     token?: string|null,
 *     email: string,
 *     processor_customer_id?: string|null,
 *     sub_id?: string|null,
 * }
 * @phpstan-type CreateAffiliateReferralResponse array{
 *     referral: AffiliateReferral,
 *     created: bool,
 *     warnings?: list<string>,
 * }
 * @phpstan-type CreateAffiliateResponse array{
 *     affiliate: Affiliate,
 *     warnings?: list<string>,
 * }
 * @phpstan-type CreateAffiliateStatus 'active'|'pending'|'invited'|string
 * @phpstan-type CreateApiKeyParams array{
 *     name: string,
 *     domain_id?: string|null,
 *     allowed_ips?: list<string>|null,
 *     expires_at?: string|\DateTimeInterface|null,
 *     policy?: ClientPolicyRequest|null,
 *     scope: 'full'|'sending'|string,
 * }
 * @phpstan-type CreateApiKeyResponse array{
 *     api_key: ApiKey,
 *     secret: string,
 *     warnings?: list<string>,
 * }
 * @phpstan-type CreateAutomationParams array{
 *     name: string,
 *     trigger: AutomationTrigger,
 *     steps: list<AutomationStep>,
 * }
 * @phpstan-type CreateAutomationResponse array{
 *     automation: Automation,
 *     warnings?: list<string>,
 * }
 * @phpstan-type CreateCategoryOptOutParams array{
 *     email: string,
 *     category: 'product'|'newsletter'|string,
 * }
 * @phpstan-type CreateCategoryOptOutResponse array{
 *     category_opt_out: CategoryOptOut,
 *     warnings?: list<string>,
 * }
 * @phpstan-type CreateDomainClaimParams array{
 *     name: string,
 * }
 * @phpstan-type CreateDomainClaimResponse array{
 *     claim: DomainClaim,
 *     warnings?: list<string>,
 * }
 * @phpstan-type CreateDomainParams array{
 *     name: string,
 *     open_tracking?: bool|null,
 *     click_tracking?: bool|null,
 *     tls_mode?: 'opportunistic'|'enforced'|string|null,
 *     inbound_enabled?: bool|null,
 *     inbound_addresses?: list<string>|null,
 *     tracking_host?: string|null,
 *     dkim_selector?: string|null,
 *     dkim_private_key?: string|null,
 * }
 * @phpstan-type CreateDomainResponse array{
 *     domain: Domain,
 *     warnings?: list<string>,
 * }
 * @phpstan-type CreateSmtpCredentialParams array{
 *     name: string,
 *     domain_id?: string|null,
 *     allowed_ips?: list<string>|null,
 *     expires_at?: string|\DateTimeInterface|null,
 *     policy?: ClientPolicyRequest|null,
 * }
 * @phpstan-type CreateSmtpCredentialResponse array{
 *     smtp_credential: SmtpCredential,
 *     password: string,
 *     warnings?: list<string>,
 * }
 * @phpstan-type CreateSuppressionParams array{
 *     email?: string|null,
 *     emails?: list<string>|null,
 *     note?: string|null,
 *     expires_at?: string|\DateTimeInterface|null,
 * }
 * @phpstan-type CreateSuppressionResponse array{
 *     suppression?: Suppression,
 *     warnings?: list<string>,
 *     data?: list<SuppressionResult>,
 * }
 * @phpstan-type CreateTemplateParams array{
 *     name?: string|null,
 *     alias?: string|null,
 *     category?: 'transactional'|'product'|'newsletter'|string|null,
 *     unsubscribe_enabled?: bool|null,
 *     from?: string|EmailAddress|null,
 *     reply_to?: string|list<string>|null,
 *     subject?: string|null,
 *     preheader?: string|null,
 *     html?: string|null,
 *     mjml?: string|null,
 *     text?: string|null,
 *     variables?: list<TemplateVariable>|null,
 * }
 * @phpstan-type CreateTemplateResponse array{
 *     template: Template,
 *     warnings?: list<string>,
 * }
 * @phpstan-type CreateWebhookParams array{
 *     url: string,
 *     events?: list<'email.received'|'email.sent'|'email.delivered'|'email.delivery_delayed'|'email.bounced'|'email.complained'|'email.opened'|'email.clicked'|'email.failed'|'email.suppressed'|'email.scheduled'|'contact.unsubscribed'|'automation.started'|'automation.step_completed'|'automation.completed'|'automation.failed'|'email.cancelled'|'domain.verified'|'domain.degraded'|'suppression.created'|'suppression.deleted'|'webhook.disabled'|'affiliate.created'|'affiliate.approved'|'affiliate.updated'|'referral.created'|'referral.converted'|'commission.created'|'commission.earned'|'commission.reversed'|'commission.paid'|'payout.created'|'payout.paid'|'payout.failed'|string>|null,
 *     enabled?: bool|null,
 *     description?: string|null,
 *     domain_ids?: list<string>|null,
 *     inbound_addresses?: list<string>|null,
 *     retry_policy?: 'default'|'extended'|string|null,
 * }
 * @phpstan-type CreateWebhookResponse array{
 *     webhook: Webhook,
 *     secret: string,
 *     warnings?: list<string>,
 * }
 * @phpstan-type DeleteDomainParams array{
 *     force?: bool,
 * }
 * @phpstan-type DeleteSuppressionParams array{
 *     force?: bool,
 * }
 * @phpstan-type DeleteSuppressionResponse array{
 *     ok: bool,
 *     id: string,
 * }
 * @phpstan-type DeliveryTime array{
 *     measured: int,
 *     p50_seconds: int|float|null,
 *     p99_seconds: int|float|null,
 * }
 * @phpstan-type Disposition 'attachment'|'inline'|string
 * @phpstan-type DmarcAlignment 'relaxed'|'strict'|string
 * @phpstan-type DmarcPolicy 'none'|'quarantine'|'reject'|string
 * @phpstan-type DnsChange array{
 *     action: 'create'|'update'|'skip'|'conflict'|string,
 *     outcome: 'unchanged'|'done'|'failed'|'unclear'|'not_done'|string,
 *     record: DomainRecord,
 *     replaces: string|null,
 *     reason: string|null,
 * }
 * @phpstan-type DnsChangeAction 'create'|'update'|'skip'|'conflict'|string
 * @phpstan-type DnsChangeOutcome 'unchanged'|'done'|'failed'|'unclear'|'not_done'|string
 * @phpstan-type DnsProvider 'cloudflare'|'route53'|'digitalocean'|'hetzner'|'gandi'|'rfc2136'|'bunny'|'desec'|'dnsimple'|'gcore'|'godaddy'|'hostinger'|'infomaniak'|'ionos'|'linode'|'namecom'|'netlify'|'ns1'|'porkbun'|'scaleway'|'vercel'|'vultr'|string
 * @phpstan-type Domain array{
 *     id: string,
 *     name: string,
 *     status: 'unverified'|'verified'|string,
 *     inbound_enabled: bool,
 *     inbound_addresses: list<string>,
 *     open_tracking: bool,
 *     click_tracking: bool,
 *     tls_mode: 'opportunistic'|'enforced'|string,
 *     tracking_host: string|null,
 *     dkim: DomainDkim,
 *     dkim_ready: bool,
 *     records: list<DomainRecord>,
 *     degraded_since: string|null,
 *     verified_at: string|null,
 *     last_checked_at: string|null,
 *     created_at: string,
 *     updated_at: string,
 * }
 * @phpstan-type DomainClaim array{
 *     id: string,
 *     name: string,
 *     status: 'pending'|'blocked'|'verified'|'completed'|'expired'|'cancelled'|string,
 *     record: DomainRecord,
 *     blocked_reason: 'grace_period'|'recent_owner_activity'|'pending_scheduled_emails'|string|null,
 *     grace_ends_at: string|null,
 *     created_at: string,
 *     expires_at: string,
 * }
 * @phpstan-type DomainClaimBlockedReason 'grace_period'|'recent_owner_activity'|'pending_scheduled_emails'|string
 * @phpstan-type DomainClaimList array{
 *     claims: list<DomainClaim>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type DomainClaimStatus 'pending'|'blocked'|'verified'|'completed'|'expired'|'cancelled'|string
 * @phpstan-type DomainDegradedData array{
 *     event_id?: string,
 *     domain_id?: string,
 *     domain?: string,
 *     status?: string,
 *     verified_at?: string,
 *     degraded_since?: string,
 * }
 * @phpstan-type DomainDkim array{
 *     selector: string,
 *     key_bits: int,
 *     pending_selector: string|null,
 *     former_selector: string|null,
 *     former_until: string|null,
 * }
 * @phpstan-type DomainDmarc array{
 *     domain: string,
 *     policy: DomainDmarcPolicy|null,
 *     totals: DomainDmarcTotals,
 *     sources: list<DomainDmarcSource>,
 *     reporters: list<DomainDmarcReporter>,
 *     days: list<DomainDmarcDay>,
 * }
 * @phpstan-type DomainDmarcDay array{
 *     date: string,
 *     sent: int|null,
 *     reported: int,
 *     passed: int,
 *     failed: int,
 * }
 * @phpstan-type DomainDmarcPolicy array{
 *     p: 'none'|'quarantine'|'reject'|string,
 *     sp: 'none'|'quarantine'|'reject'|string|null,
 *     adkim: 'relaxed'|'strict'|string,
 *     aspf: 'relaxed'|'strict'|string,
 * }
 * @phpstan-type DomainDmarcReporter array{
 *     domain: string,
 *     name: string,
 *     reports: int,
 *     messages: int,
 *     last_report_at: string,
 * }
 * @phpstan-type DomainDmarcSource array{
 *     ip: string|null,
 *     host: string|null,
 *     ours: bool,
 *     messages: int,
 *     passed: int,
 *     failed: int,
 *     dkim_aligned: int,
 *     spf_aligned: int,
 *     quarantined: int,
 *     rejected: int,
 * }
 * @phpstan-type DomainDmarcTotals array{
 *     messages: int,
 *     passed: int,
 *     failed: int,
 *     dkim_aligned: int,
 *     spf_aligned: int,
 *     quarantined: int,
 *     rejected: int,
 * }
 * @phpstan-type DomainList array{
 *     domains: list<Domain>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type DomainRecord array{
 *     purpose: 'ownership'|'dkim'|'return_path'|'spf'|'dmarc'|'inbound'|'tracking'|string,
 *     type: 'TXT'|'CNAME'|'MX'|string,
 *     name: string,
 *     value: string,
 *     ttl: int,
 *     priority: int|null,
 *     required: bool,
 *     status: 'pending'|'verified'|'missing'|'mismatch'|'conflict'|string,
 *     found: list<string>,
 *     error: string|null,
 *     checked_at: string|null,
 * }
 * @phpstan-type DomainRecordPurpose 'ownership'|'dkim'|'return_path'|'spf'|'dmarc'|'inbound'|'tracking'|string
 * @phpstan-type DomainRecordStatus 'pending'|'verified'|'missing'|'mismatch'|'conflict'|string
 * @phpstan-type DomainRecordType 'TXT'|'CNAME'|'MX'|string
 * @phpstan-type DomainStatus 'unverified'|'verified'|string
 * @phpstan-type DomainVerifiedData array{
 *     event_id?: string,
 *     domain_id?: string,
 *     domain?: string,
 *     status?: string,
 *     verified_at?: string,
 *     degraded_since?: string|null,
 * }
 * @phpstan-type Done array{
 *     ok: bool,
 * }
 * @phpstan-type DryRunAutomationParams array{
 *     trigger?: AutomationTrigger|null,
 *     steps?: list<AutomationStep>|null,
 *     user_id?: string|null,
 *     email?: string|null,
 *     data?: array<string, mixed>|null,
 * }
 * @phpstan-type DryRunAutomationResponse array{
 *     run: AutomationRun,
 *     warnings?: list<string>,
 * }
 * @phpstan-type DryRunSuppressionImportParams array{
 *     csv: string,
 * }
 * @phpstan-type DryRunSuppressionImportResponse array{
 *     dry_run: SuppressionImportForecast,
 *     warnings?: list<string>,
 * }
 * @phpstan-type DuplicateAutomationParams array{
 *     name?: string|null,
 * }
 * @phpstan-type DuplicateAutomationResponse array{
 *     automation: Automation,
 *     warnings?: list<string>,
 * }
 * @phpstan-type DuplicateTemplateParams array{
 *     name?: string|null,
 *     alias?: string|null,
 * }
 * @phpstan-type DuplicateTemplateResponse array{
 *     template: Template,
 *     warnings?: list<string>,
 * }
 * @phpstan-type Email array{
 *     id: string,
 *     from: string,
 *     to: list<string>,
 *     cc: list<string>,
 *     bcc: list<string>,
 *     reply_to: list<string>,
 *     subject: string,
 *     status: 'queued'|'scheduled'|'sent'|'delivered'|'bounced'|'failed'|'cancelled'|string,
 *     last_event: string,
 *     bounce_reason: string|null,
 *     tags: list<EmailTag>,
 *     confidential: bool,
 *     scheduled_at: string|null,
 *     cancelled_at: string|null,
 *     created_at: string,
 *     sent_at: string|null,
 *     delivered_at: string|null,
 *     bounced_at: string|null,
 * }
 * @phpstan-type EmailAddress array{
 *     email: string,
 *     name?: string|null,
 * }
 * @phpstan-type EmailAttachment array{
 *     name: string,
 *     content_type?: string,
 *     data: string,
 *     content_id?: string,
 * }
 * @phpstan-type EmailBounce array{
 *     type?: string,
 *     category?: string,
 *     smtp_code?: int,
 *     enhanced_code?: string,
 *     diagnostic?: string,
 *     mx_host?: string,
 *     async?: bool,
 * }
 * @phpstan-type EmailBouncedData array{
 *     event_id?: string,
 *     email_id?: string,
 *     message_id?: string,
 *     from?: string,
 *     to?: list<string>,
 *     cc?: list<string>,
 *     rcpt_to?: string,
 *     subject?: string,
 *     tags?: list<EmailTag>,
 *     category?: string,
 *     template_id?: string|null,
 *     domain?: string,
 *     sent_at?: string,
 *     status?: string,
 *     bounce_reason?: string,
 *     bounce?: EmailBounce,
 *     suppression_id?: string|null,
 *     suppressed_until?: string|null,
 * }
 * @phpstan-type EmailCancelledData array{
 *     event_id?: string,
 *     email_id?: string,
 *     message_id?: string,
 *     from?: string,
 *     to?: list<string>,
 *     cc?: list<string>,
 *     sent_at?: string,
 *     subject?: string,
 *     tags?: list<EmailTag>,
 *     category?: string,
 *     template_id?: string|null,
 *     domain?: string,
 *     status?: string,
 *     by?: string,
 *     recipients_count?: int,
 * }
 * @phpstan-type EmailCategory 'transactional'|'product'|'newsletter'|string
 * @phpstan-type EmailClick array{
 *     url?: string,
 *     ip?: string,
 *     user_agent?: string,
 *     machine?: bool,
 *     first?: bool,
 * }
 * @phpstan-type EmailClickedData array{
 *     event_id?: string,
 *     email_id?: string,
 *     message_id?: string,
 *     from?: string,
 *     to?: list<string>,
 *     cc?: list<string>,
 *     rcpt_to?: string,
 *     subject?: string,
 *     tags?: list<EmailTag>,
 *     category?: string,
 *     template_id?: string|null,
 *     domain?: string,
 *     sent_at?: string,
 *     status?: string,
 *     click?: EmailClick,
 * }
 * @phpstan-type EmailComplainedData array{
 *     event_id?: string,
 *     email_id?: string,
 *     message_id?: string,
 *     from?: string,
 *     to?: list<string>,
 *     cc?: list<string>,
 *     rcpt_to?: string,
 *     subject?: string,
 *     tags?: list<EmailTag>,
 *     category?: string,
 *     template_id?: string|null,
 *     domain?: string,
 *     sent_at?: string,
 *     status?: string,
 *     complaint?: EmailComplaint,
 *     suppression_id?: string|null,
 * }
 * @phpstan-type EmailComplaint array{
 *     feedback_type?: string,
 *     source?: string,
 *     user_agent?: string,
 *     arrived_at?: string,
 * }
 * @phpstan-type EmailDelay array{
 *     smtp_code?: int,
 *     enhanced_code?: string,
 *     diagnostic?: string,
 *     attempt?: int,
 *     next_attempt_at?: string,
 *     expires_at?: string,
 *     unconfirmed?: bool,
 * }
 * @phpstan-type EmailDeliveredData array{
 *     event_id?: string,
 *     email_id?: string,
 *     message_id?: string,
 *     from?: string,
 *     to?: list<string>,
 *     cc?: list<string>,
 *     rcpt_to?: string,
 *     subject?: string,
 *     tags?: list<EmailTag>,
 *     category?: string,
 *     template_id?: string|null,
 *     domain?: string,
 *     sent_at?: string,
 *     status?: string,
 *     delivered_at?: string,
 *     delivery?: EmailDelivery,
 * }
 * @phpstan-type EmailDelivery array{
 *     mx_host?: string,
 *     smtp_response?: string,
 *     tls?: string,
 *     attempts?: int,
 *     duration_ms?: int,
 * }
 * @phpstan-type EmailDeliveryDelayedData array{
 *     event_id?: string,
 *     email_id?: string,
 *     message_id?: string,
 *     from?: string,
 *     to?: list<string>,
 *     cc?: list<string>,
 *     rcpt_to?: string,
 *     subject?: string,
 *     tags?: list<EmailTag>,
 *     category?: string,
 *     template_id?: string|null,
 *     domain?: string,
 *     sent_at?: string,
 *     status?: string,
 *     delay?: EmailDelay,
 * }
 * @phpstan-type EmailDetail array{
 *     id: string,
 *     from: string,
 *     to: list<string>,
 *     cc: list<string>,
 *     bcc: list<string>,
 *     reply_to: list<string>,
 *     subject: string,
 *     status: 'queued'|'scheduled'|'sent'|'delivered'|'bounced'|'failed'|'cancelled'|string,
 *     last_event: string,
 *     bounce_reason: string|null,
 *     tags: list<EmailTag>,
 *     confidential: bool,
 *     scheduled_at: string|null,
 *     cancelled_at: string|null,
 *     created_at: string,
 *     sent_at: string|null,
 *     delivered_at: string|null,
 *     bounced_at: string|null,
 *     message_id: string,
 *     html: string|null,
 *     text: string|null,
 *     headers: array<string, string>,
 *     category: 'transactional'|'product'|'newsletter'|string,
 *     attachments: list<EmailDetailAttachment>,
 *     template: EmailDetailTemplate|null,
 *     resent_from: string|null,
 *     expires_in: int|null,
 *     unsubscribe: bool,
 *     size: int,
 *     recipients: list<Recipient>,
 *     counts: EmailDetailCounts,
 * }
 * @phpstan-type EmailDetailAttachment array{
 *     id: string,
 *     name: string|null,
 *     content_type: string,
 *     size: int,
 *     content_id: string|null,
 * }
 * @phpstan-type EmailDetailCounts array{
 *     queued: int,
 *     delivered: int,
 *     bounced: int,
 *     failed: int,
 *     suppressed?: int,
 *     cancelled?: int,
 * }
 * @phpstan-type EmailDetailTemplate array{
 *     id: string,
 *     alias: string|null,
 *     version: int,
 * }
 * @phpstan-type EmailEvent array{
 *     id: string,
 *     type: string,
 *     recipient: string|null,
 *     created_at: string,
 *     detail: array<string, mixed>,
 * }
 * @phpstan-type EmailEventList array{
 *     events: list<EmailEvent>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type EmailFailedData array{
 *     event_id?: string,
 *     email_id?: string,
 *     message_id?: string,
 *     from?: string,
 *     to?: list<string>,
 *     cc?: list<string>,
 *     rcpt_to?: string,
 *     subject?: string,
 *     tags?: list<EmailTag>,
 *     category?: string,
 *     template_id?: string|null,
 *     domain?: string,
 *     sent_at?: string,
 *     status?: string,
 *     failure?: EmailFailure,
 *     suppression_id?: string|null,
 *     suppressed_until?: string|null,
 * }
 * @phpstan-type EmailFailure array{
 *     reason?: string,
 *     message?: string,
 *     smtp_code?: int,
 * }
 * @phpstan-type EmailHeader array{
 *     name: string,
 *     value: string,
 * }
 * @phpstan-type EmailList array{
 *     emails: list<Email>,
 *     has_more: bool,
 *     next_cursor: string|null,
 *     searched_until?: string,
 *     as_of?: string,
 * }
 * @phpstan-type EmailMetric 'sent'|'delivered'|'bounced'|'failed'|'delayed'|'complained'|'opened'|'clicked'|'suppressed'|'unsubscribed'|'delivery_time'|string
 * @phpstan-type EmailMetrics array{
 *     totals: EmailMetricsTotals,
 *     rows: list<EmailMetricsRow>,
 * }
 * @phpstan-type EmailMetricsDimension 'domain'|'tag'|'template'|'provider'|'category'|string
 * @phpstan-type EmailMetricsRow array{
 *     period_start: string,
 *     dimension?: 'domain'|'tag'|'template'|'provider'|'category'|string,
 *     value?: string,
 *     sent?: int,
 *     delivered?: int,
 *     bounced?: int,
 *     failed?: int,
 *     delayed?: int,
 *     complained?: int,
 *     opened?: int,
 *     clicked?: int,
 *     suppressed?: int,
 *     unsubscribed?: int,
 *     delivery_time?: DeliveryTime,
 * }
 * @phpstan-type EmailMetricsTotals array{
 *     sent?: int,
 *     delivered?: int,
 *     bounced?: int,
 *     failed?: int,
 *     delayed?: int,
 *     complained?: int,
 *     opened?: int,
 *     clicked?: int,
 *     suppressed?: int,
 *     unsubscribed?: int,
 *     delivery_time?: DeliveryTime,
 *     delivery_rate?: int|float,
 *     bounce_rate?: int|float,
 *     complaint_rate?: int|float,
 *     open_rate?: int|float,
 *     click_rate?: int|float,
 *     unsubscribe_rate?: int|float,
 * }
 * @phpstan-type EmailOpen array{
 *     ip?: string,
 *     user_agent?: string,
 *     machine?: bool,
 *     proxy?: string|null,
 *     first?: bool,
 * }
 * @phpstan-type EmailOpenedData array{
 *     event_id?: string,
 *     email_id?: string,
 *     message_id?: string,
 *     from?: string,
 *     to?: list<string>,
 *     cc?: list<string>,
 *     rcpt_to?: string,
 *     subject?: string,
 *     tags?: list<EmailTag>,
 *     category?: string,
 *     template_id?: string|null,
 *     domain?: string,
 *     sent_at?: string,
 *     status?: string,
 *     open?: EmailOpen,
 * }
 * @phpstan-type EmailReceivedData array{
 *     event_id?: string,
 *     email_id?: string,
 *     to?: list<string>,
 *     from?: string,
 *     subject?: string,
 *     status?: string,
 *     rcpt_to?: string,
 *     cc?: list<string>,
 *     message_id?: string,
 *     in_reply_to?: string,
 *     references?: list<string>,
 *     spam_status?: string,
 *     attachment_count?: int,
 *     attachments?: list<ReceivedEmailAttachment>,
 *     received_at?: string,
 *     domain?: string,
 *     envelope_from?: string,
 *     auth?: EmailReceivedDataAuth,
 * }
 * @phpstan-type EmailReceivedDataAuth array{
 *     spf?: string,
 *     dkim?: string,
 *     dmarc?: string,
 * }
 * @phpstan-type EmailScheduledData array{
 *     event_id?: string,
 *     email_id?: string,
 *     message_id?: string,
 *     from?: string,
 *     to?: list<string>,
 *     cc?: list<string>,
 *     sent_at?: string,
 *     subject?: string,
 *     tags?: list<EmailTag>,
 *     category?: string,
 *     template_id?: string|null,
 *     domain?: string,
 *     status?: string,
 *     scheduled_at?: string,
 * }
 * @phpstan-type EmailSentData array{
 *     event_id?: string,
 *     email_id?: string,
 *     message_id?: string,
 *     from?: string,
 *     to?: list<string>,
 *     cc?: list<string>,
 *     sent_at?: string,
 *     subject?: string,
 *     tags?: list<EmailTag>,
 *     category?: string,
 *     template_id?: string|null,
 *     domain?: string,
 *     status?: string,
 *     recipients_count?: int,
 * }
 * @phpstan-type EmailStatus 'queued'|'scheduled'|'sent'|'delivered'|'bounced'|'failed'|'cancelled'|string
 * @phpstan-type EmailSuppressedData array{
 *     event_id?: string,
 *     email_id?: string,
 *     message_id?: string,
 *     from?: string,
 *     to?: list<string>,
 *     cc?: list<string>,
 *     sent_at?: string,
 *     subject?: string,
 *     tags?: list<EmailTag>,
 *     category?: string,
 *     template_id?: string|null,
 *     domain?: string,
 *     status?: string,
 *     suppressed?: list<EmailSuppression>,
 * }
 * @phpstan-type EmailSuppression array{
 *     email?: string,
 *     reason?: string,
 *     suppression_id?: string|null,
 *     category?: string|null,
 *     category_opt_out_id?: string|null,
 * }
 * @phpstan-type EmailTag array{
 *     name: string,
 *     value: string,
 * }
 * @phpstan-type EmailTemplate array{
 *     id?: string,
 *     alias?: string,
 *     version?: int,
 *     variables?: array<string, mixed>,
 * }
 * @phpstan-type EventCounts array{
 *     totals: list<EventCountsTotal>,
 *     counts: list<EventCountsCount>,
 * }
 * @phpstan-type EventCountsCount array{
 *     name: string,
 *     period_start: string,
 *     count: int,
 *     seats: int,
 *     excluded: int,
 *     sign_ups: int,
 *     subscriptions: int,
 *     visitors: int,
 * }
 * @phpstan-type EventCountsTotal array{
 *     name: string,
 *     count: int,
 *     seats: int,
 *     excluded: int,
 *     sign_ups: int,
 *     subscriptions: int,
 *     visitors: int,
 * }
 * @phpstan-type ExportSuppressionsParams array{
 *     email?: string,
 *     reason?: string,
 *     source?: string,
 *     created_after?: string|\DateTimeInterface,
 *     created_before?: string|\DateTimeInterface,
 * }
 * @phpstan-type ForwardReceivedEmailParams array{
 *     to: string|list<string>,
 *     text?: string|null,
 * }
 * @phpstan-type Funnel array{
 *     from: string,
 *     to: string,
 *     steps: list<FunnelStep>,
 *     groups: list<FunnelGroup>,
 * }
 * @phpstan-type FunnelGroup array{
 *     group: string,
 *     steps: list<FunnelStep>,
 * }
 * @phpstan-type FunnelGrouping 'source'|'came_from'|'signup_method'|string
 * @phpstan-type FunnelStep array{
 *     name: string,
 *     people: int,
 *     of_first_bp: int,
 *     of_previous_bp: int,
 * }
 * @phpstan-type GetApiKeyResponse array{
 *     api_key: ApiKey,
 * }
 * @phpstan-type GetApprovalResponse array{
 *     approval: Approval,
 * }
 * @phpstan-type GetAutomationResponse array{
 *     automation: Automation,
 * }
 * @phpstan-type GetAutomationRunResponse array{
 *     run: AutomationRun,
 * }
 * @phpstan-type GetDomainDmarcParams array{
 *     from?: string,
 *     to?: string,
 * }
 * @phpstan-type GetDomainDmarcResponse array{
 *     dmarc: DomainDmarc,
 * }
 * @phpstan-type GetEmailMetricsParams array{
 *     from?: string,
 *     to?: string,
 *     granularity?: 'hour'|'day'|string,
 *     dimensions?: list<'domain'|'tag'|'template'|'provider'|'category'|string>,
 *     domain?: string,
 *     category?: 'transactional'|'product'|'newsletter'|string,
 *     metrics?: list<'sent'|'delivered'|'bounced'|'failed'|'delayed'|'complained'|'opened'|'clicked'|'suppressed'|'unsubscribed'|'delivery_time'|string>,
 * }
 * @phpstan-type GetEmailMetricsResponse array{
 *     metrics: EmailMetrics,
 * }
 * @phpstan-type GetEmailResponse array{
 *     email: EmailDetail,
 * }
 * @phpstan-type GetFunnelParams array{
 *     steps: list<string>,
 *     from?: string,
 *     to?: string,
 *     group_by?: 'source'|'came_from'|'signup_method'|string,
 * }
 * @phpstan-type GetFunnelResponse array{
 *     funnel: Funnel,
 * }
 * @phpstan-type GetGrantResponse array{
 *     grant: Grant,
 * }
 * @phpstan-type GetLogResponse array{
 *     log: LoggedRequest,
 * }
 * @phpstan-type GetReceivedEmailAttachments 'inline'|'none'|string
 * @phpstan-type GetReceivedEmailParams array{
 *     attachments?: 'inline'|'none'|string,
 * }
 * @phpstan-type GetSmtpCredentialResponse array{
 *     smtp_credential: SmtpCredential,
 * }
 * @phpstan-type GetTemplateResponse array{
 *     template: Template,
 *     warnings?: list<string>,
 * }
 * @phpstan-type GetTemplateVersionResponse array{
 *     version: TemplateVersionDetail,
 * }
 * @phpstan-type Grant array{
 *     id: string,
 *     client_id: string,
 *     client_name: string,
 *     user_id: string,
 *     scopes: list<string>,
 *     policy: ClientPolicy|null,
 *     resources: list<string>,
 *     last_used_at: string|null,
 *     last_used_ip: string|null,
 *     expires_at: string,
 *     created_at: string,
 * }
 * @phpstan-type Granularity 'hour'|'day'|string
 * @phpstan-type ImportSuppressionsParams array{
 *     csv: string,
 * }
 * @phpstan-type ImportSuppressionsResponse array{
 *     import: SuppressionImport,
 *     warnings?: list<string>,
 * }
 * @phpstan-type ListAffiliateCampaignsParams array{
 *     include_archived?: bool,
 * }
 * @phpstan-type ListAffiliateCampaignsResponse array{
 *     data: list<AffiliateCampaign>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListAffiliateCommissionsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     status?: list<'pending'|'earned'|'paid'|'reversed'|string>,
 *     affiliate_id?: string,
 *     referral_id?: string,
 *     payout_id?: string,
 *     currency?: list<string>,
 *     created_after?: string|\DateTimeInterface,
 *     created_before?: string|\DateTimeInterface,
 * }
 * @phpstan-type ListAffiliateCommissionsResponse array{
 *     data: list<AffiliateCommission>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListAffiliateLinksParams array{
 *     limit?: int,
 *     cursor?: string,
 * }
 * @phpstan-type ListAffiliateLinksResponse array{
 *     data: list<AffiliateLink>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListAffiliatePayoutsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     status?: list<'draft'|'processing'|'paid'|'failed'|string>,
 *     affiliate_id?: string,
 *     run_id?: string,
 * }
 * @phpstan-type ListAffiliatePayoutsResponse array{
 *     data: list<AffiliatePayout>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListAffiliateReferralsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     status?: list<'lead'|'trialing'|'active'|'cancelled'|'refunded'|'rejected'|string>,
 *     source?: list<'api'|'signup'|'checkout'|'metadata'|string>,
 *     affiliate_id?: string,
 *     email?: string,
 *     created_after?: string|\DateTimeInterface,
 *     created_before?: string|\DateTimeInterface,
 * }
 * @phpstan-type ListAffiliateReferralsResponse array{
 *     data: list<AffiliateReferral>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListAffiliatesParams array{
 *     limit?: int,
 *     cursor?: string,
 *     status?: list<'invited'|'pending'|'active'|'suspended'|'rejected'|string>,
 *     campaign_id?: string,
 *     email?: string,
 * }
 * @phpstan-type ListAffiliatesResponse array{
 *     data: list<Affiliate>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListApiKeysParams array{
 *     limit?: int,
 *     cursor?: string,
 * }
 * @phpstan-type ListApiKeysResponse array{
 *     api_keys: list<ApiKey>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListApprovalsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     status?: 'pending'|'expired'|'rejected'|'approved'|'executing'|'executed'|'failed'|'interrupted'|string,
 * }
 * @phpstan-type ListApprovalsResponse array{
 *     approvals: list<Approval>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListAuditLogParams array{
 *     limit?: int,
 *     cursor?: string,
 *     api_key_id?: string,
 *     grant_id?: string,
 *     user_id?: string,
 *     operation?: string,
 *     object_id?: string,
 *     created_after?: string|\DateTimeInterface,
 *     created_before?: string|\DateTimeInterface,
 * }
 * @phpstan-type ListAuditLogResponse array{
 *     entries: list<AuditEntry>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListAutomationRunsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     status?: string,
 *     email?: string,
 *     user_id?: string,
 * }
 * @phpstan-type ListAutomationRunsResponse array{
 *     runs: list<AutomationRun>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListAutomationVersionsParams array{
 *     limit?: int,
 *     cursor?: string,
 * }
 * @phpstan-type ListAutomationVersionsResponse array{
 *     versions: list<AutomationVersion>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListAutomationsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     status?: string,
 * }
 * @phpstan-type ListAutomationsResponse array{
 *     automations: list<Automation>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListCategoryOptOutsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     email?: string,
 *     category?: string,
 * }
 * @phpstan-type ListConversionsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     kind?: 'sign_up'|'subscription'|string,
 *     source?: string,
 *     email?: string,
 *     user_id?: string,
 *     created_after?: string|\DateTimeInterface,
 *     created_before?: string|\DateTimeInterface,
 * }
 * @phpstan-type ListDomainClaimsParams array{
 *     limit?: int,
 *     cursor?: string,
 * }
 * @phpstan-type ListDomainsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     status?: list<'unverified'|'verified'|string>,
 *     q?: string,
 * }
 * @phpstan-type ListEmailAttemptsParams array{
 *     limit?: int,
 *     cursor?: string,
 * }
 * @phpstan-type ListEmailEventsParams array{
 *     limit?: int,
 *     cursor?: string,
 * }
 * @phpstan-type ListEmailsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     status?: list<'scheduled'|'queued'|'sent'|'delivered'|'bounced'|'failed'|'cancelled'|string>,
 *     to?: string,
 *     from?: string,
 *     tag?: list<string>,
 *     category?: list<'transactional'|'product'|'newsletter'|string>,
 *     template?: string,
 *     domain_id?: string,
 *     q?: string,
 *     created_after?: string|\DateTimeInterface,
 *     created_before?: string|\DateTimeInterface,
 * }
 * @phpstan-type ListEmailsStatus 'scheduled'|'queued'|'sent'|'delivered'|'bounced'|'failed'|'cancelled'|string
 * @phpstan-type ListEventsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     name?: string,
 *     email?: string,
 *     user_id?: string,
 *     created_after?: string|\DateTimeInterface,
 *     created_before?: string|\DateTimeInterface,
 * }
 * @phpstan-type ListGrantsParams array{
 *     limit?: int,
 *     cursor?: string,
 * }
 * @phpstan-type ListGrantsResponse array{
 *     grants: list<Grant>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListLogsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     method?: string,
 *     status?: string,
 *     path?: string,
 *     operation?: string,
 *     api_key_id?: string,
 *     user_id?: string,
 *     created_after?: string|\DateTimeInterface,
 *     created_before?: string|\DateTimeInterface,
 * }
 * @phpstan-type ListLogsResponse array{
 *     logs: list<LoggedRequest>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListReceivedEmailsOrder 'desc'|'asc'|string
 * @phpstan-type ListReceivedEmailsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     order?: 'desc'|'asc'|string,
 *     to?: string,
 *     from?: string,
 *     domain_id?: string,
 *     spam_status?: list<'not_checked'|'not_spam'|'spam'|string>,
 *     received_after?: string|\DateTimeInterface,
 *     received_before?: string|\DateTimeInterface,
 * }
 * @phpstan-type ListSmtpCredentialsParams array{
 *     limit?: int,
 *     cursor?: string,
 * }
 * @phpstan-type ListSmtpCredentialsResponse array{
 *     smtp_credentials: list<SmtpCredential>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type ListSuppressionImportsParams array{
 *     limit?: int,
 *     cursor?: string,
 * }
 * @phpstan-type ListSuppressionsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     email?: string,
 *     reason?: string,
 *     source?: string,
 *     created_after?: string|\DateTimeInterface,
 *     created_before?: string|\DateTimeInterface,
 * }
 * @phpstan-type ListTemplateVersionsParams array{
 *     limit?: int,
 *     cursor?: string,
 * }
 * @phpstan-type ListTemplatesParams array{
 *     limit?: int,
 *     cursor?: string,
 *     category?: string,
 *     status?: string,
 * }
 * @phpstan-type ListWebhookDeliveriesParams array{
 *     limit?: int,
 *     cursor?: string,
 *     status?: string,
 *     type?: string,
 *     created_after?: string|\DateTimeInterface,
 *     created_before?: string|\DateTimeInterface,
 * }
 * @phpstan-type ListWebhookEventsOrder 'asc'|'desc'|string
 * @phpstan-type ListWebhookEventsParams array{
 *     limit?: int,
 *     cursor?: string,
 *     types?: string,
 *     order?: 'asc'|'desc'|string,
 * }
 * @phpstan-type ListWebhooksParams array{
 *     limit?: int,
 *     cursor?: string,
 * }
 * @phpstan-type LoggedRequest array{
 *     id: string,
 *     method: string,
 *     path: string,
 *     operation: string,
 *     status: int,
 *     error_code: string|null,
 *     duration_ms: int,
 *     api_key_id: string|null,
 *     user_id: string|null,
 *     grant_id: string|null,
 *     created_at: string,
 * }
 * @phpstan-type MarkAffiliatePayoutPaidParams array{
 *     reference: string,
 * }
 * @phpstan-type MarkAffiliatePayoutPaidResponse array{
 *     payout: AffiliatePayout,
 *     warnings?: list<string>,
 * }
 * @phpstan-type OnSuppressed 'fail'|'skip'|string
 * @phpstan-type OneAffiliate array{
 *     affiliate: Affiliate,
 * }
 * @phpstan-type OneAffiliateCampaign array{
 *     campaign: AffiliateCampaign,
 * }
 * @phpstan-type OneAffiliatePayout array{
 *     payout: AffiliatePayout,
 * }
 * @phpstan-type OneAffiliateReferral array{
 *     referral: AffiliateReferral,
 * }
 * @phpstan-type OneDomain array{
 *     domain: Domain,
 * }
 * @phpstan-type OneDomainClaim array{
 *     claim: DomainClaim,
 * }
 * @phpstan-type OneImport array{
 *     import: SuppressionImport,
 * }
 * @phpstan-type OneProductEvent array{
 *     event: ProductEvent,
 * }
 * @phpstan-type OneReceivedEmail array{
 *     received_email: ReceivedEmailDetail,
 * }
 * @phpstan-type OneSuppression array{
 *     suppression: Suppression,
 * }
 * @phpstan-type OneWebhook array{
 *     webhook: Webhook,
 * }
 * @phpstan-type OneWebhookDelivery array{
 *     delivery: WholeWebhookDelivery,
 * }
 * @phpstan-type PayoutCreatedData array{
 *     event_id?: string,
 *     payout_id?: string,
 *     program_id?: string,
 *     affiliate_id?: string,
 * }
 * @phpstan-type PayoutFailedData array{
 *     event_id?: string,
 *     payout_id?: string,
 *     program_id?: string,
 *     affiliate_id?: string,
 * }
 * @phpstan-type PayoutPaidData array{
 *     event_id?: string,
 *     payout_id?: string,
 *     program_id?: string,
 *     affiliate_id?: string,
 * }
 * @phpstan-type Plan 'free'|'pro'|'scale'|'dedicated'|string
 * @phpstan-type PreviewTemplateParams array{
 *     variables?: array<string, mixed>|null,
 *     version?: 'draft'|string|int|null,
 *     changes?: UnsavedTemplateDraft|null,
 * }
 * @phpstan-type ProductEvent array{
 *     id: string,
 *     name: string,
 *     user_id: string|null,
 *     email: string|null,
 *     data: array<string, mixed>,
 *     source: string,
 *     created_at: string,
 * }
 * @phpstan-type ProductEventList array{
 *     events: list<ProductEvent>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type PublishTemplateParams array{
 *     note?: string|null,
 * }
 * @phpstan-type PublishTemplateResponse array{
 *     template: Template,
 *     version: TemplateVersion,
 *     warnings?: list<string>,
 * }
 * @phpstan-type QueuedWebhookDelivery array{
 *     delivery: WebhookDelivery,
 * }
 * @phpstan-type ReceivedEmail array{
 *     email_id: string,
 *     to: list<string>,
 *     from: string,
 *     subject: string,
 *     status: 'received'|string,
 *     rcpt_to: string,
 *     cc: list<string>,
 *     message_id: string,
 *     in_reply_to: string|null,
 *     references: list<string>,
 *     spam_status: 'not_checked'|'not_spam'|'spam'|string,
 *     attachment_count: int,
 *     received_at: string,
 *     domain: string,
 *     envelope_from: string|null,
 *     attachments: list<ReceivedEmailAttachment>,
 *     auth: ReceivedEmailAuth,
 * }
 * @phpstan-type ReceivedEmailAttachment array{
 *     filename: string,
 *     content_type: string,
 *     size: int,
 * }
 * @phpstan-type ReceivedEmailAuth array{
 *     spf: 'none'|'pass'|'fail'|'softfail'|'neutral'|'temperror'|'permerror'|string,
 *     dkim: 'none'|'pass'|'fail'|'softfail'|'neutral'|'temperror'|'permerror'|string,
 *     dmarc: 'none'|'pass'|'fail'|'softfail'|'neutral'|'temperror'|'permerror'|string,
 * }
 * @phpstan-type ReceivedEmailDetail array{
 *     email_id: string,
 *     to: list<string>,
 *     from: string,
 *     subject: string,
 *     status: 'received'|string,
 *     rcpt_to: string,
 *     cc: list<string>,
 *     message_id: string,
 *     in_reply_to: string|null,
 *     references: list<string>,
 *     spam_status: 'not_checked'|'not_spam'|'spam'|string,
 *     attachment_count: int,
 *     received_at: string,
 *     domain: string,
 *     envelope_from: string|null,
 *     text: string|null,
 *     html: string|null,
 *     stripped_text: string|null,
 *     headers: list<EmailHeader>,
 *     auth: ReceivedEmailDetailAuth,
 *     spam_score: int|float|null,
 *     size: int,
 *     attachments: list<ReceivedEmailDetailAttachment>,
 * }
 * @phpstan-type ReceivedEmailDetailAttachment array{
 *     id: string,
 *     filename: string,
 *     content_type: string,
 *     size: int,
 *     charset: string|null,
 *     content_id: string|null,
 *     disposition: 'attachment'|'inline'|string,
 *     data: string|null,
 * }
 * @phpstan-type ReceivedEmailDetailAuth array{
 *     spf: 'none'|'pass'|'fail'|'softfail'|'neutral'|'temperror'|'permerror'|string,
 *     dkim: 'none'|'pass'|'fail'|'softfail'|'neutral'|'temperror'|'permerror'|string,
 *     dmarc: 'none'|'pass'|'fail'|'softfail'|'neutral'|'temperror'|'permerror'|string,
 *     arc: 'none'|'pass'|'fail'|'softfail'|'neutral'|'temperror'|'permerror'|string,
 * }
 * @phpstan-type ReceivedEmailList array{
 *     received_emails: list<ReceivedEmail>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type Recipient array{
 *     email: string,
 *     type: 'to'|'cc'|'bcc'|string,
 *     status: 'queued'|'deferred'|'delivered'|'bounced'|'failed'|'cancelled'|'suppressed'|string,
 *     attempts: int,
 *     last_response: RecipientLastResponse|null,
 *     error: string|null,
 *     mx_host: string|null,
 *     delivered_at: string|null,
 *     bounced_at: string|null,
 *     opened_at: string|null,
 *     clicked_at: string|null,
 *     complained_at: string|null,
 *     next_attempt_at: string|null,
 *     waits_for: WaitReason|null,
 * }
 * @phpstan-type RecipientLastResponse array{
 *     smtp_code: int,
 *     enhanced_code: string|null,
 *     text: string,
 * }
 * @phpstan-type RecipientStatus 'queued'|'deferred'|'delivered'|'bounced'|'failed'|'cancelled'|'suppressed'|string
 * @phpstan-type RecipientType 'to'|'cc'|'bcc'|string
 * @phpstan-type Reentry 'always'|'once'|'while_not_running'|string
 * @phpstan-type ReferralConvertedData array{
 *     event_id?: string,
 *     referral?: AffiliateReferral,
 *     program_id?: string,
 *     affiliate_id?: string,
 * }
 * @phpstan-type ReferralCreatedData array{
 *     event_id?: string,
 *     referral?: AffiliateReferral,
 *     program_id?: string,
 *     affiliate_id?: string,
 * }
 * @phpstan-type RejectAffiliateParams array{
 *     reason?: string|null,
 *     send_email?: bool|null,
 * }
 * @phpstan-type RejectAffiliateResponse array{
 *     affiliate: Affiliate,
 *     warnings?: list<string>,
 * }
 * @phpstan-type ReplayAutomationParams array{
 *     trigger?: AutomationTrigger|null,
 *     steps?: list<AutomationStep>|null,
 *     limit?: int|null,
 * }
 * @phpstan-type ReplayAutomationResponse array{
 *     replay: AutomationReplay,
 *     warnings?: list<string>,
 * }
 * @phpstan-type ReplayWebhookDeliveriesParams array{
 *     since: string|\DateTimeInterface,
 *     until?: string|\DateTimeInterface|null,
 *     status?: 'failed'|'delivered'|string|null,
 *     events?: list<'email.received'|'email.sent'|'email.delivered'|'email.delivery_delayed'|'email.bounced'|'email.complained'|'email.opened'|'email.clicked'|'email.failed'|'email.suppressed'|'email.scheduled'|'contact.unsubscribed'|'automation.started'|'automation.step_completed'|'automation.completed'|'automation.failed'|'email.cancelled'|'domain.verified'|'domain.degraded'|'suppression.created'|'suppression.deleted'|'webhook.disabled'|'affiliate.created'|'affiliate.approved'|'affiliate.updated'|'referral.created'|'referral.converted'|'commission.created'|'commission.earned'|'commission.reversed'|'commission.paid'|'payout.created'|'payout.paid'|'payout.failed'|string>|null,
 * }
 * @phpstan-type ReplayWebhookDeliveriesResponse array{
 *     queued: int,
 *     next_since: string|null,
 *     warnings?: list<string>,
 * }
 * @phpstan-type ReplayWebhookDeliveriesStatus 'failed'|'delivered'|string
 * @phpstan-type ReplyToReceivedEmailParams array{
 *     html?: string|null,
 *     text?: string|null,
 * }
 * @phpstan-type ResendEmailParams array{
 *     attachments?: bool|null,
 * }
 * @phpstan-type ReverseAffiliateCommissionParams array{
 *     status: 'reversed'|string,
 *     reason?: 'manual'|'fraud'|string|null,
 *     note?: string|null,
 * }
 * @phpstan-type ReverseAffiliateCommissionReason 'manual'|'fraud'|string
 * @phpstan-type ReverseAffiliateCommissionResponse array{
 *     commission: AffiliateCommission,
 *     warnings?: list<string>,
 * }
 * @phpstan-type ReverseReason 'refund'|'dispute'|'fraud'|'manual'|'partner_deleted'|'blocked'|'expired'|'excluded'|string
 * @phpstan-type RollBackTemplateParams array{
 *     version: int,
 *     note?: string|null,
 * }
 * @phpstan-type RollBackTemplateResponse array{
 *     template: Template,
 *     version: TemplateVersion,
 *     warnings?: list<string>,
 * }
 * @phpstan-type RotateApiKeyParams array{
 *     grace_hours?: int|null,
 * }
 * @phpstan-type RotateApiKeyResponse array{
 *     api_key: ApiKey,
 *     secret: string,
 *     warnings?: list<string>,
 * }
 * @phpstan-type RotateSmtpCredentialParams array{
 *     grace_hours?: int|null,
 * }
 * @phpstan-type RotateSmtpCredentialResponse array{
 *     smtp_credential: SmtpCredential,
 *     password: string,
 *     warnings?: list<string>,
 * }
 * @phpstan-type RotateWebhookSecretParams array{
 *     grace_hours?: int|null,
 * }
 * @phpstan-type RotateWebhookSecretResponse array{
 *     webhook: Webhook,
 *     secret: string,
 *     warnings?: list<string>,
 * }
 * @phpstan-type SaveDnsCredentialsParams array{
 *     credentials: array<string, string>,
 * }
 * @phpstan-type SaveDnsCredentialsResponse array{
 *     dns_credentials: SavedDnsCredentials,
 *     warnings?: list<string>,
 * }
 * @phpstan-type SavedDnsCredentials array{
 *     provider: 'cloudflare'|'route53'|'digitalocean'|'hetzner'|'gandi'|'rfc2136'|'bunny'|'desec'|'dnsimple'|'gcore'|'godaddy'|'hostinger'|'infomaniak'|'ionos'|'linode'|'namecom'|'netlify'|'ns1'|'porkbun'|'scaleway'|'vercel'|'vultr'|string,
 *     saved_at: string,
 * }
 * @phpstan-type SavedDnsCredentialsList array{
 *     dns_credentials: list<SavedDnsCredentials>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type SendBatchParams array{
 *     emails: list<BatchItem>,
 * }
 * @phpstan-type SendBatchResponse array{
 *     data: list<BatchResult>,
 *     warnings?: list<string>,
 * }
 * @phpstan-type SendEmailParams array{
 *     from?: string|EmailAddress|null,
 *     to: string|list<string>,
 *     cc?: string|list<string>|null,
 *     bcc?: string|list<string>|null,
 *     reply_to?: string|list<string>|null,
 *     subject?: string|null,
 *     html?: string|null,
 *     text?: string|null,
 *     headers?: array<string, string>|null,
 *     tags?: list<EmailTag>|array<string, string>|null,
 *     attachments?: list<EmailAttachment>|null,
 *     category?: 'transactional'|'product'|'newsletter'|string|null,
 *     scheduled_at?: string|\DateTimeInterface|null,
 *     expires_in?: int|null,
 *     on_suppressed?: 'fail'|'skip'|string|null,
 *     unsubscribe?: bool|null,
 *     template?: string|EmailTemplate|null,
 *     variables?: array<string, mixed>|null,
 * }
 * @phpstan-type SendEventParams array{
 *     name?: string|null,
 *     type?: string|null,
 *     user_id?: string|null,
 *     email?: string|null,
 *     data?: array<string, mixed>|null,
 *     dry_run?: bool|null,
 *     test_send?: bool|null,
 *     automation_id?: string|null,
 * }
 * @phpstan-type SendEventResponse array{
 *     event: ProductEvent,
 *     matched_automations: int,
 *     resumed_runs: int,
 *     cancelled_runs: int,
 *     run?: AutomationRun,
 *     warnings?: list<string>,
 * }
 * @phpstan-type Sent array{
 *     id: string,
 *     status: 'sent'|'scheduled'|string,
 *     warnings?: list<string>,
 * }
 * @phpstan-type SentStatus 'sent'|'scheduled'|string
 * @phpstan-type SmtpCredential array{
 *     id: string,
 *     name: string,
 *     host: string,
 *     port: int,
 *     security: 'starttls'|'tls'|string,
 *     username: string,
 *     hint: string,
 *     enabled: bool,
 *     domain_id: string|null,
 *     allowed_ips: list<string>,
 *     last_used_at: string|null,
 *     last_used_ip: string|null,
 *     expires_at: string|null,
 *     policy: ClientPolicy|null,
 *     created_at: string,
 * }
 * @phpstan-type SmtpSecurity 'starttls'|'tls'|string
 * @phpstan-type SpamStatus 'not_checked'|'not_spam'|'spam'|string
 * @phpstan-type StepOutput array{
 *     email_id?: string,
 * }
 * @phpstan-type StreamEvent array{
 *     id: string,
 *     type: 'email.received'|'email.sent'|'email.delivered'|'email.delivery_delayed'|'email.bounced'|'email.complained'|'email.opened'|'email.clicked'|'email.failed'|'email.suppressed'|'email.scheduled'|'contact.unsubscribed'|'automation.started'|'automation.step_completed'|'automation.completed'|'automation.failed'|'email.cancelled'|'domain.verified'|'domain.degraded'|'suppression.created'|'suppression.deleted'|'webhook.disabled'|'affiliate.created'|'affiliate.approved'|'affiliate.updated'|'referral.created'|'referral.converted'|'commission.created'|'commission.earned'|'commission.reversed'|'commission.paid'|'payout.created'|'payout.paid'|'payout.failed'|string,
 *     created_at: string,
 *     data: array<string, mixed>,
 * }
 * @phpstan-type StreamEventList array{
 *     events: list<StreamEvent>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type Suppression array{
 *     id: string,
 *     email: string,
 *     reason: 'hard_bounce'|'soft_bounce'|'complaint'|'unsubscribe'|'smtp_failure'|'manual'|'import'|string,
 *     source: 'system'|'api'|'dashboard'|'recipient'|'import'|string,
 *     email_id: string|null,
 *     detail: SuppressionDetail|null,
 *     note: string|null,
 *     expires_at: string|null,
 *     created_at: string,
 * }
 * @phpstan-type SuppressionCheck array{
 *     email: string,
 *     suppressed: bool,
 *     reason: 'hard_bounce'|'soft_bounce'|'complaint'|'unsubscribe'|'smtp_failure'|'manual'|'import'|string|null,
 *     categories: list<'product'|'newsletter'|string>,
 *     suppression_id: string|null,
 *     expires_at: string|null,
 *     error?: SuppressionCheckError,
 * }
 * @phpstan-type SuppressionCheckError array{
 *     message: string,
 *     code: string,
 *     details?: array<string, mixed>,
 *     upgrade_url?: string,
 * }
 * @phpstan-type SuppressionCreatedData array{
 *     event_id?: string,
 *     suppression_id?: string,
 *     email?: string,
 *     reason?: string,
 *     source?: string,
 *     email_id?: string|null,
 *     expires_at?: string|null,
 *     created_at?: string,
 * }
 * @phpstan-type SuppressionDeletedData array{
 *     event_id?: string,
 *     suppression_id?: string,
 *     email?: string,
 *     reason?: string,
 *     source?: string,
 *     email_id?: string|null,
 *     expires_at?: string|null,
 *     created_at?: string,
 * }
 * @phpstan-type SuppressionDetail array{
 *     smtp_code: int|null,
 *     enhanced_code: string|null,
 *     diagnostic: string,
 * }
 * @phpstan-type SuppressionImport array{
 *     id: string,
 *     status: 'queued'|'running'|'completed'|'failed'|string,
 *     counts: SuppressionImportCounts,
 *     errors: list<SuppressionImportError>,
 *     created_at: string,
 *     completed_at: string|null,
 * }
 * @phpstan-type SuppressionImportCounts array{
 *     total: int,
 *     processed: int,
 *     created: int,
 *     exists: int,
 *     invalid: int,
 *     refused: int,
 * }
 * @phpstan-type SuppressionImportError array{
 *     line: int,
 *     message: string,
 * }
 * @phpstan-type SuppressionImportForecast array{
 *     counts: SuppressionImportForecastCounts,
 *     left_out: list<SuppressionImportForecastLeftOut>,
 *     lines: list<SuppressionImportForecastLeftOut>,
 * }
 * @phpstan-type SuppressionImportForecastCounts array{
 *     total: int,
 *     created: int,
 *     exists: int,
 *     repeated: int,
 *     invalid: int,
 *     refused: int,
 * }
 * @phpstan-type SuppressionImportForecastLeftOut array{
 *     line: int,
 *     email: string|null,
 *     reason: 'hard_bounce'|'soft_bounce'|'complaint'|'unsubscribe'|'smtp_failure'|'manual'|'import'|string|null,
 *     result: 'created'|'exists'|'repeated'|'invalid'|string,
 *     existing_reason: 'hard_bounce'|'soft_bounce'|'complaint'|'unsubscribe'|'smtp_failure'|'manual'|'import'|string|null,
 *     message: string|null,
 * }
 * @phpstan-type SuppressionImportForecastLeftOutExistingReason 'hard_bounce'|'soft_bounce'|'complaint'|'unsubscribe'|'smtp_failure'|'manual'|'import'|string
 * @phpstan-type SuppressionImportForecastLeftOutResult 'created'|'exists'|'repeated'|'invalid'|string
 * @phpstan-type SuppressionImportList array{
 *     imports: list<SuppressionImport>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type SuppressionImportStatus 'queued'|'running'|'completed'|'failed'|string
 * @phpstan-type SuppressionList array{
 *     suppressions: list<Suppression>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type SuppressionReason 'hard_bounce'|'soft_bounce'|'complaint'|'unsubscribe'|'smtp_failure'|'manual'|'import'|string
 * @phpstan-type SuppressionResult array{
 *     index: int,
 *     id: string|null,
 *     status: 'created'|'exists'|'failed'|string,
 *     warnings?: list<string>,
 *     error?: SuppressionResultError,
 * }
 * @phpstan-type SuppressionResultError array{
 *     message: string,
 *     code: string,
 *     details?: array<string, mixed>,
 *     upgrade_url?: string,
 * }
 * @phpstan-type SuppressionResultStatus 'created'|'exists'|'failed'|string
 * @phpstan-type SuppressionSource 'system'|'api'|'dashboard'|'recipient'|'import'|string
 * @phpstan-type SuspendAffiliateParams array{
 *     reason?: string|null,
 * }
 * @phpstan-type SuspendAffiliateResponse array{
 *     affiliate: Affiliate,
 *     warnings?: list<string>,
 * }
 * @phpstan-type Template array{
 *     id: string,
 *     alias: string|null,
 *     name: string,
 *     category: 'transactional'|'product'|'newsletter'|string,
 *     unsubscribe_enabled: bool,
 *     from: string|null,
 *     reply_to: list<string>,
 *     subject: string|null,
 *     preheader: string|null,
 *     html?: string|null,
 *     mjml?: string|null,
 *     text?: string|null,
 *     variables: list<TemplateVariable>,
 *     status: 'draft'|'published'|'archived'|string,
 *     draft_version: int,
 *     published_version: int|null,
 *     has_unpublished_changes: bool,
 *     published_at: string|null,
 *     created_at: string,
 *     updated_at: string,
 * }
 * @phpstan-type TemplateList array{
 *     templates: list<Template>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type TemplatePreview array{
 *     subject: string|null,
 *     html: string|null,
 *     text: string|null,
 *     missing_variables: list<string>,
 *     unused_variables: list<string>,
 *     suggested_variables: array<string, mixed>,
 *     warnings: list<string>,
 *     size_bytes: int,
 * }
 * @phpstan-type TemplateStatus 'draft'|'published'|'archived'|string
 * @phpstan-type TemplateVariable array{
 *     key: string,
 *     type?: 'string'|'number'|'boolean'|'object'|'list'|string,
 *     required?: bool,
 *     fallback_value?: mixed,
 * }
 * @phpstan-type TemplateVariableType 'string'|'number'|'boolean'|'object'|'list'|string
 * @phpstan-type TemplateVersion array{
 *     number: int,
 *     note: string|null,
 *     published_at: string,
 *     published_by: string,
 * }
 * @phpstan-type TemplateVersionDetail array{
 *     number: int,
 *     note: string|null,
 *     published_at: string,
 *     published_by: string,
 *     category: 'transactional'|'product'|'newsletter'|string,
 *     unsubscribe_enabled: bool,
 *     from: string|null,
 *     reply_to: list<string>,
 *     subject: string|null,
 *     preheader: string|null,
 *     html: string|null,
 *     mjml: string|null,
 *     text: string|null,
 *     variables: list<TemplateVariable>,
 * }
 * @phpstan-type TemplateVersionList array{
 *     versions: list<TemplateVersion>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type TestEventParams array{
 *     event: string,
 *     email_id?: string|null,
 *     deliver?: bool|null,
 * }
 * @phpstan-type TestEventResponse array{
 *     payload: TestedEventPayload,
 *     queued: bool,
 *     deliveries: list<TestedEventDelivery>,
 *     warnings?: list<string>,
 * }
 * @phpstan-type TestTemplateParams array{
 *     to: string|list<string>,
 *     from?: string|EmailAddress|null,
 *     variables?: array<string, mixed>|null,
 *     version?: 'draft'|string|int|null,
 * }
 * @phpstan-type TestWebhookParams array{
 *     event: string,
 * }
 * @phpstan-type TestWebhookResponse array{
 *     delivery: WebhookDelivery,
 *     warnings?: list<string>,
 * }
 * @phpstan-type TestedEventDelivery array{
 *     id: string,
 *     webhook_id: string,
 *     url: string,
 *     status: 'pending'|'delivered'|'failed'|string,
 * }
 * @phpstan-type TestedEventPayload array{
 *     type: string,
 *     created_at: string,
 *     data: array<string, mixed>,
 * }
 * @phpstan-type TlsMode 'opportunistic'|'enforced'|string
 * @phpstan-type UnsavedTemplateDraft array{
 *     name?: string|null,
 *     alias?: string|null,
 *     category?: 'transactional'|'product'|'newsletter'|string|null,
 *     unsubscribe_enabled?: bool|null,
 *     from?: string|EmailAddress|null,
 *     reply_to?: string|list<string>|null,
 *     subject?: string|null,
 *     preheader?: string|null,
 *     html?: string|null,
 *     mjml?: string|null,
 *     text?: string|null,
 *     variables?: list<TemplateVariable>|null,
 * }
 * @phpstan-type UpdateAffiliateCampaignParams array{
 *     name?: string|null,
 *     visibility?: 'public'|'private'|'unlisted'|string|null,
 *     auto_approve?: bool|null,
 *     commission_type?: 'percent'|'flat'|string|null,
 *     commission_bps?: int|null,
 *     commission_flat_cents?: int|null,
 *     commission_duration?: 'once'|'recurring'|string|null,
 *     recurring_months?: int|null,
 *     max_commission_cents?: int|null,
 *     tiers?: list<AffiliateCampaignTier>|null,
 *     product_rates?: list<CreateAffiliateCampaignProductRate>|null,
 *     second_tier_bps?: int|null,
 *     lead_bounty_cents?: int|null,
 *     cookie_days?: int|null,
 *     hold_days?: int|null,
 *     archived_at?: string|\DateTimeInterface|null,
 *     make_default?: bool|null,
 * }
 * @phpstan-type UpdateAffiliateCampaignResponse array{
 *     campaign: AffiliateCampaign,
 *     warnings?: list<string>,
 * }
 * @phpstan-type UpdateAffiliateParams array{
 *     first_name?: string|null,
 *     last_name?: string|null,
 *     company?: string|null,
 *     website?: string|null,
 *     country?: string|null,
 *     campaign_id?: string|null,
 *     tags?: list<string>|null,
 *     notes?: string|null,
 *     parent_affiliate_id?: string|null,
 *     postback_url?: string|null,
 *     email_opt_out?: bool|null,
 *     commission_override?: CommissionOverride|null,
 *     token?: string|null,
 * }
 * @phpstan-type UpdateAffiliateResponse array{
 *     affiliate: Affiliate,
 *     warnings?: list<string>,
 * }
 * @phpstan-type UpdateApiKeyParams array{
 *     name?: string|null,
 *     allowed_ips?: list<string>|null,
 *     enabled?: bool|null,
 *     policy?: ClientPolicyRequest|null,
 * }
 * @phpstan-type UpdateApiKeyResponse array{
 *     api_key: ApiKey,
 *     warnings?: list<string>,
 * }
 * @phpstan-type UpdateAutomationParams array{
 *     action?: 'activate'|'pause'|'archive'|'cancel_runs'|string|null,
 *     name?: string|null,
 *     trigger?: AutomationTrigger|null,
 *     steps?: list<AutomationStep>|null,
 * }
 * @phpstan-type UpdateAutomationResponse array{
 *     automation: Automation,
 *     warnings?: list<string>,
 * }
 * @phpstan-type UpdateDomainParams array{
 *     open_tracking?: bool|null,
 *     click_tracking?: bool|null,
 *     tls_mode?: 'opportunistic'|'enforced'|string|null,
 *     inbound_enabled?: bool|null,
 *     inbound_addresses?: list<string>|null,
 *     tracking_host?: string|null,
 * }
 * @phpstan-type UpdateDomainResponse array{
 *     domain: Domain,
 *     warnings?: list<string>,
 * }
 * @phpstan-type UpdateEmailParams array{
 *     scheduled_at?: string|\DateTimeInterface|null,
 *     cancel?: bool|null,
 * }
 * @phpstan-type UpdateEmailResponse array{
 *     email: EmailDetail,
 *     warnings?: list<string>,
 * }
 * @phpstan-type UpdateSmtpCredentialParams array{
 *     name?: string|null,
 *     allowed_ips?: list<string>|null,
 *     enabled?: bool|null,
 *     policy?: ClientPolicyRequest|null,
 * }
 * @phpstan-type UpdateSmtpCredentialResponse array{
 *     smtp_credential: SmtpCredential,
 *     warnings?: list<string>,
 * }
 * @phpstan-type UpdateTemplateParams array{
 *     name?: string|null,
 *     alias?: string|null,
 *     category?: 'transactional'|'product'|'newsletter'|string|null,
 *     unsubscribe_enabled?: bool|null,
 *     from?: string|EmailAddress|null,
 *     reply_to?: string|list<string>|null,
 *     subject?: string|null,
 *     preheader?: string|null,
 *     html?: string|null,
 *     mjml?: string|null,
 *     text?: string|null,
 *     variables?: list<TemplateVariable>|null,
 *     status?: 'draft'|'published'|'archived'|string|null,
 *     if_version?: int|null,
 * }
 * @phpstan-type UpdateTemplateResponse array{
 *     template: Template,
 *     warnings?: list<string>,
 * }
 * @phpstan-type UpdateWebhookParams array{
 *     url?: string|null,
 *     events?: list<'email.received'|'email.sent'|'email.delivered'|'email.delivery_delayed'|'email.bounced'|'email.complained'|'email.opened'|'email.clicked'|'email.failed'|'email.suppressed'|'email.scheduled'|'contact.unsubscribed'|'automation.started'|'automation.step_completed'|'automation.completed'|'automation.failed'|'email.cancelled'|'domain.verified'|'domain.degraded'|'suppression.created'|'suppression.deleted'|'webhook.disabled'|'affiliate.created'|'affiliate.approved'|'affiliate.updated'|'referral.created'|'referral.converted'|'commission.created'|'commission.earned'|'commission.reversed'|'commission.paid'|'payout.created'|'payout.paid'|'payout.failed'|string>|null,
 *     enabled?: bool|null,
 *     description?: string|null,
 *     domain_ids?: list<string>|null,
 *     inbound_addresses?: list<string>|null,
 *     retry_policy?: 'default'|'extended'|string|null,
 * }
 * @phpstan-type UpdateWebhookResponse array{
 *     webhook: Webhook,
 *     warnings?: list<string>,
 * }
 * @phpstan-type VerifiedDomain array{
 *     domain: Domain,
 *     verified: bool,
 * }
 * @phpstan-type VisitCounts array{
 *     totals: list<VisitCountsTotal>,
 *     visits: list<VisitCountsVisit>,
 * }
 * @phpstan-type VisitCountsTotal array{
 *     source: string,
 *     visits: int,
 *     visitors: int,
 *     sign_ups: int,
 *     subscriptions: int,
 * }
 * @phpstan-type VisitCountsVisit array{
 *     period_start: string,
 *     source: string,
 *     visits: int,
 *     visitors: int,
 *     sign_ups: int,
 *     subscriptions: int,
 * }
 * @phpstan-type WaitReason array{
 *     cause: 'scheduled_at'|'not_allowed'|'held'|'account_suspended'|'queue_held'|'paused'|'suspended'|'schedule'|'other_node'|'resting'|'unreachable'|'rate'|'warm_up'|'connections'|'turn'|'reply'|'look_up'|'memory'|string,
 *     text: string,
 *     destination: string|null,
 *     place: int|null,
 *     until: string|null,
 * }
 * @phpstan-type WaitReasonCause 'scheduled_at'|'not_allowed'|'held'|'account_suspended'|'queue_held'|'paused'|'suspended'|'schedule'|'other_node'|'resting'|'unreachable'|'rate'|'warm_up'|'connections'|'turn'|'reply'|'look_up'|'memory'|string
 * @phpstan-type Webhook array{
 *     id: string,
 *     url: string,
 *     events: list<string>,
 *     enabled: bool,
 *     description: string|null,
 *     domain_ids: list<string>,
 *     inbound_addresses: list<string>,
 *     retry_policy: 'default'|'extended'|string,
 *     failing_since: string|null,
 *     disabled_reason: 'gone'|'failing'|'customer'|string|null,
 *     created_at: string,
 *     updated_at: string,
 * }
 * @phpstan-type WebhookAttempt array{
 *     n: int,
 *     at: string,
 *     response_status: int|null,
 *     response_body: string,
 *     duration_ms: int,
 *     error: string|null,
 * }
 * @phpstan-type WebhookDelivery array{
 *     id: string,
 *     webhook_id: string,
 *     event_id: string,
 *     type: string,
 *     status: 'pending'|'delivered'|'failed'|string,
 *     attempts_count: int,
 *     next_attempt_at: string|null,
 *     response_status: int|null,
 *     created_at: string,
 *     delivered_at: string|null,
 * }
 * @phpstan-type WebhookDeliveryList array{
 *     deliveries: list<WebhookDelivery>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type WebhookDeliveryStatus 'pending'|'delivered'|'failed'|string
 * @phpstan-type WebhookDisabledData array{
 *     event_id?: string,
 *     webhook_id?: string,
 *     url?: string,
 *     disabled_reason?: string,
 *     failing_since?: string,
 * }
 * @phpstan-type WebhookDisabledReason 'gone'|'failing'|'customer'|string
 * @phpstan-type WebhookEventType 'email.received'|'email.sent'|'email.delivered'|'email.delivery_delayed'|'email.bounced'|'email.complained'|'email.opened'|'email.clicked'|'email.failed'|'email.suppressed'|'email.scheduled'|'contact.unsubscribed'|'automation.started'|'automation.step_completed'|'automation.completed'|'automation.failed'|'email.cancelled'|'domain.verified'|'domain.degraded'|'suppression.created'|'suppression.deleted'|'webhook.disabled'|'affiliate.created'|'affiliate.approved'|'affiliate.updated'|'referral.created'|'referral.converted'|'commission.created'|'commission.earned'|'commission.reversed'|'commission.paid'|'payout.created'|'payout.paid'|'payout.failed'|string
 * @phpstan-type WebhookList array{
 *     webhooks: list<Webhook>,
 *     has_more: bool,
 *     next_cursor: string|null,
 * }
 * @phpstan-type WebhookRetryPolicy 'default'|'extended'|string
 * @phpstan-type WholeWebhookDelivery array{
 *     id: string,
 *     webhook_id: string,
 *     event_id: string,
 *     type: string,
 *     status: 'pending'|'delivered'|'failed'|string,
 *     attempts_count: int,
 *     next_attempt_at: string|null,
 *     response_status: int|null,
 *     created_at: string,
 *     delivered_at: string|null,
 *     payload: array<string, mixed>|null,
 *     attempts: list<WebhookAttempt>,
 * }
 */
final class Types
{
}
