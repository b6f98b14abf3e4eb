//! Sign-in by a one-time link, and sign-out. The link shows a button, so that a program that only looks at the link
//! does not use it.

use crate::console::PATH;
use crate::console::router::SIGN_IN;
use crate::dashboard::prelude::*;
use crate::dashboard::table::{FormRow, PageAccess};

pub const PAGES: &[PageRow] = &[
    PageRow {
        path: "/sign-in",
        access: PageAccess::Public,
        reads: &[],
        show: |context| Box::pin(async move { Ok(show(context)) }),
        forms: &[FormRow { name: "sign-out", operation: "sign_out", submit: |context| Box::pin(sign_out(context)) }],
    },
    PageRow {
        path: "/sign-in/{token}",
        access: PageAccess::Public,
        reads: &[],
        show: |context| Box::pin(async move { Ok(show_link(context)) }),
        forms: &[FormRow { name: "sign-in", operation: "sign_in", submit: |context| Box::pin(sign_in(context)) }],
    },
];

/// A link that does not sign in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInFailure {
    /// Unknown, used, or expired.
    Wrong,
    /// Too many wrong links came from this network.
    TooMany,
}

impl From<SignInFailure> for Failure {
    fn from(failure: SignInFailure) -> Self {
        let (status, code, message) = match failure {
            SignInFailure::Wrong => {
                (403, "forbidden", "This link has already been used, or is older than 15 minutes; print a new one")
            }
            SignInFailure::TooMany => (429, "too_many", "Too many invalid links from your network; wait a minute"),
        };
        Self::new(status, code, message)
    }
}

fn show(context: &Context<'_>) -> View {
    if context.viewer.is_some() && context.refused.is_none() {
        return View::SeeOther(PATH.to_owned());
    }
    let body = maud! {
        div.sign-in {
            p { "Print a link on the server and open it here:" }
            pre tabindex="0" role="group" aria-label="Command" { "postrider admin console" }
            p.help { "It works once, within 15 minutes. Anyone with access to the admin socket can print one." }
        }
    };
    Page::new("Sign in to the console", body).into()
}

fn form() -> Form<'static> {
    Form::new("sign-in", "Sign in", Vec::new())
}

fn show_link(context: &Context<'_>) -> View {
    let form = form();
    let body = maud! {
        div.sign-in { (form.within(context)) p.help { "The link works once. The session ends after 12 hours, or after an hour without a request." } }
    };
    Page::new("Sign in to the console", body).into()
}

async fn sign_in(context: &Context<'_>) -> Result<Outcome, Failure> {
    let call = Call::new("sign_in").json(json!({"token": context.parameter("token")}));
    let reply = context.perform(&call).await?;
    Ok(Outcome::SignedIn { path: PATH.to_owned(), cookies: reply.cookies })
}

async fn sign_out(context: &Context<'_>) -> Result<Outcome, Failure> {
    let reply = context.perform(&Call::new("sign_out")).await?;
    Ok(Outcome::SignedIn { path: format!("{SIGN_IN}?done=signed_out"), cookies: reply.cookies })
}
