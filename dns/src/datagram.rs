//! One question, one datagram each way: what nearly every look-up is.
//!
//! The resolver behind [`crate::lookup`] is built for what may go wrong: servers that fail, answers that do
//! not fit, aliases. All of that costs ten times what the question does, so the question is asked here
//! first. What comes back is used when it is plain: whole, in time, to this very question, without an alias.
//! Anything else is no answer here, and the resolver asks in its own, thorough way.
//!
//! Each question has a socket of its own: so a port that the kernel picks at random, beside the random
//! number of the question (RFC 5452 9.2). It is connected: the kernel drops what others send to it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{DnsResponse, Edns, Message, Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, Record, RecordType};
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// An answer of this size crosses any network in one piece (RFC 9715 3.2: 1,400 at most; resolvers agree on
/// 1,232).
const ANSWER_BYTES_MAX: u16 = 1_232;
/// A server that says nothing for so long has not got the question, or works on it: asked again it answers.
const PATIENCE_MAX: Duration = Duration::from_secs(1);
/// What is asked for in this way.
const KINDS: [RecordType; 5] =
    [RecordType::A, RecordType::AAAA, RecordType::MX, RecordType::TXT, RecordType::NS];
/// Names that are not asked of a server (RFC 6761 6.3, 6.4, RFC 7686 2) or not by everybody: the resolver knows.
const SPECIAL: [&[u8]; 4] = [b"localhost", b"invalid", b"onion", b"local"];

/// A server, and whether it is believed when it says that there is no such name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) knows_all: bool,
}

/// Asks the server that answered last.
#[derive(Debug)]
pub(crate) struct Datagrams {
    servers: Vec<Server>,
    turn: AtomicUsize,
    patience: Duration,
}

impl Datagrams {
    /// `try_timeout`: how long one try may take.
    pub(crate) fn new(servers: Vec<Server>, try_timeout: Duration) -> Self {
        Self { servers, turn: AtomicUsize::new(0), patience: try_timeout.min(PATIENCE_MAX) }
    }

    /// The plain answer, which may be that there is nothing; `None` when there is no plain one.
    pub(crate) async fn ask(&self, query: &Query) -> Option<Result<Message, NetError>> {
        if !KINDS.contains(&query.query_type()) || is_special(query.name()) {
            return None;
        }
        let turn = self.turn.load(Ordering::Relaxed);
        let server = self.servers.get(turn.checked_rem(self.servers.len())?)?;
        if let Ok(Ok(response)) = timeout(self.patience, exchange(server.address, query)).await {
            return plain(response, query, server.knows_all);
        }
        // Another is asked first from now on; who else found this out has said so already.
        let next = turn.wrapping_add(1);
        let _ = self.turn.compare_exchange(turn, next, Ordering::Relaxed, Ordering::Relaxed);
        None
    }
}

fn is_special(name: &Name) -> bool {
    let top = name.iter().next_back().unwrap_or_default();
    SPECIAL.iter().any(|special| special.eq_ignore_ascii_case(top))
}

async fn exchange(server: SocketAddr, query: &Query) -> io::Result<DnsResponse> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    let mut question = Message::query();
    question.metadata.recursion_desired = true;
    question.queries.push(query.clone());
    question.edns.get_or_insert_with(Edns::new).set_max_payload(ANSWER_BYTES_MAX);
    socket.send(&question.to_vec().map_err(io::Error::other)?).await?;
    loop {
        let mut bytes = Vec::with_capacity(ANSWER_BYTES_MAX.into());
        socket.recv_buf(&mut bytes).await?;
        // What answers something else is not for us: a guess, or a datagram that was under way for long.
        if let Ok(response) = DnsResponse::from_buffer(bytes)
            && response.metadata.id == question.metadata.id
            && response.queries == question.queries
        {
            return Ok(response);
        }
    }
}

/// The answer, when it is plain; of its records those that were asked for.
fn plain(response: DnsResponse, query: &Query, knows_all: bool) -> Option<Result<Message, NetError>> {
    if response.metadata.truncation {
        return None;
    }
    match DnsError::from_response(response) {
        Ok(response) if response.metadata.response_code == ResponseCode::NoError => {
            let mut message = response.into_message();
            let is_asked_for = |record: &Record| {
                record.record_type() == query.query_type()
                    && record.dns_class == query.query_class()
                    && record.name == *query.name()
            };
            message.answers.retain(is_asked_for);
            message.authorities.clear();
            message.additionals.clear();
            (!message.answers.is_empty()).then_some(Ok(message))
        }
        // With a SOA record, so that it is said for how long (RFC 2308 5); a referral is no answer.
        Err(DnsError::NoRecordsFound(none)) if none.soa.is_some() && none.ns.is_none() => {
            let is_believed = match none.response_code {
                ResponseCode::NoError => true,
                ResponseCode::NXDomain => knows_all,
                _ => false,
            };
            is_believed.then(|| Err(DnsError::NoRecordsFound(none).into()))
        }
        Ok(_) | Err(_) => None,
    }
}
