//! The simulator domain: `postrider dev` simulates the mail hosts of its recipients.

use message::address::Address;

/// The simulator domain (RFC 6761 6.2: reserved for tests).
pub const DOMAIN: &str = "simulator.postrider.test";

/// Returns whether an address is simulated. Simulated addresses are never suppressed after bounces or complaints, so
/// that developers can send to them again.
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
