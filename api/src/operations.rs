//! The operation table: the single list of everything the API offers.
//!
//! The router, the OpenAPI document and the scope tests are derived from it. New operations are added only here.

use model::credential::{ApiKey, SmtpCredential};
use model::quota::Noun;

use crate::operation::{Operation, OperationBuilder, SessionSubject, operation};
use crate::prelude::*;
use crate::{
    account, affiliate, approvals, audit_log, auth, automations, billing, credentials, domains, emails, events, health,
    logs, mta_sts, oauth, openapi, opt_outs, portal, received_emails, suppressions, templates, tracking, unsubscribe,
    users, visits, webhook_events, webhooks,
};

pub fn operation_table() -> Vec<Operation> {
    let mut table: Vec<Operation> = [
        service_operations(),
        email_operations(),
        account_operations(),
        api_key_operations(),
        smtp_credential_operations(),
        user_operations(),
        team_operations(),
    ]
    .into_iter()
    .flatten()
    .collect();
    table.extend(domains::operations());
    table.extend(suppressions::operations());
    table.extend(opt_outs::operations());
    table.extend(unsubscribe::operations());
    table.extend(templates::operations());
    table.extend(mta_sts::operations());
    table.extend(tracking::operations());
    table.extend(events::operations());
    table.extend(visits::operations());
    table.extend(webhooks::operations());
    table.extend(webhook_events::operations());
    table.extend(received_emails::operations());
    table.extend(automations::operations());
    table.extend(affiliate::operations());
    table.extend(billing::operations());
    table.extend(portal::operations());
    table.extend(oauth::operations());
    table.extend(approvals::operations());
    table.extend(audit_log::operations());
    table
}

fn get(path: &'static str, id: &'static str) -> OperationBuilder {
    operation(Method::GET, path, id)
}

fn post(path: &'static str, id: &'static str) -> OperationBuilder {
    operation(Method::POST, path, id)
}

fn patch(path: &'static str, id: &'static str) -> OperationBuilder {
    operation(Method::PATCH, path, id)
}

fn delete(path: &'static str, id: &'static str) -> OperationBuilder {
    operation(Method::DELETE, path, id)
}

fn service_operations() -> Vec<Operation> {
    vec![
        get("/healthz", "check_health").about("service", "Check whether the service is healthy").public(health::check),
        get("/openapi.json", "get_openapi").about("service", "Get this OpenAPI document").public(openapi::get),
    ]
}

fn email_operations() -> Vec<Operation> {
    use ApiKeyScope::{Full, Sending};
    vec![
        post("/emails", "send_email")
            .about("emails", "Send an email")
            .errors(ErrorCode::SENDING)
            .domain_scoped()
            .sdk("emails.send")
            .risk(Risk::Send)
            .api_key(Sending, emails::send)
            .resolved_by(emails::resolve_send),
        post("/emails/batch", "send_batch")
            .about("emails", "Send up to 100 emails in one request")
            .errors(ErrorCode::SENDING)
            .domain_scoped()
            .sdk("emails.sendBatch")
            .risk(Risk::Send)
            .api_key(Sending, emails::send_batch)
            .resolved_by(emails::batch::submit::resolve_batch),
        get("/emails", "list_emails")
            .about("emails", "List emails, newest first; all given filters must match")
            .domain_scoped()
            .sdk("emails.list")
            .api_key_or_session(Sending, emails::list::list),
        get("/emails/metrics", "get_email_metrics")
            .about("emails", "Get email metrics by hour or day, optionally by dimension")
            .sdk("emails.metrics")
            .api_key_or_session(Full, emails::metrics::get),
        get("/emails/{id}", "get_email")
            .about("emails", "Get an email")
            .domain_scoped()
            .sdk("emails.get")
            .api_key_or_session(Sending, emails::get),
        patch("/emails/{id}", "update_email")
            .about("emails", "Reschedule or cancel a scheduled email")
            .domain_scoped()
            .sdk("emails.update")
            .mails_later()
            .api_key_or_session(Sending, emails::reschedule::reschedule),
        post("/emails/{id}/cancel", "cancel_email")
            .about("emails", "Cancel a scheduled email")
            .domain_scoped()
            .sdk("emails.cancel")
            .api_key_or_session(Sending, emails::reschedule::cancel),
        post("/emails/{id}/resend", "resend_email")
            .about("emails", "Resend a stored email, with its attachments on request")
            .errors(ErrorCode::SENDING)
            .domain_scoped()
            .sdk("emails.resend")
            .risk(Risk::Send)
            .api_key_or_session(Sending, emails::resend::resend)
            .resolved_by(emails::resend::resolve_resend),
        post("/emails/test", "test_event")
            .about("emails", "Send a test event to webhooks")
            .errors(&[ErrorCode::NOT_FOUND])
            .domain_scoped()
            .sdk("emails.testEvent")
            .api_key_or_session(Full, emails::test_event::send_test_event),
        get("/emails/{id}/events", "list_email_events")
            .about("emails", "List the events of an email, newest first")
            .domain_scoped()
            .sdk("emails.events.list")
            .api_key_or_session(Sending, emails::events),
        get("/emails/{id}/attempts", "list_email_attempts")
            .about("emails", "List the delivery attempts of an email, newest first")
            .domain_scoped()
            .sdk("emails.attempts.list")
            .api_key_or_session(Sending, emails::attempts),
        get("/emails/{id}/attachments/{att_id}", "get_email_attachment")
            .about("emails", "Get an attachment of an email")
            .domain_scoped()
            .sdk("emails.attachments.get")
            .api_key_or_session(Full, emails::sent_attachment::get),
        get("/emails/{id}/raw", "get_email_raw")
            .about("emails", "Get the message as it was sent")
            .domain_scoped()
            .sdk("emails.raw")
            .api_key_or_session(Full, emails::raw),
    ]
}

fn account_operations() -> Vec<Operation> {
    let full = ApiKeyScope::Full;
    vec![
        get("/account", "get_account")
            .about("account", "Get the account, its limits and its usage")
            .sdk("account.get")
            .api_key_or_session(full, account::get),
        get("/logs", "list_logs")
            .about("logs", "List API requests of the last 30 days, newest first")
            .sdk("logs.list")
            .api_key_or_session(full, logs::list),
        get("/logs/{id}", "get_log")
            .about("logs", "Get an API request")
            .sdk("logs.get")
            .api_key_or_session(full, logs::get),
    ]
}

fn api_key_operations() -> Vec<Operation> {
    let (full, tag) = (ApiKeyScope::Full, "api_keys");
    vec![
        post("/api-keys", "create_api_key")
            .errors(&[ErrorCode::NOT_FOUND])
            .about(tag, "Create an API key; its secret is shown once")
            .storage_cost(&[(Noun::ApiKeys, 1)])
            .sdk("apiKeys.create")
            .risk(Risk::Secret)
            .api_key_or_session(full, credentials::create::<ApiKey>),
        get("/api-keys", "list_api_keys")
            .about(tag, "List API keys, newest first")
            .sdk("apiKeys.list")
            .api_key_or_session(full, credentials::list::<ApiKey>),
        get("/api-keys/{id}", "get_api_key")
            .about(tag, "Get an API key")
            .sdk("apiKeys.get")
            .api_key_or_session(full, credentials::get::<ApiKey>),
        patch("/api-keys/{id}", "update_api_key")
            .about(tag, "Rename, enable or disable an API key, or set its allowed addresses")
            .sdk("apiKeys.update")
            .errors(&[ErrorCode::REAUTHENTICATION_REQUIRED])
            .api_key_or_session(full, credentials::update::<ApiKey>),
        delete("/api-keys/{id}", "delete_api_key")
            .about(tag, "Delete an API key")
            .sdk("apiKeys.delete")
            .api_key_or_session(full, credentials::delete::<ApiKey>),
        post("/api-keys/{id}/rotate", "rotate_api_key")
            .about(tag, "Rotate an API key's secret; the previous one stays valid for a grace period")
            .sdk("apiKeys.rotate")
            .risk(Risk::Secret)
            .api_key_or_session(full, credentials::rotate::<ApiKey>),
    ]
}

fn smtp_credential_operations() -> Vec<Operation> {
    let (full, tag) = (ApiKeyScope::Full, "smtp_credentials");
    vec![
        post("/smtp-credentials", "create_smtp_credential")
            .errors(&[ErrorCode::NOT_FOUND])
            .about(tag, "Create an SMTP credential; its password is shown once")
            .storage_cost(&[(Noun::SmtpCredentials, 1)])
            .sdk("smtpCredentials.create")
            .risk(Risk::Secret)
            .api_key_or_session(full, credentials::create::<SmtpCredential>),
        get("/smtp-credentials", "list_smtp_credentials")
            .about(tag, "List SMTP credentials, newest first")
            .sdk("smtpCredentials.list")
            .api_key_or_session(full, credentials::list::<SmtpCredential>),
        get("/smtp-credentials/{id}", "get_smtp_credential")
            .about(tag, "Get an SMTP credential")
            .sdk("smtpCredentials.get")
            .api_key_or_session(full, credentials::get::<SmtpCredential>),
        patch("/smtp-credentials/{id}", "update_smtp_credential")
            .about(tag, "Rename, enable or disable an SMTP credential, or set its allowed addresses")
            .sdk("smtpCredentials.update")
            .errors(&[ErrorCode::REAUTHENTICATION_REQUIRED])
            .api_key_or_session(full, credentials::update::<SmtpCredential>),
        delete("/smtp-credentials/{id}", "delete_smtp_credential")
            .about(tag, "Delete an SMTP credential")
            .sdk("smtpCredentials.delete")
            .api_key_or_session(full, credentials::delete::<SmtpCredential>),
        post("/smtp-credentials/{id}/rotate", "rotate_smtp_credential")
            .about(tag, "Rotate an SMTP credential's password; the previous one stays valid for a grace period")
            .sdk("smtpCredentials.rotate")
            .risk(Risk::Secret)
            .api_key_or_session(full, credentials::rotate::<SmtpCredential>),
    ]
}

fn user_operations() -> Vec<Operation> {
    use SessionSubject::Own;
    vec![
        post("/auth/sign-in", "sign_in")
            .about(
                "auth",
                "Sign in with a password; users with one-time passwords get a challenge instead of a session",
            )
            .errors(&[ErrorCode::UNAUTHORIZED, ErrorCode::RATE_LIMIT_EXCEEDED])
            .public(auth::password_sign_in::sign_in),
        post("/auth/link", "ask_for_sign_in_link")
            .about("auth", "Request a sign-in link by email")
            .errors(&[ErrorCode::RATE_LIMIT_EXCEEDED])
            .public(auth::link_sign_in::request_link),
        get("/auth/link/{token}", "show_sign_in_link")
            .about("auth", "Show the page of a mailed link; changes nothing")
            .public(auth::link_sign_in::show_link),
        post("/auth/link/{token}", "use_sign_in_link")
            .about(
                "auth",
                "Sign in with a link (works once); accepts an invitation. May return a challenge, as `sign_in`",
            )
            .errors(&[ErrorCode::UNAUTHORIZED, ErrorCode::CONFLICT, ErrorCode::RATE_LIMIT_EXCEEDED])
            .public(auth::link_sign_in::use_link),
        get("/auth/code/{challenge}", "show_code_page")
            .about("auth", "Show the page that asks for a one-time password; changes nothing")
            .public(auth::code_sign_in::show_page),
        post("/auth/code/{challenge}", "sign_in_with_code")
            .about("auth", "Finish signing in with a one-time password or recovery code")
            .errors(&[ErrorCode::UNAUTHORIZED, ErrorCode::CONFLICT, ErrorCode::RATE_LIMIT_EXCEEDED])
            .public(auth::code_sign_in::sign_in),
        get("/auth/session", "get_session").about("auth", "Get the current session").session(Own, auth::session::get),
        get("/auth/sessions", "list_sessions")
            .about("auth", "List the user's sessions, newest first")
            .session(Own, auth::session::list),
        delete("/auth/sessions", "end_other_sessions")
            .about("auth", "End all other sessions of the user")
            .session(Own, auth::session::end_others),
        delete("/auth/sessions/{id}", "end_session")
            .about("auth", "End one of the user's sessions")
            .session(Own, auth::session::end),
        post("/auth/sign-out", "sign_out")
            .about("auth", "Sign out: end the current session")
            .session(Own, auth::session::sign_out),
        post("/auth/password", "set_password")
            .about("auth", "Set the user's password; ends the user's other sessions")
            .errors(&[ErrorCode::REAUTHENTICATION_REQUIRED])
            .session(Own, auth::own_password::set_password),
        post("/auth/reauthenticate", "reauthenticate")
            .about("auth", "Prove the user's identity again, for operations about secrets and money")
            .session(Own, auth::reauthentication::reauthenticate),
        post("/auth/totp", "begin_totp")
            .about("auth", "Create a secret for one-time passwords; it is inactive until it is confirmed")
            .risk(Risk::Secret)
            .session(Own, auth::totp::begin),
        post("/auth/totp/confirm", "confirm_totp")
            .about("auth", "Activate one-time passwords with a code; returns the recovery codes once")
            .session(Own, auth::totp::confirm),
        post("/auth/totp/disable", "disable_totp")
            .about("auth", "Remove one-time passwords and recovery codes")
            .session(Own, auth::totp::disable),
        post("/auth/totp/recovery-codes", "replace_recovery_codes")
            .about("auth", "Replace the recovery codes; returns the new ones once")
            .risk(Risk::Secret)
            .session(Own, auth::totp::replace_recovery_codes),
    ]
}

fn team_operations() -> Vec<Operation> {
    use SessionSubject::Account;
    vec![
        get("/users", "list_users").about("users", "List users, newest first").session(Account, users::list),
        post("/users", "invite_user")
            .about("users", "Invite a user to the account, or resend an open invitation")
            .errors(&[ErrorCode::CONFLICT, ErrorCode::PLAN_FULL])
            .risk(Risk::Team)
            .session(Account, users::invite),
        patch("/users/{id}", "update_user")
            .about("users", "Change a user's role")
            .risk(Risk::Team)
            .session(Account, users::update_role),
        delete("/users/{id}", "remove_user")
            .about("users", "Remove a user and end the user's sessions")
            .risk(Risk::Team)
            .session(Account, users::remove),
    ]
}
