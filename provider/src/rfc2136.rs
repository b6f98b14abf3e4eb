//! A name server that accepts dynamic updates (RFC 2136), signed with TSIG (RFC 8945), over TCP.
//!
//! dns-update reads and adds records. A text is replaced here, in one message: the server makes the whole change or
//! none, and only if the existing records are unchanged (RFC 2136 2.4.2). With two messages, the domain would
//! temporarily have two SPF records, which is an error, or none. Also, a deletion would have no effect if the existing
//! text was split into strings differently (RFC 7208 3.3).

use std::net::SocketAddr;

use dns_update::{DnsUpdater, Error};
use futures_util::StreamExt as _;
use hickory_proto::op::{DnsRequest, Message, OpCode, Query, ResponseCode, UpdateMessage as _};
use hickory_proto::rr::rdata::TXT;
use hickory_proto::rr::rdata::tsig::TsigAlgorithm as WireAlgorithm;
use hickory_proto::rr::{DNSClass, Name, RData, RecordSet, RecordType, TSigner};
use hickory_resolver::net::client::{Client, ClientHandle as _};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::tcp::TcpClientStream;
use hickory_resolver::net::xfer::{DnsHandle as _, DnsMultiplexer};
use model::domain_setup::DomainRecord;

use super::credentials::{TsigAlgorithm, TsigKey};

/// Permitted difference between the clocks of client and server in seconds (RFC 8945 10).
const FUDGE_S: u16 = 300;
/// Maximum length of one string of a text.
const STRING_BYTES_MAX: usize = 255;

/// A reachable server with the TSIG key for it.
pub(super) struct UpdateServer {
    address: SocketAddr,
    key: TsigKey,
}

impl UpdateServer {
    pub(super) fn new(address: SocketAddr, key: &TsigKey) -> Self {
        Self { address, key: key.clone() }
    }

    /// Creates dns-update's client for the server.
    pub(super) fn updater(&self) -> dns_update::Result<DnsUpdater> {
        let algorithm = match self.key.algorithm {
            TsigAlgorithm::Sha256 => dns_update::TsigAlgorithm::HmacSha256,
            TsigAlgorithm::Sha384 => dns_update::TsigAlgorithm::HmacSha384,
            TsigAlgorithm::Sha512 => dns_update::TsigAlgorithm::HmacSha512,
        };
        let at = format!("tcp://{}", self.address);
        DnsUpdater::new_rfc2136_tsig(at.as_str(), self.key.name.as_str(), self.key.key.clone(), algorithm)
    }

    /// Replaces the text `old` with the record's value, if the records do not change meanwhile.
    pub(super) async fn replace(&self, origin: &str, record: &DomainRecord, old: &str) -> dns_update::Result<()> {
        let name = Name::from_ascii(format!("{}.", record.name))?;
        let zone = Name::from_ascii(format!("{origin}."))?;
        if !zone.zone_of(&name) {
            return Err(Error::NotFound);
        }
        let mut client = self.connect().await?;
        let answer = client.query(name.clone(), DNSClass::IN, RecordType::TXT).await?;
        let (mut expected, mut replacement) = (None, None);
        let mut found = false;
        for answer in answer.answers.iter().filter(|answer| answer.name == name) {
            let RData::TXT(text) = &answer.data else { continue };
            let set = || RecordSet::with_ttl(name.clone(), RecordType::TXT, answer.ttl);
            expected.get_or_insert_with(set).add_rdata(answer.data.clone());
            let is_replaced = !found && text.txt_data.concat() == old.as_bytes();
            found |= is_replaced;
            let data = if is_replaced { txt_strings(&record.value) } else { text.clone() };
            replacement.get_or_insert_with(set).add_rdata(RData::TXT(data));
        }
        let (true, Some(expected), Some(replacement)) = (found, expected, replacement) else {
            return Err(Error::Response("the text to be replaced no longer exists".to_owned()));
        };
        let answer = client.compare_and_swap(expected, replacement, zone).await?;
        match answer.response_code {
            ResponseCode::NoError => Ok(()),
            ResponseCode::NXRRSet => Err(Error::Response("the texts changed meanwhile; try again".to_owned())),
            code => Err(Error::Response(code.to_string())),
        }
    }

    /// Returns an error unless the server accepts changes of the zone with this key. It sends an update without changes
    /// (RFC 2136 3.4), because a query would succeed without permission to update.
    pub(super) async fn check_access(&self, origin: &str) -> dns_update::Result<()> {
        let mut zone = Query::new();
        zone.set_name(Name::from_ascii(format!("{origin}."))?).set_query_type(RecordType::SOA);
        let mut update = Message::query();
        update.metadata.op_code = OpCode::Update;
        update.metadata.recursion_desired = false;
        update.add_zone(zone);
        let mut answers = self.connect().await?.send(DnsRequest::from(update));
        let answer = answers.next().await.ok_or_else(|| Error::Response("no answer".to_owned()))??;
        match answer.response_code {
            ResponseCode::NoError => Ok(()),
            ResponseCode::Refused | ResponseCode::NotAuth => Err(Error::Unauthorized),
            code => Err(Error::Response(code.to_string())),
        }
    }

    async fn connect(&self) -> dns_update::Result<Client<TokioRuntimeProvider>> {
        let algorithm = match self.key.algorithm {
            TsigAlgorithm::Sha256 => WireAlgorithm::HmacSha256,
            TsigAlgorithm::Sha384 => WireAlgorithm::HmacSha384,
            TsigAlgorithm::Sha512 => WireAlgorithm::HmacSha512,
        };
        let key_name = Name::from_ascii(self.key.name.as_str())?;
        let signer = TSigner::new(self.key.key.clone(), algorithm, key_name, FUDGE_S)?;
        let (stream, sender) = TcpClientStream::new(self.address, None, None, TokioRuntimeProvider::new());
        let exchange = DnsMultiplexer::new(stream.await?, sender).with_signer(signer);
        let (client, background) = Client::from_sender(exchange);
        // The task ends with the client.
        tokio::spawn(background);
        Ok(client)
    }
}

/// A text as TXT strings (RFC 1035 3.3).
fn txt_strings(text: &str) -> TXT {
    TXT::from_bytes(text.as_bytes().chunks(STRING_BYTES_MAX).collect())
}
