//! Submission over loopback with a real intake: which logins an SMTP credential permits, from which address, until
//! when.

#![allow(clippy::unwrap_used, reason = "a test")]

mod loopback;

use std::time::Duration;

use accounts::subsystems::{AccountSubsystems, Subsystems, idle};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loopback::{Server, read_replies, send_text};
use model::account::{Account, Plan};
use model::client_policy::ClientPolicy;
use model::credential::{CredentialPolicy, CredentialSecret, SMTP_PASSWORD_PREFIX, SecretHash, SmtpCredential};
use model::domain::{DomainState, SealedDkimKeys, SealedSecret, SendingDomain};
use model::email::Category;
use model::id::{AccountId, DomainId, SmtpCredentialId};
use queue::services::Services;
use smtp::limits::SessionLimits;
use smtp::sending_handlers::SubmissionHandler;
use smtp::settings::ListenerRole;
use smtp::submission::MessageSubmitter;
use store::engine::{Batch, Store};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Subsystems with paused delivery, so that accepted email stays queued.
async fn subsystems() -> (Subsystems, AccountSubsystems) {
    let queue = Subsystems::new(idle::parts(Store::memory()), idle::settings());
    queue.cluster.join().await.unwrap();
    let accounts = AccountSubsystems::new(&queue, idle::account_parts());
    (queue, accounts)
}

/// An account with a domain and a credential, and a submission listener.
struct World {
    services: Services,
    accounts: AccountSubsystems,
    password: String,
    server: Server<SubmissionHandler>,
}

impl World {
    async fn start() -> Self {
        let (queue, accounts) = subsystems().await;
        let services = queue.services;
        let now = services.clock.now();
        let id = AccountId::new(now, 1);
        let email = "owner@example.com".parse().unwrap();
        let account = Account {
            id,
            email,
            plan: Plan::Free,
            production: true,
            payment_method: false,
            suspended: false,
            created_at: now,
        };
        let sealed = || SealedSecret(String::new());
        let dkim = SealedDkimKeys {
            selector: "s".into(),
            rsa_record: String::new(),
            rsa: sealed(),
            ed25519_record: String::new(),
            ed25519: sealed(),
            ed25519_published: false,
            rsa_bits: 2_048,
        };
        let domain = SendingDomain {
            id: DomainId::new(now, 1),
            account: id,
            name: "example.com".parse().unwrap(),
            state: DomainState::Verified,
            dkim,
            next_dkim: None,
            former_dkim: None,
            delivery: model::domain::DeliverySettings::default(),
            inbound_enabled: false,
            inbound_addresses: Vec::new(),
            created_at: now,
            verified_at: Some(now),
            updated_at: now,
        };
        let secret = CredentialSecret::new(SMTP_PASSWORD_PREFIX, [7; 32]);
        let credential = SmtpCredential {
            id: SmtpCredentialId::new(now, 1),
            account: id,
            name: "test".to_owned(),
            hint: secret.hint(),
            enabled: true,
            terms: CredentialPolicy::default(),
            created_at: now,
        };
        let mut batch = Batch::progress();
        store::account::create(&mut batch, &account);
        let count = store::domain::count(&services.store, id).await.unwrap();
        store::domain::create(&mut batch, &domain, &count);
        let hash = SecretHash::from_smtp_password(secret.expose()).unwrap();
        store::credential::create_smtp(&mut batch, &credential, &hash);
        services.store.commit(batch).await.unwrap();
        let AccountSubsystems { intake, templates, idempotency, credentials, limits, .. } = accounts.clone();
        let submitter = MessageSubmitter { services: services.clone(), intake, templates, idempotency };
        let handler = SubmissionHandler::new(submitter, credentials, limits, "postrider".to_owned());
        let server = Server::start(ListenerRole::Submission, SessionLimits::default(), true, handler);
        Self { services, accounts, password: secret.expose().to_owned(), server }
    }

    async fn found(&self) -> SmtpCredential {
        let hash = SecretHash::from_smtp_password(&self.password).unwrap();
        store::credential::find_by_hash(&self.services.store, &hash).await.unwrap().unwrap()
    }

    async fn change(&self, change: impl FnOnce(&mut SmtpCredential)) {
        let before = self.found().await;
        let mut after = before.clone();
        change(&mut after);
        let mut batch = Batch::progress();
        store::credential::update(&mut batch, &before, &after);
        self.services.store.commit(batch).await.unwrap();
    }

    /// Opens a new session and returns the reply to its login.
    async fn log_in(&self) -> (TlsStream<TcpStream>, String) {
        let mut stream = self.server.secure(self.server.connect().await).await;
        read_replies(&mut stream, 1).await;
        let initial = STANDARD.encode(format!("\0postrider\0{}", self.password));
        send_text(&mut stream, &format!("EHLO x\r\nAUTH PLAIN {initial}\r\n")).await;
        let replies = read_replies(&mut stream, 2).await;
        let answer = replies.lines().last().unwrap().to_owned();
        (stream, answer)
    }

    /// Sends an email in a new session, with these further header fields. Returns the reply to its content.
    async fn send(&self, from: &str, to: &[&str], fields: &str) -> String {
        let (mut stream, _) = self.log_in().await;
        let recipients: String = to.iter().map(|to| format!("RCPT TO:<{to}>\r\n")).collect();
        send_text(&mut stream, &format!("MAIL FROM:<{from}>\r\n{recipients}DATA\r\n")).await;
        let replies = read_replies(&mut stream, 2 + to.len()).await;
        assert!(replies.lines().last().unwrap().starts_with("354 "), "{replies}");
        let head = format!("From: <{from}>\r\nTo: <{}>\r\nSubject: s\r\n{fields}", to[0]);
        send_text(&mut stream, &format!("{head}\r\nHi\r\n.\r\n")).await;
        read_replies(&mut stream, 1).await
    }
}

async fn mail(stream: &mut TlsStream<TcpStream>) -> String {
    send_text(stream, "MAIL FROM:<a@example.com>\r\nRSET\r\n").await;
    let replies = read_replies(stream, 2).await;
    replies.lines().next().unwrap().to_owned()
}

#[tokio::test]
async fn credentials_authorize_within_their_terms() {
    let world = World::start().await;
    let (_, answer) = world.log_in().await;
    assert!(answer.starts_with("235 "), "{answer}");
    let own = world.found().await;
    let used = world.accounts.credentials.last_used(own.account, &[own.id.to_bytes()]).await.unwrap();
    assert_eq!(used[0].unwrap().from, Some("127.0.0.1".parse().unwrap()));

    world.change(|credential| credential.terms.allowed = vec!["192.0.2.0/24".parse().unwrap()]).await;
    let (_, answer) = world.log_in().await;
    assert!(answer.starts_with("535 5.7.1 ip_not_allowed: "), "{answer}");
    world.change(|credential| credential.terms.allowed = vec!["127.0.0.1".parse().unwrap()]).await;
    assert!(world.log_in().await.1.starts_with("235 "));

    world.change(|credential| credential.enabled = false).await;
    assert!(world.log_in().await.1.starts_with("535 5.7.8 "));
    world.change(|credential| credential.enabled = true).await;

    let end = world.services.clock.now() + Duration::from_secs(60);
    world.change(|credential| credential.terms.expires_at = Some(end)).await;
    assert!(world.log_in().await.1.starts_with("235 "));
    world.services.clock.advance(Duration::from_secs(60));
    assert!(world.log_in().await.1.starts_with("535 5.7.8 "));
}

#[tokio::test]
async fn a_disabled_credential_is_refused_in_an_open_session() {
    let world = World::start().await;
    let (mut stream, _) = world.log_in().await;
    assert!(mail(&mut stream).await.starts_with("250 "));
    world.change(|credential| credential.enabled = false).await;
    // A busy session revalidates its login once a second, not at every message.
    assert!(mail(&mut stream).await.starts_with("250 "));
    world.services.clock.advance(Duration::from_secs(1));
    let answer = mail(&mut stream).await;
    assert!(answer.starts_with("530 5.7.0 "), "{answer}");
    world.change(|credential| credential.enabled = true).await;
    assert!(mail(&mut stream).await.starts_with("250 "));
}

#[tokio::test]
async fn a_credential_obeys_each_rule_of_its_policy() {
    let world = World::start().await;
    // Newsletters have unsubscribe links.
    world.accounts.links.set_base_url("https://api.example.com");
    let policy = |change: fn(&mut ClientPolicy)| {
        let mut policy = ClientPolicy::default();
        change(&mut policy);
        policy
    };
    let (robot, root) = ("robot@example.com", "root@example.com");
    let (grace, eve) = ("grace@example.net", "eve@example.org");
    let newsletter = "Service-Category: newsletter\r\n";
    // The rule, an email that it permits, and one that it does not.
    let cases = [
        (
            policy(|policy| policy.recipients = vec!["*@example.net".parse().unwrap()]),
            (robot, vec![grace], ""),
            (robot, vec![grace, eve], ""),
        ),
        (
            policy(|policy| policy.from = Some("robot@example.com".parse().unwrap())),
            (robot, vec![grace], ""),
            (root, vec![grace], ""),
        ),
        (
            policy(|policy| policy.categories = [Category::Transactional].into()),
            (robot, vec![grace], ""),
            (robot, vec![grace], newsletter),
        ),
        // The email before it is counted.
        (policy(|policy| policy.sends_per_day = Some(2)), (robot, vec![grace], ""), (robot, vec![grace, eve], "")),
    ];
    for (policy, permitted, refused) in cases {
        world.change(|credential| credential.terms.client = policy.clone()).await;
        let accepted = world.send(permitted.0, &permitted.1, permitted.2).await;
        assert!(accepted.starts_with("250 "), "{policy:?}: {accepted}");
        let answer = world.send(refused.0, &refused.1, refused.2).await;
        assert!(answer.starts_with("550 5.7.1 policy_violation: "), "{policy:?}: {answer}");
    }
}
