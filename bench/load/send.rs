//! `load send`: sends mail over many concurrent SMTP sessions until the requested number of messages is accepted.
//!
//! The sessions draw message numbers from one shared counter, so a slow session does not delay the others. The number
//! determines the recipient (`{n}` in the template), so a run can send one message to each of a thousand domains
//! (`{d}`, if there are fewer domains than messages). The latency of a message is measured from its connect (from its
//! MAIL on a reused connection) to the reply after the final dot.
//!
//! With `--per-second` each message has a scheduled send time that does not depend on the others (open loop). With
//! `--log` each recipient is logged with the time of its final reply; together with the log of the sink this gives the
//! time in the queue.

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
use tokio::time::timeout;

use crate::measure::{at_once, clock, wait_until, wall_us};
use crate::sender::{self, Sender};
use crate::smtp::{Client, Opening};
use crate::tls;

/// The run fails if a message or QUIT is not answered within this time.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Arguments of `load send`.
#[derive(Args, Clone)]
pub(crate) struct Plan {
    /// Address of the server.
    #[arg(long)]
    to: SocketAddr,
    /// Concurrent connections.
    #[arg(long, default_value_t = 20)]
    sessions: usize,
    /// Total number of messages.
    #[arg(long, default_value_t = 1000)]
    messages: usize,
    /// Messages per connection; 0: no limit.
    #[arg(long, default_value_t = 0)]
    per_connection: usize,
    /// Bytes of each message.
    #[arg(long, default_value_t = 10_240)]
    size_bytes: usize,
    /// Envelope sender and From; `{s}` is replaced by the number of the sender.
    #[arg(long)]
    from: String,
    /// Number of senders, used in turn.
    #[arg(long, default_value_t = 1)]
    senders: usize,
    /// Sign each message with DKIM for the domain of From, with this RSA key (PEM).
    #[arg(long)]
    sign_with: Option<PathBuf>,
    /// Recipient; `{n}` is replaced by the number of the message, `{d}` by that of the domain.
    #[arg(long)]
    rcpt: String,
    /// Number of recipient domains, used in turn.
    #[arg(long, default_value_t = usize::MAX)]
    domains: usize,
    /// Messages per second; without it, as fast as the server accepts.
    #[arg(long)]
    per_second: Option<f64>,
    /// Log file: recipient, time of acceptance (wall clock) and latency, both in microseconds.
    #[arg(long)]
    log: Option<PathBuf>,
    /// Use STARTTLS on each connection, with a full handshake.
    #[arg(long)]
    starttls: bool,
    /// User name for AUTH PLAIN.
    #[arg(long, requires = "password")]
    user: Option<String>,
    /// Password for AUTH PLAIN.
    #[arg(long)]
    password: Option<String>,
}

/// Sends all messages and prints the result.
pub(crate) fn run(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let key = plan.sign_with.as_deref().map(sender::key).transpose()?;
    let run = Arc::new(Run {
        plan: plan.clone(),
        tls: if plan.starttls { Some(tls::config()?) } else { None },
        senders: sender::senders(&plan.from, plan.senders, plan.size_bytes, key.as_ref())?,
        next: AtomicUsize::new(0),
        started_at: clock(),
        log: plan.log.as_ref().map(File::create).transpose()?,
    });
    at_once(plan.sessions, 1, || session(Arc::clone(&run)))
}

/// State shared by the sessions.
struct Run {
    plan: Plan,
    tls: Option<Arc<ClientConfig>>,
    senders: Vec<Sender>,
    next: AtomicUsize,
    started_at: Instant,
    log: Option<File>,
}

impl Run {
    /// Waits for the scheduled time of the next message and returns its number, or `None` after the last one.
    async fn next(&self) -> Option<usize> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= self.plan.messages {
            return None;
        }
        if let Some(rate) = self.plan.per_second {
            #[expect(clippy::cast_precision_loss, reason = "messages of one run")]
            wait_until(self.started_at + Duration::from_secs_f64(number as f64 / rate)).await;
        }
        Some(number)
    }

    fn rcpt(&self, number: usize) -> String {
        let domain = number % self.plan.domains.max(1);
        self.plan.rcpt.replace("{n}", &number.to_string()).replace("{d}", &domain.to_string())
    }

    /// Logs an accepted recipient.
    fn accepted(&self, rcpt: &str, duration: Duration) -> io::Result<()> {
        let line = || format!("{rcpt} {} {}\n", wall_us(), duration.as_micros());
        match &self.log {
            Some(log) => (&*log).write_all(line().as_bytes()),
            None => Ok(()),
        }
    }
}

async fn session(run: Arc<Run>) -> io::Result<Vec<Duration>> {
    let plan = &run.plan;
    let mut latencies = Vec::with_capacity(plan.messages / plan.sessions.max(1) + 1);
    let mut connection: Option<(Client, usize)> = None;
    while let Some(number) = run.next().await {
        let Some(sender) = run.senders.get(number % run.senders.len().max(1)) else { break };
        let rcpt = run.rcpt(number);
        let start = clock();
        let sending = send(&run, connection.take(), sender, &rcpt);
        let (client, sent) = timeout(REPLY_TIMEOUT, sending).await??;
        let duration = start.elapsed();
        run.accepted(&rcpt, duration)?;
        latencies.push(duration);
        if plan.per_connection != 0 && sent >= plan.per_connection {
            timeout(REPLY_TIMEOUT, client.quit()).await??;
        } else {
            connection = Some((client, sent));
        }
    }
    if let Some((client, _)) = connection {
        timeout(REPLY_TIMEOUT, client.quit()).await??;
    }
    Ok(latencies)
}

/// Sends one message over the open connection or a new one. Returns the connection and its number of messages.
async fn send(
    run: &Run,
    connection: Option<(Client, usize)>,
    sender: &Sender,
    rcpt: &str,
) -> io::Result<(Client, usize)> {
    let (mut client, sent) = match connection {
        Some(open) => open,
        None => {
            let login = run.plan.user.as_deref().zip(run.plan.password.as_deref());
            (Client::open(&Opening { to: run.plan.to, tls: run.tls.as_ref(), login }).await?, 0)
        }
    };
    client.deliver(&sender.address, rcpt, &sender.content).await?;
    Ok((client, sent + 1))
}
