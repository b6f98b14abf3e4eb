//! The listener over loopback, with a test client and a handler that records messages.

#![allow(clippy::unwrap_used, reason = "a test")]

mod loopback;

use std::time::Duration;

use loopback::{Remember, Server, hear, is_closed, say, shown};
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
    assert!(hear(&mut clear, 1).await.starts_with("220 "));
    say(&mut clear, "EHLO client.example\r\n").await;
    assert!(hear(&mut clear, 1).await.contains("250-STARTTLS\r\n"));
    say(&mut clear, "STARTTLS\r\n").await;
    assert!(hear(&mut clear, 1).await.starts_with("220 "));
    let mut stream = server.secure(clear).await;
    say(&mut stream, "EHLO client.example\r\n").await;
    assert!(hear(&mut stream, 1).await.contains("250-AUTH PLAIN LOGIN\r\n"));
    say(&mut stream, "AUTH PLAIN AHBvc3RyaWRlcgBzZWNyZXQ=\r\n").await;
    assert!(hear(&mut stream, 1).await.starts_with("235 "));
    say(&mut stream, "MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n").await;
    let replies = hear(&mut stream, 3).await;
    assert_eq!(replies.matches("250 ").count(), 2, "{replies}");
    say(&mut stream, MESSAGE).await;
    assert_eq!(hear(&mut stream, 1).await, "250 2.0.0 OK msg_1\r\n");
    say(&mut stream, "QUIT\r\n").await;
    assert!(hear(&mut stream, 1).await.starts_with("221 "));
    assert!(is_closed(&mut stream).await);
    let taken = server.taken();
    assert_eq!(taken.len(), 1);
    assert!(taken[0].content.ends_with(b"\r\n.hello\r\n"));
    assert!(taken[0].trace.tls.is_some() && taken[0].trace.authenticated);
}

#[tokio::test]
async fn implicit_tls_and_a_new_certificate() {
    let mut server = Server::start(ListenerRole::Submission, SessionLimits::default(), true, Remember::default());
    let mut stream = server.secure(server.connect().await).await;
    assert!(hear(&mut stream, 1).await.starts_with("220 "));
    let fresh = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    server.tls.send_replace(shown(&fresh));
    server.certificate = fresh;
    let mut other = server.secure(server.connect().await).await;
    assert!(hear(&mut other, 1).await.starts_with("220 "));
    // The session with the old certificate continues.
    say(&mut stream, "NOOP\r\n").await;
    assert!(hear(&mut stream, 1).await.starts_with("250 "));
}

#[tokio::test]
async fn bytes_behind_starttls_are_never_answered() {
    let server = Server::start(ListenerRole::Relay, SessionLimits::for_relay(), false, Remember::default());
    let mut clear = server.connect().await;
    hear(&mut clear, 1).await;
    say(&mut clear, "EHLO x\r\n").await;
    hear(&mut clear, 1).await;
    say(&mut clear, "STARTTLS\r\nMAIL FROM:<evil@b.example>\r\n").await;
    assert!(hear(&mut clear, 1).await.starts_with("220 "));
    let mut stream = server.secure(clear).await;
    say(&mut stream, "NOOP\r\n").await;
    assert_eq!(hear(&mut stream, 1).await, "250 2.0.0 OK\r\n");
    say(&mut stream, "RCPT TO:<c@d.example>\r\n").await;
    assert!(hear(&mut stream, 1).await.starts_with("503 "));
}

#[tokio::test]
async fn a_large_message_in_many_pieces() {
    let server = Server::start(ListenerRole::Relay, SessionLimits::for_relay(), false, Remember::default());
    let mut stream = server.connect().await;
    hear(&mut stream, 1).await;
    say(&mut stream, "EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n").await;
    hear(&mut stream, 4).await;
    let line = format!("{}\r\n", "x".repeat(998));
    for _ in 0..5_000 {
        stream.write_all(line.as_bytes()).await.unwrap();
    }
    say(&mut stream, ".\r\n").await;
    assert_eq!(hear(&mut stream, 1).await, "250 2.0.0 OK msg_1\r\n");
    assert_eq!(server.taken()[0].content.len(), 5_000_000);
}

#[tokio::test]
async fn a_flood_of_commands_is_answered_in_order() {
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
    let heard = hear(&mut read, 20_002).await;
    assert_eq!(heard.matches("250-mx.example\r\n").count(), 20_000);
    assert!(heard.ends_with("221 2.0.0 Bye\r\n"));
    drop(writer.await.unwrap());
}

/// The client reads slowly, so replies wait in the socket, and before that in the TLS session.
#[tokio::test]
async fn under_tls_a_slow_reader_hears_all_replies_in_order() {
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
    let heard = hear(&mut read, 20_002).await;
    assert_eq!(heard.matches("250-mx.example\r\n").count(), 20_000);
    assert!(heard.ends_with("221 2.0.0 Bye\r\n"));
    drop(writer.await.unwrap());
}

#[tokio::test]
async fn a_fourth_failed_login_is_not_heard() {
    let server = Server::start(ListenerRole::Submission, SessionLimits::default(), true, Remember::default());
    let mut stream = server.secure(server.connect().await).await;
    hear(&mut stream, 1).await;
    say(&mut stream, "EHLO x\r\n").await;
    hear(&mut stream, 1).await;
    for _ in 0..3 {
        say(&mut stream, "AUTH PLAIN AHBvc3RyaWRlcgB3cm9uZw==\r\n").await;
        assert!(hear(&mut stream, 1).await.starts_with("535 5.7.8"));
    }
    assert!(is_closed(&mut stream).await);
}

#[tokio::test]
async fn too_many_sessions_are_told_so() {
    let limits = SessionLimits { sessions_per_address_max: 2, ..SessionLimits::for_relay() };
    let server = Server::start(ListenerRole::Relay, limits, false, Remember::default());
    let (mut one, mut two) = (server.connect().await, server.connect().await);
    hear(&mut one, 1).await;
    hear(&mut two, 1).await;
    let mut three = server.connect().await;
    assert!(hear(&mut three, 1).await.starts_with("421 4.7.0 "));
    say(&mut one, "QUIT\r\n").await;
    hear(&mut one, 1).await;
    assert!(is_closed(&mut one).await);
    // The slot is released when the task ends, which the client cannot observe: retry until then.
    while !hear(&mut server.connect().await, 1).await.starts_with("220 ") {}
}

#[tokio::test]
async fn outsiders_are_turned_away() {
    let server = Server::start(ListenerRole::Relay, SessionLimits::for_relay(), false, Remember::default());
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    assert!(hear(&mut stream, 1).await.starts_with("554 5.7.1 "));
    assert!(is_closed(&mut stream).await);
}

#[tokio::test]
async fn a_panic_ends_one_session_only() {
    let server = Server::start(ListenerRole::Relay, SessionLimits::for_relay(), false, Remember::default());
    let (mut bad, mut good) = (server.connect().await, server.connect().await);
    hear(&mut bad, 1).await;
    hear(&mut good, 1).await;
    say(&mut bad, "EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n").await;
    hear(&mut bad, 4).await;
    say(&mut bad, "panic\r\n.\r\n").await;
    assert!(is_closed(&mut bad).await);
    say(&mut good, "NOOP\r\n").await;
    assert!(hear(&mut good, 1).await.starts_with("250 "));
    drop(good);
    server.shutdown.cancel();
    assert!(server.served.await.unwrap());
    assert_eq!(server.peers.sessions(), 0);
}

#[tokio::test]
async fn shutdown_waits_for_a_message_that_is_being_taken() {
    let hold = Some((Notify::new(), Notify::new()));
    let server =
        Server::start(ListenerRole::Relay, SessionLimits::for_relay(), false, Remember { hold, ..Remember::default() });
    let (mut idle, mut busy) = (server.connect().await, server.connect().await);
    hear(&mut idle, 1).await;
    hear(&mut busy, 1).await;
    say(&mut busy, "EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n").await;
    hear(&mut busy, 4).await;
    say(&mut busy, MESSAGE).await;
    let (reached, go) = server.answers.hold.as_ref().unwrap();
    reached.notified().await;
    server.shutdown.cancel();
    assert!(hear(&mut idle, 1).await.starts_with("421 4.3.2 "));
    go.notify_one();
    let last = hear(&mut busy, 2).await;
    assert!(last.starts_with("250 2.0.0 OK msg_1\r\n421 4.3.2 "), "{last}");
    drop((idle, busy));
    assert!(server.served.await.unwrap());
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn an_idle_session_is_told_before_it_is_closed() {
    let limits = SessionLimits { command_timeout: Duration::from_millis(50), ..SessionLimits::for_relay() };
    let server = Server::start(ListenerRole::Relay, limits, false, Remember::default());
    let mut stream = server.connect().await;
    assert!(hear(&mut stream, 2).await.contains("\r\n421 4.4.2 "));
    assert!(is_closed(&mut stream).await);
}

#[tokio::test]
async fn a_browser_hears_no_more_than_one_line() {
    let server = Server::start(ListenerRole::Relay, SessionLimits::for_relay(), false, Remember::default());
    let mut stream = server.connect().await;
    hear(&mut stream, 1).await;
    say(&mut stream, "POST / HTTP/1.1\r\nHost: x\r\n\r\nEHLO x\r\nMAIL FROM:<a@b.example>\r\n").await;
    assert_eq!(hear(&mut stream, 9).await, "554 5.5.1 This is an SMTP server\r\n");
}

#[tokio::test]
async fn a_submission_session_without_a_login_ends() {
    let limits = SessionLimits { login_timeout: Duration::from_millis(50), ..SessionLimits::default() };
    let server = Server::start(ListenerRole::Submission, limits.clone(), false, Remember::default());
    let mut stream = server.connect().await;
    let heard = hear(&mut stream, 2).await;
    assert!(heard.starts_with("220 ") && heard.contains("\r\n421 4.4.2 Timeout: no login"), "{heard}");
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
async fn a_right_login_is_heard_at_once_whatever_others_failed_with() {
    let server = Server::start(ListenerRole::Submission, SessionLimits::default(), true, Remember::default());
    let (logins, here) = (server.peers.logins(), "127.0.0.1".parse().unwrap());
    for n in 0..1_000 {
        let _ = logins.record_failure(here, n, tokio::time::Instant::now());
    }
    let mut stream = server.secure(server.connect().await).await;
    hear(&mut stream, 1).await;
    say(&mut stream, "EHLO x\r\nAUTH PLAIN AHBvc3RyaWRlcgBzZWNyZXQ=\r\n").await;
    let heard = hear(&mut stream, 2).await;
    assert!(heard.contains("\r\n235 2.7.0 "), "{heard}");
    assert!(logins.known_holder(here, tokio::time::Instant::now()).is_some());
}

#[tokio::test]
async fn failed_logins_that_wait_have_a_number_and_a_right_one_does_not_wait() {
    let server = Server::start(ListenerRole::Submission, SessionLimits::default(), true, Remember::default());
    let here = "127.0.0.1".parse().unwrap();
    let waiting: Vec<_> = std::iter::from_fn(|| server.peers.logins().acquire_tarpit(here)).collect();
    assert_eq!(waiting.len(), 16);
    let log_in = async |password: &str| {
        let mut stream = server.secure(server.connect().await).await;
        hear(&mut stream, 1).await;
        say(&mut stream, &format!("EHLO x\r\nAUTH PLAIN {password}\r\n")).await;
        let heard = hear(&mut stream, 2).await;
        (stream, heard.lines().last().unwrap().to_owned())
    };
    let (mut stream, heard) = log_in("AHBvc3RyaWRlcgB3cm9uZw==").await;
    assert!(heard.starts_with("421 4.7.0 Too many failed logins"), "{heard}");
    assert!(is_closed(&mut stream).await);
    let (_stream, heard) = log_in("AHBvc3RyaWRlcgBzZWNyZXQ=").await;
    assert!(heard.starts_with("235 "), "{heard}");
}
