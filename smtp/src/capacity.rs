//! What all SMTP listeners of the process share, divided by kind of listener.
//!
//! Sessions and content memory are configured as one number each. Submission and MX have two parts of it each, relay
//! has one; a kind of listener that is not open has none. So strangers at MX take nothing from those who send.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::budget::Budget;
use crate::peers::{Peers, STRANGER_PART};
use crate::quota::Bounds;
use crate::settings::Role;

/// What there is for all listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Sessions.
    pub sessions_max: usize,
    /// Bytes of content in memory.
    pub bytes_max: usize,
    /// The largest message at submission and relay.
    pub message_bytes_max: u64,
    /// The largest message at MX.
    pub mx_message_bytes_max: u64,
}

/// The parts.
#[derive(Debug)]
pub struct Capacity {
    peers: Arc<Peers>,
    submission: Arc<Budget>,
    relay: Arc<Budget>,
    mx: Arc<Budget>,
    divided: Mutex<Divided>,
}

/// How it is divided now.
#[derive(Debug)]
struct Divided {
    sizes: Sizes,
    open: Vec<Role>,
}

impl Capacity {
    /// Divides it among the kinds of listeners that will be opened. Sessions are numbered from `first_session`.
    #[must_use]
    pub fn new(sizes: Sizes, first_session: u64) -> Self {
        let budget = |role: Role| Budget::with(Bounds::shared(0), role.name());
        let capacity = Self {
            peers: Peers::new(0, first_session),
            submission: budget(Role::Submission),
            relay: budget(Role::Relay),
            mx: budget(Role::Mx),
            divided: Mutex::new(Divided { sizes, open: Vec::new() }),
        };
        capacity.divide(&capacity.divided());
        capacity
    }

    /// A listener of this kind is there: it gets its part.
    pub fn open(&self, role: Role) {
        let mut divided = self.divided();
        if !divided.open.contains(&role) {
            divided.open.push(role);
            self.divide(&divided);
        }
    }

    /// Divides so much from now on. What is held stays held.
    pub fn set(&self, sizes: Sizes) {
        let mut divided = self.divided();
        divided.sizes = sizes;
        self.divide(&divided);
    }

    /// The sessions of all kinds.
    #[must_use]
    pub fn peers(&self) -> &Arc<Peers> {
        &self.peers
    }

    /// The content memory of a kind.
    #[must_use]
    pub fn budget(&self, role: Role) -> &Arc<Budget> {
        match role {
            Role::Submission => &self.submission,
            Role::Relay => &self.relay,
            Role::Mx => &self.mx,
        }
    }

    fn divided(&self) -> MutexGuard<'_, Divided> {
        self.divided.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn divide(&self, Divided { sizes, open }: &Divided) {
        let weight = |role: Role| match role {
            _ if !open.contains(&role) => 0,
            Role::Submission | Role::Mx => 2,
            Role::Relay => 1,
        };
        let weights: usize = Role::ALL.map(weight).iter().sum();
        let part = |all: usize, role: Role| all / weights.max(1) * weight(role);
        for role in Role::ALL {
            let largest = match role {
                Role::Mx => sizes.mx_message_bytes_max,
                Role::Submission | Role::Relay => sizes.message_bytes_max,
            };
            let largest = usize::try_from(largest).unwrap_or(usize::MAX);
            // However little there is, a message of the largest size can be received.
            let all = part(sizes.bytes_max, role).max(largest);
            let each = if role == Role::Mx { (all / STRANGER_PART).max(largest) } else { usize::MAX };
            self.budget(role).set(Bounds { all, each, alone: largest });
            self.peers.set_sessions_max(role, part(sizes.sessions_max, role).max(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_goes_to_the_listeners_that_are_open() {
        let sizes =
            Sizes { sessions_max: 1_000, bytes_max: 1_000, message_bytes_max: 10, mx_message_bytes_max: 20 };
        let capacity = Capacity::new(sizes, 1);
        let bytes = |capacity: &Capacity| Role::ALL.map(|role| capacity.budget(role).free());
        capacity.open(Role::Submission);
        assert_eq!(bytes(&capacity), [1_000, 10, 20]);
        capacity.open(Role::Mx);
        capacity.open(Role::Mx);
        assert_eq!(bytes(&capacity), [500, 10, 500]);
        capacity.open(Role::Relay);
        assert_eq!(bytes(&capacity), [400, 200, 400]);
        capacity.set(Sizes { bytes_max: 15, ..sizes });
        assert_eq!(bytes(&capacity), [10, 10, 20], "one message fits at least");
    }
}
