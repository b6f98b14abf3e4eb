//! Parts of events for tests and benchmarks. Callers change the fields that they need.

#![expect(clippy::unwrap_used, reason = "every value is fixed")]

use std::sync::Arc;

use dns::secrets::Vault;
use net::http_client::{HttpClient, HttpClientSettings, UrlRules};
use queue::subsystems::idle::{NO_NAME_SERVER, resolver};

use crate::webhooks::{RETRY_SCHEDULE, WebhooksParts};

/// Webhooks may be sent to this host and by plain HTTP.
#[must_use]
pub fn webhooks() -> WebhooksParts {
    let rules = UrlRules { allow_private: true, allow_http: true };
    let client = HttpClientSettings { rules, ..HttpClientSettings::default() };
    WebhooksParts {
        client: HttpClient::new(resolver(NO_NAME_SERVER), client).unwrap(),
        vault: vault(),
        retry_schedule: RETRY_SCHEDULE.to_vec(),
    }
}

/// A vault with a fixed key.
#[must_use]
pub fn vault() -> Arc<Vault> {
    Arc::new(Vault::new(&[2; 32]).unwrap())
}
