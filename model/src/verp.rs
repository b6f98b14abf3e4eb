//! VERP: a signed envelope sender at the return path host, one per recipient.
//!
//! A message to `b-{email}-{recipient}-{tag}@rp.{domain}` is a DSN or complaint about exactly one recipient. Only
//! holders of the key can create such an address (VERP, signed like BATV). The tag is 40 bits of an HMAC-SHA-256, five
//! of each of its first eight bytes. Email ids contain 80 random bits already, so guessing is infeasible.

use message::address::{Address, DomainName};
use subtle::ConstantTimeEq as _;
use ulid::Ulid;

use crate::id::EmailId;
use crate::signed_token::hmac_sha256;
use crate::task::TaskId;

const TAG_CHARS: usize = 8;
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

#[derive(Clone)]
pub struct VerpKey([u8; 32]);

impl VerpKey {
    pub fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// The envelope sender for a recipient of an email, at the return path host. `None` if the host name is so long
    /// that no address fits (over 200 characters).
    pub fn address(&self, task: TaskId, host: &DomainName) -> Option<Address> {
        let email = Ulid::from_bytes(task.email.to_bytes());
        let local = format!("b-{}-{}-{}", email, task.recipient, self.tag(task)).to_ascii_lowercase();
        Address::new(&local, host.clone()).ok()
    }

    /// Verifies an envelope sender; `None` if it has another form or a wrong tag.
    pub fn verify(&self, address: &Address) -> Option<TaskId> {
        let mut parts = address.local_part().strip_prefix("b-").or(address.local_part().strip_prefix("B-"))?.split('-');
        let email = Ulid::from_string(parts.next()?).ok()?;
        let recipient = parts.next()?.parse().ok()?;
        let received_tag = parts.next()?.to_ascii_lowercase();
        let task = TaskId { email: EmailId::from_bytes(email.to_bytes()), recipient };
        let is_complete = parts.next().is_none();
        let is_valid: bool = self.tag(task).as_bytes().ct_eq(received_tag.as_bytes()).into();
        (is_complete && is_valid).then_some(task)
    }

    /// The sending domain of a return path: its host without the leading label.
    pub fn sending_domain(address: &Address) -> Option<DomainName> {
        let labels = address.domain().as_str().split_once('.')?;
        (labels.0 == crate::domain_setup::RETURN_PATH_LABEL).then(|| labels.1.parse().ok()).flatten()
    }

    fn tag(&self, task: TaskId) -> String {
        let (email, recipient) = (task.email.to_bytes(), task.recipient.to_be_bytes());
        let tag = hmac_sha256(&self.0, &[b"verp".as_slice(), &email, &recipient]);
        tag.iter().take(TAG_CHARS).map(|b| char::from(BASE32[usize::from(b % 32)])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[test]
    fn only_own_return_paths_are_parsed() {
        let key = VerpKey::new([1; 32]);
        let task = TaskId { email: EmailId::new(Timestamp::from_second(1_700_000_000).unwrap(), 99), recipient: 3 };
        let address = key.address(task, &"rp.example.com".parse().unwrap()).unwrap();
        assert_eq!(key.verify(&address), Some(task));
        // Some servers change the case of the address.
        let shouted: Address = address.to_string().to_ascii_uppercase().parse().unwrap();
        assert_eq!(key.verify(&shouted), Some(task));
        assert_eq!(VerpKey::new([2; 32]).verify(&address), None);
        let other = address.to_string().replace("-3-", "-4-").parse().unwrap();
        assert_eq!(key.verify(&other), None);
    }
}
