//! `GET /received-emails`: the list, with its filters.
//!
//! Newest first; or in the order of arrival, for whoever polls: there the last page has a cursor too, and what
//! arrives later comes behind it, whatever arrives at once (`store/src/received.rs`). A request reads a bounded
//! number of rows: a page with filters may be short, and still have a next one.

use std::sync::Arc;

use jiff::Timestamp;
use mail::address::Address;
use mail::id::DomainId;
use mail::received::{Received, SpamStatus};
use serde_json::json;
use store::access::Tenant;
use store::engine::Order;
use store::received::{self, Asked};

use super::view::{ReceivedList, ReceivedView};
use crate::call::{Call, Input, Takes};
use crate::page::{self, KIND_RECEIVED, Page};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

/// What `GET /received-emails` takes.
#[derive(Debug)]
pub struct ListReceivedEmails {
    page: Page,
    ascending: bool,
    filter: Filter,
}

#[derive(Debug, Default)]
struct Filter {
    to: Vec<Address>,
    from: Vec<Address>,
    domains: Vec<DomainId>,
    spam: Vec<SpamStatus>,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

fn is_same(one: &Address, other: &Address) -> bool {
    one.domain() == other.domain() && one.local().eq_ignore_ascii_case(other.local())
}

impl Filter {
    fn passes(&self, received: &Received) -> bool {
        let one_of = |wanted: &[Address], found: [Option<&Address>; 2]| {
            wanted.is_empty()
                || found.into_iter().flatten().any(|found| wanted.iter().any(|wanted| is_same(wanted, found)))
        };
        one_of(&self.to, [Some(&received.rcpt_to), None])
            && one_of(&self.from, [received.heading.author.as_ref(), received.envelope_from.as_ref()])
            && (self.domains.is_empty() || self.domains.contains(&received.domain))
            && (self.spam.is_empty() || self.spam.contains(&received.spam_status))
            && self.after.is_none_or(|after| received.received_at > after)
            && self.before.is_none_or(|before| received.received_at < before)
    }
}

impl Input for ListReceivedEmails {
    fn describe(_: &mut Schemas) -> Takes {
        let text = || json!({"type": "string"});
        let filter = |name: &str, description: &str| schema::query_parameter(name, description, text());
        let words = json!({"type": "array", "items": {"type": "string", "enum": SpamStatus::WORDS}});
        let mut spam = schema::query_parameter("spam_status", "Whether it is spam; of several, one", words);
        (spam["style"], spam["explode"]) = (json!("form"), json!(false));
        let order = json!({"type": "string", "enum": ["desc", "asc"], "default": "desc"});
        let mut parameters = Page::parameters();
        parameters.extend([
            schema::query_parameter(
                "order",
                "`desc`: newest first. `asc`: in the order of arrival; the last page has a cursor too, behind \
                 which comes what arrives later, and nothing is left out",
                order,
            ),
            filter("to", "The address that it came in for; of several with commas, one"),
            filter("from", "The author's address, or the envelope's; of several with commas, one"),
            filter("domain_id", "The domain that it came in for (`dom_…`); of several, one"),
            spam,
            schema::time_parameter("received_after", "Only those received after this time"),
            schema::time_parameter("received_before", "Only those received before this time"),
        ]);
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let given = page::parameters(&call.query)?;
        let ascending = match page::one(&given, "order")? {
            None | Some("desc") => false,
            Some("asc") => true,
            Some(_) => return Err(Problem::field("order", "must be `desc` or `asc`")),
        };
        let filter = Filter {
            to: page::values(&given, "to", "an email address")?,
            from: page::values(&given, "from", "an email address")?,
            domains: page::values(&given, "domain_id", "the id of a domain (`dom_…`)")?,
            spam: page::words(&call.query, "spam_status", &SpamStatus::WORDS, SpamStatus::of_word)?,
            after: page::time(&given, "received_after")?,
            before: page::time(&given, "received_before")?,
        };
        Ok(Self { page: Page::read(&call.query)?, ascending, filter })
    }
}

/// `GET /received-emails`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(
    room: Arc<Room>,
    tenant: Tenant,
    input: ListReceivedEmails,
) -> Result<ReceivedList, Problem> {
    let ListReceivedEmails { page, ascending, mut filter } = input;
    let from = page.number(KIND_RECEIVED)?;
    if let Some(bond) = tenant.bound_to() {
        // A key that is bound to a domain sees what came in for it.
        if !filter.domains.is_empty() && !filter.domains.contains(&bond) {
            let next_cursor = ascending.then(|| page::after_number(KIND_RECEIVED, from.unwrap_or(0)));
            return Ok(ReceivedList { received_emails: Vec::new(), has_more: false, next_cursor });
        }
        filter.domains = vec![bond];
    }
    let order = if ascending { Order::Ascending } else { Order::Descending };
    let asked = Asked { order, from, limit: page.limit, after: filter.after, before: filter.before };
    let (store, account) = (room.hall.store(), tenant.account().id);
    let listed = received::list(store, account, &asked, |one| filter.passes(one)).await?;
    // In the order of arrival a poller comes back with the cursor of the last page.
    let place = match ascending {
        true => Some(listed.looked_at.or(from).unwrap_or(0)),
        false => listed.looked_at.filter(|_| listed.has_more),
    };
    Ok(ReceivedList {
        received_emails: listed.received.iter().map(ReceivedView::of).collect(),
        has_more: listed.has_more,
        next_cursor: place.map(|place| page::after_number(KIND_RECEIVED, place)),
    })
}
