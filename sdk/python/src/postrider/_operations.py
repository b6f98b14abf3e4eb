# Generated from sdk/operations.json by sdk/generate; do not edit.

"""The operations of the API."""

from ._exchange import Operation

SEND_EMAIL = Operation(
    "emails.send",
    "POST",
    "/emails",
    has_body=True,
    idempotent=True,
    retry=True,
)
SEND_BATCH = Operation(
    "emails.sendBatch",
    "POST",
    "/emails/batch",
    has_body=True,
    idempotent=True,
    retry=True,
)
LIST_EMAILS = Operation(
    "emails.list",
    "GET",
    "/emails",
    query=frozenset(["limit", "cursor", "status", "to", "from", "tag", "category", "template", "domain_id", "q", "created_after", "created_before"]),
    repeated=frozenset(["tag"]),
    items="emails",
    retry=True,
)
GET_EMAIL_METRICS = Operation(
    "emails.metrics",
    "GET",
    "/emails/metrics",
    query=frozenset(["from", "to", "granularity", "dimensions", "domain", "category", "metrics"]),
    retry=True,
)
GET_EMAIL = Operation(
    "emails.get",
    "GET",
    "/emails/{id}",
    retry=True,
)
UPDATE_EMAIL = Operation(
    "emails.update",
    "PATCH",
    "/emails/{id}",
    has_body=True,
    retry=True,
)
CANCEL_EMAIL = Operation(
    "emails.cancel",
    "POST",
    "/emails/{id}/cancel",
)
RESEND_EMAIL = Operation(
    "emails.resend",
    "POST",
    "/emails/{id}/resend",
    has_body=True,
    idempotent=True,
    retry=True,
)
TEST_EVENT = Operation(
    "emails.testEvent",
    "POST",
    "/emails/test",
    has_body=True,
)
LIST_EMAIL_EVENTS = Operation(
    "emails.events.list",
    "GET",
    "/emails/{id}/events",
    query=frozenset(["limit", "cursor"]),
    items="events",
    retry=True,
)
LIST_EMAIL_ATTEMPTS = Operation(
    "emails.attempts.list",
    "GET",
    "/emails/{id}/attempts",
    query=frozenset(["limit", "cursor"]),
    items="attempts",
    retry=True,
)
GET_EMAIL_ATTACHMENT = Operation(
    "emails.attachments.get",
    "GET",
    "/emails/{id}/attachments/{att_id}",
    answer="application/octet-stream",
    retry=True,
)
GET_EMAIL_RAW = Operation(
    "emails.raw",
    "GET",
    "/emails/{id}/raw",
    answer="message/rfc822",
    retry=True,
)
GET_ACCOUNT = Operation(
    "account.get",
    "GET",
    "/account",
    retry=True,
)
LIST_LOGS = Operation(
    "logs.list",
    "GET",
    "/logs",
    query=frozenset(["limit", "cursor", "method", "status", "path", "operation", "api_key_id", "user_id", "created_after", "created_before"]),
    items="logs",
    retry=True,
)
GET_LOG = Operation(
    "logs.get",
    "GET",
    "/logs/{id}",
    retry=True,
)
CREATE_API_KEY = Operation(
    "apiKeys.create",
    "POST",
    "/api-keys",
    has_body=True,
)
LIST_API_KEYS = Operation(
    "apiKeys.list",
    "GET",
    "/api-keys",
    query=frozenset(["limit", "cursor"]),
    items="api_keys",
    retry=True,
)
GET_API_KEY = Operation(
    "apiKeys.get",
    "GET",
    "/api-keys/{id}",
    retry=True,
)
UPDATE_API_KEY = Operation(
    "apiKeys.update",
    "PATCH",
    "/api-keys/{id}",
    has_body=True,
    retry=True,
)
DELETE_API_KEY = Operation(
    "apiKeys.delete",
    "DELETE",
    "/api-keys/{id}",
    retry=True,
)
ROTATE_API_KEY = Operation(
    "apiKeys.rotate",
    "POST",
    "/api-keys/{id}/rotate",
    has_body=True,
)
CREATE_SMTP_CREDENTIAL = Operation(
    "smtpCredentials.create",
    "POST",
    "/smtp-credentials",
    has_body=True,
)
LIST_SMTP_CREDENTIALS = Operation(
    "smtpCredentials.list",
    "GET",
    "/smtp-credentials",
    query=frozenset(["limit", "cursor"]),
    items="smtp_credentials",
    retry=True,
)
GET_SMTP_CREDENTIAL = Operation(
    "smtpCredentials.get",
    "GET",
    "/smtp-credentials/{id}",
    retry=True,
)
UPDATE_SMTP_CREDENTIAL = Operation(
    "smtpCredentials.update",
    "PATCH",
    "/smtp-credentials/{id}",
    has_body=True,
    retry=True,
)
DELETE_SMTP_CREDENTIAL = Operation(
    "smtpCredentials.delete",
    "DELETE",
    "/smtp-credentials/{id}",
    retry=True,
)
ROTATE_SMTP_CREDENTIAL = Operation(
    "smtpCredentials.rotate",
    "POST",
    "/smtp-credentials/{id}/rotate",
    has_body=True,
)
CREATE_DOMAIN = Operation(
    "domains.create",
    "POST",
    "/domains",
    has_body=True,
)
LIST_DOMAINS = Operation(
    "domains.list",
    "GET",
    "/domains",
    query=frozenset(["limit", "cursor", "status", "q"]),
    items="domains",
    retry=True,
)
GET_DOMAIN = Operation(
    "domains.get",
    "GET",
    "/domains/{id_or_name}",
    retry=True,
)
UPDATE_DOMAIN = Operation(
    "domains.update",
    "PATCH",
    "/domains/{id_or_name}",
    has_body=True,
    retry=True,
)
DELETE_DOMAIN = Operation(
    "domains.delete",
    "DELETE",
    "/domains/{id_or_name}",
    query=frozenset(["force"]),
    retry=True,
)
GET_DOMAIN_ZONE_FILE = Operation(
    "domains.zoneFile",
    "GET",
    "/domains/{id_or_name}/zone-file",
    answer="text/plain; charset=utf-8",
    retry=True,
)
GET_DOMAIN_DMARC = Operation(
    "domains.dmarc",
    "GET",
    "/domains/{id_or_name}/dmarc",
    query=frozenset(["from", "to"]),
    retry=True,
)
VERIFY_DOMAIN = Operation(
    "domains.verify",
    "POST",
    "/domains/{id_or_name}/verify",
)
ROTATE_DOMAIN_DKIM = Operation(
    "domains.dkim.rotate",
    "POST",
    "/domains/{id_or_name}/dkim/rotate",
)
CANCEL_DOMAIN_DKIM_ROTATION = Operation(
    "domains.dkim.cancelRotation",
    "DELETE",
    "/domains/{id_or_name}/dkim/rotate",
    retry=True,
)
CREATE_DOMAIN_CLAIM = Operation(
    "domains.claims.create",
    "POST",
    "/domains/claims",
    has_body=True,
)
LIST_DOMAIN_CLAIMS = Operation(
    "domains.claims.list",
    "GET",
    "/domains/claims",
    query=frozenset(["limit", "cursor"]),
    items="claims",
    retry=True,
)
GET_DOMAIN_CLAIM = Operation(
    "domains.claims.get",
    "GET",
    "/domains/claims/{id}",
    retry=True,
)
CANCEL_DOMAIN_CLAIM = Operation(
    "domains.claims.cancel",
    "POST",
    "/domains/claims/{id}/cancel",
)
VERIFY_DOMAIN_CLAIM = Operation(
    "domains.claims.verify",
    "POST",
    "/domains/claims/{id}/verify",
)
APPLY_DOMAIN_DNS = Operation(
    "domains.dns.apply",
    "POST",
    "/domains/{id_or_name}/dns/apply",
    has_body=True,
)
CONNECT_DOMAIN_DNS = Operation(
    "domains.dns.connect",
    "POST",
    "/domains/{id_or_name}/dns/connect",
)
LIST_DNS_CREDENTIALS = Operation(
    "dnsCredentials.list",
    "GET",
    "/dns-credentials",
    retry=True,
)
SAVE_DNS_CREDENTIALS = Operation(
    "dnsCredentials.save",
    "PUT",
    "/dns-credentials/{provider}",
    has_body=True,
    retry=True,
)
DELETE_DNS_CREDENTIALS = Operation(
    "dnsCredentials.delete",
    "DELETE",
    "/dns-credentials/{provider}",
    retry=True,
)
LIST_SUPPRESSIONS = Operation(
    "suppressions.list",
    "GET",
    "/suppressions",
    query=frozenset(["limit", "cursor", "email", "reason", "source", "created_after", "created_before"]),
    items="suppressions",
    retry=True,
)
CREATE_SUPPRESSION = Operation(
    "suppressions.create",
    "POST",
    "/suppressions",
    has_body=True,
)
CHECK_SUPPRESSIONS = Operation(
    "suppressions.check",
    "POST",
    "/suppressions/check",
    has_body=True,
    retry=True,
)
IMPORT_SUPPRESSIONS = Operation(
    "suppressions.import",
    "POST",
    "/suppressions/import",
    has_body=True,
    raw_body="text/csv",
)
DRY_RUN_SUPPRESSION_IMPORT = Operation(
    "suppressions.dryRunImport",
    "POST",
    "/suppressions/import/dry-run",
    has_body=True,
    raw_body="text/csv",
    retry=True,
)
LIST_SUPPRESSION_IMPORTS = Operation(
    "suppressions.listImports",
    "GET",
    "/suppressions/import",
    query=frozenset(["limit", "cursor"]),
    items="imports",
    retry=True,
)
GET_SUPPRESSION_IMPORT = Operation(
    "suppressions.getImport",
    "GET",
    "/suppressions/import/{id}",
    retry=True,
)
EXPORT_SUPPRESSIONS = Operation(
    "suppressions.export",
    "GET",
    "/suppressions/export",
    query=frozenset(["email", "reason", "source", "created_after", "created_before"]),
    answer="text/csv; charset=utf-8",
    retry=True,
)
GET_SUPPRESSION = Operation(
    "suppressions.get",
    "GET",
    "/suppressions/{id_or_email}",
    retry=True,
)
DELETE_SUPPRESSION = Operation(
    "suppressions.delete",
    "DELETE",
    "/suppressions/{id_or_email}",
    query=frozenset(["force"]),
    retry=True,
)
LIST_CATEGORY_OPT_OUTS = Operation(
    "categoryOptOuts.list",
    "GET",
    "/category-opt-outs",
    query=frozenset(["limit", "cursor", "email", "category"]),
    items="category_opt_outs",
    retry=True,
)
CREATE_CATEGORY_OPT_OUT = Operation(
    "categoryOptOuts.create",
    "POST",
    "/category-opt-outs",
    has_body=True,
)
DELETE_CATEGORY_OPT_OUT = Operation(
    "categoryOptOuts.delete",
    "DELETE",
    "/category-opt-outs/{id}",
    retry=True,
)
CREATE_TEMPLATE = Operation(
    "templates.create",
    "POST",
    "/templates",
    has_body=True,
)
LIST_TEMPLATES = Operation(
    "templates.list",
    "GET",
    "/templates",
    query=frozenset(["limit", "cursor", "category", "status"]),
    items="templates",
    retry=True,
)
GET_TEMPLATE = Operation(
    "templates.get",
    "GET",
    "/templates/{id_or_alias}",
    retry=True,
)
UPDATE_TEMPLATE = Operation(
    "templates.update",
    "PATCH",
    "/templates/{id_or_alias}",
    has_body=True,
    retry=True,
)
DELETE_TEMPLATE = Operation(
    "templates.delete",
    "DELETE",
    "/templates/{id_or_alias}",
    retry=True,
)
PUBLISH_TEMPLATE = Operation(
    "templates.publish",
    "POST",
    "/templates/{id_or_alias}/publish",
    has_body=True,
)
LIST_TEMPLATE_VERSIONS = Operation(
    "templates.versions.list",
    "GET",
    "/templates/{id_or_alias}/versions",
    query=frozenset(["limit", "cursor"]),
    items="versions",
    retry=True,
)
GET_TEMPLATE_VERSION = Operation(
    "templates.versions.get",
    "GET",
    "/templates/{id_or_alias}/versions/{number}",
    retry=True,
)
ROLL_BACK_TEMPLATE = Operation(
    "templates.rollBack",
    "POST",
    "/templates/{id_or_alias}/rollback",
    has_body=True,
)
PREVIEW_TEMPLATE = Operation(
    "templates.preview",
    "POST",
    "/templates/{id_or_alias}/preview",
    has_body=True,
    retry=True,
)
TEST_TEMPLATE = Operation(
    "templates.testSend",
    "POST",
    "/templates/{id_or_alias}/test-send",
    has_body=True,
)
DUPLICATE_TEMPLATE = Operation(
    "templates.duplicate",
    "POST",
    "/templates/{id_or_alias}/duplicate",
    has_body=True,
)
SEND_EVENT = Operation(
    "events.send",
    "POST",
    "/events",
    has_body=True,
    idempotent=True,
    retry=True,
)
LIST_EVENTS = Operation(
    "events.list",
    "GET",
    "/events",
    query=frozenset(["limit", "cursor", "name", "email", "user_id", "created_after", "created_before"]),
    items="events",
    retry=True,
)
COUNT_EVENTS = Operation(
    "events.counts",
    "GET",
    "/events/counts",
    query=frozenset(["name", "from", "to", "granularity"]),
    retry=True,
)
GET_EVENT = Operation(
    "events.get",
    "GET",
    "/events/{id}",
    retry=True,
)
GET_FUNNEL = Operation(
    "funnels.get",
    "GET",
    "/funnels",
    query=frozenset(["steps", "from", "to", "group_by"]),
    retry=True,
)
LIST_CONVERSIONS = Operation(
    "conversions.list",
    "GET",
    "/conversions",
    query=frozenset(["limit", "cursor", "kind", "source", "email", "user_id", "created_after", "created_before"]),
    items="conversions",
    retry=True,
)
COUNT_VISITS = Operation(
    "visits.counts",
    "GET",
    "/visits",
    query=frozenset(["from", "to"]),
    retry=True,
)
CREATE_WEBHOOK = Operation(
    "webhooks.create",
    "POST",
    "/webhooks",
    has_body=True,
)
LIST_WEBHOOKS = Operation(
    "webhooks.list",
    "GET",
    "/webhooks",
    query=frozenset(["limit", "cursor"]),
    items="webhooks",
    retry=True,
)
GET_WEBHOOK = Operation(
    "webhooks.get",
    "GET",
    "/webhooks/{id}",
    retry=True,
)
UPDATE_WEBHOOK = Operation(
    "webhooks.update",
    "PATCH",
    "/webhooks/{id}",
    has_body=True,
    retry=True,
)
DELETE_WEBHOOK = Operation(
    "webhooks.delete",
    "DELETE",
    "/webhooks/{id}",
    retry=True,
)
ROTATE_WEBHOOK_SECRET = Operation(
    "webhooks.rotateSecret",
    "POST",
    "/webhooks/{id}/rotate-secret",
    has_body=True,
)
TEST_WEBHOOK = Operation(
    "webhooks.test",
    "POST",
    "/webhooks/{id}/test",
    has_body=True,
)
LIST_WEBHOOK_DELIVERIES = Operation(
    "webhooks.deliveries.list",
    "GET",
    "/webhooks/{id}/deliveries",
    query=frozenset(["limit", "cursor", "status", "type", "created_after", "created_before"]),
    items="deliveries",
    retry=True,
)
GET_WEBHOOK_DELIVERY = Operation(
    "webhooks.deliveries.get",
    "GET",
    "/webhooks/{id}/deliveries/{delivery_id}",
    retry=True,
)
REPLAY_WEBHOOK_DELIVERY = Operation(
    "webhooks.deliveries.replay",
    "POST",
    "/webhooks/{id}/deliveries/{delivery_id}/replay",
)
REPLAY_WEBHOOK_DELIVERIES = Operation(
    "webhooks.replay",
    "POST",
    "/webhooks/{id}/replay",
    has_body=True,
)
LIST_WEBHOOK_EVENTS = Operation(
    "webhookEvents.list",
    "GET",
    "/webhook-events",
    query=frozenset(["limit", "cursor", "types", "order"]),
    items="events",
    retry=True,
)
LIST_RECEIVED_EMAILS = Operation(
    "receivedEmails.list",
    "GET",
    "/received-emails",
    query=frozenset(["limit", "cursor", "order", "to", "from", "domain_id", "spam_status", "received_after", "received_before"]),
    items="received_emails",
    retry=True,
)
GET_RECEIVED_EMAIL = Operation(
    "receivedEmails.get",
    "GET",
    "/received-emails/{id}",
    query=frozenset(["attachments"]),
    retry=True,
)
GET_RECEIVED_EMAIL_RAW = Operation(
    "receivedEmails.raw",
    "GET",
    "/received-emails/{id}/raw",
    answer="message/rfc822",
    retry=True,
)
GET_RECEIVED_EMAIL_ATTACHMENT = Operation(
    "receivedEmails.attachments.get",
    "GET",
    "/received-emails/{id}/attachments/{att_id}",
    answer="application/octet-stream",
    retry=True,
)
REPLY_TO_RECEIVED_EMAIL = Operation(
    "receivedEmails.reply",
    "POST",
    "/received-emails/{id}/reply",
    has_body=True,
    idempotent=True,
    retry=True,
)
FORWARD_RECEIVED_EMAIL = Operation(
    "receivedEmails.forward",
    "POST",
    "/received-emails/{id}/forward",
    has_body=True,
    idempotent=True,
    retry=True,
)
DELETE_RECEIVED_EMAIL = Operation(
    "receivedEmails.delete",
    "DELETE",
    "/received-emails/{id}",
    retry=True,
)
CREATE_AUTOMATION = Operation(
    "automations.create",
    "POST",
    "/automations",
    has_body=True,
)
LIST_AUTOMATIONS = Operation(
    "automations.list",
    "GET",
    "/automations",
    query=frozenset(["limit", "cursor", "status"]),
    items="automations",
    retry=True,
)
GET_AUTOMATION = Operation(
    "automations.get",
    "GET",
    "/automations/{id}",
    retry=True,
)
UPDATE_AUTOMATION = Operation(
    "automations.update",
    "POST",
    "/automations/{id}",
    has_body=True,
)
ACTIVATE_AUTOMATION = Operation(
    "automations.activate",
    "POST",
    "/automations/{id}",
    has_body=True,
)
PAUSE_AUTOMATION = Operation(
    "automations.pause",
    "POST",
    "/automations/{id}",
    has_body=True,
)
ARCHIVE_AUTOMATION = Operation(
    "automations.archive",
    "POST",
    "/automations/{id}",
    has_body=True,
)
CANCEL_AUTOMATION_RUNS = Operation(
    "automations.cancelRuns",
    "POST",
    "/automations/{id}",
    has_body=True,
)
DELETE_AUTOMATION = Operation(
    "automations.delete",
    "DELETE",
    "/automations/{id}",
    retry=True,
)
DUPLICATE_AUTOMATION = Operation(
    "automations.duplicate",
    "POST",
    "/automations/{id}/duplicate",
    has_body=True,
)
DRY_RUN_AUTOMATION = Operation(
    "automations.dryRun",
    "POST",
    "/automations/{id}/dry-run",
    has_body=True,
    retry=True,
)
REPLAY_AUTOMATION = Operation(
    "automations.replay",
    "POST",
    "/automations/{id}/replay",
    has_body=True,
    retry=True,
)
COUNT_AUTOMATION_STEPS = Operation(
    "automations.stepCounts",
    "GET",
    "/automations/{id}/step-counts",
    query=frozenset(["version"]),
    retry=True,
)
LIST_AUTOMATION_VERSIONS = Operation(
    "automations.versions.list",
    "GET",
    "/automations/{id}/versions",
    query=frozenset(["limit", "cursor"]),
    items="versions",
    retry=True,
)
LIST_AUTOMATION_RUNS = Operation(
    "automations.runs.list",
    "GET",
    "/automations/{id}/runs",
    query=frozenset(["limit", "cursor", "status", "email", "user_id"]),
    items="runs",
    retry=True,
)
GET_AUTOMATION_RUN = Operation(
    "automations.runs.get",
    "GET",
    "/automations/{id}/runs/{run}",
    retry=True,
)
CANCEL_AUTOMATION_RUN = Operation(
    "automations.runs.cancel",
    "POST",
    "/automations/{id}/runs/{run}/cancel",
)
LIST_AFFILIATES = Operation(
    "affiliates.list",
    "GET",
    "/affiliates",
    query=frozenset(["limit", "cursor", "status", "campaign_id", "email"]),
    items="data",
    retry=True,
)
CREATE_AFFILIATE = Operation(
    "affiliates.create",
    "POST",
    "/affiliates",
    has_body=True,
    idempotent=True,
    retry=True,
)
GET_AFFILIATE = Operation(
    "affiliates.get",
    "GET",
    "/affiliates/{id}",
    retry=True,
)
UPDATE_AFFILIATE = Operation(
    "affiliates.update",
    "PATCH",
    "/affiliates/{id}",
    has_body=True,
    retry=True,
)
DELETE_AFFILIATE = Operation(
    "affiliates.delete",
    "DELETE",
    "/affiliates/{id}",
    retry=True,
)
APPROVE_AFFILIATE = Operation(
    "affiliates.approve",
    "POST",
    "/affiliates/{id}/approve",
    has_body=True,
    idempotent=True,
    retry=True,
)
REJECT_AFFILIATE = Operation(
    "affiliates.reject",
    "POST",
    "/affiliates/{id}/reject",
    has_body=True,
    idempotent=True,
    retry=True,
)
SUSPEND_AFFILIATE = Operation(
    "affiliates.suspend",
    "POST",
    "/affiliates/{id}/suspend",
    has_body=True,
    idempotent=True,
    retry=True,
)
LIST_AFFILIATE_LINKS = Operation(
    "affiliates.links.list",
    "GET",
    "/affiliates/{id}/links",
    query=frozenset(["limit", "cursor"]),
    items="data",
    retry=True,
)
CREATE_AFFILIATE_LINK = Operation(
    "affiliates.links.create",
    "POST",
    "/affiliates/{id}/links",
    has_body=True,
    idempotent=True,
    retry=True,
)
DELETE_AFFILIATE_LINK = Operation(
    "affiliates.links.delete",
    "DELETE",
    "/affiliates/{id}/links/{link_id}",
    retry=True,
)
CREATE_AFFILIATE_LOGIN_LINK = Operation(
    "affiliates.createLoginLink",
    "POST",
    "/affiliates/{id}/login-link",
    has_body=True,
    idempotent=True,
    retry=True,
)
LIST_AFFILIATE_CAMPAIGNS = Operation(
    "affiliateCampaigns.list",
    "GET",
    "/affiliate-campaigns",
    query=frozenset(["include_archived"]),
    retry=True,
)
CREATE_AFFILIATE_CAMPAIGN = Operation(
    "affiliateCampaigns.create",
    "POST",
    "/affiliate-campaigns",
    has_body=True,
    idempotent=True,
    retry=True,
)
GET_AFFILIATE_CAMPAIGN = Operation(
    "affiliateCampaigns.get",
    "GET",
    "/affiliate-campaigns/{id}",
    retry=True,
)
UPDATE_AFFILIATE_CAMPAIGN = Operation(
    "affiliateCampaigns.update",
    "PATCH",
    "/affiliate-campaigns/{id}",
    has_body=True,
    retry=True,
)
LIST_AFFILIATE_REFERRALS = Operation(
    "affiliateReferrals.list",
    "GET",
    "/affiliate-referrals",
    query=frozenset(["limit", "cursor", "status", "source", "affiliate_id", "email", "created_after", "created_before"]),
    items="data",
    retry=True,
)
CREATE_AFFILIATE_REFERRAL = Operation(
    "affiliateReferrals.create",
    "POST",
    "/affiliate-referrals",
    has_body=True,
    idempotent=True,
    retry=True,
)
GET_AFFILIATE_REFERRAL = Operation(
    "affiliateReferrals.get",
    "GET",
    "/affiliate-referrals/{id}",
    retry=True,
)
LIST_AFFILIATE_COMMISSIONS = Operation(
    "affiliateCommissions.list",
    "GET",
    "/affiliate-commissions",
    query=frozenset(["limit", "cursor", "status", "affiliate_id", "referral_id", "payout_id", "currency", "created_after", "created_before"]),
    items="data",
    retry=True,
)
GET_AFFILIATE_COMMISSION = Operation(
    "affiliateCommissions.get",
    "GET",
    "/affiliate-commissions/{id}",
    retry=True,
)
REVERSE_AFFILIATE_COMMISSION = Operation(
    "affiliateCommissions.reverse",
    "PATCH",
    "/affiliate-commissions/{id}",
    has_body=True,
    retry=True,
)
LIST_AFFILIATE_PAYOUTS = Operation(
    "affiliatePayouts.list",
    "GET",
    "/affiliate-payouts",
    query=frozenset(["limit", "cursor", "status", "affiliate_id", "run_id"]),
    items="data",
    retry=True,
)
GET_AFFILIATE_PAYOUT = Operation(
    "affiliatePayouts.get",
    "GET",
    "/affiliate-payouts/{id}",
    retry=True,
)
MARK_AFFILIATE_PAYOUT_PAID = Operation(
    "affiliatePayouts.markPaid",
    "POST",
    "/affiliate-payouts/{id}/mark-paid",
    has_body=True,
    idempotent=True,
    retry=True,
)
LIST_GRANTS = Operation(
    "grants.list",
    "GET",
    "/grants",
    query=frozenset(["limit", "cursor"]),
    items="grants",
    retry=True,
)
GET_GRANT = Operation(
    "grants.get",
    "GET",
    "/grants/{id}",
    retry=True,
)
REVOKE_GRANT = Operation(
    "grants.revoke",
    "DELETE",
    "/grants/{id}",
    retry=True,
)
LIST_APPROVALS = Operation(
    "approvals.list",
    "GET",
    "/approvals",
    query=frozenset(["limit", "cursor", "status"]),
    items="approvals",
    retry=True,
)
GET_APPROVAL = Operation(
    "approvals.get",
    "GET",
    "/approvals/{id}",
    retry=True,
)
LIST_AUDIT_LOG = Operation(
    "auditLog.list",
    "GET",
    "/audit-log",
    query=frozenset(["limit", "cursor", "api_key_id", "grant_id", "user_id", "operation", "object_id", "created_after", "created_before"]),
    items="entries",
    retry=True,
)
