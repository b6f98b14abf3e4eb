//! Simulated recipients: addresses at `simulator.postrider.test` that show how mail hosts respond.
//!
//! ```text
//! delivered@   250
//! bounced@     550 5.1.1 at RCPT: hard bounce
//! deferred@    451 4.2.1 at RCPT, at every attempt: the recipient is deferred until it expires
//! complained@  250, and a complaint (RFC 5965) to the return path, by SMTP
//! slow@        250, after ten seconds
//! ```
//!
//! A tag is permitted (`bounced+order-42@`). Mail takes the real path; the mail host of `postrider dev` sends these
//! replies.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use message::address::Address;
use message::header;
use message::reply::{Enhanced, SmtpReply};
use model::simulator::{self, DOMAIN};
use net::clock::Clock;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::terminal::Terminal;

/// Maximum number of pending complaints.
pub const COMPLAINTS_MAX: usize = 256;
/// Maximum header bytes of the email that a complaint encloses.
const ENCLOSED_BYTES_MAX: usize = 32 << 10;
/// Maximum number of tries while the reply is 4yz: the email's attempt may not be committed yet.
const TRIES_MAX: u32 = 20;
/// Delay before the next try.
const TRY_PAUSE: Duration = Duration::from_millis(250);
/// Timeout of an SMTP session with the local mail host.
const CONVERSATION_MAX: Duration = Duration::from_secs(30);
/// Maximum length of a reply line (RFC 5321 4.5.3.1.5 limits it to 512).
const REPLY_LINE_BYTES_MAX: u64 = 2_048;

/// Behaviour of a simulated recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Accepts the message.
    Delivered,
    /// Refuses permanently.
    Bounced,
    /// Refuses temporarily.
    Deferred,
    /// Accepts the message and complains about it.
    Complained,
    /// Accepts the message after [`Self::SLOW_FOR`].
    Slow,
}

impl Behaviour {
    /// Delay of a slow recipient.
    pub const SLOW_FOR: Duration = Duration::from_secs(10);

    /// Behaviour of an address; none if it is not at the simulator's domain.
    pub fn of(address: &Address) -> Option<Self> {
        if !simulator::is_simulated(address) {
            return None;
        }
        let local = address.local_part().to_ascii_lowercase();
        match local.split('+').next().unwrap_or_default() {
            "bounced" => Some(Self::Bounced),
            "deferred" => Some(Self::Deferred),
            "complained" => Some(Self::Complained),
            "slow" => Some(Self::Slow),
            _ => Some(Self::Delivered),
        }
    }

    /// Reply to RCPT, if it is not 250.
    pub fn refusal(self) -> Option<SmtpReply> {
        match self {
            Self::Bounced => Some(SmtpReply::new(550, Enhanced::new(5, 1, 1), "No such mailbox (simulated)")),
            Self::Deferred => {
                Some(SmtpReply::new(451, Enhanced::new(4, 2, 1), "Mailbox temporarily unavailable (simulated)"))
            }
            Self::Delivered | Self::Complained | Self::Slow => None,
        }
    }
}

/// A complaint to be sent.
#[derive(Debug)]
pub struct Complaint {
    return_path: Address,
    message: String,
}

impl Complaint {
    /// Creates a complaint about a message; none if it has the null return path.
    pub fn for_message(return_path: Option<&Address>, raw: &Bytes, clock: &Clock) -> Option<Self> {
        let return_path = return_path?.clone();
        let (_, header_end) = header::parse_fields(raw);
        let header = raw.get(..header_end.min(ENCLOSED_BYTES_MAX)).unwrap_or_default();
        let (header, date) = (String::from_utf8_lossy(header), header::format_date(clock.now()));
        let header = header.trim_end();
        let message = format!(
            "From: Feedback loop <fbl@{DOMAIN}>\r\nTo: <{return_path}>\r\nDate: {date}\r\n\
             Subject: A recipient reported this message as spam\r\nMIME-Version: 1.0\r\n\
             Content-Type: multipart/report; report-type=feedback-report; boundary=\"=_simulated\"\r\n\r\n\
             --=_simulated\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\n\
             complained@{DOMAIN} reported this message as spam. (Simulated by postrider dev.)\r\n\r\n\
             --=_simulated\r\nContent-Type: message/feedback-report\r\n\r\n\
             Feedback-Type: abuse\r\nUser-Agent: postrider-dev/1\r\nVersion: 1\r\n\
             Original-Mail-From: <{return_path}>\r\nOriginal-Rcpt-To: <complained@{DOMAIN}>\r\n\
             Arrival-Date: {date}\r\n\r\n\
             --=_simulated\r\nContent-Type: text/rfc822-headers\r\n\r\n{header}\r\n\r\n--=_simulated--\r\n"
        );
        Some(Self { return_path, message })
    }

    /// Submits the complaint to the mail host; retries after a temporary reply.
    async fn send(&self, mx: SocketAddr) -> Result<(), String> {
        let mut last_error = String::new();
        for _ in 0..TRIES_MAX {
            match timeout(CONVERSATION_MAX, self.submit(mx)).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(SubmitError::Refused(reply))) if !reply.starts_with('4') => return Err(reply),
                Ok(Err(error)) => last_error = error.to_string(),
                Err(_) => "the local mail host is not responding".clone_into(&mut last_error),
            }
            tokio::time::sleep(TRY_PAUSE).await;
        }
        Err(last_error)
    }

    async fn submit(&self, mx: SocketAddr) -> Result<(), SubmitError> {
        let mut stream = BufReader::new(TcpStream::connect(mx).await?);
        expect_reply(&mut stream, '2').await?;
        for (command, expected_digit) in [
            (format!("EHLO {DOMAIN}\r\n"), '2'),
            ("MAIL FROM:<>\r\n".to_owned(), '2'),
            (format!("RCPT TO:<{}>\r\n", self.return_path), '2'),
            ("DATA\r\n".to_owned(), '3'),
            (format!("{}.\r\n", self.message.replace("\r\n.", "\r\n..")), '2'),
        ] {
            stream.get_mut().write_all(command.as_bytes()).await?;
            expect_reply(&mut stream, expected_digit).await?;
        }
        stream.get_mut().write_all(b"QUIT\r\n").await?;
        Ok(())
    }
}

/// Errors of submitting a complaint.
#[derive(Debug, thiserror::Error)]
enum SubmitError {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// Reads a reply; an error if its code does not begin with this digit.
async fn expect_reply(stream: &mut BufReader<TcpStream>, expected_digit: char) -> Result<(), SubmitError> {
    loop {
        let mut line = String::new();
        (&mut *stream).take(REPLY_LINE_BYTES_MAX).read_line(&mut line).await?;
        if line.as_bytes().get(3) == Some(&b'-') {
            continue;
        }
        return match line.starts_with(expected_digit) {
            true => Ok(()),
            false => Err(SubmitError::Refused(line.trim_end().to_owned())),
        };
    }
}

/// Sends complaints to the local mail host until `stop`.
pub async fn send_complaints(
    mut complaints: mpsc::Receiver<Complaint>,
    mx: SocketAddr,
    terminal: Terminal,
    stop: CancellationToken,
) {
    loop {
        let next = tokio::select! {
            () = stop.cancelled() => return,
            next = complaints.recv() => next,
        };
        let Some(complaint) = next else { return };
        let sent = tokio::select! {
            () = stop.cancelled() => return,
            sent = complaint.send(mx) => sent,
        };
        match sent {
            Ok(()) => terminal.print_complaint(format_args!("to {}", complaint.return_path)),
            Err(error) => terminal.print_complaint(format_args!("failed: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use message::bounce::{self, ParsedReport};

    use super::*;

    #[test]
    fn addresses_have_their_behaviour() {
        let behaviour_of = |address: &str| Behaviour::of(&address.parse().unwrap());
        assert_eq!(behaviour_of("bounced@simulator.postrider.test"), Some(Behaviour::Bounced));
        assert_eq!(behaviour_of("Deferred+order-42@Simulator.Postrider.test"), Some(Behaviour::Deferred));
        assert_eq!(behaviour_of("complained@simulator.postrider.test"), Some(Behaviour::Complained));
        assert_eq!(behaviour_of("slow+1@simulator.postrider.test"), Some(Behaviour::Slow));
        assert_eq!(behaviour_of("anybody@simulator.postrider.test"), Some(Behaviour::Delivered));
        assert_eq!(behaviour_of("bounced@example.com"), None);
        let reply = |behaviour: Behaviour| behaviour.refusal().map(|reply| reply.to_string());
        assert!(reply(Behaviour::Bounced).unwrap().starts_with("550 5.1.1 "));
        assert!(reply(Behaviour::Deferred).unwrap().starts_with("451 4.2.1 "));
        assert_eq!(reply(Behaviour::Slow), None);
    }

    #[test]
    fn a_simulated_complaint_parses_as_a_complaint() {
        let raw = Bytes::from_static(b"From: ada@example.com\r\nMessage-ID: <1@example.com>\r\n\r\n.x\r\n");
        let path: Address = "b-1@rp.example.com".parse().unwrap();
        let complaint = Complaint::for_message(Some(&path), &raw, &Clock::default()).unwrap();
        assert!(complaint.message.contains("Message-ID: <1@example.com>") && !complaint.message.contains(".x"));
        let report = bounce::parse(complaint.message.as_bytes(), None, None);
        assert!(matches!(report, ParsedReport::Complaint(_)), "{report:?}");
        assert!(Complaint::for_message(None, &raw, &Clock::default()).is_none());
    }
}
