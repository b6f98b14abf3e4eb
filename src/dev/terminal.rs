//! Activity of the development server on the terminal: a line for each API request, attempted delivery and message
//! submitted to the mail host.

use std::fmt::Display;
use std::io::Write as _;

use api::serve::static_pages::ResponseObserver;
use http::{Method, Uri};
use jiff::tz::TimeZone;
use message::address::Address;
use message::reply::SmtpReply;
use net::clock::Clock;

use super::inbox::{Entry, Source};

/// Maximum characters of a path segment that is printed whole; ids have 30.
const PATH_PART_CHARS: usize = 36;

/// Maximum number of recipients in a line.
const RECIPIENTS_SHOWN_MAX: usize = 3;

/// Prints the lines.
#[derive(Debug, Clone)]
pub struct Terminal {
    clock: Clock,
    zone: TimeZone,
    /// Prints to standard error, because standard output contains only the JSON line.
    json: bool,
}

impl Terminal {
    /// With `json`, lines are printed to standard error.
    pub fn new(clock: Clock, json: bool) -> Self {
        Self { clock, zone: TimeZone::system(), json }
    }

    fn print_line(&self, line: impl Display) {
        let now = self.clock.now().to_zoned(self.zone.clone()).strftime("%H:%M:%S").to_string();
        // The output may be closed.
        let _ = match self.json {
            true => writeln!(std::io::stderr(), "{now}  {line}"),
            false => writeln!(std::io::stdout(), "{now}  {line}"),
        };
    }

    /// Prints an API request when it is answered, with the time from its header section to that of the response.
    pub fn observe_request(&self, method: Method, uri: Uri) -> ResponseObserver {
        let (terminal, started_at) = (self.clone(), tokio::time::Instant::now());
        Box::new(move |status| {
            let (path, duration) = (truncate_tokens(uri.path()), started_at.elapsed());
            terminal.print_line(format_args!("{method} {path}  {}  {} ms", status.as_u16(), duration.as_millis()));
        })
    }

    /// Prints a message stored in the inbox.
    pub fn print_captured(&self, entry: &Entry) {
        let action = match entry.source {
            Source::Delivered => "delivered",
            Source::HandedIn => "submitted",
        };
        let to = format_recipients(&entry.to);
        let subject = entry.subject.escape_debug();
        self.print_line(format_args!("{action}  to {to}  \"{subject}\"  message {}", entry.id));
    }

    pub fn print_refused(&self, recipient: &Address, reply: &SmtpReply) {
        self.print_line(format_args!("refused  {recipient}  {reply}"));
    }

    /// Prints that a complaint was sent, or why it was not.
    pub fn print_complaint(&self, outcome: impl Display) {
        self.print_line(format_args!("complaint  {outcome}"));
    }
}

/// The first recipients, and the number of the others.
fn format_recipients(recipients: &[Address]) -> String {
    let names: Vec<String> = recipients.iter().take(RECIPIENTS_SHOWN_MAX).map(ToString::to_string).collect();
    let hidden = recipients.len() - names.len();
    let hidden = if hidden == 0 { String::new() } else { format!(" and {hidden} more") };
    names.join(", ") + &hidden
}

/// Truncates long segments of a path: the tokens of sign-in links are credentials.
fn truncate_tokens(path: &str) -> String {
    let truncate = |part: &str| match part.char_indices().nth(PATH_PART_CHARS) {
        Some(_) => format!("{}…", part.chars().take(8).collect::<String>()),
        None => part.to_owned(),
    };
    path.split('/').map(truncate).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_few_recipients() {
        let address: Address = "a@b.example".parse().unwrap();
        assert_eq!(format_recipients(&vec![address.clone(); 2]), "a@b.example, a@b.example");
        assert!(format_recipients(&vec![address; 500]).ends_with("a@b.example and 497 more"));
    }

    #[test]
    fn tokens_are_truncated_but_ids_are_not() {
        let id = "/emails/msg_01kax2vq9d8f7s6a5z4x3c2v1b";
        assert_eq!(truncate_tokens(id), id);
        let token = format!("/portal/link/{}", "a1B2".repeat(12));
        assert_eq!(truncate_tokens(&token), "/portal/link/a1B2a1B2…");
    }
}
