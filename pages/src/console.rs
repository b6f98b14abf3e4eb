//! The operator's console: pages on the `[ops]` listener, below `/console`.
//!
//! ```text
//! request ─► router ─► page table ─┬─ GET ──► show ─► Page ─► frame ─► HTML
//!                                  └─ POST ─► form ─► admin request ─┬─ done ───► 303 to a page, or a secret shown once
//!                                                                    └─ refused ► show again, errors beside the fields
//! ```
//!
//! The pages are made of the dashboard's kit. Their calls are requests of the admin socket: the operation is the word
//! of the request, the body its fields ([`Call`](crate::dashboard::backend::Call)). "Same as" shows the command of
//! `postrider admin` ([`command`]). Every page works without JavaScript.

pub mod command;
pub mod done;
pub mod duration;
#[cfg(test)]
mod fake_admin;
pub mod frame;
pub mod router;
pub mod screens;
pub mod table;

use std::sync::LazyLock;

pub use self::screens::sign_in::SignInFailure;
use crate::asset::Asset;
use crate::dashboard::screens::assets::SiteAssets;

/// The path of the overview; all others are below it.
pub const PATH: &str = "/console";

/// The style sheet and the script.
pub static ASSETS: LazyLock<SiteAssets> = LazyLock::new(|| SiteAssets::new(PATH, Asset::console_style()));
