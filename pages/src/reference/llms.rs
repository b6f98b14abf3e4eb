//! `/llms.txt`: the pages for language models, in the form of llmstxt.org.

use std::fmt::Write as _;

use super::{Reference, markdown_path};
use crate::display_text::display_text;

/// Writes the text. Links are absolute, because readers pass them on.
#[must_use]
pub fn text(reference: &Reference, base_url: &str) -> String {
    let base_url = display_text(base_url.trim_end_matches('/'));
    let mut text = format!(
        "# postrider\n\n> The API of a mail server: send and receive email, templates, domains, webhooks, automations, \
         and an affiliate program. JSON over HTTP at {base_url}, with a bearer key. SDKs for Node, Python, PHP, Ruby and \
         Go, and a command line, have the same names.\n\n\
         To send an email: `POST /emails` with `from`, `to`, `subject` and `html` or `text`. Errors have a `code`; \
         lists have `next_cursor`; a POST that sends takes `Idempotency-Key`. The OpenAPI 3.1 document is at \
         {base_url}/openapi.json.\n"
    );
    for (title, pages) in reference.groups() {
        // Writing to a `String` does not fail.
        let _ = writeln!(text, "\n## {title}\n");
        for page in pages {
            let _ = writeln!(text, "- [{}]({base_url}{}): {}", page.title, markdown_path(&page.slug), page.lead);
        }
    }
    text
}
