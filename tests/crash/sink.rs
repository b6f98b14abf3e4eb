//! The mail host: accepts every message and defers every tenth one once.
//!
//! It implements enough SMTP for a pipelining client. A message counts as arrived once its final dot was read; the
//! ledger records it before the reply is written.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::ledger::{ConnectionIndex, Ledger, Token};
use crate::load::body;

/// Starts the mail host on a free loopback port. It runs until the runtime ends.
pub(crate) async fn start(ledger: &Arc<Ledger>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let ledger = Arc::clone(ledger);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let ledger = Arc::clone(&ledger);
            tokio::spawn(async move {
                let line = ledger.open();
                // A broken connection needs no handling.
                let _ = serve(stream, &ledger, line).await;
                ledger.close(line);
            });
        }
    });
    address
}

async fn serve(stream: TcpStream, ledger: &Ledger, connection: ConnectionIndex) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    write.write_all(b"220 mx.dest.example ESMTP\r\n").await.ok()?;
    let mut recipient = None;
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).await.ok()? == 0 {
            return Some(());
        }
        let verb = line.get(..4).unwrap_or_default().to_ascii_uppercase();
        let reply = match verb.as_str() {
            "EHLO" => "250-mx.dest.example\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SIZE 100000000",
            "MAIL" | "RSET" => {
                recipient = None;
                "250 2.0.0 OK"
            }
            "RCPT" => {
                recipient = line.split_once('<')?.1.split_once('>').map(|(to, _)| to.to_owned());
                "250 2.1.5 OK"
            }
            "DATA" => {
                let to = recipient.take()?;
                write.write_all(b"354 go on\r\n").await.ok()?;
                let delivery = (parse_token(&read_content(&mut read).await?), to);
                if ledger.defers_once(&delivery) {
                    "451 4.3.0 in a moment"
                } else {
                    ledger.record_arrival(connection, delivery);
                    "250 2.0.0 taken"
                }
            }
            "QUIT" => {
                write.write_all(b"221 2.0.0 bye\r\n").await.ok()?;
                return Some(());
            }
            _ => "502 5.5.2 what?",
        };
        write.write_all(format!("{reply}\r\n").as_bytes()).await.ok()?;
    }
}

/// Returns the token of a message and checks that its body arrived unchanged.
fn parse_token(content: &str) -> Token {
    let (head, found) = content.split_once("\r\n\r\n").expect("a header and a body");
    let subject = head.lines().find_map(|line| line.strip_prefix("Subject: token "));
    let token = subject.and_then(|token| token.parse().ok()).expect("a token");
    assert!(found == body(token), "message {token} arrived changed");
    token
}

/// Reads the content up to the final dot, or `None` if the connection ends before it.
async fn read_content(read: &mut (impl AsyncBufReadExt + Unpin)) -> Option<String> {
    let mut content = String::new();
    loop {
        let start = content.len();
        if read.read_line(&mut content).await.ok()? == 0 {
            return None;
        }
        match content.get(start..)? {
            ".\r\n" => {
                content.truncate(start);
                return Some(content);
            }
            line if line.starts_with('.') => {
                content.remove(start);
            }
            _ => {}
        }
    }
}
