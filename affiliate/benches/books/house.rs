//! The office that the handlers of the API ask, over a store on disk, with a program that is live.

use std::sync::Arc;
use std::time::Duration;

use affiliate::ledger::Ledger;
use affiliate::office::Office;
use jiff::Timestamp;
use mail::classify::Shaping;
use mail::id::AccountId;
use mail::setup::Facts;
use mail::verp::VerpKey;
use queue::accept::{Hall, HallParts, Signing};
use queue::clock::Clock;
use queue::courier::http::{Poster, PosterSettings};
use queue::courier::smtp::{Dialer, TlsMode};
use queue::domains::DomainsParts;
use queue::entropy::Entropy;
use queue::plan::{PlanSettings, Planner};
use queue::retry::Schedule;
use queue::smarthosts::Smarthosts;
use queue::webhooks::{LADDER, WebhooksParts};
use queue::worker::{Manners, Worker, WorkerParts, WorkerSettings};
use store::engine::Store;

pub(crate) struct House {
    pub(crate) office: Office,
    pub(crate) account: AccountId,
    /// When it was opened.
    pub(crate) now: Timestamp,
}

impl House {
    /// A house in which nobody works but who measures.
    pub(crate) async fn open(store: Store) -> Self {
        let now = Clock::default().now();
        let account = AccountId::new(now, Entropy::default().u128());
        let worker = worker(store);
        worker.join().await.unwrap();
        Self { office: Office::new(Hall::new(worker, hall_parts())), account, now }
    }

    pub(crate) fn store(&self) -> &Store {
        self.office.store()
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.office.ledger()
    }
}

/// Nobody is asked.
fn resolver() -> dns::lookup::Resolver {
    let servers = vec!["127.0.0.1:9".parse().unwrap()];
    dns::lookup::Resolver::new(&dns::lookup::Settings { servers, ..dns::lookup::Settings::default() })
        .unwrap()
}

fn vault() -> Arc<dns::seal::Vault> {
    Arc::new(dns::seal::Vault::new(&[2; 32]).unwrap())
}

fn worker(store: Store) -> Arc<Worker> {
    let hostname: mail::address::Name = "mx.example.test".parse().unwrap();
    let plan = PlanSettings { port: 25, smarthosts: Smarthosts::default(), own_names: Vec::new() };
    let parts = WorkerParts {
        store,
        clock: Clock::default(),
        entropy: Entropy::default(),
        planner: Planner::new(resolver(), plan),
        dialer: Dialer::new(hostname.clone()).unwrap(),
        verp: VerpKey::new([1; 32]),
        webhooks: WebhooksParts {
            poster: Poster::new(resolver(), PosterSettings::default()).unwrap(),
            vault: vault(),
            ladder: LADDER.to_vec(),
        },
        node: "bench".to_owned(),
        former_node: None,
    };
    let retention = Duration::from_secs(30 * 24 * 3600);
    let settings = WorkerSettings {
        hostname,
        manners: Manners {
            schedule: Schedule::default(),
            paused: true,
            retention,
            shaping: Shaping::default(),
        },
        pace: Vec::new(),
        tls: TlsMode::Off,
        source_addresses: Vec::new(),
        pools: Vec::new(),
        connections_max: 1,
        places_max: 100,
        ready_max: 100,
        body_bytes_max: 1 << 20,
    };
    Worker::new(parts, settings)
}

fn hall_parts() -> HallParts {
    let facts = Facts {
        return_path_host: "rp.example.net".parse().unwrap(),
        spf_include_host: "spf.example.net".parse().unwrap(),
        ownership_label: "_service".to_owned(),
        mail_host: "mx.example.net".parse().unwrap(),
        pages_host: None,
    };
    let domains = DomainsParts {
        vault: vault(),
        inspector: dns::setup::Inspector::new(dns::setup::Settings::default()).unwrap(),
        publisher: queue::domains::Publisher::new(resolver(), true),
        facts,
        auto_verify: false,
    };
    HallParts {
        vault: vault(),
        pool: dns::signing_pool::SigningPool::start(Some(1)).unwrap(),
        signing: Signing::Off,
        sandbox_sender: None,
        message_bytes_max: 1 << 20,
        plans: mail::plan::Plans::default(),
        links: mail::link::LinkKey::new([3; 32]),
        rate_limit: false,
        domains,
    }
}
