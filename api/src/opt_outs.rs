//! Opt-outs of a category: who wants no product mail, or no newsletter (completions-email.md 2.6).

use std::sync::Arc;

use http::Method;
use mail::address::{Address, Mailbox};
use mail::credential::Scope;
use mail::email::Category;
use mail::id::{EmailId, OptOutId};
use mail::quota::Noun;
use mail::suppression::{OPTIONAL, OptOut, Source, address_key, category_label, category_word};
use serde::Serialize;
use serde_json::{Value, json};
use store::access::Tenant;
use store::engine::{Batch, CommitError};

use crate::call::{Call, Input, Takes};
use crate::done::Done;
use crate::emails::view::Moment;
use crate::fields::{self, Names, Notes};
use crate::operations::{Operation, operation};
use crate::page::{self, Page};
use crate::problem::{Code, FieldErrors, Problem};
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};
use crate::suppressions::not_written;

/// The body: two fields.
const BODY_BYTES_MAX: usize = 16 << 10;
/// The words of the categories that one can opt out of.
const WORDS: &[&str] = &["product", "newsletter"];

/// What can be asked.
#[must_use]
pub fn operations() -> Vec<Operation> {
    let of = |method, path, id, summary| operation(method, path, id).about("category_opt_outs", summary);
    vec![
        of(Method::GET, "/category-opt-outs", "list_category_opt_outs", "List opt-outs, newest first")
            .either(Scope::Full, list),
        of(Method::POST, "/category-opt-outs", "create_category_opt_out", "Opt an address out of a category")
            .fails(&[Code::PLAN_FULL])
            .either(Scope::Full, create),
        of(Method::DELETE, "/category-opt-outs/{id}", "delete_category_opt_out", "Take an opt-out back")
            .either(Scope::Full, delete),
    ]
}

fn category(text: &str) -> Result<Category, String> {
    OPTIONAL
        .into_iter()
        .find(|category| category_word(*category) == text)
        .ok_or_else(|| format!("must be one of {}", WORDS.join(", ")))
}

fn address(text: &str) -> Result<Address, String> {
    text.parse::<Mailbox>().map(|mailbox| mailbox.address).map_err(|error| error.to_string())
}

/// An opt-out.
#[derive(Debug, Serialize)]
pub struct OptOutView {
    id: OptOutId,
    email: String,
    category: &'static str,
    category_label: &'static str,
    source: Source,
    email_id: Option<EmailId>,
    created_at: Moment,
}

impl OptOutView {
    fn of(opt_out: &OptOut) -> Self {
        Self {
            id: opt_out.id,
            email: address_key(&opt_out.address),
            category: category_word(opt_out.category),
            category_label: category_label(opt_out.category),
            source: opt_out.source,
            email_id: opt_out.email,
            created_at: Moment(opt_out.created_at),
        }
    }
}

impl Describe for OptOutView {
    fn schema(schemas: &mut Schemas) -> Value {
        let sources: Vec<&str> = Source::ALL.iter().map(|source| source.word()).collect();
        schemas.named("CategoryOptOut", |_| {
            schema::object(
                "An address that wants no mail of a category",
                [
                    ("id", schema::string("`opt_…`")),
                    ("email", schema::string("The address in lower case, as it is compared")),
                    ("category", schema::words(WORDS, "What is not wanted")),
                    ("category_label", schema::string("What people call it")),
                    ("source", schema::words(&sources, "Who said so")),
                    ("email_id", schema::nullable_string("The email that it came of")),
                    ("created_at", schema::time("Since when")),
                ],
            )
        })
    }
}

/// A page of opt-outs.
#[derive(Debug, Serialize)]
pub struct OptOutList {
    category_opt_outs: Vec<OptOutView>,
    has_more: bool,
    next_cursor: Option<String>,
}

impl Describe for OptOutList {
    fn schema(schemas: &mut Schemas) -> Value {
        let entry = OptOutView::schema(schemas);
        schemas.named("CategoryOptOutList", |_| schema::page("category_opt_outs", entry))
    }
}

/// What `GET /category-opt-outs` takes.
#[derive(Debug)]
pub struct ListOptOuts {
    page: Page,
    email: Option<Address>,
    categories: Vec<Category>,
}

impl Input for ListOptOuts {
    fn describe(_: &mut Schemas) -> Takes {
        let mut parameters = Page::parameters();
        let text = || json!({"type": "string"});
        parameters.push(schema::query_parameter("email", "Those of this address", text()));
        let categories = "Those of these categories, with commas between: product, newsletter";
        parameters.push(schema::query_parameter("category", categories, text()));
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let parameters = page::parameters(&call.query)?;
        let given = |name| page::one(&parameters, name);
        let mut errors = FieldErrors::default();
        let email = given("email")?.map(address).transpose();
        let email = email.map_err(|text| errors.add("email", text)).ok().flatten();
        let words = given("category")?.map(|text| text.split(',').map(|word| category(word.trim())));
        let chosen = words.map(|words| words.collect::<Result<Vec<_>, _>>()).transpose();
        let mut categories =
            chosen.map_err(|text| errors.add("category", text)).ok().flatten().unwrap_or(OPTIONAL.to_vec());
        categories.sort_unstable();
        categories.dedup();
        if !errors.is_empty() {
            return Err(errors.into());
        }
        Ok(Self { page: Page::read(&call.query)?, email, categories })
    }
}

/// `GET /category-opt-outs`.
///
/// # Errors
/// The cursor is none of this list's; the store cannot be read.
pub async fn list(room: Arc<Room>, tenant: Tenant, input: ListOptOuts) -> Result<OptOutList, Problem> {
    let ListOptOuts { page, email, categories } = input;
    let (store, account, before) = (room.hall.store(), tenant.account().id, page.before_opt_out()?);
    let (opt_outs, next) = match email {
        Some(email) => {
            let mut found = store::opt_out::of_address(store, account, &email, &categories).await?;
            found.retain(|opt_out| before.is_none_or(|before| opt_out.id < before));
            found.sort_unstable_by_key(|opt_out| std::cmp::Reverse(opt_out.id));
            let has_more = found.len() > page.limit;
            found.truncate(page.limit);
            let next = found.last().filter(|_| has_more).map(|opt_out| opt_out.id);
            (found, next)
        }
        None => {
            let listed = store::opt_out::list(store, account, &categories, before, page.limit).await?;
            (listed.opt_outs, listed.next)
        }
    };
    Ok(OptOutList {
        category_opt_outs: opt_outs.iter().map(OptOutView::of).collect(),
        has_more: next.is_some(),
        next_cursor: next.map(page::after_opt_out),
    })
}

const NAMES: Names = Names { known: &[("email", "email"), ("category", "category")], foreign: &[] };

/// What `POST /category-opt-outs` takes.
#[derive(Debug)]
pub struct CreateOptOut {
    email: Address,
    category: Category,
}

impl Input for CreateOptOut {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("CreateCategoryOptOut", |_| {
            let category = schema::words(WORDS, "What is not wanted");
            schema::object(
                "Who, and what",
                [("email", schema::string("The address")), ("category", category)],
            )
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let mut text = |name| match given.value(name).map(fields::text) {
            Some(Ok(text)) => Some(text),
            Some(Err(wrong)) => {
                notes.errors.add(name, wrong);
                None
            }
            None => {
                notes.errors.add(name, "is required");
                None
            }
        };
        let (email, word) = (text("email"), text("category"));
        let email =
            email.and_then(|text| address(&text).map_err(|wrong| notes.errors.add("email", wrong)).ok());
        let word =
            word.and_then(|text| category(&text).map_err(|wrong| notes.errors.add("category", wrong)).ok());
        match (email, word) {
            (Some(email), Some(category)) if notes.errors.is_empty() => Ok(Self { email, category }),
            _ => Err(notes.errors.into()),
        }
    }
}

/// An opt-out by itself.
#[derive(Debug, Serialize)]
pub struct OneOptOut {
    category_opt_out: OptOutView,
}

impl Describe for OneOptOut {
    fn schema(schemas: &mut Schemas) -> Value {
        let opt_out = OptOutView::schema(schemas);
        schemas.named("OneCategoryOptOut", |_| schema::object("An opt-out", [("category_opt_out", opt_out)]))
    }
}

/// `POST /category-opt-outs`. An address that has opted out already is answered with what there is.
///
/// # Errors
/// What is wrong with the request; the plan includes no more; the store cannot be used.
pub async fn create(room: Arc<Room>, tenant: Tenant, request: CreateOptOut) -> Result<OneOptOut, Problem> {
    let CreateOptOut { email, category } = request;
    let (account, contacts) = (tenant.account().id, room.hall.contacts());
    let stands = store::opt_out::of_address(room.hall.store(), account, &email, &[category]).await?;
    if let Some(opt_out) = stands.first() {
        return Ok(OneOptOut { category_opt_out: OptOutView::of(opt_out) });
    }
    let reserved = room.reserve(&tenant, Noun::CategoryOptOuts, 1).await?;
    let (opt_out, is_new) = contacts.opt_out(account, &email, category, tenant.actor().source()).await?;
    reserved.keep_part(is_new.into());
    Ok(OneOptOut { category_opt_out: OptOutView::of(&opt_out) })
}

/// An opt-out's id, from the path.
#[derive(Debug, Clone, Copy)]
pub struct OfOptOut(OptOutId);

const ID: &str = "id";

fn no_such_opt_out() -> Problem {
    Problem::not_found("opt-out")
}

impl Input for OfOptOut {
    fn describe(_: &mut Schemas) -> Takes {
        let parameters = vec![schema::path_parameter(ID, "The opt-out's id (`opt_…`)")];
        Takes { parameters, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        call.path_parameter(ID).parse().map(Self).map_err(|_| no_such_opt_out())
    }
}

/// `DELETE /category-opt-outs/{id}`.
///
/// # Errors
/// No such opt-out; the store cannot be used.
pub async fn delete(room: Arc<Room>, tenant: Tenant, OfOptOut(id): OfOptOut) -> Result<Done, Problem> {
    let store = room.hall.store();
    let found = store::opt_out::by_id(store, tenant.account().id, id).await?.ok_or_else(no_such_opt_out)?;
    let mut batch = Batch::progress();
    store::opt_out::delete(&mut batch, &found);
    match store.commit(batch).await {
        Ok(()) => Ok(Done::OK),
        // An opt-out never changes: it is gone.
        Err(CommitError::Conflict { .. }) => Err(no_such_opt_out()),
        Err(error) => Err(not_written(error)),
    }
}
