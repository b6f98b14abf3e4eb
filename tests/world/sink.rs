//! A mail host for tests: takes everything, unless a recipient's behaviour says otherwise.
//!
//! It speaks just enough SMTP to be talked to by a real client, pipelining included, and remembers
//! every message by its envelope. What a test scripts is per recipient, so one connection can meet
//! every behaviour.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to a message for a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// This reply to RCPT.
    AtRcpt(&'static str),
    /// This reply after the final dot.
    AtDot(&'static str),
    /// The connection is cut after the final dot, the message kept: it arrived, and nobody said so.
    CutAfterDot,
    /// No reply ever, to RCPT.
    Stall,
    /// No reply ever, after the final dot; the message is kept.
    StallAfterDot,
}

/// A message that was taken.
#[derive(Debug, Clone)]
pub struct Taken {
    /// MAIL FROM, without brackets.
    pub sender: String,
    /// RCPT TO, without brackets.
    pub recipient: String,
    /// The content, dot-unstuffed.
    pub content: String,
}

#[derive(Default)]
struct State {
    behaviours: HashMap<String, Vec<Behaviour>>,
    taken: Vec<Taken>,
    connections: usize,
    greeting: Option<&'static str>,
}

/// The mail host.
#[derive(Clone)]
pub struct Sink {
    /// Where it listens.
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
    changed: Arc<watch::Sender<usize>>,
}

impl Sink {
    /// Starts on a free port of loopback.
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
        };
        let serving = sink.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let sink = serving.clone();
                sink.state.lock().unwrap().connections += 1;
                tokio::spawn(async move { sink.talk(stream).await });
            }
        });
        sink
    }

    /// The next messages for a recipient meet these, one each; then it is taken as usual.
    pub fn script(&self, recipient: &str, behaviours: &[Behaviour]) {
        self.state.lock().unwrap().behaviours.insert(recipient.to_owned(), behaviours.to_vec());
    }

    /// The next connection is greeted so, and closed.
    pub fn greet(&self, greeting: &'static str) {
        self.state.lock().unwrap().greeting = Some(greeting);
    }

    /// Everything that was taken.
    pub fn taken(&self) -> Vec<Taken> {
        self.state.lock().unwrap().taken.clone()
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.state.lock().unwrap().connections
    }

    /// Waits until so many messages were taken.
    pub async fn wait_for(&self, count: usize) -> Vec<Taken> {
        let mut changed = self.changed.subscribe();
        let enough = changed.wait_for(|taken| *taken >= count);
        let waited = tokio::time::timeout(super::PATIENCE, enough).await;
        assert!(waited.is_ok(), "only these arrived: {:#?}", self.taken());
        self.taken()
    }

    fn next_behaviour(&self, recipient: &str) -> Option<Behaviour> {
        let mut state = self.state.lock().unwrap();
        let script = state.behaviours.get_mut(recipient)?;
        (!script.is_empty()).then(|| script.remove(0))
    }

    fn take(&self, taken: Taken) {
        let mut state = self.state.lock().unwrap();
        state.taken.push(taken);
        let count = state.taken.len();
        drop(state);
        self.changed.send_replace(count);
    }

    async fn talk(&self, stream: TcpStream) -> Option<()> {
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        let scripted = self.state.lock().unwrap().greeting.take();
        if let Some(greeting) = scripted {
            write.write_all(format!("{greeting}\r\n").as_bytes()).await.ok()?;
            return None;
        }
        write.write_all(b"220 sink ESMTP\r\n").await.ok()?;
        let (mut sender, mut recipient, mut at_dot) = (String::new(), None::<String>, None);
        let mut line = String::new();
        loop {
            line.clear();
            if read.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            let verb = line.get(..4).unwrap_or("").to_ascii_uppercase();
            let reply: &str = match verb.as_str() {
                "EHLO" => "250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES",
                "HELO" | "RSET" | "NOOP" => "250 2.0.0 OK",
                "MAIL" => {
                    sender = bracketed(&line);
                    recipient = None;
                    "250 2.1.0 OK"
                }
                "RCPT" => {
                    let named = bracketed(&line);
                    match self.next_behaviour(&named) {
                        Some(Behaviour::AtRcpt(reply)) => reply,
                        Some(Behaviour::Stall) => std::future::pending().await,
                        later => {
                            at_dot = later;
                            recipient = Some(named);
                            "250 2.1.5 OK"
                        }
                    }
                }
                "DATA" if recipient.is_none() => "503 5.5.1 no recipient",
                "DATA" => {
                    write.write_all(b"354 go on\r\n").await.ok()?;
                    let content = content(&mut read).await?;
                    let taken = Taken { sender: sender.clone(), recipient: recipient.take()?, content };
                    match at_dot.take() {
                        Some(Behaviour::AtDot(reply)) => reply,
                        Some(Behaviour::StallAfterDot) => {
                            self.take(taken);
                            std::future::pending().await
                        }
                        Some(Behaviour::CutAfterDot) => {
                            self.take(taken);
                            return None;
                        }
                        _ => {
                            self.take(taken);
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

fn bracketed(line: &str) -> String {
    line.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or("", |(inner, _)| inner).to_owned()
}

async fn content(read: &mut (impl AsyncBufReadExt + Unpin)) -> Option<String> {
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
