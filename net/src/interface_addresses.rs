//! Addresses of this host's network interfaces, in a cache: they change rarely, and each listing asks the kernel.

use std::collections::HashSet;
use std::io;
use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// Age at which the list is read again.
const REFRESH_AFTER: SignedDuration = SignedDuration::from_secs(30);

/// The addresses of this host's network interfaces.
#[derive(Debug, Default)]
pub struct InterfaceAddresses {
    list: Mutex<AddressList>,
}

#[derive(Debug, Default)]
struct AddressList {
    addresses: HashSet<IpAddr>,
    read_at: Option<Timestamp>,
}

impl InterfaceAddresses {
    /// Returns whether an interface of this host has the address, or had it less than 30 seconds ago.
    #[must_use]
    pub fn contains(&self, address: IpAddr, now: Timestamp) -> bool {
        let mut list = self.list.lock();
        list.refresh(now, || Ok(if_addrs::get_if_addrs()?.iter().map(if_addrs::Interface::ip).collect()));
        list.addresses.contains(&address)
    }
}

impl AddressList {
    /// Reads the list if it is old. After an error the former list stays until the next time.
    fn refresh(&mut self, now: Timestamp, read: impl FnOnce() -> io::Result<HashSet<IpAddr>>) {
        if self.read_at.is_some_and(|at| now.duration_since(at).abs() < REFRESH_AFTER) {
            return;
        }
        self.read_at = Some(now);
        match read() {
            Ok(addresses) => self.addresses = addresses,
            Err(error) => tracing::warn!(%error, "cannot list the addresses of this host"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_at_most_twice_a_minute() {
        let (mut list, mut reads) = (AddressList::default(), 0);
        for second in 0..60 {
            list.refresh(Timestamp::from_second(second).unwrap(), || {
                reads += 1;
                Ok(HashSet::new())
            });
        }
        assert_eq!(reads, 2);
    }

    #[test]
    fn an_error_keeps_the_former_list() {
        let (mut list, address) = (AddressList::default(), IpAddr::from([192, 0, 2, 1]));
        list.refresh(Timestamp::UNIX_EPOCH, || Ok(HashSet::from([address])));
        list.refresh(Timestamp::UNIX_EPOCH + REFRESH_AFTER, || Err(io::ErrorKind::PermissionDenied.into()));
        assert!(list.addresses.contains(&address));
    }

    #[test]
    fn interfaces_are_found() {
        let addresses = InterfaceAddresses::default();
        assert!(addresses.contains(IpAddr::from([127, 0, 0, 1]), Timestamp::UNIX_EPOCH));
        assert!(!addresses.contains(IpAddr::from([192, 0, 2, 1]), Timestamp::UNIX_EPOCH));
    }
}
