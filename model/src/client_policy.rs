//! Client policy: what a client (an API key, an SMTP credential or a grant) may do below its scope.
//!
//! The rules bound what a client can cause when it is misled or its secret is stolen: to whom it sends, from which
//! address, how much, and what a person approves first.

use std::collections::BTreeSet;

use message::address::Address;
use message::address_pattern::AddressPattern;
use message::words;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::email::Category;

/// Maximum number of patterns in `recipients`.
pub const RECIPIENT_PATTERNS_MAX: usize = 100;
/// Maximum of `sends_per_day`.
pub const SENDS_PER_DAY_MAX: u32 = 10_000_000;

words! {
    /// A kind of operations that a person approves before they are executed.
    ApprovalKind {
        /// Operations that send email.
        Send = "send",
        /// Operations that delete something.
        Delete = "delete",
        /// Operations that create or change something.
        Manage = "manage",
    }
}

/// The rules for a client. The default has none.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClientPolicy {
    /// The recipients that it may send to; any if empty.
    pub recipients: Vec<AddressPattern>,
    /// The only sender address; any of the account's domains if not set.
    pub from: Option<Address>,
    /// Maximum number of recipients per day (UTC) over all its emails.
    pub sends_per_day: Option<u32>,
    /// The categories of email that it may send; any if empty.
    pub categories: BTreeSet<Category>,
    /// The kinds of operations that wait for a person's approval.
    pub approve: BTreeSet<ApprovalKind>,
}

/// A rule of the policy that a request breaks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyViolation {
    #[error("the policy of this client does not permit email to {recipient}")]
    Recipient { recipient: Address },
    #[error("the policy of this client permits email from {allowed} only")]
    Sender { allowed: Address },
    #[error("the policy of this client does not permit email of the category `{}`", category.word())]
    Category { category: Category },
    #[error("the policy of this client permits {limit} sends a day (UTC); {used} are used")]
    SendsPerDay { limit: u32, used: u32 },
}

impl PolicyViolation {
    /// The name of the broken rule, as in the policy.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Recipient { .. } => "recipients",
            Self::Sender { .. } => "from",
            Self::Category { .. } => "categories",
            Self::SendsPerDay { .. } => "sends_per_day",
        }
    }
}

impl ClientPolicy {
    /// True if the policy has no rule.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if it limits the email that the client sends.
    pub fn limits_sending(&self) -> bool {
        let Self { recipients, from, sends_per_day, categories, approve } = self;
        !recipients.is_empty()
            || from.is_some()
            || sends_per_day.is_some()
            || !categories.is_empty()
            || approve.contains(&ApprovalKind::Send)
    }

    /// True if this policy, in place of `before`, permits something that `before` does not. It is true, too, if that
    /// cannot be told.
    pub fn loosens(&self, before: &Self) -> bool {
        let recipients = !before.recipients.is_empty()
            && (self.recipients.is_empty() || !self.recipients.iter().all(|new| before.recipients.contains(new)));
        let from = before.from.is_some() && self.from != before.from;
        let sends = before.sends_per_day.is_some_and(|limit| self.sends_per_day.is_none_or(|new| new > limit));
        let categories = !before.categories.is_empty()
            && (self.categories.is_empty() || !self.categories.is_subset(&before.categories));
        recipients || from || sends || categories || !self.approve.is_superset(&before.approve)
    }

    /// Checks an email: its author, its category and all recipients of the envelope.
    ///
    /// # Errors
    /// The first rule that it breaks. `sends_per_day` is checked when the sends are counted.
    pub fn check_email<'a>(
        &self,
        author: &Address,
        category: Category,
        mut recipients: impl Iterator<Item = &'a Address>,
    ) -> Result<(), PolicyViolation> {
        if let Some(allowed) = self.from.as_ref().filter(|allowed| allowed.to_canonical() != author.to_canonical()) {
            return Err(PolicyViolation::Sender { allowed: allowed.clone() });
        }
        if !self.categories.is_empty() && !self.categories.contains(&category) {
            return Err(PolicyViolation::Category { category });
        }
        if self.recipients.is_empty() {
            return Ok(());
        }
        match recipients.find(|recipient| !self.permits_recipient(recipient)) {
            Some(recipient) => Err(PolicyViolation::Recipient { recipient: recipient.clone() }),
            None => Ok(()),
        }
    }

    fn permits_recipient(&self, recipient: &Address) -> bool {
        self.recipients.iter().any(|pattern| pattern.matches(recipient))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[test]
    fn an_email_must_keep_every_rule() {
        let policy = ClientPolicy {
            recipients: vec!["*@example.net".parse().unwrap(), "ada@example.org".parse().unwrap()],
            from: Some(address("robot@example.com")),
            categories: [Category::Transactional].into(),
            ..ClientPolicy::default()
        };
        let check = |from: &str, category, to: &[&str]| {
            let to: Vec<Address> = to.iter().map(|to| address(to)).collect();
            policy.check_email(&address(from), category, to.iter()).map_err(|violation| violation.rule())
        };
        let transactional = Category::Transactional;
        assert_eq!(check("robot@example.com", transactional, &["grace@example.net", "Ada@example.org"]), Ok(()));
        assert_eq!(check("root@example.com", transactional, &["grace@example.net"]), Err("from"));
        assert_eq!(check("robot@example.com", Category::Newsletter, &["grace@example.net"]), Err("categories"));
        let others = ["grace@example.net.evil.example", "eve@example.org", "ada@sub.example.org", "x@sub.example.net"];
        for other in others {
            assert_eq!(check("robot@example.com", transactional, &["grace@example.net", other]), Err("recipients"));
        }
    }

    #[test]
    fn an_empty_policy_permits_everything_and_takes_no_space() {
        let policy = ClientPolicy::default();
        assert!(policy.is_empty() && !policy.limits_sending());
        assert_eq!(serde_json::to_string(&policy).unwrap(), "{}");
        let to = [address("x@example.net")];
        assert_eq!(policy.check_email(&address("a@example.com"), Category::Newsletter, to.iter()), Ok(()));
    }

    #[test]
    fn a_policy_that_permits_more_loosens() {
        let before = ClientPolicy {
            recipients: vec!["*@example.net".parse().unwrap(), "ada@example.org".parse().unwrap()],
            from: Some(address("robot@example.com")),
            sends_per_day: Some(10),
            categories: [Category::Transactional].into(),
            approve: [ApprovalKind::Send].into(),
        };
        let edits: [fn(&mut ClientPolicy); 11] = [
            |p| p.recipients.clear(),
            |p| p.recipients.push("eve@example.org".parse().unwrap()),
            |p| p.from = None,
            |p| p.from = Some(address("root@example.com")),
            |p| p.sends_per_day = None,
            |p| p.sends_per_day = Some(11),
            |p| p.categories.clear(),
            |p| p.categories.extend([Category::Product]),
            |p| p.approve.clear(),
            |p| p.approve = [ApprovalKind::Delete].into(),
            |p| *p = ClientPolicy::default(),
        ];
        for edit in edits {
            let mut after = before.clone();
            edit(&mut after);
            assert!(after.loosens(&before), "{after:?}");
        }
        let mut stricter = before.clone();
        stricter.recipients.truncate(1);
        stricter.sends_per_day = Some(9);
        stricter.approve.extend([ApprovalKind::Manage]);
        assert!(!stricter.loosens(&before) && !before.loosens(&before) && !before.loosens(&ClientPolicy::default()));
    }
}
