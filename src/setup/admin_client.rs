//! Requests to the running server over its admin socket, each with a timeout.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::admin::{AdminError, AdminRequest, ResponseLine, SOCKET};

/// Timeout of a request. A check of a domain's records takes a few seconds.
const REQUEST_MAX: Duration = Duration::from_secs(60);
/// Maximum length of a response in bytes.
const RESPONSE_BYTES_MAX: u64 = 8 << 20;

/// Code of an error: the object does not exist.
pub(super) const NOT_FOUND: &str = "not_found";

/// The admin socket of a data directory.
#[derive(Debug, Clone)]
pub(super) struct AdminClient {
    socket: PathBuf,
}

impl AdminClient {
    pub(super) fn new(data_dir: &Path) -> Self {
        Self { socket: data_dir.join(SOCKET) }
    }

    /// Returns whether a server responds.
    pub(super) async fn is_running(&self) -> bool {
        self.request(&AdminRequest::ClockShow).await.is_ok()
    }

    /// Sends a request and waits for its result.
    pub(super) async fn request(&self, request: &AdminRequest) -> Result<Value, AdminError> {
        timeout(REQUEST_MAX, self.exchange(request))
            .await
            .unwrap_or_else(|_| Err(format!("the server did not answer within {} s", REQUEST_MAX.as_secs()).into()))
    }

    async fn exchange(&self, request: &AdminRequest) -> Result<Value, AdminError> {
        let io_error = |error: std::io::Error| {
            AdminError::from(format!("{}: {error}; is the server running?", self.socket.display()))
        };
        let mut line = serde_json::to_vec(request).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let mut stream = UnixStream::connect(&self.socket).await.map_err(io_error)?;
        stream.write_all(&line).await.map_err(io_error)?;
        let mut lines = BufReader::new(stream.take(RESPONSE_BYTES_MAX)).lines();
        while let Some(line) = lines.next_line().await.map_err(io_error)? {
            match serde_json::from_str::<ResponseLine>(&line).map_err(|error| error.to_string())? {
                ResponseLine::Progress(_) => {}
                ResponseLine::Ok(value) => return Ok(value),
                ResponseLine::Error(error) => return Err(error),
            }
        }
        Err("the server closed the connection without a result".into())
    }

    /// Calls an API operation as an account's owner, and returns the body of the response. An error with status 404 has
    /// the code [`NOT_FOUND`].
    pub(super) async fn call_as_owner(
        &self,
        account: &str,
        method: &str,
        target: String,
        body: Value,
    ) -> Result<Value, AdminError> {
        let request =
            AdminRequest::Owner { account: Some(account.to_owned()), method: method.to_owned(), target, body };
        let response = self.request(&request).await?;
        let status = response["status"].as_u64();
        if status.is_some_and(|status| status < 400) {
            return Ok(response["body"].clone());
        }
        let error = &response["body"]["error"];
        let message = error["message"].as_str().map_or_else(|| json!(error).to_string(), str::to_owned);
        Err(match status {
            Some(404) => AdminError::with_code(NOT_FOUND, message),
            _ => message.into(),
        })
    }
}
