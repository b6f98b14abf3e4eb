//! Reads all emails and their `email.delivered` events from the API.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::ledger::ListedEmail;

/// An API client on one keep-alive connection.
struct Api<'a> {
    stream: BufReader<TcpStream>,
    key: &'a str,
}

impl Api<'_> {
    async fn get(&mut self, path: &str) -> Value {
        let key = self.key;
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {key}\r\n\r\n");
        self.stream.get_mut().write_all(request.as_bytes()).await.unwrap();
        let mut bytes = 0;
        let mut status = String::new();
        loop {
            let mut line = String::new();
            assert!(self.stream.read_line(&mut line).await.unwrap() > 0, "{path}: connection closed");
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            } else if status.is_empty() {
                status = line;
            } else if let Some(length) = line.strip_prefix("content-length:") {
                bytes = length.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; bytes];
        self.stream.read_exact(&mut body).await.unwrap();
        let body = String::from_utf8(body).unwrap();
        assert!(status.contains(" 200"), "{path}: {status}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    async fn list_delivered(&mut self, id: &str) -> Vec<String> {
        let response = self.get(&format!("/emails/{id}/events?limit=100")).await;
        let events = response["events"].as_array().unwrap();
        let delivered = events.iter().filter(|event| event["type"] == "email.delivered");
        delivered.map(|event| text(&event["recipient"])).collect()
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string")).to_owned()
}

/// Reads all pages of the account's emails, and the events of each email.
pub(crate) async fn read(api: SocketAddr, key: &str) -> Vec<ListedEmail> {
    let stream = TcpStream::connect(api).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut api = Api { stream: BufReader::new(stream), key };
    let mut emails = Vec::new();
    let mut path = "/emails?limit=100".to_owned();
    loop {
        let page = api.get(&path).await;
        for email in page["emails"].as_array().unwrap() {
            let subject = text(&email["subject"]);
            let token = subject.strip_prefix("token ").and_then(|token| token.parse().ok());
            let token = token.unwrap_or_else(|| panic!("no client submitted this email: {email}"));
            let id = text(&email["id"]);
            let delivered = api.list_delivered(&id).await;
            emails.push(ListedEmail { id, token, status: text(&email["status"]), delivered });
        }
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/emails?limit=100&cursor={cursor}"),
            None => return emails,
        }
    }
}
