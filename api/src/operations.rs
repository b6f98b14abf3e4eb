//! The operation table: the single list of everything the API offers.
//!
//! The router, the OpenAPI document and the scope tests are derived from it. New operations are added only here.

use crate::operation::{Operation, OperationTag};
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
        credentials::operations(),
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

fn service_operations() -> Vec<Operation> {
    let tag = OperationTag::new("service");
    vec![
        tag.get("/healthz", "Check whether the service is healthy").public("check_health", health::check),
        tag.get("/openapi.json", "Get this OpenAPI document").public("get_openapi", openapi::get),
    ]
}

fn email_operations() -> Vec<Operation> {
    let tag = OperationTag::new("emails");
    vec![
        tag.post("/emails", "Send an email")
            .errors(ErrorCode::SENDING)
            .domain_scoped()
            .risk(Risk::Send)
            .sending_key(("send_email", "emails.send"), emails::send)
            .resolved_by(emails::resolve_send),
        tag.post("/emails/batch", "Send up to 100 emails in one request")
            .errors(ErrorCode::SENDING)
            .domain_scoped()
            .risk(Risk::Send)
            .sending_key(("send_batch", "emails.sendBatch"), emails::send_batch)
            .resolved_by(emails::batch::submit::resolve_batch),
        tag.get("/emails", "List emails, newest first; all given filters must match")
            .domain_scoped()
            .sending_key_or_session(("list_emails", "emails.list"), emails::list::list),
        tag.get("/emails/metrics", "Get email metrics by hour or day, optionally by dimension")
            .full_key_or_session(("get_email_metrics", "emails.metrics"), emails::metrics::get),
        tag.get("/emails/{id}", "Get an email")
            .domain_scoped()
            .sending_key_or_session(("get_email", "emails.get"), emails::get),
        tag.patch("/emails/{id}", "Reschedule or cancel a scheduled email")
            .domain_scoped()
            .mails_later()
            .sending_key_or_session(("update_email", "emails.update"), emails::reschedule::reschedule),
        tag.post("/emails/{id}/cancel", "Cancel a scheduled email")
            .domain_scoped()
            .sending_key_or_session(("cancel_email", "emails.cancel"), emails::reschedule::cancel),
        tag.post("/emails/{id}/resend", "Resend a stored email, with its attachments on request")
            .errors(ErrorCode::SENDING)
            .domain_scoped()
            .risk(Risk::Send)
            .sending_key_or_session(("resend_email", "emails.resend"), emails::resend::resend)
            .resolved_by(emails::resend::resolve_resend),
        tag.post("/emails/test", "Send a test event to webhooks")
            .errors(&[ErrorCode::NOT_FOUND])
            .domain_scoped()
            .full_key_or_session(("test_event", "emails.testEvent"), emails::test_event::send_test_event),
        tag.get("/emails/{id}/events", "List the events of an email, newest first")
            .domain_scoped()
            .sending_key_or_session(("list_email_events", "emails.events.list"), emails::events),
        tag.get("/emails/{id}/attempts", "List the delivery attempts of an email, newest first")
            .domain_scoped()
            .sending_key_or_session(("list_email_attempts", "emails.attempts.list"), emails::attempts),
        tag.get("/emails/{id}/attachments/{att_id}", "Get an attachment of an email")
            .domain_scoped()
            .full_key_or_session(("get_email_attachment", "emails.attachments.get"), emails::sent_attachment::get),
        tag.get("/emails/{id}/raw", "Get the message as it was sent")
            .domain_scoped()
            .full_key_or_session(("get_email_raw", "emails.raw"), emails::raw),
    ]
}

fn account_operations() -> Vec<Operation> {
    let logs = OperationTag::new("logs");
    vec![
        OperationTag::new("account")
            .get("/account", "Get the account, its limits and its usage")
            .full_key_or_session(("get_account", "account.get"), account::get),
        logs.get("/logs", "List API requests of the last 30 days, newest first")
            .full_key_or_session(("list_logs", "logs.list"), logs::list),
        logs.get("/logs/{id}", "Get an API request").full_key_or_session(("get_log", "logs.get"), logs::get),
    ]
}

fn user_operations() -> Vec<Operation> {
    let tag = OperationTag::new("auth");
    vec![
        tag.post(
            "/auth/sign-in",
            "Sign in with a password; users with one-time passwords get a challenge instead of a session",
        )
        .errors(&[ErrorCode::UNAUTHORIZED, ErrorCode::RATE_LIMIT_EXCEEDED])
        .public("sign_in", auth::password_sign_in::sign_in),
        tag.post("/auth/link", "Request a sign-in link by email")
            .errors(&[ErrorCode::RATE_LIMIT_EXCEEDED])
            .public("ask_for_sign_in_link", auth::link_sign_in::request_link),
        tag.get("/auth/link/{token}", "Show the page of a mailed link; changes nothing")
            .public("show_sign_in_link", auth::link_sign_in::show_link),
        tag.post(
            "/auth/link/{token}",
            "Sign in with a link (works once); accepts an invitation. May return a challenge, as `sign_in`",
        )
        .errors(&[ErrorCode::UNAUTHORIZED, ErrorCode::CONFLICT, ErrorCode::RATE_LIMIT_EXCEEDED])
        .public("use_sign_in_link", auth::link_sign_in::use_link),
        tag.get("/auth/code/{challenge}", "Show the page that asks for a one-time password; changes nothing")
            .public("show_code_page", auth::code_sign_in::show_page),
        tag.post("/auth/code/{challenge}", "Finish signing in with a one-time password or recovery code")
            .errors(&[ErrorCode::UNAUTHORIZED, ErrorCode::CONFLICT, ErrorCode::RATE_LIMIT_EXCEEDED])
            .public("sign_in_with_code", auth::code_sign_in::sign_in),
        tag.get("/auth/session", "Get the current session").own_session("get_session", auth::session::get),
        tag.get("/auth/sessions", "List the user's sessions, newest first")
            .own_session("list_sessions", auth::session::list),
        tag.delete("/auth/sessions", "End all other sessions of the user")
            .own_session("end_other_sessions", auth::session::end_others),
        tag.delete("/auth/sessions/{id}", "End one of the user's sessions")
            .own_session("end_session", auth::session::end),
        tag.post("/auth/sign-out", "Sign out: end the current session")
            .own_session("sign_out", auth::session::sign_out),
        tag.post("/auth/password", "Set the user's password; ends the user's other sessions")
            .errors(&[ErrorCode::REAUTHENTICATION_REQUIRED])
            .own_session("set_password", auth::own_password::set_password),
        tag.post("/auth/reauthenticate", "Prove the user's identity again, for operations about secrets and money")
            .own_session("reauthenticate", auth::reauthentication::reauthenticate),
        tag.post("/auth/totp", "Create a secret for one-time passwords; it is inactive until it is confirmed")
            .risk(Risk::Secret)
            .own_session("begin_totp", auth::totp::begin),
        tag.post("/auth/totp/confirm", "Activate one-time passwords with a code; returns the recovery codes once")
            .own_session("confirm_totp", auth::totp::confirm),
        tag.post("/auth/totp/disable", "Remove one-time passwords and recovery codes")
            .own_session("disable_totp", auth::totp::disable),
        tag.post("/auth/totp/recovery-codes", "Replace the recovery codes; returns the new ones once")
            .risk(Risk::Secret)
            .own_session("replace_recovery_codes", auth::totp::replace_recovery_codes),
    ]
}

fn team_operations() -> Vec<Operation> {
    let tag = OperationTag::new("users");
    vec![
        tag.get("/users", "List users, newest first").account_session("list_users", users::list),
        tag.post("/users", "Invite a user to the account, or resend an open invitation")
            .errors(&[ErrorCode::CONFLICT, ErrorCode::PLAN_FULL])
            .risk(Risk::Team)
            .account_session("invite_user", users::invite),
        tag.patch("/users/{id}", "Change a user's role")
            .risk(Risk::Team)
            .account_session("update_user", users::update_role),
        tag.delete("/users/{id}", "Remove a user and end the user's sessions")
            .risk(Risk::Team)
            .account_session("remove_user", users::remove),
    ]
}
