//! Sharing of memory and sessions between untrusted clients, accounts and relay hosts. Sizes are a sixteenth of the
//! defaults, so that the tests need less memory.

#![allow(clippy::unwrap_used, reason = "a test")]

#[allow(dead_code, reason = "shared with the dialogs")]
mod conversation;
mod loopback;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use conversation::Conversation;
use loopback::{Remember, Server, read_replies, send_text};
use model::id::AccountId;
use smtp::capacity::{Capacity, CapacityLimits};
use smtp::connection_limiter::ConnectionPermit;
use smtp::content_budget::ContentBudget;
use smtp::limits::SessionLimits;
use smtp::session::Input;
use smtp::settings::{ListenerRole, SessionSettings};
use tokio::time::Instant;

const MIB: usize = 1 << 20;
/// Half for submission, half for MX.
const BYTES: usize = 32 * MIB;
const LARGEST: usize = 3 * MIB;
const LARGEST_AT_MX: usize = 9 * MIB / 4;
const ENVELOPE: &str = "MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n";

/// The settings of submission and MX, as the server opens them.
struct World {
    capacity: Capacity,
    submission: Arc<SessionSettings>,
    mx: Arc<SessionSettings>,
}

impl World {
    fn new() -> Self {
        let sizes = CapacityLimits {
            sessions_max: 10_000,
            bytes_max: BYTES,
            message_bytes_max: LARGEST as u64,
            mx_message_bytes_max: LARGEST_AT_MX as u64,
        };
        let capacity = Capacity::new(sizes, 1);
        let settings = |role: ListenerRole, limits: SessionLimits, largest: usize| {
            capacity.add_listener(role);
            let limits = SessionLimits { message_bytes_max: largest as u64, ..limits };
            let budget = Arc::clone(capacity.content_budget(role));
            Arc::new(SessionSettings::new(role, "mx.example".parse().unwrap(), limits, budget, true))
        };
        let submission = settings(ListenerRole::Submission, SessionLimits::default(), LARGEST);
        let mx = settings(ListenerRole::Mx, SessionLimits::for_mx(), LARGEST_AT_MX);
        Self { capacity, submission, mx }
    }

    /// An MX session of an untrusted client, with a message in progress.
    fn untrusted_session(&self, address: &str) -> Conversation {
        let mut client = Conversation::with(Arc::clone(&self.mx), address, false);
        client.send(format!("EHLO x\r\n{ENVELOPE}").as_bytes());
        assert!(take_replies(&mut client).ends_with("\r\n354 End data with <CR><LF>.<CR><LF>\r\n"));
        client
    }

    /// A submission session that is authenticated for an account.
    fn customer(&self, account: u8) -> Conversation {
        let mut customer = Conversation::with(Arc::clone(&self.submission), "198.51.100.1", true);
        customer.account = Some(AccountId::from_bytes([account; 16]));
        customer.send(b"EHLO x\r\nAUTH PLAIN AHBvc3RyaWRlcgBzZWNyZXQ=\r\n");
        assert!(take_replies(&mut customer).contains("\r\n235 "));
        customer
    }
}

fn take_replies(conversation: &mut Conversation) -> String {
    String::from_utf8(conversation.take_replies()).unwrap()
}

/// Content of this size without its end.
fn lines(bytes: usize) -> Vec<u8> {
    format!("{}\r\n", "x".repeat(1_022)).repeat(bytes / 1_024).into_bytes()
}

/// Sends content in pieces, as they arrive from a socket.
fn send_content(conversation: &mut Conversation, bytes: usize) {
    lines(bytes).chunks(8 << 10).for_each(|piece| conversation.send(piece));
}

/// Sends a message of this size and returns the reply.
fn mail(conversation: &mut Conversation, bytes: usize) -> String {
    conversation.send(ENVELOPE.as_bytes());
    let replies = take_replies(conversation);
    if !replies.contains("\r\n354 ") {
        return replies.lines().last().unwrap().to_owned();
    }
    send_content(conversation, bytes);
    conversation.send(b".\r\n");
    take_replies(conversation)
}

/// Regression: sixteen unfinished messages took the whole memory, and submission replied 452.
#[test]
fn unfinished_messages_at_mx_do_not_use_the_memory_of_submission() {
    let world = World::new();
    let mut clients: Vec<_> = (0..16).map(|n| world.untrusted_session(&format!("192.0.2.{}", n % 4))).collect();
    clients.iter_mut().for_each(|client| send_content(client, 3 * MIB / 2));
    for n in 1..4 {
        assert!(mail(&mut world.customer(n), LARGEST).starts_with("250 2.0.0 "));
    }
    // No address has more memory than its largest message needs, so others can deliver.
    assert!(world.capacity.content_budget(ListenerRole::Mx).used_bytes() <= 4 * LARGEST_AT_MX);
    let mut other = world.untrusted_session("203.0.113.99");
    send_content(&mut other, MIB);
    other.send(b".\r\n");
    assert!(take_replies(&mut other).starts_with("250 2.0.0 "));
}

#[test]
fn a_site_of_ipv6_has_one_share_of_the_memory() {
    let world = World::new();
    let mut clients: Vec<_> = (0..16).map(|n| world.untrusted_session(&format!("2001:db8:0:{n:x}::1"))).collect();
    clients.iter_mut().for_each(|client| send_content(client, MIB));
    assert!(world.capacity.content_budget(ListenerRole::Mx).used_bytes() <= LARGEST_AT_MX);
    assert_eq!(mail_end(&mut clients[15]), "452 4.3.1 ");
    let mut other = world.untrusted_session("2001:db8:0:100::1");
    send_content(&mut other, MIB);
    assert_eq!(mail_end(&mut other), "250 2.0.0 ");
}

/// Regression: an untrusted client with a /48 has 256 sites, and took all memory.
#[test]
fn a_network_has_a_share_of_the_memory_and_of_the_sessions_at_mx() {
    let world = World::new();
    let mx = world.capacity.content_budget(ListenerRole::Mx);
    let site = |n: usize| format!("2001:db8:0:{:x}::1", n << 8);
    let mut clients: Vec<_> = (0..16).map(|n| world.untrusted_session(&site(n))).collect();
    clients.iter_mut().for_each(|client| send_content(client, 2 * MIB));
    assert!((3 * MIB..=2 * LARGEST_AT_MX).contains(&mx.used_bytes()), "{}", mx.used_bytes());
    let mut other = world.untrusted_session("2001:db8:1::1");
    send_content(&mut other, 2 * MIB);
    assert_eq!(mail_end(&mut other), "250 2.0.0 ");

    let peers = &world.capacity.connections;
    let come = |address: String| {
        let (address, now) = (address.parse().unwrap(), Instant::now());
        peers.acquire_slot(ListenerRole::Mx, Some(address), now)?.admit(address, 50, now)
    };
    let idle: Vec<ConnectionPermit> =
        (0..256).flat_map(|n| (0..50).map(move |_| n)).filter_map(|n| come(site(n))).collect();
    assert_eq!(idle.len(), 5_000 / 16 * 2);
    let more: Vec<ConnectionPermit> = (0..12_800).filter_map(|n| come(format!("192.0.2.{}", n / 50))).collect();
    assert_eq!(more.len(), 5_000 / 16 * 4);
    assert!(come("192.0.3.1".to_owned()).is_some() && come("2001:db8:1::1".to_owned()).is_some());
}

fn mail_end(conversation: &mut Conversation) -> String {
    conversation.send(b"\r\n.\r\n");
    take_replies(conversation)[..10].to_owned()
}

#[test]
fn one_tenant_leaves_memory_to_the_others() {
    let world = World::new();
    let mut busy: Vec<_> = (0..16).map(|_| world.customer(1)).collect();
    for session in &mut busy {
        session.send(ENVELOPE.as_bytes());
        send_content(session, 3 * MIB / 2);
    }
    // While no other account needs memory, one account gets half.
    let used = world.capacity.content_budget(ListenerRole::Submission).used_bytes();
    assert!((BYTES / 8..=BYTES / 4).contains(&used), "{used}");
    for other in 2..5 {
        assert!(mail(&mut world.customer(other), LARGEST).starts_with("250 2.0.0 "));
    }
    drop(busy);
    assert!(mail(&mut world.customer(1), LARGEST).starts_with("250 2.0.0 "));
}

/// Regression: six untrusted clients that sent just fast enough held the memory indefinitely, and no other large
/// message was accepted.
#[test]
fn unauthenticated_messages_at_minimum_speed_are_aborted_for_a_newcomer() {
    let world = World::new();
    let mut clients: Vec<_> = (0..6).map(|n| world.untrusted_session(&format!("192.0.{n}.1"))).collect();
    clients.iter_mut().for_each(|client| send_content(client, 5 * MIB / 4));
    for second in 1..=61 {
        for client in &mut clients {
            client.step(Input::Now(Duration::from_secs(second)));
            send_content(client, 16 << 10);
        }
    }
    assert!(clients.iter_mut().all(|client| take_replies(client).is_empty()));
    let used = world.capacity.content_budget(ListenerRole::Mx).used_bytes();
    assert!(used > 13 * MIB, "{used}");
    let mut newcomer = world.untrusted_session("198.51.100.1");
    newcomer.step(Input::Now(Duration::from_secs(61)));
    send_content(&mut newcomer, 2 * MIB - 1_024);
    assert_eq!(mail_end(&mut newcomer), "250 2.0.0 ");
    let cut = clients.iter_mut().filter_map(|client| {
        client.step(Input::Now(Duration::from_secs(61)));
        take_replies(client).starts_with("421 4.3.1 Memory is low").then_some(())
    });
    assert_eq!(cut.count(), 1);
}

/// Regression: buffers were doubled, so one of two messages just below half of an address's share was refused.
#[test]
fn memory_of_large_messages_grows_in_steps() {
    let sizes = CapacityLimits {
        sessions_max: 100,
        bytes_max: 256 * MIB,
        message_bytes_max: 0,
        mx_message_bytes_max: 36 * MIB as u64,
    };
    let capacity = Capacity::new(sizes, 1);
    capacity.add_listener(ListenerRole::Mx);
    let limits = SessionLimits::for_mx();
    let settings = SessionSettings::new(
        ListenerRole::Mx,
        "mx.example".parse().unwrap(),
        limits,
        Arc::clone(capacity.content_budget(ListenerRole::Mx)),
        false,
    );
    let settings = Arc::new(settings);
    let begin = |mail: &str| {
        let mut session = Conversation::with(Arc::clone(&settings), "192.0.2.1", false);
        session.send(format!("EHLO x\r\n{mail}\r\nRCPT TO:<c@d.example>\r\nDATA\r\n").as_bytes());
        take_replies(&mut session);
        session
    };
    let declared = format!("MAIL FROM:<a@b.example> SIZE={}", 17 * MIB + 2);
    let mut both = [begin(&declared), begin("MAIL FROM:<a@b.example>")];
    for _ in 0..17 {
        both.iter_mut().for_each(|session| send_content(session, MIB));
    }
    assert_eq!(both.each_mut().map(mail_end), ["250 2.0.0 "; 2]);
}

/// A declared SIZE is compared with the free memory before the content is sent.
#[test]
fn a_declared_size_is_refused_before_the_content() {
    let world = World::new();
    let mut first = world.untrusted_session("192.0.2.1");
    send_content(&mut first, 2 * MIB);
    let mut second = Conversation::with(Arc::clone(&world.mx), "192.0.2.1", false);
    second.send(b"EHLO x\r\nMAIL FROM:<a@b.example> SIZE=1048576\r\n");
    assert!(take_replies(&mut second).contains("\r\n452 4.3.1 "));
    let mut other = Conversation::with(Arc::clone(&world.mx), "192.0.2.2", false);
    other.send(b"EHLO x\r\nMAIL FROM:<a@b.example> SIZE=1048576\r\n");
    assert!(take_replies(&mut other).ends_with("\r\n250 2.1.0 Sender OK\r\n"));
}

/// A listener with a budget of one mebibyte, of which each session holds a part.
struct Slow {
    settings: Arc<SessionSettings>,
    sessions: Vec<Conversation>,
}

impl Slow {
    fn begin(&mut self, now: u64, kib: usize) -> usize {
        let address = format!("192.0.{}.1", self.sessions.len() + 2);
        let mut session = Conversation::with(Arc::clone(&self.settings), &address, false);
        session.step(Input::Now(Duration::from_secs(now)));
        session.send(format!("EHLO x\r\n{ENVELOPE}").as_bytes());
        send_content(&mut session, kib << 10);
        take_replies(&mut session);
        self.sessions.push(session);
        self.sessions.len() - 1
    }

    fn send(&mut self, session: usize, now: u64, bytes: usize) {
        self.sessions[session].step(Input::Now(Duration::from_secs(now)));
        self.sessions[session].send(&vec![b'x'; bytes]);
    }

    /// Returns the sessions that were aborted because they are slow.
    fn cut(&mut self, now: u64) -> Vec<usize> {
        let mut cut = Vec::new();
        for (n, session) in self.sessions.iter_mut().enumerate() {
            session.step(Input::Now(Duration::from_secs(now)));
            if take_replies(session).starts_with("421 4.3.1 Memory is low") {
                assert!(session.closed);
                cut.push(n);
            }
        }
        cut
    }
}

/// Regression: clients that sent 500 bytes a second held memory indefinitely.
#[test]
fn the_slowest_messages_are_aborted_first_when_memory_is_short() {
    let budget = ContentBudget::new(MIB);
    let limits = SessionLimits::for_mx();
    let settings =
        SessionSettings::new(ListenerRole::Mx, "mx.example".parse().unwrap(), limits, Arc::clone(&budget), false);
    let mut all = Slow { settings: Arc::new(settings), sessions: Vec::new() };
    let (silent, slow, slower) = (all.begin(0, 240), all.begin(0, 240), all.begin(0, 110));
    let (fast, small) = (all.begin(0, 80), all.begin(50, 60));
    all.send(slow, 30, 10_000);
    all.send(slower, 30, 100);
    all.send(fast, 59, 32_000);
    assert!(budget.free_bytes() < MIB / 4);
    assert_eq!(all.cut(60), [0; 0], "no session requests memory");
    // A new message aborts the slowest one; memory is then no longer short.
    let newcomer = all.begin(61, 20);
    assert_eq!(all.cut(61), [silent]);
    // Another one that needs more memory than is free aborts the next slowest.
    let large = all.begin(62, 200);
    assert_eq!(all.cut(62), [slower]);
    for session in [slow, fast, small, newcomer, large] {
        assert_eq!(mail_end(&mut all.sessions[session]), "250 2.0.0 ", "{session}");
    }
    drop(all);
    assert_eq!(budget.free_bytes(), MIB);
}

#[test]
fn a_slow_message_is_received_while_memory_is_not_short() {
    let world = World::new();
    let mut slow = world.untrusted_session("192.0.2.1");
    for second in 1..600 {
        slow.step(Input::Now(Duration::from_secs(second)));
        slow.send(&[b'x'; 500]);
        assert_eq!(take_replies(&mut slow), "");
    }
    slow.send(b"\r\n.\r\n");
    assert!(take_replies(&mut slow).starts_with("250 2.0.0 "));
}

/// A BDAT message holds memory while the next chunk is awaited.
#[test]
fn a_message_between_two_chunks_counts_as_slow_too() {
    let budget = ContentBudget::new(MIB);
    let settings = SessionSettings::new(
        ListenerRole::Mx,
        "mx.example".parse().unwrap(),
        SessionLimits::for_mx(),
        Arc::clone(&budget),
        false,
    );
    let settings = Arc::new(settings);
    let mut idle = Conversation::with(Arc::clone(&settings), "192.0.2.1", false);
    idle.send(b"EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nBDAT 512000\r\n");
    send_content(&mut idle, 512_000);
    assert!(take_replies(&mut idle).ends_with("250 2.0.0 512000 bytes received\r\n"));
    let mut all = Slow { settings, sessions: vec![idle] };
    let newcomer = all.begin(61, 300);
    assert_eq!(all.cut(61), [0]);
    assert_eq!(mail_end(&mut all.sessions[newcomer]), "250 2.0.0 ");
}

/// A session whose message is aborted waits for its client, so it must be woken.
#[tokio::test]
async fn an_aborted_message_gets_a_reply_immediately() {
    let budget = ContentBudget::new(MIB);
    let server = Server::sharing(
        smtp::connection_limiter::ConnectionLimiter::new(64, 1),
        Arc::clone(&budget),
        &[],
        ListenerRole::Mx,
        SessionLimits::for_mx(),
        false,
        Remember::default(),
    );
    let mut slow = server.connect().await;
    read_replies(&mut slow, 1).await;
    send_text(&mut slow, &format!("EHLO x\r\n{ENVELOPE}")).await;
    read_replies(&mut slow, 4).await;
    send_text(&mut slow, &String::from_utf8(lines(500 << 10)).unwrap()).await;
    while budget.used_bytes() < 500 << 10 {
        tokio::task::yield_now().await;
    }
    // A new session a minute later, by its own clock.
    let settings = SessionSettings::new(
        ListenerRole::Mx,
        "mx.example".parse().unwrap(),
        SessionLimits::for_mx(),
        Arc::clone(&budget),
        false,
    );
    let mut all = Slow { settings: Arc::new(settings), sessions: Vec::new() };
    let newcomer = all.begin(120, 300);
    assert_eq!(mail_end(&mut all.sessions[newcomer]), "250 2.0.0 ");
    assert!(read_replies(&mut slow, 1).await.starts_with("421 4.3.1 Memory is low"));
}

/// Regression: silent sessions from many addresses held all slots of MX for five minutes, and all of submission's for
/// half a minute before the login.
#[test]
fn unauthenticated_sessions_have_shorter_timeouts_while_sessions_are_short() {
    let world = World::new();
    let at = |settings: &Arc<SessionSettings>, is_short: bool, input: &str, seconds: u64| {
        let mut session = Conversation::with(Arc::clone(settings), "192.0.2.1", true);
        session.send(input.as_bytes());
        take_replies(&mut session);
        session.session.set_overloaded(is_short);
        session.step(Input::Now(Duration::from_secs(seconds)));
        take_replies(&mut session)
    };
    let (mx, submission) = (&world.mx, &world.submission);
    let log_in = "EHLO x\r\nAUTH PLAIN AHBvc3RyaWRlcgBzZWNyZXQ=\r\n";
    let content = format!("EHLO x\r\n{ENVELOPE}");
    for (settings, is_short, input, patience) in [
        (mx, false, "EHLO x\r\n", 300),
        (mx, true, "EHLO x\r\n", 30),
        (mx, false, &content, 600),
        (mx, true, &content, 60),
        (submission, false, "", 30),
        (submission, true, "", 5),
        (submission, false, log_in, 300),
        (submission, true, log_in, 300),
    ] {
        assert_eq!(at(settings, is_short, input, patience - 1), "", "{input} {is_short}");
        assert!(at(settings, is_short, input, patience).starts_with("421 4.4.2 "), "{input} {is_short}");
    }
}

/// A session that sends NOOP from time to time, or 500 bytes a second, is not idle but holds a slot.
#[test]
fn mx_sessions_without_mail_are_closed_while_sessions_are_short() {
    let world = World::new();
    let mut idler = Conversation::with(Arc::clone(&world.mx), "192.0.2.1", false);
    let (mut sender, mut slow) = (world.untrusted_session("192.0.2.2"), world.untrusted_session("192.0.2.3"));
    sender.send(b".\r\n");
    take_replies(&mut sender);
    let mut ended = [None; 3];
    for second in (10..=300).step_by(10) {
        for (session, ended) in [&mut idler, &mut sender, &mut slow].into_iter().zip(&mut ended) {
            session.session.set_overloaded(true);
            session.step(Input::Now(Duration::from_secs(second)));
            if session.closed {
                ended.get_or_insert(second);
            }
        }
        idler.send(b"NOOP\r\n");
        assert!(mail(&mut sender, 1_024).starts_with("250 2.0.0 "));
        slow.send(&[b'x'; 5_000]);
    }
    assert_eq!(ended, [Some(120), None, Some(70)]);
    assert!(take_replies(&mut idler).contains("421 4.4.2 Timeout: no message sent"));
    assert!(take_replies(&mut slow).contains("421 4.4.2 Timeout: the message is arriving too slowly"));
}

/// Regression: a message of many small chunks was aborted between two of them, however fast it arrived.
#[test]
fn bdat_messages_have_the_same_time_as_data_while_sessions_are_short() {
    let world = World::new();
    let begin = |address| {
        let mut session = Conversation::with(Arc::clone(&world.mx), address, false);
        session.send(b"EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n");
        session
    };
    let (mut fast, mut slow, mut silent) = (begin("192.0.2.1"), begin("192.0.2.2"), begin("192.0.2.3"));
    silent.send(b"BDAT 10\r\n0123456789");
    let mut ended = [None; 3];
    for second in (4..=40 * 4).step_by(4) {
        for (session, ended) in [&mut fast, &mut slow, &mut silent].into_iter().zip(&mut ended) {
            session.session.set_overloaded(true);
            session.step(Input::Now(Duration::from_secs(second)));
            if session.closed {
                ended.get_or_insert(second);
            }
        }
        for (session, bytes) in [(&mut fast, 48 << 10), (&mut slow, 20 << 10)] {
            session.send(format!("BDAT {bytes}\r\n").as_bytes());
            send_content(session, bytes);
        }
    }
    assert_eq!(ended, [None, Some(92), Some(32)]);
    assert!(take_replies(&mut slow).contains("421 4.4.2 Timeout: the message is arriving too slowly"));
    assert!(take_replies(&mut silent).contains("421 4.4.2 Timeout: no complete input"));
    fast.send(b"BDAT 0 LAST\r\n");
    assert!(take_replies(&mut fast).ends_with("250 2.0.0 OK msg_1\r\n"));
}

/// Sessions that began before an overload get the shorter timeouts too: while waiting for a command, and during a
/// handshake.
#[tokio::test(start_paused = true)]
async fn waiting_sessions_are_closed_once_sessions_are_short() {
    for (role, limits, implicit_tls, patience) in [
        (ListenerRole::Mx, SessionLimits::for_mx(), false, 30),
        (ListenerRole::Submission, SessionLimits::default(), false, 5),
        (ListenerRole::Submission, SessionLimits::default(), true, 5),
    ] {
        let peers = smtp::connection_limiter::ConnectionLimiter::new(64, 1);
        let server = Server::sharing(
            Arc::clone(&peers),
            ContentBudget::new(MIB),
            &[],
            role,
            limits,
            implicit_tls,
            Remember::default(),
        );
        let began = Instant::now();
        let mut silent = server.connect().await;
        if !implicit_tls {
            assert!(read_replies(&mut silent, 1).await.starts_with("220 "));
        }
        while peers.sessions() == 0 {
            tokio::task::yield_now().await;
        }
        let held: Vec<_> = std::iter::from_fn(|| peers.acquire_slot(role, None, Instant::now())).collect();
        let reply = read_replies(&mut silent, 1).await;
        assert!(reply.starts_with("421 4.4.2 ") || implicit_tls && reply.is_empty(), "{reply}");
        let took = began.elapsed();
        assert!(took <= Duration::from_secs(patience + 5), "{took:?}");
        drop(held);
    }
}

#[test]
fn one_relay_host_leaves_sessions_and_memory_to_the_others() {
    let world = World::new();
    world.capacity.add_listener(ListenerRole::Relay);
    let (budget, peers) = (world.capacity.content_budget(ListenerRole::Relay), &world.capacity.connections);
    let limits = SessionLimits { message_bytes_max: LARGEST as u64, ..SessionLimits::for_relay() };
    let per_address_max = limits.sessions_per_address_max;
    let settings =
        SessionSettings::new(ListenerRole::Relay, "mx.example".parse().unwrap(), limits, Arc::clone(budget), false);
    let settings = Arc::new(settings);
    let host = |address: &str| {
        let mut host = Conversation::with(Arc::clone(&settings), address, false);
        host.send(b"EHLO x\r\n");
        take_replies(&mut host);
        host
    };
    let mut busy: Vec<_> = (0..16).map(|_| host("198.51.100.1")).collect();
    for session in &mut busy {
        session.send(ENVELOPE.as_bytes());
        send_content(session, MIB);
    }
    // The relay listener has a fifth of the memory, of which a single host can use half.
    assert!((BYTES / 15..=BYTES / 10).contains(&budget.used_bytes()), "{}", budget.used_bytes());
    assert!(mail(&mut host("198.51.100.2"), MIB).starts_with("250 2.0.0 "));
    drop(busy);
    assert!(mail(&mut host("198.51.100.1"), LARGEST).starts_with("250 2.0.0 "));

    let come = |address: IpAddr| {
        let now = Instant::now();
        peers.acquire_slot(ListenerRole::Relay, Some(address), now)?.admit(address, per_address_max, now)
    };
    let held: Vec<ConnectionPermit> = (0..2_000).filter_map(|_| come([198, 51, 100, 1].into())).collect();
    assert_eq!(held.len(), 1_000);
    let others: Vec<ConnectionPermit> = (0..2_000).filter_map(|_| come([198, 51, 100, 2].into())).collect();
    assert_eq!(others.len(), 500);
    assert!(come([198, 51, 100, 3].into()).is_some());
}

/// Regression: they took the sessions of all listeners, and submission replied 421.
#[tokio::test]
async fn idle_sessions_at_mx_do_not_use_the_sessions_of_submission() {
    let world = World::new();
    let peers = &world.capacity.connections;
    let client = |address: IpAddr| -> Option<ConnectionPermit> {
        let now = Instant::now();
        peers.acquire_slot(ListenerRole::Mx, Some(address), now)?.admit(address, 50, now)
    };
    let addresses: Vec<IpAddr> = (0..210).map(|n| [192, 0, n, 1].into()).collect();
    let idle: Vec<_> = addresses.iter().flat_map(|address| (0..50).filter_map(|_| client(*address))).collect();
    assert_eq!(peers.sessions_for(ListenerRole::Mx), idle.len());
    assert!((4_000..=5_000).contains(&idle.len()), "{}", idle.len());
    let server = Server::sharing(
        Arc::clone(peers),
        Arc::clone(world.capacity.content_budget(ListenerRole::Submission)),
        &[],
        ListenerRole::Submission,
        SessionLimits::default(),
        true,
        Remember::default(),
    );
    let mut stream = server.secure(server.connect().await).await;
    assert!(read_replies(&mut stream, 1).await.starts_with("220 "));
    send_text(&mut stream, "EHLO x\r\nAUTH PLAIN AHBvc3RyaWRlcgBzZWNyZXQ=\r\n").await;
    read_replies(&mut stream, 2).await;
    send_text(&mut stream, ENVELOPE).await;
    read_replies(&mut stream, 3).await;
    send_text(&mut stream, "From: a@b.example\r\n\r\nhi\r\n.\r\n").await;
    assert_eq!(read_replies(&mut stream, 1).await, "250 2.0.0 OK msg_1\r\n");
}
