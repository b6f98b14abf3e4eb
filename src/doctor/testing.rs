//! For the tests of the checks: a name server that answers from a text, and a place that asks it.

use queue::clock::Clock;

use super::place::{CheckContext, DoctorOptions};
use crate::config;

#[path = "../../tests/world/zone.rs"]
mod zone;

/// What the DNS says.
pub(super) struct TestDns(zone::NameServer);

impl TestDns {
    /// This, and nothing else.
    pub(super) async fn new(zone_text: &str) -> Self {
        Self(zone::NameServer::start(zone_text).await)
    }
}

/// `mx1.example.net`, with more lines in the section `[delivery]`.
pub(super) async fn test_context(ground: &TestDns, more: &str) -> CheckContext {
    test_context_with(ground, &format!("[delivery]\n{more}\n")).await
}

/// `mx1.example.net`, with more sections.
pub(super) async fn test_context_with(ground: &TestDns, sections: &str) -> CheckContext {
    let dns = ground.0.address;
    let text = format!(
        "hostname = \"mx1.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\n[dns]\nservers = [\"{dns}\"]\n{sections}"
    );
    let config = config::from_text(&text, []).unwrap();
    CheckContext::gather(config, DoctorOptions::default(), Clock::default()).await.unwrap()
}
