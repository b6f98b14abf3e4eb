//! Client of the payment processor's API: one object or one list per call, under the same rules as webhook deliveries.
//!
//! Callers that set something up get the full cause of an error (`fetch_object`). Callers that complete or reconcile
//! stored facts use `StripeClient`, which separates a definite refusal from no response. An invalid key or a missing
//! permission is no statement about the object, so it counts as no response.
//!
//! The owner chooses the base URL, so it is treated like any untrusted address: resolved, checked and connected to as
//! checked; redirects are not followed; time and bytes are bounded (`net/src/http_client.rs`). A [`ResponsePermit`]
//! pays for the response bytes from the first one on; the caller holds it as long as the objects.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dns::secrets::Vault;
use events::webhooks::WebhookService;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use model::affiliate::program::AffiliateProgram;
use model::affiliate::sale::SaleLine;
use model::id::AccountId;
use net::clock::Clock;
use net::http_client::{HttpClientError, HttpGet, HttpResponse, ResponseBudgetError, ResponsePermit};
use thiserror::Error;

use crate::context::Context;
use crate::error::{AffiliateError, LedgerError, Result};
use crate::offload::offload;
use crate::processor::{
    ConnectedAccount, JsonReadError, MetadataKeys, OBJECT_BYTES_MAX, PAGE_BYTES_MAX, PAGE_OBJECTS, ProcessorJson,
    ReadContext, ResponsePage, StateVersion, StripeObject as _, invoice_line,
};
use crate::secrets;

/// Default base URL of the processor's API.
pub const API_BASE: &str = "https://api.stripe.com";
/// Time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum characters of the processor's error message that a refusal quotes.
const WORDS_MAX: usize = 200;

/// Maximum pages of an invoice's lines. An invoice with more lines is booked by its total.
const LINE_PAGES_MAX: usize = 10;
/// Maximum pages of an invoice's payments; there are normally few.
const PAYMENT_PAGES_MAX: usize = 5;

/// A definite response of the processor.
#[derive(Debug)]
pub(crate) enum StripeAnswer<T> {
    /// The object, and the `Date` of the response (the local clock if the response has none).
    Object(T, Timestamp),
    /// A client error (4xx) that a retry does not change: the object does not exist or the request is invalid.
    Refused(StripeRefusal),
}

/// A definite refusal by the processor.
#[derive(Debug)]
pub(crate) struct StripeRefusal {
    /// HTTP status of the response.
    pub(crate) status: u16,
    /// Cause, worded to follow "the processor", with the processor's own error message.
    pub(crate) text: String,
}

/// Why a request has no definite response. The text is worded to follow "the processor".
#[derive(Debug, Error)]
pub(crate) enum StripeError {
    /// Connection failure, timeout, 408, 429, 5xx, or a body that is not the expected JSON.
    #[error("{0}")]
    NoResponse(String),
    /// 401: the API key is invalid.
    #[error("{0}")]
    KeyRejected(String),
    /// 403: the API key lacks the permission for this resource.
    #[error("{0}")]
    KeyNotPermitted(String),
    /// Other responses use up the memory budget; retry later.
    #[error("{0}")]
    MemoryBusy(ResponseBudgetError),
    /// The response is larger than the limit; the caller may ask for a shorter period.
    #[error("{0}")]
    TooLarge(String),
}

impl From<StripeError> for AffiliateError {
    fn from(error: StripeError) -> Self {
        match error {
            StripeError::MemoryBusy(budget_error) => Self::Ledger(LedgerError::Budget(budget_error)),
            error => Self::Upstream(error.to_string()),
        }
    }
}

impl From<StripeError> for LedgerError {
    fn from(error: StripeError) -> Self {
        match error {
            StripeError::NoResponse(error) | StripeError::KeyRejected(error) | StripeError::TooLarge(error) => {
                Self::Unanswered(error)
            }
            StripeError::KeyNotPermitted(error) => Self::Barred(error),
            StripeError::MemoryBusy(budget_error) => Self::Budget(budget_error),
        }
    }
}

/// Filter of the processor's invoice payments.
pub(crate) enum PaymentLookup<'a> {
    Invoice(&'a str),
    Payment(&'a str),
}

/// The objects of one or more pages of a list.
pub(crate) struct StripeList {
    /// Newest first, as the processor lists them.
    pub(crate) objects: Vec<ProcessorJson>,
    /// `Date` of the first page (the local clock if the response has none).
    pub(crate) at: Timestamp,
    /// True if the list continues after the pages that were read.
    pub(crate) has_more: bool,
}

impl StripeList {
    pub(crate) fn empty() -> Self {
        Self { objects: Vec::new(), at: Timestamp::UNIX_EPOCH, has_more: false }
    }
}

/// API client of one program's processor; authenticates with the program's restricted key.
pub(crate) struct StripeClient {
    pub(crate) webhooks: Arc<WebhookService>,
    clock: Clock,
    account: AccountId,
    /// Without a trailing slash.
    api_base: String,
    key: String,
}

/// The account that an API key belongs to, as the processor reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StripeAccount {
    pub id: String,
    /// Live or test mode; `None` if neither the response nor the key's prefix shows it.
    pub livemode: Option<bool>,
}

/// The connections to the processors of all programs.
#[derive(Clone)]
pub struct StripeProcessor {
    pub(crate) context: Context,
    pub(crate) webhooks: Arc<WebhookService>,
    pub(crate) vault: Arc<Vault>,
}

impl StripeProcessor {
    /// Checks `api_base` against the rules for webhook addresses.
    ///
    /// # Errors
    /// A field error on `api_base`.
    pub(crate) fn check_api_base(&self, api_base: &str) -> Result<()> {
        self.webhooks.check_webhook_url(api_base).map_err(|reason| AffiliateError::field("api_base", reason))
    }

    /// Returns the client of a program's processor; `None` without an API key, or if the key cannot be unsealed.
    pub(crate) fn client_of(&self, program: &AffiliateProgram) -> Option<StripeClient> {
        let processor = program.processor.as_ref()?;
        let key = secrets::open(&self.vault, &program.id.to_bytes(), processor.restricted_key.as_ref()?)?;
        Some(self.client_with(program.account, &processor.api_base, key))
    }

    /// True if the processor reports that a connected account takes transfers. Returns false without an API key, and if
    /// the request fails: a later `account.updated` event corrects it.
    pub(crate) async fn takes_transfers(&self, program: &AffiliateProgram, account: &str) -> bool {
        let Some(client) = self.client_of(program) else { return false };
        let fetched = client.fetch_object(&format!("/v1/accounts/{account}")).await;
        let keys = MetadataKeys::default();
        let reading = ReadContext { keys: &keys, as_of: StateVersion::fetched(self.context.now()) };
        match fetched.map(|fetched| ConnectedAccount::read(fetched.text(), &reading)) {
            Ok(Ok(fetched)) => fetched.id == account && fetched.takes_transfers,
            Ok(Err(error)) => {
                tracing::info!(%error, "cannot parse the processor's account");
                false
            }
            Err(refusal) => {
                tracing::info!(%refusal, "cannot fetch the connected account from the processor");
                false
            }
        }
    }

    /// Fetches the account that an API key belongs to.
    ///
    /// # Errors
    /// As `fetch_object`; or the response has no account id.
    pub(crate) async fn fetch_account(&self, account: AccountId, api_base: &str, key: &str) -> Result<StripeAccount> {
        let fetched = self.client_with(account, api_base, key.to_owned()).fetch_object("/v1/account").await?;
        let id = fetched.id().filter(|id| is_id(id));
        let id = id.ok_or_else(|| AffiliateError::Upstream("answered without the account's id".to_owned()))?;
        let livemode = fetched.flag_in("livemode").or_else(|| livemode_of_key(key));
        Ok(StripeAccount { id: id.into_owned(), livemode })
    }

    fn client_with(&self, account: AccountId, api_base: &str, key: String) -> StripeClient {
        let (webhooks, clock) = (Arc::clone(&self.webhooks), self.context.clock.clone());
        StripeClient { webhooks, clock, account, api_base: api_base.trim_end_matches('/').to_owned(), key }
    }
}

impl StripeClient {
    /// Returns an empty memory permit for responses.
    pub(crate) fn permit(&self) -> ResponsePermit {
        self.webhooks.response_permit(self.account)
    }

    pub(crate) fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("authorization", format!("Bearer {}", self.key)), ("accept", "application/json".to_owned())]
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.api_base)
    }

    /// Sends a GET request for `path` and returns the response, whatever its status.
    ///
    /// # Errors
    /// The connection failed, timed out, or the response exceeds the memory budget.
    fn get<'a>(
        &'a self,
        path: &'a str,
        response_bytes_max: usize,
        permit: &'a mut ResponsePermit,
    ) -> BoxFuture<'a, Result<HttpResponse, HttpClientError>> {
        let get = HttpGet { url: self.url(path), headers: self.headers(), timeout: TIMEOUT, response_bytes_max };
        Box::pin(async move { self.webhooks.fetch_url_with_permit(get, permit).await })
    }

    /// Fetches one object as JSON.
    ///
    /// # Errors
    /// `Upstream` if the request fails, or the response is not a complete JSON body with status 200.
    async fn fetch_object(&self, path: &str) -> Result<ProcessorJson> {
        let mut permit = self.permit();
        let result = self.get(path, OBJECT_BYTES_MAX, &mut permit).await;
        let answer = result.map_err(|error| AffiliateError::Upstream(request_error(path, &error)))?;
        if answer.status != 200 {
            let reason = format!("{}{}", answered_with(path, answer.status), error_message_of(answer.body));
            return Err(AffiliateError::Upstream(reason));
        }
        if !answer.is_complete {
            return Err(AffiliateError::Upstream(too_long_message(path, OBJECT_BYTES_MAX)));
        }
        ProcessorJson::read(answer.body).map_err(|_| AffiliateError::Upstream(no_json(path)))
    }

    /// Fetches the object at `path`. The permit pays for its bytes: hold it as long as the object.
    ///
    /// # Errors
    /// There is no definite response; retry later.
    pub(crate) async fn get_object(
        &self,
        path: &str,
        permit: &mut ResponsePermit,
    ) -> Result<StripeAnswer<ProcessorJson>, StripeError> {
        Ok(match self.ask(path, OBJECT_BYTES_MAX, permit).await? {
            StripeAnswer::Object(body, at) => match ProcessorJson::read(body) {
                Ok(object) => StripeAnswer::Object(object, at),
                Err(_) => return Err(StripeError::NoResponse(no_json(path))),
            },
            StripeAnswer::Refused(denial) => StripeAnswer::Refused(denial),
        })
    }

    async fn ask(
        &self,
        path: &str,
        bytes_max: usize,
        permit: &mut ResponsePermit,
    ) -> Result<StripeAnswer<Bytes>, StripeError> {
        let requested_at = self.clock.now();
        match self.get(path, bytes_max, permit).await {
            Ok(HttpResponse { status: 200, is_complete: false, body, .. }) => Err(if body.len() < bytes_max {
                StripeError::NoResponse(format!("closed the connection while sending {}", without_query(path)))
            } else {
                StripeError::TooLarge(too_long_message(path, bytes_max))
            }),
            Ok(HttpResponse { status: 200, body, date: at, .. }) => {
                Ok(StripeAnswer::Object(body, at.unwrap_or(requested_at)))
            }
            Ok(HttpResponse { status: status @ 401, body, .. }) => {
                let description = answered_with(path, status);
                Err(StripeError::KeyRejected(format!(
                    "rejects the API key: it {description}{}",
                    error_message_of(body)
                )))
            }
            Ok(HttpResponse { status: status @ 403, body, .. }) => {
                let (description, resource) = (answered_with(path, status), resource_name(path));
                Err(StripeError::KeyNotPermitted(format!(
                    "{description}: the key may not read {resource}{}",
                    error_message_of(body)
                )))
            }
            Ok(HttpResponse { status: status @ (400..=407 | 409..=428 | 430..=499), body, .. }) => {
                tracing::info!(path, status, "the processor refuses a request");
                let reason = format!("{}{}", answered_with(path, status), error_message_of(body));
                Ok(StripeAnswer::Refused(StripeRefusal { status, text: reason }))
            }
            Ok(HttpResponse { status, .. }) => Err(StripeError::NoResponse(answered_with(path, status))),
            Err(error @ HttpClientError::Budget(ResponseBudgetError::Limit { .. })) => {
                Err(StripeError::TooLarge(request_error(path, &error)))
            }
            Err(HttpClientError::Budget(budget_error)) => Err(StripeError::MemoryBusy(budget_error)),
            Err(error) => Err(StripeError::NoResponse(request_error(path, &error))),
        }
    }

    /// Fetches up to `pages_max` pages of a list; `path` must have a query. The permit pays for the objects: hold it as
    /// long as them. The inner error is a definite refusal.
    ///
    /// # Errors
    /// As [`StripeClient::get_object`]; or the list exceeds the permit's limit.
    pub(crate) async fn list_objects(
        &self,
        path: &str,
        pages_max: usize,
        permit: &mut ResponsePermit,
    ) -> Result<Result<StripeList, StripeRefusal>, StripeError> {
        let mut fetched = StripeList { at: self.clock.now(), has_more: true, objects: Vec::new() };
        let mut after = String::new();
        for _ in 0..pages_max {
            let path = format!("{path}&limit={PAGE_OBJECTS}{after}");
            let (body, at) = match self.ask(&path, PAGE_BYTES_MAX, permit).await? {
                StripeAnswer::Object(body, at) => (body, at),
                StripeAnswer::Refused(denial) => return Ok(Err(denial)),
            };
            let unread = |error| {
                StripeError::NoResponse(format!(
                    "answered {} with a body that is not a list: {error}",
                    without_query(&path)
                ))
            };
            let page = offload(body.len(), move || ResponsePage::read(&body)).await.map_err(unread)?;
            let next = page.next().map(|id| escaped(&id));
            let is_endless = page.has_more && next.is_none() && !page.objects.is_empty();
            if fetched.objects.is_empty() {
                fetched.at = at;
            }
            fetched.objects.extend(page.objects);
            match next {
                Some(next) => after = format!("&starting_after={next}"),
                None if is_endless => {
                    let reason = "with a page whose last object has no id";
                    return Err(StripeError::NoResponse(format!("answered {} {reason}", without_query(&path))));
                }
                None => {
                    fetched.has_more = false;
                    break;
                }
            }
        }
        Ok(Ok(fetched))
    }

    /// Lists the payments that paid an invoice; empty if the processor refuses, e.g. because it has no such list.
    pub(crate) async fn list_payments(
        &self,
        lookup: PaymentLookup<'_>,
        permit: &mut ResponsePermit,
    ) -> Result<StripeList, StripeError> {
        let path = match lookup {
            PaymentLookup::Invoice(id) => format!("/v1/invoice_payments?invoice={}", escaped(id)),
            PaymentLookup::Payment(id) => format!(
                "/v1/invoice_payments?payment%5Btype%5D=payment_intent&payment%5Bpayment_intent%5D={}",
                escaped(id)
            ),
        };
        let fetched = self.list_objects(&path, PAYMENT_PAGES_MAX, permit).await?;
        let mut fetched = fetched.unwrap_or_else(|_| StripeList::empty());
        // The list also contains attempts that did not pay.
        fetched.objects.retain(|payment| payment.text_in("status").is_none_or(|status| status == "paid"));
        Ok(fetched)
    }

    /// Lists all lines of an invoice; `None` if the processor refuses or there are more than [`LINE_PAGES_MAX`] pages.
    pub(crate) async fn list_invoice_lines(&self, invoice: &str) -> Result<Option<Vec<SaleLine>>, LedgerError> {
        let path = format!("/v1/invoices/{}/lines?", escaped(invoice));
        let mut permit = self.permit();
        let fetched = self.list_objects(&path, LINE_PAGES_MAX, &mut permit).await?;
        let Some(fetched) = fetched.ok().filter(|fetched| !fetched.has_more) else { return Ok(None) };
        let read = |(nth, line): (usize, &ProcessorJson)| {
            line.check_size()?;
            invoice_line(line.text(), nth)
        };
        Ok(Some(fetched.objects.iter().enumerate().map(read).collect::<Result<_, JsonReadError>>()?))
    }
}

/// Percent-encodes an id, so that it stays one path segment or query value (RFC 3986 2.1).
pub(crate) fn escaped(id: &str) -> String {
    url::form_urlencoded::byte_serialize(id.as_bytes()).collect()
}

fn without_query(path: &str) -> &str {
    path.split_once('?').map_or(path, |(path, _)| path)
}

/// Returns the resource of a path as the processor's permissions name it, e.g. `checkout sessions`.
fn resource_name(path: &str) -> String {
    let mut segments = without_query(path).split('/').filter(|segment| !matches!(*segment, "" | "v1"));
    match (segments.next().unwrap_or_default(), segments.next()) {
        ("checkout", Some(kind)) => format!("checkout {kind}"),
        (kind, _) => kind.replace('_', " "),
    }
}

fn answered_with(path: &str, status: u16) -> String {
    format!("answered {} with status {status}", without_query(path))
}

/// Returns the processor's error message in parentheses; empty if the body has none.
fn error_message_of(body: Bytes) -> String {
    let message =
        ProcessorJson::read(body).ok().and_then(|message| message.text_at("error.message").map(Cow::into_owned));
    let text: String =
        message.iter().flat_map(|message| message.chars()).filter(|c| !c.is_control()).take(WORDS_MAX).collect();
    if text.is_empty() { text } else { format!(" ({text})") }
}

fn no_json(path: &str) -> String {
    format!("answered {} with a body that is not JSON", without_query(path))
}

fn too_long_message(path: &str, bytes_max: usize) -> String {
    format!("answered {} with more than {bytes_max} bytes", without_query(path))
}

fn request_error(path: &str, error: &HttpClientError) -> String {
    format!("cannot be queried for {}: {error}", without_query(path))
}

/// True if `text` is a plausible id: 1 to 255 visible ASCII characters.
fn is_id(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Reads live or test mode from a key's prefix: `rk_live_…`, `sk_test_…`.
fn livemode_of_key(key: &str) -> Option<bool> {
    match key.split('_').nth(1) {
        Some("live") => Some(true),
        Some("test") => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_of_a_key_is_read_from_its_prefix() {
        assert_eq!(livemode_of_key("rk_live_51abc"), Some(true));
        assert_eq!(livemode_of_key("sk_test_51abc"), Some(false));
        assert_eq!(livemode_of_key("secret"), None);
    }

    #[test]
    fn a_forbidden_resource_is_named() {
        let named = |path, thing_named| assert_eq!(resource_name(path), thing_named, "{path}");
        named("/v1/customers/cus_1", "customers");
        named("/v1/checkout/sessions?limit=100", "checkout sessions");
        named("/v1/invoice_payments?invoice=in_1", "invoice payments");
        named("/v1/invoices/in_1/lines?", "invoices");
        named("/", "");
    }
}
