//! CPU cost of one message in the SMTP client: `cargo bench -p queue --bench smtp_client`.
//!
//! A sink in its own thread answers over loopback. The client runs in one thread, whose CPU time is read from
//! `/proc/thread-self/schedstat`, so that the sink does not count. Bodies are 10 KB. The last lines measure the DATA
//! writer alone, without a socket. An argument after `--` selects the lines whose name contains it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use queue::delivery::client::smtp::{DialTarget, OutgoingMessage, SmtpDialer, TlsSecurityLevel, TransactionVerdict};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

#[path = "../src/delivery/client/smtp/content.rs"]
#[allow(dead_code, unreachable_pub)]
mod content;

/// Messages of one run, over all its connections.
const MESSAGES: usize = 60_000;
/// Number of runs; the median is printed.
const RUNS: usize = 5;

#[derive(Clone, Copy)]
struct Setup {
    name: &'static str,
    connections: usize,
    keywords: &'static str,
    tls: TlsSecurityLevel,
    /// True to pipeline the next envelope.
    ahead: bool,
    /// Messages on a connection before a new one is dialled.
    per_connection: usize,
}

fn main() {
    const PIPELINED: &str = "250-sink\r\n250-STARTTLS\r\n250 PIPELINING\r\n";
    const CHUNKED: &str = "250-sink\r\n250-STARTTLS\r\n250-CHUNKING\r\n250 PIPELINING\r\n";
    const PLAIN: Setup = Setup {
        name: "DATA, 1 connection",
        connections: 1,
        keywords: PIPELINED,
        tls: TlsSecurityLevel::Off,
        ahead: true,
        per_connection: usize::MAX,
    };
    const BDAT: Setup = Setup { name: "BDAT, 1 connection", keywords: CHUNKED, ..PLAIN };
    const TLS: Setup = Setup { name: "DATA over TLS, 1 connection", tls: TlsSecurityLevel::Required, ..PLAIN };
    let setups = [
        PLAIN,
        Setup { name: "DATA, 20 connections", connections: 20, ..PLAIN },
        Setup { name: "DATA, 1 connection, none ahead", ahead: false, ..PLAIN },
        Setup { name: "DATA, 1 message a connection", per_connection: 1, ..PLAIN },
        BDAT,
        Setup { name: "BDAT, 20 connections", connections: 20, ..BDAT },
        TLS,
        Setup { name: "DATA over TLS, 20 connections", connections: 20, ..TLS },
        Setup { name: "TLS, 1 message a connection", per_connection: 1, ..TLS },
    ];
    // `cargo test --benches` runs this too: once, and briefly.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    let (messages, runs) = if is_bench { (MESSAGES, RUNS) } else { (40, 1) };
    println!("{:<34} {:>10} {:>14}", "10 KB messages over loopback", "messages/s", "CPU us/message");
    for setup in setups.into_iter().filter(|setup| setup.name.contains(&wanted)) {
        let messages = if setup.per_connection == 1 { messages / 10 } else { messages };
        let sink = start_sink(setup.keywords);
        let mut results: Vec<(f64, f64)> = (0..runs).map(|_| run(setup, sink, messages)).collect();
        results.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (rate, cpu_us) = results[results.len() / 2];
        println!("{:<34} {rate:>10.0} {cpu_us:>14.1}", setup.name);
    }
    let rounds = if is_bench { 100_000 } else { 10 };
    for (name, body) in [
        ("data writer, 10 KB", vec![headers(), lines(b"x")]),
        ("data writer, 10 KB, every line a dot", vec![headers(), lines(b".")]),
    ]
    .into_iter()
    .filter(|(name, _)| name.contains(&wanted))
    {
        let before = cpu_ns();
        let mut bytes = 0_usize;
        for _ in 0..rounds {
            let checked = content::CheckedBody::check(std::hint::black_box(&body)).unwrap();
            bytes += checked.slices(&body, true).map(<[u8]>::len).sum::<usize>();
        }
        let each_us = (cpu_ns() - before) as f64 / 1e3 / f64::from(rounds);
        println!("{name:<45} {each_us:>14.2}  ({} bytes)", bytes / rounds as usize);
    }
}

/// CPU time of this thread, in nanoseconds.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux with /proc");
    text.split_ascii_whitespace().next().unwrap().parse().unwrap()
}

fn headers() -> Bytes {
    let signature = "DKIM-Signature: v=1; a=rsa-sha256; b=".to_owned() + &"A".repeat(600) + "\r\n";
    Bytes::from(signature + "From: a@b.example\r\nSubject: bench\r\n\r\n")
}

fn lines(first: &[u8]) -> Bytes {
    let mut line = first.to_vec();
    line.resize(76, b'x');
    line.extend_from_slice(b"\r\n");
    Bytes::from(line.repeat(9_500 / 78))
}

/// Returns messages a second, and CPU microseconds a message.
fn run(setup: Setup, sink: SocketAddr, messages: usize) -> (f64, f64) {
    let sender = std::thread::Builder::new().name("smtp_client".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let dialer = SmtpDialer::new("bench.example".parse().unwrap()).unwrap().with_private_addresses(true);
        let target = DialTarget {
            host: "sink.example".parse().unwrap(),
            address: sink,
            is_trusted: false,
            source: None,
            helo: None,
            tls: setup.tls,
            dane: None,
            credentials: None,
        };
        let body = vec![headers(), lines(b"x")];
        runtime.block_on(async {
            let (started, before) = (Instant::now(), cpu_ns());
            let share = messages / setup.connections;
            let local = tokio::task::LocalSet::new();
            for _ in 0..setup.connections {
                let (dialer, target, body) = (dialer.clone(), target.clone(), body.clone());
                local.spawn_local(async move { send(setup, &dialer, &target, &body, share).await });
            }
            local.await;
            let cpu_us = (cpu_ns() - before) as f64 / 1e3;
            let sent = (share * setup.connections) as f64;
            (sent / started.elapsed().as_secs_f64(), cpu_us / sent)
        })
    });
    sender.unwrap().join().unwrap()
}

async fn send(setup: Setup, dialer: &SmtpDialer, target: &DialTarget, body: &[Bytes], share: usize) {
    let shipment = |n: usize| OutgoingMessage {
        sender: Some(format!("v{n}@rp.example").parse().unwrap()),
        recipient: format!("r{n}@d.example").parse().unwrap(),
        body: body.to_vec(),
        eight_bit: false,
        smtputf8: false,
        require_tls: false,
        dsn: None,
        deliver_by: None,
        priority: None,
    };
    let mut left = share;
    while left > 0 {
        let batch = left.min(setup.per_connection);
        left -= batch;
        let mut connection = dialer.connect(target).await.unwrap();
        let mut message = shipment(0);
        for n in 1..=batch {
            let next = shipment(n);
            let ahead = Some(&next).filter(|_| setup.ahead && n < batch);
            let delivery = connection.deliver(&message, ahead).await;
            assert_eq!(delivery.verdict, TransactionVerdict::Accepted, "{}", delivery.transcript);
            message = next;
        }
        connection.quit().await;
    }
}

/// Starts an SMTP host that accepts everything, in a thread that runs as long as the process.
fn start_sink(keywords: &'static str) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::Builder::new()
        .name("sink".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (listener, acceptor) = (TcpListener::from_std(listener).unwrap(), acceptor());
                while let Ok((mut stream, _)) = listener.accept().await {
                    let acceptor = acceptor.clone();
                    tokio::spawn(async move {
                        stream.set_nodelay(true).unwrap();
                        stream.write_all(b"220 sink\r\n").await.unwrap();
                        if sink(&mut stream, keywords).await {
                            sink(&mut acceptor.accept(stream).await.unwrap(), keywords).await;
                        }
                    });
                }
            });
        })
        .unwrap();
    address
}

fn acceptor() -> TlsAcceptor {
    let certified = rcgen::generate_simple_self_signed(vec!["sink.example".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    Arc::new(config).into()
}

/// Serves one session; returns true after STARTTLS. All replies to one read are written together.
async fn sink(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), keywords: &str) -> bool {
    let (mut buffer, mut replies) = (Vec::with_capacity(64 * 1024), Vec::new());
    let (mut in_data, mut to_skip) = (false, 0_usize);
    while stream.read_buf(&mut buffer).await.is_ok_and(|count| count > 0) {
        let mut at = 0;
        loop {
            let remainder = &buffer[at..];
            if to_skip > 0 {
                let skipped = to_skip.min(remainder.len());
                (at, to_skip) = (at + skipped, to_skip - skipped);
                if to_skip > 0 {
                    break;
                }
                replies.extend_from_slice(b"250 2.0.0 Ok: queued as 4ZyXwV1tQz\r\n");
                continue;
            }
            if in_data {
                let Some(end) = memchr::memmem::find(remainder, b"\r\n.\r\n") else {
                    at = buffer.len() - remainder.len().min(4);
                    break;
                };
                at += end + 5;
                in_data = false;
                replies.extend_from_slice(b"250 2.0.0 Ok: queued as 4ZyXwV1tQz\r\n");
                continue;
            }
            let Some(end) = memchr::memchr(b'\n', remainder) else { break };
            let line = &remainder[..=end];
            at += end + 1;
            match &line[..4] {
                b"EHLO" => replies.extend_from_slice(keywords.as_bytes()),
                b"MAIL" => replies.extend_from_slice(b"250 2.1.0 Ok\r\n"),
                b"RCPT" => replies.extend_from_slice(b"250 2.1.5 Ok\r\n"),
                b"RSET" => replies.extend_from_slice(b"250 2.0.0 Ok\r\n"),
                b"DATA" => {
                    replies.extend_from_slice(b"354 End data with <CR><LF>.<CR><LF>\r\n");
                    in_data = true;
                }
                b"BDAT" => {
                    let words = std::str::from_utf8(line).unwrap();
                    to_skip = words.split(' ').nth(1).unwrap().parse().unwrap();
                }
                b"STAR" => {
                    stream.write_all(b"220 go\r\n").await.unwrap();
                    return true;
                }
                _ => {
                    stream.write_all(b"221 bye\r\n").await.ok();
                    stream.shutdown().await.ok();
                    return false;
                }
            }
        }
        buffer.drain(..at);
        if !replies.is_empty() {
            stream.write_all(&replies).await.unwrap();
            stream.flush().await.unwrap();
            replies.clear();
        }
    }
    false
}
