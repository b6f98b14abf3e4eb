//! The person who looks at a page.

use jiff::Timestamp;

/// A signed-in user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewer {
    pub user_id: String,
    pub email: String,
    /// `owner`, `admin`, `developer` or `viewer`.
    pub role: String,
    pub account_id: String,
    /// The value of the field `csrf` in forms.
    pub csrf: String,
    pub session_id: String,
    pub has_password: bool,
    pub signed_in_at: Timestamp,
}
