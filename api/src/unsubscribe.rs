//! The public pages that unsubscribe links lead to (RFC 8058; completions-email.md 2.6).
//!
//! ```text
//! GET  /u/{token}              asks; changes nothing, for link scanners follow every link
//! POST /u/{token}              does it: the button's form, or a mail program's one click
//! GET  /u/{token}/preferences  shows what the recipient gets
//! POST /u/{token}/preferences  changes it
//! ```
//!
//! The token says who, whose mail, from what; nothing else is asked. Doing it twice is doing it once. A token
//! that is not ours leads to a plain 404. Pages name each other by relative addresses, so that they work on
//! a customer's host as well as on ours.

mod html;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY};
use http::{Method, StatusCode};
use mail::suppression::{Reason, Target};
use mail::unsubscribe::{Bound, Scope, open};
use queue::contacts::Wish;
use serde_json::{Value, json};
use store::engine::ReadError;
use store::suppression::Standing;

use crate::call::{Also, Answer, Call, Input, Media, PAGE, Reply, Takes};
use crate::operations::{Operation, operation};
use crate::page;
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

use self::html::Shown;

/// What a form or a mail program sends is short.
const BODY_BYTES_MAX: usize = 16 << 10;
const TOKEN: &str = "token";
/// Search engines do not list these pages.
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// What can be asked.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let of = |method, path, id, summary| operation(method, path, id).about("unsubscribe", summary);
    vec![
        of(Method::GET, "/u/{token}", "show_unsubscribe", "Ask a recipient whether to unsubscribe")
            .public(ask),
        of(Method::POST, "/u/{token}", "unsubscribe", "Unsubscribe a recipient (RFC 8058 one-click)")
            .public(leave),
        of(Method::GET, "/u/{token}/preferences", "show_preferences", "Show what a recipient gets")
            .public(preferences),
        of(Method::POST, "/u/{token}/preferences", "set_preferences", "Change what a recipient gets")
            .public(set_preferences),
    ]
}

/// A page.
#[derive(Debug)]
pub struct HtmlPage {
    status: StatusCode,
    text: String,
}

impl HtmlPage {
    fn not_found() -> Self {
        Self { status: StatusCode::NOT_FOUND, text: html::not_found() }
    }
}

impl Reply for HtmlPage {
    const MEDIA_TYPE: &'static str = PAGE;
    const ALSO: &'static [Also] = &[Also {
        status: 404,
        media_type: Some(PAGE),
        about: "The link is not ours, or what it is about is gone",
    }];

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "A page for people"})
    }

    fn write(self) -> Result<Bytes, Problem> {
        Ok(self.text.into())
    }

    fn answer(self) -> Result<Answer, Problem> {
        let policy = HeaderValue::from_str(html::policy()).map_err(Problem::internal)?;
        let headers = vec![
            (CONTENT_SECURITY_POLICY, policy),
            (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            (ROBOTS, HeaderValue::from_static("noindex, nofollow")),
        ];
        Ok(Answer {
            status: self.status,
            media_type: HeaderValue::from_static(Self::MEDIA_TYPE),
            headers,
            body: self.text.into(),
            more: None,
        })
    }
}

/// A token, from the path.
#[derive(Debug)]
pub struct Token(String);

fn token_parameter() -> Value {
    schema::path_parameter(TOKEN, "What the link in the email says")
}

impl Input for Token {
    fn describe(_: &mut Schemas) -> Takes {
        Takes { parameters: vec![token_parameter()], ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok(Self(call.path_parameter(TOKEN).to_owned()))
    }
}

/// A token, and a body that says nothing more: to post to the link is to unsubscribe.
#[derive(Debug)]
pub struct OneClick(String);

impl Input for OneClick {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);
    const MEDIA: Media = Media::Form;

    fn describe(_: &mut Schemas) -> Takes {
        let one_click = json!({"type": "string", "enum": ["One-Click"]});
        let body = json!({"type": "object", "properties": {"List-Unsubscribe": one_click}});
        Takes { parameters: vec![token_parameter()], body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        Ok(Self(call.path_parameter(TOKEN).to_owned()))
    }
}

/// A token, and what was ticked.
#[derive(Debug)]
pub struct Preferences {
    token: String,
    wish: Wish,
}

/// The field that tells the form from a mail program's post, which would untick everything.
const FORM: (&str, &str) = ("form", "preferences");
const PRODUCT: &str = "product";
const NEWSLETTER: &str = "newsletter";
const NOTHING: &str = "nothing";

impl Input for Preferences {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);
    const MEDIA: Media = Media::Form;

    fn describe(_: &mut Schemas) -> Takes {
        let ticked = || json!({"type": "string", "enum": ["on"]});
        let body = json!({"type": "object", "required": [FORM.0], "properties": {
            FORM.0: {"type": "string", "enum": [FORM.1]},
            PRODUCT: ticked(), NEWSLETTER: ticked(), NOTHING: ticked(),
        }});
        Takes { parameters: vec![token_parameter()], body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let form = std::str::from_utf8(&call.body).unwrap_or_default();
        let fields = page::parameters(form)?;
        if !fields.iter().any(|(name, value)| (name.as_str(), value.as_str()) == FORM) {
            return Err(Problem::field(FORM.0, "must be `preferences`: this is for the form of the page"));
        }
        let ticked = |name: &str| Some(fields.iter().any(|(n, _)| n == name));
        let wish =
            Wish { nothing: ticked(NOTHING), product: ticked(PRODUCT), newsletter: ticked(NEWSLETTER) };
        Ok(Self { token: call.path_parameter(TOKEN).to_owned(), wish })
    }
}

/// What a token says, if it is ours and its account is there.
async fn bound(room: &Room, token: &str) -> Result<Option<Bound>, ReadError> {
    let Some(bound) = open(room.hall.links(), token) else { return Ok(None) };
    let account = store::account::get(room.hall.store(), bound.account).await?;
    Ok(account.map(|_| bound))
}

/// What a page shows: who, whose mail, what they get.
async fn shown(room: &Room, token: &str, bound: &Bound) -> Result<Shown, ReadError> {
    let (store, now) = (room.hall.store(), room.hall.clock().now());
    let email = store::email::get_bare(store, bound.account, bound.email).await?;
    let targets = [Target::Address(bound.address.clone())];
    let standings = store::suppression::standings(store, bound.account, &targets, now).await?;
    let Standing { suppression, categories } =
        standings.into_iter().next().unwrap_or(Standing { suppression: None, categories: Vec::new() });
    let reason = suppression.filter(|held| held.expires_at.is_none()).map(|suppression| suppression.reason);
    Ok(Shown {
        token: token.to_owned(),
        address: bound.address.to_string(),
        sender: email.map(|email| email.from.name.unwrap_or_else(|| email.from.address.to_string())),
        scope: bound.scope,
        left_all: reason == Some(Reason::Unsubscribe),
        blocked: reason.is_some_and(|reason| reason != Reason::Unsubscribe),
        left: categories,
    })
}

fn page_of(text: String) -> HtmlPage {
    HtmlPage { status: StatusCode::OK, text }
}

/// `GET /u/{token}`.
///
/// # Errors
/// The store cannot be read.
pub async fn ask(room: Arc<Room>, Token(token): Token) -> Result<HtmlPage, Problem> {
    let Some(bound) = bound(&room, &token).await? else { return Ok(HtmlPage::not_found()) };
    let shown = shown(&room, &token, &bound).await?;
    Ok(page_of(if shown.has_left() { html::left(&shown) } else { html::ask(&shown) }))
}

/// `POST /u/{token}`.
///
/// # Errors
/// The store cannot be used.
pub async fn leave(room: Arc<Room>, OneClick(token): OneClick) -> Result<HtmlPage, Problem> {
    let Some(bound) = bound(&room, &token).await? else { return Ok(HtmlPage::not_found()) };
    room.hall.heed(&bound, Wish::to_leave(bound.scope)).await?;
    Ok(page_of(html::left(&shown(&room, &token, &bound).await?)))
}

/// `GET /u/{token}/preferences`.
///
/// # Errors
/// The store cannot be read.
pub async fn preferences(room: Arc<Room>, Token(token): Token) -> Result<HtmlPage, Problem> {
    let Some(bound) = bound(&room, &token).await? else { return Ok(HtmlPage::not_found()) };
    Ok(page_of(html::preferences(&shown(&room, &token, &bound).await?, false)))
}

/// `POST /u/{token}/preferences`.
///
/// # Errors
/// It is not what the form sends; the store cannot be used.
pub async fn set_preferences(room: Arc<Room>, input: Preferences) -> Result<HtmlPage, Problem> {
    let Preferences { token, wish } = input;
    let Some(bound) = bound(&room, &token).await? else { return Ok(HtmlPage::not_found()) };
    room.hall.heed(&bound, wish).await?;
    Ok(page_of(html::preferences(&shown(&room, &token, &bound).await?, true)))
}

impl Shown {
    /// Whether the recipient has left already what the link unsubscribes from.
    fn has_left(&self) -> bool {
        match self.scope {
            Scope::All => self.left_all,
            Scope::Category(category) => self.left_all || self.left.contains(&category),
        }
    }
}
