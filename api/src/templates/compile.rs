//! Compiles the MJML source of a change, on a blocking thread. Few are compiled at a time: each takes a processor, and
//! several times the memory of its source and HTML.

use mjml::CompiledMjml;
use model::template::{MarkupError, ParsedTemplate, TemplateBodies};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::draft::{CompiledEdit, TemplateEdit, blank_settings};
use crate::prelude::*;

/// Maximum number of sources that are compiled at once.
const COMPILATIONS_MAX: usize = 4;
/// Maximum wait for a permit.
const PERMIT_WAIT_MAX: Duration = Duration::from_secs(5);

static COMPILATION_PERMITS: Semaphore = Semaphore::const_new(COMPILATIONS_MAX);

impl TemplateEdit {
    /// Compiles the MJML source, if one is given. `path` is the object of the request's body that has the change, empty
    /// for the body itself.
    ///
    /// # Errors
    /// The source cannot be compiled: the problem has its line and column. 503: too many sources are being compiled.
    pub(super) async fn compile(self, path: &str) -> Result<CompiledEdit> {
        let Some(source) = self.mjml_source().cloned() else { return Ok(CompiledEdit::new(self, None)) };
        let permit = acquire_permit().await?;
        let compile = move || {
            // A request that was cancelled meanwhile does not release it.
            let _permit = permit;
            compile_checked(&source)
        };
        let compiled = tokio::task::spawn_blocking(compile).await;
        let compiled = compiled.map_err(Problem::internal)?.map_err(|error| {
            let field = if path.is_empty() { "mjml".to_owned() } else { format!("{path}.mjml") };
            let MarkupError { line, column, message } = &error;
            Problem::field(&field, error.to_string())
                .with_detail("line", json!(line))
                .with_detail("column", json!(column))
                .with_detail("markup", json!([{"field": field, "line": line, "column": column, "message": message}]))
        })?;
        Ok(CompiledEdit::new(self, Some(compiled)))
    }
}

/// Acquires the permit to compile a source.
///
/// # Errors
/// 503: no permit became free in time.
async fn acquire_permit() -> Result<SemaphorePermit<'static>> {
    let permit = timeout(PERMIT_WAIT_MAX, COMPILATION_PERMITS.acquire()).await;
    permit.map_err(|_| Problem::busy())?.map_err(Problem::internal)
}

/// Compiles a source to HTML that can be rendered.
fn compile_checked(source: &str) -> Result<CompiledMjml, MarkupError> {
    let compiled = mjml::compile(source)?;
    let bodies = TemplateBodies { html: Some(compiled.html.clone()), ..TemplateBodies::default() };
    match ParsedTemplate::compile(&blank_settings(), &bodies) {
        Ok(_) => Ok(compiled),
        // The tags of the source were checked: the HTML repeats one too often, or is too large for them.
        Err(errors) => {
            let reason = errors.into_iter().next().map_or_else(String::new, |(_, error)| error.message);
            Err(MarkupError {
                line: 1,
                column: 1,
                message: format!("the HTML that it compiles to is refused: {reason}"),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_source_waits_for_a_permit() {
        let mut held = Vec::new();
        for _ in 0..COMPILATIONS_MAX {
            held.push(acquire_permit().await.unwrap());
        }
        assert_eq!(acquire_permit().await.unwrap_err().status(), http::StatusCode::SERVICE_UNAVAILABLE);
        held.pop();
        assert!(acquire_permit().await.is_ok());
    }
}
