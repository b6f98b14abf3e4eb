//! Content-Security-Policies of the server's pages. None allows inline scripts, inline `style` attributes or frames on
//! other sites.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// Pages with a script of this server: scripts and styles in files of its own origin, no scripts from text (Trusted
/// Types).
pub const SCRIPTED: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                            connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; \
                            frame-ancestors 'none'; require-trusted-types-for 'script'";

/// Pages without scripts, with a style sheet in a file: styles, images and forms of the same origin, and images in
/// `data:` URLs.
pub const WITHOUT_SCRIPTS: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; \
                                   base-uri 'none'; frame-ancestors 'none'";

/// The policy of a page that is one file: its style sheet, by the hash, and forms of the same origin.
pub fn self_contained(style: &str) -> String {
    let hash = STANDARD.encode(Sha256::digest(style.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_policy_allows_inline_code() {
        for policy in [SCRIPTED.to_owned(), WITHOUT_SCRIPTS.to_owned(), self_contained("p { color: red; }")] {
            assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
            for part in ["form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"] {
                assert!(policy.contains(part), "{policy}");
            }
        }
    }
}
