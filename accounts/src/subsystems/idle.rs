//! Parts and settings of subsystems that deliver nothing, for tests and benchmarks: delivery is paused, and no name
//! server answers. Callers change the fields that they need.

#![expect(clippy::unwrap_used, reason = "every value is fixed")]

use std::net::SocketAddr;

use dns::domain_check::{DomainCheckSettings, DomainChecker};
use dns::signing_pool::SigningPool;
use events::subsystems::idle::{vault, webhooks};
use model::domain_setup::ServiceHosts;
use model::plan::Plans;
use model::signed_token::TokenKey;
use net::clock::Clock;
use net::entropy::Entropy;
use provider::Publisher;
use queue::intake::dkim_signing::DkimSigning;
use queue::subsystems::DeliveryParts;
use queue::subsystems::idle::{NO_NAME_SERVER, NODE, resolver};
use store::engine::Store;

use super::{AccountParts, SubsystemParts};
use crate::domains::DomainsParts;

pub use queue::subsystems::idle::settings;

/// Webhooks may be sent to this host and by plain HTTP.
#[must_use]
pub fn parts(store: Store) -> SubsystemParts {
    let DeliveryParts { router, dialer, keys } = queue::subsystems::idle::parts();
    SubsystemParts {
        store,
        clock: Clock::default(),
        entropy: Entropy::default(),
        router,
        dialer,
        keys,
        node: NODE.to_owned(),
        webhooks: webhooks(),
        predecessor_node: None,
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
