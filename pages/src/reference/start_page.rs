//! `/docs`: the first email, and what holds for all operations.

use super::languages::{examples, json_block};
use super::operation::ApiTable;
use super::text_section;
use crate::block::{Block, CodeBlock, DocPage, Section};
use crate::highlight::CodeLanguage;

/// Writes the page.
pub fn page(table: &ApiTable, base_url: &str) -> DocPage {
    DocPage {
        slug: String::new(),
        title: "Introduction".into(),
        lead: "Send and receive email over HTTP. Each operation has the same name in the API, in the SDKs and on the \
            command line."
            .into(),
        sections: vec![
            key_section(base_url),
            first_email_section(table),
            requests_section(),
            errors_section(),
            paging_section(),
            idempotency_section(),
            rate_limit_section(),
            versions_section(table),
            webhooks_section(),
            machines_section(base_url),
        ],
    }
}

fn paragraphs(texts: &[&str]) -> Vec<Block> {
    texts.iter().map(|text| Block::Text((*text).to_owned())).collect()
}

fn code(title: &str, language: CodeLanguage, text: String) -> Block {
    Block::Code(CodeBlock { title: title.into(), language, text })
}

fn with_aside(section: Section, aside: Vec<Block>) -> Section {
    Section { aside, ..section }
}

fn key_section(base_url: &str) -> Section {
    let prose = paragraphs(&[
        &format!("The base URL of this server is `{base_url}`."),
        "Each request carries an [API key](/docs/api-keys): `Authorization: Bearer rnl_…`. A key has a scope: `full`, or \
         `sending`, which can only send. It can be restricted to one domain and to networks.",
        "Keep keys out of source code and out of browsers. The SDKs, the command line and the examples read both values \
         from the environment.",
    ]);
    let text = format!("export POSTRIDER_BASE_URL={base_url}\nexport POSTRIDER_API_KEY=rnl_…");
    with_aside(text_section("key", "Base URL and key", prose), vec![code("Environment", CodeLanguage::Shell, text)])
}

fn first_email_section(table: &ApiTable) -> Section {
    let mut prose = paragraphs(&[
        "Choose a language above; it applies to all examples in this reference. \
         [Install an SDK](/docs/guides/quick-start#install-an-sdk) has the commands for each language.",
        "A success means that the email is stored and will be delivered. Its \
         [status](/docs/emails#get-email), its [events](/docs/emails#list-email-events) and [webhooks](/docs/webhooks) \
         show what happens to it afterwards.",
        "`from` needs a [verified domain](/docs/domains). Before you have one:",
    ]);
    prose.push(Block::List(vec![
        "`postrider dev` runs a whole server on your machine. It shows mail in a browser and sends none.".into(),
        "An account without a domain can send from the [sandbox sender](/docs/account#get-account) to its owner."
            .into(),
    ]));
    let mut aside = vec![examples("First email", |language| language.first_email.to_owned())];
    if let Some(answer) = table.answers.get("send_email") {
        aside.push(json_block("Response · 200", answer));
    }
    with_aside(text_section("first-email", "Send your first email", prose), aside)
}

fn requests_section() -> Section {
    let mut prose = paragraphs(&["Bodies are JSON in UTF-8 with `Content-Type: application/json`."]);
    prose.push(Block::List(vec![
        "A body may be compressed: `Content-Encoding: gzip` or `zstd`.".into(),
        "Optional fields may be null, which is the same as omitting them.".into(),
        "Unknown fields are ignored, and listed in `warnings` in the response.".into(),
        "Times are in RFC 3339, in UTC. Ids begin with their kind: `msg_…`, `dom_…`, `tpl_…`.".into(),
        "Each response has `x-request-id`. Search for it in the [request log](/docs/logs).".into(),
        "If an operation takes `If-Match`, a change is refused if the object has changed since you read its `ETag`."
            .into(),
    ]));
    text_section("requests", "Requests and responses", prose)
}

fn errors_section() -> Section {
    let prose = paragraphs(&[
        "Errors have a status of 400 or above and one format: `message` for people, `code` for programs, \
         `request_id`, and `doc_url`, which links to the code's entry.",
        "[Errors](/docs/errors) explains each code, what to do about it, and the class that the SDKs raise.",
    ]);
    text_section("errors", "Errors", prose)
}

fn paging_section() -> Section {
    let prose = paragraphs(&[
        "A list returns one page, newest first: the entries, `has_more` and `next_cursor`. Pass `next_cursor` as `cursor` \
         with the same filters to get the next page; `limit` sets the number of entries.",
        "With filters, a page may have fewer entries than `limit`, or none, while `has_more` is true. In the SDKs, \
         you can iterate over a list: further pages are fetched as needed.",
    ]);
    let text = "curl \"$POSTRIDER_BASE_URL/emails?limit=50&cursor=$NEXT_CURSOR\" \\\n  -H \"Authorization: Bearer $POSTRIDER_API_KEY\"";
    let aside = vec![code("Next page", CodeLanguage::Shell, text.to_owned())];
    with_aside(text_section("paging", "Paging", prose), aside)
}

fn idempotency_section() -> Section {
    let prose = paragraphs(&[
        "If you do not know whether a request arrived, you can repeat it safely with an `Idempotency-Key` of your \
         choice, at most 256 characters. Within 24 hours, the same request with the same key is carried out once and \
         gets the same response.",
        "The same key with a different request is refused: \
         [`idempotency_conflict`](/docs/errors#idempotency_conflict). The \
         SDKs send a random key with each call that takes one, and keep it when they repeat the call.",
        "A status of 504, [`send_unconfirmed`](/docs/errors#send_unconfirmed), is the exception: the email may have \
         been accepted. Look up its status instead of sending it again.",
    ]);
    let text = "curl -X POST \"$POSTRIDER_BASE_URL/emails\" \\\n  -H \"Authorization: Bearer $POSTRIDER_API_KEY\" \\\n  \
                -H \"Idempotency-Key: order-4711-receipt\" \\\n  -H \"Content-Type: application/json\" \\\n  -d @email.json";
    let aside = vec![code("With a key", CodeLanguage::Shell, text.to_owned())];
    with_aside(text_section("idempotency", "Idempotency", prose), aside)
}

fn rate_limit_section() -> Section {
    let prose = paragraphs(&[
        "An account's plan limits its requests per second. Each response has the limit in `ratelimit-limit`, what is \
         left of it in `ratelimit-remaining`, and the seconds until it is fully available again in `ratelimit-reset`.",
        "Beyond the limit, the response is 429 with [`rate_limit_exceeded`](/docs/errors#rate_limit_exceeded) and \
         `retry-after`. \
         [`plan_limit`](/docs/errors#plan_limit) has the same status, but concerns the emails per day or month: do \
         not repeat those requests.",
    ]);
    let text = "HTTP/1.1 200 OK\nratelimit-limit: 10\nratelimit-remaining: 9\nratelimit-reset: 1\nx-request-id: req_01K9ZQ4Y8M3T5V7W2X6B0C1D9E";
    let aside = vec![code("Headers of a response", CodeLanguage::Http, text.to_owned())];
    with_aside(text_section("rate-limits", "Rate limits", prose), aside)
}

fn versions_section(table: &ApiTable) -> Section {
    let prose = paragraphs(&[
        &format!(
            "The current version is `{}`. Send it as `Service-Version` to keep the behaviour of that day.",
            table.service_version
        ),
        "Fields, codes, events and values may be added at any time without a new version: your programs must accept \
         unknown ones. Breaking changes get a new version.",
    ]);
    text_section("versions", "Versions", prose)
}

fn webhooks_section() -> Section {
    let prose = paragraphs(&[
        "The server posts what happens to your mail to your endpoints: deliveries, bounces, complaints, opens, received \
         mail. [Webhooks](/docs/webhooks) describes each event and how its signature is verified.",
        "On your machine, `postrider listen --forward-to http://localhost:3000/webhooks` posts the same events to a \
         program without a public address.",
    ]);
    text_section("webhooks", "Webhooks", prose)
}

fn machines_section(base_url: &str) -> Section {
    let prose = vec![Block::List(vec![
        format!(
            "[`/llms.txt`](/llms.txt) lists these pages for language models. Each page is Markdown with `.md` after its path: `{base_url}/docs/emails.md`."
        ),
        "[`/openapi.json`](/openapi.json) is the whole API as OpenAPI 3.1.".into(),
        "[All operations](/docs/operations) are on one page.".into(),
    ])];
    text_section("machines", "For programs and language models", prose)
}
