//! A session with scripted answers and no socket: what the dialogs and the properties run.

use std::collections::VecDeque;
use std::sync::Arc;

use mail::id::AccountId;
use mail::reply::{Enhanced, Reply};
use smtp::answers::{Answer, Message, Question, TlsFacts};
use smtp::budget::Budget;
use smtp::inbox::Inbox;
use smtp::limits::Limits;
use smtp::replies::Replies;
use smtp::session::{Input, Next, Session};
use smtp::settings::{Role, Settings};

/// What the handshake agrees on.
pub(crate) const TLS: TlsFacts = TlsFacts { version: "TLSv1.3", cipher: "TLS13_AES_256_GCM_SHA384" };
/// Room for content.
pub(crate) const BUDGET_BYTES: usize = 1 << 20;

/// A session and whoever answers it.
pub(crate) struct Conversation {
    pub(crate) session: Session,
    inbox: Inbox,
    pub(crate) replies: Replies,
    pub(crate) budget: Arc<Budget>,
    /// Answers to give before the usual ones, by kind of question.
    pub(crate) scripted: VecDeque<(String, Reply)>,
    pub(crate) taken: Vec<Message>,
    /// Whose login it is.
    pub(crate) account: Option<AccountId>,
    pub(crate) closed: bool,
    /// Replies that had to go out before the group was done.
    sent: Vec<u8>,
    pub(crate) handshakes: u32,
}

impl Conversation {
    pub(crate) fn new(role: Role, limits: Limits, tls_offered: bool, secured: bool) -> Self {
        let budget = Budget::new(BUDGET_BYTES);
        let hostname = "mx.example".parse().unwrap();
        let settings = Arc::new(Settings::new(role, hostname, limits, budget, tls_offered));
        Self::with(settings, "192.0.2.1", secured)
    }

    /// A session of a listener that has others.
    pub(crate) fn with(settings: Arc<Settings>, peer: &str, secured: bool) -> Self {
        let mut replies = Replies::default();
        let (peer, budget) = (peer.parse().unwrap(), Arc::clone(settings.budget()));
        let mut session = Session::new(settings, (1, peer), secured, &mut replies);
        if secured {
            session.step(Input::Secured(TLS), &mut replies);
        }
        Self {
            session,
            inbox: Inbox::default(),
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

    /// The client sends bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        if self.closed {
            return;
        }
        self.inbox.push(bytes);
        loop {
            match self.inbox.drive(&mut self.session, &mut self.replies) {
                Next::Listen if self.inbox.is_paused() => {
                    let wire = self.replies.take();
                    self.sent.extend_from_slice(&wire);
                }
                Next::Listen => return,
                next => self.follow(next),
            }
            if self.closed {
                return;
            }
        }
    }

    /// Something other than bytes comes in.
    pub(crate) fn step(&mut self, input: Input<'_>) {
        if self.closed {
            return;
        }
        let step = self.session.step(input, &mut self.replies);
        self.follow(step.next);
    }

    fn follow(&mut self, next: Next) {
        match next {
            Next::Listen => {}
            Next::Close => self.closed = true,
            Next::StartTls => {
                self.inbox.discard();
                self.handshakes += 1;
                self.step(Input::Secured(TLS));
            }
            Next::Ask(question) => {
                let answer = self.answer(question);
                self.step(Input::Answer(answer));
            }
        }
    }

    fn answer(&mut self, question: Question) -> Answer {
        let (kind, usual) = match &question {
            Question::Authenticate(c, _) if c.username == "postrider" && c.password == "secret" => {
                ("auth", self.account.map_or(Answer::Granted, Answer::Account))
            }
            Question::Authenticate(..) => (
                "auth",
                Answer::Said(Reply::new(535, Enhanced::new(5, 7, 8), "Authentication credentials invalid")),
            ),
            Question::Sender { .. } => ("sender", Answer::Granted),
            Question::Recipient(_) => ("recipient", Answer::Granted),
            Question::Take(_) => ("take", Answer::Said(Reply::new(250, Enhanced::new(2, 0, 0), "OK msg_1"))),
        };
        let scripted = self.scripted.iter().position(|(k, _)| k == kind);
        let answer = match scripted.and_then(|n| self.scripted.remove(n)) {
            Some((_, reply)) => Answer::Said(reply),
            None => usual,
        };
        if let Question::Take(message) = question
            && matches!(&answer, Answer::Granted | Answer::Said(Reply { code: 200..=299, .. }))
        {
            self.taken.push(*message);
        }
        answer
    }

    /// What was said since the last call.
    pub(crate) fn heard(&mut self) -> Vec<u8> {
        let mut heard = std::mem::take(&mut self.sent);
        heard.extend_from_slice(&self.replies.take());
        heard
    }
}
