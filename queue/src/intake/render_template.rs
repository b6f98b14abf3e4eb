//! Rendering the template that an email names, for every ingress.

use std::sync::Arc;

use model::template::{CompiledTemplate, RenderError, RenderedTemplate, TemplateUse};
use store::access::Tenant;
use store::engine::{ReadError, Store};

use crate::intake::template_cache::TemplateCache;

#[derive(Debug)]
pub enum RenderTemplateError {
    /// The account has no template of this name, or not this version.
    NotFound,
    /// The template exists but was never published.
    Unpublished,
    /// The template cannot be rendered with these variables.
    Render(RenderError),
    Read(ReadError),
}

impl From<ReadError> for RenderTemplateError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

/// Renders the templates of accounts.
pub struct TemplateRenderer {
    store: Store,
    pub cache: TemplateCache,
}

impl TemplateRenderer {
    pub fn new(store: Store) -> Self {
        Self { store, cache: TemplateCache::default() }
    }

    /// Renders a template. Renders the bodies alone if the email has its own subject.
    ///
    /// # Errors
    /// Returns a [`RenderTemplateError`] if the template is missing, unpublished or cannot be rendered, or the store
    /// fails.
    pub async fn render(
        &self,
        tenant: &Tenant,
        wanted: TemplateUse,
        own_subject: bool,
    ) -> Result<(Arc<CompiledTemplate>, RenderedTemplate), RenderTemplateError> {
        let account = tenant.account().id;
        let found = self.cache.resolve(&self.store, account, &wanted.reference).await?;
        let Some(compiled) = found else {
            let draft = store::template::find(&self.store, account, &wanted.reference.key).await?;
            let is_draft = draft.is_some_and(|draft| !draft.archived && draft.published.is_none());
            return Err(if is_draft { RenderTemplateError::Unpublished } else { RenderTemplateError::NotFound });
        };
        let (render, variables) = (Arc::clone(&compiled), wanted.variables);
        let work = move || match own_subject {
            true => render.render_bodies(&variables),
            false => render.render(&variables),
        };
        // Customers choose the size of lists: rendering can block for long.
        let rendered = tokio::task::spawn_blocking(work).await;
        let rendered = rendered.map_err(|error| ReadError::Corrupt(Arc::from(error.to_string())))?;
        Ok((compiled, rendered.map_err(RenderTemplateError::Render)?))
    }
}
