//! `load send`: many sessions at once, each a thread, until the wished number of messages is accepted.
//!
//! Flow: the threads draw message numbers from one counter, so that a slow session does not hold up
//! the others; each number makes the recipient (`{n}` in the template), so that a run can send one
//! message to each of a thousand domains. The latency of a message runs from its connect (or from its
//! MAIL on a connection that is reused) to the reply after the final dot.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;
use rustls::ClientConfig;

use crate::measure::{at_once, clock};
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
    /// Envelope sender and From.
    #[arg(long)]
    from: String,
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
    let content = content(&plan.from, plan.size_bytes);
    let next = AtomicUsize::new(0);
    at_once(plan.sessions, 1, || session(plan, tls.as_ref(), &content, &next))
}

fn session(
    plan: &Plan,
    tls: Option<&Arc<ClientConfig>>,
    content: &[u8],
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
        client.deliver(&plan.from, &plan.rcpt.replace("{n}", &number.to_string()), content)?;
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

/// Headers, lines of text up to the size, and the final dot.
fn content(from: &str, size_bytes: usize) -> Vec<u8> {
    let mut text = format!(
        "From: <{from}>\r\nTo: <load@bench.test>\r\nDate: Mon, 01 Jan 2024 00:00:00 +0000\r\n\
         Subject: load\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"
    )
    .into_bytes();
    while text.len() < size_bytes {
        let line = b"The quick brown fox jumps over the lazy dog, again and again and again.\r\n";
        let room = size_bytes - text.len();
        if room < 4 {
            break;
        }
        text.extend_from_slice(line.get(..room.min(line.len()) - 2).unwrap_or_default());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b".\r\n");
    text
}
