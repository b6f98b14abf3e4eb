//! The API reference and the guides on the API's port: `/docs`, and `/llms.txt` for language models. Everybody may read
//! them.
//!
//! The documents are rendered at the first request and kept; a test of the crate `pages` bounds their size.

use std::sync::{Arc, OnceLock};

use api::serve::static_pages::{Overlay, PageCache, Policy, READ_METHODS, ResponseObserver, StaticPage};
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode, Uri};
use pages::document::{Document, Freshness};
use pages::documentation::Documentation;
use pages::layout::SEARCH_PATH;
use pages::reference::{LLMS_PATH, NOT_FOUND_PATH, PATH};

/// Serves the reference and the guides, and further pages beside them.
#[derive(Debug)]
pub struct DocsPages {
    base_url: String,
    documentation: OnceLock<Documentation>,
    further_pages: Option<Arc<dyn Overlay>>,
}

impl DocsPages {
    /// The reference of an API at a base URL.
    pub fn new(base_url: &str, further_pages: Option<Arc<dyn Overlay>>) -> Self {
        Self { base_url: base_url.to_owned(), documentation: OnceLock::new(), further_pages }
    }

    fn further(&self, uri: &Uri) -> Option<&Arc<dyn Overlay>> {
        self.further_pages.as_ref().filter(|_| !is_reference(uri))
    }

    fn document_page(&self, uri: &Uri) -> StaticPage {
        let documentation = self.documentation.get_or_init(|| Documentation::new(&self.base_url));
        let documents = documentation.documents();
        let path = uri.path().strip_suffix('/').unwrap_or(uri.path());
        if path == SEARCH_PATH {
            let page = static_page(&documentation.search(&search_words(uri)));
            return StaticPage { cache: PageCache::NoStore, ..page };
        }
        match documents.get(path) {
            Some(document) if path != NOT_FOUND_PATH => static_page(document),
            _ => match documents.get(NOT_FOUND_PATH) {
                Some(document) => {
                    let page = static_page(document);
                    StaticPage { status: StatusCode::NOT_FOUND, cache: PageCache::NoStore, ..page }
                }
                None => StaticPage::error(StatusCode::NOT_FOUND, "Not found\n"),
            },
        }
    }
}

impl Overlay for DocsPages {
    fn has(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        is_reference(uri) || self.further(uri).is_some_and(|further| further.has(uri, headers))
    }

    fn ready(self: Arc<Self>, uri: &Uri) -> BoxFuture<'static, ()> {
        match self.further(uri) {
            Some(further) => Arc::clone(further).ready(uri),
            None => Box::pin(std::future::ready(())),
        }
    }

    fn methods(&self, uri: &Uri) -> &'static [Method] {
        self.further(uri).map_or(READ_METHODS, |further| further.methods(uri))
    }

    fn page(&self, method: &Method, uri: &Uri) -> StaticPage {
        match self.further(uri) {
            Some(further) => further.page(method, uri),
            None => self.document_page(uri),
        }
    }

    fn observe(&self, method: &Method, uri: &Uri) -> Option<ResponseObserver> {
        self.further_pages.as_ref()?.observe(method, uri)
    }
}

/// Returns whether a path belongs to the reference.
fn is_reference(uri: &Uri) -> bool {
    let path = uri.path();
    path == LLMS_PATH || path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The words of `?q=`.
fn search_words(uri: &Uri) -> String {
    let mut fields = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    fields.find(|(name, _)| name == "q").map(|(_, words)| words.into_owned()).unwrap_or_default()
}

fn static_page(document: &Document) -> StaticPage {
    let cache = match document.freshness {
        Freshness::Immutable => PageCache::Immutable,
        Freshness::Revalidated => PageCache::Revalidate(document.entity_tag.clone()),
    };
    StaticPage {
        gzip: Some(document.gzip.clone()).filter(|gzip| !gzip.is_empty()),
        policy: Policy::Strict,
        cache,
        ..StaticPage::new(document.media_type, document.body.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    fn page(path: &str) -> StaticPage {
        static PAGES: LazyLock<DocsPages> = LazyLock::new(|| DocsPages::new("https://mail.example.com", None));
        PAGES.page(&Method::GET, &path.parse().unwrap())
    }

    #[test]
    fn paths_of_the_reference_are_told_apart() {
        for path in ["/docs", "/docs/", "/docs/emails", "/docs/x/y", "/llms.txt", "/docs?x=1"] {
            assert!(is_reference(&path.parse().unwrap()), "{path}");
        }
        for path in ["/", "/documents", "/docs.md", "/llms.txt/x", "/emails", "/Docs"] {
            assert!(!is_reference(&path.parse().unwrap()), "{path}");
        }
    }

    #[test]
    fn documents_have_their_status_and_cache() {
        let found = page("/docs/emails");
        assert_eq!((found.status, found.policy), (StatusCode::OK, Policy::Strict));
        assert!(matches!(found.cache, PageCache::Revalidate(_)) && found.gzip.is_some());
        assert!(page("/llms.txt").media_type.starts_with("text/plain"));
        let missing = page("/docs/nothing");
        assert_eq!((missing.status, missing.cache), (StatusCode::NOT_FOUND, PageCache::NoStore));
        assert_eq!(page("/docs/404").status, StatusCode::NOT_FOUND);
    }

    #[test]
    fn guides_are_served_and_searched() {
        let found = page("/docs/guides/quick-start");
        assert_eq!((found.status, found.policy), (StatusCode::OK, Policy::Strict));
        assert!(page("/docs/guides/quick-start.md").media_type.starts_with("text/markdown"));
        let results = page("/docs/search?q=restore+a+backup");
        assert_eq!(
            (results.status, results.policy, results.cache),
            (StatusCode::OK, Policy::Strict, PageCache::NoStore)
        );
        assert!(std::str::from_utf8(&results.body).unwrap().contains("/docs/guides/backup"));
        assert_eq!(page("/docs/search").status, StatusCode::OK);
    }

    #[test]
    fn requests_to_the_api_leave_nothing_to_do() {
        let pages = DocsPages::new("https://mail.example.com", None);
        let uri = "/emails".parse().unwrap();
        assert!(!pages.has(&uri, &HeaderMap::new()));
        assert!(pages.observe(&Method::POST, &uri).is_none());
    }
}
