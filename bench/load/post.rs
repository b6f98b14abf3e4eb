//! `load post`: submits emails over HTTP on many concurrent keep-alive connections.
//!
//! The connections draw numbers from one shared counter. Each number is one request: `POST /emails` with one email,
//! or `POST /emails/batch` with several, whose recipients contain the number. The response must be 200. The latency
//! of a request is measured from its first byte to the last byte of the response.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::measure::{at_once, clock};

/// Limit for a response, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Arguments of `load post`.
#[derive(Args, Clone)]
pub(crate) struct Plan {
    /// Address of the API.
    #[arg(long)]
    to: SocketAddr,
    /// API key.
    #[arg(long)]
    key: String,
    /// Concurrent connections.
    #[arg(long, default_value_t = 50)]
    connections: usize,
    /// Total number of emails.
    #[arg(long, default_value_t = 1000)]
    emails: usize,
    /// Emails per request; more than one are sent as a batch.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// Bytes of the text part.
    #[arg(long, default_value_t = 2_048)]
    text_bytes: usize,
    /// Bytes of the HTML part.
    #[arg(long, default_value_t = 8_192)]
    html_bytes: usize,
    /// `from` address.
    #[arg(long)]
    from: String,
    /// Recipient; `{n}` becomes the number of the email.
    #[arg(long)]
    rcpt: String,
    /// Category: `transactional`, `product` or `newsletter`.
    #[arg(long, default_value = "transactional")]
    category: String,
}

/// Posts all emails and prints the result.
pub(crate) fn run(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let (requests, next) = (plan.emails / plan.batch.max(1), AtomicUsize::new(0));
    let run = Arc::new(Run { plan: plan.clone(), content: email_members(plan), requests, next });
    at_once(plan.connections, plan.batch, || connection(Arc::clone(&run)))
}

/// State shared by the connections.
struct Run {
    plan: Plan,
    content: String,
    requests: usize,
    next: AtomicUsize,
}

/// The JSON members that every email has besides `to`.
fn email_members(plan: &Plan) -> String {
    const WORDS: &str = "The quick brown fox jumps over the lazy dog, again and again and again. ";
    let text: String = WORDS.chars().cycle().take(plan.text_bytes).collect();
    let paragraphs: String = "<p>".chars().chain(WORDS.chars()).chain("</p>".chars()).collect();
    let html: String = paragraphs.chars().cycle().take(plan.html_bytes).collect();
    let Plan { from, category, .. } = plan;
    format!(r#""from":"{from}","category":"{category}","subject":"Load","text":"{text}","html":"{html}""#)
}

fn body(plan: &Plan, email_members: &str, number: usize) -> String {
    let email =
        |number: usize| format!(r#"{{"to":"{}",{email_members}}}"#, plan.rcpt.replace("{n}", &number.to_string()));
    if plan.batch <= 1 {
        return email(number);
    }
    let emails: Vec<String> = (0..plan.batch).map(|item| email(number * plan.batch + item)).collect();
    format!("[{}]", emails.join(","))
}

async fn connection(run: Arc<Run>) -> io::Result<Vec<Duration>> {
    let Run { plan, content: email_members, requests, next } = &*run;
    let mut stream = TcpStream::connect(plan.to).await?;
    stream.set_nodelay(true)?;
    let path = if plan.batch > 1 { "/emails/batch" } else { "/emails" };
    let mut latencies = Vec::with_capacity(requests / plan.connections.max(1) + 1);
    let mut request = String::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= *requests {
            return Ok(latencies);
        }
        let body = body(plan, email_members, number);
        request.clear();
        write!(
            request,
            "POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            plan.key,
            body.len()
        )
        .map_err(io::Error::other)?;
        let start = clock();
        stream.write_all(request.as_bytes()).await?;
        read_response(&mut stream).await?;
        latencies.push(start.elapsed());
    }
}

/// Reads a whole response. Any status but 200 is an error.
async fn read_response(stream: &mut TcpStream) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(2048);
    loop {
        let count = stream.read_buf(&mut bytes).await?;
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            if body.len() >= length.unwrap_or_default() {
                let is_ok = head.starts_with("HTTP/1.1 200");
                return if is_ok { Ok(()) } else { Err(io::Error::other(text.into_owned())) };
            }
        }
        if count == 0 || bytes.len() > ANSWER_BYTES_MAX {
            return Err(io::Error::other(format!("invalid HTTP response: {text}")));
        }
    }
}
