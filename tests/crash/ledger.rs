//! Records what the clients and the mail host observed for each message, and checks the invariants.
//!
//! ```text
//! begun ─► dotted ─► acknowledged (id)        client: the final dot is sent; its 250 is read
//!              └───► refused                  client: the reply was not 250
//! arrived, over a connection                  mail host: the final dot was read, the body is complete
//! ```
//!
//! One mutex orders all records, and the signal is sent while it is locked: the ledger then holds exactly what was
//! observed before the kill.
//!
//! Invariants, checked by [`Ledger::settle`]:
//!
//! - An acknowledged message is in the API under its id, delivered, and arrived at each recipient.
//! - A message in the API had its final dot sent, is listed once, and arrived.
//! - A refused message got a 4yz reply and is not in the API.
//! - An arrived message is in the API. It arrived twice only if a kill cut the connection whose last message it was:
//!   there are at most as many duplicates as connections open at the kills.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard};

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use crate::installation::PATIENCE;

/// The number that identifies a message; it is part of the subject.
pub(crate) type Token = u64;
/// A message and one of its recipients.
pub(crate) type Delivery = (Token, String);
/// Index of a connection to the mail host.
pub(crate) type Line = usize;

/// The event at which a signal is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A client has read the 250 after its final dot.
    Acknowledged,
    /// The mail host has read a final dot and has not replied yet.
    Arrived,
}

/// State of a message at its client.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    Begun,
    Dotted,
    Acknowledged(String),
    Refused(String),
}

#[derive(Debug, Default)]
struct Connection {
    open: bool,
    /// True if it was open when the server was killed.
    cut: bool,
    last: Option<Delivery>,
}

#[derive(Debug)]
struct Fuse {
    moment: Moment,
    left: u64,
    pid: Pid,
    signal: Signal,
}

#[derive(Debug, Default)]
struct State {
    fates: BTreeMap<Token, Fate>,
    acknowledged: u64,
    connections: Vec<Connection>,
    arrivals: HashMap<Delivery, Vec<Line>>,
    put_off: HashSet<Delivery>,
    fuse: Option<Fuse>,
}

/// An email as the API shows it.
#[derive(Debug)]
pub(crate) struct Booked {
    pub(crate) id: String,
    /// The number in its subject.
    pub(crate) token: Token,
    pub(crate) status: String,
    /// Recipients of its `email.delivered` events, one entry per event.
    pub(crate) delivered: Vec<String>,
}

/// Counts of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) begun: usize,
    pub(crate) acknowledged: usize,
    /// Final dot sent, no reply read.
    pub(crate) unconfirmed: usize,
    /// Of the unconfirmed messages, those that the API lists.
    pub(crate) unconfirmed_booked: usize,
    pub(crate) refused: usize,
    /// Deliveries of acknowledged messages that did not arrive.
    pub(crate) lost: usize,
    pub(crate) arrived: usize,
    pub(crate) duplicates: usize,
    /// Connections to the mail host that were open at a kill.
    pub(crate) cut: usize,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { begun, acknowledged, unconfirmed, unconfirmed_booked, refused, lost, arrived, duplicates, cut } =
            self;
        write!(
            f,
            "begun {begun}, acknowledged {acknowledged}, lost {lost}, deliveries arrived {arrived}, duplicates \
             {duplicates} (connections cut {cut}), unconfirmed {unconfirmed} (booked {unconfirmed_booked}), \
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
        self.state.lock().unwrap()
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let made = change(&mut self.state());
        self.changed.send_replace(());
        made
    }

    /// Records a new message.
    pub(crate) fn begin(&self) -> Token {
        self.with(|state| {
            let token = state.fates.len() as Token;
            state.fates.insert(token, Fate::Begun);
            token
        })
    }

    /// Records that the client sends the final dot now.
    pub(crate) fn dot(&self, token: Token) {
        self.with(|state| state.fates.insert(token, Fate::Dotted));
    }

    /// Records that the client read the 250.
    pub(crate) fn acknowledge(&self, token: Token, id: &str) {
        self.with(|state| {
            state.fates.insert(token, Fate::Acknowledged(id.to_owned()));
            state.acknowledged += 1;
            state.burn(Moment::Acknowledged);
        });
    }

    /// Records that the client read another reply than 250.
    pub(crate) fn refuse(&self, token: Token, reply: &str) {
        println!("message {token} refused: {reply}");
        self.with(|state| state.fates.insert(token, Fate::Refused(reply.to_owned())));
    }

    /// Records a new connection to the mail host.
    pub(crate) fn open(&self) -> Line {
        self.with(|state| {
            state.connections.push(Connection { open: true, ..Connection::default() });
            state.connections.len() - 1
        })
    }

    /// Records that a connection to the mail host has ended.
    pub(crate) fn close(&self, line: Line) {
        self.with(|state| state.connections[line].open = false);
    }

    /// Records that a complete message arrived.
    pub(crate) fn arrive(&self, line: Line, delivery: Delivery) {
        self.with(|state| {
            state.connections[line].last = Some(delivery.clone());
            state.arrivals.entry(delivery).or_default().push(line);
            state.burn(Moment::Arrived);
        });
    }

    /// Returns whether the mail host defers this delivery: every tenth message, once.
    pub(crate) fn puts_off(&self, delivery: &Delivery) -> bool {
        delivery.0 % 10 == 3 && self.with(|state| state.put_off.insert(delivery.clone()))
    }

    /// Sends a signal to the server at the `left`-th event from now.
    pub(crate) fn light(&self, moment: Moment, left: u64, pid: Pid, signal: Signal) {
        self.state().fuse = Some(Fuse { moment, left, pid, signal });
    }

    async fn wait_for(&self, what: &str, wanted: impl Fn(&State) -> bool) {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            while !wanted(&self.state()) {
                changed.changed().await.unwrap();
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            panic!("timed out waiting for {what}; {}", self.figures());
        }
    }

    /// Waits for `more` further acknowledgements.
    pub(crate) async fn more_acknowledged(&self, more: u64) {
        let wanted = self.state().acknowledged + more;
        self.wait_for("acknowledgements", |state| state.acknowledged >= wanted).await;
    }

    /// Waits until every acknowledged message has arrived.
    pub(crate) async fn all_arrived(&self) {
        self.wait_for("acknowledged messages to arrive", |state| state.missing().next().is_none()).await;
    }

    /// Counts so far.
    pub(crate) fn figures(&self) -> Figures {
        let state = self.state();
        let count = |wanted: fn(&Fate) -> bool| state.fates.values().filter(|fate| wanted(fate)).count();
        Figures {
            begun: state.fates.len(),
            acknowledged: count(|fate| matches!(fate, Fate::Acknowledged(_))),
            unconfirmed: count(|fate| *fate == Fate::Dotted),
            unconfirmed_booked: 0,
            refused: count(|fate| matches!(fate, Fate::Refused(_))),
            lost: state.missing().count(),
            arrived: state.arrivals.len(),
            duplicates: state.arrivals.values().map(|lines| lines.len() - 1).sum(),
            cut: state.connections.iter().filter(|connection| connection.cut).count(),
        }
    }

    /// Compares the ledger with the emails in the API. Returns the counts and all broken invariants.
    pub(crate) fn settle(&self, books: &[Booked]) -> (Figures, Vec<String>) {
        let mut figures = self.figures();
        let state = self.state();
        let mut broken: Vec<String> = state.missing().map(|delivery| format!("lost: {delivery:?}")).collect();
        let mut by_token: HashMap<Token, &Booked> = HashMap::new();
        let mut ids = HashSet::new();
        for booked in books {
            if by_token.insert(booked.token, booked).is_some() || !ids.insert(&booked.id) {
                broken.push(format!("booked twice: {booked:?}"));
            }
            broken.extend(state.faults_of(booked));
        }
        for (token, fate) in &state.fates {
            let booked = by_token.get(token);
            match fate {
                Fate::Acknowledged(id) if booked.is_none_or(|booked| booked.id != *id) => {
                    broken.push(format!("acknowledged as {id}, in the API: {booked:?}"));
                }
                // A 4yz reply makes the client retry. `faults_of` reports it if the API lists the message anyway.
                Fate::Refused(reply) if !reply.starts_with('4') => {
                    broken.push(format!("refused for good: {reply}"));
                }
                Fate::Dotted => figures.unconfirmed_booked += usize::from(booked.is_some()),
                _ => {}
            }
        }
        for (delivery, lines) in &state.arrivals {
            if !by_token.contains_key(&delivery.0) {
                broken.push(format!("arrived but not in the API: {delivery:?}"));
            }
            let excused = lines.iter().filter(|line| state.excuses(**line, delivery)).count();
            if excused + 1 < lines.len() {
                broken.push(format!("arrived {} times, {excused} cut off: {delivery:?}", lines.len()));
            }
        }
        (figures, broken)
    }
}

impl State {
    /// Counts an event down; the last one sends the signal.
    fn burn(&mut self, moment: Moment) {
        let Some(fuse) = self.fuse.as_mut().filter(|fuse| fuse.moment == moment) else { return };
        fuse.left = fuse.left.saturating_sub(1);
        if fuse.left > 0 {
            return;
        }
        kill_process(fuse.pid, fuse.signal).unwrap();
        if fuse.signal == Signal::KILL {
            self.connections.iter_mut().for_each(|connection| connection.cut |= connection.open);
        }
        self.fuse = None;
    }

    /// Deliveries of acknowledged messages that have not arrived.
    fn missing(&self) -> impl Iterator<Item = Delivery> + '_ {
        self.fates
            .iter()
            .filter(|(_, fate)| matches!(fate, Fate::Acknowledged(_)))
            .flat_map(|(token, _)| recipients(*token).into_iter().map(|recipient| (*token, recipient)))
            .filter(|delivery| !self.arrivals.contains_key(delivery))
    }

    /// Returns whether a kill cut the connection while this was its last message.
    fn excuses(&self, line: Line, delivery: &Delivery) -> bool {
        let connection = &self.connections[line];
        connection.cut && connection.last.as_ref() == Some(delivery)
    }

    /// All problems of an email that the API lists.
    fn faults_of(&self, booked: &Booked) -> Vec<String> {
        let mut faults = Vec::new();
        match self.fates.get(&booked.token) {
            Some(Fate::Acknowledged(_) | Fate::Dotted) => {}
            other => faults.push(format!("never submitted completely (client state {other:?}): {booked:?}")),
        }
        let mut delivered = booked.delivered.clone();
        delivered.sort();
        if booked.status != "delivered" || delivered != recipients(booked.token) {
            faults.push(format!("not delivered exactly once to each: {booked:?}"));
        }
        for recipient in recipients(booked.token) {
            if !self.arrivals.contains_key(&(booked.token, recipient)) {
                faults.push(format!("marked as delivered but never arrived: {booked:?}"));
            }
        }
        faults
    }
}

/// A message that was acknowledged and arrived over a connection that no kill cut, and its email in the API.
fn one_delivered() -> (Ledger, Booked) {
    let ledger = Ledger::new();
    let (token, line) = (ledger.begin(), ledger.open());
    ledger.dot(token);
    ledger.acknowledge(token, "msg_0");
    let to = recipients(token);
    to.iter().for_each(|to| ledger.arrive(line, (token, to.clone())));
    (ledger, Booked { id: "msg_0".into(), token, status: "delivered".into(), delivered: to })
}

#[test]
fn the_ledger_detects_every_broken_invariant() {
    let broken = |ledger: &Ledger, books: &[Booked]| ledger.settle(books).1.join("; ");
    let (ledger, booked) = one_delivered();
    assert_eq!(broken(&ledger, std::slice::from_ref(&booked)), "");
    assert!(broken(&ledger, &[]).contains("acknowledged as msg_0, in the API: None"));
    ledger.arrive(0, (0, recipients(0).remove(0)));
    assert!(broken(&ledger, std::slice::from_ref(&booked)).contains("arrived 2 times"), "no kill cut it");

    let (ledger, booked) = one_delivered();
    let again = Booked { id: "msg_1".into(), delivered: Vec::new(), ..one_delivered().1 };
    let found = broken(&ledger, &[booked, again]);
    assert!(found.contains("booked twice") && found.contains("not delivered exactly once"), "{found}");

    let (ledger, booked) = one_delivered();
    let never = Booked { id: "msg_1".into(), token: ledger.begin(), ..one_delivered().1 };
    assert!(broken(&ledger, &[booked, never]).contains("never submitted completely (client state Some(Begun))"));

    let (ledger, booked) = one_delivered();
    let lost = ledger.begin();
    ledger.acknowledge(lost, "msg_1");
    let (figures, found) = ledger.settle(&[booked]);
    assert_eq!(figures.lost, recipients(lost).len());
    assert!(found.join("; ").contains("lost: "), "{found:?}");
}
