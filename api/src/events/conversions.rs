//! `GET /conversions`: sign-ups and subscriptions with their source; each is recorded once.

use std::sync::Arc;

use mail::id::ProductEventId;
use mail::product_event::conversion::{Conversion, ConversionKind};
use serde::Serialize;
use serde_json::{Value, json};
use store::access::Tenant;

use crate::json_timestamp::JsonTimestamp;
use crate::paging::{KIND_CONVERSION, PageParameters, after_id};
use crate::problem::Problem;
use crate::request::{FromRequest, Request, RequestSpec};
use crate::schema::{self, Schemas, ToSchema};
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

#[derive(Debug, Serialize)]
pub struct ConversionView {
    event_id: ProductEventId,
    kind: &'static str,
    subject_id: String,
    user_id: Option<String>,
    email: Option<String>,
    visitor_id: Option<String>,
    source: Option<String>,
    came_from: Option<String>,
    signup_method: Option<String>,
    gclid: Option<String>,
    gbraid: Option<String>,
    wbraid: Option<String>,
    value: Option<f64>,
    currency: Option<String>,
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

impl ToSchema for ConversionView {
    fn schema(schemas: &mut Schemas) -> Value {
        let kinds = ConversionKind::ALL.map(ConversionKind::word);
        let text = schema::nullable_string;
        schemas.component("Conversion", |_| {
            schema::object(
                "A sign-up or subscription; recorded once per `subject_id`",
                [
                    ("event_id", schema::string("The first event that reported it (`ae_…`)")),
                    ("kind", schema::string_enum(&kinds, "The value of the dimension")),
                    ("subject_id", schema::string("The id of the user or subscription")),
                    ("user_id", text("The person's user id in your product")),
                    ("email", text("The person's email address")),
                    ("visitor_id", text("The cookie `stx_vid`")),
                    ("source", text("The measured source of the first visit")),
                    ("came_from", text("The source as named by the event")),
                    ("signup_method", text("The sign-up method")),
                    ("gclid", text("The Google Ads click id that gets the credit")),
                    ("gbraid", text("The `gbraid` click id of an app campaign")),
                    ("wbraid", text("The `wbraid` click id of an app campaign")),
                    ("value", json!({"type": ["number", "null"], "description": "The value"})),
                    ("currency", text("The currency of the value")),
                    ("occurred_at", schema::time("When it happened")),
                ],
            )
        })
    }
}

#[derive(Debug, Serialize)]
pub struct ConversionList {
    conversions: Vec<ConversionView>,
    has_more: bool,
    next_cursor: Option<String>,
}

impl ToSchema for ConversionList {
    fn schema(schemas: &mut Schemas) -> Value {
        let entry = ConversionView::schema(schemas);
        schemas.component("ConversionList", |_| schema::list_page("conversions", entry))
    }
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
