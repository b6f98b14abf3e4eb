//! Compression of rows: how the values of the index and the batches of the log are stored.
//!
//! ```text
//! value in the index, in the spaces that have many or large rows (SPACES)
//!   as it is            if its first byte is not F5
//!   F5 00 value         a value whose first byte is F5
//!   F5 01 size block    compressed with dictionary 1; the value's size is in LEB128
//! value in another space: as it is
//! ```
//!
//! Rows are JSON, of which a dictionary has most, and their ids are those of their key, so that a row takes a third of
//! its size. The dictionary (`row_compression/dictionary-1.txt`) and the hint that a key gives are part of the format
//! and never change; better ones get the next number. A new number needs a new format of index and log (index.rs,
//! record.rs), so that earlier versions refuse the directory instead of failing to read its rows.
//!
//! Format 1 of the index has all values as they are. In those spaces none of them begins with F5, because they are JSON
//! or a key. A space can be added only if that is true for it, too, and together with a new format, because earlier
//! versions do not decompress it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::LazyLock;

use bytes::Bytes;

use super::lz77::{Dictionary, Encoder, decompress};
use crate::engine::VALUE_BYTES_MAX;
use crate::key::Space;

/// First byte of a value that is not stored as it is.
const MARKER: u8 = 0xF5;
const AS_IT_IS: u8 = 0;
/// Number of the dictionary that is written.
pub(crate) const DICTIONARY: u8 = 1;
/// Smaller values hardly gain anything.
const VALUE_BYTES_MIN: usize = 40;
/// Spaces whose values are compressed. Never remove one: its rows could no longer be read. See the top on adding one.
const SPACES: [Space; 19] = [
    Space::Email,
    Space::Recipient,
    Space::Attempt,
    Space::Event,
    Space::Task,
    Space::Idempotency,
    Space::TemplateVersion,
    Space::Suppression,
    Space::OptOut,
    Space::RequestLog,
    Space::EventLog,
    Space::WebhookDelivery,
    Space::WebhookDeliveryAttempt,
    Space::ProductEvent,
    Space::AutomationRun,
    Space::ReceivedEmail,
    Space::DmarcReport,
    Space::Visit,
    Space::Deadline,
];
/// Size of an id in a key, and of its text without the prefix.
const ID_BYTES: usize = 16;
const ID_CHARACTERS: usize = 26;

static DICTIONARY_1: LazyLock<Dictionary> =
    LazyLock::new(|| Dictionary::new(include_bytes!("row_compression/dictionary-1.txt")));

thread_local! {
    static ENCODER: RefCell<Encoder> = RefCell::new(Encoder::new());
}

/// Whether the value of a key may be compressed, by the key's first byte.
const IS_COMPRESSED: [bool; 256] = {
    let mut table = [false; 256];
    let mut number = 0;
    while number < SPACES.len() {
        table[SPACES[number] as usize] = true;
        number += 1;
    }
    table
};

fn is_compressed(key: &[u8]) -> bool {
    key.first().is_some_and(|space| IS_COMPRESSED[usize::from(*space)])
}

/// The hint for the value of a key: the key, and the ids that it has at the places where most keys have them, as text.
fn hint(key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 4 * ID_CHARACTERS);
    out.extend_from_slice(key);
    let from_end = |bytes: usize| key.len().checked_sub(bytes);
    // A task's key ends with account, due time, email and recipient. The other keys begin with account and ids.
    let places = match Space::Task.holds(key) {
        true => [from_end(42), from_end(18), None],
        false => [Some(1), Some(17), Some(33)],
    };
    let id_at = |at: usize| key.get(at..)?.first_chunk::<ID_BYTES>();
    for id in places.into_iter().flatten().filter_map(id_at) {
        push_id(&mut out, id);
    }
    if let Some(id) = id_at(17).filter(|_| Space::Email.holds(key)) {
        // The Message-ID begins with the email's id.
        let start = out.len();
        push_id(&mut out, id);
        out.iter_mut().skip(start).for_each(u8::make_ascii_lowercase);
    }
    out
}

/// Appends the text of an id: Crockford's base 32.
fn push_id(out: &mut Vec<u8>, id: &[u8; ID_BYTES]) {
    const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let number = u128::from_be_bytes(*id);
    let digit = |place: usize| DIGITS[(number >> (5 * place)) as usize % DIGITS.len()];
    out.extend((0..ID_CHARACTERS).rev().map(digit));
}

/// Returns the stored form of a value.
pub(crate) fn to_stored<'a>(key: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
    if !is_compressed(key) {
        return Cow::Borrowed(value);
    }
    if value.len() >= VALUE_BYTES_MIN
        && let Some(stored) = compress_value(key, value)
    {
        return Cow::Owned(stored);
    }
    match value.first() {
        Some(&MARKER) => Cow::Owned([&[MARKER, AS_IT_IS], value].concat()),
        _ => Cow::Borrowed(value),
    }
}

fn compress_value(key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    ENCODER.with_borrow_mut(|encoder| {
        let block = encoder.compress(&DICTIONARY_1, &hint(key), value)?;
        let mut out = Vec::with_capacity(block.len() + 7);
        out.extend_from_slice(&[MARKER, DICTIONARY]);
        let mut size_bytes = value.len();
        while size_bytes >= 0x80 {
            out.push(size_bytes as u8 | 0x80);
            size_bytes >>= 7;
        }
        out.push(size_bytes as u8);
        out.extend_from_slice(block);
        (out.len() < value.len()).then_some(out)
    })
}

/// Returns the value of a stored form.
///
/// A damaged stored form is returned as it is. No row begins like it, so whoever decodes the row finds the damage. Other
/// rows of a scan remain readable, a check of the row compares what was read, and a backup contains it.
pub(crate) fn from_stored<'a>(key: &[u8], stored: &'a [u8]) -> Cow<'a, [u8]> {
    let [MARKER, rest @ ..] = stored else { return Cow::Borrowed(stored) };
    if !is_compressed(key) {
        return Cow::Borrowed(stored);
    }
    let value = match rest {
        [AS_IT_IS, value @ ..] => Some(Cow::Borrowed(value)),
        [DICTIONARY, rest @ ..] => read_size(rest)
            .and_then(|(size_bytes, block)| decompress(&DICTIONARY_1, &hint(key), block, size_bytes))
            .map(Cow::Owned),
        _ => None,
    };
    value.unwrap_or(Cow::Borrowed(stored))
}

/// Returns whether a value that was read is a damaged stored form, because no row begins like one.
pub(crate) fn is_damaged(key: &[u8], value: &[u8]) -> bool {
    is_compressed(key) && value.first() == Some(&MARKER)
}

/// Like [`from_stored`], as bytes of their own.
pub(crate) fn value_from_stored(key: &[u8], stored: &[u8]) -> Bytes {
    match from_stored(key, stored) {
        Cow::Borrowed(value) => Bytes::copy_from_slice(value),
        Cow::Owned(value) => Bytes::from(value),
    }
}

/// Reads a size in LEB128, at most that of a value.
fn read_size(mut rest: &[u8]) -> Option<(usize, &[u8])> {
    let mut size_bytes = 0;
    for shift in [0, 7, 14, 21] {
        let (byte, after) = rest.split_first()?;
        rest = after;
        size_bytes |= usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return (size_bytes <= VALUE_BYTES_MAX).then_some((size_bytes, rest));
        }
    }
    None
}

/// Compresses the entries of a batch, and gives the block to `write`. Returns false if that would not save space.
pub(crate) fn compress_entries(entries: &[u8], write: impl FnOnce(&[u8])) -> bool {
    ENCODER.with_borrow_mut(|encoder| encoder.compress(&DICTIONARY_1, &[], entries).map(write).is_some())
}

/// Decompresses the entries of a batch. `None` if the block is damaged or a newer version wrote it.
pub(crate) fn decompress_entries(dictionary: u8, block: &[u8], size_bytes: usize) -> Option<Vec<u8>> {
    (dictionary == DICTIONARY).then(|| decompress(&DICTIONARY_1, &[], block, size_bytes)).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::key;

    const EMAIL_ID: [u8; 16] =
        [0x01, 0xA2, 0x15, 0x71, 0x07, 0x66, 0, 0x01, 0xFE, 0xE0, 0xAB, 0x1C, 0x36, 0x4A, 0xFA, 0x9D];

    fn email_key() -> Bytes {
        key(Space::Email).id([7; 16]).id(EMAIL_ID).build()
    }

    fn round_trip(key: &[u8], value: &[u8]) -> usize {
        let stored = to_stored(key, value);
        assert_eq!(from_stored(key, &stored), value);
        assert_eq!(value_from_stored(key, &stored), value);
        stored.len()
    }

    /// The rows of a golden file.
    fn golden(name: &str) -> Vec<String> {
        let file = format!("{}/tests/golden/rows/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn rows_take_less_than_half() {
        let keys = [
            ("email.email", email_key()),
            ("recipient.recipient", key(Space::Recipient).id([7; 16]).id(EMAIL_ID).u16(0).build()),
            ("attempt.attempt", key(Space::Attempt).id([7; 16]).id(EMAIL_ID).u16(0).u32(1).build()),
            ("event.event", key(Space::Event).id([7; 16]).id(EMAIL_ID).id(EMAIL_ID).build()),
            ("task.task", key(Space::Task).u16(1).text("example.com").id([7; 16]).u64(0).id(EMAIL_ID).u16(0).build()),
            ("received.received", key(Space::ReceivedEmail).id([7; 16]).u64(7).build()),
        ];
        for (name, row_key) in keys {
            let rows = golden(name);
            let before: usize = rows.iter().map(String::len).sum();
            let after: usize = rows.iter().map(|row| round_trip(&row_key, row.as_bytes())).sum();
            // The ids of these rows are not those of the key.
            assert!(after * 100 < before * 65, "{name}: {before} bytes take {after}");
            assert!(rows.iter().all(|row| round_trip(&row_key, row.as_bytes()) <= row.len()));
        }
    }

    #[test]
    fn ids_of_the_key_are_not_stored_again() {
        let id = model::id::EmailId::from_bytes(EMAIL_ID).to_string();
        let text = format!("{id} {} {id}", id[4..].to_ascii_lowercase());
        assert!(round_trip(&email_key(), text.as_bytes()) * 2 < text.len());
    }

    #[test]
    fn other_spaces_and_small_values_are_stored_as_they_are() {
        let row = golden("email.email").remove(0);
        let meta = key(Space::Meta).text("name").build();
        assert_eq!(to_stored(&meta, row.as_bytes()), row.as_bytes());
        for value in [&b""[..], b"1", &[MARKER], &[MARKER, DICTIONARY, 9], &[b'a'; VALUE_BYTES_MIN - 1]] {
            assert_eq!(round_trip(&meta, value), value.len());
            let escape = if value.first() == Some(&MARKER) { 2 } else { 0 };
            assert_eq!(round_trip(&email_key(), value), value.len() + escape);
        }
    }

    /// Rows that this dictionary has compressed must remain readable.
    #[test]
    fn dictionary_1_never_changes() {
        use sha2::{Digest, Sha256};
        let row = golden("email.email").remove(0);
        let digest = Sha256::digest(include_bytes!("row_compression/dictionary-1.txt"));
        assert_eq!(
            message::hexadecimal::encode(digest),
            "3eedfb9941f397dcb4de8576534fea6c07585ef5021b2cf4d7dce882ab70226b"
        );
        let stored: &[u8] =
            b"\xf5\x01\xbb\x03\x0c\xb2\x02\x80HF7YATCG8\x0b\x07\x02\x00\x1f8\xca\x02\x01\x02,\x00\x07&\x00\x02\
              \x02\x00\x07\xe2\x02\x0f\xa4\x02\x05YFrom2\xda\x03\x16}\xb6\x02\x02\xfd\x06\x0a\xb4\x02\x1c]e\
              \x02\x81, ships,\xe3\x07\x08h\x02\x0fe\x02\x01\x00\xfe\x0b\x04f\x02ov,1\x22}]\x90\x01\x04\x08Y\
              \x02\x00\xf6\x03\x0fF\x02\x03\x0f\xf8\x00\x08\x03^\x02\x02\xc3\x00\x09Y\x02\x06@\x02\x00\xa5\x08\
              \x0fF\x00\x0b\x0c\x17\x02\x103[\x02\xf0\x0214T22:13:20.4Z\x22}]";
        assert_eq!(from_stored(&email_key(), stored), row.as_bytes());
    }

    /// Rows that were compressed with a hint need the same hint, and rows of each of these spaces may be compressed.
    #[test]
    fn hints_and_spaces_never_change() {
        let hint_text = |key: &[u8]| String::from_utf8(hint(key)[key.len()..].to_vec()).unwrap();
        const ACCOUNT: &str = "070W3GE1R70W3GE1R70W3GE1R7";
        const EMAIL: &str = "01M8AQ21V6000ZXR5B3GV4NYMX";
        assert_eq!(hint_text(&email_key()), format!("{ACCOUNT}{EMAIL}{}", EMAIL.to_ascii_lowercase()));
        let event = key(Space::Event).id([7; 16]).id(EMAIL_ID).id(EMAIL_ID).build();
        assert_eq!(hint_text(&event), format!("{ACCOUNT}{EMAIL}{EMAIL}"));
        let recipient = key(Space::Recipient).id([7; 16]).id(EMAIL_ID).u16(1).build();
        assert_eq!(hint_text(&recipient), format!("{ACCOUNT}{EMAIL}"));
        let task = key(Space::Task).u16(1).text("example.com").u8(1).id([7; 16]).i64(5).id(EMAIL_ID).u16(1).build();
        assert_eq!(hint_text(&task), format!("{ACCOUNT}{EMAIL}"));
        assert_eq!(hint_text(&[Space::Task as u8]), "");
        let numbers = SPACES.map(|space| space as u8);
        assert_eq!(numbers, [16, 17, 18, 20, 24, 28, 37, 38, 41, 49, 55, 59, 60, 63, 73, 78, 84, 120, 166]);
    }

    #[test]
    fn damaged_rows_are_read_as_they_are_stored() {
        let large = b"a".repeat(1_000);
        let stored = to_stored(&email_key(), &large).into_owned();
        let is_unchanged = |stored: &[u8]| {
            let value = value_from_stored(&email_key(), stored);
            value == stored
                && is_damaged(&email_key(), &value)
                && crate::codec::decode::<model::email::Email>(&value).is_err()
        };
        assert!((1..stored.len()).all(|end| is_unchanged(&stored[..end])));
        // A backup contains it, and a restore stores it again.
        let restored = to_stored(&email_key(), &stored[..stored.len() - 1]).into_owned();
        assert_eq!(*from_stored(&email_key(), &restored), stored[..stored.len() - 1]);
        for wrong in [
            &[MARKER, DICTIONARY + 1, 1, 0x10, b'a'][..],
            &[MARKER, DICTIONARY, 0xFF, 0xFF, 0xFF, 0x7F, 0x1F, b'a', 1, 0, 255],
            &[MARKER, DICTIONARY, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1],
        ] {
            assert!(is_unchanged(wrong));
        }
    }

    proptest! {
        #[test]
        fn every_value_survives(
            row_key in prop::collection::vec(any::<u8>(), 0..80),
            space in 0_u8..=255,
            value in prop::collection::vec(prop::sample::select(&b"\xF5\x00\x01[{\"id:msg_acctemail}]"[..]), 0..600),
        ) {
            let row_key = [&[space], &row_key[..]].concat();
            round_trip(&row_key, &value);
        }

        #[test]
        fn any_stored_bytes_are_read_without_a_panic(stored in prop::collection::vec(any::<u8>(), 0..300)) {
            for head in [&[][..], &[MARKER], &[MARKER, DICTIONARY]] {
                let stored = [head, &stored].concat();
                prop_assert!(from_stored(&email_key(), &stored).len() <= VALUE_BYTES_MAX);
            }
        }
    }
}
