//! One TCP connection, as far as a greeting: what a mail host says first, or why there was nothing to hear.

use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Who drops packets keeps us waiting: a healthy host answers well within this.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// Some hosts hold their greeting back a little, to find out who does not wait for it.
const GREETING_DEADLINE: Duration = Duration::from_secs(6);
/// RFC 5321 4.5.3.1.5: a reply line has 512 bytes at most.
const LINE_BYTES_MAX: u64 = 512;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GreetingResult {
    /// The first line.
    Greeting(String),
    /// Connected, and nothing was said.
    NoGreeting,
    /// Somebody on the way, or the host, says no.
    Refused,
    /// Nobody says anything.
    TimedOut,
    /// Somebody on the way, or a firewall here, says that it may not be.
    Forbidden(String),
    /// Something here: no route, no such address.
    Failed(String),
}

impl fmt::Display for GreetingResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Greeting(line) => write!(f, "said \"{line}\""),
            Self::NoGreeting => f.write_str("something took the connection and said nothing"),
            Self::Refused => f.write_str("the connection was refused"),
            Self::TimedOut => write!(f, "no answer within {} s", CONNECT_DEADLINE.as_secs()),
            Self::Forbidden(why) | Self::Failed(why) => f.write_str(why),
        }
    }
}

/// Connects from an address (none: the system's choice), waits for the greeting and says QUIT.
pub(super) async fn read_greeting(from: Option<IpAddr>, to: SocketAddr) -> GreetingResult {
    let stream = match connect(from, to).await {
        Ok(stream) => stream,
        Err(heard) => return heard,
    };
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    let mut bounded = (&mut stream).take(LINE_BYTES_MAX);
    match timeout(GREETING_DEADLINE, bounded.read_until(b'\n', &mut line)).await {
        Ok(Ok(n)) if n > 0 => {
            // Polite, and not waited for.
            let _ = stream.get_mut().write_all(b"QUIT\r\n").await;
            let text: String = String::from_utf8_lossy(&line).chars().filter(|c| !c.is_control()).collect();
            GreetingResult::Greeting(text.trim().to_owned())
        }
        _ => GreetingResult::NoGreeting,
    }
}

/// Connects and closes.
pub(super) async fn probe_port(to: SocketAddr) -> Result<(), GreetingResult> {
    connect(None, to).await.map(drop)
}

async fn connect(from: Option<IpAddr>, to: SocketAddr) -> Result<TcpStream, GreetingResult> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => GreetingResult::Refused,
        ErrorKind::TimedOut => GreetingResult::TimedOut,
        ErrorKind::HostUnreachable | ErrorKind::PermissionDenied => GreetingResult::Forbidden(error.to_string()),
        _ => GreetingResult::Failed(error.to_string()),
    };
    let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
    if let Some(from) = from {
        socket
            .bind(SocketAddr::new(from, 0))
            .map_err(|error| GreetingResult::Failed(format!("{from} here: {error}")))?;
    }
    match timeout(CONNECT_DEADLINE, socket.connect(to)).await {
        Err(_) => Err(GreetingResult::TimedOut),
        Ok(connected) => connected.map_err(failed),
    }
}
