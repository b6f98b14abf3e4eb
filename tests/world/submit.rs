//! Submits mail over SMTP as a trusted host, and calls the HTTP API.

use std::net::SocketAddr;

use model::id::EmailId;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::TestWorld;

/// Sends lines to an SMTP server. Returns the last line of each reply.
pub async fn dialog(address: SocketAddr, lines: &[&str]) -> Vec<String> {
    dialog_with_proxy_header("", address, lines).await
}

/// Like `dialog`, with a PROXY header before anything else.
pub async fn dialog_with_proxy_header(header: &str, address: SocketAddr, lines: &[&str]) -> Vec<String> {
    let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
    stream.get_mut().write_all(header.as_bytes()).await.unwrap();
    let mut replies = vec![reply(&mut stream).await];
    for line in lines {
        stream.get_mut().write_all(format!("{line}\r\n").as_bytes()).await.unwrap();
        replies.push(reply(&mut stream).await);
    }
    replies
}

async fn reply(stream: &mut BufReader<TcpStream>) -> String {
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap() == 0 {
            return String::new();
        }
        if line.as_bytes().get(3) != Some(&b'-') {
            return line.trim_end().to_owned();
        }
    }
}

impl TestWorld {
    /// Submits a message through the relay listener. Returns the email's id.
    pub async fn relay(&self, to: &[&str], subject: &str) -> EmailId {
        self.relay_with(to, "", subject).await
    }

    /// Like `relay`, with parameters for each RCPT, such as ` NOTIFY=SUCCESS`.
    pub async fn relay_with(&self, to: &[&str], parameters: &str, subject: &str) -> EmailId {
        let mut lines = vec!["EHLO test".to_owned(), "MAIL FROM:<ada@acme.example>".to_owned()];
        lines.extend(to.iter().map(|to| format!("RCPT TO:<{to}>{parameters}")));
        lines.push("DATA".to_owned());
        lines.push(format!("From: Ada <ada@acme.example>\r\nTo: {}\r\nSubject: {subject}\r\n\r\nhello\r\n.", to[0]));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let replies = dialog(self.relay, &lines).await;
        let last = replies.last().unwrap();
        let id = last.strip_prefix("250 2.0.0 OK ").unwrap_or_else(|| panic!("{replies:#?}"));
        id.parse().unwrap()
    }

    /// Calls the API. Returns status and body.
    pub async fn call(&self, method: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
        self.call_with_key(self.api_key.expose(), method, path, body).await
    }

    /// Calls the API or the MCP server with this key. Returns status and body.
    pub async fn call_with_key(&self, key: &str, method: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
        let mut stream = TcpStream::connect(self.api).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        let status = response.split(' ').nth(1).unwrap().parse().unwrap();
        let body = response.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or_default())
    }
}
