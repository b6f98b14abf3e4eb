//! Sends one query to one server: over UDP, and over TCP if the answer is truncated.
//!
//! Each query has its own socket (so that the kernel chooses a random port) and a random id. Only an answer with the
//! same id and question is accepted (RFC 5452 9). An answer has at most 64 KiB, the maximum over TCP. If a server does
//! not support EDNS, the query is repeated without it (RFC 6891 7).
//!
//! Standards: RFC 1035 4.2, RFC 6891, RFC 7766.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, Query, ResponseCode};
use hickory_proto::rr::{Name as WireName, RecordType};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// Maximum size of an answer over UDP that is not fragmented on common networks (DNS flag day 2020).
const UDP_BYTES: u16 = 1_232;
/// Receive buffer, for servers that ignore the announced maximum.
const UDP_BUFFER: usize = 4_096;

/// The reason why a query has no answer, in ascending order of significance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum QueryError {
    #[error("no name server can be reached")]
    Unreachable,
    /// No server was queried: all of them are at their rate limit.
    #[error("too many queries; try again later")]
    RateLimited,
    #[error("the name servers are not responsible for the zone")]
    Lame,
    #[error("the name servers did not answer in time")]
    TimedOut,
    /// The answer was not a valid DNS response to the query.
    #[error("the name servers gave an invalid answer")]
    Garbled,
    #[error("the name servers refuse the query")]
    Refused,
    #[error("the name servers have a problem (SERVFAIL)")]
    ServerFailure,
    /// DNSSEC validation of the answer failed (RFC 4035 5.5).
    #[error("the DNSSEC signatures are invalid")]
    Bogus,
    /// The CNAMEs form a loop, or there are too many.
    #[error("its CNAME records form a loop")]
    AliasLoop,
}

/// A query and its flags.
#[derive(Debug, Clone, Copy)]
pub(super) struct DnsQuery<'a> {
    pub(super) name: &'a WireName,
    pub(super) kind: RecordType,
    /// Recursion desired: for recursive servers, not for authoritative ones.
    pub(super) recursive: bool,
    /// Accept answers that fail validation (the CD bit, RFC 4035 3.2.2).
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
                // Some servers omit the question in an error response.
                reply.metadata.response_code != ResponseCode::NoError,
                |query| query.name() == self.name && query.query_type() == self.kind,
            )
    }
}

/// Sends a query to one server, within a timeout.
pub(super) async fn send_query(
    server: SocketAddr,
    question: DnsQuery<'_>,
    limit: Duration,
) -> Result<Message, QueryError> {
    let exchange = timeout(limit, async {
        let reply = query_once(server, question, true).await?;
        match reply.metadata.response_code {
            ResponseCode::FormErr | ResponseCode::NotImp => query_once(server, question, false).await,
            _ => Ok(reply),
        }
    });
    exchange.await.unwrap_or(Err(QueryError::TimedOut))
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

/// Other packets (late, forged, damaged) are ignored, because the answer can still arrive.
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
