//! `GET /conversions`: sign-ups and subscriptions with their source; each is recorded once.

use std::sync::Arc;

use mail::id::ProductEventId;
use mail::product_event::conversion::Conversion;
use serde::Serialize;
use store::access::Tenant;

use crate::json_timestamp::JsonTimestamp;
use crate::paging::{KIND_CONVERSION, PageParameters, after_id};
use crate::problem::Problem;
use crate::request::{FromRequest, Request, RequestSpec};
use crate::schema::{Schemas, ToSchema};
use crate::state::AppState;

/// Query of `GET /conversions`.
#[derive(Debug)]
pub struct ListConversions(PageParameters);

impl FromRequest for ListConversions {
    fn describe(_: &mut Schemas) -> RequestSpec {
        RequestSpec { parameters: PageParameters::parameters(), ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        PageParameters::from_query(&call.query).map(Self)
    }
}

/// A sign-up or subscription; recorded once per `subject_id`
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "Conversion")]
pub struct ConversionView {
    /// The first event that reported it (`ae_…`)
    event_id: ProductEventId,
    /// The value of the dimension
    #[schema(enum = ["sign_up", "subscription"])]
    kind: &'static str,
    /// The id of the user or subscription
    subject_id: String,
    /// The person's user id in your product
    user_id: Option<String>,
    /// The person's email address
    email: Option<String>,
    /// The cookie `stx_vid`
    visitor_id: Option<String>,
    /// The measured source of the first visit
    source: Option<String>,
    /// The source as named by the event
    came_from: Option<String>,
    /// The sign-up method
    signup_method: Option<String>,
    /// The Google Ads click id that gets the credit
    gclid: Option<String>,
    /// The `gbraid` click id of an app campaign
    gbraid: Option<String>,
    /// The `wbraid` click id of an app campaign
    wbraid: Option<String>,
    /// The value
    value: Option<f64>,
    /// The currency of the value
    currency: Option<String>,
    /// When it happened
    occurred_at: JsonTimestamp,
}

impl ConversionView {
    fn from_conversion(conversion: Conversion) -> Self {
        let Conversion { event, kind, subject, user_id, email, context, source, value, occurred_at, .. } = conversion;
        let (value, currency) = value.unzip();
        Self {
            event_id: event,
            kind: kind.word(),
            subject_id: subject,
            user_id,
            email,
            visitor_id: context.visitor_id,
            source,
            came_from: context.came_from,
            signup_method: context.signup_method,
            gclid: context.clicks.gclid,
            gbraid: context.clicks.gbraid,
            wbraid: context.clicks.wbraid,
            value,
            currency: currency.flatten(),
            occurred_at: JsonTimestamp(occurred_at),
        }
    }
}

/// A page of the list
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "ConversionList")]
pub struct ConversionList {
    /// The entries, newest first
    conversions: Vec<ConversionView>,
    /// Whether there are more
    has_more: bool,
    /// The `cursor` of the next page
    next_cursor: Option<String>,
}

/// `GET /conversions`.
///
/// # Errors
/// The cursor is invalid; the store cannot be read.
pub async fn list(
    state: Arc<AppState>,
    tenant: Tenant,
    ListConversions(page): ListConversions,
) -> Result<ConversionList, Problem> {
    let before = page.before_id(KIND_CONVERSION)?.map(ProductEventId::from_bytes);
    super::aggregation::wait_until_counted(&state).await;
    let (store, account) = (state.intake.store(), tenant.account().id);
    let mut found = store::conversion::list(store, account, before, page.limit + 1).await?;
    let has_more = found.len() > page.limit;
    found.truncate(page.limit);
    let last = found.last().map(|conversion| conversion.event.to_bytes());
    let next_cursor = last.filter(|_| has_more).map(|id| after_id(KIND_CONVERSION, id));
    Ok(ConversionList {
        conversions: found.into_iter().map(ConversionView::from_conversion).collect(),
        has_more,
        next_cursor,
    })
}
