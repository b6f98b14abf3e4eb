//! `/llms.txt`: the pages for language models, in the form of llmstxt.org.

use std::fmt::Write as _;

use super::{Reference, markdown_path};
use crate::block::DocPage;
use crate::display_text::display_text;
use crate::guides::Guides;
use crate::inline::plain_text;

/// Writes the text. Links are absolute, because readers pass them on.
pub fn text(reference: &Reference, guides: &Guides, base_url: &str) -> String {
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
        write_group(&mut text, title, pages, &base_url);
    }
    write_group(&mut text, "Guides", std::iter::once(&guides.index), &base_url);
    for group in &guides.groups {
        write_group(&mut text, &format!("Guides: {}", group.title), group.all_pages(), &base_url);
    }
    text
}

fn write_group<'a>(text: &mut String, title: &str, pages: impl Iterator<Item = &'a DocPage>, base_url: &str) {
    // Writing to a `String` does not fail.
    let _ = writeln!(text, "\n## {title}\n");
    for page in pages {
        let (title, lead) = (plain_text(&page.title), plain_text(&page.lead));
        let _ = writeln!(text, "- [{title}]({base_url}{}): {lead}", markdown_path(&page.slug));
    }
}
