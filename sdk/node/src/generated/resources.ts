// Generated from sdk/operations.json by sdk/generate; do not edit.

// The methods of the API.

import { type StreamOptions, streamEvents } from "../event_stream.js";
import type { NoParams, Operation, Params } from "../operation.js";
import type { CallOptions } from "../options.js";
import { type Core, type List, type Reply, Resource } from "../resource.js";
import { constructEvent, generateTestHeader } from "../webhooks.js";
import type { StreamedEvent } from "./events.js";
import * as F from "./fields.js";
import type * as P from "./params.js";
import type * as T from "./types.js";

const SEND_EMAIL: Operation = {
  name: "emails.send", method: "POST", path: "/emails",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json", fields: F.SendEmailParams,
};

const SEND_BATCH: Operation = {
  name: "emails.sendBatch", method: "POST", path: "/emails/batch",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json", fields: F.SendBatchParams,
};

const LIST_EMAILS: Operation = {
  name: "emails.list", method: "GET", path: "/emails",
  query: ["limit", "cursor", "status", "to", "from", "tag", "category", "template", "domain_id", "q", "created_after", "created_before"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "emails", fields: F.ListEmailsParams,
};

const GET_EMAIL_METRICS: Operation = {
  name: "emails.metrics", method: "GET", path: "/emails/metrics",
  query: ["from", "to", "granularity", "dimensions", "domain", "category", "metrics"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.GetEmailMetricsParams,
};

const GET_EMAIL: Operation = {
  name: "emails.get", method: "GET", path: "/emails/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const UPDATE_EMAIL: Operation = {
  name: "emails.update", method: "PATCH", path: "/emails/{id}",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.UpdateEmailParams,
};

const CANCEL_EMAIL: Operation = {
  name: "emails.cancel", method: "POST", path: "/emails/{id}/cancel",
  query: [], body: false, idempotent: false, retry: false,
  mediaType: "application/json",
};

const RESEND_EMAIL: Operation = {
  name: "emails.resend", method: "POST", path: "/emails/{id}/resend",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json", fields: F.ResendEmailParams,
};

const TEST_EVENT: Operation = {
  name: "emails.testEvent", method: "POST", path: "/emails/test",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.TestEventParams,
};

const LIST_EMAIL_EVENTS: Operation = {
  name: "emails.events.list", method: "GET", path: "/emails/{id}/events",
  query: ["limit", "cursor"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "events", fields: F.ListEmailEventsParams,
};

const LIST_EMAIL_ATTEMPTS: Operation = {
  name: "emails.attempts.list", method: "GET", path: "/emails/{id}/attempts",
  query: ["limit", "cursor"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "attempts", fields: F.ListEmailAttemptsParams,
};

const GET_EMAIL_ATTACHMENT: Operation = {
  name: "emails.attachments.get", method: "GET", path: "/emails/{id}/attachments/{att_id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/octet-stream",
};

const GET_EMAIL_RAW: Operation = {
  name: "emails.raw", method: "GET", path: "/emails/{id}/raw",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "message/rfc822",
};

const GET_ACCOUNT: Operation = {
  name: "account.get", method: "GET", path: "/account",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const LIST_LOGS: Operation = {
  name: "logs.list", method: "GET", path: "/logs",
  query: ["limit", "cursor", "method", "status", "path", "operation", "api_key_id", "user_id", "created_after", "created_before"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "logs", fields: F.ListLogsParams,
};

const GET_LOG: Operation = {
  name: "logs.get", method: "GET", path: "/logs/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const CREATE_API_KEY: Operation = {
  name: "apiKeys.create", method: "POST", path: "/api-keys",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.CreateApiKeyParams,
};

const LIST_API_KEYS: Operation = {
  name: "apiKeys.list", method: "GET", path: "/api-keys",
  query: ["limit", "cursor"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "api_keys", fields: F.ListApiKeysParams,
};

const GET_API_KEY: Operation = {
  name: "apiKeys.get", method: "GET", path: "/api-keys/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const UPDATE_API_KEY: Operation = {
  name: "apiKeys.update", method: "PATCH", path: "/api-keys/{id}",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.UpdateApiKeyParams,
};

const DELETE_API_KEY: Operation = {
  name: "apiKeys.delete", method: "DELETE", path: "/api-keys/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const ROTATE_API_KEY: Operation = {
  name: "apiKeys.rotate", method: "POST", path: "/api-keys/{id}/rotate",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.RotateApiKeyParams,
};

const CREATE_SMTP_CREDENTIAL: Operation = {
  name: "smtpCredentials.create", method: "POST", path: "/smtp-credentials",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.CreateSmtpCredentialParams,
};

const LIST_SMTP_CREDENTIALS: Operation = {
  name: "smtpCredentials.list", method: "GET", path: "/smtp-credentials",
  query: ["limit", "cursor"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "smtp_credentials", fields: F.ListSmtpCredentialsParams,
};

const GET_SMTP_CREDENTIAL: Operation = {
  name: "smtpCredentials.get", method: "GET", path: "/smtp-credentials/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const UPDATE_SMTP_CREDENTIAL: Operation = {
  name: "smtpCredentials.update", method: "PATCH", path: "/smtp-credentials/{id}",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.UpdateSmtpCredentialParams,
};

const DELETE_SMTP_CREDENTIAL: Operation = {
  name: "smtpCredentials.delete", method: "DELETE", path: "/smtp-credentials/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const ROTATE_SMTP_CREDENTIAL: Operation = {
  name: "smtpCredentials.rotate", method: "POST", path: "/smtp-credentials/{id}/rotate",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.RotateSmtpCredentialParams,
};

const CREATE_DOMAIN: Operation = {
  name: "domains.create", method: "POST", path: "/domains",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.CreateDomainParams,
};

const LIST_DOMAINS: Operation = {
  name: "domains.list", method: "GET", path: "/domains",
  query: ["limit", "cursor", "status", "q"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "domains", fields: F.ListDomainsParams,
};

const GET_DOMAIN: Operation = {
  name: "domains.get", method: "GET", path: "/domains/{id_or_name}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const UPDATE_DOMAIN: Operation = {
  name: "domains.update", method: "PATCH", path: "/domains/{id_or_name}",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.UpdateDomainParams,
};

const DELETE_DOMAIN: Operation = {
  name: "domains.delete", method: "DELETE", path: "/domains/{id_or_name}",
  query: ["force"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.DeleteDomainParams,
};

const GET_DOMAIN_ZONE_FILE: Operation = {
  name: "domains.zoneFile", method: "GET", path: "/domains/{id_or_name}/zone-file",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "text/plain",
};

const GET_DOMAIN_DMARC: Operation = {
  name: "domains.dmarc", method: "GET", path: "/domains/{id_or_name}/dmarc",
  query: ["from", "to"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.GetDomainDmarcParams,
};

const VERIFY_DOMAIN: Operation = {
  name: "domains.verify", method: "POST", path: "/domains/{id_or_name}/verify",
  query: [], body: false, idempotent: false, retry: false,
  mediaType: "application/json",
};

const ROTATE_DOMAIN_DKIM: Operation = {
  name: "domains.dkim.rotate", method: "POST", path: "/domains/{id_or_name}/dkim/rotate",
  query: [], body: false, idempotent: false, retry: false,
  mediaType: "application/json",
};

const CANCEL_DOMAIN_DKIM_ROTATION: Operation = {
  name: "domains.dkim.cancelRotation", method: "DELETE", path: "/domains/{id_or_name}/dkim/rotate",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const CREATE_DOMAIN_CLAIM: Operation = {
  name: "domains.claims.create", method: "POST", path: "/domains/claims",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.CreateDomainClaimParams,
};

const LIST_DOMAIN_CLAIMS: Operation = {
  name: "domains.claims.list", method: "GET", path: "/domains/claims",
  query: ["limit", "cursor"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "claims", fields: F.ListDomainClaimsParams,
};

const GET_DOMAIN_CLAIM: Operation = {
  name: "domains.claims.get", method: "GET", path: "/domains/claims/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const CANCEL_DOMAIN_CLAIM: Operation = {
  name: "domains.claims.cancel", method: "POST", path: "/domains/claims/{id}/cancel",
  query: [], body: false, idempotent: false, retry: false,
  mediaType: "application/json",
};

const VERIFY_DOMAIN_CLAIM: Operation = {
  name: "domains.claims.verify", method: "POST", path: "/domains/claims/{id}/verify",
  query: [], body: false, idempotent: false, retry: false,
  mediaType: "application/json",
};

const APPLY_DOMAIN_DNS: Operation = {
  name: "domains.dns.apply", method: "POST", path: "/domains/{id_or_name}/dns/apply",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.ApplyDomainDnsParams,
};

const CONNECT_DOMAIN_DNS: Operation = {
  name: "domains.dns.connect", method: "POST", path: "/domains/{id_or_name}/dns/connect",
  query: [], body: false, idempotent: false, retry: false,
  mediaType: "application/json",
};

const LIST_DNS_CREDENTIALS: Operation = {
  name: "dnsCredentials.list", method: "GET", path: "/dns-credentials",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const SAVE_DNS_CREDENTIALS: Operation = {
  name: "dnsCredentials.save", method: "PUT", path: "/dns-credentials/{provider}",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.SaveDnsCredentialsParams,
};

const DELETE_DNS_CREDENTIALS: Operation = {
  name: "dnsCredentials.delete", method: "DELETE", path: "/dns-credentials/{provider}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const LIST_SUPPRESSIONS: Operation = {
  name: "suppressions.list", method: "GET", path: "/suppressions",
  query: ["limit", "cursor", "email", "reason", "source", "created_after", "created_before"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "suppressions", fields: F.ListSuppressionsParams,
};

const CREATE_SUPPRESSION: Operation = {
  name: "suppressions.create", method: "POST", path: "/suppressions",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.CreateSuppressionParams,
};

const CHECK_SUPPRESSIONS: Operation = {
  name: "suppressions.check", method: "POST", path: "/suppressions/check",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.CheckSuppressionsParams,
};

const IMPORT_SUPPRESSIONS: Operation = {
  name: "suppressions.import", method: "POST", path: "/suppressions/import",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.ImportSuppressionsParams,
};

const DRY_RUN_SUPPRESSION_IMPORT: Operation = {
  name: "suppressions.dryRunImport", method: "POST", path: "/suppressions/import/dry-run",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.DryRunSuppressionImportParams,
};

const LIST_SUPPRESSION_IMPORTS: Operation = {
  name: "suppressions.listImports", method: "GET", path: "/suppressions/import",
  query: ["limit", "cursor"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "imports", fields: F.ListSuppressionImportsParams,
};

const GET_SUPPRESSION_IMPORT: Operation = {
  name: "suppressions.getImport", method: "GET", path: "/suppressions/import/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const EXPORT_SUPPRESSIONS: Operation = {
  name: "suppressions.export", method: "GET", path: "/suppressions/export",
  query: ["email", "reason", "source", "created_after", "created_before"], body: false, idempotent: false, retry: true,
  mediaType: "text/csv", fields: F.ExportSuppressionsParams,
};

const GET_SUPPRESSION: Operation = {
  name: "suppressions.get", method: "GET", path: "/suppressions/{id_or_email}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const DELETE_SUPPRESSION: Operation = {
  name: "suppressions.delete", method: "DELETE", path: "/suppressions/{id_or_email}",
  query: ["force"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.DeleteSuppressionParams,
};

const LIST_CATEGORY_OPT_OUTS: Operation = {
  name: "categoryOptOuts.list", method: "GET", path: "/category-opt-outs",
  query: ["limit", "cursor", "email", "category"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "category_opt_outs", fields: F.ListCategoryOptOutsParams,
};

const CREATE_CATEGORY_OPT_OUT: Operation = {
  name: "categoryOptOuts.create", method: "POST", path: "/category-opt-outs",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.CreateCategoryOptOutParams,
};

const DELETE_CATEGORY_OPT_OUT: Operation = {
  name: "categoryOptOuts.delete", method: "DELETE", path: "/category-opt-outs/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const CREATE_TEMPLATE: Operation = {
  name: "templates.create", method: "POST", path: "/templates",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.CreateTemplateParams,
};

const LIST_TEMPLATES: Operation = {
  name: "templates.list", method: "GET", path: "/templates",
  query: ["limit", "cursor", "category", "status"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "templates", fields: F.ListTemplatesParams,
};

const GET_TEMPLATE: Operation = {
  name: "templates.get", method: "GET", path: "/templates/{id_or_alias}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const UPDATE_TEMPLATE: Operation = {
  name: "templates.update", method: "PATCH", path: "/templates/{id_or_alias}",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.UpdateTemplateParams,
};

const DELETE_TEMPLATE: Operation = {
  name: "templates.delete", method: "DELETE", path: "/templates/{id_or_alias}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const PUBLISH_TEMPLATE: Operation = {
  name: "templates.publish", method: "POST", path: "/templates/{id_or_alias}/publish",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.PublishTemplateParams,
};

const LIST_TEMPLATE_VERSIONS: Operation = {
  name: "templates.versions.list", method: "GET", path: "/templates/{id_or_alias}/versions",
  query: ["limit", "cursor"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "versions", fields: F.ListTemplateVersionsParams,
};

const GET_TEMPLATE_VERSION: Operation = {
  name: "templates.versions.get", method: "GET", path: "/templates/{id_or_alias}/versions/{number}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const ROLL_BACK_TEMPLATE: Operation = {
  name: "templates.rollBack", method: "POST", path: "/templates/{id_or_alias}/rollback",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.RollBackTemplateParams,
};

const PREVIEW_TEMPLATE: Operation = {
  name: "templates.preview", method: "POST", path: "/templates/{id_or_alias}/preview",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.PreviewTemplateParams,
};

const TEST_TEMPLATE: Operation = {
  name: "templates.testSend", method: "POST", path: "/templates/{id_or_alias}/test-send",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.TestTemplateParams,
};

const DUPLICATE_TEMPLATE: Operation = {
  name: "templates.duplicate", method: "POST", path: "/templates/{id_or_alias}/duplicate",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.DuplicateTemplateParams,
};

const SEND_EVENT: Operation = {
  name: "events.send", method: "POST", path: "/events",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json", fields: F.SendEventParams,
};

const LIST_EVENTS: Operation = {
  name: "events.list", method: "GET", path: "/events",
  query: ["limit", "cursor", "name", "email", "user_id", "created_after", "created_before"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "events", fields: F.ListEventsParams,
};

const COUNT_EVENTS: Operation = {
  name: "events.counts", method: "GET", path: "/events/counts",
  query: ["name", "from", "to", "granularity"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.CountEventsParams,
};

const GET_EVENT: Operation = {
  name: "events.get", method: "GET", path: "/events/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const GET_FUNNEL: Operation = {
  name: "funnels.get", method: "GET", path: "/funnels",
  query: ["steps", "from", "to", "group_by"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.GetFunnelParams,
};

const LIST_CONVERSIONS: Operation = {
  name: "conversions.list", method: "GET", path: "/conversions",
  query: ["limit", "cursor", "kind", "source", "email", "user_id", "created_after", "created_before"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "conversions", fields: F.ListConversionsParams,
};

const COUNT_VISITS: Operation = {
  name: "visits.counts", method: "GET", path: "/visits",
  query: ["from", "to"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.CountVisitsParams,
};

const CREATE_WEBHOOK: Operation = {
  name: "webhooks.create", method: "POST", path: "/webhooks",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.CreateWebhookParams,
};

const LIST_WEBHOOKS: Operation = {
  name: "webhooks.list", method: "GET", path: "/webhooks",
  query: ["limit", "cursor"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "webhooks", fields: F.ListWebhooksParams,
};

const GET_WEBHOOK: Operation = {
  name: "webhooks.get", method: "GET", path: "/webhooks/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const UPDATE_WEBHOOK: Operation = {
  name: "webhooks.update", method: "PATCH", path: "/webhooks/{id}",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.UpdateWebhookParams,
};

const DELETE_WEBHOOK: Operation = {
  name: "webhooks.delete", method: "DELETE", path: "/webhooks/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const ROTATE_WEBHOOK_SECRET: Operation = {
  name: "webhooks.rotateSecret", method: "POST", path: "/webhooks/{id}/rotate-secret",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.RotateWebhookSecretParams,
};

const TEST_WEBHOOK: Operation = {
  name: "webhooks.test", method: "POST", path: "/webhooks/{id}/test",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.TestWebhookParams,
};

const LIST_WEBHOOK_DELIVERIES: Operation = {
  name: "webhooks.deliveries.list", method: "GET", path: "/webhooks/{id}/deliveries",
  query: ["limit", "cursor", "status", "type", "created_after", "created_before"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "deliveries", fields: F.ListWebhookDeliveriesParams,
};

const GET_WEBHOOK_DELIVERY: Operation = {
  name: "webhooks.deliveries.get", method: "GET", path: "/webhooks/{id}/deliveries/{delivery_id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const REPLAY_WEBHOOK_DELIVERY: Operation = {
  name: "webhooks.deliveries.replay", method: "POST", path: "/webhooks/{id}/deliveries/{delivery_id}/replay",
  query: [], body: false, idempotent: false, retry: false,
  mediaType: "application/json",
};

const REPLAY_WEBHOOK_DELIVERIES: Operation = {
  name: "webhooks.replay", method: "POST", path: "/webhooks/{id}/replay",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.ReplayWebhookDeliveriesParams,
};

const LIST_WEBHOOK_EVENTS: Operation = {
  name: "webhookEvents.list", method: "GET", path: "/webhook-events",
  query: ["limit", "cursor", "types", "order"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "events", fields: F.ListWebhookEventsParams,
};

const LIST_RECEIVED_EMAILS: Operation = {
  name: "receivedEmails.list", method: "GET", path: "/received-emails",
  query: ["limit", "cursor", "order", "to", "from", "domain_id", "spam_status", "received_after", "received_before"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "received_emails", fields: F.ListReceivedEmailsParams,
};

const GET_RECEIVED_EMAIL: Operation = {
  name: "receivedEmails.get", method: "GET", path: "/received-emails/{id}",
  query: ["attachments"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.GetReceivedEmailParams,
};

const GET_RECEIVED_EMAIL_RAW: Operation = {
  name: "receivedEmails.raw", method: "GET", path: "/received-emails/{id}/raw",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "message/rfc822",
};

const GET_RECEIVED_EMAIL_ATTACHMENT: Operation = {
  name: "receivedEmails.attachments.get", method: "GET", path: "/received-emails/{id}/attachments/{att_id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/octet-stream",
};

const REPLY_TO_RECEIVED_EMAIL: Operation = {
  name: "receivedEmails.reply", method: "POST", path: "/received-emails/{id}/reply",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json", fields: F.ReplyToReceivedEmailParams,
};

const FORWARD_RECEIVED_EMAIL: Operation = {
  name: "receivedEmails.forward", method: "POST", path: "/received-emails/{id}/forward",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json", fields: F.ForwardReceivedEmailParams,
};

const DELETE_RECEIVED_EMAIL: Operation = {
  name: "receivedEmails.delete", method: "DELETE", path: "/received-emails/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const CREATE_AUTOMATION: Operation = {
  name: "automations.create", method: "POST", path: "/automations",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.CreateAutomationParams,
};

const LIST_AUTOMATIONS: Operation = {
  name: "automations.list", method: "GET", path: "/automations",
  query: ["limit", "cursor", "status"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "automations", fields: F.ListAutomationsParams,
};

const GET_AUTOMATION: Operation = {
  name: "automations.get", method: "GET", path: "/automations/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const UPDATE_AUTOMATION: Operation = {
  name: "automations.update", method: "POST", path: "/automations/{id}",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.UpdateAutomationParams,
};

const ACTIVATE_AUTOMATION: Operation = {
  name: "automations.activate", method: "POST", path: "/automations/{id}",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json",
};

const PAUSE_AUTOMATION: Operation = {
  name: "automations.pause", method: "POST", path: "/automations/{id}",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json",
};

const ARCHIVE_AUTOMATION: Operation = {
  name: "automations.archive", method: "POST", path: "/automations/{id}",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json",
};

const CANCEL_AUTOMATION_RUNS: Operation = {
  name: "automations.cancelRuns", method: "POST", path: "/automations/{id}",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json",
};

const DELETE_AUTOMATION: Operation = {
  name: "automations.delete", method: "DELETE", path: "/automations/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const DUPLICATE_AUTOMATION: Operation = {
  name: "automations.duplicate", method: "POST", path: "/automations/{id}/duplicate",
  query: [], body: true, idempotent: false, retry: false,
  mediaType: "application/json", fields: F.DuplicateAutomationParams,
};

const DRY_RUN_AUTOMATION: Operation = {
  name: "automations.dryRun", method: "POST", path: "/automations/{id}/dry-run",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.DryRunAutomationParams,
};

const REPLAY_AUTOMATION: Operation = {
  name: "automations.replay", method: "POST", path: "/automations/{id}/replay",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.ReplayAutomationParams,
};

const COUNT_AUTOMATION_STEPS: Operation = {
  name: "automations.stepCounts", method: "GET", path: "/automations/{id}/step-counts",
  query: ["version"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.CountAutomationStepsParams,
};

const LIST_AUTOMATION_VERSIONS: Operation = {
  name: "automations.versions.list", method: "GET", path: "/automations/{id}/versions",
  query: ["limit", "cursor"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "versions", fields: F.ListAutomationVersionsParams,
};

const LIST_AUTOMATION_RUNS: Operation = {
  name: "automations.runs.list", method: "GET", path: "/automations/{id}/runs",
  query: ["limit", "cursor", "status", "email", "user_id"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "runs", fields: F.ListAutomationRunsParams,
};

const GET_AUTOMATION_RUN: Operation = {
  name: "automations.runs.get", method: "GET", path: "/automations/{id}/runs/{run}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const CANCEL_AUTOMATION_RUN: Operation = {
  name: "automations.runs.cancel", method: "POST", path: "/automations/{id}/runs/{run}/cancel",
  query: [], body: false, idempotent: false, retry: false,
  mediaType: "application/json",
};

const LIST_AFFILIATES: Operation = {
  name: "affiliates.list", method: "GET", path: "/affiliates",
  query: ["limit", "cursor", "status", "campaign_id", "email"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "data", fields: F.ListAffiliatesParams,
};

const CREATE_AFFILIATE: Operation = {
  name: "affiliates.create", method: "POST", path: "/affiliates",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json", fields: F.CreateAffiliateParams,
};

const GET_AFFILIATE: Operation = {
  name: "affiliates.get", method: "GET", path: "/affiliates/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const UPDATE_AFFILIATE: Operation = {
  name: "affiliates.update", method: "PATCH", path: "/affiliates/{id}",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.UpdateAffiliateParams,
};

const DELETE_AFFILIATE: Operation = {
  name: "affiliates.delete", method: "DELETE", path: "/affiliates/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const APPROVE_AFFILIATE: Operation = {
  name: "affiliates.approve", method: "POST", path: "/affiliates/{id}/approve",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json", fields: F.ApproveAffiliateParams,
};

const REJECT_AFFILIATE: Operation = {
  name: "affiliates.reject", method: "POST", path: "/affiliates/{id}/reject",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json", fields: F.RejectAffiliateParams,
};

const SUSPEND_AFFILIATE: Operation = {
  name: "affiliates.suspend", method: "POST", path: "/affiliates/{id}/suspend",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json", fields: F.SuspendAffiliateParams,
};

const LIST_AFFILIATE_LINKS: Operation = {
  name: "affiliates.links.list", method: "GET", path: "/affiliates/{id}/links",
  query: ["limit", "cursor"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "data", fields: F.ListAffiliateLinksParams,
};

const CREATE_AFFILIATE_LINK: Operation = {
  name: "affiliates.links.create", method: "POST", path: "/affiliates/{id}/links",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json", fields: F.CreateAffiliateLinkParams,
};

const DELETE_AFFILIATE_LINK: Operation = {
  name: "affiliates.links.delete", method: "DELETE", path: "/affiliates/{id}/links/{link_id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const CREATE_AFFILIATE_LOGIN_LINK: Operation = {
  name: "affiliates.createLoginLink", method: "POST", path: "/affiliates/{id}/login-link",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json",
};

const LIST_AFFILIATE_CAMPAIGNS: Operation = {
  name: "affiliateCampaigns.list", method: "GET", path: "/affiliate-campaigns",
  query: ["include_archived"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.ListAffiliateCampaignsParams,
};

const CREATE_AFFILIATE_CAMPAIGN: Operation = {
  name: "affiliateCampaigns.create", method: "POST", path: "/affiliate-campaigns",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json", fields: F.CreateAffiliateCampaignParams,
};

const GET_AFFILIATE_CAMPAIGN: Operation = {
  name: "affiliateCampaigns.get", method: "GET", path: "/affiliate-campaigns/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const UPDATE_AFFILIATE_CAMPAIGN: Operation = {
  name: "affiliateCampaigns.update", method: "PATCH", path: "/affiliate-campaigns/{id}",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.UpdateAffiliateCampaignParams,
};

const LIST_AFFILIATE_REFERRALS: Operation = {
  name: "affiliateReferrals.list", method: "GET", path: "/affiliate-referrals",
  query: ["limit", "cursor", "status", "source", "affiliate_id", "email", "created_after", "created_before"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "data", fields: F.ListAffiliateReferralsParams,
};

const CREATE_AFFILIATE_REFERRAL: Operation = {
  name: "affiliateReferrals.create", method: "POST", path: "/affiliate-referrals",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json", fields: F.CreateAffiliateReferralParams,
};

const GET_AFFILIATE_REFERRAL: Operation = {
  name: "affiliateReferrals.get", method: "GET", path: "/affiliate-referrals/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const LIST_AFFILIATE_COMMISSIONS: Operation = {
  name: "affiliateCommissions.list", method: "GET", path: "/affiliate-commissions",
  query: ["limit", "cursor", "status", "affiliate_id", "referral_id", "payout_id", "currency", "created_after", "created_before"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "data", fields: F.ListAffiliateCommissionsParams,
};

const GET_AFFILIATE_COMMISSION: Operation = {
  name: "affiliateCommissions.get", method: "GET", path: "/affiliate-commissions/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const REVERSE_AFFILIATE_COMMISSION: Operation = {
  name: "affiliateCommissions.reverse", method: "PATCH", path: "/affiliate-commissions/{id}",
  query: [], body: true, idempotent: false, retry: true,
  mediaType: "application/json", fields: F.ReverseAffiliateCommissionParams,
};

const LIST_AFFILIATE_PAYOUTS: Operation = {
  name: "affiliatePayouts.list", method: "GET", path: "/affiliate-payouts",
  query: ["limit", "cursor", "status", "affiliate_id", "run_id"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "data", fields: F.ListAffiliatePayoutsParams,
};

const GET_AFFILIATE_PAYOUT: Operation = {
  name: "affiliatePayouts.get", method: "GET", path: "/affiliate-payouts/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const MARK_AFFILIATE_PAYOUT_PAID: Operation = {
  name: "affiliatePayouts.markPaid", method: "POST", path: "/affiliate-payouts/{id}/mark-paid",
  query: [], body: true, idempotent: true, retry: true,
  mediaType: "application/json", fields: F.MarkAffiliatePayoutPaidParams,
};

const LIST_GRANTS: Operation = {
  name: "grants.list", method: "GET", path: "/grants",
  query: ["limit", "cursor"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "grants", fields: F.ListGrantsParams,
};

const GET_GRANT: Operation = {
  name: "grants.get", method: "GET", path: "/grants/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const REVOKE_GRANT: Operation = {
  name: "grants.revoke", method: "DELETE", path: "/grants/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const LIST_APPROVALS: Operation = {
  name: "approvals.list", method: "GET", path: "/approvals",
  query: ["limit", "cursor", "status"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "approvals", fields: F.ListApprovalsParams,
};

const GET_APPROVAL: Operation = {
  name: "approvals.get", method: "GET", path: "/approvals/{id}",
  query: [], body: false, idempotent: false, retry: true,
  mediaType: "application/json",
};

const LIST_AUDIT_LOG: Operation = {
  name: "auditLog.list", method: "GET", path: "/audit-log",
  query: ["limit", "cursor", "api_key_id", "grant_id", "user_id", "operation", "object_id", "created_after", "created_before"], body: false, idempotent: false, retry: true,
  mediaType: "application/json", items: "entries", fields: F.ListAuditLogParams,
};

/** What credentials and users did. */
export class AuditLogResource<Throws extends boolean> extends Resource<Throws> {

  /** List what credentials and users did in the last 90 days, newest first */
  list(params?: Params<P.ListAuditLogParams>, options?: CallOptions): List<T.ListAuditLogResponse, T.AuditEntry, Throws> {
    return this.pagesOf(LIST_AUDIT_LOG, [], params, options);
  }
}

/** Requests that wait for a person's approval. */
export class ApprovalsResource<Throws extends boolean> extends Resource<Throws> {

  /** List requests that wait for approval and decided ones, newest first */
  list(params?: Params<P.ListApprovalsParams>, options?: CallOptions): List<T.ListApprovalsResponse, T.Approval, Throws> {
    return this.pagesOf(LIST_APPROVALS, [], params, options);
  }

  /** Get an approval, with the response once the request was executed */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.GetApprovalResponse, Throws>> {
    return this.call(GET_APPROVAL, [id], params, options);
  }
}

/** What users have allowed apps to do. */
export class GrantsResource<Throws extends boolean> extends Resource<Throws> {

  /** List what users have allowed apps to do, newest first */
  list(params?: Params<P.ListGrantsParams>, options?: CallOptions): List<T.ListGrantsResponse, T.Grant, Throws> {
    return this.pagesOf(LIST_GRANTS, [], params, options);
  }

  /** Get a grant */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.GetGrantResponse, Throws>> {
    return this.call(GET_GRANT, [id], params, options);
  }

  /** Revoke a grant: its app loses access at once */
  revoke(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.Done, Throws>> {
    return this.call(REVOKE_GRANT, [id], params, options);
  }
}

/** Payments to affiliates. */
export class AffiliatePayoutsResource<Throws extends boolean> extends Resource<Throws> {

  /** List payouts, newest first */
  list(params?: Params<P.ListAffiliatePayoutsParams>, options?: CallOptions): List<T.ListAffiliatePayoutsResponse, T.AffiliatePayout, Throws> {
    return this.pagesOf(LIST_AFFILIATE_PAYOUTS, [], params, options);
  }

  /** Get a payout */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneAffiliatePayout, Throws>> {
    return this.call(GET_AFFILIATE_PAYOUT, [id], params, options);
  }

  /** Mark a manual payout as paid, with its proof */
  markPaid(id: string, params: Params<P.MarkAffiliatePayoutPaidParams>, options?: CallOptions): Promise<Reply<T.MarkAffiliatePayoutPaidResponse, Throws>> {
    return this.call(MARK_AFFILIATE_PAYOUT_PAID, [id], params, options);
  }
}

/** What affiliates earned. */
export class AffiliateCommissionsResource<Throws extends boolean> extends Resource<Throws> {

  /** List commissions, newest first */
  list(params?: Params<P.ListAffiliateCommissionsParams>, options?: CallOptions): List<T.ListAffiliateCommissionsResponse, T.AffiliateCommission, Throws> {
    return this.pagesOf(LIST_AFFILIATE_COMMISSIONS, [], params, options);
  }

  /** Get a commission */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.AffiliateCommissionDetail, Throws>> {
    return this.call(GET_AFFILIATE_COMMISSION, [id], params, options);
  }

  /** Reverse a commission that is neither paid nor in a payout */
  reverse(id: string, params: Params<P.ReverseAffiliateCommissionParams>, options?: CallOptions): Promise<Reply<T.ReverseAffiliateCommissionResponse, Throws>> {
    return this.call(REVERSE_AFFILIATE_COMMISSION, [id], params, options);
  }
}

/** People that affiliates referred. */
export class AffiliateReferralsResource<Throws extends boolean> extends Resource<Throws> {

  /** List referrals, newest first */
  list(params?: Params<P.ListAffiliateReferralsParams>, options?: CallOptions): List<T.ListAffiliateReferralsResponse, T.AffiliateReferral, Throws> {
    return this.pagesOf(LIST_AFFILIATE_REFERRALS, [], params, options);
  }

  /** Create a referral */
  create(params: Params<P.CreateAffiliateReferralParams>, options?: CallOptions): Promise<Reply<T.CreateAffiliateReferralResponse, Throws>> {
    return this.call(CREATE_AFFILIATE_REFERRAL, [], params, options);
  }

  /** Get a referral */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneAffiliateReferral, Throws>> {
    return this.call(GET_AFFILIATE_REFERRAL, [id], params, options);
  }
}

/** Campaigns of the affiliate program: commissions and terms. */
export class AffiliateCampaignsResource<Throws extends boolean> extends Resource<Throws> {

  /** List all campaigns, newest first */
  list(params?: Params<P.ListAffiliateCampaignsParams>, options?: CallOptions): Promise<Reply<T.ListAffiliateCampaignsResponse, Throws>> {
    return this.call(LIST_AFFILIATE_CAMPAIGNS, [], params, options);
  }

  /** Create a campaign */
  create(params: Params<P.CreateAffiliateCampaignParams>, options?: CallOptions): Promise<Reply<T.CreateAffiliateCampaignResponse, Throws>> {
    return this.call(CREATE_AFFILIATE_CAMPAIGN, [], params, options);
  }

  /** Get a campaign */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneAffiliateCampaign, Throws>> {
    return this.call(GET_AFFILIATE_CAMPAIGN, [id], params, options);
  }

  /** Update a campaign; new rates apply to new commissions */
  update(id: string, params?: Params<P.UpdateAffiliateCampaignParams>, options?: CallOptions): Promise<Reply<T.UpdateAffiliateCampaignResponse, Throws>> {
    return this.call(UPDATE_AFFILIATE_CAMPAIGN, [id], params, options);
  }
}

/** Links of an affiliate. */
export class AffiliatesLinksResource<Throws extends boolean> extends Resource<Throws> {

  /** List a partner's links, newest first */
  list(id: string, params?: Params<P.ListAffiliateLinksParams>, options?: CallOptions): List<T.ListAffiliateLinksResponse, T.AffiliateLink, Throws> {
    return this.pagesOf(LIST_AFFILIATE_LINKS, [id], params, options);
  }

  /** Create a link for a partner */
  create(id: string, params: Params<P.CreateAffiliateLinkParams>, options?: CallOptions): Promise<Reply<T.CreateAffiliateLinkResponse, Throws>> {
    return this.call(CREATE_AFFILIATE_LINK, [id], params, options);
  }

  /** Delete a link other than the primary one */
  delete(id: string, linkId: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.Done, Throws>> {
    return this.call(DELETE_AFFILIATE_LINK, [id, linkId], params, options);
  }
}

/** Affiliates of the program. */
export class AffiliatesResource<Throws extends boolean> extends Resource<Throws> {
  /** Links of an affiliate. */
  readonly links: AffiliatesLinksResource<Throws>;

  constructor(core: Core<Throws>) {
    super(core);
    this.links = new AffiliatesLinksResource(core);
  }

  /** List partners, newest first */
  list(params?: Params<P.ListAffiliatesParams>, options?: CallOptions): List<T.ListAffiliatesResponse, T.Affiliate, Throws> {
    return this.pagesOf(LIST_AFFILIATES, [], params, options);
  }

  /** Add a partner */
  create(params: Params<P.CreateAffiliateParams>, options?: CallOptions): Promise<Reply<T.CreateAffiliateResponse, Throws>> {
    return this.call(CREATE_AFFILIATE, [], params, options);
  }

  /** Get a partner with all its links */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneAffiliate, Throws>> {
    return this.call(GET_AFFILIATE, [id], params, options);
  }

  /** Update a partner */
  update(id: string, params?: Params<P.UpdateAffiliateParams>, options?: CallOptions): Promise<Reply<T.UpdateAffiliateResponse, Throws>> {
    return this.call(UPDATE_AFFILIATE, [id], params, options);
  }

  /** Delete a partner that has never been paid */
  delete(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.Done, Throws>> {
    return this.call(DELETE_AFFILIATE, [id], params, options);
  }

  /** Approve a partner */
  approve(id: string, params?: Params<P.ApproveAffiliateParams>, options?: CallOptions): Promise<Reply<T.ApproveAffiliateResponse, Throws>> {
    return this.call(APPROVE_AFFILIATE, [id], params, options);
  }

  /** Reject a partner */
  reject(id: string, params?: Params<P.RejectAffiliateParams>, options?: CallOptions): Promise<Reply<T.RejectAffiliateResponse, Throws>> {
    return this.call(REJECT_AFFILIATE, [id], params, options);
  }

  /** Suspend a partner: its links stop redirecting and its payouts stop */
  suspend(id: string, params?: Params<P.SuspendAffiliateParams>, options?: CallOptions): Promise<Reply<T.SuspendAffiliateResponse, Throws>> {
    return this.call(SUSPEND_AFFILIATE, [id], params, options);
  }

  /** Create a one-time link that signs a partner in to the portal; it expires after a minute */
  createLoginLink(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.CreateAffiliateLoginLinkResponse, Throws>> {
    return this.call(CREATE_AFFILIATE_LOGIN_LINK, [id], params, options);
  }
}

/** Runs of an automation, each for one person. */
export class AutomationsRunsResource<Throws extends boolean> extends Resource<Throws> {

  /** List runs, newest first */
  list(id: string, params?: Params<P.ListAutomationRunsParams>, options?: CallOptions): List<T.ListAutomationRunsResponse, T.AutomationRun, Throws> {
    return this.pagesOf(LIST_AUTOMATION_RUNS, [id], params, options);
  }

  /** Get a run, step by step */
  get(id: string, run: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.GetAutomationRunResponse, Throws>> {
    return this.call(GET_AUTOMATION_RUN, [id, run], params, options);
  }

  /** Cancel a run */
  cancel(id: string, run: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.CancelAutomationRunResponse, Throws>> {
    return this.call(CANCEL_AUTOMATION_RUN, [id, run], params, options);
  }
}

/** Published versions of an automation. */
export class AutomationsVersionsResource<Throws extends boolean> extends Resource<Throws> {

  /** List versions, newest first */
  list(id: string, params?: Params<P.ListAutomationVersionsParams>, options?: CallOptions): List<T.ListAutomationVersionsResponse, T.AutomationVersion, Throws> {
    return this.pagesOf(LIST_AUTOMATION_VERSIONS, [id], params, options);
  }
}

/** Automations: emails and steps that a product event starts. */
export class AutomationsResource<Throws extends boolean> extends Resource<Throws> {
  /** Published versions of an automation. */
  readonly versions: AutomationsVersionsResource<Throws>;
  /** Runs of an automation, each for one person. */
  readonly runs: AutomationsRunsResource<Throws>;

  constructor(core: Core<Throws>) {
    super(core);
    this.versions = new AutomationsVersionsResource(core);
    this.runs = new AutomationsRunsResource(core);
  }

  /** Create an automation, as a draft */
  create(params: Params<P.CreateAutomationParams>, options?: CallOptions): Promise<Reply<T.CreateAutomationResponse, Throws>> {
    return this.call(CREATE_AUTOMATION, [], params, options);
  }

  /** List automations, newest first */
  list(params?: Params<P.ListAutomationsParams>, options?: CallOptions): List<T.ListAutomationsResponse, T.Automation, Throws> {
    return this.pagesOf(LIST_AUTOMATIONS, [], params, options);
  }

  /** Get an automation */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.GetAutomationResponse, Throws>> {
    return this.call(GET_AUTOMATION, [id], params, options);
  }

  /** Activate, pause, archive or edit an automation, or cancel its runs */
  update(id: string, params?: Params<P.UpdateAutomationParams>, options?: CallOptions): Promise<Reply<T.UpdateAutomationResponse, Throws>> {
    return this.call(UPDATE_AUTOMATION, [id], params, options);
  }

  /** Activate an automation, so that events start runs */
  activate(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.UpdateAutomationResponse, Throws>> {
    return this.call(ACTIVATE_AUTOMATION, [id], { ...params, action: "activate" }, options);
  }

  /** Pause an automation and its runs */
  pause(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.UpdateAutomationResponse, Throws>> {
    return this.call(PAUSE_AUTOMATION, [id], { ...params, action: "pause" }, options);
  }

  /** Archive an automation and cancel its runs */
  archive(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.UpdateAutomationResponse, Throws>> {
    return this.call(ARCHIVE_AUTOMATION, [id], { ...params, action: "archive" }, options);
  }

  /** Cancel all runs of an automation */
  cancelRuns(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.UpdateAutomationResponse, Throws>> {
    return this.call(CANCEL_AUTOMATION_RUNS, [id], { ...params, action: "cancel_runs" }, options);
  }

  /** Delete an automation and its runs */
  delete(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.Done, Throws>> {
    return this.call(DELETE_AUTOMATION, [id], params, options);
  }

  /** Copy an automation into a new draft */
  duplicate(id: string, params?: Params<P.DuplicateAutomationParams>, options?: CallOptions): Promise<Reply<T.DuplicateAutomationResponse, Throws>> {
    return this.call(DUPLICATE_AUTOMATION, [id], params, options);
  }

  /** Run an automation as a test, without sending anything */
  dryRun(id: string, params?: Params<P.DryRunAutomationParams>, options?: CallOptions): Promise<Reply<T.DryRunAutomationResponse, Throws>> {
    return this.call(DRY_RUN_AUTOMATION, [id], params, options);
  }

  /** Run past events as a test, without sending anything */
  replay(id: string, params?: Params<P.ReplayAutomationParams>, options?: CallOptions): Promise<Reply<T.ReplayAutomationResponse, Throws>> {
    return this.call(REPLAY_AUTOMATION, [id], params, options);
  }

  /** Get the number of runs at each step */
  stepCounts(id: string, params?: Params<P.CountAutomationStepsParams>, options?: CallOptions): Promise<Reply<T.CountAutomationStepsResponse, Throws>> {
    return this.call(COUNT_AUTOMATION_STEPS, [id], params, options);
  }
}

/** Attachments of a received email. */
export class ReceivedEmailsAttachmentsResource<Throws extends boolean> extends Resource<Throws> {

  /** Get an attachment of a received email */
  get(id: string, attId: string, params?: NoParams, options?: CallOptions): Promise<Reply<Uint8Array, Throws>> {
    return this.call(GET_RECEIVED_EMAIL_ATTACHMENT, [id, attId], params, options);
  }
}

/** Received emails. */
export class ReceivedEmailsResource<Throws extends boolean> extends Resource<Throws> {
  /** Attachments of a received email. */
  readonly attachments: ReceivedEmailsAttachmentsResource<Throws>;

  constructor(core: Core<Throws>) {
    super(core);
    this.attachments = new ReceivedEmailsAttachmentsResource(core);
  }

  /** List received emails */
  list(params?: Params<P.ListReceivedEmailsParams>, options?: CallOptions): List<T.ReceivedEmailList, T.ReceivedEmail, Throws> {
    return this.pagesOf(LIST_RECEIVED_EMAILS, [], params, options);
  }

  /** Get a received email with its attachments */
  get(id: string, params?: Params<P.GetReceivedEmailParams>, options?: CallOptions): Promise<Reply<T.OneReceivedEmail, Throws>> {
    return this.call(GET_RECEIVED_EMAIL, [id], params, options);
  }

  /** Get the raw message of a received email */
  raw(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<Uint8Array, Throws>> {
    return this.call(GET_RECEIVED_EMAIL_RAW, [id], params, options);
  }

  /** Reply to a received email */
  reply(id: string, params?: Params<P.ReplyToReceivedEmailParams>, options?: CallOptions): Promise<Reply<T.Sent, Throws>> {
    return this.call(REPLY_TO_RECEIVED_EMAIL, [id], params, options);
  }

  /** Forward a received email as an attachment */
  forward(id: string, params: Params<P.ForwardReceivedEmailParams>, options?: CallOptions): Promise<Reply<T.Sent, Throws>> {
    return this.call(FORWARD_RECEIVED_EMAIL, [id], params, options);
  }

  /** Delete a received email and its message */
  delete(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.Done, Throws>> {
    return this.call(DELETE_RECEIVED_EMAIL, [id], params, options);
  }
}

/** The stream of webhook events. */
export class WebhookEventsResource<Throws extends boolean> extends Resource<Throws> {

  /** List events, or stream them as server-sent events */
  list(params?: Params<P.ListWebhookEventsParams>, options?: CallOptions): List<T.StreamEventList, T.StreamEvent, Throws> {
    return this.pagesOf(LIST_WEBHOOK_EVENTS, [], params, options);
  }

  /**
   * Yields events as they happen. Reconnects for ever, after the last event; ends with an error of the API such as 401.
   * Errors are thrown, whatever `throwOnError` is.
   */
  stream(options?: StreamOptions<T.WebhookEventType>): AsyncGenerator<StreamedEvent, void, undefined> {
    return streamEvents<StreamedEvent>(this.transport, "/webhook-events", options);
  }
}

/** Deliveries to a webhook. */
export class WebhooksDeliveriesResource<Throws extends boolean> extends Resource<Throws> {

  /** List deliveries, newest first */
  list(id: string, params?: Params<P.ListWebhookDeliveriesParams>, options?: CallOptions): List<T.WebhookDeliveryList, T.WebhookDelivery, Throws> {
    return this.pagesOf(LIST_WEBHOOK_DELIVERIES, [id], params, options);
  }

  /** Get a delivery with its body and attempts */
  get(id: string, deliveryId: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneWebhookDelivery, Throws>> {
    return this.call(GET_WEBHOOK_DELIVERY, [id, deliveryId], params, options);
  }

  /** Replay a delivery */
  replay(id: string, deliveryId: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.QueuedWebhookDelivery, Throws>> {
    return this.call(REPLAY_WEBHOOK_DELIVERY, [id, deliveryId], params, options);
  }
}

/** Webhooks. */
export class WebhooksResource<Throws extends boolean> extends Resource<Throws> {
  /** Deliveries to a webhook. */
  readonly deliveries: WebhooksDeliveriesResource<Throws>;
  /** Verifies a webhook and returns its event. Rejects with `SignatureError`, whatever `throwOnError` is. */
  readonly constructEvent = constructEvent;
  /** The headers of a signed webhook, for tests of a receiver. */
  readonly generateTestHeader = generateTestHeader;

  constructor(core: Core<Throws>) {
    super(core);
    this.deliveries = new WebhooksDeliveriesResource(core);
  }

  /** Create a webhook endpoint (its secret is shown once) */
  create(params: Params<P.CreateWebhookParams>, options?: CallOptions): Promise<Reply<T.CreateWebhookResponse, Throws>> {
    return this.call(CREATE_WEBHOOK, [], params, options);
  }

  /** List webhook endpoints, newest first */
  list(params?: Params<P.ListWebhooksParams>, options?: CallOptions): List<T.WebhookList, T.Webhook, Throws> {
    return this.pagesOf(LIST_WEBHOOKS, [], params, options);
  }

  /** Get a webhook endpoint */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneWebhook, Throws>> {
    return this.call(GET_WEBHOOK, [id], params, options);
  }

  /** Update a webhook endpoint */
  update(id: string, params?: Params<P.UpdateWebhookParams>, options?: CallOptions): Promise<Reply<T.UpdateWebhookResponse, Throws>> {
    return this.call(UPDATE_WEBHOOK, [id], params, options);
  }

  /** Delete a webhook endpoint */
  delete(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.Done, Throws>> {
    return this.call(DELETE_WEBHOOK, [id], params, options);
  }

  /** Rotate the secret of a webhook endpoint */
  rotateSecret(id: string, params?: Params<P.RotateWebhookSecretParams>, options?: CallOptions): Promise<Reply<T.RotateWebhookSecretResponse, Throws>> {
    return this.call(ROTATE_WEBHOOK_SECRET, [id], params, options);
  }

  /** Send a test event to a webhook endpoint */
  test(id: string, params: Params<P.TestWebhookParams>, options?: CallOptions): Promise<Reply<T.TestWebhookResponse, Throws>> {
    return this.call(TEST_WEBHOOK, [id], params, options);
  }

  /** Replay deliveries of a time range */
  replay(id: string, params: Params<P.ReplayWebhookDeliveriesParams>, options?: CallOptions): Promise<Reply<T.ReplayWebhookDeliveriesResponse, Throws>> {
    return this.call(REPLAY_WEBHOOK_DELIVERIES, [id], params, options);
  }
}

/** Visits of the website. */
export class VisitsResource<Throws extends boolean> extends Resource<Throws> {

  /** Count visits and conversions by day and source */
  counts(params?: Params<P.CountVisitsParams>, options?: CallOptions): Promise<Reply<T.VisitCounts, Throws>> {
    return this.call(COUNT_VISITS, [], params, options);
  }
}

/** Conversions. */
export class ConversionsResource<Throws extends boolean> extends Resource<Throws> {

  /** List sign-ups and subscriptions, newest first */
  list(params?: Params<P.ListConversionsParams>, options?: CallOptions): List<T.ConversionList, T.Conversion, Throws> {
    return this.pagesOf(LIST_CONVERSIONS, [], params, options);
  }
}

/** Funnels over product events. */
export class FunnelsResource<Throws extends boolean> extends Resource<Throws> {

  /** Get a funnel: how many people did a sequence of steps */
  get(params: Params<P.GetFunnelParams>, options?: CallOptions): Promise<Reply<T.GetFunnelResponse, Throws>> {
    return this.call(GET_FUNNEL, [], params, options);
  }
}

/** Product events: what people did in your product. */
export class EventsResource<Throws extends boolean> extends Resource<Throws> {

  /** Send a product event */
  send(params?: Params<P.SendEventParams>, options?: CallOptions): Promise<Reply<T.SendEventResponse, Throws>> {
    return this.call(SEND_EVENT, [], params, options);
  }

  /** List product events, newest first */
  list(params?: Params<P.ListEventsParams>, options?: CallOptions): List<T.ProductEventList, T.ProductEvent, Throws> {
    return this.pagesOf(LIST_EVENTS, [], params, options);
  }

  /** Get product event counts by hour or day */
  counts(params?: Params<P.CountEventsParams>, options?: CallOptions): Promise<Reply<T.EventCounts, Throws>> {
    return this.call(COUNT_EVENTS, [], params, options);
  }

  /** Get a product event */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneProductEvent, Throws>> {
    return this.call(GET_EVENT, [id], params, options);
  }
}

/** Published versions of a template. */
export class TemplatesVersionsResource<Throws extends boolean> extends Resource<Throws> {

  /** List versions, newest first */
  list(idOrAlias: string, params?: Params<P.ListTemplateVersionsParams>, options?: CallOptions): List<T.TemplateVersionList, T.TemplateVersion, Throws> {
    return this.pagesOf(LIST_TEMPLATE_VERSIONS, [idOrAlias], params, options);
  }

  /** Get a version */
  get(idOrAlias: string, number: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.GetTemplateVersionResponse, Throws>> {
    return this.call(GET_TEMPLATE_VERSION, [idOrAlias, number], params, options);
  }
}

/** Templates of emails. */
export class TemplatesResource<Throws extends boolean> extends Resource<Throws> {
  /** Published versions of a template. */
  readonly versions: TemplatesVersionsResource<Throws>;

  constructor(core: Core<Throws>) {
    super(core);
    this.versions = new TemplatesVersionsResource(core);
  }

  /** Create a template */
  create(params?: Params<P.CreateTemplateParams>, options?: CallOptions): Promise<Reply<T.CreateTemplateResponse, Throws>> {
    return this.call(CREATE_TEMPLATE, [], params, options);
  }

  /** List templates, newest first */
  list(params?: Params<P.ListTemplatesParams>, options?: CallOptions): List<T.TemplateList, T.Template, Throws> {
    return this.pagesOf(LIST_TEMPLATES, [], params, options);
  }

  /** Get a template */
  get(idOrAlias: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.GetTemplateResponse, Throws>> {
    return this.call(GET_TEMPLATE, [idOrAlias], params, options);
  }

  /** Update the draft of a template */
  update(idOrAlias: string, params?: Params<P.UpdateTemplateParams>, options?: CallOptions): Promise<Reply<T.UpdateTemplateResponse, Throws>> {
    return this.call(UPDATE_TEMPLATE, [idOrAlias], params, options);
  }

  /** Delete a template and its versions */
  delete(idOrAlias: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.Done, Throws>> {
    return this.call(DELETE_TEMPLATE, [idOrAlias], params, options);
  }

  /** Publish the draft as a new version */
  publish(idOrAlias: string, params?: Params<P.PublishTemplateParams>, options?: CallOptions): Promise<Reply<T.PublishTemplateResponse, Throws>> {
    return this.call(PUBLISH_TEMPLATE, [idOrAlias], params, options);
  }

  /** Publish a copy of an earlier version */
  rollBack(idOrAlias: string, params: Params<P.RollBackTemplateParams>, options?: CallOptions): Promise<Reply<T.RollBackTemplateResponse, Throws>> {
    return this.call(ROLL_BACK_TEMPLATE, [idOrAlias], params, options);
  }

  /** Render a template without sending it */
  preview(idOrAlias: string, params?: Params<P.PreviewTemplateParams>, options?: CallOptions): Promise<Reply<T.TemplatePreview, Throws>> {
    return this.call(PREVIEW_TEMPLATE, [idOrAlias], params, options);
  }

  /** Send a test email from a template */
  testSend(idOrAlias: string, params: Params<P.TestTemplateParams>, options?: CallOptions): Promise<Reply<T.Sent, Throws>> {
    return this.call(TEST_TEMPLATE, [idOrAlias], params, options);
  }

  /** Copy the draft into a new template */
  duplicate(idOrAlias: string, params?: Params<P.DuplicateTemplateParams>, options?: CallOptions): Promise<Reply<T.DuplicateTemplateResponse, Throws>> {
    return this.call(DUPLICATE_TEMPLATE, [idOrAlias], params, options);
  }
}

/** People who do not want a category of email. */
export class CategoryOptOutsResource<Throws extends boolean> extends Resource<Throws> {

  /** List opt-outs, newest first */
  list(params?: Params<P.ListCategoryOptOutsParams>, options?: CallOptions): List<T.CategoryOptOutList, T.CategoryOptOut, Throws> {
    return this.pagesOf(LIST_CATEGORY_OPT_OUTS, [], params, options);
  }

  /** Opt an address out of a category */
  create(params: Params<P.CreateCategoryOptOutParams>, options?: CallOptions): Promise<Reply<T.CreateCategoryOptOutResponse, Throws>> {
    return this.call(CREATE_CATEGORY_OPT_OUT, [], params, options);
  }

  /** Delete an opt-out */
  delete(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.Done, Throws>> {
    return this.call(DELETE_CATEGORY_OPT_OUT, [id], params, options);
  }
}

/** Addresses that get no email. */
export class SuppressionsResource<Throws extends boolean> extends Resource<Throws> {

  /** List suppressions, newest first */
  list(params?: Params<P.ListSuppressionsParams>, options?: CallOptions): List<T.SuppressionList, T.Suppression, Throws> {
    return this.pagesOf(LIST_SUPPRESSIONS, [], params, options);
  }

  /** Create suppressions */
  create(params?: Params<P.CreateSuppressionParams>, options?: CallOptions): Promise<Reply<T.CreateSuppressionResponse, Throws>> {
    return this.call(CREATE_SUPPRESSION, [], params, options);
  }

  /** Check whether addresses are suppressed */
  check(params: Params<P.CheckSuppressionsParams>, options?: CallOptions): Promise<Reply<T.CheckSuppressionsResponse, Throws>> {
    return this.call(CHECK_SUPPRESSIONS, [], params, options);
  }

  /** Import suppressions from CSV */
  import(params: Params<P.ImportSuppressionsParams>, options?: CallOptions): Promise<Reply<T.ImportSuppressionsResponse, Throws>> {
    return this.call(IMPORT_SUPPRESSIONS, [], params, options);
  }

  /** Show what an import of suppressions would do */
  dryRunImport(params: Params<P.DryRunSuppressionImportParams>, options?: CallOptions): Promise<Reply<T.DryRunSuppressionImportResponse, Throws>> {
    return this.call(DRY_RUN_SUPPRESSION_IMPORT, [], params, options);
  }

  /** List imports, newest first */
  listImports(params?: Params<P.ListSuppressionImportsParams>, options?: CallOptions): List<T.SuppressionImportList, T.SuppressionImport, Throws> {
    return this.pagesOf(LIST_SUPPRESSION_IMPORTS, [], params, options);
  }

  /** Get the progress of an import */
  getImport(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneImport, Throws>> {
    return this.call(GET_SUPPRESSION_IMPORT, [id], params, options);
  }

  /** Export suppressions as CSV */
  export(params?: Params<P.ExportSuppressionsParams>, options?: CallOptions): Promise<Reply<string, Throws>> {
    return this.call(EXPORT_SUPPRESSIONS, [], params, options);
  }

  /** Get a suppression */
  get(idOrEmail: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneSuppression, Throws>> {
    return this.call(GET_SUPPRESSION, [idOrEmail], params, options);
  }

  /** Delete a suppression */
  delete(idOrEmail: string, params?: Params<P.DeleteSuppressionParams>, options?: CallOptions): Promise<Reply<T.DeleteSuppressionResponse, Throws>> {
    return this.call(DELETE_SUPPRESSION, [idOrEmail], params, options);
  }
}

/** Saved credentials of DNS providers. */
export class DnsCredentialsResource<Throws extends boolean> extends Resource<Throws> {

  /** List the DNS providers with saved credentials */
  list(params?: NoParams, options?: CallOptions): Promise<Reply<T.SavedDnsCredentialsList, Throws>> {
    return this.call(LIST_DNS_CREDENTIALS, [], params, options);
  }

  /** Save credentials for a DNS provider */
  save(provider: string, params: Params<P.SaveDnsCredentialsParams>, options?: CallOptions): Promise<Reply<T.SaveDnsCredentialsResponse, Throws>> {
    return this.call(SAVE_DNS_CREDENTIALS, [provider], params, options);
  }

  /** Delete the credentials for a DNS provider */
  delete(provider: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.Done, Throws>> {
    return this.call(DELETE_DNS_CREDENTIALS, [provider], params, options);
  }
}

/** Publishing of a domain's DNS records. */
export class DomainsDnsResource<Throws extends boolean> extends Resource<Throws> {

  /** Publish the records at a DNS provider */
  apply(idOrName: string, params: Params<P.ApplyDomainDnsParams>, options?: CallOptions): Promise<Reply<T.ApplyDomainDnsResponse, Throws>> {
    return this.call(APPLY_DOMAIN_DNS, [idOrName], params, options);
  }

  /** Get the URL of the DNS provider's page where the records are approved */
  connect(idOrName: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.ConnectDns, Throws>> {
    return this.call(CONNECT_DOMAIN_DNS, [idOrName], params, options);
  }
}

/** Claims on domains that another account has. */
export class DomainsClaimsResource<Throws extends boolean> extends Resource<Throws> {

  /** Claim a domain of another account */
  create(params: Params<P.CreateDomainClaimParams>, options?: CallOptions): Promise<Reply<T.CreateDomainClaimResponse, Throws>> {
    return this.call(CREATE_DOMAIN_CLAIM, [], params, options);
  }

  /** List claims, newest first */
  list(params?: Params<P.ListDomainClaimsParams>, options?: CallOptions): List<T.DomainClaimList, T.DomainClaim, Throws> {
    return this.pagesOf(LIST_DOMAIN_CLAIMS, [], params, options);
  }

  /** Get a claim */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneDomainClaim, Throws>> {
    return this.call(GET_DOMAIN_CLAIM, [id], params, options);
  }

  /** Cancel a claim */
  cancel(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneDomainClaim, Throws>> {
    return this.call(CANCEL_DOMAIN_CLAIM, [id], params, options);
  }

  /** Verify a claim's record now */
  verify(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneDomainClaim, Throws>> {
    return this.call(VERIFY_DOMAIN_CLAIM, [id], params, options);
  }
}

/** Rotation of a domain's DKIM key. */
export class DomainsDkimResource<Throws extends boolean> extends Resource<Throws> {

  /** Rotate the DKIM keys */
  rotate(idOrName: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneDomain, Throws>> {
    return this.call(ROTATE_DOMAIN_DKIM, [idOrName], params, options);
  }

  /** Cancel a rotation whose keys do not sign yet */
  cancelRotation(idOrName: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneDomain, Throws>> {
    return this.call(CANCEL_DOMAIN_DKIM_ROTATION, [idOrName], params, options);
  }
}

/** Sending and receiving domains. */
export class DomainsResource<Throws extends boolean> extends Resource<Throws> {
  /** Rotation of a domain's DKIM key. */
  readonly dkim: DomainsDkimResource<Throws>;
  /** Claims on domains that another account has. */
  readonly claims: DomainsClaimsResource<Throws>;
  /** Publishing of a domain's DNS records. */
  readonly dns: DomainsDnsResource<Throws>;

  constructor(core: Core<Throws>) {
    super(core);
    this.dkim = new DomainsDkimResource(core);
    this.claims = new DomainsClaimsResource(core);
    this.dns = new DomainsDnsResource(core);
  }

  /** Add a domain, and get the records to publish */
  create(params: Params<P.CreateDomainParams>, options?: CallOptions): Promise<Reply<T.CreateDomainResponse, Throws>> {
    return this.call(CREATE_DOMAIN, [], params, options);
  }

  /** List domains, newest first */
  list(params?: Params<P.ListDomainsParams>, options?: CallOptions): List<T.DomainList, T.Domain, Throws> {
    return this.pagesOf(LIST_DOMAINS, [], params, options);
  }

  /** Get a domain and the status of its records */
  get(idOrName: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.OneDomain, Throws>> {
    return this.call(GET_DOMAIN, [idOrName], params, options);
  }

  /** Update a domain's settings */
  update(idOrName: string, params?: Params<P.UpdateDomainParams>, options?: CallOptions): Promise<Reply<T.UpdateDomainResponse, Throws>> {
    return this.call(UPDATE_DOMAIN, [idOrName], params, options);
  }

  /** Delete a domain */
  delete(idOrName: string, params?: Params<P.DeleteDomainParams>, options?: CallOptions): Promise<Reply<T.Done, Throws>> {
    return this.call(DELETE_DOMAIN, [idOrName], params, options);
  }

  /** Get the records as a zone file */
  zoneFile(idOrName: string, params?: NoParams, options?: CallOptions): Promise<Reply<string, Throws>> {
    return this.call(GET_DOMAIN_ZONE_FILE, [idOrName], params, options);
  }

  /** Get a summary of the DMARC reports about a domain */
  dmarc(idOrName: string, params?: Params<P.GetDomainDmarcParams>, options?: CallOptions): Promise<Reply<T.GetDomainDmarcResponse, Throws>> {
    return this.call(GET_DOMAIN_DMARC, [idOrName], params, options);
  }

  /** Verify a domain's records now */
  verify(idOrName: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.VerifiedDomain, Throws>> {
    return this.call(VERIFY_DOMAIN, [idOrName], params, options);
  }
}

/** Credentials for sending by SMTP. */
export class SmtpCredentialsResource<Throws extends boolean> extends Resource<Throws> {

  /** Create an SMTP credential; its password is shown once */
  create(params: Params<P.CreateSmtpCredentialParams>, options?: CallOptions): Promise<Reply<T.CreateSmtpCredentialResponse, Throws>> {
    return this.call(CREATE_SMTP_CREDENTIAL, [], params, options);
  }

  /** List SMTP credentials, newest first */
  list(params?: Params<P.ListSmtpCredentialsParams>, options?: CallOptions): List<T.ListSmtpCredentialsResponse, T.SmtpCredential, Throws> {
    return this.pagesOf(LIST_SMTP_CREDENTIALS, [], params, options);
  }

  /** Get an SMTP credential */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.GetSmtpCredentialResponse, Throws>> {
    return this.call(GET_SMTP_CREDENTIAL, [id], params, options);
  }

  /** Rename, enable or disable an SMTP credential, or set its allowed addresses */
  update(id: string, params?: Params<P.UpdateSmtpCredentialParams>, options?: CallOptions): Promise<Reply<T.UpdateSmtpCredentialResponse, Throws>> {
    return this.call(UPDATE_SMTP_CREDENTIAL, [id], params, options);
  }

  /** Delete an SMTP credential */
  delete(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.Done, Throws>> {
    return this.call(DELETE_SMTP_CREDENTIAL, [id], params, options);
  }

  /** Rotate an SMTP credential's password; the previous one stays valid for a grace period */
  rotate(id: string, params?: Params<P.RotateSmtpCredentialParams>, options?: CallOptions): Promise<Reply<T.RotateSmtpCredentialResponse, Throws>> {
    return this.call(ROTATE_SMTP_CREDENTIAL, [id], params, options);
  }
}

/** API keys. */
export class ApiKeysResource<Throws extends boolean> extends Resource<Throws> {

  /** Create an API key; its secret is shown once */
  create(params: Params<P.CreateApiKeyParams>, options?: CallOptions): Promise<Reply<T.CreateApiKeyResponse, Throws>> {
    return this.call(CREATE_API_KEY, [], params, options);
  }

  /** List API keys, newest first */
  list(params?: Params<P.ListApiKeysParams>, options?: CallOptions): List<T.ListApiKeysResponse, T.ApiKey, Throws> {
    return this.pagesOf(LIST_API_KEYS, [], params, options);
  }

  /** Get an API key */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.GetApiKeyResponse, Throws>> {
    return this.call(GET_API_KEY, [id], params, options);
  }

  /** Rename, enable or disable an API key, or set its allowed addresses */
  update(id: string, params?: Params<P.UpdateApiKeyParams>, options?: CallOptions): Promise<Reply<T.UpdateApiKeyResponse, Throws>> {
    return this.call(UPDATE_API_KEY, [id], params, options);
  }

  /** Delete an API key */
  delete(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.Done, Throws>> {
    return this.call(DELETE_API_KEY, [id], params, options);
  }

  /** Rotate an API key's secret; the previous one stays valid for a grace period */
  rotate(id: string, params?: Params<P.RotateApiKeyParams>, options?: CallOptions): Promise<Reply<T.RotateApiKeyResponse, Throws>> {
    return this.call(ROTATE_API_KEY, [id], params, options);
  }
}

/** Log of API requests. */
export class LogsResource<Throws extends boolean> extends Resource<Throws> {

  /** List API requests of the last 30 days, newest first */
  list(params?: Params<P.ListLogsParams>, options?: CallOptions): List<T.ListLogsResponse, T.LoggedRequest, Throws> {
    return this.pagesOf(LIST_LOGS, [], params, options);
  }

  /** Get an API request */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.GetLogResponse, Throws>> {
    return this.call(GET_LOG, [id], params, options);
  }
}

/** The account that the API key belongs to. */
export class AccountResource<Throws extends boolean> extends Resource<Throws> {

  /** Get the account, its limits and its usage */
  get(params?: NoParams, options?: CallOptions): Promise<Reply<T.Account, Throws>> {
    return this.call(GET_ACCOUNT, [], params, options);
  }
}

/** Attachments of an email. */
export class EmailsAttachmentsResource<Throws extends boolean> extends Resource<Throws> {

  /** Get an attachment of an email */
  get(id: string, attId: string, params?: NoParams, options?: CallOptions): Promise<Reply<Uint8Array, Throws>> {
    return this.call(GET_EMAIL_ATTACHMENT, [id, attId], params, options);
  }
}

/** Delivery attempts of an email. */
export class EmailsAttemptsResource<Throws extends boolean> extends Resource<Throws> {

  /** List the delivery attempts of an email, newest first */
  list(id: string, params?: Params<P.ListEmailAttemptsParams>, options?: CallOptions): List<T.AttemptList, T.Attempt, Throws> {
    return this.pagesOf(LIST_EMAIL_ATTEMPTS, [id], params, options);
  }
}

/** Events of an email. */
export class EmailsEventsResource<Throws extends boolean> extends Resource<Throws> {

  /** List the events of an email, newest first */
  list(id: string, params?: Params<P.ListEmailEventsParams>, options?: CallOptions): List<T.EmailEventList, T.EmailEvent, Throws> {
    return this.pagesOf(LIST_EMAIL_EVENTS, [id], params, options);
  }
}

/** Emails that were sent or are waiting. */
export class EmailsResource<Throws extends boolean> extends Resource<Throws> {
  /** Events of an email. */
  readonly events: EmailsEventsResource<Throws>;
  /** Delivery attempts of an email. */
  readonly attempts: EmailsAttemptsResource<Throws>;
  /** Attachments of an email. */
  readonly attachments: EmailsAttachmentsResource<Throws>;

  constructor(core: Core<Throws>) {
    super(core);
    this.events = new EmailsEventsResource(core);
    this.attempts = new EmailsAttemptsResource(core);
    this.attachments = new EmailsAttachmentsResource(core);
  }

  /** Send an email */
  send(params: Params<P.SendEmailParams>, options?: CallOptions): Promise<Reply<T.Sent, Throws>> {
    return this.call(SEND_EMAIL, [], params, options);
  }

  /** Send up to 100 emails in one request */
  sendBatch(params: Params<P.SendBatchParams>, options?: CallOptions): Promise<Reply<T.SendBatchResponse, Throws>> {
    return this.call(SEND_BATCH, [], params, options);
  }

  /** List emails, newest first; all given filters must match */
  list(params?: Params<P.ListEmailsParams>, options?: CallOptions): List<T.EmailList, T.Email, Throws> {
    return this.pagesOf(LIST_EMAILS, [], params, options);
  }

  /** Get email metrics by hour or day, optionally by dimension */
  metrics(params?: Params<P.GetEmailMetricsParams>, options?: CallOptions): Promise<Reply<T.GetEmailMetricsResponse, Throws>> {
    return this.call(GET_EMAIL_METRICS, [], params, options);
  }

  /** Get an email */
  get(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.GetEmailResponse, Throws>> {
    return this.call(GET_EMAIL, [id], params, options);
  }

  /** Reschedule or cancel a scheduled email */
  update(id: string, params?: Params<P.UpdateEmailParams>, options?: CallOptions): Promise<Reply<T.UpdateEmailResponse, Throws>> {
    return this.call(UPDATE_EMAIL, [id], params, options);
  }

  /** Cancel a scheduled email */
  cancel(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<T.CancelEmailResponse, Throws>> {
    return this.call(CANCEL_EMAIL, [id], params, options);
  }

  /** Resend a stored email, with its attachments on request */
  resend(id: string, params?: Params<P.ResendEmailParams>, options?: CallOptions): Promise<Reply<T.Sent, Throws>> {
    return this.call(RESEND_EMAIL, [id], params, options);
  }

  /** Send a test event to webhooks */
  testEvent(params: Params<P.TestEventParams>, options?: CallOptions): Promise<Reply<T.TestEventResponse, Throws>> {
    return this.call(TEST_EVENT, [], params, options);
  }

  /** Get the message as it was sent */
  raw(id: string, params?: NoParams, options?: CallOptions): Promise<Reply<Uint8Array, Throws>> {
    return this.call(GET_EMAIL_RAW, [id], params, options);
  }
}

/** All resources; the base of the client. */
export class Resources<Throws extends boolean> {
  /** Emails that were sent or are waiting. */
  readonly emails: EmailsResource<Throws>;
  /** The account that the API key belongs to. */
  readonly account: AccountResource<Throws>;
  /** Log of API requests. */
  readonly logs: LogsResource<Throws>;
  /** API keys. */
  readonly apiKeys: ApiKeysResource<Throws>;
  /** Credentials for sending by SMTP. */
  readonly smtpCredentials: SmtpCredentialsResource<Throws>;
  /** Sending and receiving domains. */
  readonly domains: DomainsResource<Throws>;
  /** Saved credentials of DNS providers. */
  readonly dnsCredentials: DnsCredentialsResource<Throws>;
  /** Addresses that get no email. */
  readonly suppressions: SuppressionsResource<Throws>;
  /** People who do not want a category of email. */
  readonly categoryOptOuts: CategoryOptOutsResource<Throws>;
  /** Templates of emails. */
  readonly templates: TemplatesResource<Throws>;
  /** Product events: what people did in your product. */
  readonly events: EventsResource<Throws>;
  /** Funnels over product events. */
  readonly funnels: FunnelsResource<Throws>;
  /** Conversions. */
  readonly conversions: ConversionsResource<Throws>;
  /** Visits of the website. */
  readonly visits: VisitsResource<Throws>;
  /** Webhooks. */
  readonly webhooks: WebhooksResource<Throws>;
  /** The stream of webhook events. */
  readonly webhookEvents: WebhookEventsResource<Throws>;
  /** Received emails. */
  readonly receivedEmails: ReceivedEmailsResource<Throws>;
  /** Automations: emails and steps that a product event starts. */
  readonly automations: AutomationsResource<Throws>;
  /** Affiliates of the program. */
  readonly affiliates: AffiliatesResource<Throws>;
  /** Campaigns of the affiliate program: commissions and terms. */
  readonly affiliateCampaigns: AffiliateCampaignsResource<Throws>;
  /** People that affiliates referred. */
  readonly affiliateReferrals: AffiliateReferralsResource<Throws>;
  /** What affiliates earned. */
  readonly affiliateCommissions: AffiliateCommissionsResource<Throws>;
  /** Payments to affiliates. */
  readonly affiliatePayouts: AffiliatePayoutsResource<Throws>;
  /** What users have allowed apps to do. */
  readonly grants: GrantsResource<Throws>;
  /** Requests that wait for a person's approval. */
  readonly approvals: ApprovalsResource<Throws>;
  /** What credentials and users did. */
  readonly auditLog: AuditLogResource<Throws>;

  constructor(core: Core<Throws>) {
    this.emails = new EmailsResource(core);
    this.account = new AccountResource(core);
    this.logs = new LogsResource(core);
    this.apiKeys = new ApiKeysResource(core);
    this.smtpCredentials = new SmtpCredentialsResource(core);
    this.domains = new DomainsResource(core);
    this.dnsCredentials = new DnsCredentialsResource(core);
    this.suppressions = new SuppressionsResource(core);
    this.categoryOptOuts = new CategoryOptOutsResource(core);
    this.templates = new TemplatesResource(core);
    this.events = new EventsResource(core);
    this.funnels = new FunnelsResource(core);
    this.conversions = new ConversionsResource(core);
    this.visits = new VisitsResource(core);
    this.webhooks = new WebhooksResource(core);
    this.webhookEvents = new WebhookEventsResource(core);
    this.receivedEmails = new ReceivedEmailsResource(core);
    this.automations = new AutomationsResource(core);
    this.affiliates = new AffiliatesResource(core);
    this.affiliateCampaigns = new AffiliateCampaignsResource(core);
    this.affiliateReferrals = new AffiliateReferralsResource(core);
    this.affiliateCommissions = new AffiliateCommissionsResource(core);
    this.affiliatePayouts = new AffiliatePayoutsResource(core);
    this.grants = new GrantsResource(core);
    this.approvals = new ApprovalsResource(core);
    this.auditLog = new AuditLogResource(core);
  }
}
