//! Randomised test of the SMTP client against an unreliable host, with the records of both compared afterwards.
//!
//! The host keeps the state machine of RFC 5321 and decides each reply by a random list. It records what it accepted:
//! envelope and content. In every case:
//!
//! 1. content is accepted only under its own envelope, whole and unchanged;
//! 2. an `Accepted` message was accepted once;
//! 3. a failed or lost message was not accepted: a retry is safe, a bounce is true;
//! 4. only an `Unconfirmed` message may be either.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use queue::delivery::client::smtp::{DialTarget, OutgoingMessage, SmtpDialer, TlsSecurityLevel, TransactionVerdict};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::script::{patient, shipment};

/// The host replies at once or hangs up, so a longer wait is for a reply that is never due.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bodies that do harm if they are taken for commands or for another message.
const BODIES: [&str; 4] = [
    "Subject: 0\r\n\r\n.\r\n..\r\nRSET\r\nMAIL FROM:<evil@x.example>\r\nRCPT TO:<victim@x.example>\r\nDATA\r\n",
    ".",
    "Subject: 2\r\n\r\nplain\r\n",
    "QUIT\r\n.RSET",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whim {
    Yes,
    NotNow,
    Never,
    Leaving,
    /// Hangs up without a reply; at the end of content, without accepting it.
    Gone,
    /// Hangs up after accepting the content; elsewhere like `Gone`.
    GoneAfter,
    /// Replies 354 to DATA without a valid recipient; elsewhere like `Never`.
    GoAnyway,
}

#[derive(Debug, PartialEq, Eq, Clone)]
struct ReceivedMessage {
    sender: String,
    recipient: String,
    content: String,
}

struct Moody {
    whims: Mutex<VecDeque<Whim>>,
    received: Mutex<Vec<ReceivedMessage>>,
    keywords: &'static str,
}

/// Action after a reply.
enum Then {
    Stay,
    Leave,
}

impl Moody {
    fn whim(&self) -> Whim {
        self.whims.lock().pop_front().unwrap_or(Whim::Yes)
    }

    async fn serve(self: Arc<Self>, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            let host = Arc::clone(&self);
            stream.set_nodelay(true).unwrap();
            // An error means that the client hung up.
            tokio::spawn(async move { host.session(BufReader::new(stream)).await.ok() });
        }
    }

    async fn session(&self, mut stream: BufReader<TcpStream>) -> std::io::Result<()> {
        stream.write_all(b"220 moody\r\n").await?;
        let (mut sender, mut recipient) = (None::<String>, None::<String>);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let line = line.strip_suffix("\r\n").expect("a command ends in CRLF").to_owned();
            let path = || line.split(['<', '>']).nth(1).unwrap().to_owned();
            let verb = line.split([' ', ':']).next().unwrap().to_owned();
            let next = match verb.as_str() {
                "EHLO" => {
                    stream.write_all(self.keywords.as_bytes()).await?;
                    Then::Stay
                }
                "RSET" => {
                    (sender, recipient) = (None, None);
                    stream.write_all(b"250 reset\r\n").await?;
                    Then::Stay
                }
                "QUIT" => Then::Leave,
                "MAIL" if sender.is_some() => answer(&mut stream, Whim::Never, "503 nested").await?.1,
                "MAIL" => {
                    let (accepted, next) = answer(&mut stream, self.whim(), "550 mail").await?;
                    sender = accepted.then(path);
                    next
                }
                "RCPT" if sender.is_none() => answer(&mut stream, Whim::Never, "503 MAIL first").await?.1,
                "RCPT" => {
                    let (accepted, next) = answer(&mut stream, self.whim(), "550 rcpt").await?;
                    recipient = accepted.then(path);
                    next
                }
                "DATA" => self.data(&mut stream, &mut sender, &mut recipient).await?,
                "BDAT" => {
                    let length: usize = line.split(' ').nth(1).unwrap().parse().unwrap();
                    let mut content = vec![0; length];
                    stream.read_exact(&mut content).await?;
                    let content = String::from_utf8(content).unwrap();
                    self.end(&mut stream, &mut sender, &mut recipient, content).await?
                }
                other => panic!("{other} is no command: {line}"),
            };
            if let Then::Leave = next {
                return Ok(());
            }
        }
    }

    async fn data(
        &self,
        stream: &mut BufReader<TcpStream>,
        sender: &mut Option<String>,
        recipient: &mut Option<String>,
    ) -> std::io::Result<Then> {
        let whim = self.whim();
        if sender.is_none() || (recipient.is_none() && whim != Whim::GoAnyway) {
            return Ok(answer(stream, Whim::Never, "503 nobody").await?.1);
        }
        match whim {
            Whim::Yes | Whim::GoAnyway => stream.write_all(b"354 go\r\n").await?,
            other => return Ok(answer(stream, other, "554 data").await?.1),
        }
        let mut content = String::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(Then::Leave);
            }
            assert!(line.ends_with("\r\n"), "a line of content ends in CRLF: {line:?}");
            if line == ".\r\n" {
                break;
            }
            content.push_str(line.strip_prefix('.').unwrap_or(&line));
        }
        self.end(stream, sender, recipient, content).await
    }

    async fn end(
        &self,
        stream: &mut BufReader<TcpStream>,
        sender: &mut Option<String>,
        recipient: &mut Option<String>,
        content: String,
    ) -> std::io::Result<Then> {
        let envelope = sender.take().zip(recipient.take());
        let Some((sender, recipient)) = envelope else {
            return Ok(answer(stream, Whim::Never, "554 no valid recipients").await?.1);
        };
        let whim = self.whim();
        if matches!(whim, Whim::Yes | Whim::GoneAfter) {
            self.received.lock().push(ReceivedMessage { sender, recipient, content });
        }
        Ok(answer(stream, whim, "550 content").await?.1)
    }
}

async fn answer(stream: &mut BufReader<TcpStream>, whim: Whim, permanent_reply: &str) -> std::io::Result<(bool, Then)> {
    let (reply, accepted, next) = match whim {
        Whim::Yes => ("250 2.0.0 yes".to_owned(), true, Then::Stay),
        Whim::NotNow => ("450-4.2.1 not\r\n450 4.2.1 now".to_owned(), false, Then::Stay),
        Whim::Never | Whim::GoAnyway => (permanent_reply.to_owned(), false, Then::Stay),
        Whim::Leaving => ("421 4.3.2 leaving".to_owned(), false, Then::Leave),
        Whim::Gone | Whim::GoneAfter => return Ok((false, Then::Leave)),
    };
    stream.write_all((reply + "\r\n").as_bytes()).await?;
    Ok((accepted, next))
}

fn whims() -> impl Strategy<Value = VecDeque<Whim>> {
    let whim = prop_oneof![
        8 => Just(Whim::Yes),
        2 => Just(Whim::NotNow),
        2 => Just(Whim::Never),
        2 => Just(Whim::GoAnyway),
        1 => Just(Whim::Leaving),
        1 => Just(Whim::Gone),
        1 => Just(Whim::GoneAfter),
    ];
    prop::collection::vec(whim, 0..40).prop_map(VecDeque::from)
}

/// Sends all messages and returns the client's verdicts.
async fn send_all(
    dialer: &SmtpDialer,
    target: &DialTarget,
    shipments: &[OutgoingMessage],
    ahead: &[bool],
) -> Vec<TransactionVerdict> {
    let mut verdicts = Vec::new();
    let mut open = None;
    for (at, shipment) in shipments.iter().enumerate() {
        let mut connection = match open.take() {
            Some(connection) => connection,
            None => dialer.connect(target).await.expect("the host greets"),
        };
        let next = shipments.get(at + 1).filter(|_| ahead.get(at).copied().unwrap_or(true));
        verdicts.push(connection.deliver(shipment, next).await.verdict);
        open = Some(connection).filter(|connection| connection.is_usable());
    }
    if let Some(connection) = open {
        connection.quit().await;
    }
    verdicts
}

fn compare(
    shipments: &[OutgoingMessage],
    verdicts: &[TransactionVerdict],
    received: &[ReceivedMessage],
) -> Result<(), TestCaseError> {
    for (shipment, verdict) in shipments.iter().zip(verdicts) {
        let recipient = shipment.recipient.to_string();
        let found: Vec<&ReceivedMessage> = received.iter().filter(|received| received.recipient == recipient).collect();
        let times = match verdict {
            TransactionVerdict::Accepted => 1..=1,
            TransactionVerdict::Unconfirmed => 0..=1,
            _ => 0..=0,
        };
        prop_assert!(times.contains(&found.len()), "{recipient}: {verdict:?}, taken {} times", found.len());
        for received in found {
            let body = String::from_utf8(shipment.body.concat()).unwrap();
            let expected = if body.ends_with("\r\n") { body } else { body + "\r\n" };
            prop_assert_eq!(&received.content, &expected);
            prop_assert_eq!(&received.sender, &shipment.sender.as_ref().unwrap().to_string());
        }
    }
    prop_assert!(
        received.iter().all(|received| shipments.iter().any(|s| s.recipient.to_string() == received.recipient))
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn client_and_host_records_agree(
        whims in whims(),
        offered in 0_usize..4,
        ahead in prop::collection::vec(any::<bool>(), 12),
    ) {
        let keywords = [
            "250 moody\r\n",
            "250-moody\r\n250 PIPELINING\r\n",
            "250-moody\r\n250 CHUNKING\r\n",
            "250-moody\r\n250-CHUNKING\r\n250 PIPELINING\r\n",
        ];
        let host = Arc::new(Moody {
            whims: Mutex::new(whims),
            received: Mutex::default(),
            keywords: keywords[offered],
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let shipments: Vec<OutgoingMessage> =
            (0..12).map(|n| shipment(n, BODIES[n as usize % BODIES.len()])).collect();
        let verdicts = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let target = DialTarget {
                host: "moody.example".parse().unwrap(),
                address: listener.local_addr().unwrap(),
                is_trusted: false,
                source: None,
            helo: None,
                tls: TlsSecurityLevel::Off,
                dane: None,
                credentials: None,
            };
            let serving = tokio::spawn(Arc::clone(&host).serve(listener));
            let verdicts = send_all(&patient(PATIENCE), &target, &shipments, &ahead).await;
            serving.abort();
            verdicts
        });
        compare(&shipments, &verdicts, &host.received.lock())?;
        prop_assert_eq!(verdicts.len(), shipments.len());
    }
}
