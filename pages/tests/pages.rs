//! The rendered reference: everything has its place, links lead somewhere, and the HTML is well-formed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use pages::document::{DocumentSet, Freshness};
use pages::documentation::Documentation;
use pages::reference::LLMS_PATH;
use pages::reference::operation::{ApiTable, anchor};
use pages::reference::words::operation_path;

const BASE_URL: &str = "https://mail.example.com";
/// A page with style sheet and script, compressed.
const PAGE_BYTES_MAX: usize = 60 << 10;
/// A guide, which is as long as its subject.
const GUIDE_BYTES_MAX: usize = 120 << 10;
const MEMORY_BYTES_MAX: usize = 16 << 20;
const VOID: &[&str] = &["meta", "link", "input", "wbr", "br", "img"];

fn documents(base_url: &str) -> DocumentSet {
    static USUAL: LazyLock<DocumentSet> = LazyLock::new(|| Documentation::new(BASE_URL).documents().clone());
    if base_url == BASE_URL { USUAL.clone() } else { Documentation::new(base_url).documents().clone() }
}

fn html_pages(documents: &DocumentSet) -> impl Iterator<Item = (&str, &str)> {
    documents
        .iter()
        .filter(|(_, document)| document.media_type.starts_with("text/html"))
        .map(|(path, document)| (path, std::str::from_utf8(&document.body).unwrap_or_default()))
}

/// An element of a page.
#[derive(Debug)]
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
}

/// Reads HTML that is written like XML, apart from void elements and attributes without a value. Panics if an end tag
/// is missing, or a character is not escaped.
fn elements(path: &str, html: &str) -> Vec<Element> {
    let (mut found, mut open, mut rest) = (Vec::new(), Vec::<String>::new(), html);
    while let Some((text, after)) = rest.split_once('<') {
        assert!(!text.contains('>'), "{path}: `>` in the text {text:?}");
        assert!(text.split('&').skip(1).all(|entity| entity.contains(';')), "{path}: `&` in the text {text:?}");
        // Values of attributes have no `>`: it is escaped.
        let (tag, after) = after.split_once('>').unwrap_or_else(|| panic!("{path}: a tag without an end"));
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "{path}: end tag");
            continue;
        }
        if tag.starts_with('!') {
            continue;
        }
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut values = BTreeMap::new();
        while let Some((name, after)) = attributes.trim_start().split_once("=\"") {
            let (value, after) = after.split_once('"').unwrap_or_else(|| panic!("{path}: {tag}"));
            let name = name.rsplit(' ').next().unwrap_or(name);
            assert!(values.insert(name.to_owned(), value.to_owned()).is_none(), "{path}: {tag}");
            attributes = after;
        }
        if !VOID.contains(&name) {
            open.push(name.to_owned());
        }
        found.push(Element { name: name.to_owned(), attributes: values });
    }
    assert!(open.is_empty(), "{path}: open: {open:?}");
    found
}

fn ids(path: &str, html: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for element in elements(path, html) {
        if let Some(id) = element.attributes.get("id") {
            assert!(ids.insert(id.clone()), "{path}: two elements have the id {id}");
        }
    }
    ids
}

#[test]
fn every_operation_event_and_code_has_a_place() {
    let (documents, table) = (documents(BASE_URL), ApiTable::load());
    let pages: BTreeMap<&str, BTreeSet<String>> =
        html_pages(&documents).map(|(path, html)| (path, ids(path, html))).collect();
    for operation in &table.operations {
        let target = operation_path(operation);
        let (path, anchor) = target.split_once('#').unwrap();
        assert!(pages[path].contains(anchor), "{target}");
    }
    for name in table.error_codes.keys() {
        assert!(pages["/docs/errors"].contains(name), "{name}");
    }
    for event in &table.webhook_events {
        assert!(pages["/docs/webhooks"].contains(&event.kind.replace(['.', '_'], "-")), "{}", event.kind);
    }
}

#[test]
fn every_field_of_a_request_is_on_its_page() {
    let (documents, table) = (documents(BASE_URL), ApiTable::load());
    for operation in &table.operations {
        let target = operation_path(operation);
        let path = target.split('#').next().unwrap();
        let html = std::str::from_utf8(&documents.get(path).unwrap().body).unwrap();
        let section =
            html.split_once(&format!("id=\"{}\"", anchor(operation))).unwrap().1.split("</section>").next().unwrap();
        let body = operation.body.as_ref().map(|body| body.schema());
        let body = body.map(|schema| table.referenced(schema).map_or(schema, |(_, schema)| schema));
        let properties =
            body.and_then(|schema| schema["properties"].as_object()).into_iter().flat_map(|map| map.keys());
        let parameters =
            operation.path_parameters.iter().chain(&operation.query_parameters).map(|parameter| &parameter.name);
        for name in parameters.chain(properties) {
            assert!(section.contains(&format!("<code>{name}</code>")), "{}: {name}", operation.id);
        }
    }
}

#[test]
fn links_lead_to_pages_and_anchors() {
    for base_url in [BASE_URL, "https://example.com/mail"] {
        let documents = documents(base_url);
        let prefix = if base_url == BASE_URL { "" } else { "/mail" };
        let all_ids: BTreeMap<&str, BTreeSet<String>> =
            html_pages(&documents).map(|(path, html)| (path, ids(path, html))).collect();
        for (page, html) in html_pages(&documents) {
            for element in elements(page, html) {
                let target = ["href", "src", "action"].iter().find_map(|name| element.attributes.get(*name));
                let Some(target) =
                    target.filter(|target| !target.starts_with("data:") && !target.starts_with("https://"))
                else {
                    continue;
                };
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                let path = if path.is_empty() {
                    page
                } else {
                    path.strip_prefix(prefix).unwrap_or_else(|| panic!("{page}: {target}"))
                };
                assert!(
                    documents.get(path).is_some() || ["/openapi.json", "/docs/search"].contains(&path),
                    "{page}: {target}"
                );
                assert!(anchor.is_empty() || all_ids[path].contains(anchor), "{page}: {target}");
            }
        }
    }
}

#[test]
fn links_of_the_plain_texts_lead_to_documents() {
    let documents = documents(BASE_URL);
    let llms = std::str::from_utf8(&documents.get(LLMS_PATH).unwrap().body).unwrap();
    let links: Vec<&str> = llms.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    let markdown = documents.iter().filter(|(path, _)| path.ends_with(".md")).count();
    assert_eq!(links.len(), markdown);
    for link in links {
        assert!(documents.get(link.strip_prefix(BASE_URL).unwrap()).is_some(), "{link}");
    }
}

#[test]
fn pages_stay_within_their_limits() {
    let documents = documents(BASE_URL);
    let shared: usize =
        documents.iter().filter(|(_, one)| one.freshness == Freshness::Immutable).map(|(_, one)| one.gzip.len()).sum();
    for (path, document) in documents.iter() {
        let bytes_max = if path.starts_with("/docs/guides") { GUIDE_BYTES_MAX } else { PAGE_BYTES_MAX };
        assert!(document.gzip.len() + shared <= bytes_max, "{path}: {} + {shared}", document.gzip.len());
        assert!(!document.gzip.is_empty() && !document.body.is_empty(), "{path}");
    }
    assert!(documents.memory_bytes() <= MEMORY_BYTES_MAX, "{}", documents.memory_bytes());
}

#[test]
fn nothing_needs_another_policy() {
    let documents = documents(BASE_URL);
    for (path, html) in html_pages(&documents) {
        for element in elements(path, html) {
            assert_ne!(element.name, "style", "{path}");
            for name in element.attributes.keys() {
                assert!(name != "style" && !name.starts_with("on"), "{path}: {element:?}");
            }
            if element.name == "script" {
                assert!(element.attributes.contains_key("src"), "{path}: {element:?}");
            }
        }
    }
}

#[test]
fn placeholders_are_not_shown() {
    let documents = documents(BASE_URL);
    for (path, document) in documents.iter().filter(|(path, _)| !path.starts_with("/docs/guides")) {
        let text = std::str::from_utf8(&document.body).unwrap();
        for part in text.split("{{").skip(1) {
            // Variables of templates are part of the examples, and `{{` opens nested values in Go.
            let name = part.split("}}").next().unwrap_or_default();
            assert!(!name.ends_with("_id") && !["tomorrow", "week_ago"].contains(&name), "{path}: {name}");
        }
    }
}

#[test]
fn a_hostile_base_url_stays_text() {
    let base_url = "https://a\"><script>alert(1)</script>\u{202e}/p\"onload=x";
    let documents = documents(base_url);
    for (path, html) in html_pages(&documents) {
        assert!(!html.contains("<script>") && !html.contains('\u{202e}'), "{path}");
        for element in elements(path, html) {
            assert!(element.attributes.keys().all(|name| !name.starts_with("on")), "{path}: {element:?}");
        }
    }
}

#[test]
fn a_search_finds_guides_and_operations() {
    let documentation = Documentation::new("https://example.com/mail");
    let page = |words: &str| String::from_utf8(documentation.search(words).body.to_vec()).unwrap();
    let html = page("restore backup");
    assert!(html.contains("href=\"/mail/docs/guides/backup#"), "{html}");
    assert!(html.contains("value=\"restore backup\"") && html.contains("noindex"), "{html}");
    assert!(page("idempotency-key send").contains("href=\"/mail/docs/emails#"));
    for words in ["", "no-such-word-at-all", "<script>alert(1)</script>", "[x](https://evil.example)", "\"onfocus=\"x"]
    {
        let html = page(words);
        elements(words, &html);
        assert!(!html.contains("<script>") && !html.contains("href=\"https://evil"), "{html}");
    }
}
