//! Sign-in: by password, or by a mailed link.

use crate::dashboard::PATH;
use crate::dashboard::prelude::*;
use crate::dashboard::router::{SIGN_IN, is_dashboard};
use crate::dashboard::table::{FormRow, PageAccess};

pub const PAGES: &[PageRow] = &[
    PageRow {
        path: "/sign-in/{challenge}",
        access: PageAccess::Public,
        reads: &[],
        show: |context| Box::pin(async move { Ok(show_code(context)) }),
        forms: &[FormRow {
            name: "code",
            operation: "sign_in_with_code",
            submit: |context| Box::pin(sign_in_with_code(context)),
        }],
    },
    PageRow {
        path: "/sign-in",
        access: PageAccess::Public,
        reads: &[],
        show: |context| Box::pin(async move { Ok(show(context)) }),
        forms: &[FormRow { name: "password", operation: "sign_in", submit: |context| Box::pin(sign_in(context)) }],
    },
];

/// The button that asks for a mailed link: it needs no password.
const LINK: &str = "link";
/// The longest address of a page that sign-in leads to.
const NEXT_BYTES_MAX: usize = 2_000;

fn email_field() -> Field {
    Field::new("email", "Email address", Control::Email).required().autocomplete("username")
}

fn password_form() -> Form<'static> {
    let password = Field::new("password", "Password", Control::Password).required().autocomplete("current-password");
    Form::new("password", "Sign in", vec![email_field(), password]).other(LINK, "Email me a link")
}

/// The page that the person wanted: only pages of the dashboard, so that a link cannot lead anywhere else.
fn next_path<'c>(context: &'c Context<'_>) -> &'c str {
    let next = context.query().get("next");
    if is_next(next) { next } else { PATH }
}

fn is_next(next: &str) -> bool {
    let path = next.split(['?', '#']).next().unwrap_or_default();
    let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    is_dashboard(path)
        && path != SIGN_IN
        // A browser removes dot segments, also encoded ones, and the segment before `..`. It also removes white space
        // at the end, which could hide one.
        && !decoded.split('/').any(|segment| matches!(segment, "." | ".."))
        && !decoded.contains(|c: char| c.is_whitespace() || c.is_control())
        && next.len() <= NEXT_BYTES_MAX
        && !next.contains(|c: char| c == '\\' || c.is_control())
}

/// The cookie that keeps the wanted page until the mailed link is used.
const WANTED_COOKIE: &str = "__Host-postrider_wanted";
/// Seconds that a mailed link works.
const LINK_SECONDS: u32 = 900;

/// The wanted page of a `Cookie` header.
pub fn wanted_path(cookies: &str) -> Option<String> {
    let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == WANTED_COOKIE)?;
    let path = percent_encoding::percent_decode_str(value).decode_utf8().ok()?;
    is_next(&path).then(|| path.into_owned())
}

/// Keeps the wanted page in the browser; without one, forgets it.
pub fn wanted_cookie(path: Option<&str>) -> String {
    let (value, seconds) = path.map_or_else(|| (String::new(), 0), |path| (encode(path), LINK_SECONDS));
    format!("{WANTED_COOKIE}={value}; Path=/; Max-Age={seconds}; Secure; HttpOnly; SameSite=Lax")
}

fn show(context: &Context<'_>) -> View {
    if context.viewer.is_some() && !context.request.is_post {
        return View::SeeOther(next_path(context).to_owned());
    }
    let form = password_form();
    let body = maud! { div.sign-in { (form.within(context)) } };
    Page::new("Sign in", body).into()
}

async fn sign_in(context: &Context<'_>) -> Result<Outcome, Failure> {
    if context.form().find(LINK).is_some() {
        return mail_link(context).await;
    }
    let body = password_form().read(context.form())?;
    let reply = context.perform(&Call::new("sign_in").json(body)).await?;
    // The answer to a user with one-time passwords.
    if let Ok(challenge) = reply.read_field::<String>("challenge") {
        let next = encode(next_path(context));
        return Ok(Outcome::SeeOther(format!("{SIGN_IN}/{}?next={next}", encode(&challenge))));
    }
    Ok(signed_in(context, reply.cookies))
}

fn signed_in(context: &Context<'_>, mut cookies: Vec<String>) -> Outcome {
    cookies.push(wanted_cookie(None));
    Outcome::SignedIn { path: next_path(context).to_owned(), cookies }
}

fn code_form() -> Form<'static> {
    let code = Field::text("code", "Code from your authenticator app")
        .required()
        .autocomplete("one-time-code")
        .help("Or one of your recovery codes.");
    Form::new("code", "Sign in", vec![code])
}

fn show_code(context: &Context<'_>) -> View {
    let form = code_form();
    let body = maud! {
        div.sign-in { (form.within(context)) p { a href=(SIGN_IN) { "Start over" } } }
    };
    Page::new("One-time password", body).into()
}

async fn sign_in_with_code(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = code_form().read(context.form())?;
    let call = Call::new("sign_in_with_code").parameter("challenge", context.parameter("challenge")).json(body);
    let reply = context.perform(&call).await?;
    Ok(signed_in(context, reply.cookies))
}

async fn mail_link(context: &Context<'_>) -> Result<Outcome, Failure> {
    let body = Form::new("", "", vec![email_field()]).read(context.form())?;
    context.perform(&Call::new("ask_for_sign_in_link").json(body)).await?;
    // The mailed link leads to the start page, which leads on.
    let next = next_path(context);
    let wanted = wanted_cookie(Some(next).filter(|next| *next != PATH));
    let path = format!("{SIGN_IN}?done=mailed&next={}", encode(next));
    Ok(Outcome::SignedIn { path, cookies: vec![wanted] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::backend::CallBody;
    use crate::dashboard::fake_backend::{FakeBackend, html};

    #[test]
    fn the_wanted_page_is_kept_in_a_cookie() {
        let cookie = wanted_cookie(Some("/dashboard/emails?status=bounced&q=a;b"));
        let pair = cookie.split(';').next().unwrap();
        let wanted = wanted_path(&format!("other=1; {pair}"));
        assert_eq!(wanted.as_deref(), Some("/dashboard/emails?status=bounced&q=a;b"));
        assert!(wanted_cookie(None).contains("Max-Age=0"));
        for path in [
            "https://example.net",
            "//example.net",
            "/dashboard\\x",
            "/dashboard/x\r\ny",
            "/dashboard/sign-in",
            "/dashboard/../c/token",
            "/dashboard/%2e%2E/c/token",
            "/dashboard/emails/.%2e/../c/token",
            "/dashboard/..#/emails",
            "/dashboard/.. ",
            "/dashboard/..%20",
            "/dashboard/..%09?q=1",
        ] {
            assert_eq!(wanted_path(&format!("{WANTED_COOKIE}={}", encode(path))), None, "{path}");
        }
    }

    #[test]
    fn one_form_signs_in_or_asks_for_a_link() {
        let backend = FakeBackend::new().answer("ask_for_sign_in_link", json!({}));
        let fields = [("email", "ada@example.com"), ("password", "")];
        let refused = html(backend.post("/sign-in", "password", &fields));
        assert_eq!(refused.matches("name=\"email\"").count(), 1, "{refused}");
        assert!(refused.contains("name=\"link\" value=\"1\" formnovalidate"), "{refused}");
        assert!(backend.calls("ask_for_sign_in_link").is_empty());
        backend.post("/sign-in", "password", &[("email", "ada@example.com"), ("password", ""), (LINK, "1")]);
        let body = json!({"email": "ada@example.com"});
        assert_eq!(backend.calls("ask_for_sign_in_link")[0].body, CallBody::Json(body));
        assert_eq!(backend.calls("sign_in").len(), 1);
    }
}
