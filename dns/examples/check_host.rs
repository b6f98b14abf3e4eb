//! Evaluates SPF for the public test suites (`tests/peers/suites.py`): questions come as lines of JSON, each is answered
//! by a line.
//!
//! ```text
//! {"dns": "127.0.0.1:5300", "peer": "192.0.2.1", "helo": "mx.example", "mailfrom": "a@b.example"}
//! {"result": "fail", "explanation": "go away"}
//! ```
#![allow(clippy::expect_used, reason = "a question that cannot be read ends the check")]

use std::collections::HashMap;
use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use dns::lookup::{Resolver, Settings, parse_server};
use dns::sender_policy::{Asked, check_host};
use jiff::Timestamp;
use serde_json::{Value, json};

#[tokio::main]
async fn main() {
    let mut resolvers: HashMap<String, Resolver> = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let question: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let text = |name: &str| question.get(name).and_then(Value::as_str).unwrap_or_default();
        let resolver = resolvers.entry(text("dns").to_owned()).or_insert_with(|| {
            let servers = vec![parse_server(text("dns")).expect("a server")];
            let settings = Settings { servers, retries: 1, ..Settings::default() };
            Resolver::new(&settings).expect("a resolver")
        });
        // Without a reverse path the host stands for itself (RFC 7208 2.4).
        let (local, domain) = text("mailfrom").rsplit_once('@').unwrap_or(("", text("helo")));
        let asked = Asked {
            peer: text("peer").parse().expect("an address"),
            hello: text("helo"),
            local,
            domain,
            receiver: ("receiver.example", Timestamp::UNIX_EPOCH),
        };
        let found = check_host(resolver, &asked, Duration::from_secs(20)).await;
        let answer = json!({"result": found.result.as_str(), "explanation": found.explanation});
        writeln!(std::io::stdout(), "{answer}").expect("somebody reads");
    }
}
