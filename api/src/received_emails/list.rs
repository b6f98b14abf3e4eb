//! `GET /received-emails`: the list, with its filters.
//!
//! Newest first, or in the order of arrival for polling. When polling, the last page has a cursor too, and later
//! arrivals follow it without gaps (`store/src/received_email.rs`). A request reads a bounded number of rows: a filtered
//! page may be short and still have a next one.

use httpd::paging::KIND_RECEIVED;
use model::received::{ReceivedEmail, SpamStatus};
use store::engine::ScanOrder;
use store::received_email::{self, ReceivedQuery};

use super::view::{ReceivedEmailList, ReceivedEmailView};
use crate::prelude::*;

/// Parameters of `GET /received-emails`.
#[derive(Debug)]
pub struct ListReceivedEmails {
    page: PageParameters,
    ascending: bool,
    filter: ReceivedEmailFilter,
}

#[derive(Debug, Default)]
struct ReceivedEmailFilter {
    to: Vec<Address>,
    from: Vec<Address>,
    domains: Vec<DomainId>,
    spam: Vec<SpamStatus>,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
}

fn is_same_address(left: &Address, right: &Address) -> bool {
    left.domain() == right.domain() && left.local_part().eq_ignore_ascii_case(right.local_part())
}

impl ReceivedEmailFilter {
    fn matches(&self, received: &ReceivedEmail) -> bool {
        let one_of = |addresses: &[Address], found: [Option<&Address>; 2]| {
            addresses.is_empty()
                || found
                    .into_iter()
                    .flatten()
                    .any(|found| addresses.iter().any(|address| is_same_address(address, found)))
        };
        one_of(&self.to, [Some(&received.rcpt_to), None])
            && one_of(&self.from, [received.heading.author.as_ref(), received.envelope_from.as_ref()])
            && (self.domains.is_empty() || self.domains.contains(&received.domain))
            && (self.spam.is_empty() || self.spam.contains(&received.spam_status))
            && self.after.is_none_or(|after| received.received_at > after)
            && self.before.is_none_or(|before| received.received_at < before)
    }
}

impl RequestQuery for ListReceivedEmails {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        let order = query.parameter(
            "order",
            "`desc`: newest first. `asc`: in the order of arrival; the last page has a cursor too, and later \
             arrivals follow it without gaps",
            || json!({"type": "string", "enum": ["desc", "asc"], "default": "desc"}),
        )?;
        let ascending = match order {
            None | Some("desc") => false,
            Some("asc") => true,
            Some(_) => return Err(Problem::field("order", "must be `desc` or `asc`")),
        };
        let filter = ReceivedEmailFilter {
            to: query.values("to", "Envelope recipient; any of several, separated by commas", "an email address")?,
            from: query.values(
                "from",
                "Address of the author or of the envelope sender; any of several, separated by commas",
                "an email address",
            )?,
            domains: query.values(
                "domain_id",
                "Receiving domain (`dom_…`); any of several, separated by commas",
                "the id of a domain (`dom_…`)",
            )?,
            spam: query.words("spam_status", "Spam status; any of several, separated by commas")?,
            after: query.time("received_after", "Only those received after this time")?,
            before: query.time("received_before", "Only those received before this time")?,
        };
        Ok(Self { page, ascending, filter })
    }
}

/// `GET /received-emails`.
pub async fn list(state: State, tenant: Tenant, input: ListReceivedEmails) -> Result<ReceivedEmailList> {
    let ListReceivedEmails { page, ascending, mut filter } = input;
    let from = page.cursor_number(KIND_RECEIVED)?;
    if let Some(bound_domain) = tenant.bound_to() {
        // A key that is bound to a domain sees only email of that domain.
        if !filter.domains.is_empty() && !filter.domains.contains(&bound_domain) {
            let next_cursor = ascending.then(|| paging::after_number(KIND_RECEIVED, from.unwrap_or(0)));
            return Ok(ReceivedEmailList { received_emails: Vec::new(), has_more: false, next_cursor });
        }
        filter.domains = vec![bound_domain];
    }
    let order = if ascending { ScanOrder::Ascending } else { ScanOrder::Descending };
    let query = ReceivedQuery { order, from, limit: page.limit, after: filter.after, before: filter.before };
    let (store, account) = (&state.services.store, tenant.account().id);
    let listed = received_email::list(store, account, &query, |email| filter.matches(email)).await?;
    // In the order of arrival every page has a cursor, so that a client can poll from it.
    let position = match ascending {
        true => Some(listed.looked_at.or(from).unwrap_or(0)),
        false => listed.looked_at.filter(|_| listed.has_more),
    };
    Ok(ReceivedEmailList {
        received_emails: listed.received.iter().map(ReceivedEmailView::from_received).collect(),
        has_more: listed.has_more,
        next_cursor: position.map(|position| paging::after_number(KIND_RECEIVED, position)),
    })
}
