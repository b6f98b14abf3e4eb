//! A scripted mail host: accepts every message unless a recipient's script specifies otherwise.
//!
//! It implements enough SMTP for a real client, pipelining included, and records every message with its envelope.
//! Scripts are per recipient, so that one connection can have every behaviour.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

/// Scripted behaviour for one message to a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Reply to RCPT.
    AtRcpt(&'static str),
    /// Reply after the final dot.
    AtDot(&'static str),
    /// Close the connection after the final dot without a reply; the message is recorded.
    CutAfterDot,
    /// Reply to RCPT, delayed until the test calls `release_reply`.
    AtRcptLater(&'static str),
    /// Never reply to RCPT.
    Stall,
    /// Never reply after the final dot; the message is recorded.
    StallAfterDot,
}

/// A message that was accepted.
#[derive(Debug, Clone)]
pub struct ReceivedMessage {
    /// Address of MAIL FROM, without brackets.
    pub sender: String,
    /// Address of RCPT TO, without brackets.
    pub recipient: String,
    /// ESMTP parameters of MAIL.
    pub parameters: String,
    /// The content, dot-unstuffed.
    pub content: String,
    /// Client address.
    pub from: IpAddr,
    /// Name given in EHLO.
    pub helo: String,
}

#[derive(Default)]
struct State {
    behaviours: HashMap<String, Vec<Behaviour>>,
    received: Vec<ReceivedMessage>,
    connections: usize,
    greeting: Option<&'static str>,
    is_greeting_kept: bool,
}

/// The mail host. Clones share its state.
#[derive(Clone)]
pub struct Sink {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
    changed: Arc<watch::Sender<usize>>,
    release: Arc<Notify>,
    pending_reply: Arc<Notify>,
}

impl Sink {
    /// Starts on a free loopback port.
    pub async fn start() -> Self {
        Self::start_on("127.0.0.1:0".parse().unwrap()).await
    }

    /// Starts on an address.
    pub async fn start_on(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let sink = Self {
            address: listener.local_addr().unwrap(),
            state: Arc::default(),
            changed: Arc::new(watch::Sender::new(0)),
            release: Arc::default(),
            pending_reply: Arc::default(),
        };
        let server = sink.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let sink = server.clone();
                sink.state.lock().connections += 1;
                tokio::spawn(async move { sink.serve(stream).await });
            }
        });
        sink
    }

    /// Scripts the next messages to a recipient, one behaviour each. Later messages are accepted.
    pub fn script(&self, recipient: &str, behaviours: &[Behaviour]) {
        self.state.lock().behaviours.insert(recipient.to_owned(), behaviours.to_vec());
    }

    /// Waits until a delayed reply is pending.
    pub async fn pending_reply(&self) {
        self.pending_reply.notified().await;
    }

    /// Releases one pending reply.
    pub fn release_reply(&self) {
        self.release.notify_one();
    }

    /// Sends this greeting to the next connection and closes it.
    pub fn script_greeting(&self, greeting: &'static str) {
        self.state.lock().greeting = Some(greeting);
    }

    /// Sends this greeting to all connections and closes them; `None` restores the normal greeting.
    pub fn script_all_greetings(&self, greeting: Option<&'static str>) {
        let mut state = self.state.lock();
        (state.greeting, state.is_greeting_kept) = (greeting, greeting.is_some());
    }

    /// All messages accepted so far.
    pub fn received(&self) -> Vec<ReceivedMessage> {
        self.state.lock().received.clone()
    }

    /// Number of connections so far.
    pub fn connections(&self) -> usize {
        self.state.lock().connections
    }

    /// Waits until `count` messages were accepted.
    pub async fn wait_for(&self, count: usize) -> Vec<ReceivedMessage> {
        let mut changed = self.changed.subscribe();
        let condition = changed.wait_for(|received| *received >= count);
        let result = tokio::time::timeout(super::PATIENCE, condition).await;
        assert!(result.is_ok(), "only these arrived: {:#?}", self.received());
        self.received()
    }

    fn next_behaviour(&self, recipient: &str) -> Option<Behaviour> {
        let mut state = self.state.lock();
        let script = state.behaviours.get_mut(recipient)?;
        (!script.is_empty()).then(|| script.remove(0))
    }

    fn record_message(&self, received: ReceivedMessage) {
        let mut state = self.state.lock();
        state.received.push(received);
        // Under the lock: of two concurrent updates, the lower count must not be sent last.
        self.changed.send_replace(state.received.len());
    }

    /// `Err`: the reply that refuses the recipient. `Ok`: the behaviour after the final dot.
    async fn decide_recipient(&self, recipient: &str) -> Result<Option<Behaviour>, &'static str> {
        match self.next_behaviour(recipient) {
            Some(Behaviour::AtRcpt(reply)) => Err(reply),
            Some(Behaviour::AtRcptLater(reply)) => {
                self.pending_reply.notify_one();
                self.release.notified().await;
                Err(reply)
            }
            Some(Behaviour::Stall) => std::future::pending().await,
            behaviour => Ok(behaviour),
        }
    }

    async fn serve(&self, stream: TcpStream) -> Option<()> {
        let from = stream.peer_addr().ok()?.ip();
        let (read, mut write) = stream.into_split();
        let read = BufReader::new(read);
        let scripted = {
            let mut state = self.state.lock();
            if state.is_greeting_kept { state.greeting } else { state.greeting.take() }
        };
        if let Some(greeting) = scripted {
            write.write_all(format!("{greeting}\r\n").as_bytes()).await.ok()?;
            return None;
        }
        write.write_all(b"220 sink ESMTP\r\n").await.ok()?;
        self.run_dialog(read, write, from).await
    }

    async fn run_dialog(
        &self,
        mut read: BufReader<OwnedReadHalf>,
        mut write: OwnedWriteHalf,
        from: IpAddr,
    ) -> Option<()> {
        let (mut helo, mut sender, mut parameters) = (String::new(), String::new(), String::new());
        let (mut recipient, mut at_dot) = (None::<String>, None);
        let mut line = String::new();
        loop {
            line.clear();
            if read.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            let verb = line.get(..4).unwrap_or("").to_ascii_uppercase();
            let reply: &str = match verb.as_str() {
                "EHLO" => {
                    helo = line.get(5..).unwrap_or("").trim().to_owned();
                    "250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-DELIVERBY 10\r\n250-MT-PRIORITY\r\n250 ENHANCEDSTATUSCODES"
                }
                "HELO" | "RSET" | "NOOP" => "250 2.0.0 OK",
                "MAIL" => {
                    sender = parse_path(&line);
                    parameters = line.split_once('>').map_or("", |(_, parameters)| parameters.trim()).to_owned();
                    recipient = None;
                    "250 2.1.0 OK"
                }
                "RCPT" => {
                    let address = parse_path(&line);
                    match self.decide_recipient(&address).await {
                        Ok(behaviour) => {
                            (at_dot, recipient) = (behaviour, Some(address));
                            "250 2.1.5 OK"
                        }
                        Err(reply) => reply,
                    }
                }
                "DATA" if recipient.is_none() => "503 5.5.1 no recipient",
                "DATA" => {
                    write.write_all(b"354 go on\r\n").await.ok()?;
                    let content = read_content(&mut read).await?;
                    let (sender, helo, parameters) = (sender.clone(), helo.clone(), parameters.clone());
                    let recipient = recipient.take()?;
                    let received = ReceivedMessage { sender, recipient, parameters, content, from, helo };
                    match at_dot.take() {
                        Some(Behaviour::AtDot(reply)) => reply,
                        Some(Behaviour::StallAfterDot) => {
                            self.record_message(received);
                            std::future::pending().await
                        }
                        Some(Behaviour::CutAfterDot) => {
                            self.record_message(received);
                            return None;
                        }
                        _ => {
                            self.record_message(received);
                            "250 2.0.0 taken"
                        }
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
}

fn parse_path(line: &str) -> String {
    line.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or("", |(inner, _)| inner).to_owned()
}

async fn read_content(read: &mut (impl AsyncBufReadExt + Unpin)) -> Option<String> {
    let mut content = String::new();
    loop {
        let mut line = Vec::new();
        if read.read_until(b'\n', &mut line).await.ok()? == 0 {
            return None;
        }
        if line == b".\r\n" {
            return Some(content);
        }
        let line = line.strip_prefix(b".").unwrap_or(&line);
        content.push_str(&String::from_utf8_lossy(line));
    }
}
