//! A lock-step SMTP client: one command, one write, one reply (RFC 5321 4.2).
//!
//! It fails on the first reply of an unexpected class: in a benchmark a refused message makes the measurement invalid.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Limit for a reply, in bytes (an EHLO reply has a few hundred).
pub(crate) const REPLY_BYTES_MAX: usize = 16 * 1024;
/// Buffer space reserved for one read, in bytes.
const READ_BYTES: usize = 4096;

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        buffer.reserve(READ_BYTES);
        match self {
            Self::Plain(stream) => stream.read_buf(buffer).await,
            Self::Tls(stream) => stream.read_buf(buffer).await,
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes).await,
            Self::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }
}

/// An SMTP connection after EHLO.
pub(crate) struct Client {
    stream: Stream,
    buffer: Vec<u8>,
}

/// Settings of a new connection.
pub(crate) struct Opening<'a> {
    pub(crate) to: SocketAddr,
    pub(crate) tls: Option<&'a Arc<ClientConfig>>,
    pub(crate) login: Option<(&'a str, &'a str)>,
}

impl Client {
    /// Connects and sends EHLO; then STARTTLS and AUTH if they are set.
    pub(crate) async fn open(opening: &Opening<'_>) -> io::Result<Self> {
        let stream = TcpStream::connect(opening.to).await?;
        stream.set_nodelay(true)?;
        let mut client = Self { stream: Stream::Plain(stream), buffer: Vec::new() };
        client.expect(b'2').await?;
        client.send_command("EHLO load.bench.test\r\n", b'2').await?;
        if let Some(config) = opening.tls {
            client.send_command("STARTTLS\r\n", b'2').await?;
            client = client.secure(config).await?;
            client.send_command("EHLO load.bench.test\r\n", b'2').await?;
        }
        if let Some((user, password)) = opening.login {
            let initial = STANDARD.encode(format!("\0{user}\0{password}"));
            client.send_command(&format!("AUTH PLAIN {initial}\r\n"), b'2').await?;
        }
        Ok(client)
    }

    async fn secure(self, config: &Arc<ClientConfig>) -> io::Result<Self> {
        let Stream::Plain(tcp) = self.stream else { return Err(io::Error::other("TLS is active already")) };
        let name = ServerName::try_from("bench.test").map_err(io::Error::other)?;
        let stream = TlsConnector::from(Arc::clone(config)).connect(name, tcp).await?;
        Ok(Self { stream: Stream::Tls(Box::new(stream)), buffer: Vec::new() })
    }

    /// Sends one message. `content` is already dot-stuffed and ends in CRLF, `.`, CRLF.
    pub(crate) async fn deliver(&mut self, from: &str, to: &str, content: &[u8]) -> io::Result<()> {
        self.send_command(&format!("MAIL FROM:<{from}>\r\n"), b'2').await?;
        self.send_command(&format!("RCPT TO:<{to}>\r\n"), b'2').await?;
        self.send_command("DATA\r\n", b'3').await?;
        self.stream.write(content).await?;
        self.expect(b'2').await
    }

    /// Sends QUIT and waits for its reply.
    pub(crate) async fn quit(mut self) -> io::Result<()> {
        self.send_command("QUIT\r\n", b'2').await
    }

    async fn send_command(&mut self, command: &str, class: u8) -> io::Result<()> {
        self.stream.write(command.as_bytes()).await?;
        self.expect(class).await.map_err(|error| io::Error::other(format!("{}: {error}", command.trim_end())))
    }

    /// Reads one reply with all its lines and checks its first digit.
    async fn expect(&mut self, class: u8) -> io::Result<()> {
        loop {
            if let Some(end) = reply_end(&self.buffer) {
                let reply = self.buffer.get(..end).unwrap_or_default();
                let result = match reply.first() == Some(&class) {
                    true => Ok(()),
                    false => Err(io::Error::other(String::from_utf8_lossy(reply).trim_end().to_owned())),
                };
                self.buffer.drain(..end);
                return result;
            }
            if self.stream.read(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if self.buffer.len() > REPLY_BYTES_MAX {
                return Err(io::Error::other("reply too long"));
            }
        }
    }
}

/// Length of the first complete reply. Its last line has no `-` as fourth byte.
fn reply_end(bytes: &[u8]) -> Option<usize> {
    let mut end = 0;
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        end += line.len();
        if line.ends_with(b"\n") && line.get(3) != Some(&b'-') {
            return Some(end);
        }
    }
    None
}
