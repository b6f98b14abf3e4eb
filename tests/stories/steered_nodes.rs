//! Two nodes over one PostgreSQL, and an operator who speaks to one of them: what is ordered there holds at the other, and
//! goes on when the first one dies.

use std::sync::Arc;
use std::time::Duration;

use mail::destination::{Destination, PaceOverride};
use mail::id::EmailId;
use mail::recipient::RecipientState;
use postrider::config::Config;
use queue::operate::WaitCause;
use queue::order::QueueCommand;
use tokio::runtime::{Builder, Runtime};

use crate::database::Server;
use crate::operator::{carried_out, suspend, to};
use crate::world::sink::{Behaviour, Sink};
use crate::world::{PATIENCE, TestWorld};

/// A node with a runtime of its own: without it nothing of the node runs any more, from one moment to the next.
struct Mortal {
    node: Arc<TestWorld>,
    runtime: Runtime,
}

impl Mortal {
    async fn start(database: String, change: impl FnOnce(&mut Config) + Send + 'static) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let node = runtime.spawn(async move { Arc::new(TestWorld::node(&database, None, change).await) });
        Self { node: node.await.unwrap(), runtime }
    }

    /// Does something at the node, as whoever is connected to it.
    async fn at<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<TestWorld>) -> F,
    ) -> T {
        self.runtime.spawn(work(Arc::clone(&self.node))).await.unwrap()
    }

    /// Its data stays until the test is over: others have its key.
    fn die(self) -> Arc<TestWorld> {
        self.runtime.shutdown_background();
        self.node
    }
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "{what}");
}

async fn cause(node: &TestWorld, id: EmailId) -> Option<WaitCause> {
    node.world.worker.trace_email(id).await.unwrap().waits.into_iter().next().map(|waiting| waiting.cause)
}

/// How many messages a second a node may send to the hosts of dest.example.
fn rate(node: &TestWorld) -> Option<f64> {
    let standings = node.world.worker.ready_queue_statuses();
    standings.iter().find(|site| site.name == "10 mx.dest.example").and_then(|site| site.messages_per_second)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_ordered_at_one_node_holds_at_the_other_and_outlives_it() {
    const GREYLISTED: &str = "451 4.7.1 greylisted";
    let server = Server::start(&[]);
    let (url, sink) = (server.database(), Sink::start().await);
    let port = sink.address.port();
    let one = Mortal::start(url.clone(), move |config| config.delivery.port = port).await;
    let two = TestWorld::node(&url, Some(&one.node), |config| config.delivery.port = port).await;

    // Mail that each of them has.
    for address in ["one@dest.example", "two@dest.example"] {
        sink.script(address, &[Behaviour::AtRcpt(GREYLISTED)]);
    }
    let at_one = one.at(|node| async move { node.relay(&["one@dest.example"], "at one").await }).await;
    let at_two = two.relay(&["two@dest.example"], "at two").await;
    for id in [at_one, at_two] {
        until("it is tried", async || two.email(id).await.recipients[0].state == RecipientState::Deferred).await;
    }

    // Hosts, a domain, and mail in the queue: all ordered at the first.
    let hosts = Destination::MailHost("dest.example".parse().unwrap());
    let domain = Destination::Domain("other.example".parse().unwrap());
    let (paced, suspended) = (hosts.clone(), domain.clone());
    let ordered = one
        .at(|node| async move {
            let worker = &node.world.worker;
            let pace = PaceOverride { connections_max: None, messages_per_second: Some(400.0) };
            worker.order_destination(&paced, |standing| standing.pace = pace).await.unwrap();
            worker.order_destination(&suspended, suspend("until we know")).await.unwrap();
            carried_out(worker.command_matching(to("dest.example"), &QueueCommand::Hold).await.unwrap()).await;
            worker.destination_orders()
        })
        .await;
    until("the other knows of it", async || two.world.worker.destination_orders() == ordered).await;
    until("it is held there", async || cause(&two, at_two).await == Some(WaitCause::Held)).await;
    until("each has its part", async || rate(&two) == Some(200.0)).await;
    let because = Some("until we know".to_owned());
    let left_alone = Some(WaitCause::Suspended { destination: domain.clone(), because });
    let waits_at_one = one.at(|node| async move { node.relay(&["one@other.example"], "at one").await }).await;
    let waits_at_two = two.relay(&["two@other.example"], "at two").await;
    until("it waits", async || cause(&two, waits_at_two).await == left_alone).await;

    // The last order is about mail that is just being tried: the first dies before it is carried out.
    sink.script("two@slow.example", &[Behaviour::AtRcptLater(GREYLISTED)]);
    let tried = two.relay(&["two@slow.example"], "being tried").await;
    until("it is tried", async || cause(&two, tried).await == Some(WaitCause::Reply)).await;
    let given =
        one.at(async |node| node.world.worker.command_matching(to("slow.example"), &QueueCommand::Hold).await.is_ok());
    assert!(given.await);
    let _dead = one.die();
    sink.go_on();
    until("the order outlives its giver", async || cause(&two, tried).await == Some(WaitCause::Held)).await;
    // Its mail goes over to the other, and what was ordered about it is known there.
    until("it waits as before", async || cause(&two, waits_at_one).await == left_alone).await;
    assert_eq!(cause(&two, at_one).await, Some(WaitCause::Held));
    until("it has the whole pace", async || rate(&two) == Some(400.0)).await;

    let worker = &two.world.worker;
    worker.order_destination(&domain, |standing| standing.suspension = None).await.unwrap();
    assert!(carried_out(worker.command_matching(to("dest.example"), &QueueCommand::Retry).await.unwrap()).await >= 2);
    for id in [waits_at_one, waits_at_two, at_one, at_two] {
        two.wait(id, |e| e.recipients[0].state == RecipientState::Delivered).await;
    }
    worker.command_email(tried, &QueueCommand::Drop).await.unwrap();
    two.end().await;
}
