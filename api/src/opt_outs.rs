//! Category opt-outs: addresses that receive no product email or no newsletter.

use accounts::suppressions::SuppressionService;
use httpd::paging::{KIND_OPT_OUT, after_id};
use message::address::Mailbox;
use model::email::Category;
use model::quota::Noun;
use model::suppression::{OPTIONAL_CATEGORIES, OptOut, SuppressionSource, address_key, category_label};

use crate::operation::{Operation, OperationTag};
use crate::prelude::*;
use crate::suppressions::commit_error::{commit_error_problem, suppression_problem};

/// Enough for a body with two fields.
const BODY_BYTES_MAX: usize = 16 << 10;
/// Categories that recipients can opt out of.
const CATEGORY_WORDS: &[&str] = &["product", "newsletter"];

pub fn operations() -> Vec<Operation> {
    let tag = OperationTag::new("category_opt_outs");
    vec![
        tag.get("/category-opt-outs", "List opt-outs, newest first")
            .full_key_or_session(("list_category_opt_outs", "categoryOptOuts.list"), list),
        tag.post("/category-opt-outs", "Opt an address out of a category")
            .errors(&[ErrorCode::PLAN_FULL])
            .full_key_or_session(("create_category_opt_out", "categoryOptOuts.create"), create),
        tag.delete("/category-opt-outs/{id}", "Delete an opt-out")
            .full_key_or_session(("delete_category_opt_out", "categoryOptOuts.delete"), delete),
    ]
}

fn parse_category(text: &str) -> Result<Category, String> {
    OPTIONAL_CATEGORIES
        .into_iter()
        .find(|category| category.word() == text)
        .ok_or_else(|| format!("must be one of {}", CATEGORY_WORDS.join(", ")))
}

fn parse_address(text: &str) -> Result<Address, String> {
    text.parse::<Mailbox>().map(|mailbox| mailbox.address).map_err(|error| error.to_string())
}

object_view! {
    /// An address that has opted out of a category
    #[schema(name = "CategoryOptOut")]
    pub struct OptOutView, fn from_opt_out(opt_out: &OptOut) {
        /// `opt_…`
        id: OptOutId = opt_out.id,
        /// The email address in lower case
        email: String = address_key(&opt_out.address),
        /// The category
        #[schema(enum = ["product", "newsletter"])]
        category: &'static str = opt_out.category.word(),
        /// The name
        category_label: &'static str = category_label(opt_out.category),
        /// The source
        source: SuppressionSource = opt_out.source,
        /// The email that caused it
        email_id: Option<EmailId> = opt_out.email,
        /// When it was created
        created_at: JsonTimestamp = JsonTimestamp(opt_out.created_at),
    }
}

list_response! { pub OptOutList { category_opt_outs: OptOutView } as "CategoryOptOutList" }

/// Query of `GET /category-opt-outs`.
#[derive(Debug)]
pub struct ListOptOuts {
    page: PageParameters,
    email: Option<Address>,
    categories: Vec<Category>,
}

impl RequestQuery for ListOptOuts {
    fn read_query(query: &mut Query) -> Result<Self> {
        let page = query.page()?;
        let email = query.text("email", "Filter by email address")?;
        let about = "Filter by category: product, newsletter; several separated by commas";
        let words = query.text("category", about)?;
        let mut errors = FieldErrors::default();
        let email = email.and_then(|text| parse_address(&text).map_err(|text| errors.add("email", text)).ok());
        let chosen = words.map(|text| text.split(',').map(|word| parse_category(word.trim())).collect());
        let chosen = chosen.unwrap_or(Ok(OPTIONAL_CATEGORIES.to_vec()));
        let mut categories = chosen.unwrap_or_else(|text: String| {
            errors.add("category", text);
            Vec::new()
        });
        categories.sort_unstable();
        categories.dedup();
        if errors.is_empty() { Ok(Self { page, email, categories }) } else { Err(errors.into()) }
    }
}

/// `GET /category-opt-outs`.
pub async fn list(state: State, tenant: Tenant, input: ListOptOuts) -> Result<OptOutList> {
    let ListOptOuts { page, email, categories } = input;
    let (store, account) = (&state.services.store, tenant.account().id);
    let before = page.before_id(KIND_OPT_OUT)?.map(OptOutId::from_bytes);
    let (opt_outs, next) = match email {
        Some(email) => {
            let mut found = store::opt_out::list_by_address(store, account, &email, &categories).await?;
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
    Ok(OptOutList::new(
        opt_outs.iter().map(OptOutView::from_opt_out).collect(),
        next.map(|id| after_id(KIND_OPT_OUT, id.to_bytes())),
    ))
}

/// A new opt-out
#[derive(Debug, RequestObject)]
#[schema(name = "CreateCategoryOptOut", body_bytes_max = BODY_BYTES_MAX)]
pub struct CreateOptOut {
    /// The address
    #[field(parse = parse_address_value, schema = schema::address(""))]
    email: Address,
    /// The category
    #[field(parse = parse_category_value, schema = json!({"type": "string", "enum": CATEGORY_WORDS}))]
    category: Category,
}

fn parse_address_value(value: &RawValue) -> Result<Address, String> {
    parse_address(&fields::parse_text(value)?)
}

fn parse_category_value(value: &RawValue) -> Result<Category, String> {
    parse_category(&fields::parse_text(value)?)
}

object_response! { "An opt-out", pub OptOutResponse { category_opt_out: OptOutView } as "OneCategoryOptOut" }

/// `POST /category-opt-outs`. If the address has opted out already, the existing opt-out is returned.
///
/// # Errors
/// The input is invalid; the storage quota is exhausted; the store cannot be used.
pub async fn create(state: State, tenant: Tenant, request: CreateOptOut) -> Result<OptOutResponse> {
    let CreateOptOut { email, category } = request;
    let (account, contacts) = (tenant.account().id, SuppressionService::new(&state.services));
    let existing = store::opt_out::list_by_address(&state.services.store, account, &email, &[category]).await?;
    if let Some(opt_out) = existing.first() {
        return Ok(OptOutResponse { category_opt_out: OptOutView::from_opt_out(opt_out) });
    }
    let reserved = state.reserve_storage(&tenant, Noun::CategoryOptOuts, 1).await?;
    let (opt_out, is_new) =
        contacts.opt_out(account, &email, category, tenant.actor().source()).await.map_err(suppression_problem)?;
    reserved.confirm_part(is_new.into());
    Ok(OptOutResponse { category_opt_out: OptOutView::from_opt_out(&opt_out) })
}

id_path! { pub OptOutPath(OptOutId), "The opt-out's id (`opt_…`)", "opt-out" }

fn opt_out_not_found() -> Problem {
    Problem::not_found("opt-out")
}

/// `DELETE /category-opt-outs/{id}`.
pub async fn delete(state: State, tenant: Tenant, OptOutPath(id): OptOutPath) -> Result<OkResponse> {
    let store = &state.services.store;
    let found = store::opt_out::find_by_id(store, tenant.account().id, id).await?.ok_or_else(opt_out_not_found)?;
    let mut batch = Batch::progress();
    store::opt_out::delete(store, &mut batch, &found).await?;
    match store.commit(batch).await {
        Ok(()) => Ok(OkResponse::OK),
        // An opt-out is never updated, so a conflict means that it was deleted.
        Err(CommitError::Conflict { .. }) => Err(opt_out_not_found()),
        Err(error) => Err(commit_error_problem(error)),
    }
}
