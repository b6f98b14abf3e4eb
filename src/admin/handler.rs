//! Dispatches admin requests to their handlers, and handles accounts, domains, TLS reports and backups.

use std::future::ready;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::accounts::domains::NewDomain;
use api::operator::OwnerRequest;
use futures_util::future::BoxFuture;
use message::address::{Address, DomainName};
use message::tls_report::Day;
use model::account::Account;
use model::destination::Destination;
use model::domain::SendingDomain;
use model::expiring_secret::ExpiringSecret;
use model::user::{OPERATOR_SESSION, SignInLinkKind};
use serde_json::{Value, json};
use store::access::AccessError;
use store::engine::{Batch, StoreState};
use store::tls_daily_stats::TlsStatsPage;
use tokio::sync::mpsc;

use super::error::{AdminError, AdminResult, error_text};
use super::permissions::Permissions;
use super::request::{
    AccountCreate, AccountUpdate, AdminRequest, DomainChange, DomainCreate, DomainVerify, PageQuery, TlsReportQuery,
};
use super::{check, clock, pool, queue, reply, search, status, views};
use crate::services::Server;

/// Backup progress is reported after each of this many message bodies.
const PROGRESS_EVERY: u64 = 1_000;

/// Returns one boxed future per request. A single `async fn` would put the code of all requests into one poll function,
/// which the compiler copies into each codegen unit.
pub(crate) fn handle_request<'a>(
    server: &'a Server,
    permissions: &'a Permissions,
    request: AdminRequest,
    progress: mpsc::Sender<String>,
) -> BoxFuture<'a, AdminResult> {
    // Without the database a commit waits until it is back, and the operator would see nothing meanwhile.
    if let (true, StoreState::Away(reason)) = (request.is_change(), server.store.health().service_state()) {
        let message = format!("the database cannot be reached ({reason}); nothing was changed, try again later");
        return Box::pin(ready(Err(AdminError::with_code("unavailable", message))));
    }
    match request {
        AdminRequest::AccountCreate(create) => Box::pin(create_account(server, permissions, create)),
        AdminRequest::AccountUpdate(update) => Box::pin(update_account(server, update)),
        AdminRequest::AccountShow { account } => Box::pin(async move { show_account(server, &account).await }),
        AdminRequest::Console => Box::pin(ready(create_console_link(permissions))),
        AdminRequest::SessionCreate { account } => {
            Box::pin(async move { create_session(server, account.as_deref()).await })
        }
        AdminRequest::UserReset { email } => Box::pin(async move { reset_user(server, &email).await }),
        AdminRequest::Owner { account, method, target, body } => {
            Box::pin(call_as_owner(server, permissions, account, method, target, body))
        }
        AdminRequest::TlsReports(query) => Box::pin(list_tls_reports(server, query)),
        AdminRequest::CertificateShow => Box::pin(ready(show_certificate(permissions, false))),
        AdminRequest::CertificateOrder => Box::pin(ready(show_certificate(permissions, true))),
        AdminRequest::DomainCreate(create) => Box::pin(async move { create_domain(server, &create).await }),
        AdminRequest::DomainVerify(verify) => Box::pin(async move { verify_domain(server, &verify).await }),
        AdminRequest::DomainUpdate { name, change } => {
            Box::pin(async move { update_domain(server, &name, change).await })
        }
        AdminRequest::DomainShow { name } => Box::pin(async move { show_domain(server, &name).await }),
        AdminRequest::StoreFacts { references } => Box::pin(async move {
            let facts = references.look_up(&server.store).await.map_err(error_text)?;
            Ok(serde_json::to_value(facts).map_err(error_text)?)
        }),
        AdminRequest::AccountList { page } => Box::pin(search::accounts(server, page)),
        AdminRequest::DomainList { account, page } => Box::pin(search::domains(server, account, page)),
        AdminRequest::EmailList { filter, page } => Box::pin(search::emails(server, filter, page)),
        AdminRequest::Status => Box::pin(status::status(server, permissions)),
        AdminRequest::QueueList { limit, filter, search, cursor } => {
            Box::pin(queue::list_queue(server, filter, search, PageQuery { limit, cursor }))
        }
        AdminRequest::QueueTop { limit } => Box::pin(queue::top_destinations(server, limit, progress)),
        AdminRequest::Queue { order, email } => {
            Box::pin(async move { queue::run_command(server, &order, &email).await })
        }
        AdminRequest::QueueCount { filter, rows_max } => {
            Box::pin(queue::count_matching(server, filter, rows_max, progress))
        }
        AdminRequest::QueueMany { order, filter } => {
            Box::pin(async move { queue::run_command_on_matching(server, &order, filter, progress).await })
        }
        AdminRequest::DestinationList => Box::pin(ready(Ok(queue::list_destinations(server)))),
        AdminRequest::Destination { to, mail_host, order } => Box::pin(async move {
            let host = mail_host.map(Destination::MailHost);
            let destination = to.map(Destination::Domain).or(host).ok_or("no destination is named")?;
            queue::change_destination(server, &destination, order).await
        }),
        AdminRequest::PoolList => Box::pin(ready(Ok(pool::list_pools(server)))),
        AdminRequest::PoolAssign { account, pool } => {
            Box::pin(async move { pool::assign_pool(server, &account, pool).await })
        }
        AdminRequest::PoolWarmUp { pool, warm_up } => Box::pin(pool::set_warm_up(server, pool, warm_up)),
        AdminRequest::Trace { email } => Box::pin(async move {
            let email = queue::parse_email_id(&email)?;
            let trace = server.queue.delivery.admin.trace_email(email).await.map_err(queue::email_error)?;
            Ok(views::trace_view(&trace, server.clock.now()))
        }),
        AdminRequest::Reply(query) => {
            let policy = server.queue.delivery.policy.current();
            Box::pin(ready(reply::explain_reply(&policy.shaping, &query, server.clock.now())))
        }
        AdminRequest::Backup { file } => Box::pin(backup(server, file, &permissions.data_dir, progress)),
        AdminRequest::StoreCheck => Box::pin(check::check(&server.store, &permissions.check_permit, progress)),
        AdminRequest::ClockShow => Box::pin(ready(Ok(clock::clock_view(server)))),
        AdminRequest::ClockAdvance { seconds } => Box::pin(clock::advance_clock(server, permissions, seconds)),
    }
}

async fn create_account(server: &Server, permissions: &Permissions, create: AccountCreate) -> AdminResult {
    let AccountCreate { email, plan, production } = create;
    let email: Address = email.parse().map_err(|error| format!("{email}: {error}"))?;
    let plan = plan.unwrap_or(permissions.default_plan);
    let provisioned = server.provisioning.create_account(email, plan, production).await.map_err(error_text)?;
    tracing::info!(account.id = %provisioned.account.id, ?plan, production, "operator: create account");
    let mut view = views::provisioned_account_view(&provisioned, &permissions.submission_username);
    if let Some(link) = &provisioned.sign_in_link {
        view["sign_in"] = json!({"link": sign_in_url(server, link), "expires_at": link.expires_at});
    }
    Ok(view)
}

async fn update_account(server: &Server, update: AccountUpdate) -> AdminResult {
    let AccountUpdate { account, plan, production, suspended } = update;
    let change = |account: &mut Account| {
        account.plan = plan.unwrap_or(account.plan);
        account.production = production.unwrap_or(account.production);
        account.suspended = suspended.unwrap_or(account.suspended);
    };
    let account = server.provisioning.change_account(&account, change).await.map_err(error_text)?;
    tracing::info!(account.id = %account.id, ?plan, ?production, ?suspended, "operator: change account");
    let nearest = nearest_quota(server, &account).await?;
    let mut view = json!({"account": views::account_view(&account), "nearest_to_full": nearest});
    if let Some(suspended) = suspended {
        let held_mail = server.queue.delivery.queues.count_held_mail(Some(account.id)).await.map_err(error_text)?;
        view[if suspended { "held" } else { "released" }] = views::held_mail_view(held_mail);
    }
    Ok(view)
}

async fn nearest_quota(server: &Server, account: &Account) -> AdminResult {
    let nearest = server.accounts.limits.storage.nearest(account).await.map_err(error_text)?;
    Ok(json!(nearest.map(|quota| json!({"limit": quota.noun.word(), "used": quota.used, "cap": quota.cap}))))
}

/// Shows an account, the quota that is nearest to its limit, and its mail in the queue.
async fn show_account(server: &Server, account: &str) -> AdminResult {
    let account = search::find_account(server, account).await?;
    let queued = server.queue.delivery.queues.count_held_mail(Some(account.id)).await.map_err(error_text)?;
    let pools = server.queue.delivery.queues.accounts_by_pool();
    let pool = pools.into_iter().find(|(_, accounts)| accounts.contains(&account.id));
    Ok(json!({
        "account": views::account_view(&account),
        "nearest_to_full": nearest_quota(server, &account).await?,
        "queued": views::held_mail_view(queued),
        "pool_ordered": pool.map(|(pool, _)| pool),
    }))
}

fn create_console_link(permissions: &Permissions) -> AdminResult {
    let link = permissions.console.create_link(pages::console::router::SIGN_IN).ok_or(
        "no listener serves the console: set `listen = \"127.0.0.1:9025\"` in [ops] and restart; a listener on an \
         address other than loopback also needs `console_url`",
    )?;
    tracing::info!("operator: create a sign-in link for the console");
    Ok(json!({"url": link.url, "expires_at": link.expires_at}))
}

/// Shows the status of the certificate. With `order`, orders one first if none is installed or the last order failed;
/// the status is that before the order.
fn show_certificate(permissions: &Permissions, order: bool) -> AdminResult {
    match &permissions.certificate {
        Some(renewer) => {
            let mut view = serde_json::to_value(&*renewer.status().borrow()).map_err(error_text)?;
            if order {
                let is_ordered = renewer.request_order();
                tracing::info!(is_ordered, "operator: order the certificate now");
                view["ordered"] = json!(is_ordered);
            }
            Ok(view)
        }
        None => Err("[tls.acme] is not configured; certificate files are reloaded on SIGHUP".into()),
    }
}

fn parse_name(text: &str) -> Result<DomainName, String> {
    text.parse().map_err(|_| format!("`{text}` is not a domain name"))
}

/// Returns the named account, or the only account if none is named.
async fn resolve_account(server: &Server, account: Option<&str>) -> Result<String, AdminError> {
    if let Some(account) = account {
        return Ok(account.to_owned());
    }
    match store::account::list_ids(&server.store, None, 2).await.map_err(error_text)?.as_slice() {
        [only] => Ok(only.to_string()),
        [] => Err("no account exists; create one with `postrider admin account create`".into()),
        _ => Err("several accounts exist: select one with --account".into()),
    }
}

/// Calls an API operation as the account's owner. Returns the endpoint's status and body.
async fn call_as_owner(
    server: &Server,
    permissions: &Permissions,
    account: Option<String>,
    method: String,
    target: String,
    body: Value,
) -> AdminResult {
    let method = method.parse().map_err(|_| format!("{method} is not an HTTP method"))?;
    // A file is sent as a JSON string, everything else as an object.
    let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned).into();
    let request = OwnerRequest { method, target, body };
    let id = resolve_account(server, account.as_deref()).await?;
    let owner = store::access::operator_tenant_as_owner(&server.store, &id).await.map_err(|error| match error {
        AccessError::Unavailable(error) => error_text(error),
        AccessError::Denied(_) | AccessError::AddressNotAllowed => format!("account {id} does not exist"),
    })?;
    let (status, body) = api::operator::call_as_owner(&permissions.api_server, owner, request).await;
    // A deletion has an empty body.
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).map_err(error_text)? };
    Ok(json!({"status": status.as_u16(), "body": body}))
}

/// Creates a session of the owner for scripts, and a link that begins another one in a browser. Both expire after 15
/// minutes, used or not.
async fn create_session(server: &Server, account: Option<&str>) -> AdminResult {
    let id = resolve_account(server, account).await?;
    let account = search::find_account(server, &id).await?;
    let users = &server.provisioning.users;
    let owner = users.owner(&account).await.map_err(error_text)?;
    let start = model::user::SessionStart::for_operator();
    let session_result = users.begin_session(&owner, start, Batch::progress()).await;
    let (token, session) = session_result.map_err(error_text)?;
    let mut batch = Batch::progress();
    let link = users.create_link(&mut batch, &owner, SignInLinkKind::Operator, OPERATOR_SESSION);
    server.store.commit(batch).await.map_err(error_text)?;
    tracing::info!(account.id = %account.id, "operator: create a session for the owner");
    Ok(json!({
        "cookie": api::auth::cookie::cookie_pair(&token),
        "csrf_token": token.csrf(),
        "expires_at": session.expires_at,
        "url": sign_in_url(server, &link),
    }))
}

fn sign_in_url(server: &Server, link: &ExpiringSecret) -> String {
    format!("{}/auth/link/{}", server.accounts.links.base_url().unwrap_or_default(), link.text())
}

/// Lifetime of the sign-in link of a reset user: the operator has to hand it over.
const RESET_LINK_TTL: Duration = Duration::from_secs(3_600);

async fn reset_user(server: &Server, email: &str) -> AdminResult {
    let address: Address = email.parse().map_err(|error| format!("{email}: {error}"))?;
    let (token, ended_sessions) =
        server.provisioning.users.reset_password(&address, RESET_LINK_TTL).await.map_err(error_text)?;
    tracing::info!(ended_sessions, "operator: reset user");
    Ok(json!({
        "email": address,
        "sessions_ended": ended_sessions,
        "link": sign_in_url(server, &token),
        "expires_at": token.expires_at,
    }))
}

async fn create_domain(server: &Server, create: &DomainCreate) -> AdminResult {
    let DomainCreate { name, account, verified } = create;
    let name = parse_name(name)?;
    let account = search::find_account(server, account).await?;
    let domains = &server.accounts.domains;
    let mut domain_with_setup =
        domains.create(account.id, NewDomain::with_name(name.clone()), None).await.map_err(error_text)?;
    if *verified {
        domain_with_setup = domains.force_verify(&name).await.map_err(error_text)?;
    }
    Ok(json!({"domain": views::domain_view(&domain_with_setup, domains.facts())}))
}

async fn show_domain(server: &Server, name: &str) -> AdminResult {
    let domain = find_domain(server, &parse_name(name)?).await?;
    let domains = &server.accounts.domains;
    let domain_with_setup = domains.get(domain.account, domain.id).await.map_err(error_text)?;
    Ok(json!({"domain": views::domain_view(&domain_with_setup, domains.facts())}))
}

async fn verify_domain(server: &Server, verify: &DomainVerify) -> AdminResult {
    let (domains, name) = (&server.accounts.domains, parse_name(&verify.name)?);
    let domain_with_setup = if verify.force {
        domains.force_verify(&name).await.map_err(error_text)?
    } else {
        let domain = find_domain(server, &name).await?;
        domains.verify(domain.account, domain.id).await.map_err(error_text)?
    };
    Ok(json!({"domain": views::domain_view(&domain_with_setup, domains.facts())}))
}

async fn find_domain(server: &Server, name: &DomainName) -> Result<SendingDomain, String> {
    let found = store::domain::find_by_name(&server.store, name).await.map_err(error_text)?;
    found.ok_or_else(|| format!("domain {name} does not exist"))
}

async fn update_domain(server: &Server, name: &str, change: DomainChange) -> AdminResult {
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
    let (domains, domain) = (&server.accounts.domains, find_domain(server, &parse_name(name)?).await?);
    let domain_with_setup = domains.change(domain.account, domain.id, apply).await.map_err(error_text)?;
    Ok(json!({"domain": views::domain_view(&domain_with_setup, domains.facts())}))
}

/// Lists TLS session counts and received reports. Without `day`: all retained days of `domain`, or, without `domain`
/// too, today and yesterday of all domains.
async fn list_tls_reports(server: &Server, query: TlsReportQuery) -> AdminResult {
    let TlsReportQuery { domain, day, limit } = query;
    let today = Day::containing(server.clock.now());
    let day = day.map(|text| Day::parse(&text).ok_or_else(|| format!("`{text}` is not a date like 2026-01-31")));
    let day = day.transpose()?;
    let limit = limit.clamp(1, 10_000);
    let domain = domain.map(|name| parse_name(&name)).transpose()?;
    let retention_days = i64::try_from(message::tls_report::RETENTION.as_secs() / 86_400).unwrap_or(0);
    let (first, last) = match (day, &domain) {
        (Some(day), _) => (day, day),
        (None, Some(_)) => (today.days_before(retention_days), today),
        (None, None) => (today.days_before(1), today),
    };
    let stats = match &domain {
        Some(domain) => {
            let mut found = Vec::new();
            for day in (first.0..=last.0).map(Day) {
                found.extend(store::tls_daily_stats::get(&server.store, day, domain).await.map_err(error_text)?);
            }
            TlsStatsPage { found, ..TlsStatsPage::default() }
        }
        None => store::tls_daily_stats::list(&server.store, first, last, None, limit).await.map_err(error_text)?,
    };
    let received = store::tls_report_received::list(&server.store, first, last, domain.as_ref(), limit);
    let received = received.await.map_err(error_text)?;
    Ok(json!({
        "days": stats.found.iter().map(views::tls_day_view).collect::<Vec<_>>(),
        "has_more": stats.next.is_some() || received.len() >= limit,
        "damaged": stats.damaged,
        "received": received.iter().map(|(domain, report)| json!({"domain": domain, "report": report})).collect::<Vec<_>>(),
    }))
}

async fn backup(server: &Server, file: PathBuf, data_dir: &Path, progress: mpsc::Sender<String>) -> AdminResult {
    let view = file.display().to_string();
    let report = move |backed_up: store::engine::BackupProgress| {
        if !backed_up.bodies.is_multiple_of(PROGRESS_EVERY) {
            return;
        }
        let (rows, messages) = (check::counted(backed_up.rows, "row"), check::counted(backed_up.bodies, "message"));
        // Does not block the backup when the client reads progress slowly.
        let _ = progress.try_send(format!("{rows}, {messages}, {} bytes", backed_up.bytes));
    };
    let backed_up = server.store.backup(&file, report).await.map_err(error_text)?;
    store::engine::private_files::give_file(&file, data_dir).map_err(|error| format!("{view}: {error}"))?;
    Ok(json!({"file": view, "rows": backed_up.rows, "bodies": backed_up.bodies, "bytes": backed_up.bytes}))
}
