//! The web inbox on the API's port: the page at `/`, and its requests below `/inbox`.
//!
//! ```text
//! GET /                                     the page
//! GET /inbox/messages[?search=&since=]      {version, total, messages}; only {version} if `since` is the version
//! DELETE /inbox/messages                    removes all messages
//! GET, DELETE /inbox/messages/{id}          one message with headers, text and attachments
//! GET /inbox/messages/{id}/raw              message/rfc822
//! GET /inbox/messages/{id}/html[?remote=1]  its HTML without scripts; remote content only if requested
//! GET /inbox/messages/{id}/attachments/{n}  the n-th attachment, from 0
//! GET /inbox/dkim-records                   [{name, value}] of the local domains
//! GET /messages…, GET /latest…              requests of tests: see [`inbox_queries`](super::inbox_queries)
//! ```
//!
//! Requests must name this machine in `Host` (`localhost`, a loopback address). Otherwise a web site could read the
//! mail by DNS rebinding.

use std::net::IpAddr;
use std::sync::Arc;

use api::serve::static_pages::{Overlay, Policy, READ_METHODS, ResponseObserver, StaticPage};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use cli::message_content;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode, Uri};
use httpd::header_limits::named_host;
use message::received::ParsedReceivedEmail;
use serde_json::{Value, json};

use super::capture::DkimRecords;
use super::inbox::{self, DevInbox, Entry};
use super::inbox_queries::InboxQuery;
use super::terminal::Terminal;

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
/// The page: one file without other resources.
const PAGE: &str = include_str!("inbox.html");
/// Path of the page's requests.
pub const PATH: &str = "/inbox";
const MESSAGES_PATH: &str = "/inbox/messages";
const MESSAGE_METHODS: &[Method] = &[Method::GET, Method::HEAD, Method::DELETE];

/// Serves the inbox, and prints a line on the terminal for each request to the API.
#[derive(Debug)]
pub struct InboxPages {
    pub inbox: Arc<DevInbox>,
    /// DKIM records of the local domains.
    pub records: DkimRecords,
    pub terminal: Terminal,
}

impl Overlay for InboxPages {
    fn has(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let path = uri.path();
        let is_inbox_path = path.strip_prefix(PATH).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('/'));
        (path == "/" || is_inbox_path || is_test_path(path)) && is_local(headers)
    }

    fn ready(self: Arc<Self>, uri: &Uri) -> BoxFuture<'static, ()> {
        let query = Some(uri).filter(|uri| is_test_path(uri.path())).and_then(|uri| InboxQuery::parse(uri).ok());
        Box::pin(async move {
            if let Some(query) = query.filter(|query| !query.wait.is_zero()) {
                self.inbox.wait_for(&query).await;
            }
        })
    }

    fn methods(&self, uri: &Uri) -> &'static [Method] {
        let is_id = |rest: &str| rest.is_empty() || rest.strip_prefix('/').is_some_and(|id| !id.contains('/'));
        let is_removable = uri.path().strip_prefix(MESSAGES_PATH).is_some_and(is_id);
        if is_removable { MESSAGE_METHODS } else { READ_METHODS }
    }

    fn page(&self, method: &Method, uri: &Uri) -> StaticPage {
        let parts: Vec<&str> = uri.path().split('/').filter(|part| !part.is_empty()).collect();
        let page = match (method.as_str(), parts.as_slice()) {
            ("GET", [] | ["inbox"]) => Ok(StaticPage::new(HTML, PAGE)),
            ("GET", ["inbox", "messages"]) => Ok(self.list(uri)),
            ("DELETE", ["inbox", "messages"]) => self.inbox.clear().map(|()| success_page()),
            ("GET", ["inbox", "dkim-records"]) => Ok(self.dkim_records()),
            ("GET", ["messages"]) => Ok(self.find(uri)),
            ("GET", ["latest", subpath @ ..]) => self.latest(uri, subpath),
            ("GET", ["messages", id, subpath @ ..]) => match id.parse() {
                Ok(id) => self.message(method, id, subpath, uri),
                Err(_) => Ok(not_found_page()),
            },
            ("GET" | "DELETE", ["inbox", "messages", id, subpath @ ..]) => match id.parse() {
                Ok(id) => self.message(method, id, subpath, uri),
                Err(_) => Ok(not_found_page()),
            },
            _ => Ok(not_found_page()),
        };
        page.unwrap_or_else(|error| {
            StaticPage::error(StatusCode::INTERNAL_SERVER_ERROR, format!("Cannot access the inbox's files: {error}\n"))
        })
    }

    fn observe(&self, method: &Method, uri: &Uri) -> Option<ResponseObserver> {
        Some(self.terminal.observe_request(method.clone(), uri.clone()))
    }
}

impl InboxPages {
    fn list(&self, uri: &Uri) -> StaticPage {
        let version = self.inbox.version().to_string();
        if query(uri, "since").as_deref() == Some(&version) {
            return StaticPage::new(JSON, json!({"version": version}).to_string());
        }
        let messages = self.inbox.list(&query(uri, "search").unwrap_or_default());
        let messages: Vec<Value> = messages.iter().map(message_summary).collect();
        let total = self.inbox.count();
        StaticPage::new(JSON, json!({"version": version, "total": total, "messages": messages}).to_string())
    }

    fn find(&self, uri: &Uri) -> StaticPage {
        match InboxQuery::parse(uri) {
            Ok(query) => {
                let (total, entries) = self.inbox.find(&query);
                let messages: Vec<Value> = entries.iter().map(message_summary).collect();
                StaticPage::new(JSON, json!({"total": total, "messages": messages}).to_string())
            }
            Err(problem) => json_error(StatusCode::BAD_REQUEST, &problem),
        }
    }

    fn latest(&self, uri: &Uri, subpath: &[&str]) -> std::io::Result<StaticPage> {
        let query = match InboxQuery::parse(uri) {
            Ok(query) => query.newest(),
            Err(problem) => return Ok(json_error(StatusCode::BAD_REQUEST, &problem)),
        };
        let Some(entry) = self.inbox.find(&query).1.pop() else {
            return Ok(json_error(StatusCode::NOT_FOUND, "No message matches; `wait=30s` waits for one"));
        };
        let Some((entry, raw)) = self.inbox.get(entry.id)? else { return Ok(not_found_page()) };
        let reading = inbox::read(&raw);
        Ok(match subpath {
            [] => StaticPage::new(JSON, message_detail(&entry, &reading).to_string()),
            ["html"] => match reading.html {
                Some(html) => StaticPage::untrusted(HTML, html),
                None => json_error(StatusCode::NOT_FOUND, "The message has no HTML; use `/latest/text` for its text"),
            },
            ["text"] => StaticPage::untrusted("text/plain; charset=utf-8", inbox::text_of(&reading)),
            ["links"] => {
                let links = reading.html.as_deref().map(message_content::href_urls).unwrap_or_default();
                let links = message_content::links(links, reading.text.as_deref().unwrap_or_default());
                StaticPage::new(JSON, json!({"id": entry.id, "links": links}).to_string())
            }
            ["code"] => {
                let codes = message_content::one_time_codes(&entry.subject, &inbox::text_of(&reading));
                match codes.first() {
                    Some(code) => {
                        StaticPage::new(JSON, json!({"id": entry.id, "code": code, "codes": codes}).to_string())
                    }
                    None => json_error(StatusCode::NOT_FOUND, "The message has no one-time code"),
                }
            }
            _ => not_found_page(),
        })
    }

    fn dkim_records(&self) -> StaticPage {
        let records = self.records.read();
        let records = records.iter().map(|(name, value)| json!({"name": name, "value": value}));
        StaticPage::new(JSON, Value::Array(records.collect()).to_string())
    }

    fn message(&self, method: &Method, id: u64, subpath: &[&str], uri: &Uri) -> std::io::Result<StaticPage> {
        if *method == Method::DELETE {
            let removed = subpath.is_empty() && self.inbox.remove(id)?;
            return Ok(if removed { success_page() } else { not_found_page() });
        }
        let Some((entry, raw)) = self.inbox.get(id)? else { return Ok(not_found_page()) };
        Ok(match subpath {
            [] => StaticPage::new(JSON, message_detail(&entry, &inbox::read(&raw)).to_string()),
            ["raw"] => StaticPage::untrusted("message/rfc822", raw),
            ["html"] => {
                let remote = query(uri, "remote").is_some();
                let policy = if remote { Policy::ForeignRemote } else { Policy::Foreign };
                StaticPage { policy, ..StaticPage::untrusted(HTML, render_html(inbox::read(&raw))) }
            }
            ["attachments", index] => attachment(&raw, index).unwrap_or_else(not_found_page),
            _ => not_found_page(),
        })
    }
}

/// Returns whether a path belongs to the requests of tests.
fn is_test_path(path: &str) -> bool {
    ["/messages", "/latest"]
        .iter()
        .any(|prefix| path.strip_prefix(prefix).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('/')))
}

/// Returns whether `Host` names this machine.
fn is_local(headers: &HeaderMap) -> bool {
    named_host(headers).is_some_and(|authority| {
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback())
    })
}

/// Returns a parameter of the query.
fn query(uri: &Uri, name: &str) -> Option<String> {
    let pairs = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    pairs.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

fn success_page() -> StaticPage {
    StaticPage::new(JSON, json!({"ok": true}).to_string())
}

fn json_error(status: StatusCode, message: &str) -> StaticPage {
    let error = json!({"error": {"message": message}});
    StaticPage { status, ..StaticPage::new(JSON, error.to_string()) }
}

fn not_found_page() -> StaticPage {
    StaticPage::error(StatusCode::NOT_FOUND, "No such page or message\n")
}

fn message_summary(entry: &Entry) -> Value {
    json!({
        "id": entry.id,
        "source": entry.source,
        "from": entry.from,
        "envelope_from": entry.envelope_from,
        "to": entry.to,
        "subject": entry.subject,
        "preview": entry.preview,
        "received_at": entry.received_at,
        "size": entry.size,
        "tls": entry.tls,
        "attachment_count": entry.attachment_count,
        "dkim": entry.dkim,
    })
}

fn message_detail(entry: &Entry, reading: &ParsedReceivedEmail) -> Value {
    let headers = reading.headers.iter().map(|(name, value)| json!({"name": name, "value": value}));
    let attachments = reading.attachments.iter().map(|attachment| {
        json!({
            "filename": attachment.file.filename,
            "content_type": attachment.file.content_type,
            "size": attachment.file.size_bytes,
            "disposition": attachment.disposition,
        })
    });
    let detail_fields = json!({
        "headers": headers.collect::<Vec<_>>(),
        "text": reading.text,
        "html": reading.html,
        "has_html": reading.html.is_some(),
        "attachments": attachments.collect::<Vec<_>>(),
    });
    let mut view = message_summary(entry);
    if let (Value::Object(view), Value::Object(detail_fields)) = (&mut view, detail_fields) {
        view.extend(detail_fields);
    }
    view
}

/// Prepares HTML for display: replaces `cid:` URLs (RFC 2392) with inline images, opens links in a new window.
fn render_html(reading: ParsedReceivedEmail) -> String {
    let mut html = reading.html.unwrap_or_default();
    for attachment in &reading.attachments {
        let Some(id) = attachment.content_id.as_deref().filter(|id| !id.is_empty()) else { continue };
        let name = format!("cid:{id}");
        if attachment.file.content_type.starts_with("image/") && html.contains(&name) {
            let data = BASE64_STANDARD.encode(&attachment.data);
            html = html.replace(&name, &format!("data:{};base64,{data}", attachment.file.content_type));
        }
    }
    html.insert_str(head_content_start(&html), "<base target=\"_blank\">");
    html
}

/// Position in an HTML document where `<base>` is inserted. Text before the document type would change the rendering.
fn head_content_start(html: &str) -> usize {
    let lower = html.to_ascii_lowercase();
    let end_of_tag = |tag: &str| {
        let at = lower.find(tag)?;
        let remaining = lower.get(at + tag.len()..)?;
        // `<header>` is another tag.
        remaining.starts_with(|next: char| next == '>' || next.is_ascii_whitespace()).then_some(())?;
        Some(at + tag.len() + remaining.find('>')? + 1)
    };
    end_of_tag("<head").or_else(|| end_of_tag("<html")).or_else(|| end_of_tag("<!doctype")).unwrap_or(0)
}

fn attachment(raw: &Bytes, index: &str) -> Option<StaticPage> {
    let attachment = ParsedReceivedEmail::parse_attachment(raw, index.parse().ok()?)?;
    let page = StaticPage::untrusted(attachment.file.content_type, attachment.data);
    Some(StaticPage { file_name: Some(attachment.file.filename), ..page })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_host_names_reach_the_inbox() {
        let host = |host: &str| is_local(&[(http::header::HOST, host.parse().unwrap())].into_iter().collect());
        for local in ["localhost:8025", "127.0.0.1:8025", "[::1]:8025", "LOCALHOST", "127.0.0.1"] {
            assert!(host(local), "{local}");
        }
        for other in ["evil.example:8025", "localhost.evil.example", "192.0.2.1", "mta-sts.example.com", ""] {
            assert!(!host(other), "{other}");
        }
    }

    #[test]
    fn the_base_element_is_inserted_in_the_head() {
        for (html, at) in [
            ("<!DOCTYPE html><html lang=en><HEAD class=x><title>", 43),
            ("<html><header>", 6),
            ("<!doctype html>\n<p>", 15),
            ("<p>x", 0),
        ] {
            assert_eq!(head_content_start(html), at, "{html}");
        }
    }
}
