//! User codes of the device authorization grant (RFC 8628 6.1): eight consonants, which form no words.

/// 20 letters: 20^8 codes, 34 bits.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
const CHARS: usize = 8;

/// Makes a code from random bytes.
pub fn make(random: [u8; 32]) -> String {
    // Bytes from 240 on would make the first letters more likely. 32 bytes have eight smaller ones but for one case in
    // 10^20; then the code is shorter, and no user finds it.
    let usable = random.iter().filter(|byte| **byte < 240).take(CHARS);
    usable.map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect()
}

/// Reads a code as people type it; `None` if it has other letters or another length.
pub fn parse(text: &str) -> Option<String> {
    let code: String =
        text.chars().filter(|c| !matches!(c, ' ' | '-')).take(CHARS + 1).map(|c| c.to_ascii_uppercase()).collect();
    (code.len() == CHARS && code.bytes().all(|byte| LETTERS.contains(&byte))).then_some(code)
}

/// The code as it is shown: `WDJB-MJHT`.
pub fn display(code: &str) -> String {
    match code.split_at_checked(CHARS / 2) {
        Some((first, second)) => format!("{first}-{second}"),
        None => code.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_people_type_them() {
        let code = make([7; 32]);
        assert_eq!(code.len(), CHARS);
        assert_eq!(parse(&display(&code)), Some(code.clone()));
        assert_eq!(parse(&format!(" {} ", code.to_lowercase())), Some(code));
        for bad in ["", "BCDFGHJ", "BCDFGHJKL", "ABCDEFGH", "BCDF GHJ\u{df}", "12345678"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
