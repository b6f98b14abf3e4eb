//! Judging: from what a host said to what becomes of the message, and of the site. Pure.
//!
//! ```text
//! verdict + reply ─► the operator's rows, then those that everybody has ─► verdict + pressure
//! ```
//!
//! What no row speaks of is judged by its code: a 421, a 4yz before any recipient was named, and the codes for a
//! busy system, congestion and policy push back.

use mail::classify::{Action, Heard, Shaping};
use mail::outcome::Phase;
use mail::reply::{Reply, Severity};
use mail::suppression;

use crate::courier::smtp::{self, Verdict};
use crate::pace::Rest;

/// What the site is to be given after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pressure {
    /// As before: nothing was said by it.
    Same,
    /// As before: it speaks.
    Answered,
    /// More, if it was little.
    Accepted,
    /// Fewer connections.
    PushedBack,
    /// Fewer connections, and messages more slowly.
    SlowDown,
    /// Nothing for a while, and why.
    Rest(Rest, String),
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// For the message: later, never, done.
    pub verdict: Verdict,
    /// For the site.
    pub pressure: Pressure,
}

/// How far a transaction had come, as it is kept.
pub(crate) fn phase_of(phase: smtp::Phase) -> Phase {
    match phase {
        smtp::Phase::Idle => Phase::Connect,
        smtp::Phase::Local | smtp::Phase::Mail => Phase::Mail,
        smtp::Phase::Rcpt => Phase::Rcpt,
        smtp::Phase::Data => Phase::Data,
        smtp::Phase::Content => Phase::Final,
    }
}

/// Judges how a message fared.
#[must_use]
pub fn of_delivery(
    shaping: &Shaping,
    host: &str,
    (verdict, phase): (Verdict, smtp::Phase),
    reply: Option<&Reply>,
) -> Judgement {
    if phase == smtp::Phase::Local {
        return Judgement { verdict, pressure: Pressure::Same };
    }
    let usual = Judgement { verdict, pressure: by_code(verdict, phase, reply) };
    match (verdict, reply) {
        (Verdict::Refused4 | Verdict::Refused5, Some(reply)) => {
            let heard = Heard::new(Some(host), reply, phase_of(phase));
            shaped(usual, shaping.meaning(&heard).action, reply)
        }
        _ => usual,
    }
}

/// Judges how a host refused to be spoken to at all; none when that is for the site as for any that is not reached.
#[must_use]
pub fn of_dial(shaping: &Shaping, host: &str, phase: Phase, reply: &Reply) -> Option<Judgement> {
    if !matches!(phase, Phase::Greeting | Phase::Ehlo | Phase::Auth) {
        return None;
    }
    // Whatever its code, it says nothing about the message yet.
    let usual = Judgement { verdict: Verdict::Refused4, pressure: Pressure::PushedBack };
    let action = shaping.meaning(&Heard::new(Some(host), reply, phase)).action?;
    (action != Action::Temporary).then(|| shaped(usual, Some(action), reply))
}

fn shaped(usual: Judgement, action: Option<Action>, reply: &Reply) -> Judgement {
    let because = || suppression::shortened(&reply.to_string());
    match action {
        None => usual,
        Some(Action::SlowDown) => Judgement { pressure: Pressure::SlowDown, ..usual },
        Some(Action::Permanent) => Judgement { verdict: Verdict::Refused5, ..usual },
        Some(Action::Temporary) => Judgement { verdict: Verdict::Refused4, ..usual },
        // Who is to be left alone for a while may be asked again after it: about this message, too.
        Some(Action::BackOff) => {
            Judgement { verdict: Verdict::Refused4, pressure: Pressure::Rest(Rest::BackOff, because()) }
        }
        Some(Action::Pause(lasts)) => {
            Judgement { verdict: Verdict::Refused4, pressure: Pressure::Rest(Rest::Pause(lasts), because()) }
        }
    }
}

fn by_code(verdict: Verdict, phase: smtp::Phase, reply: Option<&Reply>) -> Pressure {
    let transient = reply.is_some_and(|r| r.severity() == Severity::Transient);
    // System busy, congestion, and policy (RFC 3463 3.4, 3.5, 3.8): about us and our pace, not about a mailbox.
    let busy = reply
        .and_then(|r| r.enhanced)
        .is_some_and(|e| matches!((e.subject, e.detail), (3, 2) | (4, 5) | (7, _)));
    let at_mail = phase == smtp::Phase::Mail;
    match verdict {
        _ if reply.is_some_and(|r| r.code == 421) => Pressure::PushedBack,
        _ if transient && (at_mail || busy) => Pressure::PushedBack,
        Verdict::Broken | Verdict::Unconfirmed => Pressure::PushedBack,
        Verdict::Accepted => Pressure::Accepted,
        _ => Pressure::Answered,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mail::classify::{Rule, Words};
    use mail::reply::Enhanced;

    use super::*;

    fn shaping(action: Action) -> Shaping {
        Shaping::new([Rule { provider: None, code: None, text: Some(Words::new("slow lane")), action }])
    }

    fn reply(code: u16, text: &'static str) -> Reply {
        let class = if code < 500 { 4 } else { 5 };
        Reply::new(code, Enhanced::new(class, 2, 1), text)
    }

    #[test]
    fn a_row_says_more_than_the_code() {
        const LASTS: Duration = Duration::from_secs(60);
        let rest = |rest, code: u16| {
            Pressure::Rest(rest, format!("{code} {}.2.1 the slow lane", if code < 500 { 4 } else { 5 }))
        };
        use Verdict::{Refused4, Refused5};
        for (action, given, code, verdict, pressure) in [
            (Action::SlowDown, Refused4, 450, Refused4, Pressure::SlowDown),
            (Action::SlowDown, Refused5, 550, Refused5, Pressure::SlowDown),
            (Action::BackOff, Refused4, 450, Refused4, rest(Rest::BackOff, 450)),
            (Action::BackOff, Refused5, 550, Refused4, rest(Rest::BackOff, 550)),
            (Action::Pause(LASTS), Refused5, 550, Refused4, rest(Rest::Pause(LASTS), 550)),
            (Action::Permanent, Refused4, 450, Refused5, Pressure::Answered),
            (Action::Temporary, Refused5, 550, Refused4, Pressure::Answered),
        ] {
            let said = reply(code, "the slow lane");
            let at = (given, smtp::Phase::Rcpt);
            let judged = of_delivery(&shaping(action), "mx.example.net", at, Some(&said));
            assert_eq!(judged, Judgement { verdict, pressure }, "{action:?} {code}");
            let judged = of_delivery(&shaping(action), "mx.example.net", at, Some(&reply(code, "other")));
            assert_eq!(judged, Judgement { verdict: given, pressure: Pressure::Answered });
        }
    }

    #[test]
    fn what_was_not_said_by_the_host_is_not_judged() {
        let said = reply(552, "the slow lane");
        let local = (Verdict::Refused5, smtp::Phase::Local);
        let judged = of_delivery(&shaping(Action::Temporary), "mx.example.net", local, Some(&said));
        assert_eq!(judged, Judgement { verdict: Verdict::Refused5, pressure: Pressure::Same });
        let taken = (Verdict::Accepted, smtp::Phase::Content);
        let judged = of_delivery(&shaping(Action::BackOff), "mx.example.net", taken, Some(&said));
        assert_eq!(judged.pressure, Pressure::Accepted);
        let dialled = |action, phase| of_dial(&shaping(action), "mx.example.net", phase, &said);
        assert_eq!(dialled(Action::BackOff, Phase::Tls), None);
        assert_eq!(dialled(Action::Temporary, Phase::Greeting), None, "it is so already");
        let never = dialled(Action::Permanent, Phase::Greeting).unwrap();
        assert_eq!(never, Judgement { verdict: Verdict::Refused5, pressure: Pressure::PushedBack });
    }

    #[test]
    fn what_no_row_speaks_of_is_judged_by_its_code() {
        let of = |phase, code, enhanced: (u8, u16, u16)| {
            let (class, subject, detail) = enhanced;
            let reply = Reply::new(code, Enhanced::new(class, subject, detail), "no");
            let verdict = if code < 500 { Verdict::Refused4 } else { Verdict::Refused5 };
            of_delivery(&Shaping::default(), "mx.example.net", (verdict, phase), Some(&reply)).pressure
        };
        assert_eq!(of(smtp::Phase::Rcpt, 421, (4, 3, 0)), Pressure::PushedBack);
        assert_eq!(of(smtp::Phase::Mail, 451, (4, 3, 0)), Pressure::PushedBack);
        assert_eq!(of(smtp::Phase::Rcpt, 451, (4, 3, 0)), Pressure::Answered);
        assert_eq!(of(smtp::Phase::Rcpt, 451, (4, 7, 1)), Pressure::PushedBack);
        assert_eq!(of(smtp::Phase::Rcpt, 550, (5, 7, 1)), Pressure::Answered);
    }
}
