//! Records what the clients and the mail host observed for each message, and checks the invariants.
//!
//! ```text
//! started ─► dot sent ─► acknowledged (id)        client: the final dot is sent; its 250 is read
//!                └───► refused                    client: the reply was not 250
//! arrived, over a connection                      mail host: the final dot was read, the body is complete
//! ```
//!
//! One mutex orders all records, and the signal is sent while it is locked: the ledger then holds exactly what was
//! observed before the kill.
//!
//! Invariants, checked by [`Ledger::check_invariants`]:
//!
//! - An acknowledged message is in the API under its id, delivered, and arrived at each recipient.
//! - A message in the API had its final dot sent, is listed once, and arrived.
//! - A refused message got a 4yz reply and is not in the API.
//! - An arrived message is in the API. It arrived twice only if a kill cut the connection whose last message it was:
//!   there are at most as many duplicates as connections open at the kills.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use crate::installation::PATIENCE;

/// The number that identifies a message; it is part of the subject.
pub(crate) type Token = u64;
/// A message and one of its recipients.
pub(crate) type Delivery = (Token, String);
/// Index of a connection to the mail host.
pub(crate) type ConnectionIndex = usize;

/// The event at which a signal is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KillTrigger {
    /// A client has read the 250 after its final dot.
    Acknowledged,
    /// The mail host has read a final dot and has not replied yet.
    Arrived,
}

/// State of a message at its client.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ClientState {
    Started,
    DotSent,
    Acknowledged(String),
    Refused(String),
}

#[derive(Debug, Default)]
struct Connection {
    is_open: bool,
    /// True if it was open when the server was killed.
    is_cut: bool,
    last: Option<Delivery>,
}

#[derive(Debug)]
struct PendingKill {
    trigger: KillTrigger,
    left: u64,
    pid: Pid,
    signal: Signal,
}

#[derive(Debug, Default)]
struct State {
    messages: BTreeMap<Token, ClientState>,
    acknowledged: u64,
    connections: Vec<Connection>,
    arrivals: HashMap<Delivery, Vec<ConnectionIndex>>,
    deferred_once: HashSet<Delivery>,
    pending_kill: Option<PendingKill>,
}

/// An email as the API shows it.
#[derive(Debug)]
pub(crate) struct ListedEmail {
    pub(crate) id: String,
    /// The number in its subject.
    pub(crate) token: Token,
    pub(crate) status: String,
    /// Recipients of its `email.delivered` events, one entry per event.
    pub(crate) delivered: Vec<String>,
}

/// Counts of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CrashTotals {
    pub(crate) started: usize,
    pub(crate) acknowledged: usize,
    /// Final dot sent, no reply read.
    pub(crate) unconfirmed: usize,
    /// Unconfirmed messages that the API lists.
    pub(crate) unconfirmed_listed: usize,
    pub(crate) refused: usize,
    /// Deliveries of acknowledged messages that did not arrive.
    pub(crate) lost: usize,
    pub(crate) arrived: usize,
    pub(crate) duplicates: usize,
    /// Connections to the mail host that were open at a kill.
    pub(crate) connections_cut: usize,
}

impl fmt::Display for CrashTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            started,
            acknowledged,
            unconfirmed,
            unconfirmed_listed,
            refused,
            lost,
            arrived,
            duplicates,
            connections_cut,
        } = self;
        write!(
            f,
            "started {started}, acknowledged {acknowledged}, lost {lost}, deliveries arrived {arrived}, duplicates \
             {duplicates} (connections cut {connections_cut}), unconfirmed {unconfirmed} (in the API {unconfirmed_listed}), \
             refused {refused}"
        )
    }
}

/// Recipients of a message: every fourth message has two. There are four domains in all.
pub(crate) fn recipients(token: Token) -> Vec<String> {
    let first = format!("ada@d{}.example", token % 4);
    let second = (token % 4 == 1).then(|| "bob@d2.example".to_owned());
    [first].into_iter().chain(second).collect()
}

/// Observations of the clients and of the mail host.
pub(crate) struct Ledger {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), changed: watch::Sender::new(()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state());
        self.changed.send_replace(());
        result
    }

    /// Records a new message.
    pub(crate) fn start_message(&self) -> Token {
        self.with(|state| {
            let token = state.messages.len() as Token;
            state.messages.insert(token, ClientState::Started);
            token
        })
    }

    /// Records that the client sends the final dot now.
    pub(crate) fn record_dot(&self, token: Token) {
        self.with(|state| state.messages.insert(token, ClientState::DotSent));
    }

    /// Records that the client read the 250.
    pub(crate) fn acknowledge(&self, token: Token, id: &str) {
        self.with(|state| {
            state.messages.insert(token, ClientState::Acknowledged(id.to_owned()));
            state.acknowledged += 1;
            state.count_down(KillTrigger::Acknowledged);
        });
    }

    /// Records that the client read another reply than 250.
    pub(crate) fn refuse(&self, token: Token, reply: &str) {
        println!("message {token} refused: {reply}");
        self.with(|state| state.messages.insert(token, ClientState::Refused(reply.to_owned())));
    }

    /// Records a new connection to the mail host.
    pub(crate) fn open(&self) -> ConnectionIndex {
        self.with(|state| {
            state.connections.push(Connection { is_open: true, ..Connection::default() });
            state.connections.len() - 1
        })
    }

    /// Records that a connection to the mail host has ended.
    pub(crate) fn close(&self, connection: ConnectionIndex) {
        self.with(|state| state.connections[connection].is_open = false);
    }

    /// Records that a complete message arrived.
    pub(crate) fn record_arrival(&self, connection: ConnectionIndex, delivery: Delivery) {
        self.with(|state| {
            state.connections[connection].last = Some(delivery.clone());
            state.arrivals.entry(delivery).or_default().push(connection);
            state.count_down(KillTrigger::Arrived);
        });
    }

    /// Returns whether the mail host defers this delivery: every tenth message, once.
    pub(crate) fn defers_once(&self, delivery: &Delivery) -> bool {
        delivery.0 % 10 == 3 && self.with(|state| state.deferred_once.insert(delivery.clone()))
    }

    /// Sends a signal to the server at the `left`-th event from now.
    pub(crate) fn kill_after(&self, trigger: KillTrigger, left: u64, pid: Pid, signal: Signal) {
        self.state().pending_kill = Some(PendingKill { trigger, left, pid, signal });
    }

    async fn wait_for(&self, description: &str, condition: impl Fn(&State) -> bool) {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            while !condition(&self.state()) {
                changed.changed().await.unwrap();
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            panic!("timed out waiting for {description}; {}", self.totals());
        }
    }

    /// Waits for `count` further acknowledgements.
    pub(crate) async fn wait_for_acknowledged(&self, count: u64) {
        let target = self.state().acknowledged + count;
        self.wait_for("acknowledgements", |state| state.acknowledged >= target).await;
    }

    /// Waits until every acknowledged message has arrived.
    pub(crate) async fn wait_for_arrivals(&self) {
        self.wait_for("acknowledged messages to arrive", |state| state.missing_deliveries().next().is_none()).await;
    }

    /// Counts so far.
    pub(crate) fn totals(&self) -> CrashTotals {
        let state = self.state();
        let count =
            |condition: fn(&ClientState) -> bool| state.messages.values().filter(|state| condition(state)).count();
        CrashTotals {
            started: state.messages.len(),
            acknowledged: count(|state| matches!(state, ClientState::Acknowledged(_))),
            unconfirmed: count(|state| *state == ClientState::DotSent),
            unconfirmed_listed: 0,
            refused: count(|state| matches!(state, ClientState::Refused(_))),
            lost: state.missing_deliveries().count(),
            arrived: state.arrivals.len(),
            duplicates: state.arrivals.values().map(|lines| lines.len() - 1).sum(),
            connections_cut: state.connections.iter().filter(|connection| connection.is_cut).count(),
        }
    }

    /// Compares the ledger with the emails in the API. Returns the counts and all broken invariants.
    pub(crate) fn check_invariants(&self, emails: &[ListedEmail]) -> (CrashTotals, Vec<String>) {
        let mut totals = self.totals();
        let state = self.state();
        let mut faults: Vec<String> =
            state.missing_deliveries().map(|delivery| format!("lost: {delivery:?}")).collect();
        let mut by_token: HashMap<Token, &ListedEmail> = HashMap::new();
        let mut ids = HashSet::new();
        for listed in emails {
            if by_token.insert(listed.token, listed).is_some() || !ids.insert(&listed.id) {
                faults.push(format!("listed twice: {listed:?}"));
            }
            faults.extend(state.find_faults(listed));
        }
        for (token, state) in &state.messages {
            let listed = by_token.get(token);
            match state {
                ClientState::Acknowledged(id) if listed.is_none_or(|listed| listed.id != *id) => {
                    faults.push(format!("acknowledged as {id}, in the API: {listed:?}"));
                }
                // A 4yz reply makes the client retry. `find_faults` reports it if the API lists the message anyway.
                ClientState::Refused(reply) if !reply.starts_with('4') => {
                    faults.push(format!("refused for good: {reply}"));
                }
                ClientState::DotSent => totals.unconfirmed_listed += usize::from(listed.is_some()),
                _ => {}
            }
        }
        for (delivery, lines) in &state.arrivals {
            if !by_token.contains_key(&delivery.0) {
                faults.push(format!("arrived but not in the API: {delivery:?}"));
            }
            let excused = lines.iter().filter(|connection| state.is_cut_duplicate(**connection, delivery)).count();
            if excused + 1 < lines.len() {
                faults.push(format!("arrived {} times, {excused} cut off: {delivery:?}", lines.len()));
            }
        }
        (totals, faults)
    }
}

impl State {
    /// Counts an event down; the last one sends the signal.
    fn count_down(&mut self, trigger: KillTrigger) {
        let Some(pending_kill) = self.pending_kill.as_mut().filter(|pending_kill| pending_kill.trigger == trigger)
        else {
            return;
        };
        pending_kill.left = pending_kill.left.saturating_sub(1);
        if pending_kill.left > 0 {
            return;
        }
        kill_process(pending_kill.pid, pending_kill.signal).unwrap();
        if pending_kill.signal == Signal::KILL {
            self.connections.iter_mut().for_each(|connection| connection.is_cut |= connection.is_open);
        }
        self.pending_kill = None;
    }

    /// Deliveries of acknowledged messages that have not arrived.
    fn missing_deliveries(&self) -> impl Iterator<Item = Delivery> + '_ {
        self.messages
            .iter()
            .filter(|(_, state)| matches!(state, ClientState::Acknowledged(_)))
            .flat_map(|(token, _)| recipients(*token).into_iter().map(|recipient| (*token, recipient)))
            .filter(|delivery| !self.arrivals.contains_key(delivery))
    }

    /// Returns whether a kill cut the connection while this was its last message.
    fn is_cut_duplicate(&self, connection: ConnectionIndex, delivery: &Delivery) -> bool {
        let connection = &self.connections[connection];
        connection.is_cut && connection.last.as_ref() == Some(delivery)
    }

    /// All problems of an email that the API lists.
    fn find_faults(&self, listed: &ListedEmail) -> Vec<String> {
        let mut faults = Vec::new();
        match self.messages.get(&listed.token) {
            Some(ClientState::Acknowledged(_) | ClientState::DotSent) => {}
            other => faults.push(format!("never submitted completely (client state {other:?}): {listed:?}")),
        }
        let mut delivered = listed.delivered.clone();
        delivered.sort();
        if listed.status != "delivered" || delivered != recipients(listed.token) {
            faults.push(format!("not delivered exactly once to each: {listed:?}"));
        }
        for recipient in recipients(listed.token) {
            if !self.arrivals.contains_key(&(listed.token, recipient)) {
                faults.push(format!("marked as delivered but never arrived: {listed:?}"));
            }
        }
        faults
    }
}

/// A message that was acknowledged and arrived over a connection that no kill cut, and its email in the API.
fn one_delivered_message() -> (Ledger, ListedEmail) {
    let ledger = Ledger::new();
    let (token, connection) = (ledger.start_message(), ledger.open());
    ledger.record_dot(token);
    ledger.acknowledge(token, "msg_0");
    let to = recipients(token);
    to.iter().for_each(|to| ledger.record_arrival(connection, (token, to.clone())));
    (ledger, ListedEmail { id: "msg_0".into(), token, status: "delivered".into(), delivered: to })
}

#[test]
fn the_ledger_detects_every_broken_invariant() {
    let faults = |ledger: &Ledger, emails: &[ListedEmail]| ledger.check_invariants(emails).1.join("; ");
    let (ledger, listed) = one_delivered_message();
    assert_eq!(faults(&ledger, std::slice::from_ref(&listed)), "");
    assert!(faults(&ledger, &[]).contains("acknowledged as msg_0, in the API: None"));
    ledger.record_arrival(0, (0, recipients(0).remove(0)));
    assert!(faults(&ledger, std::slice::from_ref(&listed)).contains("arrived 2 times"), "no kill cut it");

    let (ledger, listed) = one_delivered_message();
    let second_listing = ListedEmail { id: "msg_1".into(), delivered: Vec::new(), ..one_delivered_message().1 };
    let found = faults(&ledger, &[listed, second_listing]);
    assert!(found.contains("listed twice") && found.contains("not delivered exactly once"), "{found}");

    let (ledger, listed) = one_delivered_message();
    let unknown_listing =
        ListedEmail { id: "msg_1".into(), token: ledger.start_message(), ..one_delivered_message().1 };
    assert!(
        faults(&ledger, &[listed, unknown_listing]).contains("never submitted completely (client state Some(Started))")
    );

    let (ledger, listed) = one_delivered_message();
    let lost_token = ledger.start_message();
    ledger.acknowledge(lost_token, "msg_1");
    let (totals, found) = ledger.check_invariants(&[listed]);
    assert_eq!(totals.lost, recipients(lost_token).len());
    assert!(found.join("; ").contains("lost: "), "{found:?}");
}
