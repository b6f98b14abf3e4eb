//! Temporary.
#![allow(clippy::unwrap_used)]
use std::sync::Arc;
use smtp::answers::{Answer, Answers, Question};
use smtp::limits::{Budget, Limits};
use smtp::listener::{Door, Listener, TlsSource};
use smtp::peers::Peers;
use smtp::settings::{Role, Settings};
use mail::reply::{Enhanced, Reply};
struct Yes;
impl Answers for Yes {
    type Visitor = ();
    async fn answer(&self, (): &mut (), question: Question) -> Answer {
        match question {
            Question::Authenticate(c) if c.username == "postrider" && c.password == "secret" => Answer::Granted,
            Question::Authenticate(_) => Answer::Said(Reply::new(535, Enhanced::new(5, 7, 8), "no")),
            Question::Take(m) => {
                if std::env::var_os("SHOW").is_some() {
                    println!("{:?} {:?}\n{}{}", m.envelope, m.recipients, smtp::received::field(&m.trace, false, jiff::Timestamp::UNIX_EPOCH), String::from_utf8_lossy(&m.content));
                }
                Answer::Granted
            }
            _ => Answer::Granted,
        }
    }
}
#[tokio::main]
async fn main() {
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = TlsSource::from_pem(certificate.cert.pem().as_bytes(), certificate.signing_key.serialize_pem().as_bytes()).unwrap();
    let budget = Budget::new(Budget::BYTES_DEFAULT);
    let peers = Peers::new(20_000, 1);
    let stop = tokio_util::sync::CancellationToken::new();
    let mut tasks = Vec::new();
    for (port, role, implicit, limits) in [(31587, Role::Submission, false, Limits::default()), (31465, Role::Submission, true, Limits { sessions_per_address_max: 20_000, ..Limits::default() }), (32525, Role::Relay, false, Limits::relay())] {
        let session = Arc::new(Settings::new(role, "mx.example".parse().unwrap(), limits, Arc::clone(&budget), true));
        let door = Door { session, networks: vec!["127.0.0.0/8".parse().unwrap()], tls: Some(Arc::clone(&tls)), implicit_tls: implicit };
        let l = Listener::bind(([127, 0, 0, 1], port).into(), door, Arc::new(Yes), Arc::clone(&peers)).unwrap();
        tasks.push(tokio::spawn(l.serve(stop.clone())));
    }
    tokio::signal::ctrl_c().await.unwrap();
    stop.cancel();
    for t in tasks { println!("drained {}", t.await.unwrap()); }
}
