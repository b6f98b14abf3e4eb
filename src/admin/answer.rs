//! Answering the operator's questions.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::queue::domains::NewDomain;
use api::operator::Ask;
use mail::account::Plan;
use mail::address::{Address, Name};
use mail::classify::Heard;
use mail::destination::Destination;
use mail::domain::Domain;
use mail::id::EmailId;
use mail::outcome::Phase;
use mail::reply::Reply;
use mail::tls_report::Day;
use serde_json::{Value, json};
use store::access::AccessError;
use store::engine::Batch;
use store::tls_day::Slice;
use tokio::sync::mpsc;

use super::{
    DomainChange, PageAsked, Question, Refused, Rights, check, clock, pool, queue, search, show, status,
};
use crate::world::World;

/// A line of progress for so many messages.
const PROGRESS_EVERY: u64 = 1_000;

/// What is answered, or why it is not done.
pub(super) type Answered = Result<Value, Refused>;

pub(super) fn said(error: impl Display) -> String {
    error.to_string()
}

/// Answers one question.
pub(super) async fn answer(
    world: &World,
    rights: &Rights,
    question: Question,
    progress: mpsc::Sender<String>,
) -> Answered {
    match question {
        Question::AccountCreate { email, plan, production } => {
            account_create(world, rights, &email, (plan, production)).await
        }
        Question::AccountUpdate { account, plan, production, suspended } => {
            account_update(world, &account, (plan, production, suspended)).await
        }
        Question::SessionCreate { account } => session_create(world, account.as_deref()).await,
        Question::UserReset { email } => user_reset(world, &email).await,
        Question::Owner { account, method, target, body } => {
            let method = method.parse().map_err(|_| format!("{method} is no method"))?;
            // A file is sent as a text, everything else as an object.
            let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned).into();
            as_owner(world, rights, account.as_deref(), Ask { method, target, body }).await
        }
        Question::TlsReports { domain, day, limit } => tls_reports(world, (domain, day), limit).await,
        Question::CertificateShow => certificate_show(rights),
        Question::DomainCreate { name, account, verified } => {
            domain_create(world, &name, &account, verified).await
        }
        Question::DomainVerify { name, force } => domain_verify(world, &name, force).await,
        Question::DomainUpdate { name, change } => domain_update(world, &name, change).await,
        Question::DomainShow { name } => {
            let domain = domain_of(world, &name_of(&name)?).await?;
            let domains = world.hall.domains();
            let known = domains.get(domain.account, domain.id).await.map_err(said)?;
            Ok(json!({"domain": show::domain(&known, domains.facts())}))
        }
        Question::AccountList { page } => search::accounts(world, page).await,
        Question::DomainList { account, page } => search::domains(world, account, page).await,
        Question::EmailList { filter, page } => search::emails(world, filter, page).await,
        Question::Status => status::status(world, rights).await,
        Question::QueueList { limit, filter, search, cursor } => {
            queue::list(world, filter, search, PageAsked { limit, cursor }).await
        }
        Question::QueueTop { limit } => queue::top(world, limit, progress).await,
        Question::Queue { order, email } => queue::order(world, &order, &email).await,
        Question::QueueCount { filter } => queue::count(world, filter, progress).await,
        Question::QueueMany { order, filter } => queue::order_many(world, &order, filter, progress).await,
        Question::DestinationList => Ok(queue::destinations(world)),
        Question::Destination { to, mail_host, order } => {
            let host = mail_host.map(Destination::MailHost);
            let destination = to.map(Destination::Domain).or(host).ok_or("no destination is named")?;
            queue::order_destination(world, &destination, order).await
        }
        Question::PoolList => Ok(pool::list(world)),
        Question::PoolAssign { account, pool } => pool::assign(world, &account, pool).await,
        Question::PoolWarmUp { pool, warm_up } => pool::warm_up(world, pool, warm_up).await,
        Question::Trace { email } => {
            let trace = world.worker.trace(email_id(&email)?).await.map_err(said)?;
            Ok(show::trace(&trace))
        }
        Question::Reply { reply, host } => meaning(world, &reply, host.as_deref()),
        Question::Backup { file } => backup(world, file, &rights.data_dir, progress).await,
        Question::StoreCheck => check::check(&world.store, &rights.checking, progress).await,
        Question::ClockShow => Ok(clock::show(world)),
        Question::ClockAdvance { seconds } => clock::advance(world, rights, seconds).await,
    }
}

async fn account_create(
    world: &World,
    rights: &Rights,
    email: &str,
    (plan, production): (Option<Plan>, bool),
) -> Answered {
    let email: Address = email.parse().map_err(|error| format!("{email}: {error}"))?;
    let plan = plan.unwrap_or(rights.default_plan);
    let enrolled = world.enrolment.account(email, plan, production).await.map_err(said)?;
    Ok(show::enrolled(&enrolled, &rights.submission_username))
}

async fn account_update(
    world: &World,
    account: &str,
    (plan, production, suspended): (Option<Plan>, Option<bool>, Option<bool>),
) -> Answered {
    let change = |account: &mut mail::account::Account| {
        account.plan = plan.unwrap_or(account.plan);
        account.production = production.unwrap_or(account.production);
        account.suspended = suspended.unwrap_or(account.suspended);
    };
    let account = world.enrolment.change_account(account, change).await.map_err(said)?;
    let nearest = world.hall.quotas().nearest(&account).await.map_err(said)?;
    let nearest = nearest.map(|full| json!({"limit": full.noun.word(), "used": full.used, "cap": full.cap}));
    let mut shown = json!({"account": show::account(&account), "nearest_to_full": nearest});
    if let Some(suspended) = suspended {
        let waiting = world.worker.count_waiting(Some(account.id)).await.map_err(said)?;
        shown[if suspended { "held" } else { "released" }] = show::waiting(waiting);
    }
    Ok(shown)
}

fn certificate_show(rights: &Rights) -> Answered {
    match &rights.certificate {
        Some(standing) => Ok(serde_json::to_value(&*standing.borrow()).map_err(said)?),
        None => Err("[tls.acme] is not configured: certificates are files, read again on SIGHUP".into()),
    }
}

fn name_of(text: &str) -> Result<Name, String> {
    text.parse().map_err(|_| format!("`{text}` is not a domain name"))
}

pub(super) fn email_id(text: &str) -> Result<EmailId, String> {
    text.parse().map_err(said)
}

/// The account that is meant: the one that is named, or the only one.
async fn meant(world: &World, account: Option<&str>) -> Result<String, Refused> {
    if let Some(account) = account {
        return Ok(account.to_owned());
    }
    match store::account::page(&world.store, None, 2).await.map_err(said)?.as_slice() {
        [only] => Ok(only.to_string()),
        [] => Err("there is no account".into()),
        _ => Err("there are several accounts: say which with --account".into()),
    }
}

/// Asks in the stead of an account's owner: the status and the body that the endpoint answers.
async fn as_owner(world: &World, rights: &Rights, account: Option<&str>, asked: Ask) -> Answered {
    let id = meant(world, account).await?;
    let owner =
        store::access::by_operator_as_owner(&world.store, &id).await.map_err(|error| match error {
            AccessError::Unavailable(error) => said(error),
            AccessError::Denied(_) | AccessError::Elsewhere => format!("there is no account {id}"),
        })?;
    let (status, body) = api::operator::ask(&rights.room, owner, asked).await;
    // Of what was deleted there is nothing to say.
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).map_err(said)? };
    Ok(json!({"status": status.as_u16(), "body": body}))
}

/// A session for scripts: of an owner, for a quarter of an hour, used or not.
async fn session_create(world: &World, account: Option<&str>) -> Answered {
    let id = meant(world, account).await?;
    let account = store::account::find(&world.store, &id).await.map_err(said)?;
    let account = account.ok_or_else(|| format!("there is no account {id}"))?;
    let people = world.enrolment.people();
    let owner = people.owner_of(&account).await.map_err(said)?;
    let start = mail::user::SessionStart::by_operator();
    let begun = people.begin_session(&owner, start, Batch::progress()).await;
    let (token, session) = begun.map_err(said)?;
    Ok(json!({
        "cookie": api::auth::cookie::pair(&token),
        "csrf_token": token.csrf(),
        "expires_at": session.expires_at,
    }))
}

/// How long the link of a reset user works: the operator has to hand it over.
const RESET_LINK_HOLDS: Duration = Duration::from_secs(3_600);

async fn user_reset(world: &World, email: &str) -> Answered {
    let address: Address = email.parse().map_err(|error| format!("{email}: {error}"))?;
    let (token, ended) = world.enrolment.people().reset(&address, RESET_LINK_HOLDS).await.map_err(said)?;
    Ok(json!({
        "email": address,
        "sessions_ended": ended,
        "link": format!("{}/auth/link/{}", world.hall.pages_at(), token.text()),
        "expires_at": token.expires_at,
    }))
}

async fn domain_create(world: &World, name: &str, account: &str, verified: bool) -> Answered {
    let name = name_of(name)?;
    let account = store::account::find(&world.store, account)
        .await
        .map_err(said)?
        .ok_or_else(|| format!("there is no account {account}"))?;
    let domains = world.hall.domains();
    let mut known = domains.create(account.id, NewDomain::named(name.clone()), None).await.map_err(said)?;
    if verified {
        known = domains.force(&name).await.map_err(said)?;
    }
    Ok(json!({"domain": show::domain(&known, domains.facts())}))
}

async fn domain_verify(world: &World, name: &str, force: bool) -> Answered {
    let (domains, name) = (world.hall.domains(), name_of(name)?);
    let known = if force {
        domains.force(&name).await.map_err(said)?
    } else {
        let domain = domain_of(world, &name).await?;
        domains.verify(domain.account, domain.id).await.map_err(said)?
    };
    Ok(json!({"domain": show::domain(&known, domains.facts())}))
}

async fn domain_of(world: &World, name: &Name) -> Result<Domain, String> {
    let found = store::domain::by_name(&world.store, name).await.map_err(said)?;
    found.ok_or_else(|| format!("{name} does not exist"))
}

async fn domain_update(world: &World, name: &str, change: DomainChange) -> Answered {
    let tracking_host = match change.tracking_host.as_deref() {
        None => None,
        Some("none") => Some(None),
        Some(host) => Some(Some(name_of(host)?)),
    };
    let apply = |domain: &mut Domain| {
        let settings = &mut domain.delivery;
        settings.open_tracking = change.open_tracking.unwrap_or(settings.open_tracking);
        settings.click_tracking = change.click_tracking.unwrap_or(settings.click_tracking);
        settings.tls_mode = change.tls_mode.unwrap_or(settings.tls_mode);
        if let Some(host) = &tracking_host {
            settings.tracking_host.clone_from(host);
        }
    };
    let (domains, domain) = (world.hall.domains(), domain_of(world, &name_of(name)?).await?);
    let known = domains.change(domain.account, domain.id, apply).await.map_err(said)?;
    Ok(json!({"domain": show::domain(&known, domains.facts())}))
}

/// How TLS went: of a day or of all that are kept, of a domain or of all; without either of today and yesterday.
async fn tls_reports(
    world: &World,
    (domain, day): (Option<String>, Option<String>),
    limit: usize,
) -> Answered {
    let today = Day::of(world.clock.now());
    let day = day.map(|text| Day::read(&text).ok_or_else(|| format!("`{text}` is no day, like 2026-01-31")));
    let day = day.transpose()?;
    let limit = limit.clamp(1, 10_000);
    let domain = domain.map(|name| name_of(&name)).transpose()?;
    let kept = i64::try_from(mail::tls_report::KEPT.as_secs() / 86_400).unwrap_or(0);
    let (first, last) = match (day, &domain) {
        (Some(day), _) => (day, day),
        (None, Some(_)) => (today.earlier(kept), today),
        (None, None) => (today.earlier(1), today),
    };
    let slice = match &domain {
        Some(domain) => {
            let mut found = Vec::new();
            for day in (first.0..=last.0).map(Day) {
                found.extend(store::tls_day::get(&world.store, day, domain).await.map_err(said)?);
            }
            Slice { found, ..Slice::default() }
        }
        None => store::tls_day::slice(&world.store, (first, last), None, limit).await.map_err(said)?,
    };
    let received = store::tls_heard::list(&world.store, (first, last), domain.as_ref(), limit);
    let received = received.await.map_err(said)?;
    Ok(json!({
        "days": slice.found.iter().map(show::tls_day).collect::<Vec<_>>(),
        "has_more": slice.next.is_some() || received.len() >= limit,
        "damaged": slice.damaged,
        "received": received.iter().map(|(domain, heard)| json!({"domain": domain, "report": heard})).collect::<Vec<_>>(),
    }))
}

/// What a reply to RCPT means, by the rows of this moment.
fn meaning(world: &World, reply: &str, host: Option<&str>) -> Answered {
    let read = Reply::of_line(reply).filter(|reply| reply.code >= 400);
    let reply = read.ok_or_else(|| format!("`{reply}` is no refusal (say, \"550 5.1.1 user unknown\")"))?;
    let meaning = world.worker.manners().shaping.meaning(&Heard::new(host, &reply, Phase::Rcpt));
    Ok(json!({
        "reply": reply.to_string(),
        "category": meaning.reason,
        "about": if meaning.reason.is_about_recipient() { "recipient" } else { "sender" },
        "action": meaning.action.map(|action| action.to_string()),
    }))
}

async fn backup(world: &World, file: PathBuf, data_dir: &Path, progress: mpsc::Sender<String>) -> Answered {
    let shown = file.display().to_string();
    let report = move |done: store::engine::Progress| {
        if !done.bodies.is_multiple_of(PROGRESS_EVERY) {
            return;
        }
        // A slow reader of progress does not hold up the backup.
        let _ =
            progress.try_send(format!("{} rows, {} messages, {} bytes", done.rows, done.bodies, done.bytes));
    };
    let done = world.store.backup(&file, report).await.map_err(said)?;
    store::engine::private::give_file(&file, data_dir).map_err(|error| format!("{shown}: {error}"))?;
    Ok(json!({"file": shown, "rows": done.rows, "bodies": done.bodies, "bytes": done.bytes}))
}
