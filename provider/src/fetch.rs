//! A page of a stranger's, fetched over HTTPS.
//!
//! Whoever owns a zone says where its settings are, so the name is looked up once, judged, and connected to by address;
//! only public addresses will do unless the operator allows others. No redirect is followed, no proxy is asked, no
//! cookie is kept; what comes is bounded in bytes and in time.

use std::net::SocketAddr;
use std::time::Duration;

use mail::address::DomainName;
use mail::egress;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Url};

use super::Publisher;
use super::connect::DomainConnectError;

/// How long a page may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// What is read of a page: settings are some hundred bytes.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Addresses that are tried.
const ADDRESSES_MAX: usize = 3;

/// How pages are reached.
#[derive(Debug, Clone)]
pub struct FetchSettings {
    /// The port of all servers.
    pub port: u16,
    /// The certificates (DER) that servers' own are to come from; those of the system, if none are given.
    pub authorities: Option<Vec<Vec<u8>>>,
}

impl Default for FetchSettings {
    fn default() -> Self {
        Self { port: 443, authorities: None }
    }
}

/// A page, with whatever status.
pub(super) struct FetchedPage {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Publisher {
    /// Fetches a page.
    pub(super) async fn fetch(&self, address: &str) -> Result<FetchedPage, DomainConnectError> {
        let lost = |what: &'static str| DomainConnectError::Unreachable(what);
        let mut url = Url::parse(address).map_err(|_| DomainConnectError::Malformed)?;
        let host: DomainName =
            url.host_str().and_then(|host| host.parse().ok()).ok_or(DomainConnectError::Malformed)?;
        if url.scheme() != "https" || url.set_port(Some(self.fetch_settings.port)).is_err() {
            return Err(DomainConnectError::Malformed);
        }
        let found = self.resolver.addresses(&host).await.map_err(|_| lost("its name leads nowhere"))?.data;
        let allowed: Vec<SocketAddr> = found
            .into_iter()
            .filter(|ip| self.allow_private || egress::is_public(*ip))
            .take(ADDRESSES_MAX)
            .map(|ip| SocketAddr::new(ip, self.fetch_settings.port))
            .collect();
        if allowed.is_empty() {
            return Err(lost("its name leads to no public address"));
        }
        let client = self.client(&host, &allowed).map_err(|_| lost("no client could be set up for it"))?;
        let fetched = async {
            let mut answer = client.get(url).header("accept", "application/json").send().await?;
            let mut page = FetchedPage { status: answer.status().as_u16(), body: Vec::new() };
            while let Some(piece) = answer.chunk().await? {
                page.body.extend_from_slice(piece.get(..BODY_BYTES_MAX - page.body.len()).unwrap_or(&piece));
                if page.body.len() >= BODY_BYTES_MAX {
                    break;
                }
            }
            Ok::<_, reqwest::Error>(page)
        };
        fetched.await.map_err(|error| {
            lost(match () {
                () if error.is_timeout() => "it did not answer in time",
                () if error.is_connect() => "it takes no connection, or shows a certificate that is not its own",
                () => "its answer broke off",
            })
        })
    }

    fn client(&self, host: &DomainName, addresses: &[SocketAddr]) -> reqwest::Result<Client> {
        let builder = Client::builder()
            .resolve_to_addrs(host.as_str(), addresses)
            .redirect(Policy::none())
            .no_proxy()
            .no_gzip()
            .https_only(true)
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(FETCH_TIMEOUT);
        match &self.fetch_settings.authorities {
            None => builder,
            Some(authorities) => {
                let read = authorities.iter().map(|der| Certificate::from_der(der));
                builder.tls_certs_only(read.collect::<Result<Vec<_>, _>>()?)
            }
        }
        .build()
    }
}
