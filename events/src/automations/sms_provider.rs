//! The operator's SMS provider.

use std::time::Duration;

use bytes::Bytes;
use model::automation::context::{self, RunContext};
use model::automation::definition::SmsStep;
use net::http_client::{HttpClient, HttpClientError, HttpPost, HttpResponse, RequestIdempotency};
use serde_json::{Value, json};

/// Timeout of a request to the provider.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The operator's SMS provider.
#[derive(Clone)]
pub struct SmsProvider {
    /// HTTP client; private addresses are allowed.
    pub client: HttpClient,
    pub url: String,
    /// Bearer token.
    pub token: String,
    /// Sender: a telephone number or a name.
    pub from: String,
}

impl SmsProvider {
    pub(super) async fn post_message(&self, text: &SmsMessage, key: String) -> Result<HttpResponse, HttpClientError> {
        let body = json!({"to": text.to, "from": self.from, "body": text.body});
        let headers = vec![("authorization", format!("Bearer {}", self.token)), ("idempotency-key", key)];
        let body = Bytes::from(body.to_string());
        // The engine retries when the result is unknown. A retry by the HTTP client could send a second text if the
        // provider ignores the key.
        let (url, idempotency) = (self.url.clone(), RequestIdempotency::NonIdempotent);
        self.client.post(HttpPost { url, headers, body, timeout: TIMEOUT, idempotency }).await
    }
}

/// A rendered text message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SmsMessage {
    pub(super) to: String,
    pub(super) body: String,
}

impl SmsMessage {
    pub(super) fn render(sms: &SmsStep, run_context: &RunContext) -> Result<Self, String> {
        let root = run_context.to_json();
        let fill = |field: &str, text: &str| {
            context::render_text(text, &root).map(|text| text.trim().to_owned()).map_err(|e| format!("`{field}`: {e}"))
        };
        let (to, body) = (fill("to", &sms.to)?, fill("body", &sms.body)?);
        let number = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | ' ' | '(' | ')' | '.');
        if !(3..=32).contains(&to.len()) || !to.chars().all(number) {
            return Err("`to` is not a phone number".to_owned());
        }
        if body.is_empty() {
            return Err("`body` is empty".to_owned());
        }
        Ok(Self { to, body })
    }

    pub(super) fn preview(&self) -> Value {
        json!({"to": self.to, "body": self.body})
    }
}
