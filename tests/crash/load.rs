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
enum Life {
    Number(usize),
    Over,
}

/// The running clients.
pub(crate) struct Load {
    life: watch::Sender<Life>,
    clients: JoinSet<()>,
}

impl Load {
    /// Starts the clients; they wait until the server runs for the first time.
    pub(crate) fn start(clients: usize, relay: SocketAddr, ledger: &Arc<Ledger>) -> Self {
        let life = watch::Sender::new(Life::Number(0));
        let mut all = JoinSet::new();
        for _ in 0..clients {
            let (ledger, life) = (Arc::clone(ledger), life.subscribe());
            all.spawn(async move { submit(relay, &ledger, life).await });
        }
        Self { life, clients: all }
    }

    /// Reports that the server runs (again).
    pub(crate) fn go(&self) {
        self.life.send_modify(|life| {
            if let Life::Number(number) = life {
                *number += 1;
            }
        });
    }

    /// Lets each client finish its current message, then stops it.
    pub(crate) async fn end(mut self) {
        self.life.send_replace(Life::Over);
        while let Some(client) = tokio::time::timeout(PATIENCE, self.clients.join_next()).await.unwrap() {
            client.unwrap();
        }
    }
}

async fn submit(relay: SocketAddr, ledger: &Ledger, mut life: watch::Receiver<Life>) {
    let mut seen = Life::Number(0);
    loop {
        let now = *life.wait_for(|now| *now != seen).await.unwrap();
        if now == Life::Over {
            return;
        }
        // Reconnect only after the next start of the server, whatever ended the session.
        if let Ok(stream) = TcpStream::connect(relay).await {
            stream.set_nodelay(true).unwrap();
            let _ = talk(BufReader::new(stream), ledger, &life).await;
        }
        seen = now;
    }
}

/// Submits messages until an unexpected reply, a broken connection, or the end of the load.
async fn talk(mut stream: BufReader<TcpStream>, ledger: &Ledger, life: &watch::Receiver<Life>) -> Option<()> {
    reply(&mut stream, "220").await?;
    say(&mut stream, "EHLO client.example\r\n").await?;
    reply(&mut stream, "250").await?;
    while *life.borrow() != Life::Over {
        let token = ledger.begin();
        let to = recipients(token);
        let named: String = to.iter().map(|to| format!("RCPT TO:<{to}>\r\n")).collect();
        say(&mut stream, &format!("MAIL FROM:<shop@acme.example>\r\n{named}DATA\r\n")).await?;
        for _ in 0..=to.len() {
            reply(&mut stream, "250").await?;
        }
        reply(&mut stream, "354").await?;
        say(&mut stream, &stuffed(&message(token, &to))).await?;
        ledger.dot(token);
        say(&mut stream, ".\r\n").await?;
        match reply(&mut stream, "").await? {
            taken if taken.starts_with("250 2.0.0 OK msg_") => {
                ledger.acknowledge(token, &taken["250 2.0.0 OK ".len()..])
            }
            other => {
                ledger.refuse(token, &other);
                return None;
            }
        }
    }
    say(&mut stream, "QUIT\r\n").await
}

async fn say(stream: &mut BufReader<TcpStream>, text: &str) -> Option<()> {
    stream.get_mut().write_all(text.as_bytes()).await.ok()
}

/// Reads a complete reply. Returns its last line if it begins with `wanted`; a truncated line counts as none.
async fn reply(stream: &mut BufReader<TcpStream>, wanted: &str) -> Option<String> {
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let line = line.strip_suffix("\r\n")?;
        if line.as_bytes().get(3) != Some(&b'-') {
            return line.starts_with(wanted).then(|| line.to_owned());
        }
    }
}

fn message(token: Token, to: &[String]) -> String {
    format!("From: Shop <shop@acme.example>\r\nTo: {}\r\nSubject: token {token}\r\n\r\n{}", to.join(", "), body(token))
}

fn stuffed(message: &str) -> String {
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
