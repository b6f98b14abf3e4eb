//! A blocking SMTP client in lockstep: one command, one write, one reply (RFC 5321 4.2).
//!
//! It fails at the first reply of another class than the one it waits for: in a benchmark a refused
//! message is a wrong measurement, not a case to handle.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;

/// A reply of more bytes than this is no SMTP server's (an EHLO reply has a few hundred).
pub(crate) const REPLY_BYTES_MAX: usize = 16 * 1024;
/// A peer that says nothing for this long has failed the run.
const SILENCE_MAX: Duration = Duration::from_secs(60);

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes),
            Self::Tls(stream) => {
                stream.write_all(bytes)?;
                stream.flush()
            }
        }
    }
}

/// One connection that has said EHLO.
pub(crate) struct Client {
    stream: Stream,
    unread: Vec<u8>,
}

/// What is told at the start of a connection.
pub(crate) struct Opening<'a> {
    pub(crate) to: SocketAddr,
    pub(crate) tls: Option<&'a Arc<ClientConfig>>,
    pub(crate) login: Option<(&'a str, &'a str)>,
}

impl Client {
    /// Connects, greets, secures and authenticates as told.
    pub(crate) fn open(opening: &Opening<'_>) -> io::Result<Self> {
        let stream = TcpStream::connect(opening.to)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        let mut client = Self { stream: Stream::Plain(stream), unread: Vec::new() };
        client.expect(b'2')?;
        client.say("EHLO load.bench.test\r\n", b'2')?;
        if let Some(config) = opening.tls {
            client.say("STARTTLS\r\n", b'2')?;
            client = client.secure(config)?;
            client.say("EHLO load.bench.test\r\n", b'2')?;
        }
        if let Some((user, password)) = opening.login {
            let initial = STANDARD.encode(format!("\0{user}\0{password}"));
            client.say(&format!("AUTH PLAIN {initial}\r\n"), b'2')?;
        }
        Ok(client)
    }

    fn secure(self, config: &Arc<ClientConfig>) -> io::Result<Self> {
        let Stream::Plain(tcp) = self.stream else { return Err(io::Error::other("secured twice")) };
        let name = ServerName::try_from("bench.test").map_err(io::Error::other)?;
        let tls = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        Ok(Self { stream: Stream::Tls(Box::new(StreamOwned::new(tls, tcp))), unread: Vec::new() })
    }

    /// One transaction; `content` ends in CRLF, `.`, CRLF and is dot-stuffed already.
    pub(crate) fn deliver(&mut self, from: &str, to: &str, content: &[u8]) -> io::Result<()> {
        self.say(&format!("MAIL FROM:<{from}>\r\n"), b'2')?;
        self.say(&format!("RCPT TO:<{to}>\r\n"), b'2')?;
        self.say("DATA\r\n", b'3')?;
        self.stream.write(content)?;
        self.expect(b'2')
    }

    /// QUIT and its reply.
    pub(crate) fn quit(mut self) -> io::Result<()> {
        self.say("QUIT\r\n", b'2')
    }

    fn say(&mut self, command: &str, class: u8) -> io::Result<()> {
        self.stream.write(command.as_bytes())?;
        self.expect(class).map_err(|error| io::Error::other(format!("{}: {error}", command.trim_end())))
    }

    /// Reads one reply, all its lines, and checks the first digit.
    fn expect(&mut self, class: u8) -> io::Result<()> {
        let mut chunk = [0; 4096];
        loop {
            if let Some(end) = reply_end(&self.unread) {
                let good = self.unread.first() == Some(&class);
                let text = String::from_utf8_lossy(self.unread.get(..end).unwrap_or_default()).into_owned();
                self.unread.drain(..end);
                return if good { Ok(()) } else { Err(io::Error::other(text.trim_end().to_owned())) };
            }
            let count = self.stream.read(&mut chunk)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.unread.extend_from_slice(chunk.get(..count).unwrap_or_default());
            if self.unread.len() > REPLY_BYTES_MAX {
                return Err(io::Error::other("a reply without end"));
            }
        }
    }
}

/// Where the first whole reply ends: behind the line whose fourth byte is no `-`.
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
