//! An API on port 0 with a store in memory, and a small client.

use std::net::SocketAddr;
use std::sync::Arc;

use api::server::ApiServer;
use api::state::ApiOptions;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use mail::account::{Account, Plan};
use mail::address::DomainName;
use mail::classify::ReplyRules;
use mail::credential::{API_KEY_PREFIX, ApiKey, ApiKeyScope, CredentialSecret, SecretHash};
use mail::domain::{DeliverySettings, DomainState, SealedDkimKeys, SealedSecret, SendingDomain};
use mail::domain_setup::ServiceHosts;
use mail::id::DomainId;
use mail::id::{AccountId, ApiKeyId};
use mail::verp::VerpKey;
use queue::client::http::{HttpClient, HttpClientSettings, UrlRules};
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
use queue::users::UserService;
use queue::webhooks::{RETRY_SCHEDULE, WebhooksParts};
use serde_json::Value;
use store::engine::{Batch, BatchPurpose, PostgresOptions, Store};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::zone::NameServer;

pub(crate) const BASE_URL: &str = "https://api.example.test";

/// A store in memory; or in a new database of the server in `POSTGRES_SERVER` (`postgres://…:5432`), so that
/// `tests/drills/postgres.py` can run the same tests on that engine.
pub(crate) async fn store() -> Store {
    let Ok(server) = std::env::var("POSTGRES_SERVER") else { return Store::memory() };
    let name = format!("api_{:016x}", Entropy::default().u64());
    let made = std::process::Command::new("psql")
        .args([&format!("{server}/postgres"), "--quiet", "--command", &format!("create database {name}")])
        .status()
        .unwrap();
    assert!(made.success());
    Store::connect(&PostgresOptions::new(format!("{server}/{name}"), "test")).await.unwrap()
}

/// An intake whose worker is paused, so that accepted email stays in the queue.
pub(crate) async fn intake(store: Store) -> Intake {
    intake_with(store, |_| {}).await
}

/// Domain checks that use this name server as the authority of every zone.
pub(crate) fn domains(server: SocketAddr, auto_verify: bool) -> DomainsParts {
    let settings = dns::domain_check::DomainCheckSettings {
        servers: vec![server],
        allow_private: true,
        ..dns::domain_check::DomainCheckSettings::default()
    };
    DomainsParts {
        vault: Arc::new(dns::secrets::Vault::new(&[2; 32]).unwrap()),
        inspector: dns::domain_check::DomainChecker::new(settings).unwrap(),
        publisher: provider::Publisher::new(
            dns::resolver::Resolver::new(&dns::resolver::ResolverSettings {
                servers: vec![server],
                ..dns::resolver::ResolverSettings::default()
            })
            .unwrap(),
            true,
        ),
        facts: ServiceHosts {
            return_path_host: "rp.example.net".parse().unwrap(),
            spf_include_host: "spf.example.net".parse().unwrap(),
            ownership_label: "_service".to_owned(),
            mail_host: "mx.example.net".parse().unwrap(),
            pages_host: Some("api.example.test".parse().unwrap()),
        },
        auto_verify,
    }
}

async fn intake_with(store: Store, change: impl FnOnce(&mut IntakeParts)) -> Intake {
    intake_and_worker(store, change).await.0
}

async fn intake_and_worker(store: Store, change: impl FnOnce(&mut IntakeParts)) -> (Intake, Subsystems) {
    let hostname: DomainName = "mx.example.test".parse().unwrap();
    let resolver = || {
        let servers = vec!["127.0.0.1:9".parse().unwrap()];
        dns::resolver::Resolver::new(&dns::resolver::ResolverSettings {
            servers,
            ..dns::resolver::ResolverSettings::default()
        })
        .unwrap()
    };
    let plan = RouterSettings { port: 25, smarthosts: Smarthosts::default(), own_names: Vec::new() };
    let parts = SubsystemParts {
        store,
        clock: Clock::default(),
        entropy: Entropy::default(),
        router: MxRouter::new(resolver(), plan),
        dialer: SmtpDialer::new(hostname.clone()).unwrap(),
        verp: VerpKey::new([1; 32]),
        webhooks: WebhooksParts {
            client: HttpClient::new(
                resolver(),
                HttpClientSettings {
                    rules: UrlRules { allow_private: true, allow_http: true },
                    ..HttpClientSettings::default()
                },
            )
            .unwrap(),
            vault: Arc::new(dns::secrets::Vault::new(&[2; 32]).unwrap()),
            retry_schedule: RETRY_SCHEDULE.to_vec(),
        },
        node: "test".to_owned(),
        predecessor_node: None,
    };
    let settings = SubsystemSettings {
        hostname,
        delivery_policy: DeliveryPolicy {
            schedule: RetrySchedule::default(),
            paused: true,
            retention: std::time::Duration::from_secs(30 * 24 * 3600),
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
    let parts = (Subsystems::new(parts, settings), dns::secrets::Vault::new(&[2; 32]).unwrap());
    let pool = dns::signing_pool::SigningPool::start(Some(1)).unwrap();
    let mut rest = IntakeParts {
        vault: Arc::new(parts.1),
        signing_pool: pool,
        signing: DkimSigning::Off,
        sandbox_sender: None,
        message_bytes_max: 200 << 20,
        plans: mail::plan::Plans::default(),
        link_key: mail::signed_token::TokenKey::new([3; 32]),
        rate_limit: false,
        domains: domains("127.0.0.1:9".parse().unwrap(), false),
    };
    change(&mut rest);
    parts.0.cluster.join().await.unwrap();
    (Intake::new(&parts.0, rest), parts.0)
}

/// The verified domain of the first account.
pub(crate) const DOMAIN: &str = "example.com";

fn domain(account: AccountId, now: Timestamp) -> SendingDomain {
    let sealed = || SealedSecret(String::new());
    SendingDomain {
        id: DomainId::new(now, 1),
        account,
        name: DOMAIN.parse().unwrap(),
        state: DomainState::Verified,
        dkim: SealedDkimKeys {
            selector: "s".into(),
            rsa_record: String::new(),
            rsa: sealed(),
            ed25519_record: String::new(),
            ed25519: sealed(),
            ed25519_published: false,
            rsa_bits: 2_048,
        },
        next_dkim: None,
        former_dkim: None,
        delivery: DeliverySettings::default(),
        inbound_enabled: false,
        inbound_addresses: Vec::new(),
        created_at: now,
        verified_at: Some(now),
        updated_at: now,
    }
}

pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) server: Arc<ApiServer>,
    pub(crate) intake: Intake,
    pub(crate) key: String,
    pub(crate) stop: CancellationToken,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

/// The credentials of a signed-in session.
#[derive(Debug, Clone)]
pub(crate) struct TestSession {
    pub(crate) cookie: String,
    pub(crate) csrf: Option<String>,
}

impl TestSession {
    /// The session of a sign-in response.
    pub(crate) fn from_response(response: &TestResponse) -> Self {
        let cookie = response.headers["set-cookie"].to_str().unwrap();
        let csrf = response.json()["session"]["csrf_token"].as_str().unwrap().to_owned();
        Self { cookie: cookie.split(';').next().unwrap().to_owned(), csrf: Some(csrf) }
    }

    /// The session as a page of another site can use it: without the CSRF token.
    pub(crate) fn forged(&self) -> Self {
        Self { csrf: None, ..self.clone() }
    }
}

#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl TestResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with_options(|_| {}).await
    }

    pub(crate) async fn with_options(change: impl FnOnce(&mut ApiOptions)) -> Self {
        let mut options = ApiOptions::new(BASE_URL);
        change(&mut options);
        let mut world = Self::start_with(intake(store().await).await, options).await;
        world.key = world.account(1, ApiKeyScope::Full).await;
        world
    }

    /// A world whose worker dispatches webhooks. Email stays in the queue.
    pub(crate) async fn with_worker() -> Self {
        Self::with_worker_settings(|_| {}).await
    }

    /// A working world with changed intake settings.
    pub(crate) async fn with_worker_settings(change: impl FnOnce(&mut IntakeParts)) -> Self {
        let (intake, queue) = intake_and_worker(store().await, change).await;
        queue.start();
        tokio::spawn(Arc::clone(intake.credentials()).run());
        tokio::spawn(Arc::clone(intake.suppression_importer()).run());
        let mut world = Self::start_with(intake, ApiOptions::new(BASE_URL)).await;
        world.key = world.account(1, ApiKeyScope::Full).await;
        world
    }

    /// A world with changed intake settings and a paused queue.
    pub(crate) async fn with_intake(change: impl FnOnce(&mut IntakeParts)) -> Self {
        Self::with_existing_intake(intake_with(store().await, change).await).await
    }

    /// A world with this intake.
    pub(crate) async fn with_existing_intake(intake: Intake) -> Self {
        let mut world = Self::start_with(intake, ApiOptions::new(BASE_URL)).await;
        world.key = world.account(1, ApiKeyScope::Full).await;
        world
    }

    /// A world whose domain checks use a name server with this zone.
    pub(crate) async fn with_names(zone: &str) -> (Self, NameServer) {
        let names = NameServer::start(zone).await;
        let intake = intake_with(store().await, |parts| parts.domains = domains(names.address, false)).await;
        let mut world = Self::start_with(intake, ApiOptions::new(BASE_URL)).await;
        world.key = world.account(1, ApiKeyScope::Full).await;
        (world, names)
    }

    /// A world whose domain checks use this zone, and whose requests to DNS providers use these settings.
    pub(crate) async fn with_provider(
        zone: &str,
        template: Option<provider::DomainConnectTemplate>,
        request_key: Option<provider::RequestKey>,
        web: provider::FetchSettings,
    ) -> (Self, NameServer) {
        let names = NameServer::start(zone).await;
        let intake = intake_with(store().await, |parts| {
            let domains = domains(names.address, false);
            let publisher = domains.publisher.clone().with_template(template, request_key).with_fetch_settings(web);
            parts.domains = DomainsParts { publisher, ..domains };
        });
        let mut world = Self::start_with(intake.await, ApiOptions::new(BASE_URL)).await;
        world.key = world.account(1, ApiKeyScope::Full).await;
        (world, names)
    }

    /// A world with the default domain checker, which queries public addresses only.
    pub(crate) async fn with_public_dns() -> Self {
        let settings = dns::domain_check::DomainCheckSettings {
            servers: vec!["127.0.0.1:9".parse().unwrap()],
            ..dns::domain_check::DomainCheckSettings::default()
        };
        let inspector = dns::domain_check::DomainChecker::new(settings).unwrap();
        let intake = intake_with(store().await, |parts| parts.domains.inspector = inspector).await;
        let mut world = Self::start_with(intake, ApiOptions::new(BASE_URL)).await;
        world.key = world.account(1, ApiKeyScope::Full).await;
        world
    }

    /// A world whose domains verify automatically.
    pub(crate) async fn with_auto_verify() -> Self {
        let intake = intake_with(store().await, |parts| parts.domains.auto_verify = true).await;
        let mut world = Self::start_with(intake, ApiOptions::new(BASE_URL)).await;
        world.key = world.account(1, ApiKeyScope::Full).await;
        world
    }

    /// A world that signs email, and whose domains verify automatically.
    pub(crate) async fn with_signing() -> Self {
        let intake = intake_with(store().await, |parts| {
            (parts.signing, parts.domains.auto_verify) = (DkimSigning::Messages, true);
        })
        .await;
        let mut world = Self::start_with(intake, ApiOptions::new(BASE_URL)).await;
        world.key = world.account(1, ApiKeyScope::Full).await;
        world
    }

    /// A world that signs email; the first account's DKIM keys cannot be decrypted.
    pub(crate) async fn with_lost_keys() -> Self {
        let intake = intake_with(store().await, |parts| parts.signing = DkimSigning::Messages).await;
        let mut world = Self::start_with(intake, ApiOptions::new(BASE_URL)).await;
        world.key = world.account(1, ApiKeyScope::Full).await;
        world
    }

    /// Two APIs with one store, as in two processes.
    pub(crate) async fn start_pair() -> [Self; 2] {
        let first = Self::start().await;
        let mut other = Self::start_with(first.intake.clone(), ApiOptions::new(BASE_URL)).await;
        other.key.clone_from(&first.key);
        [first, other]
    }

    async fn start_with(intake: Intake, options: ApiOptions) -> Self {
        let server = ApiServer::new(intake.clone(), options);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(api::serve::serve_api(listener, None, Arc::clone(&server), stop.clone()));
        Self { address, intake, server, key: String::new(), stop, serving }
    }

    /// Creates a verified domain for the account of this number.
    pub(crate) async fn create_domain(&self, number: u8, name: &str) -> SendingDomain {
        let email = format!("owner{number}@example.com");
        let account = store::account::find(self.intake.store(), &email).await.unwrap().unwrap().id;
        let now = self.intake.clock().now();
        let id = DomainId::new(now, self.intake.entropy().unique_bits());
        let owned = SendingDomain { id, name: name.parse().unwrap(), ..domain(account, now) };
        let count = store::domain::count(self.intake.store(), account).await.unwrap();
        let mut batch = Batch::new(BatchPurpose::Intake);
        store::domain::create(&mut batch, &owned, &count);
        self.intake.store().commit(batch).await.unwrap();
        owned
    }

    /// The first domain of an account.
    pub(crate) async fn domain(&self, account: AccountId) -> SendingDomain {
        let listed = store::domain::list(self.intake.store(), account, None, 1, |_| true).await.unwrap();
        listed.domains.into_iter().next().unwrap()
    }

    /// Creates an account with one key; both are derived from the number.
    pub(crate) async fn account(&self, number: u8, scope: ApiKeyScope) -> String {
        let secret = CredentialSecret::new(API_KEY_PREFIX, [number; 32]);
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let id = AccountId::new(now, number.into());
        let account = Account {
            id,
            email: format!("owner{number}@example.com").parse().unwrap(),
            plan: Plan::Dedicated,
            production: true,
            payment_method: false,
            suspended: false,
            created_at: now,
        };
        let key = ApiKey {
            id: ApiKeyId::new(now, number.into()),
            account: id,
            name: "test".into(),
            scope,
            hint: secret.hint(),
            enabled: true,
            terms: mail::credential::CredentialPolicy::default(),
            created_at: now,
        };
        let mut batch = Batch::new(BatchPurpose::Intake);
        store::account::create(&mut batch, &account);
        if number == 1 {
            let count = store::domain::count(self.intake.store(), id).await.unwrap();
            store::domain::create(&mut batch, &domain(id, now), &count);
        }
        let hash = SecretHash::from_api_key(secret.expose()).unwrap();
        store::credential::create_api_key(&mut batch, &key, &hash);
        self.intake.store().commit(batch).await.unwrap();
        secret.expose().to_owned()
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> http::request::Builder {
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", "test")
            .header("authorization", format!("Bearer {}", self.key))
    }

    /// Moves the first account to another plan.
    pub(crate) async fn with_plan(self, plan: Plan) -> Self {
        self.change_account(|account| account.plan = plan).await;
        self
    }

    /// Changes the first account, as the operator does.
    pub(crate) async fn change_account(&self, change: impl FnOnce(&mut Account)) {
        let enrolment = self.intake.account_provisioning();
        enrolment.change_account("owner1@example.com", change).await.unwrap();
    }

    /// The tenant of the world's key.
    pub(crate) async fn tenant(&self) -> store::access::Tenant {
        self.intake.credentials().authenticate_api_key(&self.key, None).await.unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> TestResponse {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut client, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = client.send_request(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let api_response = TestResponse { status: head.status, headers: head.headers, body };
        crate::documented::check_response(&method, &path, &api_response);
        api_response
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.send(self.request(Method::GET, path).body(Full::default()).unwrap()).await
    }

    pub(crate) async fn get_as(&self, key: &str, path: &str) -> TestResponse {
        let request = Request::get(path)
            .header("host", "test")
            .header("authorization", format!("Bearer {key}"))
            .body(Full::default())
            .unwrap();
        self.send(request).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> TestResponse {
        let request = self.request(Method::POST, path).header("content-type", "application/json");
        self.send(request.body(Full::new(body.into())).unwrap()).await
    }

    /// A request with the world's key.
    pub(crate) async fn call(&self, method: Method, path: &str, body: &Value) -> TestResponse {
        self.call_as(&self.key, method, path, body).await
    }

    /// A request with this key.
    pub(crate) async fn call_as(&self, key: &str, method: Method, path: &str, body: &Value) -> TestResponse {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "test")
            .header("authorization", format!("Bearer {key}"));
        self.send(request.body(Full::new(body.to_string().into())).unwrap()).await
    }

    /// A request with a session, and its CSRF token if it has one.
    pub(crate) async fn call_with_session(
        &self,
        session: &TestSession,
        method: Method,
        path: &str,
        body: &Value,
    ) -> TestResponse {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "test")
            .header("cookie", format!("theme=dark; {}", session.cookie));
        if let Some(csrf) = &session.csrf {
            request = request.header("x-csrf-token", csrf);
        }
        self.send(request.body(Full::new(body.to_string().into())).unwrap()).await
    }

    /// A CSV upload by the owner.
    pub(crate) async fn upload_csv(&self, session: &TestSession, path: &str, list: &str) -> TestResponse {
        let request = Request::post(path)
            .header("host", "test")
            .header("content-type", "text/csv")
            .header("cookie", &session.cookie)
            .header("x-csrf-token", session.csrf.as_deref().unwrap_or_default());
        self.send(request.body(Full::new(list.to_owned().into())).unwrap()).await
    }

    /// A request without credentials.
    pub(crate) async fn call_without_key(&self, method: Method, path: &str, body: &Value) -> TestResponse {
        let request = Request::builder().method(method).uri(path).header("host", "test");
        self.send(request.body(Full::new(body.to_string().into())).unwrap()).await
    }

    /// A new session of the owner of this account.
    pub(crate) async fn session(&self, number: u8) -> TestSession {
        let users = UserService::from_intake(&self.intake);
        let email = format!("owner{number}@example.com").parse().unwrap();
        let owner = users.by_email(&email).await.unwrap().unwrap();
        let (token, _) = users.sign_in(&owner).await.unwrap();
        TestSession { cookie: api::auth::cookie::cookie_pair(&token), csrf: Some(token.csrf()) }
    }

    /// Stops the API and waits until it ends.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.serving.await.unwrap().unwrap();
    }
}
