//! The style sheet and the script of the dashboard.

use std::sync::LazyLock;

use bytes::Bytes;

use crate::asset::Asset;
use crate::dashboard::answer::{PageAnswer, PageContent};

struct DashboardAsset {
    /// `/dashboard/assets/dashboard-0123456789abcdef.css`.
    path: String,
    media_type: &'static str,
    content: Bytes,
}

impl From<Asset> for DashboardAsset {
    fn from(asset: Asset) -> Self {
        Self {
            path: format!("{}/assets/{}", crate::dashboard::PATH, asset.name),
            media_type: asset.media_type,
            content: asset.content.into(),
        }
    }
}

static ASSETS: LazyLock<[DashboardAsset; 2]> =
    LazyLock::new(|| [Asset::dashboard_style().into(), Asset::dashboard_script().into()]);

/// The paths of style sheet and script.
pub fn paths() -> (&'static str, &'static str) {
    let [style, script] = &*ASSETS;
    (&style.path, &script.path)
}

/// Finds a file by its path below `/dashboard`.
pub fn find(path: &str) -> Option<PageAnswer> {
    let asset = ASSETS.iter().find(|asset| asset.path.strip_prefix(crate::dashboard::PATH) == Some(path))?;
    let content = PageContent::Asset { media_type: asset.media_type, content: asset.content.clone() };
    Some(PageAnswer { status: 200, content, cookies: Vec::new(), fault: None })
}
