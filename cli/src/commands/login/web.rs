//! Signing in with the browser: an authorization request with PKCE, and the response at a port of this machine (RFC 8252
//! 7.3).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::browser;
use crate::error::CliError;
use crate::oauth::{AuthorizationServer, CLIENT_ID, Metadata, TokenReply};
use crate::random::random_text;
use mcp::arguments::encode;

/// Longest wait for the user.
const WAIT_MAX: Duration = Duration::from_secs(5 * 60);
/// Longest request of the browser that is read, and longest wait for it.
const REQUEST_BYTES_MAX: usize = 16 << 10;
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(10);
const CALLBACK: &str = "/callback";

/// Lets the user sign in with the browser.
///
/// # Errors
/// The user denied it or did not answer in time; the server refused.
pub(super) async fn sign_in(server: &AuthorizationServer, scope: &str) -> Result<TokenReply, CliError> {
    let metadata = server.metadata().await?;
    let failed = |error: std::io::Error| CliError::Io(format!("cannot listen on 127.0.0.1: {error}; use --device"));
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
    let redirect_uri = format!("http://{}{CALLBACK}", listener.local_addr().map_err(failed)?);
    let (verifier, state) = (random_text()?, random_text()?);
    let url = authorization_url(&metadata, &redirect_uri, &verifier, &state, scope);
    eprintln!("Sign in and allow access in the browser:\n\n  {url}\n");
    if !browser::open(&url) {
        eprintln!("Cannot open a browser: open the address yourself, or use `postrider login --device`.");
    }
    let late = || CliError::Failed("nobody allowed access within five minutes".to_owned());
    let waiting = wait_for_code(&listener, &state, &metadata.issuer);
    let code = tokio::time::timeout(WAIT_MAX, waiting).await.map_err(|_| late())??;
    Ok(server.exchange_code(&code, &verifier, &redirect_uri).await??)
}

fn authorization_url(metadata: &Metadata, redirect_uri: &str, verifier: &str, state: &str, scope: &str) -> String {
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let fields = [
        ("response_type", "code"),
        ("client_id", CLIENT_ID),
        ("redirect_uri", redirect_uri),
        ("scope", scope),
        ("state", state),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
        ("resource", metadata.issuer.as_str()),
    ];
    let query: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
    format!("{}?{}", metadata.authorization_endpoint, query.join("&"))
}

/// Answers requests until one is the response to this sign-in. Others, for example for an icon or of another program,
/// change nothing.
async fn wait_for_code(listener: &TcpListener, state: &str, issuer: &str) -> Result<String, CliError> {
    loop {
        let accepted = listener.accept().await;
        let (mut stream, _) = accepted.map_err(|error| CliError::Io(format!("cannot accept a connection: {error}")))?;
        let reading = tokio::time::timeout(REQUEST_WAIT_MAX, read_target(&mut stream));
        let Ok(Some(target)) = reading.await else { continue };
        let Some(response) = Response::read(&target, state) else {
            answer(&mut stream, "404 Not Found", "This address is used for signing in to postrider.").await;
            continue;
        };
        let outcome = response.check(issuer);
        let text = match &outcome {
            Ok(_) => "You can close this page and go back to the terminal.",
            Err(_) => "Sign-in failed. See the terminal for the reason.",
        };
        answer(&mut stream, "200 OK", text).await;
        return outcome;
    }
}

/// The target of a GET request.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 1_024];
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        head.extend_from_slice(chunk.get(..count)?);
        if head.len() > REQUEST_BYTES_MAX {
            return None;
        }
    }
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned))?
}

async fn answer(stream: &mut TcpStream, status: &str, text: &str) {
    let page = format!(
        "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>postrider</title><p>{text}</p></html>"
    );
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         content-security-policy: default-src 'none'; frame-ancestors 'none'\r\ncache-control: no-store\r\n\
         referrer-policy: no-referrer\r\nconnection: close\r\n\r\n",
        page.len()
    );
    // The sign-in goes on without the page.
    let _ = stream.write_all(&[head.as_bytes(), page.as_bytes()].concat()).await;
    let _ = stream.shutdown().await;
}

/// The response to an authorization request.
#[derive(Debug)]
struct Response {
    code: Option<String>,
    error: Option<String>,
    issuer: Option<String>,
}

impl Response {
    /// Reads a response with this state; `None` for any other request.
    fn read(target: &str, state: &str) -> Option<Self> {
        let query = target.strip_prefix(CALLBACK)?.strip_prefix('?')?;
        let fields: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let find = |name: &str| fields.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone());
        (find("state").as_deref() == Some(state)).then(|| Self {
            code: find("code"),
            error: find("error"),
            issuer: find("iss"),
        })
    }

    /// The code. The issuer must be the server that was asked (RFC 9207 2.4).
    fn check(self, issuer: &str) -> Result<String, CliError> {
        if self.issuer.as_deref() != Some(issuer) {
            return Err(CliError::Failed(
                "the response comes from a different server than the one that was asked".to_owned(),
            ));
        }
        match (self.error, self.code) {
            (Some(error), _) if error == "access_denied" => Err(CliError::Failed("access was denied".to_owned())),
            (Some(error), _) => Err(CliError::Failed(format!("the server refused the sign-in ({error})"))),
            (None, Some(code)) => Ok(code),
            (None, None) => Err(CliError::Failed("the response has no code".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_checked() {
        let issuer = "https://mail.example.com";
        let iss = "iss=https%3A%2F%2Fmail.example.com";
        let read = |target: &str| Response::read(target, "s").map(|response| response.check(issuer));
        assert_eq!(read(&format!("/callback?code=c%2B&state=s&{iss}")), Some(Ok("c+".to_owned())));
        for other in
            ["/favicon.ico", "/callback", "/callback?code=c", "/callback?code=c&state=t", "/callbacks?code=c&state=s"]
        {
            assert_eq!(read(other), None, "{other}");
        }
        for refused in [
            "/callback?code=c&state=s".to_owned(),
            "/callback?code=c&state=s&iss=https://evil.example".to_owned(),
            format!("/callback?state=s&{iss}"),
            format!("/callback?error=access_denied&state=s&{iss}"),
        ] {
            assert!(read(&refused).unwrap().is_err(), "{refused}");
        }
    }

    #[tokio::test]
    async fn requests_of_others_do_not_end_the_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let waiting = tokio::spawn(async move { wait_for_code(&listener, "s", "i").await });
        for (target, status) in
            [("/", "404"), ("/callback?code=x&state=wrong", "404"), ("/callback?code=c&state=s&iss=i", "200")]
        {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        }
        assert_eq!(waiting.await.unwrap(), Ok("c".to_owned()));
    }
}
