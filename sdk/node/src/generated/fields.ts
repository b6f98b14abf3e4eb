// Generated from sdk/operations.json by sdk/generate; do not edit.

// The API's names of fields of requests, where they differ from camelCase.

import type { Fields } from "../operation.js";

export const AffiliateCampaignTier = (): Fields => ({
  minPaidCustomers: ["min_paid_customers"],
  commissionBps: ["commission_bps"],
  commissionFlatCents: ["commission_flat_cents"],
});

export const ApplyDomainDnsParams = (): Fields => ({
  useSaved: ["use_saved"],
  dryRun: ["dry_run"],
  mergeSpf: ["merge_spf"],
});

export const ApproveAffiliateParams = (): Fields => ({
  sendEmail: ["send_email"],
});

export const AutomationCondition = (): Fields => ({
  all: ["all", ConditionTerm],
  any: ["any", ConditionTerm],
});

export const AutomationStep = (): Fields => ({
  "*": [""],
});

export const AutomationTrigger = (): Fields => ({
  filter: ["filter", AutomationCondition],
  cancelOnEvents: ["cancel_on_events"],
  includeMachine: ["include_machine"],
});

export const BatchItem = (): Fields => ({
  from: ["from", EmailAddress],
  replyTo: ["reply_to"],
  tags: ["tags", EmailTag],
  scheduledAt: ["scheduled_at"],
  expiresIn: ["expires_in"],
  onSuppressed: ["on_suppressed"],
  template: ["template", EmailTemplate],
  idempotencyKey: ["idempotency_key"],
});

export const CheckSuppressionsParams = (): Fields => ({
});

export const ClientPolicyRequest = (): Fields => ({
  sendsPerDay: ["sends_per_day"],
});

export const CommissionOverride = (): Fields => ({
  commissionType: ["commission_type"],
  commissionBps: ["commission_bps"],
});

export const ConditionTerm = (): Fields => ({
});

export const CountAutomationStepsParams = (): Fields => ({
});

export const CountEventsParams = (): Fields => ({
});

export const CountVisitsParams = (): Fields => ({
});

export const CreateAffiliateCampaignParams = (): Fields => ({
  autoApprove: ["auto_approve"],
  commissionType: ["commission_type"],
  commissionBps: ["commission_bps"],
  commissionFlatCents: ["commission_flat_cents"],
  commissionDuration: ["commission_duration"],
  recurringMonths: ["recurring_months"],
  maxCommissionCents: ["max_commission_cents"],
  tiers: ["tiers", AffiliateCampaignTier],
  productRates: ["product_rates", CreateAffiliateCampaignProductRate],
  secondTierBps: ["second_tier_bps"],
  leadBountyCents: ["lead_bounty_cents"],
  cookieDays: ["cookie_days"],
  holdDays: ["hold_days"],
  archivedAt: ["archived_at"],
  makeDefault: ["make_default"],
});

export const CreateAffiliateCampaignProductRate = (): Fields => ({
  productId: ["product_id"],
  priceId: ["price_id"],
  commissionType: ["commission_type"],
  commissionBps: ["commission_bps"],
  commissionFlatCents: ["commission_flat_cents"],
});

export const CreateAffiliateLinkParams = (): Fields => ({
  destinationUrl: ["destination_url"],
});

export const CreateAffiliateParams = (): Fields => ({
  firstName: ["first_name"],
  lastName: ["last_name"],
  campaignId: ["campaign_id"],
  paypalEmail: ["paypal_email"],
  sendInvite: ["send_invite"],
});

export const CreateAffiliateReferralParams = (): Fields => ({
  affiliateId: ["affiliate_id"],
  processorCustomerId: ["processor_customer_id"],
  subId: ["sub_id"],
});

export const CreateApiKeyParams = (): Fields => ({
  domainId: ["domain_id"],
  allowedIps: ["allowed_ips"],
  expiresAt: ["expires_at"],
  policy: ["policy", ClientPolicyRequest],
});

export const CreateAutomationParams = (): Fields => ({
  trigger: ["trigger", AutomationTrigger],
  steps: ["steps", AutomationStep],
});

export const CreateCategoryOptOutParams = (): Fields => ({
});

export const CreateDomainClaimParams = (): Fields => ({
});

export const CreateDomainParams = (): Fields => ({
  openTracking: ["open_tracking"],
  clickTracking: ["click_tracking"],
  tlsMode: ["tls_mode"],
  inboundEnabled: ["inbound_enabled"],
  inboundAddresses: ["inbound_addresses"],
  trackingHost: ["tracking_host"],
  dkimSelector: ["dkim_selector"],
  dkimPrivateKey: ["dkim_private_key"],
});

export const CreateSmtpCredentialParams = (): Fields => ({
  domainId: ["domain_id"],
  allowedIps: ["allowed_ips"],
  expiresAt: ["expires_at"],
  policy: ["policy", ClientPolicyRequest],
});

export const CreateSuppressionParams = (): Fields => ({
  expiresAt: ["expires_at"],
});

export const CreateTemplateParams = (): Fields => ({
  unsubscribeEnabled: ["unsubscribe_enabled"],
  from: ["from", EmailAddress],
  replyTo: ["reply_to"],
  variables: ["variables", TemplateVariable],
});

export const CreateWebhookParams = (): Fields => ({
  domainIds: ["domain_ids"],
  inboundAddresses: ["inbound_addresses"],
  retryPolicy: ["retry_policy"],
});

export const DeleteDomainParams = (): Fields => ({
});

export const DeleteSuppressionParams = (): Fields => ({
});

export const DryRunAutomationParams = (): Fields => ({
  trigger: ["trigger", AutomationTrigger],
  steps: ["steps", AutomationStep],
  userId: ["user_id"],
});

export const DryRunSuppressionImportParams = (): Fields => ({
});

export const DuplicateAutomationParams = (): Fields => ({
});

export const DuplicateTemplateParams = (): Fields => ({
});

export const EmailAddress = (): Fields => ({
});

export const EmailAttachment = (): Fields => ({
  contentType: ["content_type"],
  contentId: ["content_id"],
});

export const EmailTag = (): Fields => ({
});

export const EmailTemplate = (): Fields => ({
});

export const ExportSuppressionsParams = (): Fields => ({
  createdAfter: ["created_after"],
  createdBefore: ["created_before"],
});

export const ForwardReceivedEmailParams = (): Fields => ({
});

export const GetDomainDmarcParams = (): Fields => ({
});

export const GetEmailMetricsParams = (): Fields => ({
});

export const GetFunnelParams = (): Fields => ({
  groupBy: ["group_by"],
});

export const GetReceivedEmailParams = (): Fields => ({
});

export const ImportSuppressionsParams = (): Fields => ({
});

export const ListAffiliateCampaignsParams = (): Fields => ({
  includeArchived: ["include_archived"],
});

export const ListAffiliateCommissionsParams = (): Fields => ({
  affiliateId: ["affiliate_id"],
  referralId: ["referral_id"],
  payoutId: ["payout_id"],
  createdAfter: ["created_after"],
  createdBefore: ["created_before"],
});

export const ListAffiliateLinksParams = (): Fields => ({
});

export const ListAffiliatePayoutsParams = (): Fields => ({
  affiliateId: ["affiliate_id"],
  runId: ["run_id"],
});

export const ListAffiliateReferralsParams = (): Fields => ({
  affiliateId: ["affiliate_id"],
  createdAfter: ["created_after"],
  createdBefore: ["created_before"],
});

export const ListAffiliatesParams = (): Fields => ({
  campaignId: ["campaign_id"],
});

export const ListApiKeysParams = (): Fields => ({
});

export const ListApprovalsParams = (): Fields => ({
});

export const ListAuditLogParams = (): Fields => ({
  apiKeyId: ["api_key_id"],
  grantId: ["grant_id"],
  userId: ["user_id"],
  objectId: ["object_id"],
  createdAfter: ["created_after"],
  createdBefore: ["created_before"],
});

export const ListAutomationRunsParams = (): Fields => ({
  userId: ["user_id"],
});

export const ListAutomationVersionsParams = (): Fields => ({
});

export const ListAutomationsParams = (): Fields => ({
});

export const ListCategoryOptOutsParams = (): Fields => ({
});

export const ListConversionsParams = (): Fields => ({
  userId: ["user_id"],
  createdAfter: ["created_after"],
  createdBefore: ["created_before"],
});

export const ListDomainClaimsParams = (): Fields => ({
});

export const ListDomainsParams = (): Fields => ({
});

export const ListEmailAttemptsParams = (): Fields => ({
});

export const ListEmailEventsParams = (): Fields => ({
});

export const ListEmailsParams = (): Fields => ({
  domainId: ["domain_id"],
  createdAfter: ["created_after"],
  createdBefore: ["created_before"],
});

export const ListEventsParams = (): Fields => ({
  userId: ["user_id"],
  createdAfter: ["created_after"],
  createdBefore: ["created_before"],
});

export const ListGrantsParams = (): Fields => ({
});

export const ListLogsParams = (): Fields => ({
  apiKeyId: ["api_key_id"],
  userId: ["user_id"],
  createdAfter: ["created_after"],
  createdBefore: ["created_before"],
});

export const ListReceivedEmailsParams = (): Fields => ({
  domainId: ["domain_id"],
  spamStatus: ["spam_status"],
  receivedAfter: ["received_after"],
  receivedBefore: ["received_before"],
});

export const ListSmtpCredentialsParams = (): Fields => ({
});

export const ListSuppressionImportsParams = (): Fields => ({
});

export const ListSuppressionsParams = (): Fields => ({
  createdAfter: ["created_after"],
  createdBefore: ["created_before"],
});

export const ListTemplateVersionsParams = (): Fields => ({
});

export const ListTemplatesParams = (): Fields => ({
});

export const ListWebhookDeliveriesParams = (): Fields => ({
  createdAfter: ["created_after"],
  createdBefore: ["created_before"],
});

export const ListWebhookEventsParams = (): Fields => ({
});

export const ListWebhooksParams = (): Fields => ({
});

export const MarkAffiliatePayoutPaidParams = (): Fields => ({
});

export const PreviewTemplateParams = (): Fields => ({
  changes: ["changes", UnsavedTemplateDraft],
});

export const PublishTemplateParams = (): Fields => ({
});

export const RejectAffiliateParams = (): Fields => ({
  sendEmail: ["send_email"],
});

export const ReplayAutomationParams = (): Fields => ({
  trigger: ["trigger", AutomationTrigger],
  steps: ["steps", AutomationStep],
});

export const ReplayWebhookDeliveriesParams = (): Fields => ({
});

export const ReplyToReceivedEmailParams = (): Fields => ({
});

export const ResendEmailParams = (): Fields => ({
});

export const ReverseAffiliateCommissionParams = (): Fields => ({
});

export const RollBackTemplateParams = (): Fields => ({
});

export const RotateApiKeyParams = (): Fields => ({
  graceHours: ["grace_hours"],
});

export const RotateSmtpCredentialParams = (): Fields => ({
  graceHours: ["grace_hours"],
});

export const RotateWebhookSecretParams = (): Fields => ({
  graceHours: ["grace_hours"],
});

export const SaveDnsCredentialsParams = (): Fields => ({
});

export const SendBatchParams = (): Fields => ({
  emails: ["emails", BatchItem],
});

export const SendEmailParams = (): Fields => ({
  from: ["from", EmailAddress],
  replyTo: ["reply_to"],
  tags: ["tags", EmailTag],
  attachments: ["attachments", EmailAttachment],
  scheduledAt: ["scheduled_at"],
  expiresIn: ["expires_in"],
  onSuppressed: ["on_suppressed"],
  template: ["template", EmailTemplate],
});

export const SendEventParams = (): Fields => ({
  userId: ["user_id"],
  dryRun: ["dry_run"],
  testSend: ["test_send"],
  automationId: ["automation_id"],
});

export const SuspendAffiliateParams = (): Fields => ({
});

export const TemplateVariable = (): Fields => ({
  fallbackValue: ["fallback_value"],
});

export const TestEventParams = (): Fields => ({
  emailId: ["email_id"],
});

export const TestTemplateParams = (): Fields => ({
  from: ["from", EmailAddress],
});

export const TestWebhookParams = (): Fields => ({
});

export const UnsavedTemplateDraft = (): Fields => ({
  unsubscribeEnabled: ["unsubscribe_enabled"],
  from: ["from", EmailAddress],
  replyTo: ["reply_to"],
  variables: ["variables", TemplateVariable],
});

export const UpdateAffiliateCampaignParams = (): Fields => ({
  autoApprove: ["auto_approve"],
  commissionType: ["commission_type"],
  commissionBps: ["commission_bps"],
  commissionFlatCents: ["commission_flat_cents"],
  commissionDuration: ["commission_duration"],
  recurringMonths: ["recurring_months"],
  maxCommissionCents: ["max_commission_cents"],
  tiers: ["tiers", AffiliateCampaignTier],
  productRates: ["product_rates", CreateAffiliateCampaignProductRate],
  secondTierBps: ["second_tier_bps"],
  leadBountyCents: ["lead_bounty_cents"],
  cookieDays: ["cookie_days"],
  holdDays: ["hold_days"],
  archivedAt: ["archived_at"],
  makeDefault: ["make_default"],
});

export const UpdateAffiliateParams = (): Fields => ({
  firstName: ["first_name"],
  lastName: ["last_name"],
  campaignId: ["campaign_id"],
  parentAffiliateId: ["parent_affiliate_id"],
  postbackUrl: ["postback_url"],
  emailOptOut: ["email_opt_out"],
  commissionOverride: ["commission_override", CommissionOverride],
});

export const UpdateApiKeyParams = (): Fields => ({
  allowedIps: ["allowed_ips"],
  policy: ["policy", ClientPolicyRequest],
});

export const UpdateAutomationParams = (): Fields => ({
  trigger: ["trigger", AutomationTrigger],
  steps: ["steps", AutomationStep],
});

export const UpdateDomainParams = (): Fields => ({
  openTracking: ["open_tracking"],
  clickTracking: ["click_tracking"],
  tlsMode: ["tls_mode"],
  inboundEnabled: ["inbound_enabled"],
  inboundAddresses: ["inbound_addresses"],
  trackingHost: ["tracking_host"],
});

export const UpdateEmailParams = (): Fields => ({
  scheduledAt: ["scheduled_at"],
});

export const UpdateSmtpCredentialParams = (): Fields => ({
  allowedIps: ["allowed_ips"],
  policy: ["policy", ClientPolicyRequest],
});

export const UpdateTemplateParams = (): Fields => ({
  unsubscribeEnabled: ["unsubscribe_enabled"],
  from: ["from", EmailAddress],
  replyTo: ["reply_to"],
  variables: ["variables", TemplateVariable],
  ifVersion: ["if_version"],
});

export const UpdateWebhookParams = (): Fields => ({
  domainIds: ["domain_ids"],
  inboundAddresses: ["inbound_addresses"],
  retryPolicy: ["retry_policy"],
});
