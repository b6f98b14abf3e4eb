//! Ids: a prefix that names the type and 128 bits that sort by creation time.
//!
//! The text form is the prefix and a ULID (26 characters of Crockford's base 32). Text, bytes and creation time
//! therefore have the same order, and a list can be paged by key. The caller provides the time and the randomness.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use thiserror::Error;
use ulid::Ulid;

/// The text is not an id of the expected type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", error_text(.given, .prefix))]
pub struct IdError {
    /// The rejected text, cut to 64 characters.
    pub given: String,
    /// The expected prefix.
    pub prefix: &'static str,
}

fn error_text(given: &str, prefix: &str) -> String {
    match given.starts_with(prefix) {
        true => format!("`{given}` is not a valid id: `{prefix}` and {} characters", ulid::ULID_LEN),
        false => format!("`{given}` is not an id that starts with `{prefix}`"),
    }
}

fn parse(text: &str, prefix: &'static str) -> Result<Ulid, IdError> {
    text.strip_prefix(prefix)
        .filter(|rest| rest.len() == ulid::ULID_LEN)
        .and_then(|rest| Ulid::from_string(rest).ok())
        .ok_or_else(|| IdError { given: text.chars().take(64).collect(), prefix })
}

fn from_parts(now: Timestamp, random: u128) -> Ulid {
    // A clock before 1970 counts as 1970.
    Ulid::from_parts(u64::try_from(now.as_millisecond()).unwrap_or(0), random)
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Ulid);

        impl $name {
            /// Prefix of the text form.
            pub const PREFIX: &'static str = $prefix;

            /// Creates an id with the creation time `now` (in milliseconds) and the low 80 bits of `random`.
            pub fn new(now: Timestamp, random: u128) -> Self {
                Self(from_parts(now, random))
            }

            /// The 16 bytes used in storage keys.
            pub fn to_bytes(self) -> [u8; 16] {
                self.0.to_bytes()
            }

            /// Reads an id from the 16 bytes of a storage key.
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Ulid::from_bytes(bytes))
            }

            /// Creation time, to the millisecond.
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

        message::stored_as_text!($name);
    )*};
}

ids! {
    /// A tenant: a developer team that sends through the service.
    AccountId "acct_";
    ApiKeyId "key_";
    SmtpCredentialId "smtp_";
    DomainId "dom_";
    /// A claim on a domain that belongs to another account.
    ClaimId "clm_";
    /// An email: one message with any number of recipients.
    EmailId "msg_";
    EventId "evt_";
    SuppressionId "sup_";
    /// An opt-out from a category.
    OptOutId "opt_";
    ImportId "imp_";
    TemplateId "tpl_";
    WebhookId "whk_";
    /// The delivery of an event to a webhook endpoint.
    DeliveryId "whd_";
    ReceivedId "inb_";
    /// A product event: reported by a customer's product.
    ProductEventId "ae_";
    AutomationId "aut_";
    RunId "run_";
    /// One HTTP request, as the request log names it.
    RequestId "req_";
    /// A request of a client that waits for a person's approval.
    ApprovalId "apr_";
    /// A person who signs in to an account.
    UserId "user_";
    /// A signed-in session of a user in one browser.
    SessionId "ses_";
    /// A grant: what a user allows a program to do (OAuth).
    GrantId "grant_";
    /// A registered OAuth client.
    OAuthClientId "client_";
    ProgramId "prog_";
    PartnerId "aff_";
    PartnerLinkId "afl_";
    /// A campaign: commission terms for partners.
    CampaignId "cmp_";
    /// A person referred by a partner.
    ReferralId "ref_";
    /// A commission: one line of the affiliate ledger.
    CommissionId "com_";
    /// A partner's payout in one currency.
    PayoutId "pay_";
    PayoutRunId "prn_";
    /// A visit to the customer's website through a partner's link.
    VisitId "vis_";
    /// A correction of a partner's balance, for money returned after a payout.
    AdjustmentId "adj_";
    /// A backfill: import of the payment processor's history into the ledger.
    BackfillId "bkf_";
}

impl EmailId {
    /// Left part of a Message-ID that is generated for this email (RFC 5322 3.6.4).
    pub fn message_id_left(self) -> String {
        self.to_string().trim_start_matches(Self::PREFIX).to_ascii_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_order_is_time_order_and_round_trips() {
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

    #[test]
    fn the_error_tells_a_wrong_prefix_from_a_malformed_rest() {
        let error = |text: &str| text.parse::<EmailId>().unwrap_err().to_string();
        assert_eq!(error("dom_1"), "`dom_1` is not an id that starts with `msg_`");
        assert_eq!(error("msg_nope"), "`msg_nope` is not a valid id: `msg_` and 26 characters");
    }
}
