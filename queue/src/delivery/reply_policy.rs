//! Reply classification: from an SMTP reply to the verdict on the message and the back-pressure on the ready queue. No
//! I/O.
//!
//! ```text
//! verdict + reply ─► the operator's reply rules, then the built-in ones ─► verdict + back-pressure
//! ```
//!
//! Without a matching rule, the code decides: 421, a 4yz before any recipient, and the enhanced codes for a busy
//! system, congestion and policy cause back-pressure.

use message::classify::{ClassifierInput, ReplyAction, ReplyRules};
use message::outcome::AttemptPhase;
use message::reply::{Severity, SmtpReply};

use crate::delivery::client::smtp::{self, TransactionVerdict};
use crate::scheduler::pacing::{Backoff, Backpressure};

/// Result of classifying a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyDecision {
    /// Verdict on the message.
    pub verdict: TransactionVerdict,
    /// Effect on the ready queue.
    pub backpressure: Backpressure,
}

/// The attempt phase of a transaction phase, as stored.
pub(crate) fn attempt_phase(phase: smtp::TransactionPhase) -> AttemptPhase {
    match phase {
        smtp::TransactionPhase::Idle => AttemptPhase::Connect,
        smtp::TransactionPhase::Local | smtp::TransactionPhase::Mail => AttemptPhase::Mail,
        smtp::TransactionPhase::Rcpt => AttemptPhase::Rcpt,
        smtp::TransactionPhase::Data => AttemptPhase::Data,
        smtp::TransactionPhase::Content => AttemptPhase::Final,
    }
}

/// Classifies the result of a transaction.
pub fn classify_reply(
    shaping: &ReplyRules,
    host: &str,
    verdict: TransactionVerdict,
    phase: smtp::TransactionPhase,
    reply: Option<&SmtpReply>,
) -> ReplyDecision {
    if phase == smtp::TransactionPhase::Local {
        return ReplyDecision { verdict, backpressure: Backpressure::Unchanged };
    }
    let usual = ReplyDecision { verdict, backpressure: default_backpressure(verdict, phase, reply) };
    match (verdict, reply) {
        (TransactionVerdict::TransientFailure | TransactionVerdict::PermanentFailure, Some(reply)) => {
            let input = ClassifierInput::new(Some(host), reply, attempt_phase(phase));
            apply_shaping(usual, shaping.classify(&input).action, reply)
        }
        _ => usual,
    }
}

/// Classifies a refusal before MAIL. Returns `None` if it counts like any other unreachable host.
pub fn classify_connect_reply(
    shaping: &ReplyRules,
    host: &str,
    phase: AttemptPhase,
    reply: &SmtpReply,
) -> Option<ReplyDecision> {
    if !matches!(phase, AttemptPhase::Greeting | AttemptPhase::Ehlo | AttemptPhase::Auth) {
        return None;
    }
    // Whatever its code, the refusal does not concern the message.
    let usual =
        ReplyDecision { verdict: TransactionVerdict::TransientFailure, backpressure: Backpressure::FewerConnections };
    let action = shaping.classify(&ClassifierInput::new(Some(host), reply, phase)).action?;
    (action != ReplyAction::Temporary).then(|| apply_shaping(usual, Some(action), reply))
}

fn apply_shaping(usual: ReplyDecision, action: Option<ReplyAction>, reply: &SmtpReply) -> ReplyDecision {
    let reason = || message::reply::truncate_diagnostic(&reply.to_string());
    match action {
        None => usual,
        Some(ReplyAction::SlowDown) => ReplyDecision { backpressure: Backpressure::SlowDown, ..usual },
        Some(ReplyAction::Permanent) => ReplyDecision { verdict: TransactionVerdict::PermanentFailure, ..usual },
        Some(ReplyAction::Temporary) => ReplyDecision { verdict: TransactionVerdict::TransientFailure, ..usual },
        // After the suspension the message may be retried, even if the reply was permanent.
        Some(ReplyAction::BackOff) => ReplyDecision {
            verdict: TransactionVerdict::TransientFailure,
            backpressure: Backpressure::BackOff(Backoff::Exponential, reason()),
        },
        Some(ReplyAction::Pause(duration)) => ReplyDecision {
            verdict: TransactionVerdict::TransientFailure,
            backpressure: Backpressure::BackOff(Backoff::Fixed(duration), reason()),
        },
    }
}

fn default_backpressure(
    verdict: TransactionVerdict,
    phase: smtp::TransactionPhase,
    reply: Option<&SmtpReply>,
) -> Backpressure {
    let transient = reply.is_some_and(|r| r.severity() == Severity::Transient);
    // System busy, congestion and policy (RFC 3463 3.4, 3.5, 3.8) concern this server and its rate, not a mailbox.
    let is_busy =
        reply.and_then(|r| r.enhanced).is_some_and(|e| matches!((e.subject, e.detail), (3, 2) | (4, 5) | (7, _)));
    let at_mail = phase == smtp::TransactionPhase::Mail;
    match verdict {
        _ if reply.is_some_and(|r| r.code == 421) => Backpressure::FewerConnections,
        _ if transient && (at_mail || is_busy) => Backpressure::FewerConnections,
        TransactionVerdict::ConnectionLost | TransactionVerdict::Unconfirmed => Backpressure::FewerConnections,
        TransactionVerdict::Accepted => Backpressure::Accepted,
        _ => Backpressure::Answered,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use message::classify::{ReplyRule, TextPattern};
    use message::reply::Enhanced;

    use super::*;

    fn shaping(action: ReplyAction) -> ReplyRules {
        ReplyRules::new([ReplyRule { provider: None, code: None, text: Some(TextPattern::new("slow lane")), action }])
    }

    fn reply(code: u16, text: &'static str) -> SmtpReply {
        let class = if code < 500 { 4 } else { 5 };
        SmtpReply::new(code, Enhanced::new(class, 2, 1), text)
    }

    #[test]
    fn a_reply_rule_overrides_the_reply_code() {
        const LASTS: Duration = Duration::from_secs(60);
        let back_off = |back_off, code: u16| {
            Backpressure::BackOff(back_off, format!("{code} {}.2.1 the slow lane", if code < 500 { 4 } else { 5 }))
        };
        use TransactionVerdict::{PermanentFailure, TransientFailure};
        for (action, configured, code, verdict, pressure) in [
            (ReplyAction::SlowDown, TransientFailure, 450, TransientFailure, Backpressure::SlowDown),
            (ReplyAction::SlowDown, PermanentFailure, 550, PermanentFailure, Backpressure::SlowDown),
            (ReplyAction::BackOff, TransientFailure, 450, TransientFailure, back_off(Backoff::Exponential, 450)),
            (ReplyAction::BackOff, PermanentFailure, 550, TransientFailure, back_off(Backoff::Exponential, 550)),
            (ReplyAction::Pause(LASTS), PermanentFailure, 550, TransientFailure, back_off(Backoff::Fixed(LASTS), 550)),
            (ReplyAction::Permanent, TransientFailure, 450, PermanentFailure, Backpressure::Answered),
            (ReplyAction::Temporary, PermanentFailure, 550, TransientFailure, Backpressure::Answered),
        ] {
            let slow_reply = reply(code, "the slow lane");
            let classify = |reply| {
                let phase = smtp::TransactionPhase::Rcpt;
                classify_reply(&shaping(action), "mx.example.net", configured, phase, Some(reply))
            };
            let decision = classify(&slow_reply);
            assert_eq!(decision, ReplyDecision { verdict, backpressure: pressure }, "{action:?} {code}");
            let decision = classify(&reply(code, "other"));
            assert_eq!(decision, ReplyDecision { verdict: configured, backpressure: Backpressure::Answered });
        }
    }

    #[test]
    fn local_failures_and_acceptances_match_no_reply_rule() {
        let slow_reply = reply(552, "the slow lane");
        let decision = classify_reply(
            &shaping(ReplyAction::Temporary),
            "mx.example.net",
            TransactionVerdict::PermanentFailure,
            smtp::TransactionPhase::Local,
            Some(&slow_reply),
        );
        assert_eq!(
            decision,
            ReplyDecision { verdict: TransactionVerdict::PermanentFailure, backpressure: Backpressure::Unchanged }
        );
        let decision = classify_reply(
            &shaping(ReplyAction::BackOff),
            "mx.example.net",
            TransactionVerdict::Accepted,
            smtp::TransactionPhase::Content,
            Some(&slow_reply),
        );
        assert_eq!(decision.backpressure, Backpressure::Accepted);
        let dialled = |action, phase| classify_connect_reply(&shaping(action), "mx.example.net", phase, &slow_reply);
        assert_eq!(dialled(ReplyAction::BackOff, AttemptPhase::Tls), None);
        assert_eq!(dialled(ReplyAction::Temporary, AttemptPhase::Greeting), None, "it is so already");
        let permanent = dialled(ReplyAction::Permanent, AttemptPhase::Greeting).unwrap();
        assert_eq!(
            permanent,
            ReplyDecision {
                verdict: TransactionVerdict::PermanentFailure,
                backpressure: Backpressure::FewerConnections
            }
        );
    }

    #[test]
    fn without_a_reply_rule_the_code_decides() {
        let decide = |phase, code, enhanced: (u8, u16, u16)| {
            let (class, subject, detail) = enhanced;
            let reply = SmtpReply::new(code, Enhanced::new(class, subject, detail), "no");
            let verdict =
                if code < 500 { TransactionVerdict::TransientFailure } else { TransactionVerdict::PermanentFailure };
            classify_reply(&ReplyRules::default(), "mx.example.net", verdict, phase, Some(&reply)).backpressure
        };
        assert_eq!(decide(smtp::TransactionPhase::Rcpt, 421, (4, 3, 0)), Backpressure::FewerConnections);
        assert_eq!(decide(smtp::TransactionPhase::Mail, 451, (4, 3, 0)), Backpressure::FewerConnections);
        assert_eq!(decide(smtp::TransactionPhase::Rcpt, 451, (4, 3, 0)), Backpressure::Answered);
        assert_eq!(decide(smtp::TransactionPhase::Rcpt, 451, (4, 7, 1)), Backpressure::FewerConnections);
        assert_eq!(decide(smtp::TransactionPhase::Rcpt, 550, (5, 7, 1)), Backpressure::Answered);
    }
}
