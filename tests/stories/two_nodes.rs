//! Two nodes over one PostgreSQL, as customers see them: keys rotated on one node sign on the other, clock skew does no
//! harm, and limits of an account hold within the bounds of docs/CLUSTER.md.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use model::account::Plan;
use model::id::EmailId;
use model::recipient::RecipientState;
use postrider::config::{Config, OnOff};
use serde_json::json;

use crate::database::Server;
use crate::dkim_rotation::selectors;
use crate::world::{DOMAIN, OWNER, PATIENCE, TestWorld, ZONE};

/// Two nodes of one cluster.
pub(crate) async fn nodes(server: &Server, change: impl Fn(usize, &mut Config)) -> [TestWorld; 2] {
    let url = server.database();
    let first = TestWorld::node(&url, None, |config| change(0, config)).await;
    let second = TestWorld::node(&url, Some(&first), |config| change(1, config)).await;
    [first, second]
}

/// Stops both nodes, the second one first.
pub(crate) async fn end_nodes([first, second]: [TestWorld; 2]) {
    second.end().await;
    first.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_rotated_on_one_node_sign_on_the_other() {
    let server = Server::start(&[]);
    let [first, second] = nodes(&server, |_, _| {}).await;
    let domains = &first.server.accounts.domains;
    let name = DOMAIN.parse().unwrap();
    let old = store::domain::find_by_name(&second.server.store, &name).await.unwrap().unwrap();
    let of_old = [old.dkim.selector.clone(), old.dkim.ed25519_selector()];
    assert_eq!(selectors(&second, &first.sink, "before").await, of_old);

    let turning = domains.rotate_keys(old.account, old.id).await.unwrap().domain;
    let next = turning.next_dkim.clone().unwrap();
    let mut zone = ZONE.to_owned();
    for record in domains.facts().required_records(&turning) {
        if record.name.contains("._domainkey.") {
            writeln!(zone, "{}. TXT \"{}\"", record.name, record.value).unwrap();
        }
    }
    first.names.set(&zone);
    domains.verify(old.account, old.id).await.unwrap();
    // The other node caches a sending identity for one second.
    second.server.clock.advance(Duration::from_secs(2));
    let of_new = [next.selector.clone(), next.ed25519_selector()];
    assert_eq!(selectors(&second, &first.sink, "after").await, of_new);
    end_nodes([first, second]).await;
}

async fn delivered_once(node: &TestWorld, ids: &[EmailId]) {
    for id in ids {
        let email = node.wait(*id, |e| e.recipients[0].state == RecipientState::Delivered).await;
        assert_eq!(email.recipients[0].attempts, 1, "{email:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_skew_between_nodes_does_no_harm() {
    const EACH: usize = 20;
    let server = Server::start(&[]);
    let skew = |node, config: &mut Config| {
        config.testing.clock_offset = Some(Duration::from_secs(if node == 1 { 5 } else { 0 }));
    };
    let nodes = nodes(&server, skew).await;
    let (mut at_once, mut later) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for number in 0..EACH {
        for (n, node) in nodes.iter().enumerate() {
            let subject = format!("at once {n}-{number}");
            at_once[n].push(node.relay(&["a@dest.example"], &subject).await);
            // By the clock of the node that receives the request.
            let due = node.server.clock.now() + Duration::from_secs(3);
            let mail = json!({
                "from": format!("a@{DOMAIN}"), "to": "b@dest.example", "text": "t",
                "subject": format!("later {n}-{number}"), "scheduled_at": due.to_string(),
            });
            let (status, response) = node.call("POST", "/emails", &mail.to_string()).await;
            assert_eq!(status, 200, "{response}");
            later[n].push(response["id"].as_str().unwrap().parse::<EmailId>().unwrap());
        }
    }
    for (node, ids) in nodes.iter().zip(&at_once) {
        delivered_once(node, ids).await;
    }
    for node in &nodes {
        node.server.clock.advance(Duration::from_secs(4));
    }
    for (node, ids) in nodes.iter().zip(&later) {
        delivered_once(node, ids).await;
    }
    let received = nodes[0].sink.wait_for(4 * EACH).await;
    let subjects: BTreeSet<&str> = received
        .iter()
        .filter_map(|received| received.content.lines().find(|line| line.starts_with("Subject: ")))
        .collect();
    assert_eq!((received.len(), subjects.len()), (4 * EACH, 4 * EACH), "each once");
    end_nodes(nodes).await;
}

/// Number of accepted requests, out of `requests` to each node.
async fn count_accepted(nodes: &[TestWorld; 2], requests: usize) -> usize {
    let mut count_accepted = 0;
    for _ in 0..requests {
        for node in nodes {
            let (status, response) = node.call("GET", "/emails", "").await;
            assert!(matches!(status, 200 | 429), "{response}");
            count_accepted += usize::from(status == 200);
        }
    }
    count_accepted
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rate_limit_holds_across_both_nodes() {
    const RATE: u32 = 5;
    let server = Server::start(&[]);
    let nodes = nodes(&server, |_, config| {
        config.api.rate_limit = OnOff::On;
        config.plans.dedicated.requests_per_second = RATE;
    })
    .await;
    let clock = &nodes[0].server.clock;
    let started_at = clock.now();
    let count_accepted = count_accepted(&nodes, 40).await;
    // Bound in docs/CLUSTER.md: rate · t, plus the larger of twice the rate and the number of nodes.
    let elapsed = clock.now().duration_since(started_at).as_secs_f64();
    let bound = elapsed * f64::from(RATE) + f64::from(2 * RATE);
    assert!(count_accepted as f64 <= bound && count_accepted >= 2, "{count_accepted} of at most {bound}");
    end_nodes(nodes).await;
}

async fn send(node: &TestWorld) -> bool {
    let mail = json!({"from": format!("a@{DOMAIN}"), "to": "b@dest.example", "subject": "s", "text": "t"});
    let (status, response) = node.call("POST", "/emails", &mail.to_string()).await;
    assert!(status == 200 || response["error"]["code"] == json!("plan_limit"), "{response}");
    status == 200
}

/// Emails used today as this node shows it.
async fn emails_used_today(node: &TestWorld) -> u64 {
    node.call("GET", "/account", "").await.1["usage"]["emails_day"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_cap_holds_across_both_nodes() {
    const CAP: u64 = 12;
    const FIRST: u64 = 8;
    let server = Server::start(&[]);
    let nodes = nodes(&server, |_, config| config.plans.free.emails_per_day = Some(CAP)).await;
    let free = |account: &mut model::account::Account| account.plan = Plan::Free;
    nodes[0].server.provisioning.change_account(OWNER, free).await.unwrap();
    for _ in 0..FIRST {
        assert!(send(&nodes[0]).await);
    }
    // The other node applies it within about a second.
    let learned = async { while emails_used_today(&nodes[1]).await < FIRST {} };
    tokio::time::timeout(PATIENCE, learned).await.expect("the other node learns the usage");
    let mut by_the_other = 0;
    while send(&nodes[1]).await {
        by_the_other += 1;
    }
    assert_eq!(by_the_other, CAP - FIRST);
    // The first node exceeds the cap at most by what the other one accepted since.
    let mut beyond = 0;
    while send(&nodes[0]).await {
        beyond += 1;
    }
    assert!(beyond <= by_the_other, "{beyond}");
    let accepted = CAP + beyond;
    let learned =
        async { while emails_used_today(&nodes[0]).await.min(emails_used_today(&nodes[1]).await) < accepted {} };
    tokio::time::timeout(PATIENCE, learned).await.expect("both nodes learn the usage");
    assert_eq!(
        (emails_used_today(&nodes[0]).await, emails_used_today(&nodes[1]).await),
        (accepted, accepted),
        "the stored usage is exact"
    );
    end_nodes(nodes).await;
}
