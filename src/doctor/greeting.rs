//! Connects to a mail host by TCP and reads its greeting.

use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Timeout of connecting; a healthy host responds well within it.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// Timeout of the greeting; some hosts delay it to detect clients that do not wait.
const GREETING_DEADLINE: Duration = Duration::from_secs(6);
/// Maximum length of a reply line (RFC 5321 4.5.3.1.5).
const LINE_BYTES_MAX: u64 = 512;

/// Result of connecting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GreetingResult {
    /// First line of the greeting.
    Greeting(String),
    /// Connected, but no greeting was received.
    NoGreeting,
    /// The host or a firewall refused the connection.
    Refused,
    /// No response to the connection attempt.
    TimedOut,
    /// A firewall rejected it (ICMP), or local policy does not permit it.
    Forbidden(String),
    /// A local error: no route, or no such source address.
    Failed(String),
}

impl fmt::Display for GreetingResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Greeting(line) => write!(f, "responded \"{line}\""),
            Self::NoGreeting => f.write_str("connected, but no greeting"),
            Self::Refused => f.write_str("connection refused"),
            Self::TimedOut => write!(f, "no response within {} s", CONNECT_DEADLINE.as_secs()),
            Self::Forbidden(reason) | Self::Failed(reason) => f.write_str(reason),
        }
    }
}

/// Connects from an address (none: the system's choice), reads the greeting and sends QUIT.
pub(super) async fn read_greeting(from: Option<IpAddr>, to: SocketAddr) -> GreetingResult {
    let stream = match connect(from, to).await {
        Ok(stream) => stream,
        Err(result) => return result,
    };
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    let mut limited = (&mut stream).take(LINE_BYTES_MAX);
    match timeout(GREETING_DEADLINE, limited.read_until(b'\n', &mut line)).await {
        Ok(Ok(n)) if n > 0 => {
            // The reply to QUIT is not awaited.
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
            .map_err(|error| GreetingResult::Failed(format!("cannot bind {from}: {error}")))?;
    }
    match timeout(CONNECT_DEADLINE, socket.connect(to)).await {
        Err(_) => Err(GreetingResult::TimedOut),
        Ok(connected) => connected.map_err(failed),
    }
}
