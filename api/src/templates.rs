//! Templates: drafts, published versions, previews.
//!
//! A change is parsed (`draft`), applied to the stored template, and committed with a check that the template is
//! unchanged; on a conflict it is read and applied again. Markup is checked on input, so that what is stored can be
//! rendered (`preview`) and published (`versions`).

mod compile;
pub mod draft;
pub mod path;
pub mod preview;
pub(crate) mod render_error;
mod storage;
pub mod versions;
pub mod view;

use httpd::paging::{KIND_TEMPLATE, after_id};
use model::email::Category;
use model::quota::Noun;
use model::template::{NAME_BYTES_MAX, Template, TemplateKey, TemplateStatus};

use crate::operation::{Operation, OperationTag};
use crate::prelude::*;

use self::draft::{CreateTemplate, DuplicateTemplate, UpdateTemplate};
use self::path::TemplatePath;
use self::storage::{TRIES_MAX, commit, conflict_problem, find, find_with_bodies, reserve_compiled, reserve_storage};
use self::view::{TemplateList, TemplateResponse, TemplateView};

/// The operations on templates.
pub fn operations() -> Vec<Operation> {
    let tag = OperationTag::new("templates");
    vec![
        tag.post("/templates", "Create a template")
            .storage_cost(&[(Noun::Templates, 1), (Noun::TemplateBytes, 0)])
            .full_key_or_session(("create_template", "templates.create"), create),
        tag.get("/templates", "List templates, newest first")
            .full_key_or_session(("list_templates", "templates.list"), list),
        tag.get("/templates/{id_or_alias}", "Get a template")
            .full_key_or_session(("get_template", "templates.get"), get),
        tag.patch("/templates/{id_or_alias}", "Update the draft of a template")
            .storage_cost(&[(Noun::TemplateBytes, 0)])
            .full_key_or_session(("update_template", "templates.update"), update),
        tag.delete("/templates/{id_or_alias}", "Delete a template and its versions")
            .full_key_or_session(("delete_template", "templates.delete"), delete),
        tag.post("/templates/{id_or_alias}/publish", "Publish the draft as a new version")
            .errors(&[ErrorCode::PLAN_FULL])
            .mails_later()
            .full_key_or_session(("publish_template", "templates.publish"), versions::publish),
        tag.get("/templates/{id_or_alias}/versions", "List versions, newest first")
            .full_key_or_session(("list_template_versions", "templates.versions.list"), versions::list),
        tag.get("/templates/{id_or_alias}/versions/{number}", "Get a version")
            .full_key_or_session(("get_template_version", "templates.versions.get"), versions::get),
        tag.post("/templates/{id_or_alias}/rollback", "Publish a copy of an earlier version")
            .errors(&[ErrorCode::PLAN_FULL])
            .mails_later()
            .full_key_or_session(("roll_back_template", "templates.rollBack"), versions::roll_back),
        tag.post("/templates/{id_or_alias}/preview", "Render a template without sending it")
            .risk(Risk::Read)
            .full_key_or_session(("preview_template", "templates.preview"), preview::preview),
        tag.post("/templates/{id_or_alias}/test-send", "Send a test email from a template")
            .errors(ErrorCode::SENDING)
            .risk(Risk::Send)
            .full_key_or_session(("test_template", "templates.testSend"), preview::send_test)
            .resolved_by(preview::resolve_test),
        tag.post("/templates/{id_or_alias}/duplicate", "Copy the draft into a new template")
            .storage_cost(&[(Noun::Templates, 1)])
            .full_key_or_session(("duplicate_template", "templates.duplicate"), duplicate),
    ]
}

/// Most names that are tried for a copy.
const COPY_NAMES_MAX: usize = 20;

/// `POST /templates`.
///
/// # Errors
/// 409 when the alias or the name is taken; the store cannot be written.
pub async fn create(state: State, tenant: Tenant, request: CreateTemplate) -> Result<TemplateResponse> {
    let CreateTemplate { name, edit } = request;
    let edit = edit.compile("").await?;
    let reserved = reserve_compiled(&state, &tenant, &edit).await?;
    let now = state.services.clock.now();
    let id = TemplateId::new(now, state.services.entropy.unique_bits());
    let (template, bodies) = edit.build(&name, id, tenant.account().id, now);
    let mut batch = Batch::intake();
    store::template::create(&mut batch, &template, &bodies);
    if !commit(&state, batch).await? {
        return Err(conflict_problem());
    }
    reserved.confirm();
    let warnings = edit.warnings().to_vec();
    Ok(TemplateResponse { template: TemplateView::with_bodies(&template, bodies), warnings })
}

/// Parameters of `GET /templates`.
#[derive(Debug)]
pub struct ListTemplates {
    page: PageParameters,
    categories: Vec<Category>,
    statuses: Vec<TemplateStatus>,
}

impl RequestQuery for ListTemplates {
    fn read_query(query: &mut Query) -> Result<Self> {
        let about = |words: &str| format!("Any of these, separated by commas: {words}");
        Ok(Self {
            page: query.page()?,
            categories: query.words_in_text("category", about)?,
            statuses: query.words_in_text("status", about)?,
        })
    }
}

/// `GET /templates`.
pub async fn list(state: State, tenant: Tenant, input: ListTemplates) -> Result<TemplateList> {
    let before = input.page.before_id(KIND_TEMPLATE)?.map(TemplateId::from_bytes);
    let passes = |template: &Template| {
        (input.categories.is_empty() || input.categories.contains(&template.draft.category))
            && (input.statuses.is_empty() || input.statuses.contains(&template.status()))
    };
    let (store, account) = (&state.services.store, tenant.account().id);
    let (found, next) = store::template::list(store, account, before, input.page.limit, passes).await?;
    let templates = found.iter().map(TemplateView::without_bodies).collect();
    Ok(TemplateList::new(templates, next.map(|id| after_id(KIND_TEMPLATE, id.to_bytes()))))
}

/// `GET /templates/{id_or_alias}`.
pub async fn get(state: State, tenant: Tenant, TemplatePath(key): TemplatePath) -> Result<TemplateResponse> {
    let (template, bodies) = find_with_bodies(&state, &tenant, &key).await?;
    Ok(TemplateResponse { template: TemplateView::with_bodies(&template, bodies), warnings: Vec::new() })
}

/// `PATCH /templates/{id_or_alias}`.
///
/// # Errors
/// The template does not exist; 409 when `if_version` does not match, or the alias or name is taken.
pub async fn update(
    state: State,
    tenant: Tenant,
    (TemplatePath(key), request): (TemplatePath, UpdateTemplate),
) -> Result<TemplateResponse> {
    let UpdateTemplate { edit, update } = request;
    let edit = edit.compile("").await?;
    let reserved = reserve_compiled(&state, &tenant, &edit).await?;
    for _ in 0..TRIES_MAX {
        let (before, bodies_before) = find_with_bodies(&state, &tenant, &key).await?;
        update.check_version(&before)?;
        let now = state.services.clock.now();
        let (mut after, bodies) = update.apply(&edit, (&before, &bodies_before), now)?;
        let edited = after.draft != before.draft || bodies != bodies_before;
        if edited {
            after.draft_version = before.draft_version.saturating_add(1);
            after.changed = match before.published {
                None => false,
                Some(published) => {
                    let (store, id) = (&state.services.store, before.id);
                    let version = store::template::get_version(store, before.account, id, published.version).await?;
                    version.is_none_or(|(version, old)| version.settings != after.draft || old != bodies)
                }
            };
        }
        let mut batch = Batch::intake();
        store::template::update(&mut batch, &before, &after);
        if edited {
            store::template::put_draft(&mut batch, &after, &bodies);
        }
        if commit(&state, batch).await? {
            reserved.confirm();
            let warnings = edit.update_warnings(&bodies_before, (&after, &bodies));
            return Ok(TemplateResponse { template: TemplateView::with_bodies(&after, bodies), warnings });
        }
    }
    Err(conflict_problem())
}

/// `DELETE /templates/{id_or_alias}`.
pub async fn delete(state: State, tenant: Tenant, TemplatePath(key): TemplatePath) -> Result<OkResponse> {
    for _ in 0..TRIES_MAX {
        let template = find(&state, &tenant, &key).await?;
        let mut batch = Batch::progress();
        store::template::delete(&mut batch, &template);
        if commit(&state, batch).await? {
            return Ok(OkResponse::OK);
        }
    }
    Err(conflict_problem())
}

/// `POST /templates/{id_or_alias}/duplicate`.
///
/// # Errors
/// The template does not exist; 409 when the requested name or alias is taken.
pub async fn duplicate(
    state: State,
    tenant: Tenant,
    (TemplatePath(key), request): (TemplatePath, DuplicateTemplate),
) -> Result<TemplateResponse> {
    let (original, bodies) = find_with_bodies(&state, &tenant, &key).await?;
    let reserved = reserve_storage(&state, &tenant, &bodies).await?;
    for number in 1..=COPY_NAMES_MAX {
        let now = state.services.clock.now();
        let copy = Template {
            id: TemplateId::new(now, state.services.entropy.unique_bits()),
            name: request.name.clone().unwrap_or_else(|| copy_name(&original.name, number)),
            alias: request.alias.clone(),
            draft_version: 1,
            published: None,
            changed: false,
            archived: false,
            created_at: now,
            updated_at: now,
            ..original.clone()
        };
        let mut batch = Batch::intake();
        store::template::create(&mut batch, &copy, &bodies);
        match commit(&state, batch).await {
            Ok(_) => {
                reserved.confirm();
                let template = TemplateView::with_bodies(&copy, bodies);
                return Ok(TemplateResponse { template, warnings: Vec::new() });
            }
            // A generated name that is taken is replaced by the next one.
            Err(problem) if request.name.is_none() && problem.code() == ErrorCode::CONFLICT => {
                if request.alias.is_some() && is_alias_taken(&state, &tenant, &request).await? {
                    return Err(problem);
                }
            }
            Err(problem) => return Err(problem),
        }
    }
    Err(Problem::new(ErrorCode::CONFLICT, "Too many copies already exist: give the copy a `name`"))
}

async fn is_alias_taken(state: &AppState, tenant: &Tenant, request: &DuplicateTemplate) -> Result<bool> {
    let Some(alias) = &request.alias else { return Ok(false) };
    let (store, account) = (&state.services.store, tenant.account().id);
    Ok(store::template::find(store, account, &TemplateKey::parse(alias)).await?.is_some())
}

fn copy_name(name: &str, number: usize) -> String {
    let suffix = if number == 1 { " (copy)".to_owned() } else { format!(" (copy {number})") };
    let end = name.floor_char_boundary(NAME_BYTES_MAX - suffix.len());
    format!("{}{suffix}", name.get(..end).unwrap_or_default())
}
