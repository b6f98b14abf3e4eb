//! Asking the processor: one question, one JSON value, under the rules that hold for webhooks.
//!
//! The owner names the address, so it is judged like any that strangers name: resolved, checked and connected to as it
//! was checked, no redirect followed, time and bytes bounded (`queue/src/courier/http.rs`).

use std::time::Duration;

use queue::courier::http::{Answer, Get, PostError};
use serde_json::Value;

use mail::affiliate::program::Program;

use crate::office::Office;
use crate::processor::{AsOf, ConnectedAccount, MetadataKeys, Reading};
use crate::refusal::Refusal;

/// Where the processor's API is, unless said otherwise.
pub const API_BASE: &str = "https://api.stripe.com";
/// How long it may take to answer.
const TIMEOUT: Duration = Duration::from_secs(15);
/// A page of a hundred invoices with their lines is some hundreds of kilobytes.
const ANSWER_BYTES_MAX: usize = 8 << 20;

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
    pub(crate) async fn get(&self, (api_base, key): (&str, &str), path: &str) -> Result<Answer, PostError> {
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
    }

    /// The same, for JSON.
    ///
    /// # Errors
    /// It did not answer, or not with 200 and JSON.
    pub(crate) async fn ask(&self, whom: (&str, &str), path: &str) -> Result<Value, Refusal> {
        let answered = self.get(whom, path).await;
        let Answer { status, body, .. } =
            answered.map_err(|error| Refusal::Upstream(format!("cannot be asked: {error}")))?;
        if status != 200 {
            return Err(Refusal::Upstream(format!("answered with status {status}")));
        }
        let unread = || Refusal::Upstream("answered with something that is no JSON".to_owned());
        serde_json::from_slice(&body).map_err(|_| unread())
    }

    /// Whether the processor says that money can be transferred to an account of it. Where it is not asked, or does not
    /// say, it cannot; it may say so later, by itself.
    pub(crate) async fn takes_transfers(&self, program: &Program, account: &str) -> bool {
        let Some(processor) = &program.processor else { return false };
        let key = processor.restricted_key.as_ref().and_then(|key| self.open(&program.id.to_bytes(), key));
        let Some(key) = key else { return false };
        let told = self.ask((&processor.api_base, &key), &format!("/v1/accounts/{account}")).await;
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
}
