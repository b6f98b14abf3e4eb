//! Fetches a page of a DNS provider over HTTPS.
//!
//! The owner of a zone chooses the host of its settings. So the name is resolved once, the addresses are checked, and
//! the connection uses a checked address. Only public addresses are allowed unless the operator permits others. There
//! are no redirects, proxies or cookies. The response is limited in bytes and in time.

use std::net::SocketAddr;
use std::time::Duration;

use message::address::DomainName;
use model::public_ip;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Url};

use super::Publisher;
use super::domain_connect::DomainConnectError;

/// Timeout of a fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum bytes read of a page: settings have some hundred.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Maximum addresses that are tried.
const ADDRESSES_MAX: usize = 3;

/// Settings for fetching pages, which tests replace.
#[derive(Debug, Clone)]
pub struct FetchSettings {
    pub port: u16,
    /// Trusted CA certificates (DER); `None` means those of the system.
    pub authorities: Option<Vec<Vec<u8>>>,
}

impl Default for FetchSettings {
    fn default() -> Self {
        Self { port: 443, authorities: None }
    }
}

/// A fetched page with any status.
pub(super) struct FetchedPage {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Publisher {
    /// Fetches a page.
    pub(super) async fn fetch(&self, address: &str) -> Result<FetchedPage, DomainConnectError> {
        let unreachable = |reason: &'static str| DomainConnectError::Unreachable(reason);
        let mut url = Url::parse(address).map_err(|_| DomainConnectError::Malformed)?;
        let host: DomainName =
            url.host_str().and_then(|host| host.parse().ok()).ok_or(DomainConnectError::Malformed)?;
        if url.scheme() != "https" || url.set_port(Some(self.fetch_settings.port)).is_err() {
            return Err(DomainConnectError::Malformed);
        }
        let found = self.resolver.addresses(&host).await.map_err(|_| unreachable("its name cannot be resolved"))?.data;
        let allowed: Vec<SocketAddr> = found
            .into_iter()
            .filter(|ip| self.allow_private || public_ip::is_public(*ip))
            .take(ADDRESSES_MAX)
            .map(|ip| SocketAddr::new(ip, self.fetch_settings.port))
            .collect();
        if allowed.is_empty() {
            return Err(unreachable("its name has no public address"));
        }
        let client = self.client(&host, &allowed).map_err(|_| unreachable("the HTTP client could not be created"))?;
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
            unreachable(match () {
                () if error.is_timeout() => "it did not respond in time",
                () if error.is_connect() => "it does not accept connections, or has an invalid certificate",
                () => "its response was incomplete",
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
