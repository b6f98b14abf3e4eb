//! Suppressions and opt-outs: which addresses receive no mail, the reason, and the duration.
//!
//! ```text
//! new SuppressionCause ─────┐
//!                           ├─► apply_cause ─► the updated suppression, or no change
//! existing Suppression ─────┘
//! ```
//!
//! A suppression covers an address or, as `@domain.tld`, every address of a domain; there is at most one per target.
//! An opt-out covers an address and a category. Addresses are compared in the form of [`address_key`]. The rules:
//!
//! - a hard bounce, a complaint and an unsubscribe never expire;
//! - the first soft bounce lasts a day, the second a week, further ones a month;
//! - a permanent rejection that blames the sender lasts a day;
//! - a weaker or shorter suppression never replaces a stronger one; a complaint replaces every other.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use message::address::{Address, AddressError, DomainName, Mailbox, fold_spelling};
use message::reply::{Enhanced, SmtpReply, truncate_diagnostic};
use message::words;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::email::Category;
use crate::event::{Event, EventKind};
use crate::id::{AccountId, EmailId, EventId, OptOutId, SuppressionId};
use crate::timestamp;

/// Duration of a soft bounce suppression: the first, the second, all further ones.
const SOFT_BOUNCE_TTLS: [SignedDuration; 3] =
    [SignedDuration::from_hours(24), SignedDuration::from_hours(7 * 24), SignedDuration::from_hours(30 * 24)];
/// The soft bounce count is reset this long after the last suppression's end.
const SOFT_BOUNCE_RESET_AFTER: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Duration after a rejection that blames the sender, because it is not about the address.
const SMTP_FAILURE_TTL: SignedDuration = SignedDuration::from_hours(24);

words! {
    /// Reason for a suppression. The numbers are stored.
    #[repr(u8)]
    SuppressionReason {
        /// The destination permanently rejected the recipient.
        HardBounce = "hard_bounce" as 1,
        /// The destination deferred the mail until its delivery period ended.
        SoftBounce = "soft_bounce" as 2,
        /// The recipient reported spam.
        Complaint = "complaint" as 3,
        /// The recipient unsubscribed.
        Unsubscribe = "unsubscribe" as 4,
        /// The destination permanently rejected the mail and blamed the sender.
        SmtpFailure = "smtp_failure" as 5,
        /// The customer added it.
        Manual = "manual" as 6,
        /// Imported from a list that states no reason.
        Import = "import" as 7,
    }
}

words! {
    /// Origin of a suppression or opt-out. The numbers are stored.
    #[repr(u8)]
    SuppressionSource {
        /// The service, after a delivery result.
        System = "system" as 1,
        /// The customer, through the API.
        Api = "api" as 2,
        /// The customer, in the dashboard.
        Dashboard = "dashboard" as 3,
        Recipient = "recipient" as 4,
        Import = "import" as 5,
    }
}

/// The form in which addresses are compared: lower case, composed characters (NFC), quotes only if needed.
///
/// RFC 5321 2.4 permits hosts to distinguish `Ada@` and `ada@`, but no major host does, and an unsubscribe must cover
/// both. Two encodings of one accented letter look the same to the recipient (RFC 6532 3.1).
pub fn address_key(address: &Address) -> String {
    format!("{}@{}", fold_spelling(local_without_quotes(address)), address.domain())
}

/// The keys under which rows of an address may be stored: [`address_key`], and those that version 0.1.0 used, if they
/// differ. That version did not compose characters: it kept those of the address, or their decomposed form.
pub fn address_keys(address: &Address) -> impl Iterator<Item = String> {
    let (key, local) = (address_key(address), local_without_quotes(address));
    let mut former = Vec::new();
    if !local.is_ascii() {
        let lower = local.to_lowercase();
        former.extend([lower.nfd().collect(), lower].map(|local: String| format!("{local}@{}", address.domain())));
        former.dedup();
        former.retain(|former| *former != key);
    }
    std::iter::once(key).chain(former)
}

fn local_without_quotes(address: &Address) -> &str {
    let local = address.local_part();
    let bare = local
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|inner| !inner.starts_with('"') && Address::new(inner, address.domain().clone()).is_ok());
    bare.unwrap_or(local)
}

/// The form in which domain targets are compared: `@domain.tld`.
pub fn domain_key(domain: &DomainName) -> String {
    format!("@{domain}")
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SuppressionTarget {
    Address(Address),
    /// Every address of a domain, without its subdomains.
    Domain(DomainName),
}

impl SuppressionTarget {
    /// The form in which targets are compared.
    pub fn key(&self) -> String {
        match self {
            Self::Address(address) => address_key(address),
            Self::Domain(domain) => domain_key(domain),
        }
    }

    /// The keys under which a row of the target may be stored, [`Self::key`] first.
    pub fn keys(&self) -> impl Iterator<Item = String> {
        let (address, domain) = match self {
            Self::Address(address) => (Some(address), None),
            Self::Domain(domain) => (None, Some(domain)),
        };
        address.into_iter().flat_map(address_keys).chain(domain.map(domain_key))
    }

    /// Parses user input: an address with or without a display name, or `@domain.tld`.
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

message::stored_as_text!(SuppressionTarget);

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

/// The destination's reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmtpDiagnostic {
    pub smtp_code: Option<u16>,
    pub enhanced_code: Option<Enhanced>,
    /// The reply as text, truncated.
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

/// A suppressed address or domain.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppression {
    pub id: SuppressionId,
    pub account: AccountId,
    pub target: SuppressionTarget,
    pub reason: SuppressionReason,
    pub source: SuppressionSource,
    /// The email whose result caused it.
    pub email: Option<EmailId>,
    pub detail: Option<SmtpDiagnostic>,
    /// The customer's note.
    pub note: Option<String>,
    /// End of the suppression; `None` means that it never expires.
    pub expires_at: Option<Timestamp>,
    /// Number of consecutive soft bounces; each one lengthens the next suppression.
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub soft_bounces: u32,
    pub created_at: Timestamp,
}

impl Suppression {
    /// Builds the event that it was created or removed.
    pub fn event(&self, kind: EventKind, id: EventId, at: Timestamp) -> Event {
        let detail = serde_json::json!({
            "suppression_id": self.id, "email": self.target.key(), "reason": self.reason,
            "source": self.source, "email_id": self.email,
            "expires_at": self.expires_at.map(timestamp::to_rfc3339), "created_at": timestamp::to_rfc3339(self.created_at),
        });
        Event::new(id, self.account, self.id, kind, at, detail)
    }

    /// Returns whether this is a new suppression, or renews one that had expired.
    pub fn is_newly_active(&self, before: Option<&Self>, now: Timestamp) -> bool {
        before
            .is_none_or(|before| before.id != self.id || before.expires_at.is_some_and(|expires_at| expires_at <= now))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuppressionCause {
    pub target: SuppressionTarget,
    pub reason: SuppressionReason,
    pub source: SuppressionSource,
    /// The email whose result caused it.
    pub email: Option<EmailId>,
    pub detail: Option<SmtpDiagnostic>,
    /// The customer's note.
    pub note: Option<String>,
    /// Requested end, for manual and imported suppressions; for other reasons the rules determine the end.
    pub expires_at: Option<Timestamp>,
}

impl SuppressionCause {
    pub fn new(target: impl Into<SuppressionTarget>, reason: SuppressionReason, source: SuppressionSource) -> Self {
        Self { target: target.into(), reason, source, email: None, detail: None, note: None, expires_at: None }
    }

    /// Adds the email whose result caused it.
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
    /// Returns whether it has not expired.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| end > now)
    }

    /// Applies a new cause to the existing suppression `before`, if any. Returns the updated suppression, or `None` if
    /// nothing changes. A new suppression gets `id`; an active one with a changed reason keeps its id and creation
    /// time.
    pub fn apply_cause(
        before: Option<&Self>,
        cause: SuppressionCause,
        account: AccountId,
        id: SuppressionId,
        now: Timestamp,
    ) -> Option<Self> {
        let earlier_soft_bounces = before.map_or(0, |before| before.counted_soft_bounces(now));
        let soft_bounces =
            earlier_soft_bounces.saturating_add(u32::from(cause.reason == SuppressionReason::SoftBounce));
        let expires_at = cause.expiry(soft_bounces, now);
        let active = before.filter(|before| before.is_active(now));
        if active.is_some_and(|before| before.outweighs(cause.reason, expires_at)) {
            return None;
        }
        Some(Self {
            id: active.map_or(id, |before| before.id),
            account,
            target: cause.target,
            reason: cause.reason,
            source: cause.source,
            email: cause.email,
            detail: cause.detail,
            note: cause.note.or_else(|| active.and_then(|before| before.note.clone())),
            expires_at,
            soft_bounces,
            created_at: active.map_or(now, |before| before.created_at),
        })
    }

    /// Returns whether this active suppression takes precedence over a new one.
    fn outweighs(&self, reason: SuppressionReason, expires_at: Option<Timestamp>) -> bool {
        match (self.reason, reason) {
            (SuppressionReason::Complaint, _) => true,
            (_, SuppressionReason::Complaint) => false,
            // An unsubscribe stays recorded as the recipient's request, whatever else is known.
            (SuppressionReason::Unsubscribe, _) => true,
            // A permanent suppression must not end when the recipient subscribes again.
            (_, SuppressionReason::Unsubscribe) => self.expires_at.is_none(),
            // This bounce is of mail sent before the suppression, so it does not count again.
            (SuppressionReason::SoftBounce, SuppressionReason::SoftBounce) => true,
            _ => match (self.expires_at, expires_at) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(own_expiry), Some(other_expiry)) => own_expiry >= other_expiry,
            },
        }
    }

    fn counted_soft_bounces(&self, now: Timestamp) -> u32 {
        let forgiven_at = self.expires_at.map(|end| end.checked_add(SOFT_BOUNCE_RESET_AFTER).unwrap_or(Timestamp::MAX));
        if forgiven_at.is_some_and(|at| at <= now) { 0 } else { self.soft_bounces }
    }
}

/// An address that opted out of a category.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptOut {
    pub id: OptOutId,
    pub account: AccountId,
    pub address: Address,
    /// The category that is not sent.
    pub category: Category,
    pub source: SuppressionSource,
    /// The email whose link was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<EmailId>,
    pub created_at: Timestamp,
}

/// The categories that recipients can opt out of.
pub const OPTIONAL_CATEGORIES: [Category; 2] = [Category::Product, Category::Newsletter];

/// Name of a category on pages.
pub fn category_label(category: Category) -> &'static str {
    match category {
        Category::Transactional => "Transactional",
        Category::Product => "Product updates",
        Category::Newsletter => "Newsletter",
    }
}

/// A recipient to whom an email cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedRecipient {
    pub address: Address,
    pub reason: BlockReason,
}

/// Reason why an email cannot be sent to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockReason {
    Suppressed {
        id: SuppressionId,
        reason: SuppressionReason,
    },
    /// The address opted out of the category.
    OptedOut {
        id: OptOutId,
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

    fn cause_of(reason: SuppressionReason) -> SuppressionCause {
        SuppressionCause::new("a@example.net".parse::<Address>().unwrap(), reason, SuppressionSource::System)
    }

    fn follow(before: Option<&Suppression>, reason: SuppressionReason, now: i64) -> Option<Suppression> {
        let account = AccountId::new(at(0), 1);
        Suppression::apply_cause(before, cause_of(reason), account, id(u128::try_from(now + 1).unwrap()), at(now))
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
    fn stronger_and_longer_suppressions_remain() {
        use SuppressionReason as R;
        let hard = follow(None, R::HardBounce, 0).unwrap();
        assert_eq!(hard.expires_at, None);
        for weaker in [R::SoftBounce, R::SmtpFailure, R::HardBounce, R::Manual, R::Import] {
            assert_eq!(follow(Some(&hard), weaker, 1), None, "{weaker:?}");
        }
        let complaint = follow(Some(&hard), R::Complaint, 1).unwrap();
        assert_eq!((complaint.reason, complaint.id), (R::Complaint, hard.id), "upgraded, not another");
        for any in R::ALL {
            assert_eq!(follow(Some(&complaint), any, 2), None, "{any:?}");
        }
        // An unsubscribe does not replace a permanent suppression, which would then end with the unsubscribe.
        assert_eq!(follow(Some(&hard), R::Unsubscribe, 1), None);
        let unsubscribe = follow(follow(None, R::SoftBounce, 0).as_ref(), R::Unsubscribe, 1).unwrap();
        assert_eq!(follow(Some(&unsubscribe), R::HardBounce, 1), None);
        assert_eq!(follow(Some(&unsubscribe), R::Complaint, 1).unwrap().reason, R::Complaint);
        let refused = follow(None, R::SmtpFailure, 0).unwrap();
        assert_eq!(refused.expires_at, Some(at(24)));
        assert_eq!(follow(Some(&refused), R::SoftBounce, 1).unwrap().expires_at, Some(at(25)));
        assert_eq!(follow(Some(&refused), R::HardBounce, 1).unwrap().expires_at, None);
        let soft = follow(None, R::SoftBounce, 0).unwrap();
        let week = follow(Some(&soft), R::SoftBounce, 24).unwrap();
        assert_eq!(follow(Some(&week), R::SmtpFailure, 25), None, "shorter");
    }

    #[test]
    fn addresses_are_compared_without_spelling_and_needless_quotes() {
        let key = |text: &str| text.parse::<SuppressionTarget>().unwrap().key();
        assert_eq!(key("Ada@Example.COM"), key("ada@example.com"));
        assert_eq!(key("\"ada\"@example.com"), key("ada@example.com"));
        assert_eq!(key("x@b\u{fc}cher.example"), key("X@xn--bcher-kva.example"));
        assert_eq!(key("@B\u{fc}cher.example"), "@xn--bcher-kva.example");
        assert_eq!(key("E\u{301}@example.net"), key("\u{e9}@example.net"));
        let keys = |text: &str| text.parse::<SuppressionTarget>().unwrap().keys().collect::<Vec<_>>();
        assert_eq!(keys("\"E\u{301}\"@example.net"), ["\u{e9}@example.net", "e\u{301}@example.net"]);
        assert_eq!(keys("\u{c9}@example.net"), ["\u{e9}@example.net", "e\u{301}@example.net"]);
        assert_eq!(keys("@example.net"), ["@example.net"]);
        assert_ne!(key("\"a b\"@example.com"), key("ab@example.com"));
        assert!("@".parse::<SuppressionTarget>().is_err() && "".parse::<SuppressionTarget>().is_err());
    }

    fn any_reason() -> impl Strategy<Value = SuppressionReason> {
        proptest::sample::select(&SuppressionReason::ALL[..])
    }

    proptest! {
        /// No sequence of causes makes a suppression end earlier.
        #[test]
        fn nothing_shortens_a_suppression(steps in proptest::collection::vec((any_reason(), 0i64..400), 1..20)) {
            let (mut now, mut current) = (0, None::<Suppression>);
            for (reason, wait) in steps {
                now += wait;
                let after = follow(current.as_ref(), reason, now);
                if let (Some(before), Some(after)) = (&current, &after) {
                    let ends = |s: &Suppression| s.expires_at.unwrap_or(Timestamp::MAX);
                    prop_assert!(!before.is_active(at(now)) || ends(after) >= ends(before));
                    prop_assert!(!before.is_active(at(now)) || before.reason != SuppressionReason::Complaint);
                }
                current = after.or(current);
                prop_assert!(current.as_ref().is_some_and(|s| s.is_active(at(now))));
            }
        }

        #[test]
        fn words_round_trip(reason in any_reason(), source in proptest::sample::select(&SuppressionSource::ALL[..])) {
            prop_assert_eq!(SuppressionReason::from_word(reason.word()), Some(reason));
            prop_assert_eq!(serde_json::to_value(reason).unwrap(), reason.word());
            prop_assert_eq!(serde_json::to_value(source).unwrap(), source.word());
        }
    }
}
