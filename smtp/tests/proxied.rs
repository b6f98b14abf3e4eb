//! The listener behind a proxy, over loopback: the PROXY header before the greeting and before TLS. 127.0.0.1 is the
//! proxy; connections from 127.0.0.2 are direct.

#![allow(clippy::unwrap_used, reason = "a test")]

mod loopback;

use loopback::{Remember, Server, is_closed, read_replies, send_text};
use smtp::limits::SessionLimits;
use smtp::settings::ListenerRole;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

/// A client in the relay's network, and one outside.
const INSIDER: &str = "PROXY TCP4 127.0.0.1 198.51.100.1 56324 25\r\n";
const OUTSIDER: &str = "PROXY TCP4 192.0.2.1 198.51.100.1 56324 25\r\n";
const DIALOG: &str = "EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n";
const MESSAGE: &str = "From: a@b.example\r\nSubject: hi\r\n\r\nhello\r\n.\r\nQUIT\r\n";

fn server(role: ListenerRole, limits: SessionLimits, implicit_tls: bool) -> Server {
    let proxies = ["127.0.0.1".parse().unwrap()];
    Server::behind(&proxies, role, limits, implicit_tls, Remember::default())
}

/// Connects from a local address.
async fn connect_from(server: &Server, address: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
    socket.connect(server.address).await.unwrap()
}

/// A header of version 2: the command, and a client at 127.0.0.1 or, for LOCAL, no address.
fn v2(command: u8) -> Vec<u8> {
    let addresses: &[u8] = if command == 0x20 { &[] } else { &[127, 0, 0, 1, 198, 51, 100, 1, 220, 4, 0, 25] };
    let family = if command == 0x20 { 0 } else { 0x11 };
    let length = u8::try_from(addresses.len()).unwrap();
    [b"\r\n\r\n\0\r\nQUIT\n", &[command, family, 0, length][..], addresses].concat()
}

#[tokio::test]
async fn the_client_address_is_that_of_the_header() {
    let server = server(ListenerRole::Submission, SessionLimits::default(), true);
    let mut clear = server.connect().await;
    send_text(&mut clear, "PROXY TCP6 2001:db8::9 2001:db8::1 56324 465\r\n").await;
    let mut stream = server.secure(clear).await;
    read_replies(&mut stream, 1).await;
    send_text(&mut stream, "EHLO x\r\nAUTH PLAIN AHBvc3RyaWRlcgBzZWNyZXQ=\r\n").await;
    read_replies(&mut stream, 2).await;
    send_text(&mut stream, DIALOG).await;
    read_replies(&mut stream, 4).await;
    send_text(&mut stream, MESSAGE).await;
    assert!(read_replies(&mut stream, 2).await.starts_with("250 "));
    let trace = &server.taken()[0].trace;
    assert_eq!(trace.peer, "2001:db8::9".parse::<std::net::IpAddr>().unwrap());
    assert!(trace.tls.is_some());
}

#[tokio::test]
async fn header_and_dialog_may_arrive_in_any_chunks() {
    let server = server(ListenerRole::Relay, SessionLimits::for_relay(), false);
    for header in [INSIDER.as_bytes().to_vec(), v2(0x21), v2(0x20), b"PROXY UNKNOWN\r\n".to_vec()] {
        let input = [&header, DIALOG.as_bytes(), MESSAGE.as_bytes()].concat();
        for piece in [input.len(), 1] {
            let mut stream = server.connect().await;
            stream.set_nodelay(true).unwrap();
            for bytes in input.chunks(piece) {
                stream.write_all(bytes).await.unwrap();
            }
            let replies = read_replies(&mut stream, 7).await;
            assert!(replies.ends_with("250 2.0.0 OK msg_1\r\n221 2.0.0 Bye\r\n"), "{replies}");
        }
    }
    assert_eq!(server.taken().len(), 8);
}

#[tokio::test]
async fn relay_networks_are_matched_with_the_client_address() {
    let server = server(ListenerRole::Relay, SessionLimits::for_relay(), false);
    let mut stream = server.connect().await;
    send_text(&mut stream, OUTSIDER).await;
    assert!(read_replies(&mut stream, 1).await.starts_with("554 5.7.1 "));
    assert!(is_closed(&mut stream).await);
}

#[tokio::test]
async fn sessions_are_counted_for_the_client() {
    let limits = SessionLimits { sessions_per_address_max: 1, ..SessionLimits::default() };
    let server = server(ListenerRole::Submission, limits, false);
    let arrive = async |header: &str| {
        let mut stream = server.connect().await;
        send_text(&mut stream, header).await;
        let replies = read_replies(&mut stream, 1).await;
        (stream, replies)
    };
    let (_first, replies) = arrive(INSIDER).await;
    assert!(replies.starts_with("220 "));
    let (_second, replies) = arrive(OUTSIDER).await;
    assert!(replies.starts_with("220 "));
    let (_third, replies) = arrive(OUTSIDER).await;
    assert!(replies.starts_with("421 4.7.0 "));
}

#[tokio::test]
async fn without_a_header_no_reply_is_sent() {
    let server = server(ListenerRole::Relay, SessionLimits::for_relay(), false);
    let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(200));
    for bytes in ["EHLO x\r\nQUIT\r\n", "PROXY TCP4 127.0.0.1\r\nQUIT\r\n", long.as_str()] {
        let mut stream = server.connect().await;
        // The connection can be reset while the bytes are still being sent.
        let _ = stream.write_all(bytes.as_bytes()).await;
        assert_eq!(read_replies(&mut stream, 1).await, "", "{bytes}");
    }
    let mut stream = server.connect().await;
    send_text(&mut stream, "PROXY TCP4 127.0.0.1").await;
    stream.shutdown().await.unwrap();
    assert_eq!(read_replies(&mut stream, 1).await, "");
}

#[tokio::test]
async fn a_header_of_an_untrusted_client_is_refused() {
    let server = server(ListenerRole::Submission, SessionLimits::default(), false);
    let mut stream = connect_from(&server, "127.0.0.2").await;
    assert!(read_replies(&mut stream, 1).await.starts_with("220 "));
    send_text(&mut stream, INSIDER).await;
    assert!(read_replies(&mut stream, 1).await.starts_with("500 5.5.2 "));
}

#[tokio::test]
async fn a_silent_proxy_connection_is_counted_and_times_out() {
    let server = server(ListenerRole::Relay, SessionLimits::for_relay(), false);
    server.peers.set_sessions_max(ListenerRole::Relay, 4);
    // Connections whose header is awaited occupy all slots.
    let mut silent = Vec::new();
    for _ in 0..4 {
        silent.push(server.connect().await);
    }
    let mut one_more = connect_from(&server, "127.0.0.2").await;
    assert!(read_replies(&mut one_more, 1).await.starts_with("421 4.3.2 "));
    assert_eq!(server.peers.sessions(), 4);
    server.shutdown.cancel();
    for stream in &mut silent {
        assert!(is_closed(stream).await);
    }
    assert!(server.served.await.unwrap());
    assert_eq!(server.peers.sessions(), 0);
}
