//! Pages without scripts for browsers that sign in by a link or a code, and the redirect after it.

use html::document::RenderedPage;
use html::message::{self, MessagePage};
use html::notice::alert;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, HeaderValue, LOCATION, REFERRER_POLICY, X_FRAME_OPTIONS};
use httpd::response::{HTML_MEDIA_TYPE, IntoResponse, Response};
use hypertext::prelude::*;

use crate::prelude::*;

/// Returns whether the client accepts HTML: a browser.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|text| text.contains("text/html"))
}

/// A page of the sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginPage {
    /// The button that uses a link.
    Link,
    /// The form for a one-time password.
    Code {
        /// The last code was wrong or was used.
        is_wrong: bool,
    },
    /// Shown for a link or challenge that was used or has expired.
    Expired,
}

impl LoginPage {
    fn render(self) -> RenderedPage {
        match self {
            Self::Link => login_page(
                "Sign in",
                maud! {
                    p { "The link works once." }
                    form method="post" { button.button.primary type="submit" { "Sign in" } }
                },
            ),
            Self::Code { is_wrong } => login_page(
                "One-time password",
                maud! {
                    @if is_wrong { (alert("The code is wrong or has already been used. Wait for the next one.")) }
                    form.form method="post" {
                        div.field {
                            label for="code" { "Enter the code from your authenticator app, or a recovery code." }
                            input #code type="text" name="code" autocomplete="one-time-code" autocapitalize="characters" maxlength="24"
                                required;
                        }
                        button.button.primary type="submit" { "Sign in" }
                    }
                },
            ),
            Self::Expired => login_page(
                "Sign in again",
                maud! {
                    p { "The link has been used or has expired." }
                    p { a.button.primary href="/dashboard" { "Go to the dashboard" } }
                },
            ),
        }
    }
}

fn login_page(title: &str, content: impl Renderable) -> RenderedPage {
    MessagePage { title, is_branded: true, content }.render()
}

impl IntoResponse for LoginPage {
    const MEDIA_TYPE: &'static str = HTML_MEDIA_TYPE;

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "An HTML page"})
    }

    /// The page loads nothing, posts only to this host, and does not leak the token in a referrer. `no-referrer` would
    /// not work: browsers then send `Origin: null` with the form (Fetch, "append a request `Origin` header"), which is
    /// rejected.
    fn into_response(self) -> Result<Response> {
        let headers = vec![
            (CONTENT_SECURITY_POLICY, HeaderValue::from_static(message::content_security_policy())),
            (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
            (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        ];
        Ok(Response::new(StatusCode::OK, Self::MEDIA_TYPE, headers, self.render().into_string().into()))
    }
}

/// Turns a response into a redirect that keeps its cookies.
pub(super) fn redirect(response: Response, path: &str) -> Result<Response> {
    let location = HeaderValue::try_from(path).map_err(Problem::internal)?;
    let mut headers = response.headers;
    headers.extend([(LOCATION, location), (REFERRER_POLICY, HeaderValue::from_static("same-origin"))]);
    Ok(Response { status: StatusCode::SEE_OTHER, headers, body: Bytes::new(), ..response })
}
