//! The subsystems of accounts: accepting mail, sending domains, credentials, webhooks, automations, bounces.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use dns::secrets::Vault;
use dns::signing_pool::SigningPool;
use events::automations::AutomationRunner;
use events::product_events::ProductEventService;
use events::webhooks::WebhookService;
use inbound::bounces::BounceProcessor;
use message::address::Address;
use model::plan::Plans;
use model::signed_token::TokenKey;
use net::http_client::ResponseBudget;
use queue::delivery::dkim2::TransactionSigner;
use queue::intake::account_limits::AccountLimits;
use queue::intake::dkim_signing::DkimSigning;
use queue::intake::idempotency::IdempotencyKeys;
use queue::intake::message_signer::MessageSigner;
use queue::intake::sender_authorization::SenderAuthorization;
use queue::intake::service_links::ServiceLinks;
use queue::intake::{Intake, TemplateRenderer};
use queue::scheduler::partition_timers::PartitionTimers;

use super::Subsystems;
use crate::credential_auth::CredentialAuthenticator;
use crate::domains::{DomainsParts, SendingDomains};
use crate::suppression_import::SuppressionImporter;

/// Memory for responses to HTTP requests made for accounts, over all accounts.
const RESPONSES_BYTES_MAX: usize = 64 << 20;
/// The share of one account.
const ACCOUNT_RESPONSES_BYTES_MAX: usize = 16 << 20;

/// Dependencies and settings of the account subsystems.
pub struct AccountParts {
    /// Seals and opens stored secrets.
    pub vault: Arc<Vault>,
    pub signing_pool: SigningPool,
    pub signing: DkimSigning,
    /// The operator's shared sender address for accounts without a verified domain.
    pub sandbox_sender: Option<Address>,
    /// Largest message accepted over SMTP, in bytes.
    pub message_bytes_max: u64,
    /// Limits of each plan.
    pub plans: Plans,
    /// Signs links in mail and on public pages.
    pub link_key: TokenKey,
    /// True to count and limit requests by the plan's rate.
    pub rate_limit: bool,
    pub domains: DomainsParts,
}

/// Subsystems of accounts. Clones share them.
#[derive(Clone)]
pub struct AccountSubsystems {
    /// Seals and opens stored secrets.
    pub vault: Arc<Vault>,
    pub links: ServiceLinks,
    pub limits: Arc<AccountLimits>,
    pub senders: Arc<SenderAuthorization>,
    pub intake: Arc<Intake>,
    pub templates: Arc<TemplateRenderer>,
    pub idempotency: Arc<IdempotencyKeys>,
    pub credentials: Arc<CredentialAuthenticator>,
    pub domains: Arc<SendingDomains>,
    pub webhooks: Arc<WebhookService>,
    pub automations: AutomationRunner,
    pub product_events: Arc<ProductEventService>,
    pub bounces: Arc<BounceProcessor>,
    pub suppression_importer: Arc<SuppressionImporter>,
}

impl AccountSubsystems {
    /// Builds the subsystems on those of delivery and events. Call it once for each [`Subsystems`];
    /// [`start`](crate::background_tasks::start) starts the tasks of both.
    #[must_use]
    pub fn new(queue: &Subsystems, parts: AccountParts) -> Self {
        let Subsystems { services, delivery, events, .. } = queue;
        let store = &services.store;
        let senders =
            SenderAuthorization::new(store.clone(), Arc::clone(&parts.vault), parts.signing, parts.sandbox_sender);
        let (senders, pool) = (Arc::new(senders), Arc::new(parts.signing_pool));
        let signer = TransactionSigner::new(Arc::clone(&senders), Arc::clone(&pool), parts.signing);
        delivery.set_transaction_signer(signer);
        let emails = events.quota_tracker.clone();
        let limits = Arc::new(AccountLimits::new(services, emails, parts.plans, parts.rate_limit));
        let links = ServiceLinks::new(parts.link_key);
        let intake = Arc::new(Intake {
            services: services.clone(),
            dispatcher: Arc::clone(&delivery.dispatcher),
            policy: Arc::clone(&delivery.policy),
            sender_authorization: Arc::clone(&senders),
            signer: MessageSigner::new(pool, parts.signing),
            limits: Arc::clone(&limits),
            links: links.clone(),
            release_timers: PartitionTimers::default(),
            message_bytes_max: AtomicU64::new(parts.message_bytes_max),
        });
        let templates = Arc::new(TemplateRenderer::new(store.clone()));
        let engine = events.automation_engine(services, Arc::clone(&parts.vault));
        let product_events = events.product_event_service(services, engine.clone());
        let automations = AutomationRunner {
            services: services.clone(),
            intake: Arc::clone(&intake),
            templates: Arc::clone(&templates),
            engine,
            queues: Arc::clone(&delivery.queues),
            pause: delivery.pause_state().clone(),
            logged_runs: Arc::default(),
        };
        let response_budget = ResponseBudget::new(RESPONSES_BYTES_MAX, ACCOUNT_RESPONSES_BYTES_MAX);
        let webhooks = WebhookService::new(services.clone(), Arc::clone(&events.webhooks), response_budget);
        let bounces = BounceProcessor::new(services.clone(), delivery, parts.domains.facts.clone());
        let domains = SendingDomains::new(services.clone(), events, Arc::clone(&senders), parts.domains);
        let suppression_importer = SuppressionImporter::new(services.clone(), Arc::clone(&limits.storage));
        Self {
            vault: parts.vault,
            links,
            limits,
            senders,
            intake,
            templates,
            idempotency: Arc::new(IdempotencyKeys::new(services)),
            credentials: Arc::new(CredentialAuthenticator::new(services.clone())),
            domains: Arc::new(domains),
            webhooks: Arc::new(webhooks),
            automations,
            product_events: Arc::new(product_events),
            bounces: Arc::new(bounces),
            suppression_importer: Arc::new(suppression_importer),
        }
    }
}
