//! The problem response for a template that cannot be rendered.

use httpd::problem::{FieldErrors, Problem};
use model::template::RenderError;
use serde_json::json;

/// 400: the template cannot be rendered. `details.missing_variables` names the
/// missing variables.
pub(crate) fn render_error_problem(error: &RenderError) -> Problem {
    let mut fields = FieldErrors::default();
    for (name, message) in &error.invalid {
        fields.add(name, message);
    }
    for name in &error.missing {
        fields.add(&format!("variables.{name}"), "is required by the template");
    }
    let problem = Problem::from(fields);
    if error.missing.is_empty() {
        return problem;
    }
    problem.with_detail("missing_variables", json!(error.missing))
}
