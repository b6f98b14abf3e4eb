//! Hexadecimal text of bytes, in lower case.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};

pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    HEXLOWER.encode(bytes.as_ref())
}

/// Decodes digits of any case; `None` if a character is no digit, or their number is odd.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_any_case_are_decoded() {
        assert_eq!(encode([0x00, 0x9a, 0xff]), "009aff");
        assert_eq!(decode("009AfF"), Some(vec![0x00, 0x9a, 0xff]));
        assert_eq!(decode(""), Some(Vec::new()));
        for bad in ["0", "0g", "+f", "0 ", "00\n", "é"] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
    }
}
