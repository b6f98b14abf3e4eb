//! The style sheets: one palette, and the parts of the kit.
//!
//! ```text
//! BASE      palette, reset                               every page
//! CONTROLS  headings, cards, buttons, fields, notices    every page but the API reference
//! KIT       tables, lists of facts, charts               dashboard and partner portal
//! ```

use sha2::{Digest as _, Sha256};

/// The palette in light and dark, and the reset.
pub const BASE: &str = include_str!("../assets/base.css");
/// Headings, cards, buttons, fields, badges and notices.
pub const CONTROLS: &str = include_str!("../assets/controls.css");
/// Tables, facts, tiles, charts and empty states.
pub const KIT: &str = include_str!("../assets/kit.css");
/// The layout of a page that is one card.
pub const MESSAGE: &str = include_str!("../assets/message.css");

const HASH_BYTES: usize = 8;

/// Joins style sheets, without comments and indentation.
pub fn join(sheets: &[&str]) -> String {
    strip(&sheets.concat())
}

/// The first bytes of SHA-256 in hexadecimal: for names of files that change with the content.
pub fn hex_hash(content: &[u8]) -> String {
    Sha256::digest(content).iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

fn strip(source: &str) -> String {
    let (mut stripped, mut rest) = (String::new(), source);
    while let Some((before, after)) = rest.split_once("/*") {
        stripped.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, tail)| tail);
    }
    stripped.push_str(rest);
    stripped.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sheets_are_stripped_and_named_by_content() {
        assert_eq!(join(&["a {\n  b: c; /* d */\n}\n", "e { f: g; }\n"]), "a {\nb: c;\n}\ne { f: g; }");
        assert_ne!(hex_hash(b"a"), hex_hash(b"b"));
    }

    /// Colours are written in the palette, so that both schemes have them.
    #[test]
    fn every_variable_is_in_the_palette() {
        let all = join(&[BASE, CONTROLS, KIT, MESSAGE]);
        for part in all.split("var(--").skip(1) {
            let name = part.split([')', ',']).next().unwrap_or_default();
            assert!(all.contains(&format!("--{name}:")), "--{name}");
        }
        assert!(!all.contains("</") && !all.contains("@import") && !all.contains("url("), "a page may contain it");
    }
}
