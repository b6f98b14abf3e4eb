//! `postrider admin queue`: what lies in the queue, and orders about it.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use mail::address::{Address, DomainName};
use mail::destination::RouteOverride;
use mail::given_name::SmarthostName;
use mail::task::TaskClass;
use queue::order::QueueCommand;
use serde_json::Value;

use super::listing::next;
use super::table::{Column, list, table};
use crate::admin::{AdminError, AdminRequest, QueueFilter, QueueSearch};
use crate::config::read_duration;

/// The queue.
#[derive(Debug, Subcommand)]
pub enum QueueSubcommand {
    /// What lies in the queue, and how the destinations stand
    List {
        /// At most so many tasks
        #[arg(long, default_value_t = 100)]
        limit: usize,
        /// Which of it
        #[command(flatten)]
        filter: FilterArguments,
        /// To this address
        #[arg(long, value_name = "ADDRESS")]
        recipient: Option<Address>,
        /// From this address: of `From`, or of MAIL FROM
        #[arg(long, value_name = "ADDRESS")]
        sender: Option<Address>,
        /// With this Message-ID
        #[arg(long, value_name = "ID")]
        message_id: Option<String>,
        /// Go on with `next_cursor` of the page before
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Where the queue is long: destinations by how much waits, since when, what binds, and the last reply
    Top {
        /// At most so many destinations
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Show an email
    Show {
        /// Its id
        email: String,
    },
    /// Try it now
    Retry(QueueSelection),
    /// Do not try it until it is released
    Hold(QueueSelection),
    /// Let it go again
    Release(QueueSelection),
    /// Take it out: its recipients are cancelled
    Drop(QueueSelection),
    /// Send it another way
    Reroute {
        /// Which way
        #[command(flatten)]
        way: RouteArguments,
        /// Which mail
        #[command(flatten)]
        which: QueueSelection,
    },
}

/// Which mail is meant: an email, or all that fits.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).multiple(true)))]
pub struct QueueSelection {
    /// An email's id
    #[arg(group = "which", conflicts_with_all = ["to", "account", "from", "class", "older", "attempts", "held", "all"])]
    email: Option<String>,
    /// Which of it
    #[command(flatten)]
    filter: FilterArguments,
    /// Everything in the queue
    #[arg(long, group = "which")]
    all: bool,
    /// Do not ask, however many it is about
    #[arg(long)]
    yes: bool,
    /// Only say how many recipients it is about
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

/// What is to be known before an order about several emails is given.
pub struct Confirmation<'a> {
    /// The order's word.
    word: &'static str,
    selection: &'a QueueSelection,
}

impl Confirmation<'_> {
    /// Asks how many recipients the order is about, and, on a terminal, whether it is meant. Gives what is to be shown
    /// instead of carrying it out, if it is not to be.
    ///
    /// # Errors
    /// It is not meant, or cannot be known to be.
    pub fn ask(
        &self,
        count: impl FnOnce(&AdminRequest) -> Result<Value, AdminError>,
    ) -> Result<Option<Value>, AdminError> {
        let Self { word, selection: which } = self;
        if which.yes {
            return Ok(None);
        }
        let is_terminal = std::io::stdin().is_terminal();
        if which.all && !is_terminal && !which.dry_run {
            return Err(format!("`queue {word} --all` without a terminal needs `--yes`; `--dry-run` counts").into());
        }
        let counted = count(&AdminRequest::QueueCount { filter: which.filter.to_filter() })?;
        if which.dry_run {
            return Ok(Some(counted));
        }
        let recipients = counted["recipients"].as_u64().unwrap_or(0);
        if recipients <= 1 || !is_terminal {
            return Ok(None);
        }
        eprint!("{word}: {recipients} recipients. Go on? [y/N] ");
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).map_err(|error| error.to_string())?;
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(None),
            _ => Err("nothing was done".into()),
        }
    }
}

impl QueueSubcommand {
    /// What is to be known before it is carried out; none where it is about one email, or only lets mail go.
    pub fn confirmation(&self) -> Option<Confirmation<'_>> {
        let (word, which) = match self {
            Self::Retry(which) => ("retry", which),
            Self::Hold(which) => ("hold", which),
            Self::Drop(which) => ("drop", which),
            Self::Reroute { which, .. } => ("reroute", which),
            Self::Release(which) if which.dry_run => ("release", which),
            Self::Release(_) | Self::List { .. } | Self::Top { .. } | Self::Show { .. } => return None,
        };
        which.email.is_none().then_some(Confirmation { word, selection: which })
    }
}

/// What mail in the queue has in common.
#[derive(Debug, Args)]
pub struct FilterArguments {
    /// To recipients at this domain
    #[arg(long, group = "which", value_name = "DOMAIN")]
    to: Option<DomainName>,
    /// Of this account: its id, or its owner's address
    #[arg(long, group = "which")]
    account: Option<String>,
    /// From this sending domain
    #[arg(long, group = "which", value_name = "DOMAIN")]
    from: Option<DomainName>,
    /// expiring, transactional, product or newsletter
    #[arg(long, group = "which", value_parser = class)]
    class: Option<TaskClass>,
    /// Accepted longer ago than this (`90m`, `2h`, `3d`)
    #[arg(long, group = "which", value_parser = read_duration)]
    older: Option<Duration>,
    /// Tried so often at least
    #[arg(long, group = "which")]
    attempts: Option<u32>,
    /// Held
    #[arg(long, group = "which")]
    held: bool,
}

/// Which way mail goes.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct RouteArguments {
    /// By this smarthost of the configuration
    #[arg(long, value_name = "NAME")]
    smarthost: Option<SmarthostName>,
    /// To the recipients' own mail hosts
    #[arg(long)]
    mx: bool,
    /// As the configuration says
    #[arg(long)]
    usual: bool,
}

fn class(word: &str) -> Result<TaskClass, String> {
    serde_json::from_value(Value::from(word))
        .map_err(|_| "say `expiring`, `transactional`, `product` or `newsletter`".to_owned())
}

impl RouteArguments {
    /// The way that is meant; none is the usual one.
    pub fn route(&self) -> Option<RouteOverride> {
        let mx = self.mx.then_some(RouteOverride::MailHosts);
        self.smarthost.clone().map(RouteOverride::Smarthost).or(mx)
    }
}

impl FilterArguments {
    fn to_filter(&self) -> QueueFilter {
        QueueFilter {
            to: self.to.clone(),
            account: self.account.clone(),
            from: self.from.clone(),
            class: self.class,
            held: self.held.then_some(true),
            attempts_min: self.attempts,
            older_seconds: self.older.map(|older| older.as_secs()),
        }
    }
}

impl QueueSelection {
    fn to_request(&self, order: &QueueCommand) -> AdminRequest {
        let order = order.word();
        match &self.email {
            Some(email) => AdminRequest::Queue { order, email: email.clone() },
            None => AdminRequest::QueueMany { order, filter: self.filter.to_filter() },
        }
    }
}

/// What the server is asked.
pub fn build_request(command: &QueueSubcommand) -> AdminRequest {
    match command {
        QueueSubcommand::List { limit, filter, recipient, sender, message_id, cursor } => {
            let search =
                QueueSearch { recipient: recipient.clone(), sender: sender.clone(), message_id: message_id.clone() };
            AdminRequest::QueueList { limit: *limit, filter: filter.to_filter(), search, cursor: cursor.clone() }
        }
        QueueSubcommand::Top { limit } => AdminRequest::QueueTop { limit: *limit },
        QueueSubcommand::Show { email } => AdminRequest::Trace { email: email.clone() },
        QueueSubcommand::Retry(which) => which.to_request(&QueueCommand::Retry),
        QueueSubcommand::Hold(which) => which.to_request(&QueueCommand::Hold),
        QueueSubcommand::Release(which) => which.to_request(&QueueCommand::Release),
        QueueSubcommand::Drop(which) => which.to_request(&QueueCommand::Drop),
        QueueSubcommand::Reroute { way, which } => which.to_request(&QueueCommand::Reroute(way.route())),
    }
}

const TOP: [Column; 7] = [
    Column::new("waiting", "tasks", 10),
    Column::new("held", "held", 10),
    Column::new("oldest", "oldest_age", 8),
    Column::new("open", "connections", 6),
    Column::new("limit", "limit", 12),
    Column::new("destination", "name", 44),
    Column::new("last reply", "last_reply", 60),
];

/// The answer to `queue top` as a table.
pub fn top(shown: &Value) -> String {
    let destinations = list(shown, "destinations");
    let mut out = hold(shown);
    out.push_str(&table(&TOP, destinations));
    for destination in destinations {
        if let (Some(name), Some(slowed)) = (destination["name"].as_str(), destination["slowed"].as_str()) {
            let line = format!("{name}: {slowed}");
            // Writing to a String does not fail.
            let _ = writeln!(out, "{}", mail::log_text::cleaned(&line, false));
        }
    }
    // Writing to a String does not fail.
    let _ = writeln!(
        out,
        "{} recipients wait for {} destinations; {} of these are shown",
        shown["tasks"],
        shown["count"],
        destinations.len()
    );
    out
}

const TASKS: [Column; 7] = [
    Column::new("email", "email", 40),
    Column::new("recipient", "recipient", 44),
    Column::new("account", "account", 40),
    Column::new("class", "class", 13),
    Column::new("tries", "attempts", 5),
    Column::new("due", "due", 24),
    Column::new("held by", "held_by", 17),
];

const SITES: [Column; 5] = [
    Column::new("destination", "name", 44),
    Column::new("ready", "ready", 8),
    Column::new("open", "connections", 6),
    Column::new("unreachable until", "dead_until", 24),
    Column::new("rate limited until", "rate_until", 24),
];

/// The answer to `queue list` as tables: what waits, and the destinations that something is ready for.
pub fn tasks(shown: &Value) -> String {
    let mut out = hold(shown);
    out.push_str(&table(&TASKS, list(shown, "tasks")));
    let sites = list(shown, "sites");
    if !sites.is_empty() {
        out.push('\n');
        out.push_str(&table(&SITES, sites));
    }
    if shown["has_more"] == true {
        // Writing to a String does not fail.
        let _ = writeln!(out, "{} recipients read", shown["tasks_read"]);
    }
    out + &next(shown)
}

/// The hold of the whole queue, where it is on.
fn hold(shown: &Value) -> String {
    let Some(hold) = shown["hold"].as_object() else { return String::new() };
    let text = |field: &str| hold.get(field).and_then(Value::as_str).unwrap_or("-");
    format!("The queue is held since {}: {}\n", text("since"), text("because"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(subcommand)]
        command: QueueSubcommand,
    }

    fn command(line: &str) -> QueueSubcommand {
        Line::try_parse_from(format!("queue {line}").split(' ')).unwrap().command
    }

    #[test]
    fn what_slowed_a_destination_stands_below_the_table() {
        let shown = json!({"tasks": 7, "count": 1, "destinations": [{
            "name": "mx.example", "tasks": 7, "held": 0, "oldest_age": "5m", "connections": 1,
            "limit": "connections", "last_reply": "450 4.2.0 later",
            "slowed": "slowed from 5 to 1 connections because of 421 4.7.0 busy",
        }]});
        let text = top(&shown);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].ends_with("mx.example   450 4.2.0 later"), "{text}");
        assert_eq!(lines[2], "mx.example: slowed from 5 to 1 connections because of 421 4.7.0 busy");
    }

    /// There is no terminal here.
    #[test]
    fn who_means_all_without_a_terminal_says_so() {
        let nobody = |_: &AdminRequest| -> Result<Value, AdminError> { panic!("nothing is counted") };
        let refused = command("drop --all").confirmation().unwrap().ask(nobody).unwrap_err();
        assert!(refused.to_string().contains("--yes"), "{refused}");
        assert!(command("drop --all --yes").confirmation().unwrap().ask(nobody).unwrap().is_none());
        assert!(command("release --all").confirmation().is_none(), "it only lets mail go");
        assert!(command("drop msg_1").confirmation().is_none());
        let counted = |_: &AdminRequest| Ok(json!({"recipients": 277}));
        for line in ["retry --to a.example --dry-run", "hold --all --dry-run", "release --all --dry-run"] {
            let shown = command(line).confirmation().unwrap().ask(counted).unwrap();
            assert_eq!(shown, Some(json!({"recipients": 277})), "{line}");
        }
    }
}
