//! `[mx]`: the listener that receives mail from other servers for customers' domains.

use std::net::SocketAddr;
use std::time::Duration;

use inbound::service::{OnPolicyFail, OnTempError};
use message::address::{Address, DomainName};
use message::bounce::feedback_reporter::FeedbackReporter;
use message::mta_sts::MtaStsMode;
use serde::Deserialize;
use smtp::limits::SessionLimits;
use smtp::mx::AbuseLimits;

use super::section::section;
use super::values::{duration, one_or_many, parsed};

section! {
    /// `[mx]`
    #[derive(PartialEq)]
    MxSection in mx {
        /// Listen addresses.
        #[serde(deserialize_with = "one_or_many")]
        listen: Vec<SocketAddr>,
        /// Maximum message size, in bytes.
        @live message_bytes_max: u64 = SessionLimits::for_mx().message_bytes_max,
        /// Maximum recipients of a message.
        @live recipients_max: usize = SessionLimits::for_mx().recipients_max,
        /// Maximum sessions of one client address.
        @live sessions_per_address_max: usize = SessionLimits::for_mx().sessions_per_address_max,
        /// Maximum connections of one client address per minute.
        @live connections_per_minute_max: u32 = SessionLimits::for_mx().connections_per_minute_max,
        /// Maximum protocol errors in a session.
        @live errors_max: u32 = SessionLimits::for_mx().errors_max,
        /// Maximum unknown recipients in a session.
        unknown_recipients_max: u32 = AbuseLimits::default().unknown_recipients_max,
        /// Maximum unknown recipients of one client address per hour.
        unknown_recipients_per_hour_max: u32 = AbuseLimits::default().unknown_recipients_per_hour_max,
        /// Delay before the greeting.
        #[serde(deserialize_with = "duration")]
        @live greet_delay: Duration = SessionLimits::for_mx().timeouts.greet_delay,
        /// DNS blocklists.
        #[serde(deserialize_with = "parsed::host_names")]
        @live dnsbl: Vec<DomainName>,
        /// Action for mail from a listed address.
        @live dnsbl_action: OnPolicyFail,
        /// Action for mail that fails DMARC with `p=reject`.
        @live dmarc_reject: OnPolicyFail,
        /// Action when a DNS lookup fails.
        @live dns_failure: OnTempError,
        /// Spam filter.
        @live spam_filter: SpamFilter,
        /// URL of rspamd.
        @live rspamd_url: String = "http://127.0.0.1:11333".to_owned(),
        /// Action when rspamd fails.
        @live rspamd_failure: OnTempError,
        /// rspamd score at which mail is marked as spam; none: rspamd's own action applies.
        @live rspamd_mark_score: Option<f64>,
        /// rspamd score at which mail is refused.
        @live rspamd_reject_score: Option<f64>,
        /// Recipient of mail to postmaster and abuse at the service's own names.
        #[serde(deserialize_with = "parsed::address_option")]
        @live postmaster: Option<Address>,
        /// MTA-STS policy that is published for receiving domains.
        mta_sts: MtaStsSetting,
        /// Reporters whose complaints are trusted.
        #[serde(deserialize_with = "one_or_many")]
        @live complaint_reporters: Vec<FeedbackReporter> = FeedbackReporter::defaults(),
    }
}

impl MxSection {
    /// Mode of the published MTA-STS policy; none if it is off.
    pub fn mta_sts_mode(&self) -> Option<MtaStsMode> {
        match self.mta_sts {
            MtaStsSetting::Off => None,
            MtaStsSetting::Testing => Some(MtaStsMode::Testing),
            MtaStsSetting::Enforce => Some(MtaStsMode::Enforce),
        }
    }

    /// Limits on unknown recipients.
    pub fn abuse_limits(&self) -> AbuseLimits {
        AbuseLimits {
            unknown_recipients_max: self.unknown_recipients_max,
            unknown_recipients_per_hour_max: self.unknown_recipients_per_hour_max,
        }
    }

    /// Limits of a session.
    pub fn session_limits(&self) -> SessionLimits {
        let mut limits = SessionLimits {
            message_bytes_max: self.message_bytes_max,
            recipients_max: self.recipients_max,
            sessions_per_address_max: self.sessions_per_address_max,
            connections_per_minute_max: self.connections_per_minute_max,
            errors_max: self.errors_max,
            ..SessionLimits::for_mx()
        };
        limits.timeouts.greet_delay = self.greet_delay;
        limits
    }
}

/// Mode of the published MTA-STS policy (RFC 8461 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MtaStsSetting {
    /// No policy is published.
    Off,
    /// Senders report failures but still deliver.
    #[default]
    Testing,
    /// Senders deliver only over verified TLS.
    Enforce,
}

/// Spam filter for received mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpamFilter {
    Off,
    /// The built-in rules.
    #[default]
    Rules,
    Rspamd,
}
