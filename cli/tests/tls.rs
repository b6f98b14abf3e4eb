//! The program against TLS servers: certificates of private authorities, and proxies.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod scripted_server;

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use scripted_server::{Finished, KEY, finish, program};

/// A name that only a proxy knows.
const HOST: &str = "mail.invalid";

/// An API over TLS with a certificate of nobody's authority.
struct TlsServer {
    address: SocketAddr,
    certificate: PathBuf,
    _directory: tempfile::TempDir,
}

impl TlsServer {
    fn start() -> Self {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned(), HOST.to_owned()]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let certificate = directory.path().join("authority.pem");
        std::fs::write(&certificate, certified.cert.pem()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        let config = config.with_no_client_auth().with_single_cert(vec![certified.cert.der().clone()], key.into());
        let (config, listener) = (Arc::new(config.unwrap()), TcpListener::bind("127.0.0.1:0").unwrap());
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that does not trust the certificate leaves.
                let _ = answer(stream.unwrap(), Arc::clone(&config));
            }
        });
        Self { address, certificate, _directory: directory }
    }
}

fn answer(stream: TcpStream, config: Arc<ServerConfig>) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    read_head(&mut reader)?;
    let body = r#"{"account":{"id":"acct_1"}}"#;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    reader.get_mut().write_all([head.as_bytes(), body.as_bytes()].concat().as_slice())?;
    reader.get_mut().flush()
}

fn read_head(reader: &mut impl std::io::BufRead) -> std::io::Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head)? > 0 {}
    Ok(head)
}

/// A proxy that answers `CONNECT` with a status, and leads each tunnel to one server.
struct Tunnels {
    address: SocketAddr,
    heads: mpsc::Receiver<String>,
}

impl Tunnels {
    fn start(server: SocketAddr, status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, heads) = mpsc::channel();
        std::thread::spawn(move || {
            let mut refused = Vec::new();
            for client in listener.incoming() {
                let mut client = client.unwrap();
                seen.send(read_head(&mut BufReader::new(&client)).unwrap()).unwrap();
                let is_tunnel = status.starts_with("200");
                let body = if is_tunnel { "" } else { "content-length: 5\r\n\r\nhello" };
                client.write_all(format!("HTTP/1.1 {status}\r\nvia: proxy\r\n{body}").as_bytes()).unwrap();
                if !is_tunnel {
                    // The connection stays open.
                    refused.push(client);
                    continue;
                }
                client.write_all(b"\r\n").unwrap();
                let mut server = TcpStream::connect(server).unwrap();
                let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                let _ = std::io::copy(&mut server, &mut client);
                let _ = client.shutdown(std::net::Shutdown::Both);
            }
        });
        Self { address, heads }
    }
}

fn run(base_url: &str, variables: &[(&str, &str)]) -> Finished {
    let mut command = program();
    command.args(["account", "get", "--timeout", "5"]).env("POSTRIDER_API_KEY", KEY);
    finish(command.env("POSTRIDER_BASE_URL", base_url).envs(variables.iter().copied()).output().unwrap())
}

#[test]
fn a_private_authority_is_trusted_by_name() {
    let server = TlsServer::start();
    let url = format!("https://localhost:{}", server.address.port());
    let untrusted = run(&url, &[]);
    assert_eq!((untrusted.status, untrusted.error()["reason"].as_str()), (Some(3), Some("tls")), "{untrusted:?}");
    assert!(untrusted.stderr.contains("UnknownIssuer") && untrusted.stderr.contains("SSL_CERT_FILE"), "{untrusted:?}");
    // A proxy is not asked for this machine.
    let trusted =
        run(&url, &[("SSL_CERT_FILE", server.certificate.to_str().unwrap()), ("HTTPS_PROXY", "http://[::1]:9")]);
    assert_eq!((trusted.status, &trusted.json()["account"]["id"]), (Some(0), &"acct_1".into()), "{trusted:?}");
    let other_name = run(
        &format!("https://127.0.0.1:{}", server.address.port()),
        &[("SSL_CERT_FILE", server.certificate.to_str().unwrap())],
    );
    assert_eq!(other_name.error()["reason"], "tls", "{other_name:?}");
    let missing = run(&url, &[("SSL_CERT_FILE", "/nonexistent")]);
    assert_eq!((missing.status, missing.error()["code"].as_str()), (Some(2), Some("usage")), "{missing:?}");
}

#[test]
fn tls_goes_through_the_proxy_of_the_environment() {
    let server = TlsServer::start();
    let (url, certificate) = (format!("https://{HOST}"), server.certificate.to_str().unwrap());
    let tunnels = Tunnels::start(server.address, "200 Connection established");
    let proxy = format!("http://ada:s%20t@{}", tunnels.address);
    let through = run(&url, &[("SSL_CERT_FILE", certificate), ("HTTPS_PROXY", &proxy)]);
    assert_eq!((through.status, &through.json()["account"]["id"]), (Some(0), &"acct_1".into()), "{through:?}");
    let head = tunnels.heads.recv().unwrap();
    // base64 of `ada:s t`.
    let expected =
        format!("CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}:443\r\nProxy-Authorization: Basic YWRhOnMgdA==\r\n\r\n");
    assert_eq!(head, expected);
    let around = run(&url, &[("SSL_CERT_FILE", certificate), ("HTTPS_PROXY", &proxy), ("NO_PROXY", ".invalid")]);
    assert!(around.status == Some(3) && tunnels.heads.try_recv().is_err(), "{around:?}");
}

#[test]
fn a_proxy_that_refuses_is_named() {
    let server = TlsServer::start();
    let url = format!("https://{HOST}");
    for (status, says) in [("407 Proxy Authentication Required", "a user name and a password"), ("403 No", "HTTP 403")]
    {
        let tunnels = Tunnels::start(server.address, status);
        let refused = run(&url, &[("https_proxy", &format!("http://{}", tunnels.address))]);
        let message = refused.error()["message"].to_string();
        assert_eq!((refused.status, refused.error()["reason"].as_str()), (Some(3), Some("other")), "{refused:?}");
        assert!(message.contains("HTTPS_PROXY") && message.contains(says), "{refused:?}");
        assert!(tunnels.heads.recv().unwrap().starts_with("CONNECT "));
    }
    let socks = run(&url, &[("HTTPS_PROXY", "socks5://127.0.0.1:9")]);
    assert_eq!((socks.status, socks.error()["code"].as_str()), (Some(2), Some("usage")), "{socks:?}");
}
