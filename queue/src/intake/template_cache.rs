//! Template cache: compiled published versions of templates.
//!
//! The version behind a name is looked up at each send, so a version published on any node is used at once. A version
//! never changes: once compiled it stays cached while there is memory.

use std::sync::Arc;

use model::id::{AccountId, TemplateId};
use model::template::{CompiledTemplate, ParsedTemplate, TemplateRef};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use store::engine::{ReadError, Store};

/// Cached markup in bytes of source (compiled it takes a multiple).
const MARKUP_BYTES_MAX: u64 = 32 << 20;
/// Expected number of versions; it sizes the table.
const VERSIONS_EXPECTED: usize = 1_000;
/// Larger markup is compiled on a blocking thread.
const READ_INLINE_BYTES_MAX: usize = 16 << 10;

/// Template and version number.
type TemplateVersionKey = (TemplateId, u32);

#[derive(Clone)]
struct ByMarkupBytes;

impl Weighter<TemplateVersionKey, Arc<ParsedTemplate>> for ByMarkupBytes {
    fn weight(&self, _: &TemplateVersionKey, program: &Arc<ParsedTemplate>) -> u64 {
        (program.size_bytes as u64).max(1)
    }
}

/// Resolves and caches templates.
pub struct TemplateCache(Cache<TemplateVersionKey, Arc<ParsedTemplate>, ByMarkupBytes>);

impl Default for TemplateCache {
    fn default() -> Self {
        Self(Cache::with_weighter(VERSIONS_EXPECTED, MARKUP_BYTES_MAX, ByMarkupBytes))
    }
}

impl TemplateCache {
    /// Returns the compiled version of a template. `None` if the account has no such template, or it is unpublished,
    /// archived or has no such version.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn resolve(
        &self,
        store: &Store,
        account: AccountId,
        wanted: &TemplateRef,
    ) -> Result<Option<Arc<CompiledTemplate>>, ReadError> {
        let found = store::template::find(store, account, &wanted.key).await?;
        let Some(template) = found.filter(|template| !template.archived) else { return Ok(None) };
        let Some(published) = template.published else { return Ok(None) };
        let number = wanted.version.unwrap_or(published.version);
        let program = match self.0.get(&(template.id, number)) {
            Some(program) => Some(program),
            None => self.load_program(store, account, (template.id, number)).await?,
        };
        Ok(program.map(|program| Arc::new(CompiledTemplate::new(template.id, template.alias, number, program))))
    }

    async fn load_program(
        &self,
        store: &Store,
        account: AccountId,
        (id, number): TemplateVersionKey,
    ) -> Result<Option<Arc<ParsedTemplate>>, ReadError> {
        let Some((version, bodies)) = store::template::get_version(store, account, id, number).await? else {
            return Ok(None);
        };
        let bytes = [&bodies.html, &bodies.text].into_iter().flatten().map(String::len).sum::<usize>();
        let compile = move || ParsedTemplate::compile(&version.settings, &bodies);
        let outcome = if bytes <= READ_INLINE_BYTES_MAX {
            compile()
        } else {
            let done = tokio::task::spawn_blocking(compile).await;
            done.map_err(|error| ReadError::Corrupt(Arc::from(error.to_string())))?
        };
        // The markup was valid when it was published, so only a stricter later release can reject it.
        let program = outcome.map(Arc::new).map_err(|errors| {
            let first = errors.first().map(|(part, error)| format!("{part}: {error}")).unwrap_or_default();
            ReadError::Corrupt(Arc::from(format!("version {number} of the template {id}: {first}")))
        })?;
        self.0.insert((id, number), Arc::clone(&program));
        Ok(Some(program))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use model::email::Category;
    use model::template::{Template, TemplateBodies, TemplateKey, TemplateSettings, TemplateVersion};
    use serde_json::json;
    use store::engine::Batch;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn draft() -> Template {
        let settings = TemplateSettings {
            category: Category::Product,
            unsubscribe_enabled: false,
            from: None,
            reply_to: Vec::new(),
            subject: Some("Hi {{name}}".to_owned()),
            preheader: None,
            variables: Vec::new(),
        };
        Template {
            id: TemplateId::new(at(0), 1),
            account: AccountId::new(at(0), 1),
            name: "Welcome".to_owned(),
            alias: Some("welcome".to_owned()),
            draft: settings,
            draft_version: 1,
            published: None,
            changed: false,
            archived: false,
            created_at: at(0),
            updated_at: at(0),
        }
    }

    async fn publish(store: &Store, before: &Template, html: &str) -> Template {
        let (after, published) = before.with_next_version(at(0));
        let version = TemplateVersion {
            number: published.version,
            note: None,
            published_at: at(0),
            published_by: "x".to_owned(),
            settings: after.draft.clone(),
        };
        let mut batch = Batch::progress();
        store::template::update(&mut batch, before, &after);
        let bodies = TemplateBodies { html: Some(html.to_owned()), ..TemplateBodies::default() };
        store::template::put_version(&mut batch, &after, &version, &bodies);
        store.commit(batch).await.unwrap();
        after
    }

    #[tokio::test]
    async fn a_name_resolves_to_the_published_version() {
        let (store, templates, template) = (Store::memory(), TemplateCache::default(), draft());
        let account = template.account;
        let wanted = TemplateRef { key: TemplateKey::parse("Welcome"), version: None };
        let resolve = async || templates.resolve(&store, account, &wanted).await.unwrap();
        assert!(resolve().await.is_none());
        let mut batch = Batch::progress();
        store::template::create(&mut batch, &template, &TemplateBodies::default());
        store.commit(batch).await.unwrap();
        assert!(resolve().await.is_none(), "never published");
        let template = publish(&store, &template, "one {{name}}").await;
        let first = resolve().await.unwrap();
        assert_eq!((first.id, first.version, first.alias.as_deref()), (template.id, 1, Some("welcome")));
        assert!(first.unsubscribe_enabled() && first.has_subject());
        let rendered = first.render(&json!({"name": "Ada"})).unwrap();
        assert_eq!((rendered.subject.as_deref(), rendered.html.as_deref()), (Some("Hi Ada"), Some("one Ada")));
        assert_eq!(first.render(&json!({})).unwrap_err().missing, ["name"]);

        let template = publish(&store, &template, "two").await;
        assert_eq!(resolve().await.unwrap().version, 2);
        let load = |version, account| {
            let wanted = TemplateRef { key: TemplateKey::Id(template.id), version: Some(version) };
            let (store, templates) = (&store, &templates);
            async move { templates.resolve(store, account, &wanted).await.unwrap() }
        };
        assert_eq!(load(1, account).await.unwrap().version, 1);
        assert!(load(3, account).await.is_none());
        assert!(load(1, AccountId::new(at(0), 2)).await.is_none(), "another account's");

        let archived = Template { archived: true, ..template.clone() };
        let mut batch = Batch::progress();
        store::template::update(&mut batch, &template, &archived);
        store.commit(batch).await.unwrap();
        assert!(resolve().await.is_none());
    }
}
