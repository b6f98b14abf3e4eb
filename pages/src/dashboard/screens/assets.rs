//! The style sheet and the script of the dashboard and of the console.

use std::sync::LazyLock;

use bytes::Bytes;

use crate::asset::Asset;
use crate::dashboard::answer::{PageAnswer, PageContent};

/// The files of a site: path, media type and content of the style sheet and of the script.
pub struct SiteAssets([(String, &'static str, Bytes); 2]);

/// Those of the dashboard: `/dashboard/assets/dashboard-0123456789abcdef.css`.
pub static ASSETS: LazyLock<SiteAssets> =
    LazyLock::new(|| SiteAssets::new(crate::dashboard::PATH, Asset::dashboard_style()));

impl SiteAssets {
    /// The files below the path of a site.
    pub fn new(site: &str, style: Asset) -> Self {
        let files = [style, Asset::dashboard_script()];
        Self(files.map(|file| (format!("{site}/assets/{}", file.name), file.media_type, file.content.into())))
    }

    /// The paths of style sheet and script.
    pub fn paths(&self) -> (&str, &str) {
        let [(style, ..), (script, ..)] = &self.0;
        (style, script)
    }

    /// Finds a file by its whole path.
    pub fn find(&self, path: &str) -> Option<PageAnswer> {
        let (_, media_type, content) = self.0.iter().find(|(known, ..)| known == path)?;
        let content = PageContent::Asset { media_type, content: content.clone() };
        Some(PageAnswer { status: 200, content, cookies: Vec::new(), fault: None })
    }
}
