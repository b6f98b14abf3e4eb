//! Spam scanning: built-in rules, or rspamd over HTTP (`POST /checkv2`).
//!
//! rspamd returns an action (`no action`, `greylist`, `add header`, `rewrite subject`, `soft reject`, `reject`) and a
//! score. Scores that the operator configures override its action.

use std::time::Duration;

use bytes::Bytes;
use dns::resolver::Resolver;
use message::address::DomainName;
use model::received::{SpamScore, SpamStatus};
use net::http_client::{
    HttpClient, HttpClientError, HttpClientSettings, HttpClientSetupError, HttpPost, RequestIdempotency, UrlRules,
};
use serde::Deserialize;
use thiserror::Error;

use super::{InboundRejection, IncomingMessage, OnTempError};

/// Timeout of a scan; the peer waits ten minutes for the reply (RFC 5321 4.5.3.2.6).
const FILTER_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug, Clone)]
pub enum SpamScanner {
    /// No scanning.
    Off,
    /// Built-in rules (`model/src/spam.rs`).
    Rules,
    Rspamd(RspamdClient),
}

/// Result of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SpamVerdict {
    pub(super) status: SpamStatus,
    pub(super) score: Option<SpamScore>,
}

impl SpamVerdict {
    /// Marks the message as spam if `is_marked`, whatever the verdict; `local_score` replaces a missing score.
    pub(super) fn or_marked(self, is_marked: bool, local_score: SpamScore) -> Self {
        match is_marked {
            true => Self { status: SpamStatus::Spam, score: self.score.or(Some(local_score)) },
            false => self,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct RspamdSettings {
    /// Base URL, such as `http://127.0.0.1:11333`.
    pub url: String,
    /// Action when rspamd does not respond.
    pub on_failure: OnTempError,
    /// Score from which a message is marked as spam, whatever rspamd's action.
    pub mark_score: Option<f64>,
    /// Score from which a message is rejected.
    pub reject_score: Option<f64>,
}

#[derive(Debug, Clone)]
pub struct RspamdClient {
    settings: RspamdSettings,
    client: HttpClient,
}

/// Why rspamd returned no result.
#[derive(Debug, Error)]
pub(super) enum SpamFilterError {
    /// The request failed.
    #[error(transparent)]
    Post(#[from] HttpClientError),
    /// The response is not a result.
    #[error("unexpected rspamd response: {0}")]
    Answer(String),
}

/// The used fields of rspamd's response.
#[derive(Debug, Deserialize)]
struct RspamdResponse {
    action: String,
    score: f64,
}

impl RspamdClient {
    /// Creates a client. rspamd may have a private address.
    ///
    /// # Errors
    /// Returns an [`HttpClientSetupError`] if the HTTP client cannot be set up.
    pub fn new(settings: RspamdSettings, resolver: Resolver) -> Result<Self, HttpClientSetupError> {
        let rules = UrlRules { allow_private: true, allow_http: true };
        let poster = HttpClient::new(resolver, HttpClientSettings { rules, ..HttpClientSettings::default() })?;
        Ok(Self { settings, client: poster })
    }

    pub(super) fn on_failure(&self) -> OnTempError {
        self.settings.on_failure
    }

    /// Scans a message.
    pub(super) async fn check_message(
        &self,
        incoming: &IncomingMessage,
        hostname: &DomainName,
    ) -> Result<Result<SpamVerdict, InboundRejection>, SpamFilterError> {
        let sender = incoming.reverse_path.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut headers = vec![
            ("ip", incoming.peer.to_canonical().to_string()),
            ("helo", incoming.helo.clone()),
            ("from", sender),
            ("mta-name", hostname.to_string()),
        ];
        headers.extend(incoming.recipients.iter().map(|(address, _)| ("rcpt", address.to_string())));
        // HTTP header values allow only these bytes (RFC 9110 5.5).
        headers.retain(|(_, value)| value.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        let post = HttpPost {
            url: format!("{}/checkv2", self.settings.url.trim_end_matches('/')),
            headers,
            body: incoming.message.clone(),
            timeout: FILTER_TIMEOUT,
            idempotency: RequestIdempotency::Idempotent,
        };
        let answer = self.client.post(post).await?;
        if answer.status != 200 {
            return Err(SpamFilterError::Answer(format!("status {}", answer.status)));
        }
        let response =
            parse_response(&answer.body).ok_or_else(|| SpamFilterError::Answer("invalid JSON".to_owned()))?;
        Ok(self.verdict_for(&response))
    }

    fn verdict_for(&self, response: &RspamdResponse) -> Result<SpamVerdict, InboundRejection> {
        let RspamdSettings { mark_score, reject_score, .. } = &self.settings;
        let action = response.action.as_str();
        if reject_score.map_or(action == "reject", |limit| response.score >= limit) {
            return Err(InboundRejection::Spam);
        }
        if action == "soft reject" || action == "greylist" {
            return Err(InboundRejection::FilterDefers);
        }
        let acts = matches!(action, "add header" | "rewrite subject" | "reject" | "quarantine");
        let status = match mark_score.map_or(acts, |limit| response.score >= limit) {
            true => SpamStatus::Spam,
            false => SpamStatus::NotSpam,
        };
        Ok(SpamVerdict { status, score: Some(SpamScore::from_points(response.score)) })
    }
}

/// Parses a result, which may be truncated. The used fields precede the symbols, of which there may be many.
fn parse_response(body: &Bytes) -> Option<RspamdResponse> {
    if let Ok(response) = serde_json::from_slice(body) {
        return Some(response);
    }
    let text = std::str::from_utf8(body).ok().or_else(|| {
        // Truncated within a UTF-8 character.
        let valid = std::str::from_utf8(body).err()?.valid_up_to();
        std::str::from_utf8(body.get(..valid)?).ok()
    })?;
    let (before, _) = text.split_once("\"symbols\"")?;
    serde_json::from_str(&format!("{}}}", before.trim_end().trim_end_matches(','))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_response_is_parsed_up_to_the_verdict() {
        let response = |text: &'static str| parse_response(&Bytes::from_static(text.as_bytes()));
        let expected = response(r#"{"action":"reject","score":15.2,"symbols":{}}"#).unwrap();
        assert_eq!((expected.action.as_str(), expected.score.to_bits()), ("reject", 15.2f64.to_bits()));
        let cut = response(r#"{"is_skipped":false,"score":-1,"action":"no action", "symbols":{"A":{"na"#).unwrap();
        assert_eq!(cut.action, "no action");
        for none in ["", "[]", r#"{"symbols":{"#, r#"{"error":"x"}"#] {
            assert!(response(none).is_none(), "{none}");
        }
    }
}
