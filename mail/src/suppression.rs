//! Suppressions and opt-outs: to whom nothing is sent, why, and for how long.
//!
//! ```text
//! what happened ─► Grounds ─┐
//!                           ├─► follow ─► the suppression as it is now (or: it stays as it is)
//! what there was ───────────┘
//! ```
//!
//! A suppression is about an address or, as `@domain.tld`, about every address of a domain; one of each
//! at a time. An opt-out is about an address and a category. Addresses are compared without regard to
//! case, in the form that [`address_key`] gives. The rules (completions-email.md 0, 2.9):
//!
//! - a hard bounce, a complaint and the recipient's own wish hold for ever;
//! - a soft bounce holds for a day, the next for a week, then for a month;
//! - a permanent refusal that blames the sender holds for a day;
//! - a weaker or shorter one never takes the place of a stronger one; a complaint takes every place.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::address::{Address, AddressError, DomainName, Mailbox};
use crate::email::Category;
use crate::event::{Event, EventKind};
use crate::id::{AccountId, EmailId, EventId, OptOutId, SuppressionId};
use crate::moment;
use crate::reply::{Enhanced, SmtpReply};

/// How long a soft bounce suppresses: the first, the second, all further ones.
const SOFT_BOUNCE_TTLS: [SignedDuration; 3] =
    [SignedDuration::from_hours(24), SignedDuration::from_hours(7 * 24), SignedDuration::from_hours(30 * 24)];
/// After this long without another, soft bounces are counted from one again.
const SOFT_BOUNCE_RESET_AFTER: SignedDuration = SignedDuration::from_hours(90 * 24);
/// How long a refusal that blames the sender suppresses: it says nothing against the address.
const SMTP_FAILURE_TTL: SignedDuration = SignedDuration::from_hours(24);
/// What is kept of a server's words.
const DIAGNOSTIC_CHARS_MAX: usize = 500;

/// Why nothing is sent to somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum SuppressionReason {
    /// The destination said for good that there is no such recipient.
    HardBounce = 1,
    /// The destination put it off until its time was up.
    SoftBounce = 2,
    /// The recipient called it spam.
    Complaint = 3,
    /// The recipient asked for it.
    Unsubscribe = 4,
    /// The destination refused for good, and blamed the sender.
    SmtpFailure = 5,
    /// The customer asked for it.
    Manual = 6,
    /// It stood in a list that the customer brought along, which did not say why.
    Import = 7,
}

/// Who said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum SuppressionSource {
    /// The service, by what became of an email.
    System = 1,
    /// The customer's program.
    Api = 2,
    /// The customer, on the dashboard.
    Dashboard = 3,
    /// The recipient.
    Recipient = 4,
    /// A list that was imported.
    Import = 5,
}

macro_rules! words {
    ($noun:ident { $($variant:ident $word:literal)* }) => {
        impl $noun {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word on the wire.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// The one that a word names.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

words!(SuppressionReason {
    HardBounce "hard_bounce" SoftBounce "soft_bounce" Complaint "complaint" Unsubscribe "unsubscribe"
    SmtpFailure "smtp_failure" Manual "manual" Import "import"
});
words!(SuppressionSource { System "system" Api "api" Dashboard "dashboard" Recipient "recipient" Import "import" });

/// The form in which addresses are compared: lower case, quotes only where they are needed.
///
/// RFC 5321 2.4 lets a host tell `Ada@` from `ada@`; no host of note does, and who unsubscribed as one
/// does not want mail as the other.
#[must_use]
pub fn address_key(address: &Address) -> String {
    let local = address.local_part();
    let bare = local
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|inner| !inner.starts_with('"') && Address::new(inner, address.domain().clone()).is_ok());
    format!("{}@{}", bare.unwrap_or(local).to_lowercase(), address.domain())
}

/// The form in which a whole domain is compared: `@domain.tld`.
#[must_use]
pub fn domain_key(domain: &DomainName) -> String {
    format!("@{domain}")
}

/// Whom a suppression is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum SuppressionTarget {
    /// One address.
    Address(Address),
    /// Every address of a domain (of the domains under it, none).
    Domain(DomainName),
}

impl SuppressionTarget {
    /// The form in which targets are compared.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Address(address) => address_key(address),
            Self::Domain(domain) => domain_key(domain),
        }
    }

    /// Reads what people write: an address, with a name or without, or `@domain.tld`.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        if text.starts_with('@') {
            return text.parse();
        }
        text.parse::<Mailbox>().map(|mailbox| Self::Address(mailbox.address))
    }
}

impl FromStr for SuppressionTarget {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.strip_prefix('@') {
            Some(domain) => domain.parse().map(Self::Domain),
            None => text.parse().map(Self::Address),
        }
    }
}

impl TryFrom<String> for SuppressionTarget {
    type Error = AddressError;
    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<SuppressionTarget> for String {
    fn from(target: SuppressionTarget) -> Self {
        target.to_string()
    }
}

impl From<Address> for SuppressionTarget {
    fn from(address: Address) -> Self {
        Self::Address(address)
    }
}

impl fmt::Display for SuppressionTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Domain(domain) => write!(f, "@{domain}"),
        }
    }
}

/// What the destination said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmtpDiagnostic {
    /// The reply code.
    pub smtp_code: Option<u16>,
    /// The enhanced status code.
    pub enhanced_code: Option<Enhanced>,
    /// In its words.
    pub diagnostic: String,
}

impl From<&SmtpReply> for SmtpDiagnostic {
    fn from(reply: &SmtpReply) -> Self {
        Self {
            smtp_code: Some(reply.code),
            enhanced_code: reply.enhanced,
            diagnostic: truncate_diagnostic(&reply.to_string()),
        }
    }
}

/// The beginning of a text that somebody else wrote.
#[must_use]
pub fn truncate_diagnostic(text: &str) -> String {
    text.chars().take(DIAGNOSTIC_CHARS_MAX).collect()
}

/// Somebody to whom nothing is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppression {
    /// Its id.
    pub id: SuppressionId,
    /// Whose it is.
    pub account: AccountId,
    /// Whom it is about.
    pub target: SuppressionTarget,
    /// Why.
    pub reason: SuppressionReason,
    /// Who said so.
    pub source: SuppressionSource,
    /// The email that it came of.
    pub email: Option<EmailId>,
    /// What the destination said.
    pub detail: Option<SmtpDiagnostic>,
    /// What the customer noted.
    pub note: Option<String>,
    /// When it ends; none is never.
    pub expires_at: Option<Timestamp>,
    /// How many soft bounces in a row there have been: the next one holds for longer.
    pub soft_bounces: u32,
    /// When it began.
    pub created_at: Timestamp,
}

impl Suppression {
    /// The event that it was made, or taken away (completions-email.md 2.10, "Later events").
    #[must_use]
    pub fn event(&self, kind: EventKind, id: EventId, at: Timestamp) -> Event {
        Event {
            id,
            account: self.account,
            subject: self.id.into(),
            kind,
            recipient: None,
            created_at: at,
            detail: serde_json::json!({
                "suppression_id": self.id, "email": self.target.key(), "reason": self.reason,
                "source": self.source, "email_id": self.email,
                "expires_at": self.expires_at.map(moment::to_rfc3339), "created_at": moment::to_rfc3339(self.created_at),
            }),
        }
    }

    /// Whether this one begins something, where that one stood.
    #[must_use]
    pub fn is_newly_active(&self, before: Option<&Self>, now: Timestamp) -> bool {
        before
            .is_none_or(|before| before.id != self.id || before.expires_at.is_some_and(|expires_at| expires_at <= now))
    }
}

/// What happened that calls for a suppression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuppressionCause {
    /// Whom it is about.
    pub target: SuppressionTarget,
    /// Why.
    pub reason: SuppressionReason,
    /// Who said so.
    pub source: SuppressionSource,
    /// The email that it came of.
    pub email: Option<EmailId>,
    /// What the destination said.
    pub detail: Option<SmtpDiagnostic>,
    /// What the customer noted.
    pub note: Option<String>,
    /// When it is to end, where the customer may say so; what the service finds ends by the rules.
    pub expires_at: Option<Timestamp>,
}

impl SuppressionCause {
    /// About somebody, for this reason.
    #[must_use]
    pub fn new(target: impl Into<SuppressionTarget>, reason: SuppressionReason, source: SuppressionSource) -> Self {
        Self { target: target.into(), reason, source, email: None, detail: None, note: None, expires_at: None }
    }

    /// With the email that it came of.
    #[must_use]
    pub fn with_email(mut self, email: EmailId) -> Self {
        self.email = Some(email);
        self
    }

    fn expiry(&self, soft_bounces: u32, now: Timestamp) -> Option<Timestamp> {
        let in_a_while = |hold| Some(now.checked_add(hold).unwrap_or(Timestamp::MAX));
        match self.reason {
            SuppressionReason::HardBounce | SuppressionReason::Complaint | SuppressionReason::Unsubscribe => None,
            SuppressionReason::SmtpFailure => in_a_while(SMTP_FAILURE_TTL),
            SuppressionReason::SoftBounce => {
                let nth = usize::try_from(soft_bounces.saturating_sub(1)).unwrap_or(usize::MAX);
                in_a_while(SOFT_BOUNCE_TTLS.get(nth).copied().unwrap_or(SOFT_BOUNCE_TTLS[SOFT_BOUNCE_TTLS.len() - 1]))
            }
            SuppressionReason::Manual | SuppressionReason::Import => self.expires_at,
        }
    }
}

impl Suppression {
    /// Whether it holds: it has not ended.
    #[must_use]
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| end > now)
    }

    /// What follows from new grounds, where `before` stands (if anything does): the suppression as it is
    /// from now on, or none when it stays as it is. `id` is for one that begins now; one that still holds
    /// and gets another reason keeps its id and the time of its beginning.
    #[must_use]
    pub fn apply_cause(
        before: Option<&Self>,
        grounds: SuppressionCause,
        account: AccountId,
        id: SuppressionId,
        now: Timestamp,
    ) -> Option<Self> {
        let counted = before.map_or(0, |before| before.counted_soft_bounces(now));
        let soft_bounces = counted.saturating_add(u32::from(grounds.reason == SuppressionReason::SoftBounce));
        let expires_at = grounds.expiry(soft_bounces, now);
        let holding = before.filter(|before| before.is_active(now));
        if holding.is_some_and(|before| before.outweighs(grounds.reason, expires_at)) {
            return None;
        }
        Some(Self {
            id: holding.map_or(id, |before| before.id),
            account,
            target: grounds.target,
            reason: grounds.reason,
            source: grounds.source,
            email: grounds.email,
            detail: grounds.detail,
            note: grounds.note.or_else(|| holding.and_then(|before| before.note.clone())),
            expires_at,
            soft_bounces,
            created_at: holding.map_or(now, |before| before.created_at),
        })
    }

    /// Whether this one, which holds, stays in face of another.
    fn outweighs(&self, reason: SuppressionReason, expires_at: Option<Timestamp>) -> bool {
        match (self.reason, reason) {
            (SuppressionReason::Complaint, _) => true,
            (_, SuppressionReason::Complaint) => false,
            // What recipients ask for is kept as their wish, whatever else is known of them.
            (SuppressionReason::Unsubscribe, _) => true,
            // What holds for good holds without the wish, and must not end with it.
            (_, SuppressionReason::Unsubscribe) => self.expires_at.is_none(),
            // It was on its way before the first was known: not another time, the same.
            (SuppressionReason::SoftBounce, SuppressionReason::SoftBounce) => true,
            _ => match (self.expires_at, expires_at) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(mine), Some(other)) => mine >= other,
            },
        }
    }

    fn counted_soft_bounces(&self, now: Timestamp) -> u32 {
        let forgiven_at = self.expires_at.map(|end| end.checked_add(SOFT_BOUNCE_RESET_AFTER).unwrap_or(Timestamp::MAX));
        if forgiven_at.is_some_and(|at| at <= now) { 0 } else { self.soft_bounces }
    }
}

/// An address that wants no mail of a category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptOut {
    /// Its id.
    pub id: OptOutId,
    /// Whose it is.
    pub account: AccountId,
    /// Who.
    pub address: Address,
    /// What is not wanted.
    pub category: Category,
    /// Who said so.
    pub source: SuppressionSource,
    /// The email that it came of.
    pub email: Option<EmailId>,
    /// Since when.
    pub created_at: Timestamp,
}

/// The categories that one can opt out of (email-api.md, "Template categories").
pub const OPTIONAL_CATEGORIES: [Category; 2] = [Category::Product, Category::Newsletter];

/// What a category is called on the wire.
#[must_use]
pub fn category_word(category: Category) -> &'static str {
    match category {
        Category::Transactional => "transactional",
        Category::Product => "product",
        Category::Newsletter => "newsletter",
    }
}

/// What a category is called where people read it.
#[must_use]
pub fn category_label(category: Category) -> &'static str {
    match category {
        Category::Transactional => "Transactional",
        Category::Product => "Product updates",
        Category::Newsletter => "Newsletter",
    }
}

/// An address that a send may not reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedRecipient {
    /// Which.
    pub address: Address,
    /// Why.
    pub reason: BlockReason,
}

/// Why a send may not reach an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockReason {
    /// It is suppressed.
    Suppressed {
        /// By this suppression.
        id: SuppressionId,
        /// For this reason.
        reason: SuppressionReason,
    },
    /// It opted out of the category.
    OptedOut {
        /// By this opt-out.
        id: OptOutId,
        /// Of this category.
        category: Category,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + hours * 3600).unwrap()
    }

    fn id(n: u128) -> SuppressionId {
        SuppressionId::new(at(0), n)
    }

    fn grounds(reason: SuppressionReason) -> SuppressionCause {
        SuppressionCause::new("a@example.net".parse::<Address>().unwrap(), reason, SuppressionSource::System)
    }

    fn follow(before: Option<&Suppression>, reason: SuppressionReason, now: i64) -> Option<Suppression> {
        let account = AccountId::new(at(0), 1);
        Suppression::apply_cause(before, grounds(reason), account, id(u128::try_from(now + 1).unwrap()), at(now))
    }

    #[test]
    fn soft_bounces_escalate_and_are_forgiven() {
        let first = follow(None, SuppressionReason::SoftBounce, 0).unwrap();
        assert_eq!((first.expires_at, first.soft_bounces), (Some(at(24)), 1));
        assert_eq!(follow(Some(&first), SuppressionReason::SoftBounce, 5), None, "it was on its way already");
        let second = follow(Some(&first), SuppressionReason::SoftBounce, 24).unwrap();
        assert_eq!(second.expires_at, Some(at(24 + 7 * 24)));
        assert_ne!(second.id, first.id, "another suppression");
        let third = follow(Some(&second), SuppressionReason::SoftBounce, 300).unwrap();
        assert_eq!(third.expires_at, Some(at(300 + 30 * 24)));
        let fourth = follow(Some(&third), SuppressionReason::SoftBounce, 1_100).unwrap();
        assert_eq!(fourth.expires_at, Some(at(1_100 + 30 * 24)));
        let much_later = 1_100 + 30 * 24 + 90 * 24;
        let again = follow(Some(&fourth), SuppressionReason::SoftBounce, much_later).unwrap();
        assert_eq!(again.expires_at, Some(at(much_later + 24)), "forgiven");
    }

    #[test]
    fn the_stronger_and_the_longer_stay() {
        use SuppressionReason as R;
        let hard = follow(None, R::HardBounce, 0).unwrap();
        assert_eq!(hard.expires_at, None);
        for weaker in [R::SoftBounce, R::SmtpFailure, R::HardBounce, R::Manual, R::Import] {
            assert_eq!(follow(Some(&hard), weaker, 1), None, "{weaker:?}");
        }
        let complaint = follow(Some(&hard), R::Complaint, 1).unwrap();
        assert_eq!((complaint.reason, complaint.id), (R::Complaint, hard.id), "upgraded, not another");
        for any in R::ALL {
            assert_eq!(follow(Some(&complaint), *any, 2), None, "{any:?}");
        }
        // A block that holds for good is not replaced by a wish: it would end with the wish.
        assert_eq!(follow(Some(&hard), R::Unsubscribe, 1), None);
        let wish = follow(follow(None, R::SoftBounce, 0).as_ref(), R::Unsubscribe, 1).unwrap();
        assert_eq!(follow(Some(&wish), R::HardBounce, 1), None);
        assert_eq!(follow(Some(&wish), R::Complaint, 1).unwrap().reason, R::Complaint);
        let refused = follow(None, R::SmtpFailure, 0).unwrap();
        assert_eq!(refused.expires_at, Some(at(24)));
        assert_eq!(follow(Some(&refused), R::SoftBounce, 1).unwrap().expires_at, Some(at(25)));
        assert_eq!(follow(Some(&refused), R::HardBounce, 1).unwrap().expires_at, None);
        let soft = follow(None, R::SoftBounce, 0).unwrap();
        let week = follow(Some(&soft), R::SoftBounce, 24).unwrap();
        assert_eq!(follow(Some(&week), R::SmtpFailure, 25), None, "shorter");
    }

    #[test]
    fn addresses_are_compared_without_case_and_needless_quotes() {
        let key = |text: &str| text.parse::<SuppressionTarget>().unwrap().key();
        assert_eq!(key("Ada@Example.COM"), key("ada@example.com"));
        assert_eq!(key("\"ada\"@example.com"), key("ada@example.com"));
        assert_eq!(key("x@b\u{fc}cher.example"), key("X@xn--bcher-kva.example"));
        assert_eq!(key("@B\u{fc}cher.example"), "@xn--bcher-kva.example");
        assert_ne!(key("\"a b\"@example.com"), key("ab@example.com"));
        assert!("@".parse::<SuppressionTarget>().is_err() && "".parse::<SuppressionTarget>().is_err());
    }

    fn any_reason() -> impl Strategy<Value = SuppressionReason> {
        proptest::sample::select(SuppressionReason::ALL)
    }

    proptest! {
        /// However grounds follow each other: nobody is let free earlier than was said before.
        #[test]
        fn nothing_shortens_a_suppression(steps in proptest::collection::vec((any_reason(), 0i64..400), 1..20)) {
            let (mut now, mut stands) = (0, None::<Suppression>);
            for (reason, wait) in steps {
                now += wait;
                let after = follow(stands.as_ref(), reason, now);
                if let (Some(before), Some(after)) = (&stands, &after) {
                    let ends = |s: &Suppression| s.expires_at.unwrap_or(Timestamp::MAX);
                    prop_assert!(!before.is_active(at(now)) || ends(after) >= ends(before));
                    prop_assert!(!before.is_active(at(now)) || before.reason != SuppressionReason::Complaint);
                }
                stands = after.or(stands);
                prop_assert!(stands.as_ref().is_some_and(|s| s.is_active(at(now))));
            }
        }

        #[test]
        fn words_read_back(reason in any_reason(), source in proptest::sample::select(SuppressionSource::ALL)) {
            prop_assert_eq!(SuppressionReason::from_word(reason.word()), Some(reason));
            prop_assert_eq!(serde_json::to_value(reason).unwrap(), reason.word());
            prop_assert_eq!(serde_json::to_value(source).unwrap(), source.word());
        }
    }
}
