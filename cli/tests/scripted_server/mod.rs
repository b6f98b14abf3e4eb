//! `ScriptedServer`: an HTTP server on loopback whose answers a test writes, and the program that calls it.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use parking_lot::Mutex;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use serde_json::Value;

/// A key that must never be printed.
pub const KEY: &str = "rnl_SecretSecretSecretSecretSecret0123456789";

/// A request that the server received.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Method and target, for example `GET /account`.
    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.target)
    }
}

/// The answer to a request.
pub enum Reply {
    /// Status and JSON.
    Json(u16, Value),
    /// Status, more header fields, body.
    Raw(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// The header of a success and the beginning of a body, then nothing until the client leaves.
    Stall,
}

/// Answers requests with a function.
pub struct ScriptedServer {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl ScriptedServer {
    pub fn start(script: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (received, script) = (Arc::clone(&requests), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (received, script) = (Arc::clone(&received), Arc::clone(&script));
                std::thread::spawn(move || serve(&stream.unwrap(), &received, &*script));
            }
        });
        Self { address, requests }
    }

    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().clone()
    }

    pub fn lines(&self) -> Vec<String> {
        self.requests().iter().map(ReceivedRequest::line).collect()
    }

    /// The program, with this server and the key in its environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command.args(arguments);
        command.env("POSTRIDER_BASE_URL", format!("http://{}", self.address)).env("POSTRIDER_API_KEY", KEY);
        command
    }

    /// Runs the program and checks that it does not print the key.
    pub fn run(&self, arguments: &[&str]) -> Finished {
        finish(self.command(arguments).output().unwrap())
    }
}

/// The program without a server, a terminal, or files of the user.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider-cli"));
    command.env_clear().env("HOME", "/nonexistent").stdin(Stdio::null());
    command
}

/// Exit status and output of a run.
#[derive(Debug)]
pub struct Finished {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The error on standard error.
    pub fn error(&self) -> Value {
        let line = self.stderr.lines().last().unwrap_or_default();
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        value["error"].clone()
    }
}

pub fn finish(output: Output) -> Finished {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(!stdout.contains(KEY) && !stderr.contains(KEY), "the key was printed");
    assert!(!stderr.contains("panicked"), "{stderr}");
    Finished { status: output.status.code(), stdout, stderr }
}

fn serve(
    stream: &TcpStream,
    received: &Mutex<Vec<ReceivedRequest>>,
    script: &dyn Fn(&ReceivedRequest) -> Reply,
) -> Option<()> {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    loop {
        let request = read_request(&mut reader)?;
        received.lock().push(request.clone());
        let (status, headers, body) = match script(&request) {
            Reply::Json(status, value) => (status, Vec::new(), value.to_string().into_bytes()),
            Reply::Raw(status, headers, body) => (status, headers, body),
            Reply::Stall => {
                writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"account\":").ok()?;
                // Until the client leaves.
                let _ = reader.read(&mut [0]);
                return None;
            }
        };
        let closes = headers.iter().any(|(name, value)| *name == "connection" && value == "close");
        let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(&body)).ok()?;
        if closes {
            return None;
        }
    }
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<ReceivedRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let mut request = ReceivedRequest { method, target, headers, body: Vec::new() };
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    request.body.resize(length, 0);
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

/// The permission bits of a file.
pub fn mode_of(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
