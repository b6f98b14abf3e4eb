//! One question to one server: over UDP, and again over TCP when the answer was cut short.
//!
//! Nothing is kept between questions: each has a socket of its own (so that the kernel picks a new port),
//! an unguessable id, and takes only an answer that repeats both the id and the question (RFC 5452 9). An
//! answer cannot be larger than a DNS message over TCP can be, 64 KiB. A server that knows no EDNS is
//! asked again without it (RFC 6891 7).
//!
//! Standards: RFC 1035 4.2, RFC 6891, RFC 7766.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, Query, ResponseCode};
use hickory_proto::rr::{Name as WireName, RecordType};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// The largest answer over UDP that arrives everywhere in one piece (the DNS flag day of 2020).
const UDP_BYTES: u16 = 1_232;
/// Room for an answer of a server that takes no notice of what we said.
const UDP_BUFFER: usize = 4_096;

/// Why there is no answer; the last ones say most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueryError {
    /// No server could be reached at all.
    Unreachable,
    /// No server was asked: each of them is asked as much as it may be.
    RateLimited,
    /// The server does not serve the zone.
    Lame,
    /// No answer came in time.
    TimedOut,
    /// What came was no DNS answer to the question.
    Garbled,
    /// The server will not answer this.
    Refused,
    /// The server failed (SERVFAIL).
    ServerFailure,
    /// The answer's DNSSEC signatures do not hold (RFC 4035 5.5).
    Bogus,
    /// Aliases lead in a circle, or too far.
    AliasLoop,
}

/// What is asked, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct DnsQuery<'a> {
    /// The name.
    pub(super) name: &'a WireName,
    /// The type.
    pub(super) kind: RecordType,
    /// Whether the server is to look further itself: a resolver, not an authoritative server.
    pub(super) recursive: bool,
    /// Whether an answer whose signatures do not hold is wanted too (the CD bit, RFC 4035 3.2.2).
    pub(super) unchecked: bool,
}

impl DnsQuery<'_> {
    fn message(&self, edns: bool) -> Message {
        let mut message = Message::query();
        message.metadata.recursion_desired = self.recursive;
        message.metadata.checking_disabled = self.unchecked;
        message.add_query(Query::query(self.name.clone(), self.kind));
        if edns {
            let mut extension = Edns::new();
            extension.set_max_payload(UDP_BYTES).set_version(0);
            message.set_edns(extension);
        }
        message
    }

    fn is_answered_by(&self, reply: &Message, id: u16) -> bool {
        reply.metadata.id == id
            && reply.metadata.message_type == MessageType::Response
            && reply.queries.first().map_or(
                // Some servers repeat no question with a refusal.
                reply.metadata.response_code != ResponseCode::NoError,
                |query| query.name() == self.name && query.query_type() == self.kind,
            )
    }
}

/// Asks one server.
pub(super) async fn send_query(
    server: SocketAddr,
    question: DnsQuery<'_>,
    limit: Duration,
) -> Result<Message, QueryError> {
    let asked = timeout(limit, async {
        let reply = query_once(server, question, true).await?;
        match reply.metadata.response_code {
            ResponseCode::FormErr | ResponseCode::NotImp => query_once(server, question, false).await,
            _ => Ok(reply),
        }
    });
    asked.await.unwrap_or(Err(QueryError::TimedOut))
}

async fn query_once(server: SocketAddr, question: DnsQuery<'_>, edns: bool) -> Result<Message, QueryError> {
    let message = question.message(edns);
    let id = message.metadata.id;
    let bytes = message.to_vec().map_err(|_| QueryError::Garbled)?;
    let reply = query_udp(server, &bytes, |reply| question.is_answered_by(reply, id)).await?;
    if !reply.metadata.truncation {
        return Ok(reply);
    }
    let reply = query_tcp(server, &bytes).await?;
    if question.is_answered_by(&reply, id) { Ok(reply) } else { Err(QueryError::Garbled) }
}

/// What is not the answer (late, forged, damaged) is passed over: the real one may still come.
async fn query_udp(
    server: SocketAddr,
    bytes: &[u8],
    is_answer: impl Fn(&Message) -> bool,
) -> Result<Message, QueryError> {
    let unreachable = |_| QueryError::Unreachable;
    let any = match server.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0)).await.map_err(unreachable)?;
    socket.connect(server).await.map_err(unreachable)?;
    socket.send(bytes).await.map_err(unreachable)?;
    let mut buffer = vec![0; UDP_BUFFER];
    loop {
        let length = socket.recv(&mut buffer).await.map_err(unreachable)?;
        if let Some(reply) = buffer.get(..length).and_then(|bytes| Message::from_vec(bytes).ok())
            && is_answer(&reply)
        {
            return Ok(reply);
        }
    }
}

async fn query_tcp(server: SocketAddr, bytes: &[u8]) -> Result<Message, QueryError> {
    let unreachable = |_| QueryError::Unreachable;
    let length = u16::try_from(bytes.len()).map_err(|_| QueryError::Garbled)?;
    let mut stream = TcpStream::connect(server).await.map_err(unreachable)?;
    let mut framed = length.to_be_bytes().to_vec();
    framed.extend_from_slice(bytes);
    stream.write_all(&framed).await.map_err(unreachable)?;
    let length = stream.read_u16().await.map_err(unreachable)?;
    let mut reply = vec![0; usize::from(length)];
    stream.read_exact(&mut reply).await.map_err(unreachable)?;
    Message::from_vec(&reply).map_err(|_| QueryError::Garbled)
}
