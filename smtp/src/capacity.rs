//! Divides the sessions and the content memory of the process among the kinds of listeners.
//!
//! Each of the two is configured as one number. Submission and MX have weight 2, relay has weight 1, and a kind of
//! listener that is not open has weight 0. So untrusted clients at MX take no capacity from users who send.

use net::limit::fair_share::QuotaBounds;
use parking_lot::Mutex;
use std::sync::Arc;

use crate::connection_limiter::{ConnectionLimiter, MX_SITE_DIVISOR};
use crate::content_budget::ContentBudget;
use crate::settings::ListenerRole;

/// The configured totals for all listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapacityLimits {
    pub sessions_max: usize,
    /// Bytes of message content in memory.
    pub bytes_max: usize,
    /// The largest message at submission and relay, in bytes.
    pub message_bytes_max: u64,
    /// The largest message at MX, in bytes.
    pub mx_message_bytes_max: u64,
}

/// The connection limiter and the content budgets, one per kind of listener.
#[derive(Debug)]
pub struct Capacity {
    pub connections: Arc<ConnectionLimiter>,
    submission: Arc<ContentBudget>,
    relay: Arc<ContentBudget>,
    mx: Arc<ContentBudget>,
    allocation: Mutex<CapacityAllocation>,
}

/// The totals and the open kinds of listeners among which they are divided.
#[derive(Debug)]
struct CapacityAllocation {
    limits: CapacityLimits,
    open_roles: Vec<ListenerRole>,
}

impl Capacity {
    /// Divides the limits among the listeners that are added later. Session numbers start at `first_session`.
    pub fn new(sizes: CapacityLimits, first_session: u64) -> Self {
        let budget = |role: ListenerRole| ContentBudget::with_bounds(QuotaBounds::shared(0), role.name());
        let capacity = Self {
            connections: ConnectionLimiter::new(0, first_session),
            submission: budget(ListenerRole::Submission),
            relay: budget(ListenerRole::Relay),
            mx: budget(ListenerRole::Mx),
            allocation: Mutex::new(CapacityAllocation { limits: sizes, open_roles: Vec::new() }),
        };
        capacity.apply_allocation(&capacity.allocation.lock());
        capacity
    }

    /// Registers a listener of this role and divides the limits again.
    pub fn add_listener(&self, role: ListenerRole) {
        let mut divided = self.allocation.lock();
        if !divided.open_roles.contains(&role) {
            divided.open_roles.push(role);
            self.apply_allocation(&divided);
        }
    }

    /// Divides other limits from now on. Capacity that is already held stays held.
    pub fn resize(&self, sizes: CapacityLimits) {
        let mut divided = self.allocation.lock();
        divided.limits = sizes;
        self.apply_allocation(&divided);
    }

    pub fn content_budget(&self, role: ListenerRole) -> &Arc<ContentBudget> {
        match role {
            ListenerRole::Submission => &self.submission,
            ListenerRole::Relay => &self.relay,
            ListenerRole::Mx => &self.mx,
        }
    }

    fn apply_allocation(&self, CapacityAllocation { limits: sizes, open_roles: open }: &CapacityAllocation) {
        let weight = |role: ListenerRole| match role {
            _ if !open.contains(&role) => 0,
            ListenerRole::Submission | ListenerRole::Mx => 2,
            ListenerRole::Relay => 1,
        };
        let weights: usize = ListenerRole::ALL.map(weight).iter().sum();
        let part = |all: usize, role: ListenerRole| all / weights.max(1) * weight(role);
        for role in ListenerRole::ALL {
            let largest = match role {
                ListenerRole::Mx => sizes.mx_message_bytes_max,
                ListenerRole::Submission | ListenerRole::Relay => sizes.message_bytes_max,
            };
            let largest = usize::try_from(largest).unwrap_or(usize::MAX);
            // Each role can hold at least one message of the largest size, however small the total is.
            let all = part(sizes.bytes_max, role).max(largest);
            let each = if role == ListenerRole::Mx { (all / MX_SITE_DIVISOR).max(largest) } else { usize::MAX };
            self.content_budget(role).set_bounds(QuotaBounds { total: all, per_holder: each, sole_holder: largest });
            self.connections.set_sessions_max(role, part(sizes.sessions_max, role).max(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_divided_among_the_open_listeners() {
        let sizes =
            CapacityLimits { sessions_max: 1_000, bytes_max: 1_000, message_bytes_max: 10, mx_message_bytes_max: 20 };
        let capacity = Capacity::new(sizes, 1);
        let bytes = |capacity: &Capacity| ListenerRole::ALL.map(|role| capacity.content_budget(role).free_bytes());
        capacity.add_listener(ListenerRole::Submission);
        assert_eq!(bytes(&capacity), [1_000, 10, 20]);
        capacity.add_listener(ListenerRole::Mx);
        capacity.add_listener(ListenerRole::Mx);
        assert_eq!(bytes(&capacity), [500, 10, 500]);
        capacity.add_listener(ListenerRole::Relay);
        assert_eq!(bytes(&capacity), [400, 200, 400]);
        capacity.resize(CapacityLimits { bytes_max: 15, ..sizes });
        assert_eq!(bytes(&capacity), [10, 10, 20], "one message fits at least");
    }
}
