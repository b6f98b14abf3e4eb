//! Who says whether a message is spam: our few rules, or rspamd over HTTP (`POST /checkv2`).
//!
//! rspamd says what it would do (`no action`, `greylist`, `add header`, `rewrite subject`, `soft reject`,
//! `reject`) and its score; where the operator has set scores of their own, those decide.

use std::time::Duration;

use bytes::Bytes;
use dns::lookup::Resolver;
use mail::address::DomainName;
use mail::received::{SpamScore, SpamStatus};
use serde::Deserialize;
use thiserror::Error;

use super::{InboundRejection, IncomingMessage, OnTempError};
use crate::courier::http::{
    HttpClient, HttpClientError, HttpClientSettings, HttpClientSetupError, HttpPost, RequestIdempotency, UrlRules,
};

/// How long a filter may take: the peer waits for our reply for ten minutes (RFC 5321 4.5.3.2.6).
const FILTER_TIMEOUT: Duration = Duration::from_secs(20);

/// Who looks for spam.
#[derive(Debug, Clone)]
pub enum SpamScanner {
    /// Nobody.
    Off,
    /// Our own rules (`mail/src/spam.rs`).
    Rules,
    /// rspamd.
    Rspamd(RspamdClient),
}

/// What somebody thinks of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SpamVerdict {
    pub(super) status: SpamStatus,
    pub(super) score: Option<SpamScore>,
}

impl SpamVerdict {
    /// The same; but what fails by where it comes from is marked whoever says otherwise.
    pub(super) fn or_marked(self, is_marked: bool, own: SpamScore) -> Self {
        match is_marked {
            true => Self { status: SpamStatus::Spam, score: self.score.or(Some(own)) },
            false => self,
        }
    }
}

/// How rspamd is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct RspamdSettings {
    /// Where it is: `http://127.0.0.1:11333`.
    pub url: String,
    /// What is done when it gives no answer.
    pub on_failure: OnTempError,
    /// From this score on a message is marked, whatever rspamd would do.
    pub mark_score: Option<f64>,
    /// And refused.
    pub reject_score: Option<f64>,
}

/// Asks rspamd.
#[derive(Debug, Clone)]
pub struct RspamdClient {
    settings: RspamdSettings,
    client: HttpClient,
}

/// Why rspamd gave no answer.
#[derive(Debug, Error)]
pub(super) enum SpamFilterError {
    /// It could not be asked.
    #[error(transparent)]
    Post(#[from] HttpClientError),
    /// It said something else than a result.
    #[error("rspamd answered {0}")]
    Answer(String),
}

/// What rspamd says.
#[derive(Debug, Deserialize)]
struct RspamdResponse {
    action: String,
    score: f64,
}

impl RspamdClient {
    /// Asks the rspamd of these settings, which may be on this machine.
    ///
    /// # Errors
    /// [`PosterError`].
    pub fn new(settings: RspamdSettings, resolver: Resolver) -> Result<Self, HttpClientSetupError> {
        let rules = UrlRules { allow_private: true, allow_http: true };
        let poster = HttpClient::new(resolver, HttpClientSettings { rules, ..HttpClientSettings::default() })?;
        Ok(Self { settings, client: poster })
    }

    pub(super) fn on_failure(&self) -> OnTempError {
        self.settings.on_failure
    }

    /// What it thinks of a message.
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
        // A header of HTTP holds no more than this (RFC 9110 5.5).
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
            return Err(SpamFilterError::Answer(format!("with status {}", answer.status)));
        }
        let said =
            parse_response(&answer.body).ok_or_else(|| SpamFilterError::Answer("something unreadable".to_owned()))?;
        Ok(self.verdict_for(&said))
    }

    fn verdict_for(&self, said: &RspamdResponse) -> Result<SpamVerdict, InboundRejection> {
        let RspamdSettings { mark_score, reject_score, .. } = &self.settings;
        let action = said.action.as_str();
        if reject_score.map_or(action == "reject", |limit| said.score >= limit) {
            return Err(InboundRejection::Spam);
        }
        if action == "soft reject" || action == "greylist" {
            return Err(InboundRejection::FilterDefers);
        }
        let acts = matches!(action, "add header" | "rewrite subject" | "reject" | "quarantine");
        let status = match mark_score.map_or(acts, |limit| said.score >= limit) {
            true => SpamStatus::Spam,
            false => SpamStatus::NotSpam,
        };
        Ok(SpamVerdict { status, score: Some(SpamScore::from_points(said.score)) })
    }
}

/// The result: an object of which we have the beginning. What matters stands before the symbols, of which
/// there may be many.
fn parse_response(body: &Bytes) -> Option<RspamdResponse> {
    if let Ok(said) = serde_json::from_slice(body) {
        return Some(said);
    }
    let text = std::str::from_utf8(body).ok().or_else(|| {
        // Cut within a character.
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
    fn the_beginning_of_a_result_is_enough() {
        let said = |text: &'static str| parse_response(&Bytes::from_static(text.as_bytes()));
        let whole = said(r#"{"action":"reject","score":15.2,"symbols":{}}"#).unwrap();
        assert_eq!((whole.action.as_str(), whole.score.to_bits()), ("reject", 15.2f64.to_bits()));
        let cut = said(r#"{"is_skipped":false,"score":-1,"action":"no action", "symbols":{"A":{"na"#).unwrap();
        assert_eq!(cut.action, "no action");
        for none in ["", "[]", r#"{"symbols":{"#, r#"{"error":"x"}"#] {
            assert!(said(none).is_none(), "{none}");
        }
    }
}
