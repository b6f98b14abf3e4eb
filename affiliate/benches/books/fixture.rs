//! The affiliate service that the API's handlers use, on a store on disk, with a live program.

use std::sync::Arc;
use std::time::Duration;

use affiliate::service::{AffiliateService, Ledger};
use jiff::Timestamp;
use mail::classify::ReplyRules;
use mail::domain_setup::ServiceHosts;
use mail::id::AccountId;
use mail::verp::VerpKey;
use queue::client::http::{HttpClient, HttpClientSettings};
use queue::client::smtp::{SmtpDialer, TlsSecurityLevel};
use queue::clock::Clock;
use queue::delivery_policy::DeliveryPolicy;
use queue::dkim_signing::DkimSigning;
use queue::domains::DomainsParts;
use queue::entropy::Entropy;
use queue::intake::{Intake, IntakeParts};
use queue::retry_schedule::RetrySchedule;
use queue::routing::{MxRouter, RouterSettings};
use queue::smarthosts::Smarthosts;
use queue::subsystems::{SubsystemParts, SubsystemSettings, Subsystems};
use queue::webhooks::{RETRY_SCHEDULE, WebhooksParts};
use store::engine::Store;

pub(crate) struct Fixture {
    pub(crate) service: AffiliateService,
    pub(crate) account: AccountId,
    /// Time at which the store was opened.
    pub(crate) now: Timestamp,
}

impl Fixture {
    /// Opens the service without background tasks.
    pub(crate) async fn open(store: Store) -> Self {
        let now = Clock::default().now();
        let account = AccountId::new(now, Entropy::default().u128());
        let queue = queue(store);
        queue.cluster.join().await.unwrap();
        Self { service: AffiliateService::new(Intake::new(&queue, intake_parts())), account, now }
    }

    pub(crate) fn store(&self) -> &Store {
        self.service.ledger.context.store()
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.service.ledger.clone()
    }
}

/// Resolver without a server: no DNS query is answered.
fn resolver() -> dns::resolver::Resolver {
    let servers = vec!["127.0.0.1:9".parse().unwrap()];
    dns::resolver::Resolver::new(&dns::resolver::ResolverSettings {
        servers,
        ..dns::resolver::ResolverSettings::default()
    })
    .unwrap()
}

fn vault() -> Arc<dns::secrets::Vault> {
    Arc::new(dns::secrets::Vault::new(&[2; 32]).unwrap())
}

fn queue(store: Store) -> Subsystems {
    let hostname: mail::address::DomainName = "mx.example.test".parse().unwrap();
    let plan = RouterSettings { port: 25, smarthosts: Smarthosts::default(), own_names: Vec::new() };
    let parts = SubsystemParts {
        store,
        clock: Clock::default(),
        entropy: Entropy::default(),
        router: MxRouter::new(resolver(), plan),
        dialer: SmtpDialer::new(hostname.clone()).unwrap(),
        verp: VerpKey::new([1; 32]),
        webhooks: WebhooksParts {
            client: HttpClient::new(resolver(), HttpClientSettings::default()).unwrap(),
            vault: vault(),
            retry_schedule: RETRY_SCHEDULE.to_vec(),
        },
        node: "bench".to_owned(),
        predecessor_node: None,
    };
    let retention = Duration::from_secs(30 * 24 * 3600);
    let settings = SubsystemSettings {
        hostname,
        delivery_policy: DeliveryPolicy {
            schedule: RetrySchedule::default(),
            paused: true,
            retention,
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
    };
    Subsystems::new(parts, settings)
}

fn intake_parts() -> IntakeParts {
    let facts = ServiceHosts {
        return_path_host: "rp.example.net".parse().unwrap(),
        spf_include_host: "spf.example.net".parse().unwrap(),
        ownership_label: "_service".to_owned(),
        mail_host: "mx.example.net".parse().unwrap(),
        pages_host: None,
    };
    let domains = DomainsParts {
        vault: vault(),
        inspector: dns::domain_check::DomainChecker::new(dns::domain_check::DomainCheckSettings::default()).unwrap(),
        publisher: queue::domains::Publisher::new(resolver(), true),
        facts,
        auto_verify: false,
    };
    IntakeParts {
        vault: vault(),
        signing_pool: dns::signing_pool::SigningPool::start(Some(1)).unwrap(),
        signing: DkimSigning::Off,
        sandbox_sender: None,
        message_bytes_max: 1 << 20,
        plans: mail::plan::Plans::default(),
        link_key: mail::signed_token::TokenKey::new([3; 32]),
        rate_limit: false,
        domains,
    }
}
