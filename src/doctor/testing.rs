//! For tests of the checks: a name server that serves a zone text, and a context that uses it.

use net::clock::Clock;

use super::context::{CheckContext, DoctorOptions};
use crate::config;

#[path = "../../tests/world/zone.rs"]
mod zone;

pub(super) struct TestDns(zone::NameServer);

impl TestDns {
    /// Starts a server with this zone only.
    pub(super) async fn new(zone_text: &str) -> Self {
        Self(zone::NameServer::start(zone_text).await)
    }
}

/// Context of `mx1.example.net` with further lines in `[delivery]`.
pub(super) async fn test_context(name_server: &TestDns, extra: &str) -> CheckContext {
    test_context_with(name_server, &format!("[delivery]\n{extra}\n")).await
}

/// Context of `mx1.example.net` with further sections.
pub(super) async fn test_context_with(name_server: &TestDns, sections: &str) -> CheckContext {
    let dns = name_server.0.address;
    let text = format!(
        "hostname = \"mx1.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\n[dns]\nservers = [\"{dns}\"]\n{sections}"
    );
    let config = config::from_text(&text, []).unwrap();
    CheckContext::build(config, DoctorOptions::default(), Clock::default()).await.unwrap()
}
