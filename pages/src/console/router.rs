//! Routes a request to its page or form, and puts the page in its frame.

use super::frame::{failure_page, render_page};
use super::{ASSETS, PATH, table};
use crate::dashboard::answer::PageAnswer;
use crate::dashboard::backend::{Backend, Failure};
use crate::dashboard::context::{Context, RefusedForm};
use crate::dashboard::request::PageRequest;
use crate::dashboard::router::{check_csrf, find_form, outcome_answer, view_answer};
use crate::dashboard::table::{Outcome, PageAccess, PageRow, View};
use crate::dashboard::viewer::Viewer;

/// The path of the sign-in page; the token of a link is below it.
pub const SIGN_IN: &str = "/console/sign-in";

#[derive(Debug)]
pub struct ConsoleAnswer {
    pub answer: PageAnswer,
    /// The page shows work in progress: the browser loads it again after some seconds.
    pub is_in_progress: bool,
}

impl From<PageAnswer> for ConsoleAnswer {
    fn from(answer: PageAnswer) -> Self {
        Self { answer, is_in_progress: false }
    }
}

/// Returns whether a path belongs to the console.
pub fn is_console(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a request.
pub async fn answer(backend: &dyn Backend, viewer: Option<&Viewer>, request: &PageRequest) -> ConsoleAnswer {
    let whole = request.path.strip_suffix('/').unwrap_or(&request.path);
    if let Some(asset) = ASSETS.find(whole) {
        return asset.into();
    }
    let Some((row, parameters)) = table::find(whole.strip_prefix(PATH).unwrap_or_default()) else {
        return failure_answer(backend, viewer, request, &Failure::not_found());
    };
    if row.access == PageAccess::SignedIn && viewer.is_none() {
        return PageAnswer::see_other(SIGN_IN).into();
    }
    let mut context = Context { request, parameters, viewer, backend, refused: None };
    if request.is_post {
        match submit(row, &context).await {
            Ok(outcome) => return outcome_answer(&context, outcome, render_page).into(),
            Err(failure) => {
                let name = context.form().get("form").to_owned();
                context.refused = Some(RefusedForm::new(name, failure));
            }
        }
    }
    match (row.show)(&context).await {
        Ok(view) => {
            let is_in_progress = matches!(&view, View::Page(page) if page.live) && !request.is_post;
            ConsoleAnswer { answer: view_answer(&context, view, render_page), is_in_progress }
        }
        Err(failure) => failure_answer(backend, viewer, request, &failure),
    }
}

/// Carries out the form that the request names.
async fn submit(row: &PageRow, context: &Context<'_>) -> Result<Outcome, Failure> {
    check_csrf(context)?;
    (find_form(row, context.form().get("form"))?.submit)(context).await
}

/// A page that says why there is no other.
pub fn failure_answer(
    backend: &dyn Backend,
    viewer: Option<&Viewer>,
    request: &PageRequest,
    failure: &Failure,
) -> ConsoleAnswer {
    let context = Context { request, parameters: Vec::new(), viewer, backend, refused: None };
    let html = render_page(&context, &failure_page(failure));
    let fault = failure.details.as_str().filter(|_| failure.code == "internal_error").map(str::to_owned);
    PageAnswer { fault, ..PageAnswer::html(failure.status, html) }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_paths_are_left_alone() {
        for path in ["/console", "/console/", "/console/queue"] {
            assert!(is_console(path), "{path}");
        }
        for path in ["/", "/metrics", "/consoles", "/healthz"] {
            assert!(!is_console(path), "{path}");
        }
    }
}
