//! `/docs/errors`: what each code means and what to do.

use serde_json::json;

use super::languages::json_block;
use super::operation::ApiTable;
use super::{text_section, words};
use crate::block::{Block, DocPage, Section};

/// Writes the page.
pub fn page(table: &ApiTable, base_url: &str) -> DocPage {
    let example = json!({"error": {
        "message": "`from` is missing",
        "code": "validation_error",
        "details": {"fields": {"from": "is missing"}},
        "request_id": "req_01K9ZQ4Y8M3T5V7W2X6B0C1D9E",
        "doc_url": format!("{base_url}/docs/errors#validation_error"),
    }});
    let format = Section {
        aside: vec![json_block("Response · 400", &example)],
        ..text_section("format", "Format", format_blocks())
    };
    let sections = [format].into_iter().chain(table.errors().into_iter().map(|(name, error)| {
        let advice = words::errors().find(|one| one.name == name);
        let mut prose = vec![Block::Text(error.description)];
        prose.extend(advice.map(|one| Block::Text(format!("**What to do.** {}", one.advice))));
        let mut facts = vec![("Status".to_owned(), format!("`{}`", error.status))];
        facts.extend(advice.map(|one| ("SDK class".to_owned(), format!("`{}`", one.class))));
        prose.push(Block::Facts(facts));
        // Two statuses of one code.
        let short_title =
            if name == error.code { error.code.clone() } else { format!("{} {}", error.code, error.status) };
        Section {
            id: name.to_owned(),
            title: format!("`{}` {}", error.code, error.status),
            short_title: Some(short_title),
            prose,
            aside: Vec::new(),
        }
    }));
    DocPage {
        slug: "errors".into(),
        title: "Errors".into(),
        lead: "Each error has a code, a message that says what is wrong, and a link to its entry on this page.".into(),
        sections: sections.collect(),
    }
}

fn format_blocks() -> Vec<Block> {
    let facts = [
        ("`message`", "What is wrong, for people. The wording may change."),
        ("`code`", "What is wrong, for programs. New codes may be added."),
        ("`details`", "More details, depending on the code. `details.fields` names each wrong field of a request."),
        ("`upgrade_url`", "Where the account's plan can be changed, if the operator has set it."),
        ("`request_id`", "The request's id in the server's log and in the [request log](/docs/logs)."),
        ("`doc_url`", "The code's entry on this page."),
    ];
    vec![
        Block::Text(
            "A response with a status of 400 or above is JSON in this format. Rely on `code`; the status \
            alone does not distinguish errors."
                .into(),
        ),
        Block::Facts(facts.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()),
        Block::Text(
            "The SDKs raise a class for each kind of error. They retry a call at most twice, after a random delay or \
             after `retry-after`, if that is safe: connection errors, 408, 500, 502, 503 and `rate_limit_exceeded`."
                .into(),
        ),
    ]
}
