//! Who sends: addresses whose domains publish SPF, a DKIM key and a DMARC policy (`load names --key` says what
//! they are), and for each the message that it sends, made and signed before the clock starts.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use dns::dkim_key::DkimKey;
use dns::sign::Signer;
use jiff::Timestamp;
use mail::address::{Address, DomainName};

/// The selector of every domain's key.
pub(crate) const SELECTOR: &str = "bench";
/// Text is made of it.
const LINE: &[u8] = b"The quick brown fox jumps over the lazy dog, again and again and again.\r\n";

/// An address and the message that it sends.
pub(crate) struct Sender {
    pub(crate) address: String,
    /// Headers, text, and the final dot.
    pub(crate) content: Vec<u8>,
}

/// The key of all domains, PEM in a file.
pub(crate) fn key(path: &Path) -> Result<DkimKey, Box<dyn Error>> {
    Ok(DkimKey::rsa_from_pem(&std::fs::read_to_string(path)?)?)
}

/// As many senders as told; `{s}` in `from` is the number of one. Signed with a key, if there is one.
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

/// Headers, and lines of text up to the size. What is signed has a Message-ID, as whoever signs gives one.
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
        let room = size_bytes - text.len();
        text.extend_from_slice(LINE.get(..room.min(LINE.len()) - 2).unwrap_or_default());
        text.extend_from_slice(b"\r\n");
    }
    text
}

/// The DKIM-Signature field of an address's domain.
fn signature(address: &str, key: &DkimKey, message: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let domain: DomainName = address.parse::<Address>()?.domain().clone();
    let signer = Signer::new(&domain, Some((SELECTOR, key)), None)?;
    Ok(signer.sign(&[message], now())?)
}

#[expect(clippy::disallowed_methods, reason = "a signature has the time at which it was made")]
fn now() -> Timestamp {
    Timestamp::now()
}
