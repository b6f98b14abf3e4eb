//! The style sheet and the script: one file each, with the hash of the content in the name.

pub use html::style::hex_hash;
use html::style::{self, BASE, CONTROLS, KIT};

const CODE: &str = include_str!("../assets/code.css");
const STYLE: &str = include_str!("../assets/style.css");
const SCRIPT: &str = include_str!("../assets/script.js");
const DASHBOARD_STYLE: &str = include_str!("../assets/dashboard.css");
const CONSOLE_STYLE: &str = include_str!("../assets/console.css");
const DASHBOARD_SCRIPT: &str = include_str!("../../web/dashboard.js");

/// A file that pages load.
#[derive(Debug, Clone)]
pub struct Asset {
    /// `style-0123456789abcdef.css`.
    pub name: String,
    pub media_type: &'static str,
    pub content: String,
}

impl Asset {
    pub fn style() -> Self {
        Self::new("style", "css", "text/css; charset=utf-8", style::join(&[BASE, CODE, STYLE]))
    }

    pub fn script() -> Self {
        Self::new("script", "js", "text/javascript; charset=utf-8", SCRIPT.to_owned())
    }

    /// The style sheet of the dashboard.
    pub fn dashboard_style() -> Self {
        Self::new(
            "dashboard",
            "css",
            "text/css; charset=utf-8",
            style::join(&[BASE, CODE, CONTROLS, KIT, DASHBOARD_STYLE]),
        )
    }

    /// The style sheet of the operator's console: that of the dashboard and its own.
    pub fn console_style() -> Self {
        Self::new(
            "console",
            "css",
            "text/css; charset=utf-8",
            style::join(&[BASE, CODE, CONTROLS, KIT, DASHBOARD_STYLE, CONSOLE_STYLE]),
        )
    }

    /// The script of the dashboard; every page works without it.
    pub fn dashboard_script() -> Self {
        Self::new("dashboard", "js", "text/javascript; charset=utf-8", DASHBOARD_SCRIPT.to_owned())
    }

    fn new(stem: &str, extension: &str, media_type: &'static str, content: String) -> Self {
        let hash = hex_hash(content.as_bytes());
        Self { name: format!("{stem}-{hash}.{extension}"), media_type, content }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_content() {
        assert!(Asset::style().name.starts_with("style-"));
        assert_ne!(Asset::dashboard_style().name, Asset::style().name);
    }
}
