//! `load send`: many sessions at once, each a thread, until the wished number of messages is accepted.
//!
//! Flow: the threads draw message numbers from one counter, so that a slow session does not hold up
//! the others; each number makes the recipient (`{n}` in the template), so that a run can send one
//! message to each of a thousand domains (`{d}`, if there are fewer domains than messages). The latency of a message runs from its connect (or from its
//! MAIL on a connection that is reused) to the reply after the final dot. With `--per-second` a message has a moment
//! of its own at which it is sent, however long the others take; with `--log` each recipient is written down with the
//! time of that reply, so that it is known how long it waited when the sink knows when it was tried.

use std::error::Error;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use rustls::ClientConfig;

use crate::measure::{at_once, clock, wait_until, wall_us};
use crate::sender::{self, Sender};
use crate::smtp::{Client, Opening};
use crate::tls;

/// What to send, where and how.
#[derive(Args)]
pub(crate) struct Plan {
    /// The server.
    #[arg(long)]
    to: SocketAddr,
    /// Connections at a time.
    #[arg(long, default_value_t = 20)]
    sessions: usize,
    /// Messages in all.
    #[arg(long, default_value_t = 1000)]
    messages: usize,
    /// Messages per connection; 0 keeps a connection to the end.
    #[arg(long, default_value_t = 0)]
    per_connection: usize,
    /// Bytes of each message.
    #[arg(long, default_value_t = 10_240)]
    size_bytes: usize,
    /// Envelope sender and From; `{s}` becomes the number of the sender.
    #[arg(long)]
    from: String,
    /// How many senders take turns.
    #[arg(long, default_value_t = 1)]
    senders: usize,
    /// Messages are signed by DKIM for the domain of From, with this RSA key (PEM).
    #[arg(long)]
    sign_with: Option<PathBuf>,
    /// Recipient; `{n}` becomes the number of the message, `{d}` that of the domain.
    #[arg(long)]
    rcpt: String,
    /// How many domains take turns.
    #[arg(long, default_value_t = usize::MAX)]
    domains: usize,
    /// Messages a second; left out: as many as are taken.
    #[arg(long)]
    per_second: Option<f64>,
    /// A file for the recipients, when each was accepted, in microseconds of the machine's clock, and in how many.
    #[arg(long)]
    log: Option<PathBuf>,
    /// STARTTLS on each connection, with a full handshake.
    #[arg(long)]
    starttls: bool,
    /// AUTH PLAIN with this name.
    #[arg(long, requires = "password")]
    user: Option<String>,
    /// The password for it.
    #[arg(long)]
    password: Option<String>,
}

/// Sends it all and prints the result.
pub(crate) fn run(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let tls = if plan.starttls { Some(tls::config()?) } else { None };
    let key = plan.sign_with.as_deref().map(sender::key).transpose()?;
    let senders = sender::senders(&plan.from, plan.senders, plan.size_bytes, key.as_ref())?;
    let log = plan.log.as_ref().map(File::create).transpose()?;
    let turns = Turns { next: AtomicUsize::new(0), began: clock(), log };
    at_once(plan.sessions, 1, || session(plan, tls.as_ref(), &senders, &turns))
}

/// What the sessions have in common.
struct Turns {
    next: AtomicUsize,
    began: Instant,
    log: Option<File>,
}

impl Turns {
    /// The number of the next message, at the moment that it has.
    fn next(&self, plan: &Plan) -> usize {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(rate) = plan.per_second.filter(|_| number < plan.messages) {
            #[expect(clippy::cast_precision_loss, reason = "messages of one run")]
            wait_until(self.began + Duration::from_secs_f64(number as f64 / rate));
        }
        number
    }

    /// Writes down that a recipient was accepted. A line is one write, so that lines of threads do not mix.
    fn accepted(&self, rcpt: &str, took: Duration) -> io::Result<()> {
        let line = || format!("{rcpt} {} {}\n", wall_us(), took.as_micros());
        match &self.log {
            Some(log) => (&*log).write_all(line().as_bytes()),
            None => Ok(()),
        }
    }
}

fn session(
    plan: &Plan,
    tls: Option<&Arc<ClientConfig>>,
    senders: &[Sender],
    turns: &Turns,
) -> io::Result<Vec<Duration>> {
    let login = plan.user.as_deref().zip(plan.password.as_deref());
    let opening = Opening { to: plan.to, tls, login };
    let mut latencies = Vec::with_capacity(plan.messages / plan.sessions.max(1) + 1);
    let mut connection: Option<(Client, usize)> = None;
    loop {
        let number = turns.next(plan);
        if number >= plan.messages {
            break;
        }
        let start = clock();
        let (mut client, sent) = match connection.take() {
            Some(open) => open,
            None => (Client::open(&opening)?, 0),
        };
        let Some(sender) = senders.get(number % senders.len().max(1)) else { break };
        let domain = number % plan.domains.max(1);
        let rcpt = plan.rcpt.replace("{n}", &number.to_string()).replace("{d}", &domain.to_string());
        client.deliver(&sender.address, &rcpt, &sender.content)?;
        let took = start.elapsed();
        turns.accepted(&rcpt, took)?;
        latencies.push(took);
        if plan.per_connection != 0 && sent + 1 >= plan.per_connection {
            client.quit()?;
        } else {
            connection = Some((client, sent + 1));
        }
    }
    if let Some((client, _)) = connection {
        client.quit()?;
    }
    Ok(latencies)
}
