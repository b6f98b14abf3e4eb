//! Which tasks of the queue are meant: what the operator's orders, and lists of the queue, go by.

use jiff::Timestamp;

use crate::address::DomainName;
use crate::id::AccountId;
use crate::task::{QueueName, Task, TaskClass};

/// What tasks have in common; what is not named may be anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// The recipients' domain.
    pub to: Option<DomainName>,
    /// Whose mail it is.
    pub account: Option<AccountId>,
    /// The sending domain.
    pub from: Option<DomainName>,
    /// The class.
    pub class: Option<TaskClass>,
    /// Whether the operator holds them.
    pub held: Option<bool>,
    /// Tried so often at least.
    pub attempts_min: Option<u32>,
    /// Accepted before.
    pub accepted_before: Option<Timestamp>,
}

impl TaskFilter {
    /// Whether tasks of a queue may be meant: most queues need not be read.
    #[must_use]
    pub fn may_match_queue(&self, queue: &QueueName) -> bool {
        self.to.as_ref().is_none_or(|to| *to == queue.domain)
            && self.account.is_none_or(|account| account == queue.account)
            && self.class.is_none_or(|class| class == queue.class)
    }

    /// Whether a task is meant.
    #[must_use]
    pub fn matches(&self, task: &Task) -> bool {
        self.to.as_ref().is_none_or(|to| to == task.address.domain())
            && self.account.is_none_or(|account| account == task.account)
            && self.from.as_ref().is_none_or(|from| Some(from) == task.domain.as_ref())
            && self.class.is_none_or(|class| class == task.class)
            && self.held.is_none_or(|held| held == task.held)
            && self.attempts_min.is_none_or(|least| task.attempts >= least)
            && self.accepted_before.is_none_or(|before| task.accepted_at < before)
    }
}
