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

use crate::address::{Address, AddressError, Mailbox, Name};
use crate::email::Category;
use crate::event::{Event, EventKind};
use crate::id::{AccountId, EmailId, EventId, OptOutId, SuppressionId};
use crate::moment;
use crate::reply::{Enhanced, Reply};

/// How long a soft bounce suppresses: the first, the second, all further ones.
const SOFT_HOLDS: [SignedDuration; 3] =
    [SignedDuration::from_hours(24), SignedDuration::from_hours(7 * 24), SignedDuration::from_hours(30 * 24)];
/// After this long without another, soft bounces are counted from one again.
const SOFT_FORGIVEN_AFTER: SignedDuration = SignedDuration::from_hours(90 * 24);
/// How long a refusal that blames the sender suppresses: it says nothing against the address.
const SMTP_FAILURE_HOLDS: SignedDuration = SignedDuration::from_hours(24);
/// What is kept of a server's words.
const DIAGNOSTIC_CHARS_MAX: usize = 500;

/// Why nothing is sent to somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Reason {
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
pub enum Source {
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
            pub fn of_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

words!(Reason {
    HardBounce "hard_bounce" SoftBounce "soft_bounce" Complaint "complaint" Unsubscribe "unsubscribe"
    SmtpFailure "smtp_failure" Manual "manual" Import "import"
});
words!(Source { System "system" Api "api" Dashboard "dashboard" Recipient "recipient" Import "import" });

/// The form in which addresses are compared: lower case, quotes only where they are needed.
///
/// RFC 5321 2.4 lets a host tell `Ada@` from `ada@`; no host of note does, and who unsubscribed as one
/// does not want mail as the other.
#[must_use]
pub fn address_key(address: &Address) -> String {
    let local = address.local();
    let bare = local
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|inner| !inner.starts_with('"') && Address::new(inner, address.domain().clone()).is_ok());
    format!("{}@{}", bare.unwrap_or(local).to_lowercase(), address.domain())
}

/// The form in which a whole domain is compared: `@domain.tld`.
#[must_use]
pub fn domain_key(domain: &Name) -> String {
    format!("@{domain}")
}

/// Whom a suppression is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Target {
    /// One address.
    Address(Address),
    /// Every address of a domain (of the domains under it, none).
    Domain(Name),
}

impl Target {
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
    pub fn read(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        if text.starts_with('@') {
            return text.parse();
        }
        text.parse::<Mailbox>().map(|mailbox| Self::Address(mailbox.address))
    }
}

impl FromStr for Target {
    type Err = AddressError;
    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.strip_prefix('@') {
            Some(domain) => domain.parse().map(Self::Domain),
            None => text.parse().map(Self::Address),
        }
    }
}

impl TryFrom<String> for Target {
    type Error = AddressError;
    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

impl From<Address> for Target {
    fn from(address: Address) -> Self {
        Self::Address(address)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Domain(domain) => write!(f, "@{domain}"),
        }
    }
}

/// What the destination said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// The reply code.
    pub smtp_code: Option<u16>,
    /// The enhanced status code.
    pub enhanced_code: Option<Enhanced>,
    /// In its words.
    pub diagnostic: String,
}

impl From<&Reply> for Detail {
    fn from(reply: &Reply) -> Self {
        Self {
            smtp_code: Some(reply.code),
            enhanced_code: reply.enhanced,
            diagnostic: shortened(&reply.to_string()),
        }
    }
}

/// The beginning of a text that somebody else wrote.
#[must_use]
pub fn shortened(text: &str) -> String {
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
    pub target: Target,
    /// Why.
    pub reason: Reason,
    /// Who said so.
    pub source: Source,
    /// The email that it came of.
    pub email: Option<EmailId>,
    /// What the destination said.
    pub detail: Option<Detail>,
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
                "expires_at": self.expires_at.map(moment::write), "created_at": moment::write(self.created_at),
            }),
        }
    }

    /// Whether this one begins something, where that one stood.
    #[must_use]
    pub fn is_new_beside(&self, before: Option<&Self>, now: Timestamp) -> bool {
        before.is_none_or(|before| {
            before.id != self.id || before.expires_at.is_some_and(|expires_at| expires_at <= now)
        })
    }
}

/// What happened that calls for a suppression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grounds {
    /// Whom it is about.
    pub target: Target,
    /// Why.
    pub reason: Reason,
    /// Who said so.
    pub source: Source,
    /// The email that it came of.
    pub email: Option<EmailId>,
    /// What the destination said.
    pub detail: Option<Detail>,
    /// What the customer noted.
    pub note: Option<String>,
    /// When it is to end, where the customer may say so; what the service finds ends by the rules.
    pub expires_at: Option<Timestamp>,
}

impl Grounds {
    /// About somebody, for this reason.
    #[must_use]
    pub fn new(target: impl Into<Target>, reason: Reason, source: Source) -> Self {
        Self {
            target: target.into(),
            reason,
            source,
            email: None,
            detail: None,
            note: None,
            expires_at: None,
        }
    }

    /// With the email that it came of.
    #[must_use]
    pub fn of_email(mut self, email: EmailId) -> Self {
        self.email = Some(email);
        self
    }

    fn ends(&self, soft_bounces: u32, now: Timestamp) -> Option<Timestamp> {
        let in_a_while = |hold| Some(now.checked_add(hold).unwrap_or(Timestamp::MAX));
        match self.reason {
            Reason::HardBounce | Reason::Complaint | Reason::Unsubscribe => None,
            Reason::SmtpFailure => in_a_while(SMTP_FAILURE_HOLDS),
            Reason::SoftBounce => {
                let nth = usize::try_from(soft_bounces.saturating_sub(1)).unwrap_or(usize::MAX);
                in_a_while(SOFT_HOLDS.get(nth).copied().unwrap_or(SOFT_HOLDS[SOFT_HOLDS.len() - 1]))
            }
            Reason::Manual | Reason::Import => self.expires_at,
        }
    }
}

impl Suppression {
    /// Whether it holds: it has not ended.
    #[must_use]
    pub fn holds(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| end > now)
    }

    /// What follows from new grounds, where `before` stands (if anything does): the suppression as it is
    /// from now on, or none when it stays as it is. `id` is for one that begins now; one that still holds
    /// and gets another reason keeps its id and the time of its beginning.
    #[must_use]
    pub fn follow(
        before: Option<&Self>,
        grounds: Grounds,
        account: AccountId,
        id: SuppressionId,
        now: Timestamp,
    ) -> Option<Self> {
        let counted = before.map_or(0, |before| before.soft_bounces_that_count(now));
        let soft_bounces = counted.saturating_add(u32::from(grounds.reason == Reason::SoftBounce));
        let expires_at = grounds.ends(soft_bounces, now);
        let holding = before.filter(|before| before.holds(now));
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
    fn outweighs(&self, reason: Reason, expires_at: Option<Timestamp>) -> bool {
        match (self.reason, reason) {
            (Reason::Complaint, _) => true,
            (_, Reason::Complaint) => false,
            // What recipients ask for is kept as their wish, whatever else is known of them.
            (Reason::Unsubscribe, _) => true,
            // What holds for good holds without the wish, and must not end with it.
            (_, Reason::Unsubscribe) => self.expires_at.is_none(),
            // It was on its way before the first was known: not another time, the same.
            (Reason::SoftBounce, Reason::SoftBounce) => true,
            _ => match (self.expires_at, expires_at) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(mine), Some(other)) => mine >= other,
            },
        }
    }

    fn soft_bounces_that_count(&self, now: Timestamp) -> u32 {
        let forgiven_at =
            self.expires_at.map(|end| end.checked_add(SOFT_FORGIVEN_AFTER).unwrap_or(Timestamp::MAX));
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
    pub source: Source,
    /// The email that it came of.
    pub email: Option<EmailId>,
    /// Since when.
    pub created_at: Timestamp,
}

/// The categories that one can opt out of (email-api.md, "Template categories").
pub const OPTIONAL: [Category; 2] = [Category::Product, Category::Newsletter];

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
pub struct Blocked {
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
        reason: Reason,
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

    fn grounds(reason: Reason) -> Grounds {
        Grounds::new("a@example.net".parse::<Address>().unwrap(), reason, Source::System)
    }

    fn follow(before: Option<&Suppression>, reason: Reason, now: i64) -> Option<Suppression> {
        let account = AccountId::new(at(0), 1);
        Suppression::follow(before, grounds(reason), account, id(u128::try_from(now + 1).unwrap()), at(now))
    }

    #[test]
    fn soft_bounces_escalate_and_are_forgiven() {
        let first = follow(None, Reason::SoftBounce, 0).unwrap();
        assert_eq!((first.expires_at, first.soft_bounces), (Some(at(24)), 1));
        assert_eq!(follow(Some(&first), Reason::SoftBounce, 5), None, "it was on its way already");
        let second = follow(Some(&first), Reason::SoftBounce, 24).unwrap();
        assert_eq!(second.expires_at, Some(at(24 + 7 * 24)));
        assert_ne!(second.id, first.id, "another suppression");
        let third = follow(Some(&second), Reason::SoftBounce, 300).unwrap();
        assert_eq!(third.expires_at, Some(at(300 + 30 * 24)));
        let fourth = follow(Some(&third), Reason::SoftBounce, 1_100).unwrap();
        assert_eq!(fourth.expires_at, Some(at(1_100 + 30 * 24)));
        let much_later = 1_100 + 30 * 24 + 90 * 24;
        let again = follow(Some(&fourth), Reason::SoftBounce, much_later).unwrap();
        assert_eq!(again.expires_at, Some(at(much_later + 24)), "forgiven");
    }

    #[test]
    fn the_stronger_and_the_longer_stay() {
        use Reason as R;
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
        let key = |text: &str| text.parse::<Target>().unwrap().key();
        assert_eq!(key("Ada@Example.COM"), key("ada@example.com"));
        assert_eq!(key("\"ada\"@example.com"), key("ada@example.com"));
        assert_eq!(key("x@b\u{fc}cher.example"), key("X@xn--bcher-kva.example"));
        assert_eq!(key("@B\u{fc}cher.example"), "@xn--bcher-kva.example");
        assert_ne!(key("\"a b\"@example.com"), key("ab@example.com"));
        assert!("@".parse::<Target>().is_err() && "".parse::<Target>().is_err());
    }

    fn any_reason() -> impl Strategy<Value = Reason> {
        proptest::sample::select(Reason::ALL)
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
                    prop_assert!(!before.holds(at(now)) || ends(after) >= ends(before));
                    prop_assert!(!before.holds(at(now)) || before.reason != Reason::Complaint);
                }
                stands = after.or(stands);
                prop_assert!(stands.as_ref().is_some_and(|s| s.holds(at(now))));
            }
        }

        #[test]
        fn words_read_back(reason in any_reason(), source in proptest::sample::select(Source::ALL)) {
            prop_assert_eq!(Reason::of_word(reason.word()), Some(reason));
            prop_assert_eq!(serde_json::to_value(reason).unwrap(), reason.word());
            prop_assert_eq!(serde_json::to_value(source).unwrap(), source.word());
        }
    }
}
