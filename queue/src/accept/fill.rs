//! Filling in a template that an email names, whichever door it comes by.

use std::sync::Arc;

use mail::template::{CompiledTemplate, RenderError, RenderedTemplate, TemplateUse};
use store::access::Tenant;
use store::engine::ReadError;

use super::Intake;

/// Why a template cannot be filled in.
#[derive(Debug)]
pub enum RenderTemplateError {
    /// The account has none of this name, or no such version of it.
    NotFound,
    /// There is one, and it was never published.
    Unpublished,
    /// It cannot be filled in with these variables.
    Render(RenderError),
    /// The store cannot be read.
    Read(ReadError),
}

impl From<ReadError> for RenderTemplateError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl Intake {
    /// Fills in a template; its bodies alone, when the email has its own subject.
    ///
    /// # Errors
    /// [`FillError`].
    pub async fn render_template(
        &self,
        tenant: &Tenant,
        wanted: TemplateUse,
        own_subject: bool,
    ) -> Result<(Arc<CompiledTemplate>, RenderedTemplate), RenderTemplateError> {
        let account = tenant.account().id;
        let found = self.templates().resolve(self.store(), account, &wanted.reference).await?;
        let Some(compiled) = found else {
            let draft = store::template::find(self.store(), account, &wanted.reference.key).await?;
            let is_draft = draft.is_some_and(|draft| !draft.archived && draft.published.is_none());
            return Err(if is_draft { RenderTemplateError::Unpublished } else { RenderTemplateError::NotFound });
        };
        let (render, variables) = (Arc::clone(&compiled), wanted.variables);
        let work = move || match own_subject {
            true => render.render_bodies(&variables),
            false => render.render(&variables),
        };
        // Lists of the customer's making: rendering may take its time.
        let rendered = tokio::task::spawn_blocking(work).await;
        let rendered = rendered.map_err(|error| ReadError::Corrupt(Arc::from(error.to_string())))?;
        Ok((compiled, rendered.map_err(RenderTemplateError::Render)?))
    }
}
