//! `[mx]`: mail from the world, for our customers' domains.

use std::net::SocketAddr;
use std::time::Duration;

use mail::address::{Address, DomainName};
use mail::mta_sts::MtaStsMode;
use mail::returned::reporter::FeedbackReporter;
use queue::inbound::{OnPolicyFail, OnTempError};
use serde::Deserialize;
use smtp::limits::SessionLimits;
use smtp::mx::AbuseLimits;

use super::values::{duration, one_or_many};

/// `[mx]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MxSection {
    /// Where it listens.
    #[serde(deserialize_with = "one_or_many")]
    pub listen: Vec<SocketAddr>,
    /// The largest message that is taken in, in bytes.
    pub message_bytes_max: u64,
    /// Recipients of one message.
    pub recipients_max: usize,
    /// Sessions of one address.
    pub sessions_per_address_max: usize,
    /// Connections of one address in a minute.
    pub connections_per_minute_max: u32,
    /// Mistakes in one session.
    pub errors_max: u32,
    /// Mailboxes that are not there, asked for in one session.
    pub unknown_recipients_max: u32,
    /// And by one address in an hour.
    pub unknown_recipients_per_hour_max: u32,
    /// How long the greeting is held back.
    #[serde(deserialize_with = "duration")]
    pub greet_delay: Duration,
    /// Lists of bad addresses.
    #[serde(deserialize_with = "one_or_many")]
    pub dnsbl: Vec<DomainName>,
    /// What becomes of mail of a listed address.
    pub dnsbl_action: UnwantedMailAction,
    /// What becomes of mail that its author's domain wants refused.
    pub dmarc_reject: UnwantedMailAction,
    /// What becomes of mail when the DNS gives no answer.
    pub dns_failure: FailurePolicy,
    /// Who looks for spam.
    pub spam_filter: SpamFilter,
    /// Where rspamd is.
    pub rspamd_url: String,
    /// What becomes of mail when it gives no answer.
    pub rspamd_failure: FailurePolicy,
    /// From this score of rspamd's on mail is marked; none leaves it to rspamd.
    pub rspamd_mark_score: Option<f64>,
    /// And refused.
    pub rspamd_reject_score: Option<f64>,
    /// Where mail to postmaster and abuse at our own names goes.
    pub postmaster: Option<Address>,
    /// What the policy of MTA-STS asks for of domains whose mail is taken in.
    pub mta_sts: MtaStsSetting,
    /// Who is believed about complaints.
    #[serde(deserialize_with = "one_or_many")]
    pub complaint_reporters: Vec<FeedbackReporter>,
}

impl Default for MxSection {
    fn default() -> Self {
        let limits = SessionLimits::for_mx();
        let patience = AbuseLimits::default();
        Self {
            listen: Vec::new(),
            message_bytes_max: limits.message_bytes_max,
            recipients_max: limits.recipients_max,
            sessions_per_address_max: limits.sessions_per_address_max,
            connections_per_minute_max: limits.connections_per_minute_max,
            errors_max: limits.errors_max,
            unknown_recipients_max: patience.unknown_recipients_max,
            unknown_recipients_per_hour_max: patience.unknown_recipients_per_hour_max,
            greet_delay: limits.greet_delay,
            dnsbl: Vec::new(),
            dnsbl_action: UnwantedMailAction::default(),
            dmarc_reject: UnwantedMailAction::default(),
            dns_failure: FailurePolicy::default(),
            spam_filter: SpamFilter::default(),
            rspamd_url: "http://127.0.0.1:11333".to_owned(),
            rspamd_failure: FailurePolicy::default(),
            rspamd_mark_score: None,
            rspamd_reject_score: None,
            postmaster: None,
            mta_sts: MtaStsSetting::default(),
            complaint_reporters: FeedbackReporter::defaults(),
        }
    }
}

impl MxSection {
    /// Our policy of MTA-STS, if there is one.
    #[must_use]
    pub fn mta_sts_mode(&self) -> Option<MtaStsMode> {
        match self.mta_sts {
            MtaStsSetting::Off => None,
            MtaStsSetting::Testing => Some(MtaStsMode::Testing),
            MtaStsSetting::Enforce => Some(MtaStsMode::Enforce),
        }
    }

    /// What strangers are allowed.
    #[must_use]
    pub fn abuse_limits(&self) -> AbuseLimits {
        AbuseLimits {
            unknown_recipients_max: self.unknown_recipients_max,
            unknown_recipients_per_hour_max: self.unknown_recipients_per_hour_max,
        }
    }

    /// What sessions keep to.
    #[must_use]
    pub fn session_limits(&self) -> SessionLimits {
        SessionLimits {
            message_bytes_max: self.message_bytes_max,
            recipients_max: self.recipients_max,
            sessions_per_address_max: self.sessions_per_address_max,
            connections_per_minute_max: self.connections_per_minute_max,
            errors_max: self.errors_max,
            greet_delay: self.greet_delay,
            ..SessionLimits::for_mx()
        }
    }
}

/// What is done with mail that looks bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnwantedMailAction {
    /// It is refused.
    #[default]
    Refuse,
    /// It is taken in, and marked as spam.
    Mark,
}

impl From<UnwantedMailAction> for OnPolicyFail {
    fn from(action: UnwantedMailAction) -> Self {
        match action {
            UnwantedMailAction::Refuse => Self::Refuse,
            UnwantedMailAction::Mark => Self::MarkAsSpam,
        }
    }
}

/// What is done when somebody whom we ask gives no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailurePolicy {
    /// Mail is taken in.
    #[default]
    Open,
    /// Mail is to come again.
    Closed,
}

impl From<FailurePolicy> for OnTempError {
    fn from(failure: FailurePolicy) -> Self {
        match failure {
            FailurePolicy::Open => Self::Accept,
            FailurePolicy::Closed => Self::Defer,
        }
    }
}

/// What our own policy of MTA-STS asks for (RFC 8461 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MtaStsSetting {
    /// There is none.
    Off,
    /// It is tried out: who sends reports what does not hold, and sends.
    #[default]
    Testing,
    /// It is kept to.
    Enforce,
}

/// Who looks for spam.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpamFilter {
    /// Nobody.
    Off,
    /// A few rules of our own.
    #[default]
    Rules,
    /// rspamd.
    Rspamd,
}
