//! The answer to a request for a page.

use bytes::Bytes;

use super::backend::Call;

/// An answer. Only assets may be cached.
#[derive(Debug)]
pub struct PageAnswer {
    pub status: u16,
    pub content: PageContent,
    /// `Set-Cookie` values.
    pub cookies: Vec<String>,
    /// A fault of this program, for the log.
    pub fault: Option<String>,
}

/// The content of an answer.
#[derive(Debug)]
pub enum PageContent {
    /// A page of the dashboard.
    Html(String),
    /// A page of the dashboard with a form whose answer leads to another origin.
    FormTarget { html: String, origin: String },
    /// Go to the URL of another program with GET (303).
    Leave(String),
    /// Go to another path with GET (303).
    SeeOther(String),
    /// The answer of an operation as a file.
    Download { call: Call, file_name: String },
    /// A file that the page made.
    File { media_type: &'static str, file_name: String, content: String },
    /// Foreign HTML for a frame: no scripts; pictures of other hosts only if `remote`.
    Foreign { html: String, remote: bool },
    /// A style sheet or script; its name changes with its content.
    Asset { media_type: &'static str, content: Bytes },
}

impl PageAnswer {
    pub fn html(status: u16, html: String) -> Self {
        Self { status, content: PageContent::Html(html), cookies: Vec::new(), fault: None }
    }

    pub fn leave(url: impl Into<String>) -> Self {
        Self { status: 303, content: PageContent::Leave(url.into()), cookies: Vec::new(), fault: None }
    }

    pub fn see_other(path: impl Into<String>) -> Self {
        Self { status: 303, content: PageContent::SeeOther(path.into()), cookies: Vec::new(), fault: None }
    }
}
