//! Links between guides: `../WEBHOOKS.md#read-events` becomes `/docs/guides/webhooks#read-events`.

use super::guide_files::{guide_path, text_of};
use crate::reference::page_path;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    /// A path, an anchor, or an address with https.
    Address(String),
    /// A file that is no guide: its name stays as text.
    Missing,
}

/// Resolves the destination of a link in a file of `docs/`.
pub fn resolve_link(file: &str, destination: &str) -> LinkTarget {
    if destination.starts_with("https://") || destination.starts_with('#') {
        return LinkTarget::Address(destination.to_owned());
    }
    let (path, anchor) = destination.split_once('#').unwrap_or((destination, ""));
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            // Above `docs/` there are no guides.
            ".." if parts.pop().is_none() => return LinkTarget::Missing,
            ".." => {}
            name => parts.push(name),
        }
    }
    let target = parts.join("/");
    if text_of(&target).is_none() {
        return LinkTarget::Missing;
    }
    let path = page_path(&guide_path(&target));
    LinkTarget::Address(if anchor.is_empty() { path } else { format!("{path}#{anchor}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_between_guides_become_paths() {
        let address = |text: &str| LinkTarget::Address(text.into());
        for (file, destination, expected) in [
            ("user/quick-start.md", "../WEBHOOKS.md#the-request", address("/docs/guides/webhooks#the-request")),
            ("WEBHOOKS.md", "user/quick-start.md", address("/docs/guides/quick-start")),
            ("WEBHOOKS.md", "EVENTS.md", address("/docs/guides/events")),
            ("WEBHOOKS.md", "#the-request", address("#the-request")),
            ("WEBHOOKS.md", "https://example.com/a", address("https://example.com/a")),
            ("WEBHOOKS.md", "../etc/postrider.toml", LinkTarget::Missing),
            ("user/quick-start.md", "../../../secret.md", LinkTarget::Missing),
            ("WEBHOOKS.md", "javascript:alert(1)", LinkTarget::Missing),
        ] {
            assert_eq!(resolve_link(file, destination), expected, "{file}: {destination}");
        }
    }
}
