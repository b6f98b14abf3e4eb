//! The admin socket: a UNIX socket in the data directory, for anyone who can enter that directory.
//!
//! The client sends one request as a line of JSON. The server responds with lines of JSON: any number of
//! `{"progress": "…"}`, then `{"ok": …}` or `{"error": {"message": "…", "code": "…"}}`.
//! [`serve`] is the server; `cli/admin.rs` is the client.

pub mod check;
mod clock;
pub mod console_access;
pub mod email_state;
mod error;
mod handler;
mod permissions;
mod pool;
mod queue;
mod reply;
mod request;
mod search;
mod status;
mod views;

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

pub use self::email_state::EmailState;
pub use self::error::AdminError;
pub(crate) use self::handler::handle_request as perform;
pub use self::permissions::Permissions;
pub(crate) use self::request::row_limit;
pub use self::request::{
    AccountCreate, AccountUpdate, AdminRequest, DestinationAction, DomainChange, DomainCreate, DomainVerify, PageQuery,
    QueueFilter, ReplyQuery, TlsReportQuery,
};
pub use self::search::{EmailQuery, QueueSearch};
pub use self::status::StatusFacts;
use crate::services::Server;

/// File name of the socket in the data directory.
pub const SOCKET: &str = "admin.sock";
/// Maximum length of a request in bytes; the longest valid one imports a file of five thousand partners.
const LINE_BYTES_MAX: u64 = 8 << 20;

/// Interval at which the client of a change learns that the database became unavailable before the commit.
const OUTAGE_CHECK_INTERVAL: Duration = Duration::from_secs(5);
const OUTAGE_NOTICE: &str = "the database cannot be reached: the command waits, and is carried out when it is back";

/// One line of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseLine {
    /// A long operation reports progress; more lines follow.
    Progress(String),
    /// Result. The last line.
    Ok(serde_json::Value),
    /// Failure. The last line.
    Error(AdminError),
}

/// Creates the socket. Replaces a socket that a previous process left behind: the store's lock, which this process
/// holds, ensures that no other process serves this directory.
///
/// # Errors
/// The socket cannot be created in the directory.
pub fn bind(data_dir: &Path) -> std::io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = data_dir.join(SOCKET);
    if let Err(error) = std::fs::remove_file(&path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    store::engine::private_files::give_socket(&path)?;
    Ok(listener)
}

/// Accepts connections and responds to requests until `stop`.
pub async fn serve(listener: UnixListener, server: Server, permissions: Permissions, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (server, permissions) = (server.clone(), permissions.clone());
                tokio::spawn(async move {
                    if let Err(error) = handle_connection(stream, &server, &permissions).await {
                        tracing::debug!(%error, "admin socket: connection closed early");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "admin socket: cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn handle_connection(stream: UnixStream, server: &Server, permissions: &Permissions) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut request_line = String::new();
    BufReader::new(read.take(LINE_BYTES_MAX)).read_line(&mut request_line).await?;
    let (progress, mut steps) = tokio::sync::mpsc::channel(16);
    let request = serde_json::from_str::<AdminRequest>(&request_line);
    let is_change = request.as_ref().is_ok_and(AdminRequest::is_change);
    let response = async {
        match request {
            Ok(request) => handler::handle_request(server, permissions, request, progress).await,
            Err(error) => Err(format!("invalid request: {error}").into()),
        }
    };
    let mut response = std::pin::pin!(response);
    let mut outage_check = tokio::time::interval(OUTAGE_CHECK_INTERVAL);
    loop {
        let (line, is_last) = tokio::select! {
            // Progress before the result: the last step has the final numbers.
            biased;
            Some(step) = steps.recv() => (ResponseLine::Progress(step), false),
            result = &mut response => (result.map_or_else(ResponseLine::Error, ResponseLine::Ok), true),
            _ = outage_check.tick() => {
                if !is_change || !server.store.is_away() {
                    continue;
                }
                (ResponseLine::Progress(OUTAGE_NOTICE.to_owned()), false)
            }
        };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        let written = write.write_all(&text).await;
        // A change that has begun is carried out to its end, with or without its client.
        if is_last || (written.is_err() && !is_change) {
            return written;
        }
    }
}
