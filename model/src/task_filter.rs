//! Filter over queued tasks, for the operator's commands and for lists of the queue.

use jiff::Timestamp;
use message::address::DomainName;
use serde::{Deserialize, Serialize};

use crate::id::AccountId;
use crate::task::{QueueName, Task, TaskClass};

/// Conditions that must all hold; `None` matches everything.
#[message::row::omit_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskFilter {
    /// The recipients' domain.
    pub to: Option<DomainName>,
    pub account: Option<AccountId>,
    /// The sending domain.
    pub from: Option<DomainName>,
    pub class: Option<TaskClass>,
    /// Held by the operator or not.
    pub held: Option<bool>,
    /// Minimum number of attempts.
    pub attempts_min: Option<u32>,
    pub accepted_before: Option<Timestamp>,
}

impl TaskFilter {
    /// Returns whether tasks of a queue can match, so that other queues need not be read.
    pub fn may_match_queue(&self, queue: &QueueName) -> bool {
        self.to.as_ref().is_none_or(|to| *to == queue.domain)
            && self.account.is_none_or(|account| account == queue.account)
            && self.class.is_none_or(|class| class == queue.class)
    }

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
