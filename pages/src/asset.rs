//! The style sheet and the script: one file each, with the hash of the content in the name.

use sha2::{Digest as _, Sha256};

const STYLE: &str = concat!(include_str!("../assets/base.css"), include_str!("../assets/style.css"));
const SCRIPT: &str = include_str!("../assets/script.js");
const DASHBOARD_STYLE: &str = concat!(include_str!("../assets/base.css"), include_str!("../assets/dashboard.css"));
const CONSOLE_STYLE: &str = concat!(
    include_str!("../assets/base.css"),
    include_str!("../assets/dashboard.css"),
    include_str!("../assets/console.css")
);
const DASHBOARD_SCRIPT: &str = include_str!("../../web/dashboard.js");
const HASH_BYTES: usize = 8;

/// A file that pages load.
#[derive(Debug, Clone)]
pub struct Asset {
    /// `style-0123456789abcdef.css`.
    pub name: String,
    pub media_type: &'static str,
    pub content: String,
}

impl Asset {
    #[must_use]
    pub fn style() -> Self {
        Self::new("style", "css", "text/css; charset=utf-8", strip_css(STYLE))
    }

    #[must_use]
    pub fn script() -> Self {
        Self::new("script", "js", "text/javascript; charset=utf-8", SCRIPT.to_owned())
    }

    /// The style sheet of the dashboard.
    #[must_use]
    pub fn dashboard_style() -> Self {
        Self::new("dashboard", "css", "text/css; charset=utf-8", strip_css(DASHBOARD_STYLE))
    }

    /// The style sheet of the operator's console: that of the dashboard and its own.
    #[must_use]
    pub fn console_style() -> Self {
        Self::new("console", "css", "text/css; charset=utf-8", strip_css(CONSOLE_STYLE))
    }

    /// The script of the dashboard; every page works without it.
    #[must_use]
    pub fn dashboard_script() -> Self {
        Self::new("dashboard", "js", "text/javascript; charset=utf-8", DASHBOARD_SCRIPT.to_owned())
    }

    fn new(stem: &str, extension: &str, media_type: &'static str, content: String) -> Self {
        let hash = hex_hash(content.as_bytes());
        Self { name: format!("{stem}-{hash}.{extension}"), media_type, content }
    }
}

/// The first bytes of SHA-256 in hexadecimal.
#[must_use]
pub fn hex_hash(content: &[u8]) -> String {
    Sha256::digest(content).iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// The style sheet without comments and indentation.
fn strip_css(source: &str) -> String {
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
    fn names_follow_the_content() {
        assert!(Asset::style().name.starts_with("style-"));
        assert_eq!(strip_css("a {\n  b: c; /* d */\n}\n"), "a {\nb: c;\n}");
        assert_ne!(hex_hash(b"a"), hex_hash(b"b"));
    }
}
