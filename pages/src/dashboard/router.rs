//! Routes a request to its page or form, and puts the page in its frame.

use super::PATH;
use super::answer::{PageAnswer, PageContent};
use super::backend::{Backend, Call, Failure};
use super::context::{Context, RefusedForm};
use super::form::Form;
use super::frame::{failure_page, render_page};
use super::identity_proof::{PROOF, REAUTHENTICATE, REAUTHENTICATION_REQUIRED, proof};
use super::kit::notice;
use super::page::Page;
use super::request::{Fields, PageRequest};
use super::screens::assets::ASSETS;
use super::screens::sign_in;
use super::table::{self, FormRow, Outcome, PageAccess, PageRow, View};
use super::viewer::Viewer;

/// The path of the sign-in page.
pub const SIGN_IN: &str = "/dashboard/sign-in";

/// Letters of a recovery code without its hyphens.
const RECOVERY_CODE_CHARS: usize = 16;

/// Returns whether a path belongs to the dashboard. The API has operations below `/dashboard/api`.
pub fn is_dashboard(path: &str) -> bool {
    path.strip_prefix(PATH)
        .is_some_and(|rest| rest.is_empty() || (rest.starts_with('/') && rest != "/api" && !rest.starts_with("/api/")))
}

/// Answers a request.
pub async fn answer(backend: &dyn Backend, viewer: Option<&Viewer>, request: &PageRequest) -> PageAnswer {
    let whole = request.path.strip_suffix('/').unwrap_or(&request.path);
    if let Some(asset) = ASSETS.find(whole) {
        return asset;
    }
    let path = whole.strip_prefix(PATH).unwrap_or_default();
    let Some((row, parameters)) = table::find(path) else {
        return failure_answer(backend, viewer, request, &Failure::not_found());
    };
    let mut context = Context { request, parameters, viewer, backend, refused: None };
    if row.access == PageAccess::SignedIn {
        let Some(_) = viewer else { return sign_in_first(request) };
        if !row.reads.iter().all(|operation| backend.allows(operation)) {
            return failure_answer(backend, viewer, request, &role_failure());
        }
    }
    if request.is_post {
        match submit(row, &context).await {
            Ok(outcome) => return outcome_answer(&context, outcome, render_page),
            Err(failure) if failure.code == "unauthorized" && row.access == PageAccess::SignedIn => {
                return sign_in_first(request);
            }
            Err(failure) => {
                let name = context.form().get("form").to_owned();
                context.refused = Some(RefusedForm::new(name, failure));
            }
        }
    }
    if let Some(wanted) = request.wanted.as_ref().filter(|_| viewer.is_some() && path.is_empty() && !request.is_post) {
        let cookies = vec![sign_in::wanted_cookie(None)];
        return PageAnswer { cookies, ..PageAnswer::see_other(wanted) };
    }
    match (row.show)(&context).await {
        Ok(view) => view_answer(&context, view, render_page),
        Err(failure) if failure.code == "unauthorized" && row.access == PageAccess::SignedIn => sign_in_first(request),
        Err(failure) if failure.code == REAUTHENTICATION_REQUIRED => {
            view_answer(&context, View::from(confirm_page(&context)), render_page)
        }
        Err(failure) => failure_answer(backend, viewer, request, &failure),
    }
}

/// The field of a button that asks to see the effect of a form: the form is not carried out.
const PREVIEW: &str = "preview";

/// Carries out the form that the request names.
///
/// # Errors
/// The form was refused, or only its effect is asked for ([`Failure::preview`]).
async fn submit(row: &PageRow, context: &Context<'_>) -> Result<Outcome, Failure> {
    let name = context.form().get("form");
    check_csrf(context)?;
    if context.viewer.is_some() && (name == REAUTHENTICATE || context.form().find(PROOF).is_some()) {
        confirm(context).await?;
        if name == REAUTHENTICATE {
            return Ok(Outcome::SeeOther(context.request.target()));
        }
    }
    let form = find_form(row, name)?;
    if !context.allows(form.operation) {
        return Err(role_failure());
    }
    if !context.form().get(PREVIEW).is_empty() {
        return Err(Failure::preview());
    }
    (form.submit)(context).await
}

/// Checks that a form of a signed-in person comes from a page of this session.
pub fn check_csrf(context: &Context<'_>) -> Result<(), Failure> {
    match context.viewer {
        Some(viewer) if !same_secret(context.form().get("csrf"), &viewer.csrf) => {
            let message = "The form is older than your session; check it and submit it again";
            Err(Failure::new(403, "forbidden", message))
        }
        _ => Ok(()),
    }
}

pub fn find_form(row: &PageRow, name: &str) -> Result<&'static FormRow, Failure> {
    let found = row.forms.iter().find(|form| form.name == name);
    found.ok_or_else(|| Failure::new(400, "bad_request", "This page has no such form; reload it and try again"))
}

/// Proves the user's identity again, with a one-time password or the password.
async fn confirm(context: &Context<'_>) -> Result<(), Failure> {
    let proof = context.form().get(PROOF);
    let field = if is_code(proof) { "code" } else { "password" };
    let call = Call::new(REAUTHENTICATE).json(serde_json::json!({ field: proof }));
    context.perform(&call).await.map(drop).map_err(|failure| {
        // The form asks for the proof again.
        let fields = [(PROOF.to_owned(), failure.message.clone())].into();
        Failure { code: REAUTHENTICATION_REQUIRED.into(), fields, ..failure }
    })
}

/// True for six digits, with spaces as apps show them (RFC 6238), and for a recovery code: 16 characters of base32 in
/// groups with hyphens.
fn is_code(proof: &str) -> bool {
    let has_groups = proof.contains('-');
    let letters: Vec<u8> = proof.bytes().filter(|byte| !matches!(byte, b' ' | b'-')).collect();
    let is_totp = letters.len() == 6 && letters.iter().all(u8::is_ascii_digit);
    let is_base32 = |byte: &u8| byte.is_ascii_alphabetic() || (b'2'..=b'7').contains(byte);
    is_totp || (has_groups && letters.len() == RECOVERY_CODE_CHARS && letters.iter().all(is_base32))
}

/// The page in place of one that needs a proof of identity.
fn confirm_page(context: &Context<'_>) -> Page {
    Page::new("Confirm that it is you", confirm_form().within(context))
}

/// The form that every page accepts: it proves the user's identity and leads back to the page.
pub fn confirm_form() -> Form<'static> {
    Form::new(REAUTHENTICATE, "Continue", vec![proof()])
}

/// Compares secrets without revealing by time where they differ.
fn same_secret(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

fn role_failure() -> Failure {
    let message = "Your role does not allow this; an owner of the account can change your role";
    Failure::new(403, "forbidden", message)
}

/// Leads to the sign-in page, which leads back. After a form, it says that nothing was saved.
fn sign_in_first(request: &PageRequest) -> PageAnswer {
    let target = request.target();
    let next = Some(target.as_str()).filter(|target| *target != PATH).unwrap_or_default();
    let done = match request.is_post {
        true if request.form.get("form") == "sign-out" => {
            return PageAnswer::see_other(format!("{SIGN_IN}?done=signed_out"));
        }
        true => notice::SESSION_ENDED,
        false => "",
    };
    let query = Fields::default().with("next", next).with("done", done).to_query();
    let mark = if query.is_empty() { "" } else { "?" };
    PageAnswer::see_other(format!("{SIGN_IN}{mark}{query}"))
}

/// Renders a page in the frame of its site.
pub type RenderPage = fn(&Context<'_>, &Page) -> String;

/// The answer to a form that was carried out.
pub fn outcome_answer(context: &Context<'_>, outcome: Outcome, render: RenderPage) -> PageAnswer {
    match outcome {
        Outcome::SeeOther(path) => PageAnswer::see_other(path),
        Outcome::SignedIn { path, cookies } => PageAnswer { cookies, ..PageAnswer::see_other(path) },
        Outcome::Leave(url) => PageAnswer::leave(url),
        Outcome::Once(page) => PageAnswer::html(200, render(context, &page)),
    }
}

/// The answer with a view, or with the page of a form that was refused.
pub fn view_answer(context: &Context<'_>, view: View, render: RenderPage) -> PageAnswer {
    let status = context.refused.as_ref().map_or(200, |refused| match refused.failure.status {
        status @ (200 | 400..=599) => status,
        _ => 400,
    });
    let content = match view {
        View::Page(page) => {
            let html = render(context, &page);
            match page.form_target {
                Some(origin) => PageContent::FormTarget { html, origin },
                None => PageContent::Html(html),
            }
        }
        View::SeeOther(path) => return PageAnswer::see_other(path),
        View::Download { call, file_name } => PageContent::Download { call, file_name },
        View::File { media_type, file_name, content } => PageContent::File { media_type, file_name, content },
        View::Foreign { html, remote } => PageContent::Foreign { html, remote },
    };
    PageAnswer { status, content, cookies: Vec::new(), fault: None }
}

/// A page that says why there is no other.
pub fn failure_answer(
    backend: &dyn Backend,
    viewer: Option<&Viewer>,
    request: &PageRequest,
    failure: &Failure,
) -> PageAnswer {
    let context = Context { request, parameters: Vec::new(), viewer, backend, refused: None };
    let html = render_page(&context, &failure_page(failure));
    let fault = failure.details.as_str().filter(|_| failure.code == "internal_error").map(str::to_owned);
    PageAnswer { fault, ..PageAnswer::html(failure.status, html) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_below_the_dashboard_is_left_alone() {
        for path in ["/dashboard", "/dashboard/", "/dashboard/emails", "/dashboard/apis"] {
            assert!(is_dashboard(path), "{path}");
        }
        for path in ["/", "/dashboards", "/dashboard/api", "/dashboard/api/affiliate-program"] {
            assert!(!is_dashboard(path), "{path}");
        }
    }

    #[test]
    fn a_form_after_the_end_of_the_session_leads_back_to_its_page() {
        let request = |path: &str, is_post| {
            let query = Fields::parse(b"template=tpl_1&done=changed");
            PageRequest { is_post, path: path.into(), query, ..PageRequest::default() }
        };
        let target = |request| super::super::fake_backend::location(sign_in_first(&request));
        let next = "next=%2Fdashboard%2Femails%2Fnew%3Ftemplate%3Dtpl_1";
        let path = "/dashboard/emails/new";
        assert_eq!(target(request(path, true)), format!("{SIGN_IN}?{next}&done=session_ended"));
        assert_eq!(target(request(path, false)), format!("{SIGN_IN}?{next}"));
        assert_eq!(target(PageRequest { path: PATH.into(), ..PageRequest::default() }), SIGN_IN);
        assert!(notice::done_text(notice::SESSION_ENDED).is_some());
    }
}
