//! Dispatches admin requests to their handlers, and handles accounts, domains, TLS reports, replies and backups.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::queue::domains::NewDomain;
use api::operator::OwnerRequest;
use mail::account::Plan;
use mail::address::{Address, DomainName};
use mail::classify::ClassifierInput;
use mail::destination::Destination;
use mail::domain::SendingDomain;
use mail::id::EmailId;
use mail::outcome::AttemptPhase;
use mail::reply::SmtpReply;
use mail::tls_report::Day;
use serde_json::{Value, json};
use store::access::AccessError;
use store::engine::Batch;
use store::tls_daily_stats::TlsStatsPage;
use tokio::sync::mpsc;

use super::{
    AdminError, AdminRequest, DomainChange, PageQuery, Permissions, check, clock, pool, queue, search, status, views,
};
use crate::services::Services;

/// Backup progress is reported after each of this many message bodies.
const PROGRESS_EVERY: u64 = 1_000;

/// Result of a request as JSON, or its error.
pub(super) type AdminResult = Result<Value, AdminError>;

pub(super) fn error_text(error: impl Display) -> String {
    error.to_string()
}

pub(super) async fn handle_request(
    world: &Services,
    permissions: &Permissions,
    request: AdminRequest,
    progress: mpsc::Sender<String>,
) -> AdminResult {
    match request {
        AdminRequest::AccountCreate { email, plan, production } => {
            account_create(world, permissions, &email, (plan, production)).await
        }
        AdminRequest::AccountUpdate { account, plan, production, suspended } => {
            account_update(world, &account, (plan, production, suspended)).await
        }
        AdminRequest::SessionCreate { account } => session_create(world, account.as_deref()).await,
        AdminRequest::UserReset { email } => user_reset(world, &email).await,
        AdminRequest::Owner { account, method, target, body } => {
            let method = method.parse().map_err(|_| format!("{method} is not an HTTP method"))?;
            // A file is sent as a JSON string, everything else as an object.
            let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned).into();
            call_as_owner(world, permissions, account.as_deref(), OwnerRequest { method, target, body }).await
        }
        AdminRequest::TlsReports { domain, day, limit } => tls_reports(world, (domain, day), limit).await,
        AdminRequest::CertificateShow => certificate_show(permissions),
        AdminRequest::DomainCreate { name, account, verified } => domain_create(world, &name, &account, verified).await,
        AdminRequest::DomainVerify { name, force } => domain_verify(world, &name, force).await,
        AdminRequest::DomainUpdate { name, change } => domain_update(world, &name, change).await,
        AdminRequest::DomainShow { name } => {
            let domain = find_domain(world, &parse_name(&name)?).await?;
            let domains = world.intake.domains();
            let known = domains.get(domain.account, domain.id).await.map_err(error_text)?;
            Ok(json!({"domain": views::domain_view(&known, domains.facts())}))
        }
        AdminRequest::AccountList { page } => search::accounts(world, page).await,
        AdminRequest::DomainList { account, page } => search::domains(world, account, page).await,
        AdminRequest::EmailList { filter, page } => search::emails(world, filter, page).await,
        AdminRequest::Status => status::status(world, permissions).await,
        AdminRequest::QueueList { limit, filter, search, cursor } => {
            queue::list_queue(world, filter, search, PageQuery { limit, cursor }).await
        }
        AdminRequest::QueueTop { limit } => queue::top_destinations(world, limit, progress).await,
        AdminRequest::Queue { order, email } => queue::run_command(world, &order, &email).await,
        AdminRequest::QueueCount { filter } => queue::count_matching(world, filter, progress).await,
        AdminRequest::QueueMany { order, filter } => {
            queue::run_command_on_matching(world, &order, filter, progress).await
        }
        AdminRequest::DestinationList => Ok(queue::list_destinations(world)),
        AdminRequest::Destination { to, mail_host, order } => {
            let host = mail_host.map(Destination::MailHost);
            let destination = to.map(Destination::Domain).or(host).ok_or("no destination is named")?;
            queue::change_destination(world, &destination, order).await
        }
        AdminRequest::PoolList => Ok(pool::list_pools(world)),
        AdminRequest::PoolAssign { account, pool } => pool::assign_pool(world, &account, pool).await,
        AdminRequest::PoolWarmUp { pool, warm_up } => pool::set_warm_up(world, pool, warm_up).await,
        AdminRequest::Trace { email } => {
            let trace = world.worker.trace_email(parse_email_id(&email)?).await.map_err(error_text)?;
            Ok(views::trace_view(&trace))
        }
        AdminRequest::Reply { reply, host } => explain_reply(world, &reply, host.as_deref()),
        AdminRequest::Backup { file } => backup(world, file, &permissions.data_dir, progress).await,
        AdminRequest::StoreCheck => check::check(&world.store, &permissions.checking, progress).await,
        AdminRequest::ClockShow => Ok(clock::clock_view(world)),
        AdminRequest::ClockAdvance { seconds } => clock::advance_clock(world, permissions, seconds).await,
    }
}

async fn account_create(
    world: &Services,
    permissions: &Permissions,
    email: &str,
    (plan, production): (Option<Plan>, bool),
) -> AdminResult {
    let email: Address = email.parse().map_err(|error| format!("{email}: {error}"))?;
    let plan = plan.unwrap_or(permissions.default_plan);
    let provisioned = world.provisioning.create_account(email, plan, production).await.map_err(error_text)?;
    Ok(views::provisioned_account_view(&provisioned, &permissions.submission_username))
}

async fn account_update(
    world: &Services,
    account: &str,
    (plan, production, suspended): (Option<Plan>, Option<bool>, Option<bool>),
) -> AdminResult {
    let change = |account: &mut mail::account::Account| {
        account.plan = plan.unwrap_or(account.plan);
        account.production = production.unwrap_or(account.production);
        account.suspended = suspended.unwrap_or(account.suspended);
    };
    let account = world.provisioning.change_account(account, change).await.map_err(error_text)?;
    let nearest = world.intake.storage_quotas().nearest(&account).await.map_err(error_text)?;
    let nearest = nearest.map(|full| json!({"limit": full.noun.word(), "used": full.used, "cap": full.cap}));
    let mut view = json!({"account": views::account_view(&account), "nearest_to_full": nearest});
    if let Some(suspended) = suspended {
        let waiting = world.worker.count_held(Some(account.id)).await.map_err(error_text)?;
        view[if suspended { "held" } else { "released" }] = views::held_mail_view(waiting);
    }
    Ok(view)
}

fn certificate_show(permissions: &Permissions) -> AdminResult {
    match &permissions.certificate {
        Some(standing) => Ok(serde_json::to_value(&*standing.borrow()).map_err(error_text)?),
        None => Err("[tls.acme] is not configured; certificate files are reloaded on SIGHUP".into()),
    }
}

fn parse_name(text: &str) -> Result<DomainName, String> {
    text.parse().map_err(|_| format!("`{text}` is not a domain name"))
}

pub(super) fn parse_email_id(text: &str) -> Result<EmailId, String> {
    text.parse().map_err(error_text)
}

/// Returns the named account, or the only account if none is named.
async fn resolve_account(world: &Services, account: Option<&str>) -> Result<String, AdminError> {
    if let Some(account) = account {
        return Ok(account.to_owned());
    }
    match store::account::list_ids(&world.store, None, 2).await.map_err(error_text)?.as_slice() {
        [only] => Ok(only.to_string()),
        [] => Err("no account exists; create one with `postrider admin account create`".into()),
        _ => Err("several accounts exist: select one with --account".into()),
    }
}

/// Calls an API operation as the account's owner. Returns the endpoint's status and body.
async fn call_as_owner(
    world: &Services,
    permissions: &Permissions,
    account: Option<&str>,
    asked: OwnerRequest,
) -> AdminResult {
    let id = resolve_account(world, account).await?;
    let owner = store::access::operator_tenant_as_owner(&world.store, &id).await.map_err(|error| match error {
        AccessError::Unavailable(error) => error_text(error),
        AccessError::Denied(_) | AccessError::AddressNotAllowed => format!("account {id} does not exist"),
    })?;
    let (status, body) = api::operator::call_as_owner(&permissions.api_state, owner, asked).await;
    // A deletion has an empty body.
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).map_err(error_text)? };
    Ok(json!({"status": status.as_u16(), "body": body}))
}

/// Creates a session of the owner for scripts. It expires after 15 minutes, used or not.
async fn session_create(world: &Services, account: Option<&str>) -> AdminResult {
    let id = resolve_account(world, account).await?;
    let account = store::account::find(&world.store, &id).await.map_err(error_text)?;
    let account = account.ok_or_else(|| format!("account {id} does not exist"))?;
    let people = world.provisioning.users();
    let owner = people.owner(&account).await.map_err(error_text)?;
    let start = mail::user::SessionStart::for_operator();
    let begun = people.begin_session(&owner, start, Batch::progress()).await;
    let (token, session) = begun.map_err(error_text)?;
    Ok(json!({
        "cookie": api::auth::cookie::cookie_pair(&token),
        "csrf_token": token.csrf(),
        "expires_at": session.expires_at,
    }))
}

/// Lifetime of the sign-in link of a reset user: the operator has to hand it over.
const RESET_LINK_TTL: Duration = Duration::from_secs(3_600);

async fn user_reset(world: &Services, email: &str) -> AdminResult {
    let address: Address = email.parse().map_err(|error| format!("{email}: {error}"))?;
    let (token, ended) =
        world.provisioning.users().reset_password(&address, RESET_LINK_TTL).await.map_err(error_text)?;
    Ok(json!({
        "email": address,
        "sessions_ended": ended,
        "link": format!("{}/auth/link/{}", world.intake.base_url_or_empty(), token.text()),
        "expires_at": token.expires_at,
    }))
}

async fn domain_create(world: &Services, name: &str, account: &str, verified: bool) -> AdminResult {
    let name = parse_name(name)?;
    let account = store::account::find(&world.store, account)
        .await
        .map_err(error_text)?
        .ok_or_else(|| format!("account {account} does not exist"))?;
    let domains = world.intake.domains();
    let mut known = domains.create(account.id, NewDomain::with_name(name.clone()), None).await.map_err(error_text)?;
    if verified {
        known = domains.force_verify(&name).await.map_err(error_text)?;
    }
    Ok(json!({"domain": views::domain_view(&known, domains.facts())}))
}

async fn domain_verify(world: &Services, name: &str, force: bool) -> AdminResult {
    let (domains, name) = (world.intake.domains(), parse_name(name)?);
    let known = if force {
        domains.force_verify(&name).await.map_err(error_text)?
    } else {
        let domain = find_domain(world, &name).await?;
        domains.verify(domain.account, domain.id).await.map_err(error_text)?
    };
    Ok(json!({"domain": views::domain_view(&known, domains.facts())}))
}

async fn find_domain(world: &Services, name: &DomainName) -> Result<SendingDomain, String> {
    let found = store::domain::find_by_name(&world.store, name).await.map_err(error_text)?;
    found.ok_or_else(|| format!("domain {name} does not exist"))
}

async fn domain_update(world: &Services, name: &str, change: DomainChange) -> AdminResult {
    let tracking_host = match change.tracking_host.as_deref() {
        None => None,
        Some("none") => Some(None),
        Some(host) => Some(Some(parse_name(host)?)),
    };
    let apply = |domain: &mut SendingDomain| {
        let settings = &mut domain.delivery;
        settings.open_tracking = change.open_tracking.unwrap_or(settings.open_tracking);
        settings.click_tracking = change.click_tracking.unwrap_or(settings.click_tracking);
        settings.tls_mode = change.tls_mode.unwrap_or(settings.tls_mode);
        if let Some(host) = &tracking_host {
            settings.tracking_host.clone_from(host);
        }
    };
    let (domains, domain) = (world.intake.domains(), find_domain(world, &parse_name(name)?).await?);
    let known = domains.change(domain.account, domain.id, apply).await.map_err(error_text)?;
    Ok(json!({"domain": views::domain_view(&known, domains.facts())}))
}

/// Lists TLS session counts and received reports. Without `day`: all retained days of `domain`, or, without `domain`
/// too, today and yesterday of all domains.
async fn tls_reports(world: &Services, (domain, day): (Option<String>, Option<String>), limit: usize) -> AdminResult {
    let today = Day::containing(world.clock.now());
    let day = day.map(|text| Day::parse(&text).ok_or_else(|| format!("`{text}` is not a date like 2026-01-31")));
    let day = day.transpose()?;
    let limit = limit.clamp(1, 10_000);
    let domain = domain.map(|name| parse_name(&name)).transpose()?;
    let kept = i64::try_from(mail::tls_report::RETENTION.as_secs() / 86_400).unwrap_or(0);
    let (first, last) = match (day, &domain) {
        (Some(day), _) => (day, day),
        (None, Some(_)) => (today.days_before(kept), today),
        (None, None) => (today.days_before(1), today),
    };
    let slice = match &domain {
        Some(domain) => {
            let mut found = Vec::new();
            for day in (first.0..=last.0).map(Day) {
                found.extend(store::tls_daily_stats::get(&world.store, day, domain).await.map_err(error_text)?);
            }
            TlsStatsPage { found, ..TlsStatsPage::default() }
        }
        None => store::tls_daily_stats::list(&world.store, (first, last), None, limit).await.map_err(error_text)?,
    };
    let received = store::tls_report_received::list(&world.store, (first, last), domain.as_ref(), limit);
    let received = received.await.map_err(error_text)?;
    Ok(json!({
        "days": slice.found.iter().map(views::tls_day_view).collect::<Vec<_>>(),
        "has_more": slice.next.is_some() || received.len() >= limit,
        "damaged": slice.damaged,
        "received": received.iter().map(|(domain, heard)| json!({"domain": domain, "report": heard})).collect::<Vec<_>>(),
    }))
}

/// Classifies a reply as one to RCPT, by the current reply rules.
fn explain_reply(world: &Services, reply: &str, host: Option<&str>) -> AdminResult {
    let read = SmtpReply::parse_line(reply).filter(|reply| reply.code >= 400);
    let reply =
        read.ok_or_else(|| format!("`{reply}` is not an SMTP error reply (example: \"550 5.1.1 user unknown\")"))?;
    let meaning =
        world.worker.delivery_policy().shaping.classify(&ClassifierInput::new(host, &reply, AttemptPhase::Rcpt));
    Ok(json!({
        "reply": reply.to_string(),
        "category": meaning.reason,
        "about": if meaning.reason.is_about_recipient() { "recipient" } else { "sender" },
        "action": meaning.action.map(|action| action.to_string()),
    }))
}

async fn backup(world: &Services, file: PathBuf, data_dir: &Path, progress: mpsc::Sender<String>) -> AdminResult {
    let view = file.display().to_string();
    let report = move |done: store::engine::BackupProgress| {
        if !done.bodies.is_multiple_of(PROGRESS_EVERY) {
            return;
        }
        // Does not block the backup when the client reads progress slowly.
        let _ = progress.try_send(format!("{} rows, {} messages, {} bytes", done.rows, done.bodies, done.bytes));
    };
    let done = world.store.backup(&file, report).await.map_err(error_text)?;
    store::engine::private_files::give_file(&file, data_dir).map_err(|error| format!("{view}: {error}"))?;
    Ok(json!({"file": view, "rows": done.rows, "bodies": done.bodies, "bytes": done.bytes}))
}
