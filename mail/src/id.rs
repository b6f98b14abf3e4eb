//! Ids: a prefix that names the noun and 128 bits that sort by time of birth.
//!
//! The text form is the prefix and a ULID (26 characters of Crockford's base 32), so that the order
//! of the text, of the bytes and of time are one and the same and paging is a key. Who makes an id
//! brings the time and the randomness.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;
use ulid::Ulid;

/// A text that is not an id of the noun asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{given}` is not an id that starts with `{prefix}`")]
pub struct IdError {
    /// What was given, cut to 64 characters.
    pub given: String,
    /// The prefix that the noun's ids carry.
    pub prefix: &'static str,
}

fn parse(text: &str, prefix: &'static str) -> Result<Ulid, IdError> {
    text.strip_prefix(prefix)
        .filter(|rest| rest.len() == ulid::ULID_LEN)
        .and_then(|rest| Ulid::from_string(rest).ok())
        .ok_or_else(|| IdError { given: text.chars().take(64).collect(), prefix })
}

fn from_parts(now: Timestamp, random: u128) -> Ulid {
    // Before 1970 there was no mail: a clock that says so is read as 1970.
    Ulid::from_parts(u64::try_from(now.as_millisecond()).unwrap_or(0), random)
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Ulid);

        impl $name {
            /// What the text form starts with.
            pub const PREFIX: &'static str = $prefix;

            /// A new id, born at `now` (kept in milliseconds); the low 80 bits of `random` tell it
            /// from its twins.
            #[must_use]
            pub fn new(now: Timestamp, random: u128) -> Self {
                Self(from_parts(now, random))
            }

            /// The 16 bytes that stand in a storage key.
            #[must_use]
            pub fn to_bytes(self) -> [u8; 16] {
                self.0.to_bytes()
            }

            /// Back from a storage key.
            #[must_use]
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Ulid::from_bytes(bytes))
            }

            /// When it was born, to the millisecond.
            #[must_use]
            pub fn born_at(self) -> Timestamp {
                i64::try_from(self.0.timestamp_ms())
                    .ok()
                    .and_then(|ms| Timestamp::from_millisecond(ms).ok())
                    .unwrap_or(Timestamp::MAX)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                f.write_str(self.0.array_to_str(&mut [0; ulid::ULID_LEN]))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                parse(text, $prefix).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(input)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    )*};
}

ids! {
    /// A tenant: a developer team that sends through the service.
    AccountId "acct_";
    /// An API key.
    ApiKeyId "key_";
    /// An SMTP credential.
    SmtpCredentialId "smtp_";
    /// A sending domain.
    DomainId "dom_";
    /// A claim to a domain that another account has.
    ClaimId "clm_";
    /// An email: one message, whatever the number of its recipients.
    EmailId "msg_";
    /// An event: a fact in the past tense.
    EventId "evt_";
    /// A suppression.
    SuppressionId "sup_";
    /// An opt-out of a category.
    OptOutId "opt_";
    /// An import of suppressions.
    ImportId "imp_";
    /// A template.
    TemplateId "tpl_";
    /// A webhook endpoint.
    WebhookId "whk_";
    /// The delivery of an event to a webhook endpoint.
    DeliveryId "whd_";
    /// A received email.
    ReceivedId "inb_";
    /// A product event: what a customer's product says that happened in it.
    ProductEventId "ae_";
    /// An automation.
    AutomationId "aut_";
    /// A run of an automation.
    RunId "run_";
    /// One HTTP request, for finding it in the log.
    RequestId "req_";
    /// A person who signs in to an account.
    UserId "user_";
    /// A person's being signed in, on one browser.
    SessionId "ses_";
    /// An account's affiliate program.
    ProgramId "prog_";
    /// A partner of an affiliate program.
    PartnerId "aff_";
    /// A partner's link.
    PartnerLinkId "afl_";
    /// A campaign: a plan of what partners earn.
    CampaignId "cmp_";
    /// A person whom a partner brought.
    ReferralId "ref_";
    /// A commission: one line of the ledger.
    CommissionId "com_";
    /// A partner's payout in one currency.
    PayoutId "pay_";
    /// A payout run.
    PayoutRunId "prn_";
    /// A visit to the customer's website by a partner's link.
    VisitId "vis_";
    /// A correction of what a partner is owed, for money that came back after a payout.
    AdjustmentId "adj_";
    /// A reading of the processor's past into the ledger.
    BackfillId "bkf_";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_order_is_time_order_and_reads_back() {
        let early = EmailId::new(Timestamp::from_millisecond(1_000).unwrap(), u128::MAX);
        let late = EmailId::new(Timestamp::from_millisecond(1_001).unwrap(), 0);
        assert!(early < late && early.to_string() < late.to_string());
        assert!(early.to_bytes() < late.to_bytes());
        assert_eq!(early.to_string().parse::<EmailId>().unwrap(), early);
        assert_eq!(early.born_at().as_millisecond(), 1_000);
        assert_eq!(EmailId::from_bytes(late.to_bytes()), late);
    }

    #[test]
    fn another_nouns_id_is_refused() {
        let id = EmailId::new(Timestamp::UNIX_EPOCH, 7).to_string();
        assert!(id.parse::<AccountId>().is_err());
        assert!("msg_".parse::<EmailId>().is_err());
        assert!("msg_01ARZ3NDEKTSV4RRFFQ69G5FA\u{e9}".parse::<EmailId>().is_err());
        assert_eq!(serde_json::from_str::<EmailId>(&format!("\"{id}\"")).unwrap().to_string(), id);
    }
}
