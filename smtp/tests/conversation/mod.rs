//! A session with scripted verdicts and without a socket, used by the dialogs and the property tests.

use std::collections::VecDeque;
use std::sync::Arc;

use message::reply::{Enhanced, SmtpReply};
use model::id::AccountId;
use smtp::content_budget::ContentBudget;
use smtp::handler::{Hook, HookVerdict, SessionTls, SmtpMessage};
use smtp::limits::SessionLimits;
use smtp::line_framer::LineFramer;
use smtp::replies::ReplyBuffer;
use smtp::session::{Input, SessionAction, SmtpSession};
use smtp::settings::{ListenerRole, SessionSettings};

/// The result of the TLS handshake.
pub(crate) const TLS: SessionTls = SessionTls { version: "TLSv1.3", cipher: "TLS13_AES_256_GCM_SHA384" };
/// Size of the content budget.
pub(crate) const BUDGET_BYTES: usize = 1 << 20;

/// A session and its scripted handler.
pub(crate) struct Conversation {
    pub(crate) session: SmtpSession,
    inbox: LineFramer,
    pub(crate) replies: ReplyBuffer,
    pub(crate) budget: Arc<ContentBudget>,
    /// Replies to give instead of the usual verdicts, by kind of hook.
    pub(crate) scripted: VecDeque<(String, SmtpReply)>,
    pub(crate) taken: Vec<SmtpMessage>,
    /// The account of a successful login.
    pub(crate) account: Option<AccountId>,
    pub(crate) closed: bool,
    /// Replies that were sent before the end of a pipelined group.
    sent: Vec<u8>,
    pub(crate) handshakes: u32,
}

impl Conversation {
    pub(crate) fn new(role: ListenerRole, limits: SessionLimits, tls_offered: bool, secured: bool) -> Self {
        let budget = ContentBudget::new(BUDGET_BYTES);
        let hostname = "mx.example".parse().unwrap();
        let settings = Arc::new(SessionSettings::new(role, hostname, limits, budget, tls_offered));
        Self::with(settings, "192.0.2.1", secured)
    }

    /// A session that shares the settings of a listener with others.
    pub(crate) fn with(settings: Arc<SessionSettings>, peer: &str, secured: bool) -> Self {
        let mut replies = ReplyBuffer::default();
        let (peer, budget) = (peer.parse().unwrap(), Arc::clone(&settings.budget));
        let mut session = SmtpSession::new(settings, 1, peer, secured, &mut replies);
        if secured {
            session.step(Input::TlsEstablished(TLS), &mut replies);
        }
        Self {
            session,
            inbox: LineFramer::default(),
            replies,
            budget,
            scripted: VecDeque::new(),
            taken: Vec::new(),
            account: None,
            closed: false,
            sent: Vec::new(),
            handshakes: 0,
        }
    }

    /// Sends bytes as the client.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        if self.closed {
            return;
        }
        self.inbox.push(bytes);
        loop {
            match self.inbox.drive_session(&mut self.session, &mut self.replies) {
                SessionAction::Read if self.inbox.is_paused() => {
                    let wire = self.replies.take_wire();
                    self.sent.extend_from_slice(&wire);
                }
                SessionAction::Read => return,
                next => self.follow(next),
            }
            if self.closed {
                return;
            }
        }
    }

    /// Steps the session with an input other than bytes.
    pub(crate) fn step(&mut self, input: Input<'_>) {
        if self.closed {
            return;
        }
        let step = self.session.step(input, &mut self.replies);
        self.follow(step.action);
    }

    fn follow(&mut self, next: SessionAction) {
        match next {
            SessionAction::Read => {}
            SessionAction::Close => self.closed = true,
            SessionAction::StartTls => {
                self.inbox.discard();
                self.handshakes += 1;
                self.step(Input::TlsEstablished(TLS));
            }
            SessionAction::CallHook(question) => {
                let answer = self.answer(question);
                self.step(Input::Verdict(answer));
            }
        }
    }

    fn answer(&mut self, question: Hook) -> HookVerdict {
        let (kind, usual) = match &question {
            Hook::Authenticate(c, _) if c.username == "postrider" && c.password == "secret" => {
                ("auth", self.account.map_or(HookVerdict::Accept, HookVerdict::AuthenticatedAs))
            }
            Hook::Authenticate(..) => (
                "auth",
                HookVerdict::Reply(SmtpReply::new(535, Enhanced::new(5, 7, 8), "Authentication credentials invalid")),
            ),
            Hook::MailFrom { .. } => ("sender", HookVerdict::Accept),
            Hook::RcptTo(_) => ("recipient", HookVerdict::Accept),
            Hook::Submit(_) => ("take", HookVerdict::Reply(SmtpReply::new(250, Enhanced::new(2, 0, 0), "OK msg_1"))),
        };
        let scripted = self.scripted.iter().position(|(k, _)| k == kind);
        let answer = match scripted.and_then(|n| self.scripted.remove(n)) {
            Some((_, reply)) => HookVerdict::Reply(reply),
            None => usual,
        };
        if let Hook::Submit(message) = question
            && matches!(&answer, HookVerdict::Accept | HookVerdict::Reply(SmtpReply { code: 200..=299, .. }))
        {
            self.taken.push(*message);
        }
        answer
    }

    /// Returns the replies since the last call.
    pub(crate) fn take_replies(&mut self) -> Vec<u8> {
        let mut replies = std::mem::take(&mut self.sent);
        replies.extend_from_slice(&self.replies.take_wire());
        replies
    }
}
