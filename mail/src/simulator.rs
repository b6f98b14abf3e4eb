//! The domain of recipients that behave: `postrider dev` answers for them as mail hosts do.

use crate::address::Address;

/// Their domain (RFC 6761 6.2: nobody's).
pub const DOMAIN: &str = "simulator.postrider.test";

/// Whether an address is one of them. These are not suppressed for what happens to mail to them: there is no mailbox, and a
/// developer sends to them again.
#[must_use]
pub fn is_simulated(address: &Address) -> bool {
    address.domain().as_str() == DOMAIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_domain_itself_is_simulated() {
        let is = |address: &str| is_simulated(&address.parse().unwrap());
        assert!(is("bounced+1@Simulator.Postrider.Test"));
        assert!(!is("bounced@sub.simulator.postrider.test") && !is("bounced@example.com"));
    }
}
