//! An API on port 0 with a store in memory, and a small client.

use std::net::SocketAddr;
use std::sync::Arc;

use ::affiliate::service::AffiliateService;
use accounts::domains::DomainsParts;
use accounts::provisioning::AccountProvisioning;
use accounts::subsystems::{AccountParts, AccountSubsystems, Subsystems, idle};
use accounts::users::UserService;
use api::operation::Operation;
use api::operations::operation_table;
use api::server::ApiServer;
use api::state::ApiOptions;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use model::account::{Account, Plan};
use model::credential::{API_KEY_PREFIX, ApiKey, ApiKeyScope, CredentialSecret, SecretHash};
use model::domain::{DeliverySettings, DomainState, SealedDkimKeys, SealedSecret, SendingDomain};
use model::id::{AccountId, ApiKeyId, DomainId, EmailId};
use net::entropy::Entropy;
use queue::intake::dkim_signing::DkimSigning;
use queue::services::Services;
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

/// The subsystems behind an API. Delivery is paused, so that accepted email stays in the queue.
#[derive(Clone)]
pub(crate) struct Backend {
    pub(crate) services: Services,
    pub(crate) queue: Arc<Subsystems>,
    pub(crate) accounts: AccountSubsystems,
    pub(crate) affiliate: AffiliateService,
}

impl Backend {
    pub(crate) async fn new(store: Store) -> Self {
        Self::with(store, |_| {}).await
    }

    /// Subsystems with changed parts.
    pub(crate) async fn with(store: Store, change: impl FnOnce(&mut AccountParts)) -> Self {
        let queue = Subsystems::new(idle::parts(store), idle::settings());
        queue.cluster.join().await.unwrap();
        let mut parts = idle::account_parts();
        change(&mut parts);
        let accounts = AccountSubsystems::new(&queue, parts);
        let affiliate = AffiliateService::new(&queue, &accounts);
        Self { services: queue.services.clone(), queue: Arc::new(queue), accounts, affiliate }
    }

    pub(crate) fn server(&self, options: ApiOptions) -> Arc<ApiServer> {
        self.server_with(options, operation_table())
    }

    pub(crate) fn server_with(&self, options: ApiOptions, table: Vec<Operation>) -> Arc<ApiServer> {
        let Self { queue, accounts, affiliate, .. } = self.clone();
        ApiServer::with_operations(queue, accounts, affiliate, options, table)
    }
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
    pub(crate) backend: Backend,
    pub(crate) key: String,
    pub(crate) stop: CancellationToken,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl std::ops::Deref for World {
    type Target = Backend;

    fn deref(&self) -> &Backend {
        &self.backend
    }
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

    /// A stored message, opened if it is sealed.
    pub(crate) async fn read_message(&self, account: AccountId, id: EmailId) -> Bytes {
        let stored = store::email::get_body(&self.services.store, account, id).await.unwrap().unwrap();
        queue::sealed_body::open(&self.accounts.vault, account, id, stored).unwrap()
    }

    pub(crate) async fn with_options(change: impl FnOnce(&mut ApiOptions)) -> Self {
        let mut options = ApiOptions::new(BASE_URL);
        change(&mut options);
        Self::start_with(Backend::new(store().await).await, options).await.with_account().await
    }

    /// A world whose worker dispatches webhooks. Email stays in the queue.
    pub(crate) async fn with_worker() -> Self {
        Self::with_worker_settings(|_| {}).await
    }

    /// A working world with changed parts.
    pub(crate) async fn with_worker_settings(change: impl FnOnce(&mut AccountParts)) -> Self {
        let backend = Backend::with(store().await, change).await;
        accounts::background_tasks::start_delivery(&backend.queue);
        tokio::spawn(Arc::clone(&backend.accounts.credentials).run());
        tokio::spawn(Arc::clone(&backend.accounts.suppression_importer).run());
        Self::with_backend(backend).await
    }

    /// A world with changed parts and a paused queue.
    pub(crate) async fn with_parts(change: impl FnOnce(&mut AccountParts)) -> Self {
        Self::with_backend(Backend::with(store().await, change).await).await
    }

    pub(crate) async fn with_backend(backend: Backend) -> Self {
        Self::start_with(backend, ApiOptions::new(BASE_URL)).await.with_account().await
    }

    /// A world whose domain checks use a name server with this zone.
    pub(crate) async fn with_names(zone: &str) -> (Self, NameServer) {
        let names = NameServer::start(zone).await;
        let world = Self::with_parts(|parts| parts.domains = idle::domains_parts(names.address));
        (world.await, names)
    }

    /// A world whose domain checks use this zone, and whose requests to DNS providers use these settings.
    pub(crate) async fn with_provider(
        zone: &str,
        template: Option<provider::DomainConnectTemplate>,
        request_key: Option<provider::RequestKey>,
        web: provider::FetchSettings,
    ) -> (Self, NameServer) {
        let names = NameServer::start(zone).await;
        let world = Self::with_parts(|parts| {
            let domains = idle::domains_parts(names.address);
            let publisher = domains.publisher.clone().with_template(template, request_key).with_fetch_settings(web);
            parts.domains = DomainsParts { publisher, ..domains };
        });
        (world.await, names)
    }

    /// A world with the default domain checker, which queries public addresses only.
    pub(crate) async fn with_public_dns() -> Self {
        let settings = dns::domain_check::DomainCheckSettings {
            servers: vec!["127.0.0.1:9".parse().unwrap()],
            ..dns::domain_check::DomainCheckSettings::default()
        };
        let inspector = dns::domain_check::DomainChecker::new(settings).unwrap();
        Self::with_parts(|parts| parts.domains.inspector = inspector).await
    }

    /// A world whose domains verify automatically.
    pub(crate) async fn with_auto_verify() -> Self {
        Self::with_parts(|parts| parts.domains.auto_verify = true).await
    }

    /// A world that signs email, and whose domains verify automatically.
    pub(crate) async fn with_signing() -> Self {
        Self::with_parts(|parts| (parts.signing, parts.domains.auto_verify) = (DkimSigning::Messages, true)).await
    }

    /// A world that signs email; the first account's DKIM keys cannot be decrypted.
    pub(crate) async fn with_lost_keys() -> Self {
        Self::with_parts(|parts| parts.signing = DkimSigning::Messages).await
    }

    /// Two APIs with one store, as in two processes.
    pub(crate) async fn start_pair() -> [Self; 2] {
        let first = Self::start().await;
        let mut other = Self::start_with(first.backend.clone(), ApiOptions::new(BASE_URL)).await;
        other.key.clone_from(&first.key);
        [first, other]
    }

    async fn with_account(mut self) -> Self {
        self.key = self.account(1, ApiKeyScope::Full).await;
        self
    }

    async fn start_with(backend: Backend, options: ApiOptions) -> Self {
        let server = backend.server(options);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(api::serve::serve_api(listener, None, Arc::clone(&server), stop.clone()));
        Self { address, backend, server, key: String::new(), stop, serving }
    }

    /// Creates a verified domain for the account of this number.
    pub(crate) async fn create_domain(&self, number: u8, name: &str) -> SendingDomain {
        let email = format!("owner{number}@example.com");
        let account = store::account::find(&self.services.store, &email).await.unwrap().unwrap().id;
        let now = self.services.clock.now();
        let id = DomainId::new(now, self.services.entropy.unique_bits());
        let owned = SendingDomain { id, name: name.parse().unwrap(), ..domain(account, now) };
        let count = store::domain::count(&self.services.store, account).await.unwrap();
        let mut batch = Batch::new(BatchPurpose::Intake);
        store::domain::create(&mut batch, &owned, &count);
        self.services.store.commit(batch).await.unwrap();
        owned
    }

    /// The first domain of an account.
    pub(crate) async fn domain(&self, account: AccountId) -> SendingDomain {
        let listed = store::domain::list(&self.services.store, account, None, 1, |_| true).await.unwrap();
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
            terms: model::credential::CredentialPolicy::default(),
            created_at: now,
        };
        let mut batch = Batch::new(BatchPurpose::Intake);
        store::account::create(&mut batch, &account);
        if number == 1 {
            let count = store::domain::count(&self.services.store, id).await.unwrap();
            store::domain::create(&mut batch, &domain(id, now), &count);
        }
        let hash = SecretHash::from_api_key(secret.expose()).unwrap();
        store::credential::create_api_key(&mut batch, &key, &hash);
        self.services.store.commit(batch).await.unwrap();
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
        self.provisioning().change_account("owner1@example.com", change).await.unwrap();
    }

    pub(crate) fn provisioning(&self) -> AccountProvisioning {
        let (senders, queues) = (&self.accounts.senders, &self.queue.delivery.queues);
        AccountProvisioning::new(&self.services, Arc::clone(senders), Arc::clone(queues))
    }

    /// The tenant of the world's key.
    pub(crate) async fn tenant(&self) -> store::access::Tenant {
        self.accounts.credentials.authenticate_api_key(&self.key, None).await.unwrap()
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
        let users = UserService::new(&self.services);
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
