//! `GET /emails`: the list, with its filters.
//!
//! Without a filter the rows are read as they lie. With filters the catalog of terms is asked
//! (`store/src/catalog/search.rs`), after what is still untold was told, so that who sends and then looks
//! finds; where that takes too long, `as_of` says how far the catalog is. A request reads a bounded number of rows: a page of a question that little answers may be short,
//! and still have a next one.

use std::sync::Arc;
use std::time::Duration;

use mail::catalog::{EmailFilter, subject_words};
use mail::email::{Category, EmailStatus};
use mail::id::DomainId;
use serde_json::json;
use store::access::Tenant;
use store::email::EmailWithRecipients;

use super::view::{EmailList, EmailView, JsonTimestamp};
use crate::call::{FromRequest, Request, RequestSpec};
use crate::page::{self, PageParameters};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas};

/// How long is waited for what was just done to be found.
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

/// What `GET /emails` takes.
#[derive(Debug)]
pub struct ListEmails {
    page: PageParameters,
    filter: EmailFilter,
    domains: Vec<DomainId>,
}

/// `tag=name:value`, once for each tag that an email must have. A value may have commas in it.
fn tag_filters(given: &[(String, String)]) -> Result<Vec<String>, Problem> {
    let tags = given.iter().filter(|(name, value)| name == "tag" && !value.is_empty());
    let tags: Vec<String> = tags.map(|(_, value)| value.clone()).collect();
    if tags.len() > page::VALUES_MAX {
        return Err(Problem::field("tag", format!("is given more than {} times", page::VALUES_MAX)));
    }
    match tags.iter().all(|tag| tag.find(':').is_some_and(|at| at > 0)) {
        true => Ok(tags),
        false => Err(Problem::field("tag", "must be `name:value`")),
    }
}

fn subject_filters(given: &[(String, String)]) -> Result<Vec<String>, Problem> {
    let Some(text) = page::single_value(given, "q")? else { return Ok(Vec::new()) };
    let words = subject_words(text);
    match words.is_empty() {
        true => Err(Problem::field("q", "must have a letter or a digit: words of the subject are looked for")),
        false => Ok(words),
    }
}

impl FromRequest for ListEmails {
    fn describe(_: &mut Schemas) -> RequestSpec {
        let text = || json!({"type": "string"});
        let filter = |name: &str, description: &str| schema::query_parameter(name, description, text());
        let several = |name: &str, words: &[&str], description: &str| {
            let items = json!({"type": "array", "items": {"type": "string", "enum": words}});
            let mut parameter = schema::query_parameter(name, description, items);
            (parameter["style"], parameter["explode"]) = (json!("form"), json!(false));
            parameter
        };
        let tag =
            json!({"type": "array", "maxItems": page::VALUES_MAX, "items": {"type": "string", "pattern": "^[^:]+:"}});
        let mut parameters = vec![
            schema::query_parameter(
                "limit",
                "How many entries. With filters a page may be shorter, and even empty, while `has_more` is true: \
                 a request reads a bounded number of emails; go on with `next_cursor`",
                json!({"type": "integer", "minimum": 1, "maximum": page::LIMIT_MAX, "default": page::LIMIT_DEFAULT}),
            ),
            schema::query_parameter(
                "cursor",
                "`next_cursor` of the page before; give the same filters with it",
                text(),
            ),
        ];
        parameters.extend([
            several("status", STATUSES, "Where it stands; of several, one"),
            filter("to", "The address of a recipient, in `to`, `cc` or `bcc`; of several with commas, one"),
            filter("from", "The author's address; of several with commas, one"),
            schema::query_parameter("tag", "A tag, `name:value`; given several times, all of them", tag),
            several("category", Category::WORDS, "What it is for; of several, one"),
            filter("template", "A template, by id or by its alias when it was sent; of several, one"),
            filter("domain_id", "A sending domain (`dom_…`); of several, one"),
            filter("q", "Words that the subject has, all of them, in any order; their case does not count"),
            schema::time_parameter("created_after", "Only emails accepted after this time"),
            schema::time_parameter("created_before", "Only emails accepted before this time"),
        ]);
        RequestSpec { parameters, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let given = page::parse_query(&call.query)?;
        let filter = EmailFilter {
            statuses: page::parse_words(&call.query, "status", STATUSES, parse_status)?,
            to: page::parse_values(&given, "to", "an email address")?,
            from: page::parse_values(&given, "from", "an email address")?,
            tags: tag_filters(&given)?,
            categories: page::parse_words(&call.query, "category", Category::WORDS, Category::from_word)?,
            templates: page::parse_values(&given, "template", "a template's id or alias")?,
            domains: Vec::new(),
            words: subject_filters(&given)?,
            sent_by: None,
            after: page::parse_time(&given, "created_after")?,
            before: page::parse_time(&given, "created_before")?,
        };
        let domains = page::parse_values(&given, "domain_id", "the id of a domain (`dom_…`)")?;
        Ok(Self { page: PageParameters::from_query(&call.query)?, filter, domains })
    }
}

/// `GET /emails`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(room: Arc<AppState>, tenant: Tenant, input: ListEmails) -> Result<EmailList, Problem> {
    let ListEmails { page, mut filter, mut domains } = input;
    // A key that may only send sees what it sent.
    filter.sent_by = tenant.confined_to();
    if let Some(bond) = tenant.bound_to() {
        // A key that is bound to a domain sees what was sent from it.
        if !domains.is_empty() && !domains.contains(&bond) {
            return list_response(&room, &tenant, Vec::new(), None).await;
        }
        domains = vec![bond];
    }
    let before = page.before_email()?;
    let (store, account) = (room.intake.store(), tenant.account().id);
    for id in &domains {
        filter.domains.extend(store::domain::get(store, account, *id).await?.map(|domain| domain.name));
    }
    if !domains.is_empty() && filter.domains.is_empty() {
        // Nobody's domain, or another's: nothing was sent from it.
        return list_response(&room, &tenant, Vec::new(), None).await;
    }
    if filter.is_empty() {
        // One more than asked tells whether there is more.
        let mut found = store::email::list(store, account, before, page.limit + 1).await?;
        let has_more = found.len() > page.limit;
        found.truncate(page.limit);
        let next = found.last().filter(|_| has_more).map(|last| page::after_email(last.email.id));
        return list_response(&room, &tenant, found, next).await;
    }
    let as_of = room.intake.dispatch_outbox_within(OUTBOX_WAIT_MAX).await.map(JsonTimestamp);
    let found = store::catalog::search::search(store, account, &filter, before, page.limit).await?;
    let list = list_response(&room, &tenant, found.emails, found.next.map(page::after_email)).await?;
    Ok(EmailList { as_of, ..list })
}

async fn list_response(
    room: &AppState,
    tenant: &Tenant,
    found: Vec<EmailWithRecipients>,
    next_cursor: Option<String>,
) -> Result<EmailList, Problem> {
    let about = found.iter().map(|found| (found.email.id, found.recipients.len()));
    let tallies = store::tracking::list_tallies(room.intake.store(), tenant.account().id, about).await?;
    let emails = found.iter().zip(&tallies).map(|(found, tally)| EmailView::from_email(found, tally)).collect();
    Ok(EmailList { emails, has_more: next_cursor.is_some(), next_cursor, as_of: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_is_read_as_it_is_written() {
        for word in STATUSES {
            let status = parse_status(word).unwrap();
            assert_eq!(serde_json::to_value(status).unwrap(), json!(word));
        }
    }
}
