//! The page table: every page with the operations it reads, and its forms with the operations they call.
//!
//! A role sees a page if it may call all operations that the page reads, and a form if it may call the form's
//! operation. So the API's role table decides for pages too.

use futures_util::future::BoxFuture;

use super::backend::{Call, Failure};
use super::context::Context;
use super::page::Page;
use super::screens;

/// Shows a page.
pub type Show = for<'a> fn(&'a Context<'a>) -> BoxFuture<'a, Result<View, Failure>>;
/// Carries out a form.
pub type Submit = for<'a> fn(&'a Context<'a>) -> BoxFuture<'a, Result<Outcome, Failure>>;

/// A row of the page table.
pub struct PageRow {
    /// Below `/dashboard`; `{id}` is a parameter. The start page has an empty path.
    pub path: &'static str,
    pub access: PageAccess,
    /// The operations that [`show`](Self::show) calls at every request.
    pub reads: &'static [&'static str],
    pub show: Show,
    pub forms: &'static [FormRow],
}

/// The people who may see a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageAccess {
    /// Everybody: sign-in.
    Public,
    /// Signed-in users whose role allows all operations that the page reads.
    SignedIn,
}

/// A form of a page. It is posted to the page's own path; its field `form` has the name.
pub struct FormRow {
    pub name: &'static str,
    /// The operation that it calls.
    pub operation: &'static str,
    pub submit: Submit,
}

/// Rows of the page table for signed-in people. Arguments in parentheses follow the context.
///
/// ```text
/// "/webhooks/{id}" => detail::show, reads ["get_webhook"], forms {
///     "enable" => detail::set_enabled(true), calls "update_webhook";
/// };
/// ```
macro_rules! page_rows {
    ($(
        $path:expr => $($show:ident)::+ $(($($show_argument:expr),*))? $(, reads [$($read:expr),*])? $(, forms {$(
            $name:expr => $($submit:ident)::+ $(($($argument:expr),*))?, calls $operation:expr;
        )*})?;
    )*) => {
        &[$($crate::dashboard::table::PageRow {
            path: $path,
            access: $crate::dashboard::table::PageAccess::SignedIn,
            reads: &[$($($read),*)?],
            show: |context| Box::pin($($show)::+(context $($(, $show_argument)*)?)),
            forms: &[$($($crate::dashboard::table::FormRow {
                name: $name,
                operation: $operation,
                submit: |context| Box::pin($($submit)::+(context $($(, $argument)*)?)),
            }),*)?],
        }),*]
    };
}
pub(crate) use page_rows;

/// A form whose effect is only shown, by the page's frame.
pub async fn preview(_: &Context<'_>) -> Result<Outcome, Failure> {
    Err(Failure::preview())
}

/// The answer to GET.
#[derive(Debug)]
pub enum View {
    Page(Box<Page>),
    SeeOther(String),
    /// The answer of an operation as a file.
    Download {
        call: Call,
        file_name: String,
    },
    /// A file that the page made.
    File {
        media_type: &'static str,
        file_name: String,
        content: String,
    },
    /// Foreign HTML for a sandboxed frame; pictures of other hosts are loaded only if `remote`.
    Foreign {
        html: String,
        remote: bool,
    },
}

impl From<Page> for View {
    fn from(page: Page) -> Self {
        Self::Page(Box::new(page))
    }
}

/// The answer to a form that was carried out.
#[derive(Debug)]
pub enum Outcome {
    /// Go to a page (303).
    SeeOther(String),
    /// Go to a page with the session cookies of an operation.
    SignedIn { path: String, cookies: Vec<String> },
    /// A page that is shown once, for secrets.
    Once(Box<Page>),
    /// Go to the URL of another program, which an operation returned.
    Leave(String),
}

impl Outcome {
    /// Goes to a page that says what was done: a code of [`notice`](super::kit::notice).
    pub fn done(path: impl AsRef<str>, notice: &str) -> Self {
        let path = path.as_ref();
        let mark = if path.contains('?') { '&' } else { '?' };
        Self::SeeOther(format!("{path}{mark}done={notice}"))
    }

    pub fn once(page: Page) -> Self {
        Self::Once(Box::new(page))
    }
}

/// All pages.
pub fn pages() -> impl Iterator<Item = &'static PageRow> {
    screens::ALL.iter().flat_map(|rows| rows.iter())
}

/// Finds a page by its path below `/dashboard`, with its parameters. A path without parameters is preferred.
pub fn find(path: &str) -> Option<(&'static PageRow, Vec<(String, String)>)> {
    find_in(pages(), path)
}

/// Finds a page of a table by its path, as [`find`].
pub fn find_in(
    rows: impl Iterator<Item = &'static PageRow>,
    path: &str,
) -> Option<(&'static PageRow, Vec<(String, String)>)> {
    let found = rows.filter_map(|row| Some((row, match_path(row.path, path)?)));
    found.min_by_key(|(_, parameters)| parameters.len())
}

fn match_path(pattern: &str, path: &str) -> Option<Vec<(String, String)>> {
    let (mut expected, mut actual, mut parameters) = (pattern.split('/'), path.split('/'), Vec::new());
    loop {
        match (expected.next(), actual.next()) {
            (None, None) => return Some(parameters),
            (Some(part), Some(value)) => match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                Some(name) if !value.is_empty() => {
                    let decoded = percent_encoding::percent_decode_str(value).decode_utf8().ok()?;
                    parameters.push((name.to_owned(), decoded.into_owned()));
                }
                None if part == value => {}
                _ => return None,
            },
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_with_their_parameters() {
        assert_eq!(match_path("/emails", "/emails"), Some(vec![]));
        assert_eq!(match_path("/emails/{id}", "/emails/a%20b"), Some(vec![("id".into(), "a b".into())]));
        for (pattern, path) in
            [("/emails/{id}", "/emails/"), ("/emails", "/emails/x"), ("/a/{b}", "/a/b/c"), ("", "/a")]
        {
            assert_eq!(match_path(pattern, path), None, "{path}");
        }
    }

    #[test]
    fn rows_are_unique() {
        let mut paths: Vec<_> = pages().map(|row| row.path).collect();
        paths.sort_unstable();
        let all = paths.len();
        paths.dedup();
        assert_eq!(paths.len(), all);
        for row in pages() {
            let mut names: Vec<_> = row.forms.iter().map(|form| form.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), row.forms.len(), "{}", row.path);
        }
    }
}
