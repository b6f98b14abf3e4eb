//! Asking the processor: one question, one JSON value, under the rules that hold for webhooks.
//!
//! Who sets something up is told what was wrong ([`Office::ask`]). Who wants to know more of what came in ([`Asker`]) tells
//! an answer once and for all, also that there is nothing, from none. That the key is not good, or may not see a thing, says
//! nothing about the thing: it is no answer.
//!
//! The owner names the address, so it is judged like any that strangers name: resolved, checked and connected to as it
//! was checked, no redirect followed, time and bytes bounded (`queue/src/courier/http.rs`).

use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use queue::courier::http::{Answer, Get, PostError};
use serde_json::Value;
use thiserror::Error;

use mail::affiliate::program::Program;

use crate::office::Office;
use crate::processor::{AsOf, ConnectedAccount, MetadataKeys, Page, Reading};
use crate::refusal::Refusal;

/// Where the processor's API is, unless said otherwise.
pub const API_BASE: &str = "https://api.stripe.com";
/// How long it may take to answer.
const TIMEOUT: Duration = Duration::from_secs(15);
/// A page of a hundred invoices with their lines is some hundreds of kilobytes.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Objects of a page.
pub(crate) const PAGE_OBJECTS: usize = 100;

/// What the processor answered to a question.
#[derive(Debug)]
pub(crate) enum Said {
    /// This, at this time by its clock.
    Value(Value, Timestamp),
    /// Once and for all nothing, with this status: there is no such thing.
    Nothing(u16),
}

/// Why there is no answer, in words that follow "the processor".
#[derive(Debug, Error)]
pub(crate) enum NoAnswer {
    /// It said nothing, or nothing to the point, or does not take the key.
    #[error("{0}")]
    Silent(String),
    /// The key may not see what was asked for.
    #[error("{0}")]
    Barred(String),
}

/// A list that the processor answered with.
pub(crate) struct Told {
    /// Its objects, in the processor's order.
    pub(crate) objects: Vec<Value>,
    /// As of when, by its clock.
    pub(crate) at: Timestamp,
    /// Whether there are more than were asked for.
    pub(crate) has_more: bool,
}

/// The processor of a program, asked with the program's key.
pub(crate) struct Asker {
    office: Office,
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
    pub(crate) fn get<'a>(
        &'a self,
        (api_base, key): (&'a str, &'a str),
        path: &'a str,
    ) -> BoxFuture<'a, Result<Answer, PostError>> {
        Box::pin(async move {
            let get = Get {
                url: format!("{}{path}", api_base.trim_end_matches('/')),
                headers: vec![
                    ("authorization", format!("Bearer {key}")),
                    ("accept", "application/json".to_owned()),
                ],
                timeout: TIMEOUT,
                answer_bytes_max: ANSWER_BYTES_MAX,
            };
            self.hall.fetch(get).await
        })
    }

    /// The same, for JSON.
    ///
    /// # Errors
    /// It did not answer, or not with 200 and JSON.
    pub(crate) async fn ask(&self, whom: (&str, &str), path: &str) -> Result<Value, Refusal> {
        let answered = self.get(whom, path).await;
        let Answer { status, body, .. } =
            answered.map_err(|error| Refusal::Upstream(cannot_be_asked(path, &error)))?;
        if status != 200 {
            return Err(Refusal::Upstream(answered_with(path, status)));
        }
        serde_json::from_slice(&body).map_err(|_| Refusal::Upstream(no_json(path)))
    }

    /// The processor of a program, where it was given a key.
    pub(crate) fn asker(&self, program: &Program) -> Option<Asker> {
        let processor = program.processor.as_ref()?;
        let key = self.open(&program.id.to_bytes(), processor.restricted_key.as_ref()?)?;
        Some(Asker { office: self.clone(), api_base: processor.api_base.clone(), key })
    }

    /// Whether the processor says that money can be transferred to an account of it. Where it is not asked, or does not
    /// say, it cannot; it may say so later, by itself.
    pub(crate) async fn takes_transfers(&self, program: &Program, account: &str) -> bool {
        let Some(Asker { api_base, key, .. }) = self.asker(program) else { return false };
        let told = self.ask((&api_base, &key), &format!("/v1/accounts/{account}")).await;
        let keys = MetadataKeys::default();
        let reading = Reading { keys: &keys, as_of: AsOf::fetched(self.now()) };
        match told.map(|told| ConnectedAccount::read(&told, &reading)) {
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
    pub(crate) async fn ask_account(&self, api_base: &str, key: &str) -> Result<ToldAccount, Refusal> {
        let told = self.ask((api_base, key), "/v1/account").await?;
        let id = told["id"].as_str().filter(|id| is_id(id));
        let id = id.ok_or_else(|| Refusal::Upstream("answered without the account's id".to_owned()))?;
        let livemode = told["livemode"].as_bool().or_else(|| mode_of(key));
        Ok(ToldAccount { id: id.to_owned(), livemode })
    }
}

impl Asker {
    /// Asks for what stands at a path.
    ///
    /// # Errors
    /// There was no answer: what the processor did, to be asked again later.
    pub(crate) async fn ask(&self, path: &str) -> Result<Said, NoAnswer> {
        let asked_at = self.office.now();
        match self.office.get((&self.api_base, &self.key), path).await {
            Ok(Answer { status: 200, body, at, .. }) => match serde_json::from_slice(&body) {
                Ok(value) => Ok(Said::Value(value, at.unwrap_or(asked_at))),
                Err(_) => Err(NoAnswer::Silent(no_json(path))),
            },
            Ok(Answer { status: status @ 401, .. }) => {
                Err(NoAnswer::Silent(format!("does not take the key: it {}", answered_with(path, status))))
            }
            Ok(Answer { status: status @ 403, .. }) => {
                let (answered, thing) = (answered_with(path, status), thing(path));
                Err(NoAnswer::Barred(format!("{answered}: the key may not read {thing}")))
            }
            Ok(Answer { status: status @ (400..=407 | 409..=428 | 430..=499), .. }) => {
                tracing::info!(path, status, "the processor says nothing to a question");
                Ok(Said::Nothing(status))
            }
            Ok(Answer { status, .. }) => Err(NoAnswer::Silent(answered_with(path, status))),
            Err(error) => Err(NoAnswer::Silent(cannot_be_asked(path, &error))),
        }
    }

    /// Asks for a list, so many pages of it at most; `path` has a query. The inner error is the status with which it is
    /// said once and for all that there is none.
    ///
    /// # Errors
    /// As [`Asker::ask`].
    pub(crate) async fn list(&self, path: &str, pages_max: usize) -> Result<Result<Told, u16>, NoAnswer> {
        let mut told = Told { at: self.office.now(), has_more: true, objects: Vec::new() };
        let mut after = String::new();
        for _ in 0..pages_max {
            let path = format!("{path}&limit={PAGE_OBJECTS}{after}");
            let (value, at) = match self.ask(&path).await? {
                Said::Value(value, at) => (value, at),
                Said::Nothing(status) => return Ok(Err(status)),
            };
            let unread = |error| NoAnswer::Silent(format!("answered {} with no list: {error}", bare(&path)));
            let page = Page::from_value(value).map_err(unread)?;
            let next = page.next().map(escaped);
            if told.objects.is_empty() {
                told.at = at;
            }
            told.objects.extend(page.objects);
            match next {
                Some(next) => after = format!("&starting_after={next}"),
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

fn no_json(path: &str) -> String {
    format!("answered {} with something that is no JSON", bare(path))
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
