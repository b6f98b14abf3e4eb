//! `load names`: the DNS server of both benchmark peers, over UDP (RFC 1035).
//!
//! It answers for every name below `bench.test` and `bench.example`:
//!
//! - `MX NAME`: `10 mx.NAME`.
//! - `A mx.NAME`: a loopback address derived from the name, so that a thousand domains are a thousand destinations.
//!   Numbered domains have addresses by their number (numbered_hosts.rs).
//! - `TXT _queries.bench.test`: the number of queries received, by type.
//! - With a key, the records that an MX host checks: `TXT bench._domainkey.…` is the DKIM key, `TXT _dmarc.…` a
//!   policy, `TXT` of names without an underscore an SPF record for the loopback network. `PTR` of loopback addresses
//!   is a name that resolves back to the address.
//!
//! Every other type gets an empty answer with an SOA, so that it can be cached (NODATA). Other names get NXDOMAIN. The
//! server is written in Rust so that it is no bottleneck: an answer takes a few microseconds.
//!
//! Limits: one question per query; queries of up to 1,500 bytes; no TCP (all answers are short).

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;

use crate::numbered_hosts;
use crate::sender::{self, SELECTOR};

const ZONE: &str = "bench.test";
/// Zone of the senders in rows with DKIM, SPF and DMARC checks: libunbound, which OpenDKIM uses, does not resolve
/// `.test`.
const SENDERS_ZONE: &str = "bench.example";
const QUERY_BYTES_MAX: usize = 1500;
/// Longer than a benchmark row. Each round starts a new server, with an empty cache.
const TTL_S: u32 = 3600;
const TYPE_A: u16 = 1;
const TYPE_SOA: u16 = 6;
const TYPE_PTR: u16 = 12;
const TYPE_MX: u16 = 15;
const TYPE_TXT: u16 = 16;
/// Reverse zone of the loopback addresses (RFC 1035 3.5).
const REVERSE: &str = ".127.in-addr.arpa";
/// Suffix of the names that `PTR` queries return.
const CLIENT: &str = ".client.bench.test";
const SPF: &str = "v=spf1 ip4:127.0.0.0/8 -all";
const DMARC: &str = "v=DMARC1; p=reject";
/// The name whose `TXT` record holds the query counters.
const QUERIES: &str = "_queries.bench.test";
const NXDOMAIN: u8 = 3;
/// Compression pointer to the name of the question, which always begins at offset 12 (RFC 1035 4.1.4).
const POINTER_TO_QUESTION: [u8; 2] = [0xc0, 12];

/// Answers queries until the process is killed. With a key, names also publish DKIM, SPF, DMARC and PTR records.
pub(crate) fn serve(listen: SocketAddr, key: Option<&Path>) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind(listen)?;
    let key = key.map(|path| sender::key(path).map(|key| key.txt_record())).transpose()?;
    let mut query = [0; QUERY_BYTES_MAX];
    let mut counts = QueryCounts::default();
    loop {
        let (count, from) = socket.recv_from(&mut query)?;
        if let Some(reply) = query.get(..count).and_then(|query| respond(query, key.as_deref(), &mut counts)) {
            // A client that has closed its socket must not stop the server.
            let _ = socket.send_to(&reply, from);
        }
    }
}

/// Number of queries by record type.
#[derive(Default)]
struct QueryCounts {
    kinds: [(u16, u64); 8],
}

impl QueryCounts {
    fn count(&mut self, kind: u16) {
        // The last slot counts all further types together.
        let last = self.kinds.len() - 1;
        let at = self.kinds.iter().position(|(recorded, count)| *recorded == kind || *count == 0).unwrap_or(last);
        if let Some(slot) = self.kinds.get_mut(at) {
            *slot = (if at == last { 0 } else { kind }, slot.1 + 1);
        }
    }

    /// `type=count` for each, as a TXT record.
    fn to_txt_record(&self) -> Vec<u8> {
        let counted = self.kinds.iter().filter(|(_, count)| *count > 0);
        txt_strings(&counted.map(|(kind, count)| format!("{kind}={count}")).collect::<Vec<_>>().join(" "))
    }
}

/// Returns the reply to a query, or `None` if the packet is a response or malformed.
fn respond(query: &[u8], key: Option<&str>, counts: &mut QueryCounts) -> Option<Vec<u8>> {
    if query.get(2)? & 0x80 != 0 {
        return None;
    }
    let (name, after_name) = parse_name(query, 12)?;
    let question = query.get(12..after_name + 4)?;
    let kind = u16::from_be_bytes([*query.get(after_name)?, *query.get(after_name + 1)?]);
    let pointer = name.strip_suffix(REVERSE).filter(|_| key.is_some()).map(ptr_name);
    if name != QUERIES {
        counts.count(kind);
    }
    let zone = [ZONE, SENDERS_ZONE].into_iter().find(|zone| is_within(&name, zone));
    let is_known = pointer.is_some() || zone.is_some();
    let data = match kind {
        TYPE_TXT if name == QUERIES => Some(counts.to_txt_record()),
        TYPE_MX if zone.is_some() && !name.starts_with("mx.") && name != ZONE => Some(mx()),
        TYPE_A if zone.is_some() && name.starts_with("mx.") => Some(address_of(&name).to_vec()),
        TYPE_A => named_address(&name),
        TYPE_PTR => pointer.map(|host| labels(&host)),
        TYPE_TXT if zone.is_some() => key.and_then(|key| text(&name, key)),
        _ => None,
    };
    let code = if is_known { 0 } else { NXDOMAIN };
    let (answers, authorities) = if data.is_some() { (1, 0) } else { (0, 1) };
    let mut reply = Vec::with_capacity(128);
    reply.extend_from_slice(query.get(..2)?);
    // QR, AA and the client's RD; then RA and the response code.
    reply.extend_from_slice(&[0x84 | (query.get(2)? & 1), 0x80 | code]);
    reply.extend_from_slice(&[0, 1, 0, answers, 0, authorities, 0, 0]);
    reply.extend_from_slice(question);
    match data {
        Some(data) => {
            reply.extend_from_slice(&POINTER_TO_QUESTION);
            record(&mut reply, kind, &data);
        }
        None => {
            reply.extend_from_slice(&labels(zone.unwrap_or_default()));
            record(&mut reply, TYPE_SOA, &soa());
        }
    }
    Some(reply)
}

/// The name at an offset, in lower case, and the offset behind it. Compression is not supported: questions have none.
fn parse_name(packet: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut name = String::new();
    loop {
        let length = usize::from(*packet.get(at)?);
        if length == 0 {
            return Some((name, at + 1));
        }
        if length > 63 || name.len() > 255 {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        let label = packet.get(at + 1..at + 1 + length)?;
        name.extend(label.iter().map(|b| char::from(b.to_ascii_lowercase())));
        at += 1 + length;
    }
}

fn record(reply: &mut Vec<u8>, kind: u16, data: &[u8]) {
    reply.extend_from_slice(&kind.to_be_bytes());
    reply.extend_from_slice(&1u16.to_be_bytes());
    reply.extend_from_slice(&TTL_S.to_be_bytes());
    reply.extend_from_slice(&u16::try_from(data.len()).unwrap_or(u16::MAX).to_be_bytes());
    reply.extend_from_slice(data);
}

fn labels(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap_or(63));
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

/// MX data: preference 10, `mx.` and the name of the question.
fn mx() -> Vec<u8> {
    let mut data = vec![0, 10, 2, b'm', b'x'];
    data.extend_from_slice(&POINTER_TO_QUESTION);
    data
}

/// Address by the number in the name; otherwise 127.64.0.1 to 127.127.255.254, by FNV-1a of the name.
fn address_of(name: &str) -> [u8; 4] {
    if let Some(address) = numbered_hosts::address_of(name) {
        return address.octets();
    }
    let hash = name.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    let [a, b, c, _] = hash.to_be_bytes();
    [127, 64 + a % 64, b, 1 + c % 254]
}

fn is_within(name: &str, zone: &str) -> bool {
    name.strip_suffix(zone).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
}

/// The PTR name of an address. `labels` are those before `127.in-addr.arpa`: `1.0.0` becomes
/// `127-0-0-1.client.bench.test`.
fn ptr_name(labels: &str) -> String {
    let octets: Vec<&str> = labels.rsplit('.').collect();
    format!("127-{}{CLIENT}", octets.join("-"))
}

/// The address that a PTR name encodes.
fn named_address(name: &str) -> Option<Vec<u8>> {
    let address: Ipv4Addr = name.strip_suffix(CLIENT)?.replace('-', ".").parse().ok()?;
    Some(address.octets().to_vec())
}

/// The TXT record of a sending domain: its DKIM key, DMARC policy or SPF record.
fn text(name: &str, key: &str) -> Option<Vec<u8>> {
    let labels = name.split_once('.').map(|(first, suffix)| (first, suffix.starts_with("_domainkey.")));
    let text = match labels? {
        (SELECTOR, true) => key,
        ("_dmarc", _) => DMARC,
        (first, false) if !first.starts_with('_') => SPF,
        _ => return None,
    };
    Some(txt_strings(text))
}

/// TXT record data: the text in strings of at most 255 bytes.
fn txt_strings(text: &str) -> Vec<u8> {
    let chunks = text.as_bytes().chunks(usize::from(u8::MAX));
    chunks
        .flat_map(|string| {
            let length = [u8::try_from(string.len()).unwrap_or(u8::MAX)];
            [length.as_slice(), string].concat()
        })
        .collect()
}

fn soa() -> Vec<u8> {
    let mut data = labels(&format!("ns.{ZONE}"));
    data.extend_from_slice(&labels(&format!("hostmaster.{ZONE}")));
    for number in [1, 3600, 600, 86_400, TTL_S] {
        data.extend_from_slice(&number.to_be_bytes());
    }
    data
}
