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
use mail::affiliate::program::AffiliateProgram;
use mail::id::AccountId;
use queue::courier::http::{HttpClientError, HttpGet, HttpResponse, ResponseBudgetError, ResponsePermit};
use thiserror::Error;
use tokio::time::Instant;

use crate::ledger::LedgerError;
use crate::office::AffiliateService;
use crate::offload::offload;
use crate::processor::{
    ConnectedAccount, MetadataKeys, OBJECT_BYTES_MAX, PAGE_BYTES_MAX, PAGE_OBJECTS, ProcessorJson, ReadContext,
    ResponsePage, StateVersion,
};
use crate::refusal::AffiliateError;

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
pub(crate) enum StripeAnswer<T> {
    /// This, at this time by its clock.
    Object(T, Timestamp),
    /// Once and for all nothing: there is no such thing.
    Refused(StripeRefusal),
}

/// That the processor said once and for all that there is nothing.
#[derive(Debug)]
pub(crate) struct StripeRefusal {
    /// The status it said so with.
    pub(crate) status: u16,
    /// The same in words that follow "the processor", with its own.
    pub(crate) why: String,
}

/// Why there is no answer, in words that follow "the processor".
#[derive(Debug, Error)]
pub(crate) enum StripeError {
    /// It said nothing, or nothing to the point.
    #[error("{0}")]
    NoResponse(String),
    /// It does not take the key.
    #[error("{0}")]
    KeyRejected(String),
    /// The key may not see what was asked for.
    #[error("{0}")]
    KeyNotPermitted(String),
    /// Other answers hold the memory: it is to be asked later.
    #[error("{0}")]
    MemoryBusy(ResponseBudgetError),
    /// It answered with more than is read at once: a shorter time may be asked about.
    #[error("{0}")]
    TooLarge(String),
}

/// A list that the processor answered with.
pub(crate) struct StripeList {
    /// Its objects, in the processor's order.
    pub(crate) objects: Vec<ProcessorJson>,
    /// As of when, by its clock.
    pub(crate) at: Timestamp,
    /// Whether there are more than were asked for.
    pub(crate) has_more: bool,
}

impl StripeList {
    /// That there is nothing.
    pub(crate) fn empty() -> Self {
        Self { objects: Vec::new(), at: Timestamp::UNIX_EPOCH, has_more: false }
    }
}

/// The processor of a program, asked with the program's key.
pub(crate) struct StripeClient {
    office: AffiliateService,
    account: AccountId,
    api_base: String,
    key: String,
}

/// Whose key it is, as the processor says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripeAccount {
    /// The account there.
    pub id: String,
    /// Whether its money is real, as far as that is known.
    pub livemode: Option<bool>,
}

impl AffiliateService {
    /// Whether the processor's API may be at this address.
    ///
    /// # Errors
    /// A field error about `api_base`.
    pub(crate) fn check_api_base(&self, api_base: &str) -> Result<(), AffiliateError> {
        self.hall.check_webhook_url(api_base).map_err(|why| AffiliateError::field("api_base", why))
    }

    /// Asks the processor for what stands at a path, whatever it answers.
    ///
    /// # Errors
    /// It did not answer.
    fn get<'a>(
        &'a self,
        (api_base, key): (&'a str, &'a str),
        (path, answer_bytes_max): (&'a str, usize),
        permit: &'a mut ResponsePermit,
    ) -> BoxFuture<'a, Result<HttpResponse, HttpClientError>> {
        Box::pin(async move {
            let get = HttpGet {
                url: format!("{}{path}", api_base.trim_end_matches('/')),
                headers: vec![("authorization", format!("Bearer {key}")), ("accept", "application/json".to_owned())],
                timeout: TIMEOUT,
                response_bytes_max: answer_bytes_max,
            };
            self.hall.fetch_url_with_permit(get, permit).await
        })
    }

    /// The same, for an object.
    ///
    /// # Errors
    /// It did not answer, or not with 200 and JSON.
    async fn fetch_object(
        &self,
        account: AccountId,
        whom: (&str, &str),
        path: &str,
    ) -> Result<ProcessorJson, AffiliateError> {
        let mut permit = self.hall.response_permit(account);
        let answered = self.get(whom, (path, OBJECT_BYTES_MAX), &mut permit).await;
        let answer = answered.map_err(|error| AffiliateError::Upstream(cannot_be_asked(path, &error)))?;
        if answer.status != 200 {
            let why = format!("{}{}", answered_with(path, answer.status), error_message_of(answer.body));
            return Err(AffiliateError::Upstream(why));
        }
        if !answer.is_complete {
            return Err(AffiliateError::Upstream(too_long_message(path, OBJECT_BYTES_MAX)));
        }
        ProcessorJson::read(answer.body).map_err(|_| AffiliateError::Upstream(no_json(path)))
    }

    /// The memory to read an event of an account in.
    ///
    /// # Errors
    /// It is not free in time.
    pub(crate) async fn reserve_memory(&self, account: AccountId, bytes: usize) -> Result<ResponsePermit, LedgerError> {
        let mut permit = self.hall.response_permit(account);
        permit.grow_until(bytes, Instant::now() + MEMORY_WAIT).await?;
        Ok(permit)
    }

    /// The processor of a program, where it was given a key.
    pub(crate) fn stripe_client(&self, program: &AffiliateProgram) -> Option<StripeClient> {
        let processor = program.processor.as_ref()?;
        let key = self.open(&program.id.to_bytes(), processor.restricted_key.as_ref()?)?;
        let (office, account) = (self.clone(), program.account);
        Some(StripeClient { office, account, api_base: processor.api_base.clone(), key })
    }

    /// Whether the processor says that money can be transferred to an account of it. Where it is not asked, or does not
    /// say, it cannot; it may say so later, by itself.
    pub(crate) async fn takes_transfers(&self, program: &AffiliateProgram, account: &str) -> bool {
        let Some(StripeClient { api_base, key, .. }) = self.stripe_client(program) else { return false };
        let path = format!("/v1/accounts/{account}");
        let told = self.fetch_object(program.account, (&api_base, &key), &path).await;
        let keys = MetadataKeys::default();
        let reading = ReadContext { keys: &keys, as_of: StateVersion::fetched(self.now()) };
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
    pub(crate) async fn fetch_account(
        &self,
        account: AccountId,
        (api_base, key): (&str, &str),
    ) -> Result<StripeAccount, AffiliateError> {
        let told = self.fetch_object(account, (api_base, key), "/v1/account").await?;
        let id = told.id().filter(|id| is_id(id));
        let id = id.ok_or_else(|| AffiliateError::Upstream("answered without the account's id".to_owned()))?;
        let livemode = told.flag_in("livemode").or_else(|| livemode_of_key(key));
        Ok(StripeAccount { id: id.into_owned(), livemode })
    }
}

impl StripeClient {
    /// Memory for answers to its questions, of nothing yet.
    pub(crate) fn permit(&self) -> ResponsePermit {
        self.office.hall.response_permit(self.account)
    }

    /// Asks for the object that stands at a path. The permit pays for it, and is to be held as long as it is.
    ///
    /// # Errors
    /// There was no answer: what the processor did, to be asked again later.
    pub(crate) async fn get_object(
        &self,
        path: &str,
        permit: &mut ResponsePermit,
    ) -> Result<StripeAnswer<ProcessorJson>, StripeError> {
        Ok(match self.ask((path, OBJECT_BYTES_MAX), permit).await? {
            StripeAnswer::Object(body, at) => match ProcessorJson::read(body) {
                Ok(object) => StripeAnswer::Object(object, at),
                Err(_) => return Err(StripeError::NoResponse(no_json(path))),
            },
            StripeAnswer::Refused(denial) => StripeAnswer::Refused(denial),
        })
    }

    async fn ask(
        &self,
        (path, bytes_max): (&str, usize),
        permit: &mut ResponsePermit,
    ) -> Result<StripeAnswer<Bytes>, StripeError> {
        let asked_at = self.office.now();
        match self.office.get((&self.api_base, &self.key), (path, bytes_max), permit).await {
            Ok(HttpResponse { status: 200, is_complete: false, body, .. }) => Err(if body.len() < bytes_max {
                StripeError::NoResponse(format!("broke off in the midst of {}", without_query(path)))
            } else {
                StripeError::TooLarge(too_long_message(path, bytes_max))
            }),
            Ok(HttpResponse { status: 200, body, date: at, .. }) => {
                Ok(StripeAnswer::Object(body, at.unwrap_or(asked_at)))
            }
            Ok(HttpResponse { status: status @ 401, body, .. }) => {
                let answered = answered_with(path, status);
                Err(StripeError::KeyRejected(format!("does not take the key: it {answered}{}", error_message_of(body))))
            }
            Ok(HttpResponse { status: status @ 403, body, .. }) => {
                let (answered, thing) = (answered_with(path, status), resource_name(path));
                Err(StripeError::KeyNotPermitted(format!(
                    "{answered}: the key may not read {thing}{}",
                    error_message_of(body)
                )))
            }
            Ok(HttpResponse { status: status @ (400..=407 | 409..=428 | 430..=499), body, .. }) => {
                tracing::info!(path, status, "the processor says nothing to a question");
                let why = format!("{}{}", answered_with(path, status), error_message_of(body));
                Ok(StripeAnswer::Refused(StripeRefusal { status, why }))
            }
            Ok(HttpResponse { status, .. }) => Err(StripeError::NoResponse(answered_with(path, status))),
            Err(error @ HttpClientError::Budget(ResponseBudgetError::Limit { .. })) => {
                Err(StripeError::TooLarge(cannot_be_asked(path, &error)))
            }
            Err(HttpClientError::Budget(busy)) => Err(StripeError::MemoryBusy(busy)),
            Err(error) => Err(StripeError::NoResponse(cannot_be_asked(path, &error))),
        }
    }

    /// Asks for a list, so many pages of it at most; `path` has a query. The permit pays for its objects, and is to be held
    /// as long as they are. The inner error is what is said where there is none, once and for all.
    ///
    /// # Errors
    /// As [`Asker::object`]; more is answered than the permit holds.
    pub(crate) async fn list_objects(
        &self,
        path: &str,
        pages_max: usize,
        permit: &mut ResponsePermit,
    ) -> Result<Result<StripeList, StripeRefusal>, StripeError> {
        let mut told = StripeList { at: self.office.now(), has_more: true, objects: Vec::new() };
        let mut after = String::new();
        for _ in 0..pages_max {
            let path = format!("{path}&limit={PAGE_OBJECTS}{after}");
            let (body, at) = match self.ask((&path, PAGE_BYTES_MAX), permit).await? {
                StripeAnswer::Object(body, at) => (body, at),
                StripeAnswer::Refused(denial) => return Ok(Err(denial)),
            };
            let unread =
                |error| StripeError::NoResponse(format!("answered {} with no list: {error}", without_query(&path)));
            let page = offload(body.len(), move || ResponsePage::read(&body)).await.map_err(unread)?;
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
                    return Err(StripeError::NoResponse(format!("answered {} {why}", without_query(&path))));
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
fn without_query(path: &str) -> &str {
    path.split_once('?').map_or(path, |(path, _)| path)
}

/// What stands at a path, in the words of the processor's permissions.
fn resource_name(path: &str) -> String {
    let mut segments = without_query(path).split('/').filter(|segment| !matches!(*segment, "" | "v1"));
    match (segments.next().unwrap_or_default(), segments.next()) {
        ("checkout", Some(kind)) => format!("checkout {kind}"),
        (kind, _) => kind.replace('_', " "),
    }
}

fn answered_with(path: &str, status: u16) -> String {
    format!("answered {} with status {status}", without_query(path))
}

/// The processor's explanation of a refusal, in parentheses; empty where it gives none that can be read.
fn error_message_of(body: Bytes) -> String {
    let said = ProcessorJson::read(body).ok().and_then(|said| said.text_at("error.message").map(Cow::into_owned));
    let words: String = said.iter().flat_map(|said| said.chars()).filter(|c| !c.is_control()).take(WORDS_MAX).collect();
    if words.is_empty() { words } else { format!(" ({words})") }
}

fn no_json(path: &str) -> String {
    format!("answered {} with something that is no JSON", without_query(path))
}

fn too_long_message(path: &str, bytes_max: usize) -> String {
    format!("answered {} with more than {bytes_max} bytes", without_query(path))
}

fn cannot_be_asked(path: &str, error: &HttpClientError) -> String {
    format!("cannot be asked for {}: {error}", without_query(path))
}

/// Whether a text can be an id of the processor's.
fn is_id(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// What a key says itself of whose money it is about: `rk_live_…`, `sk_test_…`.
fn livemode_of_key(key: &str) -> Option<bool> {
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
        assert_eq!(livemode_of_key("rk_live_51abc"), Some(true));
        assert_eq!(livemode_of_key("sk_test_51abc"), Some(false));
        assert_eq!(livemode_of_key("secret"), None);
    }

    #[test]
    fn what_a_key_may_not_read_is_named() {
        let named = |path, thing_named| assert_eq!(resource_name(path), thing_named, "{path}");
        named("/v1/customers/cus_1", "customers");
        named("/v1/checkout/sessions?limit=100", "checkout sessions");
        named("/v1/invoice_payments?invoice=in_1", "invoice payments");
        named("/v1/invoices/in_1/lines?", "invoices");
        named("/", "");
    }
}
