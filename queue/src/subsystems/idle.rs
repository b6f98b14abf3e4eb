//! Parts and settings of subsystems that deliver nothing, for tests and benchmarks: delivery is paused, and no name
//! server answers. Callers change the fields that they need.

#![expect(clippy::unwrap_used, reason = "every value is fixed")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dns::domain_check::{DomainCheckSettings, DomainChecker};
use dns::resolver::{Resolver, ResolverSettings};
use dns::secrets::Vault;
use dns::signing_pool::SigningPool;
use message::classify::ReplyRules;
use model::domain_setup::ServiceHosts;
use model::plan::Plans;
use model::signed_token::TokenKey;
use model::verp::VerpKey;
use net::clock::Clock;
use net::entropy::Entropy;
use net::http_client::{HttpClient, HttpClientSettings, UrlRules};
use provider::Publisher;
use store::engine::Store;

use super::{AccountParts, SubsystemParts, SubsystemSettings};
use crate::client::smtp::{SmtpDialer, TlsSecurityLevel};
use crate::delivery_policy::DeliveryPolicy;
use crate::dkim_signing::DkimSigning;
use crate::domains::DomainsParts;
use crate::retry_schedule::RetrySchedule;
use crate::routing::{MxRouter, RouterSettings};
use crate::smarthosts::Smarthosts;
use crate::webhooks::{RETRY_SCHEDULE, WebhooksParts};

/// A port of this host where nothing answers.
const NO_NAME_SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);

/// Webhooks may be sent to this host and by plain HTTP.
#[must_use]
pub fn parts(store: Store) -> SubsystemParts {
    let router = RouterSettings { port: 25, smarthosts: Smarthosts::default(), own_names: Vec::new() };
    let rules = UrlRules { allow_private: true, allow_http: true };
    let client = HttpClientSettings { rules, ..HttpClientSettings::default() };
    SubsystemParts {
        store,
        clock: Clock::default(),
        entropy: Entropy::default(),
        router: MxRouter::new(resolver(NO_NAME_SERVER), router),
        dialer: SmtpDialer::new(settings().hostname).unwrap(),
        verp: VerpKey::new([1; 32]),
        webhooks: WebhooksParts {
            client: HttpClient::new(resolver(NO_NAME_SERVER), client).unwrap(),
            vault: vault(),
            retry_schedule: RETRY_SCHEDULE.to_vec(),
        },
        node: "test".to_owned(),
        predecessor_node: None,
    }
}

#[must_use]
pub fn settings() -> SubsystemSettings {
    SubsystemSettings {
        hostname: "mx.example.test".parse().unwrap(),
        delivery_policy: DeliveryPolicy {
            schedule: RetrySchedule::default(),
            paused: true,
            retention: Duration::from_secs(30 * 24 * 3600),
            shaping: ReplyRules::default(),
        },
        pace: Vec::new(),
        tls: TlsSecurityLevel::Off,
        source_addresses: Vec::new(),
        pools: Vec::new(),
        connections_max: 1,
        in_flight_max: 100,
        ready_max: 100,
        body_bytes_max: 1 << 20,
    }
}

/// Messages are not signed, and requests are not limited.
#[must_use]
pub fn account_parts() -> AccountParts {
    AccountParts {
        vault: vault(),
        signing_pool: SigningPool::start(Some(1)).unwrap(),
        signing: DkimSigning::Off,
        sandbox_sender: None,
        message_bytes_max: 200 << 20,
        plans: Plans::default(),
        link_key: TokenKey::new([3; 32]),
        rate_limit: false,
        domains: domains_parts(NO_NAME_SERVER),
    }
}

/// Domain checks that use this name server as the authority of every zone.
#[must_use]
pub fn domains_parts(name_server: SocketAddr) -> DomainsParts {
    let servers = vec![name_server];
    let settings = DomainCheckSettings { servers, allow_private: true, ..DomainCheckSettings::default() };
    DomainsParts {
        vault: vault(),
        inspector: DomainChecker::new(settings).unwrap(),
        publisher: Publisher::new(resolver(name_server), true),
        facts: ServiceHosts {
            return_path_host: "rp.example.net".parse().unwrap(),
            spf_include_host: "spf.example.net".parse().unwrap(),
            ownership_label: "_service".to_owned(),
            mail_host: "mx.example.net".parse().unwrap(),
            pages_host: Some("api.example.test".parse().unwrap()),
        },
        auto_verify: false,
    }
}

fn resolver(server: SocketAddr) -> Resolver {
    Resolver::new(&ResolverSettings { servers: vec![server], ..ResolverSettings::default() }).unwrap()
}

fn vault() -> Arc<Vault> {
    Arc::new(Vault::new(&[2; 32]).unwrap())
}
