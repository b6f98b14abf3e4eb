//! The PROXY header before the HTTP request. The trusted proxy is 127.0.0.1; connections from 127.0.0.2 are not from
//! a proxy. (tls.rs tests the header before TLS.)

use crate::world::World;
use net::proxy_protocol::trusted_proxies::TrustedProxies;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

const LINE: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n";
const BLOCK: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc6\x33\x64\x01\xdc\x04\x01\xbb";
/// A PROXY v2 LOCAL header: the proxy's own health check.
const LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";

async fn world() -> World {
    World::with_options(|options| {
        options.connections.proxies = TrustedProxies::new(&["127.0.0.1".parse().unwrap()]);
        options.connections.max = 2;
    })
    .await
}

async fn connect_from(world: &World, address: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
    let stream = socket.connect(world.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Everything received until the connection ends or is reset.
async fn read_response(mut stream: TcpStream) -> String {
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response).await;
    String::from_utf8(response).unwrap()
}

#[tokio::test]
async fn header_and_request_in_one_packet_and_byte_by_byte() {
    let world = world().await;
    for header in [LINE, BLOCK, LOCAL] {
        let sent_bytes = [header, REQUEST].concat();
        for chunk_size in [sent_bytes.len(), 1] {
            let mut stream = connect_from(&world, "127.0.0.1").await;
            for bytes in sent_bytes.chunks(chunk_size) {
                stream.write_all(bytes).await.unwrap();
            }
            let response = read_response(stream).await;
            assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        }
    }
    world.end().await;
}

#[tokio::test]
async fn connection_without_proxy_header_gets_no_response() {
    let world = world().await;
    for sent_bytes in [REQUEST, b"PROXY TCP4 192.0.2.1\r\n", &BLOCK[1..]] {
        let mut stream = connect_from(&world, "127.0.0.1").await;
        stream.write_all(sent_bytes).await.unwrap();
        assert_eq!(read_response(stream).await, "");
    }
    world.end().await;
}

#[tokio::test]
async fn proxy_header_from_an_untrusted_peer_is_refused() {
    let world = world().await;
    for (header, status) in [(&b""[..], "200"), (LINE, "400"), (BLOCK, "400")] {
        let mut stream = connect_from(&world, "127.0.0.2").await;
        stream.write_all(&[header, REQUEST].concat()).await.unwrap();
        let response = read_response(stream).await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{}: {response}", header.escape_ascii());
    }
    world.end().await;
}

/// Connects for this client and sends a request; returns the status line, empty without a response.
async fn request_as_client(world: &World, client: &str) -> (TcpStream, String) {
    let mut stream = connect_from(world, "127.0.0.1").await;
    let version = if client.contains(':') { "6 " } else { "4 " };
    let server = if client.contains(':') { "2001:db8::9" } else { "198.51.100.1" };
    let sent_bytes =
        format!("PROXY TCP{version}{client} {server} 56324 443\r\nGET /healthz HTTP/1.1\r\nHost: t\r\n\r\n");
    stream.write_all(sent_bytes.as_bytes()).await.unwrap();
    let mut line = vec![0; 15];
    let _ = stream.read_exact(&mut line).await;
    (stream, String::from_utf8(line).unwrap().trim_end_matches('\0').to_owned())
}

#[tokio::test]
async fn connections_are_limited_by_client() {
    let world = World::with_options(|options| {
        options.connections.proxies = TrustedProxies::new(&["127.0.0.1".parse().unwrap()]);
        options.connections.per_address_max = 2;
    })
    .await;
    let mut open = Vec::new();
    for (first, last) in [("192.0.2.1", "192.0.2.1"), ("2001:db8::1", "2001:db8::ffff")] {
        for client in [first, last] {
            let (stream, response) = request_as_client(&world, client).await;
            assert_eq!(response, "HTTP/1.1 200 OK", "{client}");
            open.push(stream);
        }
        assert_eq!(request_as_client(&world, last).await.1, "", "closed without a response");
    }
    for other in ["192.0.2.2", "2001:db8:0:1::1"] {
        assert_eq!(request_as_client(&world, other).await.1, "HTTP/1.1 200 OK");
    }
    // A closed connection frees its slot.
    open.clear();
    while request_as_client(&world, "192.0.2.1").await.1.is_empty() {
        tokio::task::yield_now().await;
    }
    // Loopback is not limited: a proxy without the header connects for all of its clients.
    for _ in 0..4 {
        let mut stream = connect_from(&world, "127.0.0.2").await;
        stream.write_all(REQUEST).await.unwrap();
        assert!(read_response(stream).await.starts_with("HTTP/1.1 200 "));
    }
    world.end().await;
}

#[tokio::test]
async fn shutdown_does_not_wait_for_a_proxy_header() {
    let world = world().await;
    let silent = [connect_from(&world, "127.0.0.1").await, connect_from(&world, "127.0.0.1").await];
    world.end().await;
    for stream in silent {
        assert_eq!(read_response(stream).await, "");
    }
}
