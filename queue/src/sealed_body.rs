//! Stored bodies of emails with a secret link: sealed with the server's key file, so that a copy of the store, such as a
//! backup, signs nobody in.

use bytes::Bytes;
use dns::secrets::{SealError, Vault};
use model::id::{AccountId, EmailId};

/// The first byte of a sealed body. A message begins with the name of a header field, so never with NUL.
const MARK: u8 = 0;

/// Seals a body for the row of its email.
pub(crate) fn seal(vault: &Vault, account: AccountId, id: EmailId, chunks: &[Bytes]) -> Result<Bytes, SealError> {
    let sealed = vault.seal(&row_id(account, id), &chunks.concat())?;
    Ok([&[MARK], sealed.as_slice()].concat().into())
}

/// Returns the message in a stored body, sealed or not.
///
/// # Errors
/// The body was sealed with another key file, or for another email.
pub fn open(vault: &Vault, account: AccountId, id: EmailId, stored: Bytes) -> Result<Bytes, SealError> {
    match stored.split_first() {
        Some((&MARK, sealed)) => vault.open(&row_id(account, id), sealed).map(Bytes::from),
        _ => Ok(stored),
    }
}

fn row_id(account: AccountId, id: EmailId) -> Vec<u8> {
    [b"body".as_slice(), &account.to_bytes(), &id.to_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    #[test]
    fn a_sealed_body_opens_for_its_email_only() {
        let vault = Vault::new(&[4; 32]).unwrap();
        let account = AccountId::new(Timestamp::UNIX_EPOCH, 1);
        let email = |number| EmailId::new(Timestamp::UNIX_EPOCH, number);
        let chunks = [Bytes::from_static(b"Subject: x\r\n\r\n"), Bytes::from_static(b"secret\r\n")];
        let sealed = seal(&vault, account, email(1), &chunks).unwrap();
        assert!(memchr::memmem::find(&sealed, b"secret").is_none());
        assert_eq!(open(&vault, account, email(1), sealed.clone()).unwrap(), chunks.concat());
        assert!(open(&vault, account, email(2), sealed).is_err());
        let plain = Bytes::from_static(b"Subject: x\r\n\r\ny");
        assert_eq!(open(&vault, account, email(1), plain.clone()).unwrap(), plain);
    }
}
