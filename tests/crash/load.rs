//! SMTP clients that submit messages as fast as the server accepts them.
//!
//! The envelope is pipelined. The final dot is written separately, so that the ledger records the message before the
//! server can have read the dot. A client whose connection breaks waits until the server runs again.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::installation::PATIENCE;
use crate::ledger::{Ledger, Token, recipients};

/// Number of the server's current start. Clients stop at `Over`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerRun {
    Number(usize),
    Over,
}

/// The running clients.
pub(crate) struct Load {
    server_run: watch::Sender<ServerRun>,
    clients: JoinSet<()>,
}

impl Load {
    /// Starts the clients; they wait until the server runs for the first time.
    pub(crate) fn start(clients: usize, relay: SocketAddr, ledger: &Arc<Ledger>) -> Self {
        let server_run = watch::Sender::new(ServerRun::Number(0));
        let mut tasks = JoinSet::new();
        for _ in 0..clients {
            let (ledger, server_run) = (Arc::clone(ledger), server_run.subscribe());
            tasks.spawn(async move { submit(relay, &ledger, server_run).await });
        }
        Self { server_run, clients: tasks }
    }

    /// Reports that the server runs (again).
    pub(crate) fn resume(&self) {
        self.server_run.send_modify(|server_run| {
            if let ServerRun::Number(number) = server_run {
                *number += 1;
            }
        });
    }

    /// Lets each client finish its current message, then stops it.
    pub(crate) async fn stop(mut self) {
        self.server_run.send_replace(ServerRun::Over);
        while let Some(client) = tokio::time::timeout(PATIENCE, self.clients.join_next()).await.unwrap() {
            client.unwrap();
        }
    }
}

async fn submit(relay: SocketAddr, ledger: &Ledger, mut server_run: watch::Receiver<ServerRun>) {
    let mut last_run = ServerRun::Number(0);
    loop {
        let current_run = *server_run.wait_for(|current_run| *current_run != last_run).await.unwrap();
        if current_run == ServerRun::Over {
            return;
        }
        // Reconnect only after the next start of the server, whatever ended the session.
        if let Ok(stream) = TcpStream::connect(relay).await {
            stream.set_nodelay(true).unwrap();
            let _ = run_session(BufReader::new(stream), ledger, &server_run).await;
        }
        last_run = current_run;
    }
}

/// Submits messages until an unexpected reply, a broken connection, or the end of the load.
async fn run_session(
    mut stream: BufReader<TcpStream>,
    ledger: &Ledger,
    server_run: &watch::Receiver<ServerRun>,
) -> Option<()> {
    reply(&mut stream, "220").await?;
    write_text(&mut stream, "EHLO client.example\r\n").await?;
    reply(&mut stream, "250").await?;
    while *server_run.borrow() != ServerRun::Over {
        let token = ledger.start_message();
        let to = recipients(token);
        let rcpt_commands: String = to.iter().map(|to| format!("RCPT TO:<{to}>\r\n")).collect();
        write_text(&mut stream, &format!("MAIL FROM:<shop@acme.example>\r\n{rcpt_commands}DATA\r\n")).await?;
        for _ in 0..=to.len() {
            reply(&mut stream, "250").await?;
        }
        reply(&mut stream, "354").await?;
        write_text(&mut stream, &dot_stuff(&message(token, &to))).await?;
        ledger.record_dot(token);
        write_text(&mut stream, ".\r\n").await?;
        match reply(&mut stream, "").await? {
            reply if reply.starts_with("250 2.0.0 OK msg_") => {
                ledger.acknowledge(token, &reply["250 2.0.0 OK ".len()..])
            }
            other => {
                ledger.refuse(token, &other);
                return None;
            }
        }
    }
    write_text(&mut stream, "QUIT\r\n").await
}

async fn write_text(stream: &mut BufReader<TcpStream>, text: &str) -> Option<()> {
    stream.get_mut().write_all(text.as_bytes()).await.ok()
}

/// Reads a complete reply. Returns its last line if it begins with `prefix`; a truncated line counts as none.
async fn reply(stream: &mut BufReader<TcpStream>, prefix: &str) -> Option<String> {
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let line = line.strip_suffix("\r\n")?;
        if line.as_bytes().get(3) != Some(&b'-') {
            return line.starts_with(prefix).then(|| line.to_owned());
        }
    }
}

fn message(token: Token, to: &[String]) -> String {
    format!("From: Shop <shop@acme.example>\r\nTo: {}\r\nSubject: token {token}\r\n\r\n{}", to.join(", "), body(token))
}

fn dot_stuff(message: &str) -> String {
    message.replace("\r\n.", "\r\n..")
}

/// The body for a token: most are small; every eighth fills many pages of the log.
pub(crate) fn body(token: Token) -> String {
    let lines = if token.is_multiple_of(8) { 1_000 } else { 10 + token % 20 };
    let mut body = String::from(".this line begins with a dot\r\n");
    for line in 0..lines {
        body.push_str(&format!("token {token}, line {line}, {:064x}\r\n", token.wrapping_mul(0x9E37_79B9) ^ line));
    }
    body
}
