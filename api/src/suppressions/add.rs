//! `POST /suppressions`: suppresses one address, or up to 1000 with an entry for each in the response.
//!
//! An address that is suppressed already gets the status `exists`. The stronger and longer of both suppressions
//! applies; if the result differs from the request or from before, `warnings` contains a warning.

use accounts::suppressions::{SuppressionResult, SuppressionService};
use httpd::problem::BatchEntryError;
use httpd::request_object::bounded_text_schema;
use httpd::request_value::Time;
use message::address::ADDRESS_BYTES_MAX;
use model::import::NOTE_CHARS_MAX;
use model::quota::Noun;
use model::suppression::{SuppressionCause, SuppressionReason, SuppressionTarget};

use super::view::{SuppressionResponse, SuppressionView};
use crate::prelude::*;
use crate::suppressions::commit_error::suppression_problem;

/// Most addresses of one request.
pub const EMAILS_MAX: usize = 1_000;
/// Longest body: a thousand addresses of maximum length, and a note.
pub(super) const BODY_BYTES_MAX: usize = 512 << 10;

/// The targets of a request: `email` or `emails`.
#[derive(Debug)]
enum SuppressionTargets {
    One(SuppressionTarget),
    /// The parsed entries, or the error of an invalid one.
    Many(Vec<Result<SuppressionTarget, String>>),
}

/// The addresses or domains to suppress: `email` or `emails`
#[derive(Debug, RequestObject)]
#[schema(name = "AddSuppressions", examples = [{"email": "grace@example.net", "note": "Requested by phone"}])]
struct SuppressionFields {
    /// An address, or `@domain.tld`
    #[field(foreign = ["EmailAddress", "address"], parse = parse_target, schema = target_schema)]
    email: Option<SuppressionTarget>,
    /// Several addresses or domains
    #[field(
        foreign = ["Suppressions"], parse = parse_targets,
        schema = json!({"type": "array", "items": target_schema(schemas), "minItems": 1, "maxItems": EMAILS_MAX}),
    )]
    emails: Option<Vec<Result<SuppressionTarget, String>>>,
    /// Free text
    #[field(parse = parse_note, schema = bounded_text_schema(0, NOTE_CHARS_MAX))]
    note: Option<String>,
    /// Expiry; never if omitted
    #[field(aliases = ["expiresAt"], reader = Time)]
    expires_at: Option<Timestamp>,
}

/// The request of `POST /suppressions`.
#[derive(Debug)]
pub struct AddSuppressions {
    targets: SuppressionTargets,
    note: Option<String>,
    expires_at: Option<Timestamp>,
}

impl FromRequest for AddSuppressions {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);
    const BODY: Option<BodySchema> = Some(SuppressionFields::schema);

    fn read(call: &Request) -> Result<Self> {
        let fields = read_checked_body(call, |_: &SuppressionFields, fields, notes| {
            match (fields.value("email"), fields.value("emails")) {
                (Some(_), Some(_)) => notes.errors.add("emails", "cannot be combined with `email`"),
                (None, None) => notes.errors.add("email", "`email` or `emails` is required"),
                _ => {}
            }
        })?;
        let SuppressionFields { email, emails, note, expires_at } = fields;
        let targets = email.map(SuppressionTargets::One).or(emails.map(SuppressionTargets::Many));
        let targets = targets.ok_or_else(|| Problem::internal("neither an address nor addresses"))?;
        Ok(Self { targets, note, expires_at })
    }
}

pub(super) fn parse_target(value: &RawValue) -> Result<SuppressionTarget, String> {
    SuppressionTarget::parse(&fields::parse_text(value)?).map_err(|error| error.to_string())
}

fn parse_note(value: &RawValue) -> Result<String, String> {
    let text = fields::parse_header_line(value, NOTE_CHARS_MAX * 4)?;
    if text.chars().count() > NOTE_CHARS_MAX {
        return Err(format!("is longer than {NOTE_CHARS_MAX} characters"));
    }
    Ok(text)
}

fn target_schema(_: &mut Schemas) -> Value {
    bounded_text_schema(0, 4 * ADDRESS_BYTES_MAX)
}

/// Each entry has its own error.
fn parse_targets(value: &RawValue) -> Result<Vec<Result<SuppressionTarget, String>>, String> {
    let entries = fields::parse_list(value, EMAILS_MAX)?;
    if entries.is_empty() {
        return Err("has no entries".to_owned());
    }
    Ok(entries.into_iter().map(parse_target).collect())
}

/// The result for one address
#[derive(Debug, Serialize, ToSchema)]
struct AddSuppressionEntry {
    /// Index in the request, from 0
    index: usize,
    /// The suppression's id (`sup_…`)
    id: Option<SuppressionId>,
    /// `created` by this request, `exists` already, or `failed`
    #[schema(enum = ["created", "exists", "failed"])]
    status: &'static str,
    /// Differences from the request or from the suppression before
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The error
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<BatchEntryError>,
}

/// The response to `email`.
#[derive(Debug, Serialize)]
pub struct AddedSuppression {
    #[serde(flatten)]
    suppression: SuppressionResponse,
    /// Differences from the request or from the suppression before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// The results
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "SuppressionsAdded")]
pub struct AddedSuppressions {
    /// An entry for each address, in the order of the request
    data: Vec<AddSuppressionEntry>,
}

/// The response: the suppression of `email`, or an entry for each of `emails`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum AddSuppressionsResponse {
    One(AddedSuppression),
    Many(AddedSuppressions),
}

impl ToSchema for AddSuppressionsResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        json!({"oneOf": [SuppressionResponse::schema(schemas), AddedSuppressions::schema(schemas)]})
    }
}

/// `POST /suppressions`.
pub async fn add(state: State, tenant: Tenant, request: AddSuppressions) -> Result<AddSuppressionsResponse> {
    let AddSuppressions { targets, note, expires_at } = request;
    if expires_at.is_some_and(|end| end <= state.services.clock.now()) {
        return Err(Problem::field("expires_at", "must be in the future"));
    }
    let terms = SuppressionTerms { note: note.as_deref(), expires_at };
    let cause_for = |target: &SuppressionTarget| SuppressionCause {
        note: note.clone(),
        expires_at,
        ..SuppressionCause::new(target.clone(), SuppressionReason::Manual, tenant.actor().source())
    };
    let (account, contacts) = (tenant.account().id, SuppressionService::new(&state.services));
    let reserve = async |causes: &[SuppressionCause]| {
        let added = contacts.would_add(account, causes).await?.into_iter().filter(|adds| *adds).count();
        state.reserve_storage(&tenant, Noun::Suppressions, added as u64).await
    };
    let many = match targets {
        SuppressionTargets::Many(many) => many,
        SuppressionTargets::One(target) => {
            let causes = [cause_for(&target)];
            let reserved = reserve(&causes).await?;
            let outcomes = contacts.suppress(account, &causes, &|_, _| {}).await.map_err(suppression_problem)?;
            let outcome = outcomes.first().ok_or_else(|| Problem::internal("one address, no outcome"))?;
            reserved.confirm_part(count_created(&outcomes));
            let warnings = terms.difference_warning(outcome).into_iter().collect();
            return Ok(AddSuppressionsResponse::One(AddedSuppression {
                suppression: SuppressionResponse {
                    suppression: SuppressionView::from_suppression(&outcome.suppression),
                },
                warnings,
            }));
        }
    };
    let all: Vec<SuppressionCause> = many.iter().flatten().map(cause_for).collect();
    let reserved = reserve(&all).await?;
    let outcomes = contacts.suppress(account, &all, &|_, _| {}).await.map_err(suppression_problem)?;
    reserved.confirm_part(count_created(&outcomes));
    let mut outcomes = outcomes.into_iter();
    let data = many.iter().enumerate().map(|(index, entry)| match entry {
        Ok(_) => AddSuppressionEntry::from_outcome(index, outcomes.next(), &terms),
        Err(text) => AddSuppressionEntry::from_problem(index, &Problem::field("email", text.as_str())),
    });
    Ok(AddSuppressionsResponse::Many(AddedSuppressions { data: data.collect() }))
}

fn count_created(outcomes: &[SuppressionResult]) -> u64 {
    outcomes.iter().filter(|outcome| outcome.before.is_none()).count() as u64
}

/// The note and the expiry of the request, for all addresses.
struct SuppressionTerms<'a> {
    note: Option<&'a str>,
    expires_at: Option<Timestamp>,
}

impl SuppressionTerms<'_> {
    /// The warning for an address that was suppressed before: how the suppression changed, or which part of the
    /// request was not applied.
    fn difference_warning(&self, outcome: &SuppressionResult) -> Option<String> {
        let until = |end: Option<Timestamp>| match end {
            Some(end) => format!("until {}", JsonTimestamp(end)),
            None => "permanently".to_owned(),
        };
        let (before, current) = (outcome.before.as_ref()?, &outcome.suppression);
        let (email, reason) = (current.target.key(), before.reason.word());
        let (was, is) = (until(before.expires_at), until(current.expires_at));
        if outcome.is_new {
            return Some(format!("{email} was suppressed {was} ({reason}) and is now suppressed {is}"));
        }
        let is_unchanged = self.note.is_none_or(|note| current.note.as_deref() == Some(note));
        let differs = self.expires_at != current.expires_at || !is_unchanged;
        differs.then(|| format!("{email} is already suppressed {is} ({reason}); its expiry and note are unchanged"))
    }
}

impl AddSuppressionEntry {
    fn from_outcome(index: usize, outcome: Option<SuppressionResult>, asked: &SuppressionTerms<'_>) -> Self {
        let warnings = outcome.as_ref().and_then(|outcome| asked.difference_warning(outcome)).into_iter().collect();
        let is_new = outcome.as_ref().is_some_and(|outcome| outcome.before.is_none());
        let id = outcome.map(|outcome| outcome.suppression.id);
        Self { index, id, status: if is_new { "created" } else { "exists" }, warnings, error: None }
    }

    fn from_problem(index: usize, problem: &Problem) -> Self {
        let error = Some(problem.batch_entry_error());
        Self { index, id: None, status: "failed", warnings: Vec::new(), error }
    }
}
