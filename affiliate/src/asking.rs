//! Asking the processor: one question, one object or list, under the rules that hold for webhooks.
//!
//! Who sets something up is told what was wrong ([`Office::ask`]). Who wants to know more of what came in ([`Asker`]) tells
//! an answer once and for all, also that there is nothing, from none. That the key is not good, or may not see a thing, says
//! nothing about the thing: it is no answer.
//!
//! The owner names the address, so it is judged like any that strangers name: resolved, checked and connected to as it
//! was checked, no redirect followed, time and bytes bounded (`queue/src/courier/http.rs`). What is kept of an answer are its
//! bytes, which an [`AnswerPermit`] pays for from the first one on: whoever asks holds it as long as the objects.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::affiliate::program::Program;
use mail::id::AccountId;
use queue::courier::http::{Answer, AnswerPermit, BudgetError, Get, PostError};
use thiserror::Error;
use tokio::time::Instant;

use crate::ledger::Fault;
use crate::office::Office;
use crate::offload::offload;
use crate::processor::{
    AsOf, ConnectedAccount, Json, MetadataKeys, OBJECT_BYTES_MAX, PAGE_BYTES_MAX, PAGE_OBJECTS, Page, Reading,
};
use crate::refusal::Refusal;

/// Where the processor's API is, unless said otherwise.
pub const API_BASE: &str = "https://api.stripe.com";
/// How long it may take to answer.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Characters of the processor's own words to a refusal.
const WORDS_MAX: usize = 200;
/// How long is waited for memory to read an event in.
const MEMORY_WAIT: Duration = Duration::from_secs(5);

/// What the processor answered to a question.
#[derive(Debug)]
pub(crate) enum Said<T> {
    /// This, at this time by its clock.
    This(T, Timestamp),
    /// Once and for all nothing: there is no such thing.
    Nothing(Denial),
}

/// That the processor said once and for all that there is nothing.
#[derive(Debug)]
pub(crate) struct Denial {
    /// The status it said so with.
    pub(crate) status: u16,
    /// The same in words that follow "the processor", with its own.
    pub(crate) why: String,
}

/// Why there is no answer, in words that follow "the processor".
#[derive(Debug, Error)]
pub(crate) enum NoAnswer {
    /// It said nothing, or nothing to the point.
    #[error("{0}")]
    Silent(String),
    /// It does not take the key.
    #[error("{0}")]
    Denied(String),
    /// The key may not see what was asked for.
    #[error("{0}")]
    Barred(String),
    /// Other answers hold the memory: it is to be asked later.
    #[error("{0}")]
    Busy(BudgetError),
    /// It answered with more than is read at once: a shorter time may be asked about.
    #[error("{0}")]
    TooMuch(String),
}

/// A list that the processor answered with.
pub(crate) struct Told {
    /// Its objects, in the processor's order.
    pub(crate) objects: Vec<Json>,
    /// As of when, by its clock.
    pub(crate) at: Timestamp,
    /// Whether there are more than were asked for.
    pub(crate) has_more: bool,
}

impl Told {
    /// That there is nothing.
    pub(crate) fn nothing() -> Self {
        Self { objects: Vec::new(), at: Timestamp::UNIX_EPOCH, has_more: false }
    }
}

/// The processor of a program, asked with the program's key.
pub(crate) struct Asker {
    office: Office,
    account: AccountId,
    api_base: String,
    key: String,
}

/// Whose key it is, as the processor says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldAccount {
    /// The account there.
    pub id: String,
    /// Whether its money is real, as far as that is known.
    pub livemode: Option<bool>,
}

impl Office {
    /// Whether the processor's API may be at this address.
    ///
    /// # Errors
    /// A field error about `api_base`.
    pub(crate) fn check_api(&self, api_base: &str) -> Result<(), Refusal> {
        self.hall.check_webhook_url(api_base).map_err(|why| Refusal::field("api_base", why))
    }

    /// Asks the processor for what stands at a path, whatever it answers.
    ///
    /// # Errors
    /// It did not answer.
    fn get<'a>(
        &'a self,
        (api_base, key): (&'a str, &'a str),
        (path, answer_bytes_max): (&'a str, usize),
        permit: &'a mut AnswerPermit,
    ) -> BoxFuture<'a, Result<Answer, PostError>> {
        Box::pin(async move {
            let get = Get {
                url: format!("{}{path}", api_base.trim_end_matches('/')),
                headers: vec![
                    ("authorization", format!("Bearer {key}")),
                    ("accept", "application/json".to_owned()),
                ],
                timeout: TIMEOUT,
                answer_bytes_max,
            };
            self.hall.fetch_within(get, permit).await
        })
    }

    /// The same, for an object.
    ///
    /// # Errors
    /// It did not answer, or not with 200 and JSON.
    async fn ask(&self, account: AccountId, whom: (&str, &str), path: &str) -> Result<Json, Refusal> {
        let mut permit = self.hall.answer_permit(account);
        let answered = self.get(whom, (path, OBJECT_BYTES_MAX), &mut permit).await;
        let answer = answered.map_err(|error| Refusal::Upstream(cannot_be_asked(path, &error)))?;
        if answer.status != 200 {
            let why = format!("{}{}", answered_with(path, answer.status), words_of(answer.body));
            return Err(Refusal::Upstream(why));
        }
        if !answer.is_whole {
            return Err(Refusal::Upstream(cut(path, OBJECT_BYTES_MAX)));
        }
        Json::read(answer.body).map_err(|_| Refusal::Upstream(no_json(path)))
    }

    /// The memory to read an event of an account in.
    ///
    /// # Errors
    /// It is not free in time.
    pub(crate) async fn memory(&self, account: AccountId, bytes: usize) -> Result<AnswerPermit, Fault> {
        let mut permit = self.hall.answer_permit(account);
        permit.enlarge_until(bytes, Instant::now() + MEMORY_WAIT).await?;
        Ok(permit)
    }

    /// The processor of a program, where it was given a key.
    pub(crate) fn asker(&self, program: &Program) -> Option<Asker> {
        let processor = program.processor.as_ref()?;
        let key = self.open(&program.id.to_bytes(), processor.restricted_key.as_ref()?)?;
        let (office, account) = (self.clone(), program.account);
        Some(Asker { office, account, api_base: processor.api_base.clone(), key })
    }

    /// Whether the processor says that money can be transferred to an account of it. Where it is not asked, or does not
    /// say, it cannot; it may say so later, by itself.
    pub(crate) async fn takes_transfers(&self, program: &Program, account: &str) -> bool {
        let Some(Asker { api_base, key, .. }) = self.asker(program) else { return false };
        let path = format!("/v1/accounts/{account}");
        let told = self.ask(program.account, (&api_base, &key), &path).await;
        let keys = MetadataKeys::default();
        let reading = Reading { keys: &keys, as_of: AsOf::fetched(self.now()) };
        match told.map(|told| ConnectedAccount::read(told.text(), &reading)) {
            Ok(Ok(told)) => told.id == account && told.takes_transfers,
            Ok(Err(error)) => {
                tracing::info!(%error, "the processor's account cannot be read");
                false
            }
            Err(refusal) => {
                tracing::info!(%refusal, "the processor does not say whether an account takes transfers");
                false
            }
        }
    }

    /// Asks the processor whose key this is.
    ///
    /// # Errors
    /// As [`Office::ask`]; or what it answered is no account.
    pub(crate) async fn ask_account(
        &self,
        account: AccountId,
        (api_base, key): (&str, &str),
    ) -> Result<ToldAccount, Refusal> {
        let told = self.ask(account, (api_base, key), "/v1/account").await?;
        let id = told.id().filter(|id| is_id(id));
        let id = id.ok_or_else(|| Refusal::Upstream("answered without the account's id".to_owned()))?;
        let livemode = told.flag_in("livemode").or_else(|| mode_of(key));
        Ok(ToldAccount { id: id.into_owned(), livemode })
    }
}

impl Asker {
    /// Memory for answers to its questions, of nothing yet.
    pub(crate) fn permit(&self) -> AnswerPermit {
        self.office.hall.answer_permit(self.account)
    }

    /// Asks for the object that stands at a path. The permit pays for it, and is to be held as long as it is.
    ///
    /// # Errors
    /// There was no answer: what the processor did, to be asked again later.
    pub(crate) async fn object(&self, path: &str, permit: &mut AnswerPermit) -> Result<Said<Json>, NoAnswer> {
        Ok(match self.ask((path, OBJECT_BYTES_MAX), permit).await? {
            Said::This(body, at) => match Json::read(body) {
                Ok(object) => Said::This(object, at),
                Err(_) => return Err(NoAnswer::Silent(no_json(path))),
            },
            Said::Nothing(denial) => Said::Nothing(denial),
        })
    }

    async fn ask(
        &self,
        (path, bytes_max): (&str, usize),
        permit: &mut AnswerPermit,
    ) -> Result<Said<Bytes>, NoAnswer> {
        let asked_at = self.office.now();
        match self.office.get((&self.api_base, &self.key), (path, bytes_max), permit).await {
            Ok(Answer { status: 200, is_whole: false, body, .. }) => Err(if body.len() < bytes_max {
                NoAnswer::Silent(format!("broke off in the midst of {}", bare(path)))
            } else {
                NoAnswer::TooMuch(cut(path, bytes_max))
            }),
            Ok(Answer { status: 200, body, at, .. }) => Ok(Said::This(body, at.unwrap_or(asked_at))),
            Ok(Answer { status: status @ 401, body, .. }) => {
                let answered = answered_with(path, status);
                Err(NoAnswer::Denied(format!("does not take the key: it {answered}{}", words_of(body))))
            }
            Ok(Answer { status: status @ 403, body, .. }) => {
                let (answered, thing) = (answered_with(path, status), thing(path));
                Err(NoAnswer::Barred(format!("{answered}: the key may not read {thing}{}", words_of(body))))
            }
            Ok(Answer { status: status @ (400..=407 | 409..=428 | 430..=499), body, .. }) => {
                tracing::info!(path, status, "the processor says nothing to a question");
                let why = format!("{}{}", answered_with(path, status), words_of(body));
                Ok(Said::Nothing(Denial { status, why }))
            }
            Ok(Answer { status, .. }) => Err(NoAnswer::Silent(answered_with(path, status))),
            Err(error @ PostError::Budget(BudgetError::Limit { .. })) => {
                Err(NoAnswer::TooMuch(cannot_be_asked(path, &error)))
            }
            Err(PostError::Budget(busy)) => Err(NoAnswer::Busy(busy)),
            Err(error) => Err(NoAnswer::Silent(cannot_be_asked(path, &error))),
        }
    }

    /// Asks for a list, so many pages of it at most; `path` has a query. The permit pays for its objects, and is to be held
    /// as long as they are. The inner error is what is said where there is none, once and for all.
    ///
    /// # Errors
    /// As [`Asker::object`]; more is answered than the permit holds.
    pub(crate) async fn list(
        &self,
        path: &str,
        pages_max: usize,
        permit: &mut AnswerPermit,
    ) -> Result<Result<Told, Denial>, NoAnswer> {
        let mut told = Told { at: self.office.now(), has_more: true, objects: Vec::new() };
        let mut after = String::new();
        for _ in 0..pages_max {
            let path = format!("{path}&limit={PAGE_OBJECTS}{after}");
            let (body, at) = match self.ask((&path, PAGE_BYTES_MAX), permit).await? {
                Said::This(body, at) => (body, at),
                Said::Nothing(denial) => return Ok(Err(denial)),
            };
            let unread = |error| NoAnswer::Silent(format!("answered {} with no list: {error}", bare(&path)));
            let page = offload(body.len(), move || Page::read(&body)).await.map_err(unread)?;
            let next = page.next().map(|id| escaped(&id));
            let is_endless = page.has_more && next.is_none() && !page.objects.is_empty();
            if told.objects.is_empty() {
                told.at = at;
            }
            told.objects.extend(page.objects);
            match next {
                Some(next) => after = format!("&starting_after={next}"),
                None if is_endless => {
                    let why = "with a page whose last object has no id";
                    return Err(NoAnswer::Silent(format!("answered {} {why}", bare(&path))));
                }
                None => {
                    told.has_more = false;
                    break;
                }
            }
        }
        Ok(Ok(told))
    }
}

/// An id in an address: whatever the processor sent, it stays one segment or value (RFC 3986 2.1).
pub(crate) fn escaped(id: &str) -> String {
    url::form_urlencoded::byte_serialize(id.as_bytes()).collect()
}

/// A path without its query.
fn bare(path: &str) -> &str {
    path.split_once('?').map_or(path, |(path, _)| path)
}

/// What stands at a path, in the words of the processor's permissions.
fn thing(path: &str) -> String {
    let mut segments = bare(path).split('/').filter(|segment| !matches!(*segment, "" | "v1"));
    match (segments.next().unwrap_or_default(), segments.next()) {
        ("checkout", Some(kind)) => format!("checkout {kind}"),
        (kind, _) => kind.replace('_', " "),
    }
}

fn answered_with(path: &str, status: u16) -> String {
    format!("answered {} with status {status}", bare(path))
}

/// The processor's explanation of a refusal, in parentheses; empty where it gives none that can be read.
fn words_of(body: Bytes) -> String {
    let said = Json::read(body).ok().and_then(|said| said.text_at("error.message").map(Cow::into_owned));
    let words: String =
        said.iter().flat_map(|said| said.chars()).filter(|c| !c.is_control()).take(WORDS_MAX).collect();
    if words.is_empty() { words } else { format!(" ({words})") }
}

fn no_json(path: &str) -> String {
    format!("answered {} with something that is no JSON", bare(path))
}

fn cut(path: &str, bytes_max: usize) -> String {
    format!("answered {} with more than {bytes_max} bytes", bare(path))
}

fn cannot_be_asked(path: &str, error: &PostError) -> String {
    format!("cannot be asked for {}: {error}", bare(path))
}

/// Whether a text can be an id of the processor's.
fn is_id(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What a key says itself of whose money it is about: `rk_live_…`, `sk_test_…`.
fn mode_of(key: &str) -> Option<bool> {
    match key.split('_').nth(1) {
        Some("live") => Some(true),
        Some("test") => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_whose_money_they_are_about() {
        assert_eq!(mode_of("rk_live_51abc"), Some(true));
        assert_eq!(mode_of("sk_test_51abc"), Some(false));
        assert_eq!(mode_of("secret"), None);
    }

    #[test]
    fn what_a_key_may_not_read_is_named() {
        let named = |path, thing_named| assert_eq!(thing(path), thing_named, "{path}");
        named("/v1/customers/cus_1", "customers");
        named("/v1/checkout/sessions?limit=100", "checkout sessions");
        named("/v1/invoice_payments?invoice=in_1", "invoice payments");
        named("/v1/invoices/in_1/lines?", "invoices");
        named("/", "");
    }
}
