//! Client id metadata documents (draft-ietf-oauth-client-id-metadata-document): a JSON object at the HTTPS URL that is
//! the client's id.
//!
//! A stranger chooses the URL, so the document is fetched by the guarded client: from public addresses, without
//! redirects, bounded in time and size. Results are cached, errors for a shorter time. Few fetches run at once.

use std::time::Duration;

use jiff::Timestamp;
use model::oauth::redirect_uri::RedirectUri;
use model::oauth::{ClientReference, REDIRECT_URIS_MAX, client_name};
use net::http_client::{HttpClient, HttpClientError, HttpGet, HttpResponse};
use quick_cache::sync::Cache;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::grant_type::DEVICE_CODE;
use super::resolved_client::{ClientIdentity, ResolvedClient};

/// Largest document.
const DOCUMENT_BYTES_MAX: usize = 10 << 10;
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Fetches at once.
const FETCHES_MAX: usize = 8;
/// Time for which a document is used without being fetched again.
const DOCUMENT_TTL: Duration = Duration::from_secs(15 * 60);
/// Time for which an error is repeated without a fetch.
const ERROR_TTL: Duration = Duration::from_secs(30);
/// Cached documents and errors.
const CACHED_MAX: usize = 500;

/// The client of a document, or what is wrong with it.
type DocumentResult = Result<ResolvedClient, String>;

/// The cache of documents.
#[derive(Debug)]
pub struct ClientDocuments {
    /// Results by URL, with the time until which they are used.
    cached: Cache<String, (Timestamp, DocumentResult)>,
    fetches: Semaphore,
}

impl Default for ClientDocuments {
    fn default() -> Self {
        Self { cached: Cache::new(CACHED_MAX), fetches: Semaphore::new(FETCHES_MAX) }
    }
}

impl ClientDocuments {
    /// The client of a URL.
    ///
    /// # Errors
    /// A sentence that says why the URL is no client.
    pub(super) async fn client(&self, http: &HttpClient, url: &str, now: Timestamp) -> DocumentResult {
        check_url(url, http.rules().allow_http)?;
        if let Some(known) = self.find(url, now) {
            return known;
        }
        let busy = || "Too many client documents are being fetched; try again".to_owned();
        let _permit = self.fetches.try_acquire().map_err(|_| busy())?;
        let result = fetch(http, url).await;
        let lifetime = if result.is_ok() { DOCUMENT_TTL } else { ERROR_TTL };
        let until = now.checked_add(lifetime).unwrap_or(Timestamp::MAX);
        self.cached.insert(url.to_owned(), (until, result.clone()));
        result
    }

    fn find(&self, url: &str, now: Timestamp) -> Option<DocumentResult> {
        self.cached.get(url).filter(|(until, _)| now < *until).map(|(_, result)| result)
    }
}

/// The authority and path of an absolute URL.
fn split_url(url: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    Some((scheme, authority, path))
}

/// Checks the form of a client id URL: https, with a path, without dot segments, user name and fragment.
fn check_url(url: &str, allow_http: bool) -> Result<(), String> {
    let refused = |why: &str| Err(format!("The client id {why}"));
    let Some((scheme, authority, path)) = split_url(url) else { return refused("is not a URL") };
    if scheme != "https" && !(allow_http && scheme == "http") {
        return refused("must begin with https://");
    }
    if authority.is_empty() || authority.contains('@') || !url.bytes().all(|b| b.is_ascii_graphic() && b != b'\\') {
        return refused("has no valid host, or characters that are not allowed");
    }
    if url.contains('#') || !path.starts_with('/') || path == "/" {
        return refused("must have a path and no fragment");
    }
    let segments = path.split('?').next().unwrap_or_default().split('/');
    let is_dot = |segment: &str| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    if segments.into_iter().any(is_dot) {
        return refused("must have no dot segments");
    }
    Ok(())
}

async fn fetch(client: &HttpClient, url: &str) -> DocumentResult {
    let get = HttpGet {
        url: url.to_owned(),
        headers: vec![("accept", "application/json".to_owned())],
        timeout: FETCH_TIMEOUT,
        // One more, so that a larger document is noticed.
        response_bytes_max: DOCUMENT_BYTES_MAX + 1,
    };
    match client.get(get).await {
        Ok(response) => read_response(url, &response),
        // The error of an address tells which names lead into the operator's network.
        Err(HttpClientError::NotPublic(_)) => {
            Err("The client's metadata document is not at a public address".to_owned())
        }
        Err(HttpClientError::Url(reason)) => Err(format!("The client's metadata document cannot be fetched: {reason}")),
        Err(error) => {
            tracing::debug!(%error, url, "cannot fetch a client's metadata document");
            Err("The client's metadata document cannot be fetched".to_owned())
        }
    }
}

fn read_response(url: &str, response: &HttpResponse) -> DocumentResult {
    if response.status != 200 {
        return Err(format!(
            "The request for the client's metadata document was answered with status {}",
            response.status
        ));
    }
    if !response.is_complete || response.body.len() > DOCUMENT_BYTES_MAX {
        return Err(format!("The client's metadata document is larger than {DOCUMENT_BYTES_MAX} bytes"));
    }
    let media_type = response.content_type.as_deref().unwrap_or_default().to_ascii_lowercase();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    if media_type != "application/json" && !(media_type.starts_with("application/") && media_type.ends_with("+json")) {
        return Err("The client's metadata document is not `application/json`".to_owned());
    }
    read_document(url, &response.body)
}

#[derive(Debug, Deserialize)]
struct ClientDocument {
    client_id: String,
    #[serde(default)]
    client_name: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
    #[serde(default)]
    grant_types: Vec<String>,
}

fn read_document(url: &str, body: &[u8]) -> DocumentResult {
    let refused = |why: &str| Err(format!("The client's metadata document {why}"));
    let Ok(document) = serde_json::from_slice::<ClientDocument>(body) else {
        return refused("is not a JSON object with `client_id` and `redirect_uris`");
    };
    if document.client_id != url {
        return refused("has a `client_id` that differs from its URL");
    }
    if document.token_endpoint_auth_method.as_deref().is_some_and(|method| method != "none") {
        return refused("needs `token_endpoint_auth_method` to be `none`");
    }
    if document.redirect_uris.is_empty() || document.redirect_uris.len() > REDIRECT_URIS_MAX {
        return refused("must have 1 to 10 `redirect_uris`");
    }
    if let Some(why) = document.redirect_uris.iter().find_map(|uri| RedirectUri::parse(uri).err()) {
        return refused(&format!("has a redirect URI that {why}"));
    }
    let host = split_url(url).map_or("", |(_, authority, _)| authority).to_owned();
    let name = document.client_name.as_deref().and_then(client_name).unwrap_or_else(|| host.clone());
    Ok(ResolvedClient {
        reference: ClientReference { id: url.to_owned(), name },
        identity: ClientIdentity::Document(host),
        redirect_uris: document.redirect_uris,
        uses_device_codes: document.grant_types.iter().any(|grant_type| grant_type == DEVICE_CODE),
    })
}

#[cfg(test)]
mod tests {
    use dns::resolver::{Resolver, ResolverSettings};
    use net::http_client::{HttpClientSettings, UrlRules};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[test]
    fn urls_of_documents() {
        for url in ["https://a.example/client.json", "https://a.example:8443/x?v=1"] {
            assert_eq!(check_url(url, false), Ok(()), "{url}");
        }
        for url in [
            "http://a.example/client.json",
            "https://a.example",
            "https://a.example/",
            "https://a.example/../x",
            "https://a.example/%2e%2E/x",
            "https://a.example/x#y",
            "https://me@a.example/x",
            "https:///x",
            "ftp://a.example/x",
            "https://a.example/\\x",
            "https://a.example/ x",
            "a://",
            "x",
        ] {
            assert!(check_url(url, false).is_err(), "{url}");
        }
        assert!(check_url("http://127.0.0.1:1/x", true).is_ok());
    }

    /// A client that resolves names with a server that does not answer.
    fn client(rules: UrlRules) -> HttpClient {
        let servers = vec!["127.0.0.1:9".parse().unwrap()];
        let resolver = ResolverSettings { servers, ..ResolverSettings::default() };
        let settings = HttpClientSettings { rules, ..HttpClientSettings::default() };
        HttpClient::new(Resolver::new(&resolver).unwrap(), settings).unwrap()
    }

    #[tokio::test]
    async fn no_document_is_fetched_from_a_private_address() {
        let client = client(UrlRules::default());
        for host in ["127.0.0.1", "10.0.0.1", "[::1]", "169.254.169.254", "localhost", "0x7f.1"] {
            let refused = fetch(&client, &format!("https://{host}/client.json")).await.unwrap_err();
            assert!(
                refused.contains("not a public address") || refused.contains("not at a public"),
                "{host}: {refused}"
            );
        }
    }

    #[tokio::test]
    async fn a_document_is_bounded_and_no_redirect_is_followed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("http://{address}/client.json");
        let document = format!(r#"{{"client_id":"{url}","redirect_uris":["https://a.example/cb"]}}"#);
        let answers = [
            (format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{document}"), None),
            (
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{document:20000}"
                ),
                Some("larger than"),
            ),
            (
                format!("HTTP/1.1 302 Found\r\nlocation: {url}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
                Some("status 302"),
            ),
        ];
        let client = client(UrlRules { allow_private: true, allow_http: true });
        for (answer, refusal) in answers {
            let serve = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 1_024];
                let _ = stream.read(&mut request).await.unwrap();
                // The client may close before it has read all.
                let _ = stream.write_all(answer.as_bytes()).await;
            };
            let (fetched, ()) = tokio::join!(fetch(&client, &url), serve);
            match refusal {
                None => assert_eq!(fetched.unwrap().redirect_uris, ["https://a.example/cb"]),
                Some(text) => assert!(fetched.unwrap_err().contains(text), "{text}"),
            }
        }
    }

    #[test]
    fn documents() {
        let url = "https://a.example/client.json";
        let read = |text: &str| read_document(url, text.as_bytes());
        let client = read(
            r#"{"client_id":"https://a.example/client.json","client_name":"A\n\u202eB","redirect_uris":["https://a.example/cb"],"x":[1]}"#,
        );
        let client = client.unwrap();
        assert_eq!(client.reference.name, "A \u{202e}B");
        assert_eq!(client.identity, ClientIdentity::Document("a.example".to_owned()));
        assert!(client.has_redirect_uri("https://a.example/cb") && !client.has_redirect_uri("https://a.example/cb/x"));
        for (text, why) in [
            ("[]", "not a JSON object"),
            (r#"{"redirect_uris":["https://a.example/cb"]}"#, "not a JSON object"),
            (
                r#"{"client_id":"https://b.example/c","redirect_uris":["https://a.example/cb"]}"#,
                "`client_id` that differs",
            ),
            (r#"{"client_id":"https://a.example/client.json"}"#, "1 to 10"),
            (r#"{"client_id":"https://a.example/client.json","redirect_uris":["javascript:x"]}"#, "scheme"),
            (
                r#"{"client_id":"https://a.example/client.json","redirect_uris":["https://a.example/cb"],"token_endpoint_auth_method":"client_secret_post"}"#,
                "none",
            ),
        ] {
            assert!(read(text).unwrap_err().contains(why), "{text}");
        }
        let response = |status, content_type: &str, is_complete| HttpResponse {
            status,
            retry_after_s: None,
            date: None,
            content_type: Some(content_type.to_owned()),
            body: r#"{"client_id":"https://a.example/client.json","redirect_uris":["https://a.example/cb"]}"#.into(),
            is_complete,
        };
        assert!(read_response(url, &response(200, "application/json; charset=utf-8", true)).is_ok());
        for bad in [
            response(302, "application/json", true),
            response(200, "text/html", true),
            response(200, "application/json", false),
        ] {
            assert!(read_response(url, &bad).is_err());
        }
    }
}
