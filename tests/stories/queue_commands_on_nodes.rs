//! Queue administration on two nodes over one PostgreSQL: commands and overrides given to one node apply on the other
//! and survive the first node's death.

use std::sync::Arc;
use std::time::Duration;

use model::destination::{Destination, PaceOverride};
use model::id::EmailId;
use model::recipient::RecipientState;
use postrider::config::Config;
use queue::admin::queue_admin::WaitCause;
use queue::admin::queue_command::QueueCommand;
use tokio::runtime::{Builder, Runtime};

use crate::database::Server;
use crate::operator::{suspend, to, wait_for_command};
use crate::world::sink::{Behaviour, Sink};
use crate::world::{PATIENCE, TestWorld};

/// A node with a runtime of its own; shutting the runtime down stops everything of the node at once, like a crash.
struct KillableNode {
    node: Arc<TestWorld>,
    runtime: Runtime,
}

impl KillableNode {
    async fn start(database: String, change: impl FnOnce(&mut Config) + Send + 'static) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let node = runtime.spawn(async move { Arc::new(TestWorld::node(&database, None, change).await) });
        Self { node: node.await.unwrap(), runtime }
    }

    /// Runs work on the node's runtime.
    async fn at<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<TestWorld>) -> F,
    ) -> T {
        self.runtime.spawn(work(Arc::clone(&self.node))).await.unwrap()
    }

    /// Kills the node. Its data directory exists until the end of the test, since the other node uses its key.
    fn kill(self) -> Arc<TestWorld> {
        self.runtime.shutdown_background();
        self.node
    }
}

async fn wait_until(description: &str, mut condition: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "{description}");
}

async fn cause(node: &TestWorld, id: EmailId) -> Option<WaitCause> {
    node.server
        .queue
        .delivery
        .admin
        .trace_email(id)
        .await
        .unwrap()
        .waits
        .into_iter()
        .next()
        .map(|waiting| waiting.cause)
}

/// The node's share of the rate to the hosts of dest.example, in messages per second.
fn messages_per_second(node: &TestWorld) -> Option<f64> {
    let statuses = node.server.queue.delivery.queues.ready_queue_statuses();
    statuses.iter().find(|site| site.name == "10 mx.dest.example").and_then(|site| site.throttle.messages_per_second)
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_given_to_one_node_apply_on_the_other_and_survive_the_first() {
    const GREYLISTED: &str = "451 4.7.1 greylisted";
    let server = Server::start(&[]);
    let (url, sink) = (server.database(), Sink::start().await);
    let port = sink.address.port();
    let first = KillableNode::start(url.clone(), move |config| config.delivery.port = port).await;
    let second = TestWorld::node(&url, Some(&first.node), |config| config.delivery.port = port).await;

    // One deferred email on each node.
    for address in ["one@dest.example", "two@dest.example"] {
        sink.script(address, &[Behaviour::AtRcpt(GREYLISTED)]);
    }
    let at_one = first.at(|node| async move { node.relay(&["one@dest.example"], "at one").await }).await;
    let at_two = second.relay(&["two@dest.example"], "at two").await;
    for id in [at_one, at_two] {
        wait_until("deferred", async || second.email(id).await.recipients[0].state == RecipientState::Deferred).await;
    }

    // A host, a domain and queued mail: all commands are given to the first node.
    let hosts = Destination::MailHost("dest.example".parse().unwrap());
    let domain = Destination::Domain("other.example".parse().unwrap());
    let (paced, suspended) = (hosts.clone(), domain.clone());
    let ordered = first
        .at(|node| async move {
            let queue = &node.server.queue;
            let pace = PaceOverride { connections_max: None, messages_per_second: Some(400.0) };
            queue.delivery.queues.change_override(&paced, |overrides| overrides.pace = pace).await.unwrap();
            queue.delivery.queues.change_override(&suspended, suspend("until we know")).await.unwrap();
            wait_for_command(
                queue.delivery.admin.command_matching(to("dest.example"), &QueueCommand::Hold).await.unwrap(),
            )
            .await;
            queue.delivery.queues.list_overrides()
        })
        .await;
    wait_until("the other node has the overrides", async || {
        second.server.queue.delivery.queues.list_overrides() == ordered
    })
    .await;
    wait_until("the email is held on the other node", async || cause(&second, at_two).await == Some(WaitCause::Held))
        .await;
    wait_until("each node has its share", async || messages_per_second(&second) == Some(200.0)).await;
    let because = Some("until we know".to_owned());
    let left_alone = Some(WaitCause::Suspended { destination: domain.clone(), because });
    let waits_at_one = first.at(|node| async move { node.relay(&["one@other.example"], "at one").await }).await;
    let waits_at_two = second.relay(&["two@other.example"], "at two").await;
    wait_until("the email waits", async || cause(&second, waits_at_two).await == left_alone).await;

    // The last command is about an email that is being attempted: the first node stops before the command is applied.
    sink.script("two@slow.example", &[Behaviour::AtRcptLater(GREYLISTED)]);
    let in_attempt = second.relay(&["two@slow.example"], "being tried").await;
    wait_until("the attempt runs", async || cause(&second, in_attempt).await == Some(WaitCause::Reply)).await;
    let handle = first.at(async |node| {
        node.server.queue.delivery.admin.command_matching(to("slow.example"), &QueueCommand::Hold).await.is_ok()
    });
    assert!(handle.await);
    let _dead = first.kill();
    sink.release_reply();
    wait_until("the command survives its node", async || cause(&second, in_attempt).await == Some(WaitCause::Held))
        .await;
    // The other node takes over the first one's mail, with the overrides.
    wait_until("the email waits as before", async || cause(&second, waits_at_one).await == left_alone).await;
    assert_eq!(cause(&second, at_one).await, Some(WaitCause::Held));
    wait_until("the node has the whole rate", async || messages_per_second(&second) == Some(400.0)).await;

    let queue = &second.server.queue;
    queue.delivery.queues.change_override(&domain, |overrides| overrides.suspension = None).await.unwrap();
    assert!(
        wait_for_command(
            queue.delivery.admin.command_matching(to("dest.example"), &QueueCommand::Retry).await.unwrap()
        )
        .await
            >= 2
    );
    for id in [waits_at_one, waits_at_two, at_one, at_two] {
        second.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    }
    queue.delivery.admin.command_email(in_attempt, &QueueCommand::Drop).await.unwrap();
    second.end().await;
}
