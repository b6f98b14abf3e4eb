//! A partner: who brings customers, and the links by which they do.

use jiff::Timestamp;
use thiserror::Error;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::money::BasisPoints;
use super::program::PayoutMethod;
use super::word::words;
use crate::address::Address;
use crate::domain::SealedSecret;
use crate::id::{AccountId, CampaignId, PartnerId, PartnerLinkId};

/// Tags of a partner (affiliate-api.md, "Limits").
pub const TAGS_MAX: usize = 20;
/// Links of a partner, the primary one among them.
pub const LINKS_MAX: usize = 50;
/// The shortest and the longest token of a link.
pub const TOKEN_BYTES: std::ops::RangeInclusive<usize> = 2..=40;

words! {
    /// Where a partner stands.
    PartnerStatus {
        /// Asked to join; active with the first sign-in to the portal.
        Invited = "invited",
        /// Waits for the owner.
        Pending = "pending",
        /// Brings customers.
        Active = "active",
        /// Its links lead nobody any more, and it is not paid.
        Suspended = "suspended",
        /// Refused.
        Rejected = "rejected",
    }
}

words! {
    /// By which way a partner came.
    PartnerSource {
        /// The API.
        Api = "api",
        /// A file of the owner's.
        Import = "import",
        /// The program's own form.
        Portal = "portal",
    }
}

words! {
    /// What is done with a partner.
    PartnerAction {
        /// Made active.
        Approve = "approve",
        /// Refused.
        Reject = "reject",
        /// Suspended.
        Suspend = "suspend",
        /// Active again, after it was suspended.
        Reactivate = "reactivate",
        /// Active, since it has accepted the invitation.
        Accept = "accept",
    }
}

/// A move that does not fit where the partner stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a partner who is {status} cannot be made to {action}")]
pub struct PartnerTransitionError {
    /// Where the partner stands.
    pub status: PartnerStatus,
    /// What was asked for.
    pub action: PartnerAction,
}

impl PartnerStatus {
    /// Where a move leads (affiliate-api.md, "States and transitions").
    ///
    /// # Errors
    /// It does not fit.
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

/// Where a partner's money goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutDestination {
    /// In which way.
    pub method: PayoutMethod,
    /// To whom: an address for PayPal and Wise, an account for the processor, else words.
    pub destination: String,
    /// Whether it can be paid to: for the processor's transfers, whether the account there takes them.
    pub is_able: bool,
}

/// A partner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partner {
    /// Its id.
    pub id: PartnerId,
    /// Whose program it is in.
    pub account: AccountId,
    /// Who it is: no two of a program have the same.
    pub email: Address,
    /// The given name.
    pub first_name: Option<String>,
    /// The family name.
    pub last_name: Option<String>,
    /// The company.
    pub company: Option<String>,
    /// The website.
    pub website: Option<String>,
    /// Two letters (ISO 3166-1), in capitals.
    pub country: Option<String>,
    /// Where it stands.
    pub status: PartnerStatus,
    /// By which way it came.
    pub source: PartnerSource,
    /// What it is paid by.
    pub campaign: CampaignId,
    /// Who recruited it.
    pub parent: Option<PartnerId>,
    /// The owner's words for it.
    pub tags: Vec<String>,
    /// Where its money goes.
    pub payout: Option<PayoutDestination>,
    /// Payouts that failed one after the other at this destination.
    pub payouts_failed: u8,
    /// The owner's notes; nobody else sees them.
    pub notes: Option<String>,
    /// Where its own events are posted to.
    pub postback_url: Option<String>,
    /// What they are signed with.
    pub postback_secret: SealedSecret,
    /// It wants no mail but what it asks for.
    pub email_opt_out: bool,
    /// A rate of its own, before any campaign's.
    pub commission_override: Option<BasisPoints>,
    /// The link that is told when one is asked for.
    pub primary_link: PartnerLinkId,
    /// Whether money of it was ever paid out: then it cannot be deleted.
    pub was_paid: bool,
    /// When it became active first.
    pub approved_at: Option<Timestamp>,
    /// When it accepted the program's terms itself.
    pub terms_accepted_at: Option<Timestamp>,
    /// Grows with each change.
    pub rev: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

impl Partner {
    /// Whether it can be paid, by a method that the program allows.
    #[must_use]
    pub fn is_payout_ready(&self, allowed: &[PayoutMethod]) -> bool {
        self.payout.as_ref().is_some_and(|payout| payout.is_able && allowed.contains(&payout.method))
    }

    /// The name to greet it by.
    #[must_use]
    pub fn name(&self) -> String {
        let parts: Vec<&str> = [&self.first_name, &self.last_name].into_iter().flatten().map(String::as_str).collect();
        if parts.is_empty() { self.email.local_part().to_owned() } else { parts.join(" ") }
    }
}

/// A text that cannot be a link's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("must be 2 to 40 letters, digits, dashes and underscores")]
pub struct PartnerLinkTokenError;

/// The value of the `via` parameter: kept as it was written, the same whatever its case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerLinkToken(String);

impl PartnerLinkToken {
    /// Takes a token exactly.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn parse(text: &str) -> Result<Self, PartnerLinkTokenError> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if TOKEN_BYTES.contains(&text.len()) && text.bytes().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(PartnerLinkTokenError)
        }
    }

    /// Makes a token of any text, for want of a better one: base letters in lower case (`Łukasz Żak` is `lukasz-zak`), a
    /// dash for what does not fit, and never two, cut to fit. None when less than two characters are left of it.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let mut made = String::new();
        // Decomposed, so that accents are characters of their own, which are left out.
        for character in text.trim().to_lowercase().nfkd().filter(|c| !is_combining_mark(*c)) {
            let letters = base_letters(character);
            match letters {
                Some(letters) => made.push_str(letters),
                None if character.is_ascii_alphanumeric() || character == '_' => made.push(character),
                None if made.ends_with('-') => {}
                None => made.push('-'),
            }
            if made.len() >= *TOKEN_BYTES.end() {
                made.truncate(*TOKEN_BYTES.end());
                break;
            }
        }
        let made = made.trim_matches('-');
        (made.len() >= *TOKEN_BYTES.start()).then(|| Self(made.to_owned()))
    }

    /// The token that a list names (affiliate-api.md, "Limits"): lower case, each character that does not fit a dash, cut
    /// to fit. None when less than two characters are left of it.
    #[must_use]
    pub fn from_list(text: &str) -> Option<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let lower = text.trim().to_lowercase();
        let made: String = lower.chars().map(|c| if fits(c) { c } else { '-' }).take(*TOKEN_BYTES.end()).collect();
        (made.len() >= *TOKEN_BYTES.start()).then_some(Self(made))
    }

    /// Another one like it, for when it is taken: `ada-2`, cut so that the number fits.
    #[must_use]
    pub fn variant(&self, number: u32) -> Self {
        let suffix = format!("-{number}");
        let kept = self.0.len().min(TOKEN_BYTES.end().saturating_sub(suffix.len()));
        Self(format!("{}{suffix}", self.0.get(..kept).unwrap_or_default().trim_end_matches('-')))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What stands for a letter of a Latin alphabet that does not decompose into a base letter and an accent.
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

/// A partner's link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerLink {
    /// Its id.
    pub id: PartnerLinkId,
    /// Whose program it is of.
    pub account: AccountId,
    /// Whose it is.
    pub partner: PartnerId,
    /// What its visitors bring.
    pub token: PartnerLinkToken,
    /// Where it leads on the website: a path or an address there; its front page otherwise.
    pub destination_url: Option<String>,
    /// What its owner calls it.
    pub label: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_fit_or_are_refused() {
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
    fn tokens_are_kept_exactly_or_made_to_fit() {
        assert_eq!(PartnerLinkToken::parse("Ada_L-1").unwrap().as_str(), "Ada_L-1");
        for wrong in ["a", "", "a b", "ä1", &"a".repeat(41)] {
            assert_eq!(PartnerLinkToken::parse(wrong), Err(PartnerLinkTokenError), "{wrong}");
        }
        let made = |text: &str| PartnerLinkToken::from_text(text).map(|token| token.as_str().to_owned());
        assert_eq!(made("Ada Lovelace").as_deref(), Some("ada-lovelace"));
        for (name, token) in [
            (" Żółć ", "zolc"),
            ("Łukasz Żak", "lukasz-zak"),
            ("Bjørn  Strauß-Ångström", "bjorn-strauss-angstrom"),
            ("Zoë O’Neil, Jr.", "zoe-o-neil-jr"),
            ("Þóra Æsa", "thora-aesa"),
            ("İpek Yıldız", "ipek-yildiz"),
            ("- Ada -- L. -", "ada-l"),
        ] {
            assert_eq!(made(name).as_deref(), Some(token), "{name}");
        }
        assert_eq!(made("Ирина").as_deref(), None);
        assert_eq!(PartnerLinkToken::parse("ada-").unwrap().variant(2).as_str(), "ada-2");
        assert_eq!(made("x").as_deref(), None);
        assert_eq!(made(&"ab".repeat(40)).unwrap().len(), 40);
        assert_eq!(PartnerLinkToken::from_text(&"ab".repeat(40)).unwrap().variant(12).as_str().len(), 40);
        assert_eq!(PartnerLinkToken::parse("ada").unwrap().variant(2).as_str(), "ada-2");
    }
}
