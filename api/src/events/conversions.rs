//! `GET /conversions`: sign-ups and subscriptions with their source; each is recorded once.

use httpd::paging::{KIND_CONVERSION, after_id};
use message::address::ADDRESS_BYTES_MAX;
use model::product_event::USER_ID_BYTES_MAX;
use model::product_event::conversion::{Conversion, ConversionKind};
use store::product_event::normalize_email;

use super::{first_id_at_or_after, last_id_at};
use crate::prelude::*;

/// Longest source in a filter.
const SOURCE_BYTES_MAX: usize = 1_024;

/// Maximum number of conversions scanned per page.
const SCANNED_ROWS_MAX: usize = 2_000;
/// Conversions per read.
const SCAN_ROWS: usize = 200;

/// Query of `GET /conversions`.
#[derive(Debug)]
pub struct ListConversions {
    page: PageParameters,
    kind: Option<ConversionKind>,
    source: Option<String>,
    email: Option<String>,
    user_id: Option<String>,
    /// Inclusive.
    since: Option<ProductEventId>,
    /// Exclusive.
    before: Option<ProductEventId>,
}

impl ListConversions {
    fn matches(&self, conversion: &Conversion) -> bool {
        let is_email =
            |wanted: &String| conversion.email.as_deref().map(normalize_email) == Some(normalize_email(wanted));
        self.kind.is_none_or(|kind| conversion.kind == kind)
            && self.source.as_ref().is_none_or(|source| conversion.source.as_ref() == Some(source))
            && self.email.as_ref().is_none_or(is_email)
            && self.user_id.as_ref().is_none_or(|user| conversion.user_id.as_ref() == Some(user))
    }
}

impl RequestQuery for ListConversions {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        let kinds = || json!({"type": "string", "enum": ConversionKind::ALL.map(ConversionKind::word)});
        let kind = query.parameter("kind", "Filter by kind", kinds)?.map(|word| {
            let error = || Problem::field("kind", "must be sign_up or subscription");
            ConversionKind::from_word(word).ok_or_else(error)
        });
        Ok(Self {
            page,
            kind: kind.transpose()?,
            source: query.bounded_text(
                "source",
                "Filter by the measured source of the first visit",
                SOURCE_BYTES_MAX,
            )?,
            email: query.bounded_text("email", "Filter by email address", ADDRESS_BYTES_MAX)?,
            user_id: query.bounded_text("user_id", "Filter by user id", USER_ID_BYTES_MAX)?,
            since: query.time("created_after", "Only those whose event was received after this time")?.map(last_id_at),
            before: query
                .time("created_before", "Only those whose event was received before this time")?
                .map(first_id_at_or_after),
        })
    }
}

object_view! {
    /// A sign-up or subscription; recorded once per `subject_id`
    #[schema(name = "Conversion")]
    pub struct ConversionView, fn from_conversion(
        conversion: Conversion;
        let Conversion { event, kind, subject, user_id, email, context, source, value, occurred_at, .. } = conversion;
        let (value, currency) = value.unzip()
    ) {
        /// The first event that reported it (`ae_…`)
        event_id: ProductEventId = event,
        /// The value of the dimension
        #[schema(enum = ["sign_up", "subscription"])]
        kind: &'static str = kind.word(),
        /// The id of the user or subscription
        subject_id: String = subject,
        /// The person's user id in your product
        user_id: Option<String> = user_id,
        /// The person's email address
        email: Option<String> = email,
        /// The cookie `stx_vid`
        visitor_id: Option<String> = context.visitor_id,
        /// The measured source of the first visit
        source: Option<String> = source,
        /// The source as named by the event
        came_from: Option<String> = context.came_from,
        /// The sign-up method
        signup_method: Option<String> = context.signup_method,
        /// The Google Ads click id that gets the credit
        gclid: Option<String> = context.clicks.gclid,
        /// The `gbraid` click id of an app campaign
        gbraid: Option<String> = context.clicks.gbraid,
        /// The `wbraid` click id of an app campaign
        wbraid: Option<String> = context.clicks.wbraid,
        /// The value
        value: Option<f64> = value,
        /// The currency of the value
        currency: Option<String> = currency.flatten(),
        /// When it happened
        occurred_at: JsonTimestamp = JsonTimestamp(occurred_at),
    }
}

list_response! { pub ConversionList { conversions: ConversionView } as "ConversionList" }

/// `GET /conversions`.
pub async fn list(state: State, tenant: Tenant, query: ListConversions) -> Result<ConversionList> {
    let cursor = query.page.before_id(KIND_CONVERSION)?.map(ProductEventId::from_bytes);
    super::aggregation::wait_until_counted(&state).await;
    let (store, account) = (&state.services.store, tenant.account().id);
    let mut before = cursor.into_iter().chain(query.before).min();
    let (mut conversions, mut scanned) = (Vec::new(), 0);
    // The position of the next page, if there is one.
    let next = 'scan: loop {
        let rows = store::conversion::list(store, account, before, SCAN_ROWS).await?;
        if rows.is_empty() {
            break None;
        }
        for conversion in rows {
            if query.since.is_some_and(|since| conversion.event < since) {
                break 'scan None;
            }
            if scanned == SCANNED_ROWS_MAX {
                break 'scan before;
            }
            if query.matches(&conversion) {
                if conversions.len() == query.page.limit {
                    break 'scan before;
                }
                conversions.push(ConversionView::from_conversion(conversion.clone()));
            }
            (before, scanned) = (Some(conversion.event), scanned + 1);
        }
    };
    let next_cursor = next.map(|event| after_id(KIND_CONVERSION, event.to_bytes()));
    Ok(ConversionList::new(conversions, next_cursor))
}
