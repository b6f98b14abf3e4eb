//! The style sheet and the script of the console.

use std::sync::LazyLock;

use crate::asset::Asset;
use crate::dashboard::answer::{PageAnswer, PageContent};

static ASSETS: LazyLock<[(String, Asset); 2]> = LazyLock::new(|| {
    [Asset::console_style(), Asset::dashboard_script()]
        .map(|asset| (format!("{}/assets/{}", super::PATH, asset.name), asset))
});

/// The paths of style sheet and script.
pub fn paths() -> (&'static str, &'static str) {
    let [(style, _), (script, _)] = &*ASSETS;
    (style, script)
}

/// Finds a file by its whole path.
pub fn find(path: &str) -> Option<PageAnswer> {
    let (_, asset) = ASSETS.iter().find(|(known, _)| known == path)?;
    let content = PageContent::Asset { media_type: asset.media_type, content: asset.content.clone().into() };
    Some(PageAnswer { status: 200, content, cookies: Vec::new(), fault: None })
}
