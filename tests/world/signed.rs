//! A DNSSEC-signed name server on loopback: one signed root zone, and unsigned zones beside it.
//!
//! The texts are zone files whose relative names are below the root. Answers of an unsigned zone are bogus if the root
//! has a DS record for it.

#![allow(dead_code, reason = "each test uses what it needs")]
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hickory_proto::dnssec::crypto::Ed25519SigningKey;
use hickory_proto::dnssec::rdata::DNSKEY;
use hickory_proto::dnssec::{DnssecSigner, PublicKey as _, SigningKey as _};
use hickory_proto::rr::{LowerName, Name, RecordType};
use hickory_proto::serialize::txt::Parser;
use hickory_server::Server;
use hickory_server::dnssec::NxProofKind;
use hickory_server::net::runtime::{Time, TokioRuntimeProvider};
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};
use hickory_server::store::in_memory::InMemoryZoneHandler;
use hickory_server::zone_handler::{AxfrPolicy, Catalog, ZoneType};
use tokio::net::{TcpListener, UdpSocket};

const HEAD: &str = "$TTL 60\n@ SOA ns.test. hostmaster.test. 1 60 60 60 60\n@ NS ns.test.\n";

/// A running name server; it stops when dropped.
pub(crate) struct SignedNameServer {
    /// Address for UDP and TCP.
    pub(crate) address: SocketAddr,
    /// The DNSKEY record of its root, in the format of a trust anchor file.
    pub(crate) anchor: String,
    _server: Server<Zones>,
}

impl SignedNameServer {
    /// Starts on a free port of 127.0.0.1. `beside` holds names and texts of unsigned zones.
    pub(crate) async fn start(root: &str, beside: &[(&str, &str)]) -> Self {
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind("127.0.0.1:0").await.expect("a UDP port");
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().expect("its address")).await {
                break (udp, tcp);
            }
        };
        let address = udp.local_addr().expect("its address");
        let pkcs8 = Ed25519SigningKey::generate_pkcs8().expect("a key");
        let key = Ed25519SigningKey::from_pkcs8(&pkcs8).expect("the key");
        let public = key.to_public_key().expect("its public half");
        let anchor = format!(". 60 IN DNSKEY 257 3 15 {}\n", STANDARD.encode(public.public_bytes()));
        let mut signed = zone(".", root);
        let dnskey = DNSKEY::new(true, true, false, public);
        let signer = DnssecSigner::new(dnskey, Box::new(key), Name::root(), Duration::from_secs(86_400));
        signed.add_zone_signing_key_mut(signer).expect("a zone key");
        signed.secure_zone_mut().expect("signatures");
        let signed = Arc::new(signed);
        let (mut catalog, mut parent) = (Catalog::new(), Catalog::new());
        catalog.upsert(LowerName::new(&Name::root()), vec![Arc::clone(&signed) as _]);
        parent.upsert(LowerName::new(&Name::root()), vec![signed]);
        for (name, text) in beside {
            let origin = Name::from_ascii(format!("{name}.")).expect("a name");
            catalog.upsert(LowerName::new(&origin), vec![Arc::new(zone(name, text))]);
        }
        let mut server = Server::new(Zones { parent, catalog });
        server.register_socket(udp);
        server.register_listener(tcp, Duration::from_secs(10), 16);
        Self { address, anchor, _server: server }
    }

    /// Writes the trust anchor into a directory. Returns its path.
    pub(crate) fn anchor_in(&self, directory: &Path) -> std::path::PathBuf {
        let path = directory.join("anchors");
        std::fs::write(&path, &self.anchor).expect("a file");
        path
    }
}

/// All zones; and the root alone, which answers DS queries for the zones below it (RFC 4035 3.1.4.1).
struct Zones {
    parent: Catalog,
    catalog: Catalog,
}

impl RequestHandler for Zones {
    fn handle_request<'life0, 'life1, 'async_trait, R, T>(
        &'life0 self,
        request: &'life1 Request,
        out: R,
    ) -> Pin<Box<dyn Future<Output = ResponseInfo> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        R: ResponseHandler + 'async_trait,
        T: Time + 'async_trait,
        Self: 'async_trait,
    {
        let of_parent = request.request_info().is_ok_and(|info| info.query.query_type() == RecordType::DS);
        let zones = if of_parent { &self.parent } else { &self.catalog };
        RequestHandler::handle_request::<R, T>(zones, request, out)
    }
}

fn zone(name: &str, text: &str) -> InMemoryZoneHandler<TokioRuntimeProvider> {
    let dotted = if name == "." { ".".to_owned() } else { format!("{name}.") };
    let origin = Name::from_ascii(dotted).expect("a name");
    let head = HEAD.replace('@', &origin.to_ascii());
    let lines: String = text.lines().map(|line| format!("{}\n", line.trim())).collect();
    let parsed = Parser::new(format!("{head}{lines}"), None, Some(Name::root())).parse();
    let (_, records) = parsed.expect("a zone text");
    let proof = (name == ".").then_some(NxProofKind::Nsec);
    InMemoryZoneHandler::new(origin, records, ZoneType::Primary, AxfrPolicy::Deny, proof).expect("a zone")
}
