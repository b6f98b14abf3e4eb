//! Benchmarks sessions without a socket: commands per second, and messages of 10 KB per second.
//!
//! `cargo bench -p smtp` prints one line for each; the best of several rounds counts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use smtp::content_budget::ContentBudget;
use smtp::handler::{Hook, HookVerdict};
use smtp::limits::SessionLimits;
use smtp::line_framer::LineFramer;
use smtp::replies::ReplyBuffer;
use smtp::session::{Input, SessionAction, SmtpSession};
use smtp::settings::{ListenerRole, SessionSettings};

const ROUNDS: usize = 7;
const REPEATS: u32 = 20_000;

struct Talk {
    session: SmtpSession,
    inbox: LineFramer,
    replies: ReplyBuffer,
}

impl Talk {
    fn new() -> Self {
        let hostname = "mx.example".parse().unwrap_or_else(|_| unreachable!());
        let budget = ContentBudget::new(ContentBudget::BYTES_DEFAULT);
        let settings =
            Arc::new(SessionSettings::new(ListenerRole::Relay, hostname, SessionLimits::for_relay(), budget, false));
        let mut replies = ReplyBuffer::default();
        let session = SmtpSession::new(settings, 1, [127, 0, 0, 1].into(), false, &mut replies);
        let mut talk = Self { session, inbox: LineFramer::default(), replies };
        talk.send(b"EHLO client.example\r\n");
        talk
    }

    /// Sends the bytes like the listener: one read and one write.
    fn send(&mut self, bytes: &[u8]) {
        self.inbox.push(bytes);
        let mut next = SessionAction::Read;
        loop {
            next = match next {
                SessionAction::Close | SessionAction::StartTls => {
                    unreachable!("nothing here ends the session")
                }
                SessionAction::CallHook(question) => {
                    let answer = match question {
                        Hook::Submit(message) => {
                            std::hint::black_box(message.content.len());
                            HookVerdict::Accept
                        }
                        _ => HookVerdict::Accept,
                    };
                    self.session.step(Input::Verdict(answer), &mut self.replies).action
                }
                _ => self.inbox.drive_session(&mut self.session, &mut self.replies),
            };
            if matches!(next, SessionAction::Read) && !self.inbox.is_paused() && self.inbox.is_empty() {
                break;
            }
        }
        std::hint::black_box(self.replies.wire().len());
        self.replies.mark_sent(usize::MAX);
        self.inbox.shrink();
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures")]
fn measure(name: &str, per_repeat: u32, mut work: impl FnMut(&mut Talk)) {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let mut talk = Talk::new();
        let began = Instant::now();
        (0..REPEATS).for_each(|_| work(&mut talk));
        best = best.min(began.elapsed());
    }
    let each = best / (REPEATS * per_repeat);
    println!("{name:<44} {:>12.0}/s {each:>12.2?} each", 1.0 / each.as_secs_f64());
}

fn main() {
    let line = format!("{}\r\n", "x".repeat(76));
    let mut content = b"From: a@b.example\r\nSubject: x\r\n\r\n".to_vec();
    while content.len() < 10 * 1024 {
        content.extend_from_slice(line.as_bytes());
    }
    let mut dotted = content.clone();
    dotted.extend_from_slice(b".\r\n");
    let mut chunk =
        format!("MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nBDAT {} LAST\r\n", content.len()).into_bytes();
    chunk.extend_from_slice(&content);

    measure("commands, one by one", 1, |talk| talk.send(b"RSET\r\n"));
    measure("commands, MAIL RCPT RSET pipelined", 3, |talk| {
        talk.send(b"MAIL FROM:<a@b.example> SIZE=10240 BODY=8BITMIME\r\nRCPT TO:<c@d.example>\r\nRSET\r\n");
    });
    measure("messages of 10 KB, DATA", 1, |talk| {
        talk.send(b"MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n");
        talk.send(&dotted);
    });
    measure("messages of 10 KB, DATA, 1,448 bytes a read", 1, |talk| {
        talk.send(b"MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n");
        dotted.chunks(1_448).for_each(|piece| talk.send(piece));
    });
    measure("messages of 10 KB, BDAT, one read", 1, |talk| talk.send(&chunk));
}
