//! The public pages of unsubscribe links (RFC 8058).
//!
//! ```text
//! GET  /u/{token}              asks for confirmation; changes nothing, because link scanners follow every link
//! POST /u/{token}              unsubscribes: the button of the page, or one-click by a mail program
//! GET  /u/{token}/preferences  shows the recipient's preferences
//! POST /u/{token}/preferences  changes them
//! ```
//!
//! The signed token contains account, address and scope, so no sign-in is needed. Unsubscribing is idempotent. An
//! invalid token is answered with a plain 404. Pages use relative URLs, so that they work on a customer's host too.

mod form;
mod pages;

use accounts::suppressions::{SubscriptionPreferences, SuppressionService};
use html::document::RenderedPage;
use html::message;
use http::header::{CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY};
use httpd::response::{ExtraResponse, HTML_MEDIA_TYPE, IntoResponse, Response};
use model::suppression::{SuppressionReason, SuppressionTarget};
use model::unsubscribe::{UnsubscribeScope, UnsubscribeToken, verify_token};
use store::engine::ReadError;
use store::suppression::AddressSuppression;

use crate::operation::{Operation, OperationTag};
use crate::prelude::*;
use crate::suppressions::commit_error::suppression_problem;

use self::form::{FORM, NOTHING};
use self::pages::UnsubscribePageContent;

/// Longest form body.
const BODY_BYTES_MAX: usize = 16 << 10;
const TOKEN: &str = "token";
/// Keeps the pages out of search engines.
const ROBOTS: HeaderName = HeaderName::from_static("x-robots-tag");

/// The public operations of unsubscribing.
pub fn operations() -> Vec<Operation> {
    let tag = OperationTag::new("unsubscribe");
    vec![
        tag.get("/u/{token}", "Show the unsubscribe page").public("show_unsubscribe", confirm_page),
        tag.post("/u/{token}", "Unsubscribe a recipient (RFC 8058 one-click)").public("unsubscribe", unsubscribe),
        tag.get("/u/{token}/preferences", "Show a recipient's email preferences")
            .public("show_preferences", preferences_page),
        tag.post("/u/{token}/preferences", "Set a recipient's email preferences")
            .public("set_preferences", set_preferences),
    ]
}

/// An HTML page.
#[derive(Debug)]
pub struct UnsubscribePage {
    status: StatusCode,
    page: RenderedPage,
}

impl UnsubscribePage {
    fn not_found() -> Self {
        Self { status: StatusCode::NOT_FOUND, page: pages::not_found_page() }
    }
}

impl IntoResponse for UnsubscribePage {
    const MEDIA_TYPE: &'static str = HTML_MEDIA_TYPE;
    const EXTRA_RESPONSES: &'static [ExtraResponse] =
        &[ExtraResponse::html(404, "The link is invalid, or its account was deleted")];

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "An HTML page"})
    }

    fn into_response(self) -> Result<Response> {
        let policy = HeaderValue::from_static(message::content_security_policy());
        let headers = vec![
            (CONTENT_SECURITY_POLICY, policy),
            (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            (ROBOTS, HeaderValue::from_static("noindex, nofollow")),
        ];
        Ok(Response::new(self.status, Self::MEDIA_TYPE, headers, self.page.into_string().into()))
    }
}

#[derive(Debug)]
pub struct UnsubscribeTokenPath(String);

impl FromRequest for UnsubscribeTokenPath {
    fn parameters() -> Vec<Value> {
        vec![schema::path_parameter(TOKEN, "The signed token of the link in the email")]
    }

    fn read(call: &Request) -> Result<Self> {
        Ok(Self(call.path_parameter(TOKEN).to_owned()))
    }
}

/// An unsubscribe request. The body is ignored: the POST itself unsubscribes.
#[derive(Debug)]
pub struct OneClickUnsubscribe;

impl FromRequest for OneClickUnsubscribe {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);
    const MEDIA: Media = Media::Form;
    const BODY: Option<BodySchema> = Some(|_| {
        let one_click = json!({"type": "string", "enum": ["One-Click"]});
        json!({"type": "object", "properties": {"List-Unsubscribe": one_click}})
    });

    fn read(_: &Request) -> Result<Self> {
        Ok(Self)
    }
}

/// The submitted preferences.
#[derive(Debug)]
pub struct SetPreferences(SubscriptionPreferences);

const PRODUCT: &str = "product";
const NEWSLETTER: &str = "newsletter";
impl FromRequest for SetPreferences {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);
    const MEDIA: Media = Media::Form;
    const BODY: Option<BodySchema> = Some(|_| {
        let checkbox_schema = || json!({"type": "string", "enum": ["on"]});
        json!({"type": "object", "required": [FORM.0], "properties": {
            FORM.0: {"type": "string", "enum": [FORM.1]},
            PRODUCT: checkbox_schema(), NEWSLETTER: checkbox_schema(), NOTHING: checkbox_schema(),
        }})
    });

    fn read(call: &Request) -> Result<Self> {
        let form = std::str::from_utf8(&call.body).unwrap_or_default();
        let fields = paging::parse_query(form)?;
        if !fields.iter().any(|(name, value)| (name.as_str(), value.as_str()) == FORM) {
            return Err(Problem::field(FORM.0, "must be `preferences`, as the form of the page sends it"));
        }
        let is_checked = |name: &str| Some(fields.iter().any(|(n, _)| n == name));
        Ok(Self(SubscriptionPreferences {
            unsubscribe_all: is_checked(NOTHING),
            product: is_checked(PRODUCT),
            newsletter: is_checked(NEWSLETTER),
        }))
    }
}

/// Verifies a token; `None` if it is invalid or its account does not exist.
async fn load_token(state: &AppState, token: &str) -> Result<Option<UnsubscribeToken>, ReadError> {
    let Some(bound) = verify_token(&state.accounts.links.key, token) else { return Ok(None) };
    let account = store::account::get(&state.services.store, bound.account).await?;
    Ok(account.map(|_| bound))
}

/// Loads the content of a page: address, sender, preferences.
async fn load_page_content(
    state: &AppState,
    token: &str,
    bound: &UnsubscribeToken,
) -> Result<UnsubscribePageContent, ReadError> {
    let (store, now) = (&state.services.store, state.services.clock.now());
    let email = store::email::get_without_recipients(store, bound.account, bound.email).await?;
    let targets = [SuppressionTarget::Address(bound.address.clone())];
    let suppressions = store::suppression::list_address_suppressions(store, bound.account, &targets, now).await?;
    let AddressSuppression { suppression, categories } =
        suppressions.into_iter().next().unwrap_or(AddressSuppression { suppression: None, categories: Vec::new() });
    let reason = suppression.filter(|current| current.expires_at.is_none()).map(|suppression| suppression.reason);
    Ok(UnsubscribePageContent {
        token: token.to_owned(),
        address: bound.address.to_string(),
        sender: email.map(|email| email.from.name.unwrap_or_else(|| email.from.address.to_string())),
        scope: bound.scope,
        unsubscribed_from_all: reason == Some(SuppressionReason::Unsubscribe),
        blocked: reason.is_some_and(|reason| reason != SuppressionReason::Unsubscribe),
        opted_out: categories,
    })
}

fn html_page(page: RenderedPage) -> UnsubscribePage {
    UnsubscribePage { status: StatusCode::OK, page }
}

/// `GET /u/{token}`.
pub async fn confirm_page(state: State, UnsubscribeTokenPath(token): UnsubscribeTokenPath) -> Result<UnsubscribePage> {
    let Some(bound) = load_token(&state, &token).await? else { return Ok(UnsubscribePage::not_found()) };
    let content = load_page_content(&state, &token, &bound).await?;
    Ok(html_page(if content.is_unsubscribed() { pages::done_page(&content) } else { pages::confirm_page(&content) }))
}

/// `POST /u/{token}`.
pub async fn unsubscribe(
    state: State,
    (UnsubscribeTokenPath(token), OneClickUnsubscribe): (UnsubscribeTokenPath, OneClickUnsubscribe),
) -> Result<UnsubscribePage> {
    let Some(bound) = load_token(&state, &token).await? else { return Ok(UnsubscribePage::not_found()) };
    SuppressionService::new(&state.services)
        .apply_preference(&bound, SubscriptionPreferences::unsubscribing_from(bound.scope))
        .await
        .map_err(suppression_problem)?;
    Ok(html_page(pages::done_page(&load_page_content(&state, &token, &bound).await?)))
}

/// `GET /u/{token}/preferences`.
pub async fn preferences_page(
    state: State,
    UnsubscribeTokenPath(token): UnsubscribeTokenPath,
) -> Result<UnsubscribePage> {
    let Some(bound) = load_token(&state, &token).await? else { return Ok(UnsubscribePage::not_found()) };
    Ok(html_page(pages::preferences_page(&load_page_content(&state, &token, &bound).await?, false)))
}

/// `POST /u/{token}/preferences`.
///
/// # Errors
/// The body is not from the form; the store cannot be read or written.
pub async fn set_preferences(
    state: State,
    (UnsubscribeTokenPath(token), SetPreferences(preferences)): (UnsubscribeTokenPath, SetPreferences),
) -> Result<UnsubscribePage> {
    let Some(bound) = load_token(&state, &token).await? else { return Ok(UnsubscribePage::not_found()) };
    SuppressionService::new(&state.services)
        .apply_preference(&bound, preferences)
        .await
        .map_err(suppression_problem)?;
    Ok(html_page(pages::preferences_page(&load_page_content(&state, &token, &bound).await?, true)))
}

impl UnsubscribePageContent {
    /// Returns whether the recipient has already unsubscribed from the scope of the link.
    fn is_unsubscribed(&self) -> bool {
        match self.scope {
            UnsubscribeScope::All => self.unsubscribed_from_all,
            UnsubscribeScope::Category(category) => self.unsubscribed_from_all || self.opted_out.contains(&category),
        }
    }
}
