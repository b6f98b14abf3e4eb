//! Joins and decodes encoded words (RFC 2047).
//!
//! Each word must hold whole characters (RFC 2047 5), but many mail clients split characters between words. Adjacent
//! words of one character set are joined before decoding, so that split characters are complete. Stateful character
//! sets such as ISO-2022-JP are not joined, because each word starts in the initial state.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::parsers::MessageStream;

use crate::header::HeaderField;
use crate::mime::LENIENT_BASE64;

/// Maximum length of an encoded word: RFC 2047 2 allows 75 characters, but clients write longer ones.
const WORD_BYTES_MAX: usize = 1_000;

/// `=?charset?encoding?text?=`
struct EncodedWord<'a> {
    charset: &'a [u8],
    is_base64: bool,
    text: &'a [u8],
    length: usize,
}

/// Joins adjacent encoded words of a header; without any, the header is borrowed unchanged.
pub(crate) fn join_adjacent_words(header: &[u8]) -> Cow<'_, [u8]> {
    let mut out: Vec<u8> = Vec::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memmem::find(header.get(at..).unwrap_or_default(), b"=?") {
        at += found;
        let Some(first) = parse_word(header.get(at..).unwrap_or_default()).filter(|word| !has_states(word.charset))
        else {
            at += 2;
            continue;
        };
        let (run, end) = adjacent_words(header, at, first);
        if let [first, _, ..] = run.as_slice()
            && let Some(text) = joined_text(&run)
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

/// Decodes the encoded words anywhere in a text.
pub(crate) fn decode_text(text: &str) -> String {
    let whole = join_adjacent_words(text.as_bytes());
    let mut rest = whole.as_ref();
    let (mut out, mut after_word) = (String::new(), false);
    while !rest.is_empty() {
        let start = memchr::memmem::find(rest, b"=?").unwrap_or(rest.len());
        let (plain, tail) = rest.split_at(start);
        let found = parse_word(tail);
        // Blanks between encoded words are dropped (RFC 2047 6.2).
        if !(after_word && found.is_some() && plain.trim_ascii().is_empty()) {
            out.push_str(&String::from_utf8_lossy(plain));
        }
        after_word = found.is_some();
        rest = match found {
            Some(word) => {
                out.push_str(&word.decoded());
                tail.get(word.length..).unwrap_or_default()
            }
            None => {
                let (mark, tail) = tail.split_at(tail.len().min(2));
                out.push_str(&String::from_utf8_lossy(mark));
                tail
            }
        };
    }
    out
}

impl EncodedWord<'_> {
    fn decoded(&self) -> String {
        let bytes = match self.is_base64 {
            true => LENIENT_BASE64.decode(self.text).unwrap_or_default(),
            false => {
                let spaced: Vec<u8> = self.text.iter().map(|byte| if *byte == b'_' { b' ' } else { *byte }).collect();
                quoted_printable_decode(&spaced).unwrap_or(spaced)
            }
        };
        // RFC 2231 5: a language may follow the character set.
        let charset = self.charset.split(|byte| *byte == b'*').next().unwrap_or_default();
        match charset_decoder(charset) {
            Some(decode) => decode(&bytes),
            None => String::from_utf8_lossy(&bytes).into_owned(),
        }
    }
}

/// Collects adjacent words with the same character set and encoding, and returns the end of the last one.
fn adjacent_words<'a>(header: &'a [u8], start: usize, first: EncodedWord<'a>) -> (Vec<EncodedWord<'a>>, usize) {
    let mut end = start + first.length;
    let mut run = vec![first];
    loop {
        let rest = header.get(end..).unwrap_or_default();
        let folding = folding_length(rest);
        let is_same_encoding = |next: &EncodedWord<'_>| {
            run.last()
                .is_some_and(|last| last.charset.eq_ignore_ascii_case(next.charset) && last.is_base64 == next.is_base64)
        };
        match parse_word(rest.get(folding..).unwrap_or_default()).filter(|next| folding > 0 && is_same_encoding(next)) {
            None => return (run, end),
            Some(next) => {
                end += folding + next.length;
                run.push(next);
            }
        }
    }
}

/// Returns whether a character set is stateful (RFC 1468, RFC 1842, RFC 2152), or its texts begin with a byte order
/// mark.
fn has_states(charset: &[u8]) -> bool {
    let is =
        |prefix: &str| charset.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()));
    ["iso-2022", "csiso2022", "hz", "utf-7", "utf-16", "utf-32", "ucs-"].into_iter().any(is)
}

/// Length of the blanks at the start, with at most one fold (RFC 5322 2.2.3). Returns 0 if there are none, or if a new
/// field or the end of the header follows.
fn folding_length(rest: &[u8]) -> usize {
    let blanks = |from: usize| {
        let rest = rest.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
    };
    let first = blanks(0);
    let broken = match rest.get(first..).unwrap_or_default() {
        [b'\r', b'\n', ..] => first + 2,
        [b'\n', ..] => first + 1,
        _ => return first,
    };
    let after = blanks(broken);
    if after > broken { after } else { 0 }
}

/// The joined text of the words, encoded; `None` if a word cannot be decoded.
fn joined_text(run: &[EncodedWord<'_>]) -> Option<Vec<u8>> {
    if run.iter().all(|word| !word.is_base64) {
        return Some(run.iter().flat_map(|word| word.text).copied().collect());
    }
    let each = |texts: &[&[u8]]| {
        let mut bytes = Vec::new();
        texts.iter().try_for_each(|text| LENIENT_BASE64.decode_vec(text, &mut bytes)).ok().map(|()| bytes)
    };
    let texts: Vec<&[u8]> = run.iter().map(|word| word.text).collect();
    // Some encoders omit padding, and some split groups of four characters. The variant that yields valid UTF-8 is
    // used.
    let separate = each(&texts).filter(|bytes| std::str::from_utf8(bytes).is_ok());
    let bytes = separate.or_else(|| each(&[&texts.concat()])).or_else(|| each(&texts))?;
    Some(STANDARD.encode(bytes).into_bytes())
}

/// Parses the word at the start.
fn parse_word(rest: &[u8]) -> Option<EncodedWord<'_>> {
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
    (is_closed && is_token(charset) && is_token(text)).then(|| EncodedWord {
        charset,
        is_base64,
        text,
        length: charset.len() + text.len() + 7,
    })
}

/// The value of a field, unfolded (RFC 5322 2.2.3) and with encoded words decoded (RFC 2047).
pub fn decode_value(message: &[u8], field: &HeaderField) -> Result<String, &'static str> {
    let bytes = message.get(field.name_end..field.end).unwrap_or_default();
    let value = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8")?;
    let value: String = value.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let value = value.trim_start_matches([' ', '\t']);
    let value = value.strip_prefix(':').unwrap_or(value).trim();
    Ok(decode_encoded_words(value))
}

/// Decodes the encoded words in a text. Blanks between two encoded words are dropped (RFC 2047 6.2); all others stay,
/// so that JSON is unchanged.
pub fn decode_encoded_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut follows_word) = (text, false);
    while let Some((before, word)) = rest.find("=?").and_then(|at| rest.split_at_checked(at)) {
        if let Some((decoded, tail)) = decode_encoded_word(word) {
            if !follows_word || !before.bytes().all(|b| matches!(b, b' ' | b'\t')) {
                out.push_str(before);
            }
            out.push_str(&decoded);
            (rest, follows_word) = (tail, true);
        } else {
            out.push_str(before);
            out.push_str("=?");
            (rest, follows_word) = (word.get(2..).unwrap_or_default(), false);
        }
    }
    out.push_str(rest);
    out
}

/// Decodes the encoded word at the start of a text, and returns the text behind it.
fn decode_encoded_word(text: &str) -> Option<(String, &str)> {
    let reach = text.len().min(WORD_BYTES_MAX);
    let mut stream = MessageStream::new(text.as_bytes().get(1..reach)?);
    let decoded = stream.decode_rfc2047()?;
    let (word, tail) = text.split_at_checked(1 + stream.offset())?;
    word.ends_with("?=").then_some((decoded, tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_split_between_words_is_joined() {
        for (header, whole) in [
            ("S: =?utf-8?Q?gr=C3?=\r\n =?UTF-8?q?=BC=C3=9F?= x\r\n", "S: =?utf-8?Q?gr=C3=BC=C3=9F?= x\r\n"),
            ("S: =?utf-8?B?Z3LD?= =?utf-8?B?vMOf?=\r\n", "S: =?utf-8?B?Z3LDvMOf?=\r\n"),
            ("S: =?utf-8?B?4pI=?=\t=?utf-8?b?tw==?= =?utf-8?B?4pI=?=", "S: =?utf-8?B?4pK34pI=?="),
            ("S: =?utf-8?B?Z3L?= =?utf-8?B?DvMOf?=", "S: =?utf-8?B?Z3LDvMOf?="),
        ] {
            assert_eq!(join_adjacent_words(header.as_bytes()), whole.as_bytes());
        }
    }

    #[test]
    fn encoded_words_are_decoded_anywhere() {
        for (text, expected) in [
            ("plain =? text", "plain =? text"),
            ("=?utf-8?Q?a_b?=.pdf", "a b.pdf"),
            ("Re: =?utf-8?B?w6Q=?= =?iso-8859-1*de?Q?=F6?= !", "Re: äö !"),
            ("=?ISO-2022-JP?B?GyRCJCobKEI=?= =?ISO-2022-JP?B?GyRCJCobKEI=?=", "おお"),
            ("=?x?Q?a=zz?=", "a=zz"),
        ] {
            assert_eq!(decode_text(text), expected, "{text}");
        }
    }

    #[test]
    fn other_words_are_not_joined() {
        for header in [
            "S: plain\r\nT: =?utf-8?Q?one?=\r\n",
            // Other character sets, other encodings, text between words, no blank between words, words in different
            // fields.
            "S: =?utf-8?Q?a?= =?iso-8859-1?Q?b?=\r\n",
            "S: =?utf-8?Q?a?= =?utf-8?B?Yg==?=\r\n",
            "S: =?utf-8?Q?a?= and =?utf-8?Q?b?=\r\n",
            "S: =?utf-8?Q?a?==?utf-8?Q?b?=\r\n",
            "S: =?utf-8?Q?a?=\r\n=?utf-8?Q?b?=: c\r\n",
            "S: =?utf-8?Q?a\r\nT: b?= =?utf-8?Q?c",
            "S: =?utf-8?Q?a?=\r\n\r\n =?utf-8?Q?b?=\r\nReply-To: c@d.example\r\n",
            "S: =?utf-8?Q?a?=\r\n \r\n =?utf-8?Q?b?=\r\n",
            // Stateful character sets.
            "S: =?ISO-2022-JP?B?GyRCJCobKEI=?=\r\n =?ISO-2022-JP?B?GyRCJCobKEI=?=\r\n",
            "=? =?? =?a?Q =?a?Q? =?a?X?b?= =?a?B?*?= =?a?B?*?=",
        ] {
            assert!(matches!(join_adjacent_words(header.as_bytes()), Cow::Borrowed(_)), "{header}");
        }
    }
}
