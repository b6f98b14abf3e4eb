//! `GET /emails`: the list, with its filters.
//!
//! Without a filter the rows are read as they lie. With filters the catalog of terms is asked
//! (`store/src/catalog/search.rs`), after what is still untold was told, so that who sends and then looks
//! finds; where that takes too long, `as_of` says how far the catalog is. A request reads a bounded number of rows: a page of a question that little answers may be short,
//! and still have a next one.

use std::sync::Arc;
use std::time::Duration;

use mail::catalog::{Filter, words};
use mail::email::{Category, EmailStatus};
use mail::id::DomainId;
use serde_json::json;
use store::access::Tenant;
use store::email::EmailWithRecipients;

use super::view::{EmailList, EmailView, Moment};
use crate::call::{Call, Input, Takes};
use crate::page::{self, Page};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Schemas};

/// How long is waited for what was just done to be found.
const TOLD_WITHIN: Duration = Duration::from_millis(50);

const STATUSES: &[&str] = &["scheduled", "queued", "sent", "delivered", "bounced", "failed", "cancelled"];

fn status_of_word(word: &str) -> Option<EmailStatus> {
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
    page: Page,
    filter: Filter,
    domains: Vec<DomainId>,
}

/// `tag=name:value`, once for each tag that an email must have. A value may have commas in it.
fn tags(given: &[(String, String)]) -> Result<Vec<String>, Problem> {
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

fn subject(given: &[(String, String)]) -> Result<Vec<String>, Problem> {
    let Some(text) = page::one(given, "q")? else { return Ok(Vec::new()) };
    let words = words(text);
    match words.is_empty() {
        true => {
            Err(Problem::field("q", "must have a letter or a digit: words of the subject are looked for"))
        }
        false => Ok(words),
    }
}

impl Input for ListEmails {
    fn describe(_: &mut Schemas) -> Takes {
        let text = || json!({"type": "string"});
        let filter = |name: &str, description: &str| schema::query_parameter(name, description, text());
        let several = |name: &str, words: &[&str], description: &str| {
            let items = json!({"type": "array", "items": {"type": "string", "enum": words}});
            let mut parameter = schema::query_parameter(name, description, items);
            (parameter["style"], parameter["explode"]) = (json!("form"), json!(false));
            parameter
        };
        let tag = json!({"type": "array", "maxItems": page::VALUES_MAX, "items": {"type": "string", "pattern": "^[^:]+:"}});
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
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let given = page::parameters(&call.query)?;
        let filter = Filter {
            statuses: page::words(&call.query, "status", STATUSES, status_of_word)?,
            to: page::values(&given, "to", "an email address")?,
            from: page::values(&given, "from", "an email address")?,
            tags: tags(&given)?,
            categories: page::words(&call.query, "category", Category::WORDS, Category::of_word)?,
            templates: page::values(&given, "template", "a template's id or alias")?,
            domains: Vec::new(),
            words: subject(&given)?,
            sent_by: None,
            after: page::time(&given, "created_after")?,
            before: page::time(&given, "created_before")?,
        };
        let domains = page::values(&given, "domain_id", "the id of a domain (`dom_…`)")?;
        Ok(Self { page: Page::read(&call.query)?, filter, domains })
    }
}

/// `GET /emails`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(room: Arc<Room>, tenant: Tenant, input: ListEmails) -> Result<EmailList, Problem> {
    let ListEmails { page, mut filter, mut domains } = input;
    // A key that may only send sees what it sent.
    filter.sent_by = tenant.confined_to();
    if let Some(bond) = tenant.bound_to() {
        // A key that is bound to a domain sees what was sent from it.
        if !domains.is_empty() && !domains.contains(&bond) {
            return show(&room, &tenant, Vec::new(), None).await;
        }
        domains = vec![bond];
    }
    let before = page.before_email()?;
    let (store, account) = (room.hall.store(), tenant.account().id);
    for id in &domains {
        filter.domains.extend(store::domain::get(store, account, *id).await?.map(|domain| domain.name));
    }
    if !domains.is_empty() && filter.domains.is_empty() {
        // Nobody's domain, or another's: nothing was sent from it.
        return show(&room, &tenant, Vec::new(), None).await;
    }
    if filter.is_empty() {
        // One more than asked tells whether there is more.
        let mut found = store::email::list(store, account, before, page.limit + 1).await?;
        let has_more = found.len() > page.limit;
        found.truncate(page.limit);
        let next = found.last().filter(|_| has_more).map(|last| page::after_email(last.email.id));
        return show(&room, &tenant, found, next).await;
    }
    let as_of = room.hall.tell_within(TOLD_WITHIN).await.map(Moment);
    let found = store::catalog::search::search(store, account, &filter, before, page.limit).await?;
    let list = show(&room, &tenant, found.emails, found.next.map(page::after_email)).await?;
    Ok(EmailList { as_of, ..list })
}

async fn show(
    room: &Room,
    tenant: &Tenant,
    found: Vec<EmailWithRecipients>,
    next_cursor: Option<String>,
) -> Result<EmailList, Problem> {
    let about = found.iter().map(|found| (found.email.id, found.recipients.len()));
    let tallies = store::tracking::of_emails(room.hall.store(), tenant.account().id, about).await?;
    let emails = found.iter().zip(&tallies).map(|(found, tally)| EmailView::of(found, tally)).collect();
    Ok(EmailList { emails, has_more: next_cursor.is_some(), next_cursor, as_of: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_is_read_as_it_is_written() {
        for word in STATUSES {
            let status = status_of_word(word).unwrap();
            assert_eq!(serde_json::to_value(status).unwrap(), json!(word));
        }
    }
}
