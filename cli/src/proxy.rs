//! `Proxy`: the HTTP proxy between this machine and the server, and the tunnel through it (`CONNECT`, RFC 9110 9.3.6).
//!
//! `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` are read as curl reads them, except that a proxy without a port is asked at
//! port 80, or 443 with TLS.

use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::base_url::BaseUrl;
use crate::connection::{BoxedStream, connect_tcp, connect_tls};
use crate::error::{CliError, ConnectionFailure};

/// Longest header section of a proxy's answer.
const ANSWER_BYTES_MAX: usize = 16 << 10;

/// A proxy of the environment.
#[derive(Debug)]
pub(crate) struct Proxy {
    intercept: Intercept,
    host: String,
    port: u16,
    is_tls: bool,
}

impl Proxy {
    /// The proxy for a server; `None` for this machine, and for `http:`, which only a private network has.
    ///
    /// # Errors
    /// The environment names a proxy of another kind.
    pub(crate) fn of_environment(base_url: &BaseUrl) -> Result<Option<Self>, CliError> {
        if !base_url.is_tls() || base_url.is_loopback() {
            return Ok(None);
        }
        let Ok(uri) = format!("https://{}/", base_url.authority()).parse() else { return Ok(None) };
        let Some(intercept) = Matcher::from_env().intercept(&uri) else { return Ok(None) };
        let is_tls = match intercept.uri().scheme_str() {
            Some("http") => false,
            Some("https") => true,
            other => {
                let scheme = other.unwrap_or_default();
                let message = format!("HTTPS_PROXY names a {scheme} proxy; only http:// and https:// are supported");
                return Err(CliError::usage(message));
            }
        };
        let host = intercept.uri().host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = intercept.uri().port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Some(Self { intercept, host, port, is_tls }))
    }

    /// Connects to the server through the proxy.
    ///
    /// # Errors
    /// `CliError::Connection`; the server has received nothing.
    pub(crate) async fn connect(&self, base_url: &BaseUrl) -> Result<BoxedStream, CliError> {
        let what = format!("the proxy {}:{} (HTTPS_PROXY)", self.host, self.port);
        let mut stream = connect_tcp(&self.host, self.port, &what).await?;
        if self.is_tls {
            stream = connect_tls(stream, &self.host, &what).await?;
        }
        let target = format!("{}:{}", base_url.bracketed_host(), base_url.port());
        let mut head = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
        if let Some(credentials) = self.intercept.basic_auth() {
            head.extend_from_slice(&[b"Proxy-Authorization: ", credentials.as_bytes(), b"\r\n"].concat());
        }
        head.extend_from_slice(b"\r\n");
        let failed = |why: &str| {
            let message =
                format!("{what} could not connect to {target}: {why}; to bypass the proxy, list the host in NO_PROXY");
            CliError::Connection(ConnectionFailure::Other, message)
        };
        let lost = |error: std::io::Error| failed(&error.to_string());
        stream.write_all(&head).await.map_err(lost)?;
        let mut answer = Vec::new();
        // After 2xx nothing follows the header section, because the server is silent until this side speaks. Another
        // answer may have a body, which is not read.
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut chunk = [0; 1_024];
            let count = stream.read(&mut chunk).await.map_err(lost)?;
            answer.extend_from_slice(chunk.get(..count).unwrap_or_default());
            if count == 0 || answer.len() > ANSWER_BYTES_MAX {
                return Err(failed("its response is not terminated"));
            }
        }
        let line = String::from_utf8_lossy(answer.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
        match line.split(' ').nth(1) {
            Some(status) if line.starts_with("HTTP/1.") && status.starts_with('2') => Ok(stream),
            Some("407") => Err(failed("it requires a user name and a password (http://user:password@host:port)")),
            Some(status) if line.starts_with("HTTP/1.") => Err(failed(&format!("it answered with HTTP {status}"))),
            _ => Err(failed("its response is not HTTP")),
        }
    }
}
