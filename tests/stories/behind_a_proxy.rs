//! Every listener behind a load balancer: the client address of the PROXY header is used for access checks and in
//! Received.

use model::id::EmailId;
use model::recipient::RecipientState;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::TestWorld;
use crate::world::submit::dialog_with_proxy_header;

const INSIDER: &str = "PROXY TCP4 127.0.0.9 198.51.100.1 56324 25\r\n";
const OUTSIDER: &str = "PROXY TCP4 192.0.2.9 198.51.100.1 56324 25\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn every_listener_uses_the_client_address_of_the_proxy_header() {
    let world = TestWorld::start_with("[proxy]\nnetworks = \"127.0.0.1\"\n").await;

    assert_eq!(dialog_with_proxy_header("EHLO test\r\n", world.relay, &[]).await, [""], "no header, no greeting");
    let refused = dialog_with_proxy_header(OUTSIDER, world.relay, &[]).await;
    assert!(refused[0].starts_with("554 5.7.1 "), "{refused:?}");
    let message = "From: ada@acme.example\r\nSubject: behind\r\n\r\nhello\r\n.";
    let lines = ["EHLO test", "MAIL FROM:<ada@acme.example>", "RCPT TO:<bob@dest.example>", "DATA", message, "QUIT"];
    let replies = dialog_with_proxy_header(INSIDER, world.relay, &lines).await;
    let id: EmailId = replies[5].strip_prefix("250 2.0.0 OK ").unwrap().parse().unwrap();
    world.wait(id, |email| email.recipients[0].state == RecipientState::Delivered).await;
    let raw = store::email::get_body(&world.server.store, world.account, id).await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&raw).contains("[127.0.0.9]"), "{}", raw.escape_ascii());

    let greeted = dialog_with_proxy_header(OUTSIDER, world.submission, &[]).await;
    assert!(greeted[0].starts_with("220 "), "{greeted:?}");

    let mut stream = TcpStream::connect(world.api).await.unwrap();
    let request = format!("{OUTSIDER}GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    world.end().await;
}
