//! Senders of the load: addresses whose domains publish SPF, a DKIM key and a DMARC policy (`load names --key`), each
//! with one message that is built and signed before the measurement starts.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use dns::dkim_key::DkimKey;
use dns::sign::Signer;
use jiff::Timestamp;
use message::address::{Address, DomainName};

/// DKIM selector of every domain.
pub(crate) const SELECTOR: &str = "bench";
/// The line that message bodies repeat.
const LINE: &[u8] = b"The quick brown fox jumps over the lazy dog, again and again and again.\r\n";

/// An address and the message that it sends.
pub(crate) struct Sender {
    pub(crate) address: String,
    /// Header, body and the final dot.
    pub(crate) content: Vec<u8>,
}

/// Reads the RSA key of all domains from a PEM file.
pub(crate) fn key(path: &Path) -> Result<DkimKey, Box<dyn Error>> {
    Ok(DkimKey::rsa_from_pem(&std::fs::read_to_string(path)?)?)
}

/// Creates `count` senders; `{s}` in `from` is replaced by the sender's number. With a key, each message is signed.
pub(crate) fn senders(
    from: &str,
    count: usize,
    size_bytes: usize,
    key: Option<&DkimKey>,
) -> Result<Vec<Sender>, Box<dyn Error>> {
    (0..count.max(1))
        .map(|number| {
            let address = from.replace("{s}", &number.to_string());
            let message = message(&address, key.is_some().then_some(number), size_bytes);
            let mut content = key.map(|key| signature(&address, key, &message)).transpose()?.unwrap_or_default();
            content.extend_from_slice(&message);
            content.extend_from_slice(b".\r\n");
            Ok(Sender { address, content })
        })
        .collect()
}

/// Builds a message of `size_bytes`. A message to be signed has a Message-ID, as usual for DKIM signers.
fn message(from: &str, id: Option<usize>, size_bytes: usize) -> Vec<u8> {
    let mut head = format!(
        "From: <{from}>\r\nTo: <load@bench.test>\r\nDate: Mon, 01 Jan 2024 00:00:00 +0000\r\n\
         Subject: load\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
    );
    if let Some(id) = id {
        // Writing to a String does not fail.
        let _ = write!(head, "Message-ID: <{id}.{from}>\r\n");
    }
    let mut text = head.into_bytes();
    text.extend_from_slice(b"\r\n");
    while text.len() + 4 <= size_bytes {
        let space = size_bytes - text.len();
        text.extend_from_slice(LINE.get(..space.min(LINE.len()) - 2).unwrap_or_default());
        text.extend_from_slice(b"\r\n");
    }
    text
}

/// The DKIM-Signature field for the domain of the address.
fn signature(address: &str, key: &DkimKey, message: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let domain: DomainName = address.parse::<Address>()?.domain().clone();
    let signer = Signer::new(&domain, Some((SELECTOR, key)), None)?;
    Ok(signer.sign(&[message], now())?)
}

#[expect(clippy::disallowed_methods, reason = "a signature has the time at which it was made")]
fn now() -> Timestamp {
    Timestamp::now()
}
