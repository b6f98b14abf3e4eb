//! Delivery attempts: result, host, TLS with its proof, and the whole conversation.

use super::object::{EmailAttempt, EmailAttemptTls};
use crate::dashboard::kit::code::transcript_view;
use crate::dashboard::prelude::*;

/// Attempts, newest first.
pub(super) fn email_attempts(attempts: &[EmailAttempt]) -> impl Renderable {
    maud! {
        @if attempts.is_empty() { p.soft { "No delivery has been attempted." } }
        @for (n, attempt) in attempts.iter().enumerate() { (email_attempt_view(attempt, format!("try-{}", attempts.len() - n))) }
    }
}

/// `id`: keeps an open attempt open when the page is refreshed.
fn email_attempt_view(attempt: &EmailAttempt, id: String) -> impl Renderable {
    let (badge, result) = (attempt.badge(), attempt.result());
    maud! {
        details.card.attempt id=(id) {
            summary {
                (badge)
                span.attempt-who { (attempt.recipient.as_deref().unwrap_or("All recipients")) }
                span.small.soft {
                    "Try " (attempt.n) ", " (time_or_dash(Some(&attempt.created_at))) ", " (attempt.duration_ms) " ms"
                }
            }
            p { (result) }
            (attempt.facts())
            @if attempt.transcript.is_empty() {
                p.soft { "There was no SMTP conversation." }
            } @else {
                (transcript_view(&attempt.transcript))
            }
        }
    }
}

impl EmailAttempt {
    fn badge(&self) -> Badge {
        match self.smtp_code {
            Some(200..300) => Badge::new("Accepted", Tone::Good),
            Some(400..500) => Badge::new("Deferred", Tone::Warning),
            Some(_) => Badge::new("Refused", Tone::Bad),
            None if self.next_attempt_at.is_some() => Badge::new("No answer", Tone::Warning),
            None => Badge::new("No answer", Tone::Bad),
        }
    }

    /// The reply, or the error.
    fn result(&self) -> String {
        let parts = [
            self.smtp_code.map(|code| code.to_string()),
            self.enhanced_code.clone(),
            self.response.clone(),
            self.error.clone(),
        ];
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    fn facts(&self) -> Facts {
        let (encryption, proof) = match &self.tls {
            Some(tls) => (format!("{}, {}", tls.version, tls.cipher), tls.proof()),
            None if self.has_connected() => ("None: the conversation was not encrypted".into(), "–"),
            None => ("None: no connection was made".into(), "–"),
        };
        Facts::new()
            .optional("Mail host", self.mx_host.as_deref())
            .optional("Address of the host", self.ip.as_deref())
            .row("Reached", phase_in_words(&self.phase))
            .row("Encryption", encryption)
            .row("Certificate", proof)
            .optional("Policy", self.tls.as_ref().map(EmailAttemptTls::policy_in_words))
            .optional("Next attempt", self.next_attempt_at.as_deref().map(|at| time_or_dash(Some(at))))
    }

    fn has_connected(&self) -> bool {
        !matches!(self.phase.as_str(), "dns" | "connect")
    }
}

impl EmailAttemptTls {
    /// Whether the certificate proved the host, and how.
    fn proof(&self) -> &'static str {
        match (self.policy.as_str(), self.verified) {
            ("dane", true) => "Verified by the TLSA records of the host (DANE)",
            ("mta-sts", true) => "Verified: valid for the host that the domain's MTA-STS policy names",
            (_, true) => "Verified: issued for this host by a known authority",
            ("dane" | "mta-sts", false) => "Not verified, although the domain requires it",
            (_, false) => "Not verified (not required)",
        }
    }

    fn policy_in_words(&self) -> &str {
        match self.policy.as_str() {
            "dane" => "DANE: only with a key from the TLSA records",
            "mta-sts" => "MTA-STS: only with a valid certificate",
            "opportunistic" => "Opportunistic: encrypted if the host supports it",
            other => other,
        }
    }
}

/// How far an attempt got.
fn phase_in_words(phase: &str) -> &str {
    match phase {
        "dns" => "The lookup of the mail hosts",
        "connect" => "The connection",
        "greeting" => "The host's greeting",
        "ehlo" => "The introduction (EHLO)",
        "tls" | "starttls" => "STARTTLS",
        "auth" => "The login to the host",
        "mail" => "The sender (MAIL)",
        "rcpt" => "The recipient (RCPT)",
        "data" => "The content (DATA)",
        "final" => "The reply to the content",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::page::render;

    #[test]
    fn attempts_say_their_result_and_proof() {
        let attempt = EmailAttempt {
            smtp_code: Some(550),
            enhanced_code: Some("5.1.1".into()),
            response: Some("<No>".into()),
            tls: Some(EmailAttemptTls { policy: "dane".into(), verified: true, ..EmailAttemptTls::default() }),
            ..EmailAttempt::default()
        };
        let html = render(email_attempts(&[attempt]));
        for part in ["Refused", "550 5.1.1 &lt;No&gt;", "TLSA records of the host (DANE)", "no SMTP conversation"] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(
            render(email_attempts(&[EmailAttempt { phase: "connect".into(), ..EmailAttempt::default() }]))
                .contains("No answer")
        );
    }
}
