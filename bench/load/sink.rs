//! `load sink`: accepts mail at any number of loopback addresses and logs when each recipient was first tried.
//!
//! ```text
//! stdin: empty line ─► flush the log; print the counters to stdout as one line of JSON
//!        `drip N`   ─► from now on every Nth numbered host (numbered_hosts.rs) sends one byte at a time; 0: none
//!        EOF        ─► exit
//! ```
//!
//! A line of the log is a recipient's address and the time of its RCPT, in microseconds since 1970. The sink is one
//! process with one thread and takes some ten microseconds per message, so that it disturbs the measurement little.
//! Tarpits (numbered_hosts.rs) always send one byte at a time.
//!
//! Limits: a line of up to [`LINE_BYTES_MAX`]; no EHLO extension except PIPELINING and 8BITMIME.

use parking_lot::Mutex;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead as _, BufWriter, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::measure::wall_us;
use crate::numbered_hosts::{self, Host};

/// Limit for a command line (RFC 5321 4.5.3.1.4 requires at least 512).
const LINE_BYTES_MAX: usize = 4096;
/// Listen backlog of each address.
const BACKLOG: u32 = 4096;
const END: &[u8] = b"\r\n.\r\n";
const READ_BYTES: usize = 16 << 10;

/// Arguments of `load sink`.
#[derive(Args)]
pub(crate) struct Plan {
    /// First address, and the port; 0.0.0.0 for every address.
    #[arg(long)]
    listen: SocketAddrV4,
    /// Number of consecutive addresses to listen on; all others refuse connections.
    #[arg(long, default_value_t = 1)]
    addresses: u32,
    /// Log file: recipients and the times at which they were tried.
    #[arg(long)]
    log: PathBuf,
    /// Milliseconds between two bytes of a host that sends one byte at a time.
    #[arg(long, default_value_t = 3000)]
    drip_ms: u64,
}

struct Shared {
    log: Mutex<BufWriter<File>>,
    drip: Duration,
    /// Every Nth numbered host sends one byte at a time; 0: none.
    drips_every: AtomicU32,
    messages: AtomicU64,
    tarpit_messages: AtomicU64,
    open: AtomicU64,
    open_tarpits: AtomicU64,
}

/// Listens until stdin ends.
pub(crate) fn run(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let shared = Arc::new(Shared {
        log: Mutex::new(BufWriter::with_capacity(1 << 20, File::create(&plan.log)?)),
        drip: Duration::from_millis(plan.drip_ms),
        drips_every: AtomicU32::new(0),
        messages: AtomicU64::new(0),
        tarpit_messages: AtomicU64::new(0),
        open: AtomicU64::new(0),
        open_tarpits: AtomicU64::new(0),
    });
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut listeners = Vec::new();
        for number in 0..plan.addresses {
            let ip = Ipv4Addr::from_bits(plan.listen.ip().to_bits() + number);
            listeners.push(listen(SocketAddrV4::new(ip, plan.listen.port()))?);
        }
        for listener in listeners {
            tokio::spawn(accept_connections(listener, Arc::clone(&shared)));
        }
        tokio::task::spawn_blocking(move || run_commands(&shared)).await?
    })?;
    // Do not wait for open connections.
    std::process::exit(0)
}

fn listen(address: SocketAddrV4) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address.into())?;
    socket.listen(BACKLOG)
}

/// Executes the commands from stdin until EOF.
fn run_commands(shared: &Shared) -> io::Result<()> {
    println!("{{\"listening\":true}}");
    for line in io::stdin().lock().lines() {
        if let Some(every) = line?.strip_prefix("drip ") {
            shared.drips_every.store(every.trim().parse().map_err(io::Error::other)?, Ordering::Relaxed);
        }
        shared.log.lock().flush()?;
        println!(
            "{{\"messages\":{},\"tarpit_messages\":{},\"open\":{},\"open_tarpits\":{}}}",
            shared.messages.load(Ordering::Relaxed),
            shared.tarpit_messages.load(Ordering::Relaxed),
            shared.open.load(Ordering::Relaxed),
            shared.open_tarpits.load(Ordering::Relaxed),
        );
    }
    Ok(())
}

async fn accept_connections(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    // A broken connection needs no handling.
                    let _ = Session::run(stream, &shared).await;
                });
            }
            // Most likely out of file descriptors: wait until open connections have closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// One connection; it is counted as open until it is dropped.
struct Session<'a> {
    stream: TcpStream,
    shared: &'a Shared,
    is_tarpit: bool,
    buffer: Vec<u8>,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.count(u64::MAX);
    }
}

impl<'a> Session<'a> {
    async fn run(stream: TcpStream, shared: &'a Shared) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let host = match stream.local_addr()?.ip() {
            IpAddr::V4(ip) => numbered_hosts::host_at(ip),
            IpAddr::V6(_) => Host::Usual(0),
        };
        let every = shared.drips_every.load(Ordering::Relaxed);
        let is_tarpit = match host {
            Host::Tarpit => true,
            Host::Usual(number) => every != 0 && number.is_multiple_of(every),
        };
        let mut session = Self { stream, shared, is_tarpit, buffer: Vec::with_capacity(READ_BYTES) };
        session.count(1);
        session.write(b"220 sink ESMTP\r\n").await?;
        session.run_dialog().await
    }

    /// Adds `by` to the open connections. `u64::MAX` subtracts one (wrapping addition).
    fn count(&self, by: u64) {
        self.shared.open.fetch_add(by, Ordering::Relaxed);
        if self.is_tarpit {
            self.shared.open_tarpits.fetch_add(by, Ordering::Relaxed);
        }
    }

    async fn run_dialog(&mut self) -> io::Result<()> {
        let mut replies = Vec::new();
        loop {
            while let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let verb: [u8; 4] = std::array::from_fn(|n| line.get(n).map_or(0, u8::to_ascii_uppercase));
                match &verb {
                    b"EHLO" => replies.extend_from_slice(b"250-sink\r\n250-PIPELINING\r\n250 8BITMIME\r\n"),
                    b"RCPT" => {
                        self.log_recipient(&line)?;
                        replies.extend_from_slice(b"250 2.1.5 Ok\r\n");
                    }
                    b"DATA" => {
                        replies.extend_from_slice(b"354 Go on\r\n");
                        self.write(&std::mem::take(&mut replies)).await?;
                        self.skip_content().await?;
                        let Shared { messages, tarpit_messages, .. } = self.shared;
                        let count = if self.is_tarpit { tarpit_messages } else { messages };
                        count.fetch_add(1, Ordering::Relaxed);
                        replies.extend_from_slice(b"250 2.0.0 Ok\r\n");
                    }
                    b"QUIT" => {
                        replies.extend_from_slice(b"221 2.0.0 Bye\r\n");
                        return self.write(&replies).await;
                    }
                    _ => replies.extend_from_slice(b"250 2.0.0 Ok\r\n"),
                }
            }
            self.write(&std::mem::take(&mut replies)).await?;
            if self.buffer.len() > LINE_BYTES_MAX || self.read().await? == 0 {
                return Ok(());
            }
        }
    }

    /// Reads and discards the content up to the final dot.
    async fn skip_content(&mut self) -> io::Result<()> {
        // Content may be empty: the CRLF of the DATA line precedes its final dot (RFC 5321 4.1.1.4).
        self.buffer.splice(0..0, *b"\r\n");
        loop {
            if let Some(at) = self.buffer.windows(END.len()).position(|bytes| bytes == END) {
                self.buffer.drain(..at + END.len());
                return Ok(());
            }
            let discardable = self.buffer.len().saturating_sub(END.len());
            self.buffer.drain(..discardable);
            if self.read().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        self.buffer.reserve(READ_BYTES);
        self.stream.read_buf(&mut self.buffer).await
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_tarpit {
            return self.stream.write_all(bytes).await;
        }
        for byte in bytes.chunks(1) {
            self.stream.write_all(byte).await?;
            tokio::time::sleep(self.shared.drip).await;
        }
        Ok(())
    }

    /// Logs the recipient of a `RCPT TO:<…>` line.
    fn log_recipient(&self, line: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(line);
        let address = text.split_once('<').and_then(|(_, suffix)| suffix.split_once('>')).map(|(address, _)| address);
        let mut log = self.shared.log.lock();
        writeln!(log, "{} {}", address.unwrap_or_default(), wall_us())
    }
}
