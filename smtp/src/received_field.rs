//! Renders the `Received` field that is prepended to a message (RFC 5321 4.4, RFC 3848, RFC 6531 3.7.3).

use std::fmt::Write as _;
use std::net::IpAddr;

use jiff::Timestamp;
use message::header::format_date;

use crate::handler::SessionTrace;

/// The field for a message of this session that was complete at `now`, CRLF included.
pub fn received_field(trace: &SessionTrace, smtputf8: bool, now: Timestamp) -> String {
    let mut text = String::with_capacity(256);
    text.push_str("Received: from ");
    // The client chooses the HELO name, so only characters of a domain or address literal are copied.
    let is_plain = !trace.helo.is_empty()
        && trace
            .helo
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']'));
    text.push_str(if is_plain { &trace.helo } else { "unknown" });
    // Writing to a String cannot fail.
    let _ = match trace.peer.to_canonical() {
        IpAddr::V4(peer) => write!(text, " ([{peer}])"),
        IpAddr::V6(peer) => write!(text, " ([IPv6:{peer}])"),
    };
    let _ = write!(text, "\r\n\tby {} with {}", trace.hostname, with_clause(trace, smtputf8));
    let _ = write!(text, " id {}", SessionId(trace.session));
    if let Some(tls) = trace.tls {
        let _ = write!(text, "\r\n\t({} {})", tls.version, tls.cipher);
    }
    let _ = write!(text, ";\r\n\t{}\r\n", format_date(now));
    text
}

/// The protocol of the `with` clause: RFC 3848 1, RFC 6531 4.3.
fn with_clause(trace: &SessionTrace, smtputf8: bool) -> String {
    if !trace.is_esmtp {
        return "SMTP".to_owned();
    }
    let base = if smtputf8 { "UTF8SMTP" } else { "ESMTP" };
    let secured = if trace.tls.is_some() { "S" } else { "" };
    let authenticated = if trace.authenticated { "A" } else { "" };
    format!("{base}{secured}{authenticated}")
}

/// Formats a session's number.
pub(crate) struct SessionId(pub(crate) u64);

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "s{:x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::SessionTls;

    fn trace() -> SessionTrace {
        SessionTrace {
            session: 0xab,
            peer: "192.0.2.1".parse().unwrap(),
            helo: "client.example".into(),
            is_esmtp: true,
            tls: Some(SessionTls { version: "TLSv1.3", cipher: "TLS13_AES_256_GCM_SHA384" }),
            authenticated: true,
            hostname: "mx.example".parse().unwrap(),
        }
    }

    #[test]
    fn the_field_describes_the_session() {
        assert_eq!(
            received_field(&trace(), false, Timestamp::UNIX_EPOCH),
            "Received: from client.example ([192.0.2.1])\r\n\tby mx.example with ESMTPSA id sab\r\n\t\
             (TLSv1.3 TLS13_AES_256_GCM_SHA384);\r\n\tThu, 1 Jan 1970 00:00:00 +0000\r\n"
        );
        let plain = SessionTrace { tls: None, authenticated: false, is_esmtp: false, ..trace() };
        assert!(received_field(&plain, false, Timestamp::UNIX_EPOCH).contains("with SMTP id"));
        assert!(received_field(&trace(), true, Timestamp::UNIX_EPOCH).contains("with UTF8SMTPSA id"));
    }

    #[test]
    fn client_data_cannot_inject_header_fields() {
        let odd = SessionTrace { helo: "x;(y)".into(), peer: "2001:db8::1".parse().unwrap(), ..trace() };
        let text = received_field(&odd, false, Timestamp::UNIX_EPOCH);
        assert!(text.starts_with("Received: from unknown ([IPv6:2001:db8::1])\r\n"), "{text}");
    }
}
