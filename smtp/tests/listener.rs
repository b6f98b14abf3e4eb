//! The listener over loopback, with a test client and a handler that records messages.

#![allow(clippy::unwrap_used, reason = "a test")]

mod loopback;

use std::time::Duration;

use loopback::{Remember, Server, is_closed, read_replies, send_text, server_config};
use smtp::limits::SessionLimits;
use smtp::settings::ListenerRole;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Notify;

const MESSAGE: &str = "From: a@b.example\r\nSubject: hi\r\n\r\n..hello\r\n.\r\n";

#[tokio::test]
async fn a_message_over_starttls_and_auth() {
    let server = Server::start(ListenerRole::Submission, SessionLimits::default(), false, Remember::default());
    let mut clear = server.connect().await;
    assert!(read_replies(&mut clear, 1).await.starts_with("220 "));
    send_text(&mut clear, "EHLO client.example\r\n").await;
    assert!(read_replies(&mut clear, 1).await.contains("250-STARTTLS\r\n"));
    send_text(&mut clear, "STARTTLS\r\n").await;
    assert!(read_replies(&mut clear, 1).await.starts_with("220 "));
    let mut stream = server.secure(clear).await;
    send_text(&mut stream, "EHLO client.example\r\n").await;
    assert!(read_replies(&mut stream, 1).await.contains("250-AUTH PLAIN LOGIN\r\n"));
    send_text(&mut stream, "AUTH PLAIN AHBvc3RyaWRlcgBzZWNyZXQ=\r\n").await;
    assert!(read_replies(&mut stream, 1).await.starts_with("235 "));
    send_text(&mut stream, "MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n").await;
    let replies = read_replies(&mut stream, 3).await;
    assert_eq!(replies.matches("250 ").count(), 2, "{replies}");
    send_text(&mut stream, MESSAGE).await;
    assert_eq!(read_replies(&mut stream, 1).await, "250 2.0.0 OK msg_1\r\n");
    send_text(&mut stream, "QUIT\r\n").await;
    assert!(read_replies(&mut stream, 1).await.starts_with("221 "));
    assert!(is_closed(&mut stream).await);
    let taken = server.taken();
    assert_eq!(taken.len(), 1);
    assert!(taken[0].content.ends_with(b"\r\n.hello\r\n"));
    assert!(taken[0].trace.tls.is_some() && taken[0].trace.authenticated);
}

#[tokio::test]
async fn implicit_tls_uses_a_renewed_certificate() {
    let mut server = Server::start(ListenerRole::Submission, SessionLimits::default(), true, Remember::default());
    let mut stream = server.secure(server.connect().await).await;
    assert!(read_replies(&mut stream, 1).await.starts_with("220 "));
    let fresh = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    server.tls.send_replace(server_config(&fresh));
    server.certificate = fresh;
    let mut other = server.secure(server.connect().await).await;
    assert!(read_replies(&mut other, 1).await.starts_with("220 "));
    // The session with the old certificate continues.
    send_text(&mut stream, "NOOP\r\n").await;
    assert!(read_replies(&mut stream, 1).await.starts_with("250 "));
}

#[tokio::test]
async fn bytes_after_starttls_are_discarded() {
    let server = Server::start(ListenerRole::Relay, SessionLimits::for_relay(), false, Remember::default());
    let mut clear = server.connect().await;
    read_replies(&mut clear, 1).await;
    send_text(&mut clear, "EHLO x\r\n").await;
    read_replies(&mut clear, 1).await;
    send_text(&mut clear, "STARTTLS\r\nMAIL FROM:<evil@b.example>\r\n").await;
    assert!(read_replies(&mut clear, 1).await.starts_with("220 "));
    let mut stream = server.secure(clear).await;
    send_text(&mut stream, "NOOP\r\n").await;
    assert_eq!(read_replies(&mut stream, 1).await, "250 2.0.0 OK\r\n");
    send_text(&mut stream, "RCPT TO:<c@d.example>\r\n").await;
    assert!(read_replies(&mut stream, 1).await.starts_with("503 "));
}

#[tokio::test]
async fn a_large_message_is_received_in_many_chunks() {
    let server = Server::start(ListenerRole::Relay, SessionLimits::for_relay(), false, Remember::default());
    let mut stream = server.connect().await;
    read_replies(&mut stream, 1).await;
    send_text(&mut stream, "EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n").await;
    read_replies(&mut stream, 4).await;
    let line = format!("{}\r\n", "x".repeat(998));
    for _ in 0..5_000 {
        stream.write_all(line.as_bytes()).await.unwrap();
    }
    send_text(&mut stream, ".\r\n").await;
    assert_eq!(read_replies(&mut stream, 1).await, "250 2.0.0 OK msg_1\r\n");
    assert_eq!(server.taken()[0].content.len(), 5_000_000);
}

#[tokio::test]
async fn many_pipelined_commands_are_answered_in_order() {
    let server = Server::start(ListenerRole::Relay, SessionLimits::for_relay(), false, Remember::default());
    let stream = server.connect().await;
    let (mut read, mut write) = stream.into_split();
    let writer = tokio::spawn(async move {
        for _ in 0..20_000 {
            write.write_all(b"EHLO flood.example\r\n").await.unwrap();
        }
        write.write_all(b"QUIT\r\n").await.unwrap();
        write
    });
    let replies = read_replies(&mut read, 20_002).await;
    assert_eq!(replies.matches("250-mx.example\r\n").count(), 20_000);
    assert!(replies.ends_with("221 2.0.0 Bye\r\n"));
    drop(writer.await.unwrap());
}

/// The client reads slowly, so replies wait in the socket, and before that in the TLS session.
#[tokio::test]
async fn a_slow_reader_under_tls_gets_all_replies_in_order() {
    let server = Server::start(ListenerRole::Relay, SessionLimits::for_relay(), true, Remember::default());
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let stream = server.secure(socket.connect(server.address).await.unwrap()).await;
    let (mut read, mut write) = tokio::io::split(stream);
    let writer = tokio::spawn(async move {
        for _ in 0..20_000 {
            write.write_all(b"EHLO flood.example\r\n").await.unwrap();
        }
        write.write_all(b"QUIT\r\n").await.unwrap();
        write.flush().await.unwrap();
        write
    });
    let replies = read_replies(&mut read, 20_002).await;
    assert_eq!(replies.matches("250-mx.example\r\n").count(), 20_000);
    assert!(replies.ends_with("221 2.0.0 Bye\r\n"));
    drop(writer.await.unwrap());
}

#[tokio::test]
async fn the_third_failed_login_closes_the_session() {
    let server = Server::start(ListenerRole::Submission, SessionLimits::default(), true, Remember::default());
    let mut stream = server.secure(server.connect().await).await;
    read_replies(&mut stream, 1).await;
    send_text(&mut stream, "EHLO x\r\n").await;
    read_replies(&mut stream, 1).await;
    for _ in 0..3 {
        send_text(&mut stream, "AUTH PLAIN AHBvc3RyaWRlcgB3cm9uZw==\r\n").await;
        assert!(read_replies(&mut stream, 1).await.starts_with("535 5.7.8"));
    }
    assert!(is_closed(&mut stream).await);
}

#[tokio::test]
async fn excess_sessions_are_refused_with_a_reply() {
    let limits = SessionLimits { sessions_per_address_max: 2, ..SessionLimits::for_relay() };
    let server = Server::start(ListenerRole::Relay, limits, false, Remember::default());
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    read_replies(&mut first, 1).await;
    read_replies(&mut second, 1).await;
    let mut third = server.connect().await;
    assert!(read_replies(&mut third, 1).await.starts_with("421 4.7.0 "));
    send_text(&mut first, "QUIT\r\n").await;
    read_replies(&mut first, 1).await;
    assert!(is_closed(&mut first).await);
    // The slot is released when the task ends, which the client cannot observe: retry until then.
    while !read_replies(&mut server.connect().await, 1).await.starts_with("220 ") {}
}

#[tokio::test]
async fn clients_outside_the_allowed_networks_are_refused() {
    let server = Server::start(ListenerRole::Relay, SessionLimits::for_relay(), false, Remember::default());
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    assert!(read_replies(&mut stream, 1).await.starts_with("554 5.7.1 "));
    assert!(is_closed(&mut stream).await);
}

#[tokio::test]
async fn a_panic_ends_one_session_only() {
    let server = Server::start(ListenerRole::Relay, SessionLimits::for_relay(), false, Remember::default());
    let (mut bad, mut good) = (server.connect().await, server.connect().await);
    read_replies(&mut bad, 1).await;
    read_replies(&mut good, 1).await;
    send_text(&mut bad, "EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n").await;
    read_replies(&mut bad, 4).await;
    send_text(&mut bad, "panic\r\n.\r\n").await;
    assert!(is_closed(&mut bad).await);
    send_text(&mut good, "NOOP\r\n").await;
    assert!(read_replies(&mut good, 1).await.starts_with("250 "));
    drop(good);
    server.shutdown.cancel();
    assert!(server.served.await.unwrap());
    assert_eq!(server.peers.sessions(), 0);
}

#[tokio::test]
async fn shutdown_waits_for_a_message_in_transfer() {
    let hold = Some((Notify::new(), Notify::new()));
    let server =
        Server::start(ListenerRole::Relay, SessionLimits::for_relay(), false, Remember { hold, ..Remember::default() });
    let (mut idle, mut busy) = (server.connect().await, server.connect().await);
    read_replies(&mut idle, 1).await;
    read_replies(&mut busy, 1).await;
    send_text(&mut busy, "EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n").await;
    read_replies(&mut busy, 4).await;
    send_text(&mut busy, MESSAGE).await;
    let (reached, go) = server.answers.hold.as_ref().unwrap();
    reached.notified().await;
    server.shutdown.cancel();
    assert!(read_replies(&mut idle, 1).await.starts_with("421 4.3.2 "));
    go.notify_one();
    let last = read_replies(&mut busy, 2).await;
    assert!(last.starts_with("250 2.0.0 OK msg_1\r\n421 4.3.2 "), "{last}");
    drop((idle, busy));
    assert!(server.served.await.unwrap());
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn an_idle_session_gets_a_reply_before_it_is_closed() {
    let mut limits = SessionLimits::for_relay();
    limits.timeouts.command = Duration::from_millis(50);
    let server = Server::start(ListenerRole::Relay, limits, false, Remember::default());
    let mut stream = server.connect().await;
    assert!(read_replies(&mut stream, 2).await.contains("\r\n421 4.4.2 "));
    assert!(is_closed(&mut stream).await);
}

#[tokio::test]
async fn an_http_client_gets_one_line() {
    let server = Server::start(ListenerRole::Relay, SessionLimits::for_relay(), false, Remember::default());
    let mut stream = server.connect().await;
    read_replies(&mut stream, 1).await;
    send_text(&mut stream, "POST / HTTP/1.1\r\nHost: x\r\n\r\nEHLO x\r\nMAIL FROM:<a@b.example>\r\n").await;
    assert_eq!(read_replies(&mut stream, 9).await, "554 5.5.1 This is an SMTP server\r\n");
}

#[tokio::test]
async fn a_submission_session_without_a_login_ends() {
    let mut limits = SessionLimits::default();
    limits.timeouts.login = Duration::from_millis(50);
    let server = Server::start(ListenerRole::Submission, limits.clone(), false, Remember::default());
    let mut stream = server.connect().await;
    let replies = read_replies(&mut stream, 2).await;
    assert!(replies.starts_with("220 ") && replies.contains("\r\n421 4.4.2 Timeout: no login"), "{replies}");
    assert!(is_closed(&mut stream).await);
    // The timeout applies to a handshake too.
    let server = Server::start(ListenerRole::Submission, limits, true, Remember::default());
    assert!(is_closed(&mut server.connect().await).await);
    while server.peers.sessions() > 0 {
        tokio::task::yield_now().await;
    }
}

/// Regression: after 100 failed logins from an address, a correct one was refused for a quarter of an hour.
#[tokio::test]
async fn a_correct_login_is_not_delayed_by_failures_of_others() {
    let server = Server::start(ListenerRole::Submission, SessionLimits::default(), true, Remember::default());
    let (logins, client) = (&server.peers.logins, "127.0.0.1".parse().unwrap());
    for n in 0..1_000 {
        let _ = logins.record_failure(client, n, tokio::time::Instant::now());
    }
    let mut stream = server.secure(server.connect().await).await;
    read_replies(&mut stream, 1).await;
    send_text(&mut stream, "EHLO x\r\nAUTH PLAIN AHBvc3RyaWRlcgBzZWNyZXQ=\r\n").await;
    let replies = read_replies(&mut stream, 2).await;
    assert!(replies.contains("\r\n235 2.7.0 "), "{replies}");
    assert!(logins.known_holder(client, tokio::time::Instant::now()).is_some());
}

#[tokio::test]
async fn delayed_failures_are_limited_and_correct_logins_not_delayed() {
    let server = Server::start(ListenerRole::Submission, SessionLimits::default(), true, Remember::default());
    let client = "127.0.0.1".parse().unwrap();
    let waiting: Vec<_> = std::iter::from_fn(|| server.peers.logins.acquire_tarpit(client)).collect();
    assert_eq!(waiting.len(), 16);
    let log_in = async |password: &str| {
        let mut stream = server.secure(server.connect().await).await;
        read_replies(&mut stream, 1).await;
        send_text(&mut stream, &format!("EHLO x\r\nAUTH PLAIN {password}\r\n")).await;
        let replies = read_replies(&mut stream, 2).await;
        (stream, replies.lines().last().unwrap().to_owned())
    };
    let (mut stream, replies) = log_in("AHBvc3RyaWRlcgB3cm9uZw==").await;
    assert!(replies.starts_with("421 4.7.0 Too many failed logins"), "{replies}");
    assert!(is_closed(&mut stream).await);
    let (_stream, replies) = log_in("AHBvc3RyaWRlcgBzZWNyZXQ=").await;
    assert!(replies.starts_with("235 "), "{replies}");
}
