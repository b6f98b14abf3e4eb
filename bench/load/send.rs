//! `load send`: many sessions at once, each a thread, until the wished number of messages is accepted.
//!
//! Flow: the threads draw message numbers from one counter, so that a slow session does not hold up
//! the others; each number makes the recipient (`{n}` in the template), so that a run can send one
//! message to each of a thousand domains. The latency of a message runs from its connect (or from its
//! MAIL on a connection that is reused) to the reply after the final dot.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;
use rustls::ClientConfig;

use crate::measure::{at_once, clock};
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
    /// Recipient; `{n}` becomes the number of the message.
    #[arg(long)]
    rcpt: String,
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
    let next = AtomicUsize::new(0);
    at_once(plan.sessions, 1, || session(plan, tls.as_ref(), &senders, &next))
}

fn session(
    plan: &Plan,
    tls: Option<&Arc<ClientConfig>>,
    senders: &[Sender],
    next: &AtomicUsize,
) -> io::Result<Vec<Duration>> {
    let login = plan.user.as_deref().zip(plan.password.as_deref());
    let opening = Opening { to: plan.to, tls, login };
    let mut latencies = Vec::with_capacity(plan.messages / plan.sessions.max(1) + 1);
    let mut connection: Option<(Client, usize)> = None;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= plan.messages {
            break;
        }
        let start = clock();
        let (mut client, sent) = match connection.take() {
            Some(open) => open,
            None => (Client::open(&opening)?, 0),
        };
        let Some(sender) = senders.get(number % senders.len().max(1)) else { break };
        client.deliver(&sender.address, &plan.rcpt.replace("{n}", &number.to_string()), &sender.content)?;
        latencies.push(start.elapsed());
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
