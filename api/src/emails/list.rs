//! `GET /emails`: the list with its filters.
//!
//! Without filters the rows are read in key order. With filters the term index is searched
//! (`store/src/email_index/search.rs`), after pending outbox entries were indexed, so that a client finds what it just
//! sent. If indexing takes too long, `as_of` is the end of the index. A request reads a bounded number of rows: a
//! page of a selective filter may be short and still have a next page.

use httpd::paging::{KIND_EMAIL, after_id};
use model::email::EmailStatus;
use model::email_index::{EmailFilter, subject_words};
use store::email::EmailWithRecipients;

use super::view::{EmailList, EmailView};
use crate::prelude::*;

/// Maximum wait for recent emails to be indexed.
const OUTBOX_WAIT_MAX: Duration = Duration::from_millis(50);

const STATUSES: &[&str] = &["scheduled", "queued", "sent", "delivered", "bounced", "failed", "cancelled"];

fn parse_status(word: &str) -> Option<EmailStatus> {
    Some(match word {
        "scheduled" => EmailStatus::Scheduled,
        "queued" => EmailStatus::Queued,
        "sent" => EmailStatus::Sent,
        "delivered" => EmailStatus::Delivered,
        "bounced" => EmailStatus::Bounced,
        "failed" => EmailStatus::Failed,
        "cancelled" => EmailStatus::Cancelled,
        _ => return None,
    })
}

/// Query of `GET /emails`.
#[derive(Debug)]
pub struct ListEmails {
    page: PageParameters,
    filter: EmailFilter,
    domains: Vec<DomainId>,
}

/// Parses `tag=name:value`, repeated for each required tag. Values may contain commas.
fn tag_filters(query: &mut Query) -> Result<Vec<String>> {
    query.describe(
        "tag",
        "Filter by tag, `name:value`; if repeated, all must match",
        || json!({"type": "array", "maxItems": paging::VALUES_MAX, "items": {"type": "string", "pattern": "^[^:]+:"}}),
    );
    let tags = query.given().iter().filter(|(name, value)| name == "tag" && !value.is_empty());
    let tags: Vec<String> = tags.map(|(_, value)| value.clone()).collect();
    if tags.len() > paging::VALUES_MAX {
        return Err(Problem::field("tag", format!("is given more than {} times", paging::VALUES_MAX)));
    }
    match tags.iter().all(|tag| tag.find(':').is_some_and(|at| at > 0)) {
        true => Ok(tags),
        false => Err(Problem::field("tag", "must be `name:value`")),
    }
}

fn subject_filters(query: &mut Query) -> Result<Vec<String>> {
    let text = query.text("q", "Words in the subject; all must match, in any order, case-insensitive")?;
    let Some(text) = text else { return Ok(Vec::new()) };
    let words = subject_words(&text);
    match words.is_empty() {
        true => Err(Problem::field("q", "must contain a letter or digit; it searches words of the subject")),
        false => Ok(words),
    }
}

impl RequestQuery for ListEmails {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page_described(
            "Maximum number of entries. With filters a page may be shorter, or empty, while `has_more` is true: \
             a request reads a bounded number of emails. Continue with `next_cursor`",
            "`next_cursor` of the previous page; repeat the same filters",
        )?;
        let status = "Filter by status; several separated by commas";
        let filter = EmailFilter {
            statuses: query.words_of("status", status, STATUSES, parse_status)?,
            to: query.values(
                "to",
                "Filter by recipient address in `to`, `cc` or `bcc`; several separated by commas",
                "an email address",
            )?,
            from: query.values("from", "Filter by sender address; several separated by commas", "an email address")?,
            tags: tag_filters(query)?,
            categories: query.words("category", "Filter by category; several separated by commas")?,
            templates: query.values(
                "template",
                "Filter by template, by id or by the alias used when sending; several separated by commas",
                "a template's id or alias",
            )?,
            ..EmailFilter::default()
        };
        let domains = query.values(
            "domain_id",
            "Filter by sending domain (`dom_…`); several separated by commas",
            "the id of a domain (`dom_…`)",
        )?;
        let filter = EmailFilter {
            words: subject_filters(query)?,
            after: query.time("created_after", "Only emails accepted after this time")?,
            before: query.time("created_before", "Only emails accepted before this time")?,
            ..filter
        };
        Ok(Self { page, filter, domains })
    }
}

/// `GET /emails`.
pub async fn list(state: State, tenant: Tenant, input: ListEmails) -> Result<EmailList> {
    let ListEmails { page, mut filter, mut domains } = input;
    // A sending-only key sees only emails that it sent.
    filter.sent_by = tenant.confined_to();
    if let Some(bound_domain) = tenant.bound_to() {
        // A key restricted to a domain sees only emails from that domain.
        if !domains.is_empty() && !domains.contains(&bound_domain) {
            return list_response(&state, &tenant, Vec::new(), None).await;
        }
        domains = vec![bound_domain];
    }
    let before = page.before_id(KIND_EMAIL)?.map(EmailId::from_bytes);
    let (store, account) = (&state.services.store, tenant.account().id);
    for id in &domains {
        filter.domains.extend(store::domain::get(store, account, *id).await?.map(|domain| domain.name));
    }
    if !domains.is_empty() && filter.domains.is_empty() {
        // The domains are unknown or belong to another account.
        return list_response(&state, &tenant, Vec::new(), None).await;
    }
    if filter.is_empty() {
        // Reads one more than the limit to determine whether there is a next page.
        let mut found = store::email::list(store, account, before, page.limit + 1).await?;
        let next = page.cut(&mut found, |last| after_id(KIND_EMAIL, last.email.id.to_bytes()));
        return list_response(&state, &tenant, found, next).await;
    }
    let as_of = state.queue.events.outbox.dispatch_within(OUTBOX_WAIT_MAX).await.map(JsonTimestamp);
    let found = store::email_index::search::search(store, account, &filter, before, page.limit).await?;
    let is_short = found.emails.len() < page.limit;
    let searched_until = found.next.filter(|_| is_short).map(|next| JsonTimestamp(next.born_at()));
    let list =
        list_response(&state, &tenant, found.emails, found.next.map(|id| after_id(KIND_EMAIL, id.to_bytes()))).await?;
    Ok(EmailList { as_of, searched_until, ..list })
}

async fn list_response(
    state: &AppState,
    tenant: &Tenant,
    found: Vec<EmailWithRecipients>,
    next_cursor: Option<String>,
) -> Result<EmailList> {
    let recipient_counts = found.iter().map(|found| (found.email.id, found.recipients.len()));
    let tallies = store::tracking::list_tallies(&state.services.store, tenant.account().id, recipient_counts).await?;
    let emails = found.iter().zip(&tallies).map(|(found, tally)| EmailView::from_email(found, tally)).collect();
    Ok(EmailList { emails, has_more: next_cursor.is_some(), next_cursor, searched_until: None, as_of: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_round_trips() {
        for word in STATUSES {
            let status = parse_status(word).unwrap();
            assert_eq!(serde_json::to_value(status).unwrap(), json!(word));
        }
    }
}
