//! Encoded words that belong together (RFC 2047).
//!
//! Each word is to hold whole characters (RFC 2047 5), and many mailers cut by bytes all the same. Words of one
//! character set that stand side by side are made one word, so that what was cut is whole when it is decoded.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose::STANDARD};

/// Padding is left out now and then.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// `=?charset?encoding?text?=`
struct Word<'a> {
    charset: &'a [u8],
    is_base64: bool,
    text: &'a [u8],
    /// Its length as it is written.
    length: usize,
}

/// A header in which neighbours are one word; as it is, when it has none.
pub(super) fn joined(header: &[u8]) -> Cow<'_, [u8]> {
    let mut out: Vec<u8> = Vec::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memmem::find(header.get(at..).unwrap_or_default(), b"=?") {
        at += found;
        let Some(first) = word(header.get(at..).unwrap_or_default()) else {
            at += 2;
            continue;
        };
        let (run, end) = run(header, at, first);
        if let [first, _, ..] = run.as_slice()
            && let Some(text) = text(&run)
        {
            out.extend_from_slice(header.get(copied..at).unwrap_or_default());
            let encoding: &[u8] = if first.is_base64 { b"B" } else { b"Q" };
            for piece in [b"=?", first.charset, b"?", encoding, b"?", text.as_slice(), b"?="] {
                out.extend_from_slice(piece);
            }
            copied = end;
        }
        at = end;
    }
    if copied == 0 {
        return Cow::Borrowed(header);
    }
    out.extend_from_slice(header.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// The words from here on that are written alike, and where the last one ends.
fn run<'a>(header: &'a [u8], start: usize, first: Word<'a>) -> (Vec<Word<'a>>, usize) {
    let mut end = start + first.length;
    let mut run = vec![first];
    loop {
        let rest = header.get(end..).unwrap_or_default();
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let is_like = |next: &Word<'_>| {
            run.last().is_some_and(|last| {
                last.charset.eq_ignore_ascii_case(next.charset) && last.is_base64 == next.is_base64
            })
        };
        // An unfolded line break ends the field (RFC 5322 2.2.3).
        let is_folded = rest.get(..blanks).is_some_and(|blank| !blank.ends_with(b"\n"));
        match word(rest.get(blanks..).unwrap_or_default())
            .filter(|next| blanks > 0 && is_folded && is_like(next))
        {
            None => return (run, end),
            Some(next) => {
                end += blanks + next.length;
                run.push(next);
            }
        }
    }
}

/// What the words say together, encoded; none when one of them cannot be decoded.
fn text(run: &[Word<'_>]) -> Option<Vec<u8>> {
    if run.iter().all(|word| !word.is_base64) {
        return Some(run.iter().flat_map(|word| word.text).copied().collect());
    }
    let mut bytes = Vec::new();
    for word in run {
        LENIENT.decode_vec(word.text, &mut bytes).ok()?;
    }
    Some(STANDARD.encode(bytes).into_bytes())
}

/// The word with which this begins.
fn word(rest: &[u8]) -> Option<Word<'_>> {
    let inner = rest.strip_prefix(b"=?")?;
    let charset = inner.get(..memchr::memchr(b'?', inner)?).filter(|charset| !charset.is_empty())?;
    let [encoding, b'?', tail @ ..] = inner.get(charset.len() + 1..)? else { return None };
    let is_base64 = match encoding {
        b'B' | b'b' => true,
        b'Q' | b'q' => false,
        _ => return None,
    };
    let text = tail.get(..memchr::memchr(b'?', tail)?)?;
    let is_closed = tail.get(text.len() + 1) == Some(&b'=');
    let is_token = |bytes: &[u8]| !bytes.iter().any(u8::is_ascii_whitespace);
    (is_closed && is_token(charset) && is_token(text)).then(|| Word {
        charset,
        is_base64,
        text,
        length: charset.len() + text.len() + 7,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_cut_by_words_is_made_whole() {
        for (header, whole) in [
            ("S: =?utf-8?Q?gr=C3?=\r\n =?UTF-8?q?=BC=C3=9F?= x\r\n", "S: =?utf-8?Q?gr=C3=BC=C3=9F?= x\r\n"),
            ("S: =?utf-8?B?Z3LD?= =?utf-8?B?vMOf?=\r\n", "S: =?utf-8?B?Z3LDvMOf?=\r\n"),
            ("S: =?utf-8?B?4pI=?=\t=?utf-8?b?tw?= =?utf-8?B?4pI=?=", "S: =?utf-8?B?4pK34pI=?="),
        ] {
            assert_eq!(joined(header.as_bytes()), whole.as_bytes());
        }
    }

    #[test]
    fn what_does_not_belong_together_stays_as_it_is() {
        for header in [
            "S: plain\r\nT: =?utf-8?Q?one?=\r\n",
            // Other character sets, other encodings, words between, nothing between, fields of their own.
            "S: =?utf-8?Q?a?= =?iso-8859-1?Q?b?=\r\n",
            "S: =?utf-8?Q?a?= =?utf-8?B?Yg==?=\r\n",
            "S: =?utf-8?Q?a?= and =?utf-8?Q?b?=\r\n",
            "S: =?utf-8?Q?a?==?utf-8?Q?b?=\r\n",
            "S: =?utf-8?Q?a?=\r\n=?utf-8?Q?b?=: c\r\n",
            "S: =?utf-8?Q?a\r\nT: b?= =?utf-8?Q?c",
            "=? =?? =?a?Q =?a?Q? =?a?X?b?= =?a?B?*?= =?a?B?*?=",
        ] {
            assert!(matches!(joined(header.as_bytes()), Cow::Borrowed(_)), "{header}");
        }
    }
}
