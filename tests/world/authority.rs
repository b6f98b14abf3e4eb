//! An ACME CA (RFC 8555) for tests: it checks nonces and signatures, validates names by http-01 and tls-alpn-01, and
//! issues certificates for ninety days of the test's clock. A test can set the suggested renewal window (RFC 9773).

use parking_lot::Mutex;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use net::clock::Clock;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PublicKeyData};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use x509_cert::der::Decode as _;

use super::tls;

/// Lifetime of a certificate in days.
const DAYS: i64 = 90;

#[derive(Default)]
struct Order {
    names: Vec<String>,
    /// Validation result of each name; `None` while pending.
    validated: Vec<Option<bool>>,
    chain: Option<String>,
    /// Certificate that this order replaces (RFC 9773 5).
    replaces: Option<String>,
}

#[derive(Default)]
struct State {
    nonces: HashSet<String>,
    nonce_count: usize,
    account: Option<Value>,
    orders: Vec<Order>,
    issued_certificates: Vec<Vec<u8>>,
    /// Addresses that validation of all names connects to: HTTP and TLS.
    validation_addresses: (Option<SocketAddr>, Option<SocketAddr>),
    /// Suggested renewal window, the same for all certificates.
    window: Option<(Timestamp, Timestamp)>,
}

/// The CA. Clones share its state.
#[derive(Clone)]
pub struct Authority {
    pub address: SocketAddr,
    clock: Clock,
    state: Arc<Mutex<State>>,
    root: Arc<(CertificateParams, KeyPair)>,
}

struct Key(Vec<u8>);

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

type ResourceResponse = Result<(u16, Vec<(&'static str, String)>, String), String>;

impl Authority {
    /// Starts on a free loopback port.
    pub async fn start(clock: &Clock) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut root = CertificateParams::new(Vec::new()).unwrap();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = Self {
            address: listener.local_addr().unwrap(),
            clock: clock.clone(),
            state: Arc::default(),
            root: Arc::new((root, KeyPair::generate().unwrap())),
        };
        let serving = authority.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let authority = serving.clone();
                let service = service_fn(move |request| {
                    let authority = authority.clone();
                    async move { Ok::<_, std::convert::Infallible>(authority.handle(request).await) }
                });
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        authority
    }

    /// URL of its directory.
    pub fn directory(&self) -> String {
        self.url("directory")
    }

    /// Sets the addresses to which all names resolve from now on: for port 80 and for port 443.
    pub fn resolve_names_to(&self, http: Option<SocketAddr>, tls: Option<SocketAddr>) {
        self.state.lock().validation_addresses = (http, tls);
    }

    /// The issued certificates, DER.
    pub fn issued_certificates(&self) -> Vec<Vec<u8>> {
        self.state.lock().issued_certificates.clone()
    }

    /// Number of orders.
    pub fn order_count(&self) -> usize {
        self.state.lock().orders.len()
    }

    /// Sets the suggested renewal window.
    pub fn suggest_renewal_window(&self, window: (Timestamp, Timestamp)) {
        self.state.lock().window = Some(window);
    }

    /// The `replaces` field of each order.
    pub fn replaced_certificates(&self) -> Vec<Option<String>> {
        self.state.lock().orders.iter().map(|order| order.replaces.clone()).collect()
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    fn nonce(&self) -> String {
        let mut state = self.state.lock();
        state.nonce_count += 1;
        let nonce = format!("nonce-{}", state.nonce_count);
        state.nonces.insert(nonce.clone());
        nonce
    }

    async fn handle(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().trim_start_matches('/').to_owned();
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let parts: Vec<&str> = path.split('/').collect();
        let result = match parts.as_slice() {
            ["directory"] => Ok((200, Vec::new(), self.directory_body())),
            ["nonce"] => Ok((200, Vec::new(), String::new())),
            ["renewal", _] => self.renewal_info(),
            _ => match self.verify_jws(&path, &body) {
                Ok((payload, jwk)) => self.respond(&parts, &payload, jwk).await,
                Err(error) => Err(error),
            },
        };
        let (status, fields, body) = result.unwrap_or_else(|detail| {
            let problem = json!({"type": "urn:ietf:params:acme:error:malformed", "detail": detail});
            (400, Vec::new(), problem.to_string())
        });
        let mut response = Response::builder().status(status).header("replay-nonce", self.nonce());
        for (name, value) in fields {
            response = response.header(name, value);
        }
        response.body(Full::new(Bytes::from(body))).unwrap()
    }

    fn directory_body(&self) -> String {
        json!({
            "newNonce": self.url("nonce"), "newAccount": self.url("account"), "newOrder": self.url("order"),
            "revokeCert": self.url("revoke"), "keyChange": self.url("key"), "renewalInfo": self.url("renewal"),
        })
        .to_string()
    }

    fn renewal_info(&self) -> ResourceResponse {
        let (start, end) = self.state.lock().window.ok_or("no advice")?;
        let window = json!({"suggestedWindow": {"start": start.to_string(), "end": end.to_string()}});
        Ok((200, vec![("retry-after", "21600".to_owned())], window.to_string()))
    }

    /// Verifies a signed request. Returns its payload, and the JWK if it contains one (RFC 8555 6.2).
    fn verify_jws(&self, path: &str, body: &[u8]) -> Result<(Value, Option<Value>), String> {
        let jws: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let part = |name: &str| jws[name].as_str().map(str::to_owned).ok_or(format!("no {name}"));
        let (protected, payload, signature) = (part("protected")?, part("payload")?, part("signature")?);
        let bytes = |text: &str| BASE64.decode(text).map_err(|error| error.to_string());
        let header: Value = serde_json::from_slice(&bytes(&protected)?).map_err(|error| error.to_string())?;
        let mut state = self.state.lock();
        if !state.nonces.remove(header["nonce"].as_str().unwrap_or_default()) {
            return Err("unknown or used nonce".to_owned());
        }
        if header["url"] != self.url(path) || header["alg"] != "ES256" {
            return Err(format!("wrong url or alg: {header}"));
        }
        let header_jwk = header.get("jwk").cloned();
        let jwk = match &header_jwk {
            Some(jwk) => jwk.clone(),
            None if header["kid"] == self.url("account/1") => state.account.clone().ok_or("no account")?,
            None => return Err("another account".to_owned()),
        };
        state.account.get_or_insert(jwk.clone());
        let coordinate = |name: &str| bytes(jwk[name].as_str().unwrap_or_default());
        let point = [&[4][..], &coordinate("x")?, &coordinate("y")?].concat();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
            .verify(format!("{protected}.{payload}").as_bytes(), &bytes(&signature)?)
            .map_err(|_| "invalid signature")?;
        let payload = bytes(&payload)?;
        let payload = if payload.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(&payload) };
        Ok((payload.map_err(|error| error.to_string())?, header_jwk))
    }

    async fn respond(&self, parts: &[&str], payload: &Value, jwk: Option<Value>) -> ResourceResponse {
        let number = |text: &str| text.parse::<usize>().map_err(|error| error.to_string());
        match parts {
            ["account"] => {
                jwk.ok_or("newAccount without jwk")?;
                Ok((201, vec![("location", self.url("account/1"))], json!({"status": "valid"}).to_string()))
            }
            ["order"] => {
                let names = payload["identifiers"].as_array().ok_or("no identifiers")?;
                let names: Vec<String> = names.iter().map(|name| name["value"].as_str().unwrap().to_owned()).collect();
                let replaces = payload["replaces"].as_str().map(str::to_owned);
                let order = {
                    let mut state = self.state.lock();
                    let validated = vec![None; names.len()];
                    state.orders.push(Order { validated, names, chain: None, replaces });
                    state.orders.len() - 1
                };
                Ok((201, vec![("location", self.url(&format!("order/{order}")))], self.order(order)))
            }
            ["order", order] => Ok((200, Vec::new(), self.order(number(order)?))),
            ["authorization", order, name] => {
                Ok((200, Vec::new(), self.authorization(number(order)?, number(name)?).to_string()))
            }
            ["challenge", order, name, kind] => {
                self.validate_challenge(number(order)?, number(name)?, kind).await;
                let authorization = self.authorization(number(order)?, number(name)?);
                let challenges = authorization["challenges"].as_array().unwrap();
                let mut challenge = challenges.iter().find(|challenge| challenge["type"] == *kind).unwrap().clone();
                // The result is seen by polling later, as with any CA.
                challenge["status"] = json!("processing");
                challenge.as_object_mut().unwrap().remove("error");
                Ok((200, Vec::new(), challenge.to_string()))
            }
            ["finalize", order] => {
                self.issue(number(order)?, payload["csr"].as_str().ok_or("no csr")?)?;
                Ok((200, Vec::new(), self.order(number(order)?)))
            }
            ["certificate", order] => {
                let order = number(order)?;
                let chain = self.state.lock().orders[order].chain.clone();
                Ok((200, Vec::new(), chain.ok_or("not issued")?))
            }
            other => Err(format!("no resource {other:?}")),
        }
    }

    fn order(&self, number: usize) -> String {
        let state = self.state.lock();
        let order = &state.orders[number];
        let status = match (&order.chain, &order.validated) {
            (Some(_), _) => "valid",
            (None, validated) if validated.contains(&Some(false)) => "invalid",
            (None, validated) if validated.contains(&None) => "pending",
            _ => "ready",
        };
        let names = order.names.iter().map(|name| json!({"type": "dns", "value": name}));
        let indices = 0..order.names.len();
        let mut view = json!({
            "status": status,
            "identifiers": names.collect::<Vec<_>>(),
            "authorizations":
                indices.map(|n| self.url(&format!("authorization/{number}/{n}"))).collect::<Vec<_>>(),
            "finalize": self.url(&format!("finalize/{number}")),
        });
        if let Some(replaces) = &order.replaces {
            view["replaces"] = json!(replaces);
        }
        if order.chain.is_some() {
            view["certificate"] = json!(self.url(&format!("certificate/{number}")));
        }
        view.to_string()
    }

    fn authorization(&self, order: usize, name: usize) -> Value {
        let state = self.state.lock();
        let (identifier, validated) = (&state.orders[order].names[name], state.orders[order].validated[name]);
        let status = match validated {
            None => "pending",
            Some(true) => "valid",
            Some(false) => "invalid",
        };
        let challenge = |kind: &str| {
            let mut challenge = json!({
                "type": kind, "status": status, "token": token(order, name),
                "url": self.url(&format!("challenge/{order}/{name}/{kind}")),
            });
            if validated == Some(false) {
                let kind = "urn:ietf:params:acme:error:connection";
                challenge["error"] = json!({"type": kind, "detail": "no valid response"});
            }
            challenge
        };
        json!({
            "status": status,
            "identifier": {"type": "dns", "value": identifier},
            "challenges": [challenge("dns-01"), challenge("http-01"), challenge("tls-alpn-01")],
        })
    }

    /// Validates a challenge and stores the result.
    async fn validate_challenge(&self, order: usize, name: usize, kind: &str) {
        let (key_authorization, identifier, (http, tls)) = {
            let state = self.state.lock();
            let jwk = state.account.as_ref().unwrap();
            // RFC 7638: members in lexicographic order.
            let text = |name: &str| jwk[name].as_str().unwrap().to_owned();
            let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}}"#, text("x"), text("y"));
            let thumbprint = BASE64.encode(digest(&SHA256, canonical.as_bytes()));
            let key_authorization = format!("{}.{thumbprint}", token(order, name));
            (key_authorization, state.orders[order].names[name].clone(), state.validation_addresses)
        };
        let validated = match (kind, http, tls) {
            ("http-01", Some(at), _) => {
                validate_http(at, &identifier, &token(order, name)).await == Some(key_authorization)
            }
            ("tls-alpn-01", _, Some(at)) => validate_tls(at, &identifier, &key_authorization).await,
            _ => false,
        };
        self.state.lock().orders[order].validated[name] = Some(validated);
    }

    fn issue(&self, order: usize, csr: &str) -> Result<(), String> {
        let csr = BASE64.decode(csr).map_err(|error| error.to_string())?;
        let csr = x509_cert::request::CertReq::from_der(&csr).map_err(|error| error.to_string())?;
        let key = Key(csr.info.public_key.subject_public_key.raw_bytes().to_vec());
        let mut state = self.state.lock();
        let mut params = CertificateParams::new(state.orders[order].names.clone()).unwrap();
        let today = self.clock.now().to_zoned(jiff::tz::TimeZone::UTC).date();
        let day = |date: jiff::civil::Date| {
            let month = u8::try_from(date.month()).unwrap();
            rcgen::date_time_ymd(date.year().into(), month, u8::try_from(date.day()).unwrap())
        };
        params.use_authority_key_identifier_extension = true;
        params.not_before = day(today);
        params.not_after = day(today.checked_add(jiff::Span::new().days(DAYS)).unwrap());
        let issuer = Issuer::from_params(&self.root.0, &self.root.1);
        let certificate = params.signed_by(&key, &issuer).map_err(|error| error.to_string())?;
        state.issued_certificates.push(certificate.der().to_vec());
        state.orders[order].chain = Some(certificate.pem());
        Ok(())
    }
}

fn token(order: usize, name: usize) -> String {
    format!("token-{order}-{name}")
}

async fn validate_http(at: SocketAddr, name: &str, token: &str) -> Option<String> {
    let mut stream = TcpStream::connect(at).await.ok()?;
    let request =
        format!("GET /.well-known/acme-challenge/{token} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await.ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    head.starts_with("HTTP/1.1 200 ").then(|| body.to_owned())
}

/// RFC 8737 3: checks the ALPN protocol, the name, and the digest in a critical extension.
async fn validate_tls(at: SocketAddr, name: &str, key_authorization: &str) -> bool {
    let Ok(stream) = TcpStream::connect(at).await else { return false };
    let Some(certificate) = tls::server_certificate(stream, name, &[b"acme-tls/1"]).await else { return false };
    let certificate = x509_cert::Certificate::from_der(&certificate).unwrap();
    let extensions = certificate.tbs_certificate.extensions.unwrap_or_default();
    let digest = digest(&SHA256, key_authorization.as_bytes());
    let expected = [&[4, 32][..], digest.as_ref()].concat();
    extensions.iter().any(|one| {
        one.extn_id.to_string() == "1.3.6.1.5.5.7.1.31" && one.critical && one.extn_value.as_bytes() == expected
    })
}
