//! A name server on loopback that answers from a text.
//!
//! The text is a zone file with names of any zone. Relative names are below the root, the TTL is 60 s unless written,
//! wildcards work (RFC 4592), aliases are followed, and long TXT strings are split into strings of 255 bytes. A name
//! that is not in the text does not exist.
//!
//! ```text
//! example.com          MX   10 mx.example.com.
//! mx.example.com   0   A    127.0.0.1
//! *.test               MX   0 .
//! $SERVFAIL broken.example       ; every type
//! $TIMEOUT  slow.example MX      ; this type: no response
//! $REFUSED  closed.example
//! $BOGUS    forged.example       ; SERVFAIL, unless checking is disabled (CD)
//! $DELEGATED sub.example.com ns.example.net  ; referral for this name and all below
//! $SPF99    old.example "v=spf1 -all"        ; the obsolete type 99
//! ```
//!
//! UDP and TCP use the same port; answers that do not fit are truncated. [`NameServer::set`] changes the text while the
//! server runs; resolvers cache earlier answers for their TTL. Leading blanks of a line are ignored, so that a text may
//! be indented like the code around it.

#![allow(dead_code, reason = "each test uses what it needs")]
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hickory_proto::op::{Header, HeaderCounts, Metadata, ResponseCode};
use hickory_proto::rr::rdata::{NS, NULL, SOA, TXT};
use hickory_proto::rr::{LowerName, Name, RData, Record, RecordType};
use hickory_proto::serialize::txt::Parser;
use hickory_server::Server;
use hickory_server::net::runtime::Time;
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::MessageResponseBuilder;
use tokio::net::{TcpListener, UdpSocket};

/// Default TTL in seconds.
const TTL_S: u32 = 60;
/// Maximum number of CNAMEs followed in one answer.
const ALIASES_MAX: usize = 8;

/// A running name server; it stops when dropped.
pub(crate) struct NameServer {
    /// Address for UDP and TCP.
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    _server: Server<Responder>,
}

struct Shared {
    zone: RwLock<Zone>,
    queries: AtomicUsize,
}

impl NameServer {
    /// Starts on a free port of 127.0.0.1.
    pub(crate) async fn start(zone_text: &str) -> Self {
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind("127.0.0.1:0").await.expect("a UDP port");
            // The TCP port of the same number may be in use: try another pair.
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().expect("its address")).await {
                break (udp, tcp);
            }
        };
        Self::on(udp, tcp, zone_text)
    }

    /// Starts another server on the same port at another loopback address, such as 127.0.0.2.
    pub(crate) async fn beside(&self, ip: &str, zone_text: &str) -> Self {
        let address = (ip, self.address.port());
        let udp = UdpSocket::bind(address).await.expect("the UDP port");
        Self::on(udp, TcpListener::bind(address).await.expect("the TCP port"), zone_text)
    }

    fn on(udp: UdpSocket, tcp: TcpListener, zone_text: &str) -> Self {
        let shared = Arc::new(Shared { zone: RwLock::new(Zone::parse(zone_text)), queries: AtomicUsize::new(0) });
        let address = udp.local_addr().expect("its address");
        let mut server = Server::new(Responder(Arc::clone(&shared)));
        server.register_socket(udp);
        server.register_listener(tcp, Duration::from_secs(10), 16);
        Self { address, shared, _server: server }
    }

    /// Replaces the zone text.
    pub(crate) fn set(&self, zone_text: &str) {
        *self.shared.zone.write() = Zone::parse(zone_text);
    }

    /// Number of queries received, retries included.
    pub(crate) fn queries(&self) -> usize {
        self.shared.queries.load(Ordering::Relaxed)
    }
}

#[derive(Clone, Copy)]
enum Failure {
    Code(ResponseCode),
    Silence,
    Bogus,
}

/// The obsolete record type of SPF (RFC 7208 3.1).
const SPF99: RecordType = RecordType::Unknown(99);

#[derive(Default)]
struct Zone {
    records: BTreeMap<(LowerName, RecordType), Vec<Record>>,
    /// Every name with records, and every name above one.
    names: HashSet<LowerName>,
    failure: HashMap<(LowerName, Option<RecordType>), Failure>,
    /// Zones delegated to other servers.
    delegated: Vec<Record>,
}

impl Zone {
    fn parse(text: &str) -> Self {
        let mut zone = Self::default();
        let mut records = format!("$TTL {TTL_S}\n");
        for line in text.lines().map(str::trim) {
            let mut words = line.split_whitespace().take_while(|word| !word.starts_with(';'));
            let failure = match words.next() {
                Some("$SERVFAIL") => Failure::Code(ResponseCode::ServFail),
                Some("$REFUSED") => Failure::Code(ResponseCode::Refused),
                Some("$TIMEOUT") => Failure::Silence,
                Some("$BOGUS") => Failure::Bogus,
                Some("$DELEGATED") => {
                    let [subdomain, host] = [words.next(), words.next()].map(|word| absolute(word.expect("a name")));
                    zone.delegated.push(Record::from_rdata(subdomain, TTL_S, RData::NS(NS(host))));
                    continue;
                }
                Some("$SPF99") => {
                    zone.put_spf99(line, words.next().expect("a name behind the directive"));
                    continue;
                }
                _ => {
                    records.push_str(line);
                    records.push('\n');
                    continue;
                }
            };
            let name = words.next().expect("a name behind the directive");
            let kind = words.next().map(|kind| kind.parse().expect("a record type"));
            zone.failure.insert((LowerName::new(&absolute(name)), kind), failure);
        }
        let (_, sets) = Parser::new(records, None, Some(Name::root())).parse().expect("a zone text");
        for (key, set) in sets {
            let mut ancestor = key.name.clone();
            while zone.names.insert(ancestor.clone()) && !ancestor.is_root() {
                ancestor = ancestor.base_name();
            }
            let records = set.records_without_rrsigs().cloned().map(split_strings).collect();
            zone.records.insert((key.name, key.record_type), records);
        }
        zone
    }

    /// Adds a type 99 record with the quoted string of the line.
    fn put_spf99(&mut self, line: &str, name: &str) {
        let text = line.split('"').nth(1).expect("a quoted text");
        let length = u8::try_from(text.len()).expect("a short text");
        let bytes = [&[length], text.as_bytes()].concat();
        let name = absolute(name);
        let data = RData::Unknown { code: SPF99, rdata: NULL::with(bytes) };
        self.names.insert(LowerName::new(&name));
        let record = Record::from_rdata(name.clone(), TTL_S, data);
        self.records.entry((LowerName::new(&name), SPF99)).or_default().push(record);
    }

    fn failure(&self, name: &LowerName, kind: RecordType) -> Option<Failure> {
        let find = |kind| self.failure.get(&(name.clone(), kind)).copied();
        find(Some(kind)).or_else(|| find(None))
    }

    /// The name whose records answer for `name`: itself, or the wildcard under its closest ancestor.
    fn owner(&self, name: &LowerName) -> Option<LowerName> {
        if self.names.contains(name) {
            return Some(name.clone());
        }
        let mut ancestor = name.clone();
        while !ancestor.is_root() {
            ancestor = ancestor.base_name();
            if ancestor.is_root() || self.names.contains(&ancestor) {
                let wildcard = LowerName::new(&Name::from(ancestor).prepend_label("*").ok()?);
                return self.names.contains(&wildcard).then_some(wildcard);
            }
        }
        None
    }

    fn find_records(&self, name: &LowerName, kind: RecordType) -> (ResponseCode, Vec<Record>) {
        let mut answers = Vec::new();
        let mut queried = name.clone();
        for _ in 0..ALIASES_MAX {
            let Some(owner) = self.owner(&queried) else {
                return (ResponseCode::NXDomain, answers);
            };
            let records = |kind| self.records.get(&(owner.clone(), kind)).into_iter().flatten().cloned();
            let renamed = |mut record: Record| {
                record.name = Name::from(queried.clone());
                record
            };
            let found: Vec<Record> = records(kind).map(renamed).collect();
            if !found.is_empty() || kind == RecordType::CNAME {
                answers.extend(found);
                return (ResponseCode::NoError, answers);
            }
            let Some(alias) = records(RecordType::CNAME).map(renamed).next() else { break };
            let RData::CNAME(target) = &alias.data else { break };
            queried = LowerName::new(&target.0);
            answers.push(alias);
        }
        (ResponseCode::NoError, answers)
    }
}

/// Splits TXT strings into strings of at most 255 bytes.
fn split_strings(mut record: Record) -> Record {
    if let RData::TXT(txt) = &record.data {
        let strings: Vec<&[u8]> = txt.txt_data.iter().flat_map(|string| string.chunks(255)).collect();
        record.data = RData::TXT(TXT::from_bytes(strings));
    }
    record
}

fn absolute(name: &str) -> Name {
    let mut name = Name::from_ascii(name).expect("a name");
    name.set_fqdn(true);
    name
}

struct Responder(Arc<Shared>);

impl Responder {
    async fn respond<R: ResponseHandler>(&self, request: &Request, mut out: R) -> ResponseInfo {
        let mut metadata = Metadata::response_from_request(&request.metadata);
        metadata.authoritative = true;
        metadata.recursion_available = true;
        let (mut records, mut referral) = (Vec::new(), None);
        self.0.queries.fetch_add(1, Ordering::Relaxed);
        if let Ok(info) = request.request_info() {
            let (name, kind) = (info.query.name(), info.query.query_type());
            let zone = self.0.zone.read();
            let unchecked = request.metadata.checking_disabled;
            referral = zone.delegated.iter().find(|to| to.name.zone_of(&Name::from(name))).cloned();
            match zone.failure(name, kind) {
                Some(Failure::Bogus) if !unchecked => metadata.response_code = ResponseCode::ServFail,
                _ if referral.is_some() => metadata.authoritative = false,
                Some(Failure::Silence) => return empty_response_info(metadata),
                Some(Failure::Code(code)) => metadata.response_code = code,
                None | Some(Failure::Bogus) => (metadata.response_code, records) = zone.find_records(name, kind),
            }
        } else {
            metadata.response_code = ResponseCode::FormErr;
        }
        let root = Name::root;
        let soa = SOA::new(root(), root(), 1, 3_600, 600, 86_400, TTL_S);
        let soa = Record::from_rdata(root(), TTL_S, RData::SOA(soa));
        let negative = matches!(metadata.response_code, ResponseCode::NoError | ResponseCode::NXDomain)
            && records.iter().all(|record| record.record_type() == RecordType::CNAME);
        let mut builder = MessageResponseBuilder::from_message_request(request);
        if let Some(edns) = &request.edns {
            builder.edns(edns);
        }
        let authority = referral.as_ref().or(negative.then_some(&soa));
        let response = builder.build(metadata, &records, [], authority, []);
        out.send_response(response).await.unwrap_or_else(|_| empty_response_info(metadata))
    }
}

fn empty_response_info(metadata: Metadata) -> ResponseInfo {
    Header { metadata, counts: HeaderCounts::default() }.into()
}

impl RequestHandler for Responder {
    fn handle_request<'s, 'r, 'f, R, T>(
        &'s self,
        request: &'r Request,
        response_handle: R,
    ) -> Pin<Box<dyn Future<Output = ResponseInfo> + Send + 'f>>
    where
        R: ResponseHandler + 'f,
        T: Time + 'f,
        's: 'f,
        'r: 'f,
        Self: 'f,
    {
        Box::pin(self.respond(request, response_handle))
    }
}
