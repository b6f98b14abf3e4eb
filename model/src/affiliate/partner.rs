//! Partners, and the links by which they refer customers.

use jiff::Timestamp;
use message::address::Address;
use message::words;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::money::BasisPoints;
use super::program::PayoutMethod;
use crate::domain::SealedSecret;
use crate::id::{AccountId, CampaignId, PartnerId, PartnerLinkId};

pub const TAGS_MAX: usize = 20;
/// Maximum number of links of a partner, including the primary link.
pub const LINKS_MAX: usize = 50;
/// Shortest and longest token of a link, in bytes.
pub const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 2..=40;

words! {
    /// State of a partner.
    PartnerStatus {
        /// Invited by the owner; becomes active with the first sign-in to the portal.
        Invited = "invited",
        /// Applied; waits for the owner's approval.
        Pending = "pending",
        /// Refers customers and earns commissions.
        Active = "active",
        /// Its links attribute no visitors, and it is not paid.
        Suspended = "suspended",
        /// The application was rejected.
        Rejected = "rejected",
    }
}

words! {
    /// How a partner was created.
    PartnerSource {
        Api = "api",
        /// A list that the owner imported.
        Import = "import",
        /// The application form of the portal.
        Portal = "portal",
    }
}

words! {
    /// A transition of a partner's status.
    PartnerAction {
        Approve = "approve",
        Reject = "reject",
        Suspend = "suspend",
        /// Lifts a suspension.
        Reactivate = "reactivate",
        /// The partner accepts an invitation.
        Accept = "accept",
    }
}

/// A transition is not possible from the current status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("cannot {action} a partner whose status is {status}")]
pub struct PartnerTransitionError {
    pub status: PartnerStatus,
    pub action: PartnerAction,
}

impl PartnerStatus {
    /// Returns the status after an action.
    ///
    /// # Errors
    /// The action is not possible from this status.
    pub fn transition(self, action: PartnerAction) -> Result<Self, PartnerTransitionError> {
        match (self, action) {
            (Self::Pending | Self::Invited | Self::Rejected, PartnerAction::Approve)
            | (Self::Suspended, PartnerAction::Reactivate)
            | (Self::Invited, PartnerAction::Accept) => Ok(Self::Active),
            (Self::Pending | Self::Invited, PartnerAction::Reject) => Ok(Self::Rejected),
            (Self::Active | Self::Pending | Self::Invited, PartnerAction::Suspend) => Ok(Self::Suspended),
            (status, action) => Err(PartnerTransitionError { status, action }),
        }
    }
}

/// A partner's payout method and account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayoutDestination {
    pub method: PayoutMethod,
    /// An email address for PayPal and Wise, an account id for the payment processor, free text otherwise.
    pub destination: String,
    /// True if payouts can be sent there. For the payment processor: its account accepts transfers.
    pub is_able: bool,
}

/// A partner of an affiliate program.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partner {
    pub id: PartnerId,
    pub account: AccountId,
    /// Unique within the program.
    pub email: Address,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub company: Option<String>,
    pub website: Option<String>,
    /// ISO 3166-1 alpha-2 code in upper case.
    pub country: Option<String>,
    pub status: PartnerStatus,
    pub source: PartnerSource,
    pub campaign: CampaignId,
    /// The partner who recruited this one.
    pub parent: Option<PartnerId>,
    /// The owner's tags.
    pub tags: Vec<String>,
    pub payout: Option<PayoutDestination>,
    /// Number of consecutive payouts that failed at this destination.
    #[serde(default)]
    pub payouts_failed: u8,
    /// The owner's notes, hidden from the partner.
    pub notes: Option<String>,
    /// URL that receives the partner's own events ([`super::postback`]).
    pub postback_url: Option<String>,
    /// The signing secret of postbacks.
    pub postback_secret: SealedSecret,
    /// True if the partner gets only essential and requested email.
    #[serde(default)]
    pub email_opt_out: bool,
    /// The partner's own rate, which takes precedence over the campaign's rates.
    pub commission_override: Option<BasisPoints>,
    /// The link that is shown by default.
    pub primary_link: PartnerLinkId,
    /// True if a payout to this partner was ever paid. Such a partner cannot be deleted.
    #[serde(default)]
    pub was_paid: bool,
    /// Time of the first approval.
    pub approved_at: Option<Timestamp>,
    /// When the partner itself accepted the program's terms.
    pub terms_accepted_at: Option<Timestamp>,
    /// Revision, incremented by every change.
    pub rev: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Partner {
    /// True if the partner has a payable destination with a method that the program allows.
    pub fn is_payout_ready(&self, allowed: &[PayoutMethod]) -> bool {
        self.payout.as_ref().is_some_and(|payout| payout.is_able && allowed.contains(&payout.method))
    }

    /// The name for a salutation; the local part of the email address if no name is known.
    pub fn name(&self) -> String {
        let parts: Vec<&str> = [&self.first_name, &self.last_name].into_iter().flatten().map(String::as_str).collect();
        if parts.is_empty() { self.email.local_part().to_owned() } else { parts.join(" ") }
    }
}

/// A text is not a valid link token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be from 2 to 40 letters, digits, dashes and underscores")]
pub struct PartnerLinkTokenError;

/// The value of the `via` parameter. It keeps its spelling; tokens are compared without regard to case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct PartnerLinkToken(String);

impl TryFrom<String> for PartnerLinkToken {
    type Error = PartnerLinkTokenError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl PartnerLinkToken {
    /// Parses a token without changing it.
    pub fn parse(text: &str) -> Result<Self, PartnerLinkTokenError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if TOKEN_BYTES.contains(&text.len()) && text.bytes().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(PartnerLinkTokenError)
        }
    }

    /// Derives a token from any text: base letters in lower case (`Łukasz Żak` gives `lukasz-zak`), one dash for each
    /// run of other characters, truncated to 40 bytes. Returns `None` if fewer than two characters remain.
    pub fn from_text(text: &str) -> Option<Self> {
        let mut token = String::new();
        // NFKD makes accents separate combining marks, which the filter drops.
        for character in text.trim().to_lowercase().nfkd().filter(|c| !is_combining_mark(*c)) {
            let letters = base_letters(character);
            match letters {
                Some(letters) => token.push_str(letters),
                None if character.is_ascii_alphanumeric() || character == '_' => token.push(character),
                None if token.ends_with('-') => {}
                None => token.push('-'),
            }
            if token.len() >= *TOKEN_BYTES.end() {
                token.truncate(*TOKEN_BYTES.end());
                break;
            }
        }
        let token = token.trim_matches('-');
        (token.len() >= *TOKEN_BYTES.start()).then(|| Self(token.to_owned()))
    }

    /// Derives a token from a column of an imported list: lower case, a dash for each
    /// invalid character, truncated to 40 bytes. Returns `None` if fewer than two characters remain.
    pub fn from_list(text: &str) -> Option<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let lower = text.trim().to_lowercase();
        let token: String = lower.chars().map(|c| if fits(c) { c } else { '-' }).take(*TOKEN_BYTES.end()).collect();
        (token.len() >= *TOKEN_BYTES.start()).then_some(Self(token))
    }

    /// A numbered variant for a token that is taken: `ada-2`, truncated so that the number fits.
    pub fn variant(&self, number: u32) -> Self {
        let suffix = format!("-{number}");
        let prefix_bytes = self.0.len().min(TOKEN_BYTES.end().saturating_sub(suffix.len()));
        Self(format!("{}{suffix}", self.0.get(..prefix_bytes).unwrap_or_default().trim_end_matches('-')))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The ASCII replacement of a Latin letter that has no Unicode decomposition.
fn base_letters(character: char) -> Option<&'static str> {
    Some(match character {
        'ł' => "l",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ı' => "i",
        'ħ' => "h",
        'ŋ' => "n",
        'ŧ' => "t",
        _ => return None,
    })
}

/// A referral link of a partner.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartnerLink {
    pub id: PartnerLinkId,
    pub account: AccountId,
    pub partner: PartnerId,
    /// The value of the link's `via` parameter.
    pub token: PartnerLinkToken,
    /// Landing page on the website as a path or URL; the front page if `None`.
    pub destination_url: Option<String>,
    /// The partner's name for the link.
    pub label: Option<String>,
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transitions_depend_on_the_status() {
        use PartnerStatus::{Active, Invited, Pending, Rejected, Suspended};
        let table = [
            (PartnerAction::Approve, [Some(Active), Some(Active), None, None, Some(Active)]),
            (PartnerAction::Reject, [Some(Rejected), Some(Rejected), None, None, None]),
            (PartnerAction::Suspend, [Some(Suspended), Some(Suspended), Some(Suspended), None, None]),
            (PartnerAction::Reactivate, [None, None, None, Some(Active), None]),
            (PartnerAction::Accept, [Some(Active), None, None, None, None]),
        ];
        for (action, after) in table {
            for (status, after) in [Invited, Pending, Active, Suspended, Rejected].into_iter().zip(after) {
                assert_eq!(status.transition(action).ok(), after, "{status} {action}");
            }
        }
    }

    #[test]
    fn tokens_are_parsed_or_derived() {
        assert_eq!(PartnerLinkToken::parse("Ada_L-1").unwrap().as_str(), "Ada_L-1");
        for wrong in ["a", "", "a b", "ä1", &"a".repeat(41)] {
            assert_eq!(PartnerLinkToken::parse(wrong), Err(PartnerLinkTokenError), "{wrong}");
        }
        let derived = |text: &str| PartnerLinkToken::from_text(text).map(|token| token.as_str().to_owned());
        assert_eq!(derived("Ada Lovelace").as_deref(), Some("ada-lovelace"));
        for (name, token) in [
            (" Żółć ", "zolc"),
            ("Łukasz Żak", "lukasz-zak"),
            ("Bjørn  Strauß-Ångström", "bjorn-strauss-angstrom"),
            ("Zoë O’Neil, Jr.", "zoe-o-neil-jr"),
            ("Þóra Æsa", "thora-aesa"),
            ("İpek Yıldız", "ipek-yildiz"),
            ("- Ada -- L. -", "ada-l"),
        ] {
            assert_eq!(derived(name).as_deref(), Some(token), "{name}");
        }
        assert_eq!(derived("Ирина").as_deref(), None);
        assert_eq!(PartnerLinkToken::parse("ada-").unwrap().variant(2).as_str(), "ada-2");
        assert_eq!(derived("x").as_deref(), None);
        assert_eq!(derived(&"ab".repeat(40)).unwrap().len(), 40);
        assert_eq!(PartnerLinkToken::from_text(&"ab".repeat(40)).unwrap().variant(12).as_str().len(), 40);
        assert_eq!(PartnerLinkToken::parse("ada").unwrap().variant(2).as_str(), "ada-2");
    }
}
