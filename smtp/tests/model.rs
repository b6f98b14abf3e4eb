//! Tests the session against a model of RFC 5321's states, with random sequences of commands. Also with random bytes:
//! it must not panic, and its replies must not depend on how the bytes are split.

#![allow(clippy::unwrap_used, reason = "a test")]

mod conversation;

use conversation::{BUDGET_BYTES, Conversation};
use proptest::prelude::*;
use smtp::limits::SessionLimits;
use smtp::settings::ListenerRole;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Command {
    Ehlo,
    Helo,
    BadHelo,
    Mail { binary: bool },
    BadMail,
    Rcpt,
    BadRcpt,
    Data { bare: bool },
    Bdat { bytes: usize, last: bool, bare: bool },
    Rset,
    Noop,
    Vrfy,
    Unknown,
    StartTls,
    Auth { good: bool },
    TooLong,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Greeted {
    No,
    Helo,
    Ehlo,
}

/// A model of the order of commands according to RFC 5321, 3030, 3207 and 4954.
#[derive(Debug)]
struct Model {
    submission: bool,
    greeted: Greeted,
    secured: bool,
    authenticated: bool,
    failures: u32,
    /// Number of recipients, whether a BDAT chunk was accepted, whether BODY=BINARYMIME was given.
    transaction: Option<(usize, bool, bool)>,
    taken: usize,
    /// The last command was a refused DATA.
    refused_data: bool,
    closed: bool,
}

impl Model {
    /// Returns the bytes of a command and the codes of its replies.
    fn step(&mut self, command: Command) -> (Vec<u8>, Vec<u16>) {
        let text = |t: &str| format!("{t}\r\n").into_bytes();
        let after_refused_data = std::mem::take(&mut self.refused_data);
        match command {
            Command::Ehlo => (text("EHLO x"), self.greet(Greeted::Ehlo)),
            Command::Helo => (text("HELO x"), self.greet(Greeted::Helo)),
            Command::BadHelo => (text("EHLO"), vec![501]),
            Command::Mail { binary } => {
                let parameter = if binary { " BODY=BINARYMIME" } else { "" };
                (text(&format!("MAIL FROM:<a@b.example>{parameter}")), vec![self.mail(Some(binary))])
            }
            Command::BadMail => (text("MAIL FROM:<a"), vec![self.mail(None)]),
            Command::Rcpt => (text("RCPT TO:<c@d.example>"), vec![self.rcpt(true)]),
            Command::BadRcpt => (text("RCPT TO:<c>"), vec![self.rcpt(false)]),
            Command::Data { bare } => self.data(bare),
            Command::Bdat { bytes, last, bare } => self.bdat(bytes, last, bare),
            Command::Rset => {
                self.transaction = None;
                (text("RSET"), vec![250])
            }
            Command::Noop => (text("NOOP"), vec![250]),
            Command::Vrfy => (text("VRFY a"), vec![252]),
            Command::Unknown => (text("XYZZY \u{e9}"), vec![self.unknown(after_refused_data)]),
            Command::StartTls => (text("STARTTLS"), vec![self.start_tls()]),
            Command::Auth { good } => self.auth(good),
            Command::TooLong => (text(&"x".repeat(5_000)), vec![self.unknown(after_refused_data)]),
        }
    }

    /// After a refused DATA the line is content, which ends the session.
    fn unknown(&mut self, after_refused_data: bool) -> u16 {
        self.closed = after_refused_data;
        if after_refused_data { 421 } else { 500 }
    }

    fn greet(&mut self, how: Greeted) -> Vec<u16> {
        self.greeted = how;
        self.transaction = None;
        vec![250]
    }

    fn mail(&mut self, parameters: Option<bool>) -> u16 {
        match (self.greeted, self.transaction, parameters) {
            (Greeted::No, ..) | (_, Some(_), _) => 503,
            _ if self.submission && !self.authenticated => 530,
            (_, None, None) => 501,
            (Greeted::Helo, None, Some(true)) => 555,
            (_, None, Some(binary)) => {
                self.transaction = Some((0, false, binary));
                250
            }
        }
    }

    fn rcpt(&mut self, good: bool) -> u16 {
        match &mut self.transaction {
            Some((recipients, false, _)) if good => {
                *recipients += 1;
                250
            }
            Some((_, false, _)) => 501,
            _ => 503,
        }
    }

    fn data(&mut self, bare: bool) -> (Vec<u8>, Vec<u16>) {
        let mut wire = b"DATA\r\n".to_vec();
        // Any reply to DATA ends the transaction.
        self.refused_data = !matches!(self.transaction, Some((1.., false, false)));
        let codes = match self.transaction.take() {
            None | Some((_, true, _)) => vec![503],
            Some((0, ..)) => vec![554],
            Some((_, _, true)) => vec![503],
            Some(_) => {
                wire.extend_from_slice(if bare { b"hi\n.\nNOOP\r\n.\r\n" } else { b"hi\r\n..\r\nNOOP\r\n.\r\n" });
                self.taken += usize::from(!bare);
                vec![354, if bare { 550 } else { 250 }]
            }
        };
        (wire, codes)
    }

    fn bdat(&mut self, bytes: usize, last: bool, bare: bool) -> (Vec<u8>, Vec<u16>) {
        let mut wire = format!("BDAT {bytes}{}\r\n", if last { " LAST" } else { "" }).into_bytes();
        wire.extend(std::iter::repeat_n(if bare { b'\n' } else { b'x' }, bytes));
        let code = match &mut self.transaction {
            None if self.greeted == Greeted::No => 503,
            None if self.submission && !self.authenticated => 530,
            None => 503,
            Some((0, ..)) => 554,
            // No empty line is sent, so the bytes are header, which consists of lines with BINARYMIME too.
            Some(_) if bare && bytes > 0 => 550,
            Some((_, chunks, _)) => {
                *chunks = true;
                self.taken += usize::from(last);
                250
            }
        };
        if code != 250 || last {
            self.transaction = None;
        }
        (wire, vec![code])
    }

    fn start_tls(&mut self) -> u16 {
        if self.secured || self.greeted != Greeted::Ehlo || self.transaction.is_some() {
            return 503;
        }
        (self.secured, self.greeted, self.authenticated) = (true, Greeted::No, false);
        220
    }

    fn auth(&mut self, good: bool) -> (Vec<u8>, Vec<u16>) {
        let secret = if good { "AHBvc3RyaWRlcgBzZWNyZXQ=" } else { "AHBvc3RyaWRlcgB3cm9uZw==" };
        let code = if !self.submission {
            502
        } else if !self.secured {
            538
        } else if self.greeted != Greeted::Ehlo || self.authenticated || self.transaction.is_some() {
            503
        } else if good {
            self.authenticated = true;
            235
        } else {
            self.failures += 1;
            self.closed = self.failures == SessionLimits::default().auth_failures_max;
            535
        };
        let last_word = self.closed.then_some(421);
        (format!("AUTH PLAIN {secret}\r\n").into_bytes(), [code].into_iter().chain(last_word).collect())
    }
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        4 => Just(Command::Ehlo),
        1 => Just(Command::Helo),
        1 => Just(Command::BadHelo),
        6 => proptest::bool::weighted(0.2).prop_map(|binary| Command::Mail { binary }),
        1 => Just(Command::BadMail),
        6 => Just(Command::Rcpt),
        1 => Just(Command::BadRcpt),
        5 => proptest::bool::weighted(0.2).prop_map(|bare| Command::Data { bare }),
        5 => (0usize..20, proptest::bool::ANY, proptest::bool::weighted(0.1))
            .prop_map(|(bytes, last, bare)| Command::Bdat { bytes, last, bare }),
        1 => Just(Command::Rset),
        1 => Just(Command::Noop),
        1 => Just(Command::Vrfy),
        1 => Just(Command::Unknown),
        1 => Just(Command::StartTls),
        2 => proptest::bool::weighted(0.7).prop_map(|good| Command::Auth { good }),
        1 => Just(Command::TooLong),
    ]
}

fn limits() -> SessionLimits {
    SessionLimits { errors_max: u32::MAX, junk_max: u32::MAX, ..SessionLimits::default() }
}

fn codes(wire: &[u8]) -> Vec<u16> {
    let text = std::str::from_utf8(wire).unwrap();
    assert!(text.is_empty() || text.ends_with("\r\n"));
    text.split_terminator("\r\n").filter(|l| l.as_bytes()[3] == b' ').map(|l| l[..3].parse().unwrap()).collect()
}

/// Commands and fragments of them, and bytes that are invalid.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => proptest::sample::select(vec![
            "EHLO x\r\n", "MAIL FROM:<a@b.example>\r\n", "RCPT TO:<c@d.example>\r\n", "DATA\r\n", ".\r\n", "BDAT 3\r\n",
            "BDAT 2 LAST\r\n", "BDAT 9999999999\r\n", "RSET\r\n", "QUIT\r\n", "AUTH LOGIN\r\n", "*\r\n", "cG9zdHJpZGVy\r\n",
            "AUTH PLAIN ", "MAIL FROM:<", "\" >@", " SIZE=", " NOTIFY=", "NEVER", ",", "ORCPT=rfc822;", " BODY=BINARYMIME",
            "\r\n", "\n", "\r", "\0", "STARTTLS\r\n", "GET / HTTP/1.1\r\n", "VRFY \u{e9}\r\n", "\r\n.\r\n",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        2 => proptest::collection::vec(any::<u8>(), 0..12),
        1 => (0usize..14_000).prop_map(|n| vec![b'y'; n]),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

/// Returns whether two runs agree. Bytes in one piece with a refused DATA end the session as content; until then the
/// replies are equal.
fn agree<T: PartialEq>(one: &(String, Vec<T>), other: &(String, Vec<T>)) -> bool {
    let until = |run: &(String, Vec<T>)| {
        let last = run.0.trim_end().rfind("\r\n").map_or(0, |n| n + 2);
        let ended = run.0.get(last..).is_some_and(|reply| reply.starts_with("421 4.5.0 "));
        if ended { (last, true) } else { (run.0.len(), false) }
    };
    let ((one_end, one_ended), (other_end, other_ended)) = (until(one), until(other));
    let (first, second) = (&one.0[..one_end], &other.0[..other_end]);
    let has_same_replies = (one_ended && second.starts_with(first)) || (other_ended && first.starts_with(second));
    let has_same_messages = one.1.iter().zip(&other.1).all(|(one, other)| one == other);
    if one_ended || other_ended { has_same_replies && has_same_messages } else { one == other }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn every_command_gets_the_replies_of_the_model(
        commands in proptest::collection::vec(command(), 0..60),
        submission in proptest::bool::ANY,
        grouped in proptest::bool::ANY,
    ) {
        let role = if submission { ListenerRole::Submission } else { ListenerRole::Relay };
        let mut talk = Conversation::new(role, limits(), true, false);
        prop_assert_eq!(codes(&talk.take_replies()), vec![220]);
        let mut model = Model {
            submission, greeted: Greeted::No, secured: false, authenticated: false, failures: 0,
            transaction: None, taken: 0, refused_data: false, closed: false,
        };
        let (mut group, mut expected) = (Vec::new(), Vec::new());
        for command in commands {
            let (wire, replies) = model.step(command);
            group.extend(wire);
            expected.extend(replies);
            // STARTTLS ends a group. So does DATA: the session enforces this if DATA is refused (RFC 2920 3.1).
            if !grouped || model.closed || model.refused_data || command == Command::StartTls {
                talk.send(&std::mem::take(&mut group));
                prop_assert_eq!(codes(&talk.take_replies()), std::mem::take(&mut expected), "{:?}", command);
            }
            prop_assert_eq!(talk.closed, model.closed);
            if model.closed {
                break;
            }
        }
        talk.send(&group);
        prop_assert_eq!(codes(&talk.take_replies()), expected);
        prop_assert_eq!(talk.taken.len(), model.taken);
        prop_assert!(talk.taken.iter().all(|m| !m.recipients.is_empty()));
    }

    #[test]
    fn any_bytes_get_the_same_replies_in_any_chunks(
        bytes in hostile(),
        cuts in proptest::collection::vec(0usize..4_000, 0..5),
    ) {
        // STARTTLS is not offered: bytes in one piece with it are dropped, while later ones are not.
        let run = |chunks: &mut dyn Iterator<Item = &[u8]>| {
            let mut talk = Conversation::new(ListenerRole::Relay, limits(), false, false);
            chunks.for_each(|chunk| talk.send(chunk));
            let taken: Vec<_> = talk.taken.iter().map(|m| (m.recipients.len(), m.content.clone())).collect();
            let replies = talk.take_replies();
            let budget = std::sync::Arc::clone(&talk.budget);
            drop(talk);
            assert_eq!(budget.free_bytes(), BUDGET_BYTES);
            (String::from_utf8(replies).unwrap(), taken)
        };
        let whole = run(&mut std::iter::once(bytes.as_slice()));
        let _ = codes(whole.0.as_bytes());
        prop_assert!(whole.1.iter().all(|(recipients, _)| *recipients > 0));
        let mut cuts: Vec<usize> = cuts.into_iter().map(|n| n.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = run(&mut cuts.windows(2).map(|w| &bytes[w[0]..w[1]]));
        prop_assert!(agree(&whole, &pieces), "{:?}\n{:?}", whole, pieces);
        let single = run(&mut bytes.chunks(1));
        prop_assert!(agree(&whole, &single), "{:?}\n{:?}", whole, single);
    }
}
