//! Compiles the MJML source of a change, on a blocking thread.

use mail::template::{MarkupError, ParsedTemplate, TemplateBodies};
use mjml::CompiledMjml;
use serde_json::json;

use super::draft::{CompiledEdit, TemplateEdit, blank_settings};
use crate::problem::Problem;

impl TemplateEdit {
    /// Compiles the MJML source, if one is given. `path` is the object of the request's body that has the change, empty
    /// for the body itself.
    ///
    /// # Errors
    /// The source cannot be compiled: the problem has its line and column.
    pub(super) async fn compile(self, path: &str) -> Result<CompiledEdit, Problem> {
        let Some(source) = self.mjml_source().cloned() else { return Ok(CompiledEdit::new(self, None)) };
        let compiled = tokio::task::spawn_blocking(move || compile_checked(&source)).await;
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
