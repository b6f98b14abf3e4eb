//! Links in mail and on public pages: the key that signs them and the public URL that they lead to.

use std::sync::{Arc, OnceLock};

use model::signed_token::TokenKey;
use model::unsubscribe::UnsubscribeLinks;

/// The key and the base URL of links. Clones share the URL.
#[derive(Clone)]
pub struct ServiceLinks {
    /// Signs the tokens in links.
    pub key: TokenKey,
    base_url: Arc<OnceLock<String>>,
}

impl ServiceLinks {
    pub fn new(key: TokenKey) -> Self {
        Self { key, base_url: Arc::default() }
    }

    /// Public URL of the API and of the pages that links open; `None` until it is known.
    pub fn base_url(&self) -> Option<&str> {
        self.base_url.get().map(String::as_str)
    }

    /// Sets the public URL. Only the first call has an effect.
    pub fn set_base_url(&self, base_url: &str) {
        let _ = self.base_url.set(base_url.to_owned());
    }

    /// Builder of unsubscribe links; `None` until the public URL is known.
    pub fn unsubscribe_links(&self) -> Option<UnsubscribeLinks> {
        Some(UnsubscribeLinks { key: self.key.clone(), base_url: self.base_url()?.to_owned() })
    }
}
