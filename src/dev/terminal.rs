//! A line on the terminal for each request to the API, each attempted delivery and each message handed in.

use std::fmt::Display;
use std::io::Write as _;

use api::serve::pages::AnsweredRequest;
use jiff::tz::TimeZone;
use mail::address::Address;
use mail::reply::SmtpReply;
use queue::clock::Clock;

use super::inbox::{Entry, Source};

/// Characters of a part of a path that is shown whole: an id has 30.
const PATH_PART_CHARS: usize = 36;

/// Recipients that a line names.
const RECIPIENTS_SHOWN_MAX: usize = 3;

/// Where lines go. Clones share it.
#[derive(Debug, Clone)]
pub struct Terminal {
    clock: Clock,
    zone: TimeZone,
    /// Standard output holds the one JSON line: then lines go to standard error.
    json: bool,
}

impl Terminal {
    /// With `json`, lines go to standard error.
    #[must_use]
    pub fn new(clock: Clock, json: bool) -> Self {
        Self { clock, zone: TimeZone::system(), json }
    }

    fn line(&self, line: impl Display) {
        let now = self.clock.now().to_zoned(self.zone.clone()).strftime("%H:%M:%S").to_string();
        // Nobody may be reading any more.
        let _ = match self.json {
            true => writeln!(std::io::stderr(), "{now}  {line}"),
            false => writeln!(std::io::stdout(), "{now}  {line}"),
        };
    }

    /// The API has answered a request.
    pub fn request(&self, answered: &AnsweredRequest) {
        let AnsweredRequest { method, uri, status, took } = answered;
        let (path, status) = (without_tokens(uri.path()), status.as_u16());
        self.line(format_args!("{method} {path}  {status}  {} ms", took.as_millis()));
    }

    /// A message is in the inbox.
    pub fn caught(&self, entry: &Entry) {
        let what = match entry.source {
            Source::Delivered => "delivered",
            Source::HandedIn => "handed in",
        };
        let to = some_of(&entry.to);
        let subject = entry.subject.escape_debug();
        self.line(format_args!("{what}  to {to}  \"{subject}\"  message {}", entry.id));
    }

    /// The mail host has refused a recipient.
    pub fn refused(&self, recipient: &Address, reply: &SmtpReply) {
        self.line(format_args!("refused  {recipient}  {reply}"));
    }

    /// A complaint was sent, or why it was not.
    pub fn complained(&self, outcome: impl Display) {
        self.line(format_args!("complaint  {outcome}"));
    }
}

/// The first recipients, and how many more there are.
fn some_of(recipients: &[Address]) -> String {
    let shown: Vec<String> = recipients.iter().take(RECIPIENTS_SHOWN_MAX).map(ToString::to_string).collect();
    let more = recipients.len() - shown.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    shown.join(", ") + &more
}

/// A path with the tokens of mailed links cut short: they let in whoever has them.
fn without_tokens(path: &str) -> String {
    let cut = |part: &str| match part.char_indices().nth(PATH_PART_CHARS) {
        Some(_) => format!("{}…", part.chars().take(8).collect::<String>()),
        None => part.to_owned(),
    };
    path.split('/').map(cut).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_few_recipients() {
        let address: Address = "a@b.example".parse().unwrap();
        assert_eq!(some_of(&vec![address.clone(); 2]), "a@b.example, a@b.example");
        assert!(some_of(&vec![address; 500]).ends_with("a@b.example and 497 more"));
    }

    #[test]
    fn tokens_are_cut_short_and_ids_are_not() {
        let id = "/emails/msg_01kax2vq9d8f7s6a5z4x3c2v1b";
        assert_eq!(without_tokens(id), id);
        let token = format!("/portal/link/{}", "a1B2".repeat(12));
        assert_eq!(without_tokens(&token), "/portal/link/a1B2a1B2…");
    }
}
