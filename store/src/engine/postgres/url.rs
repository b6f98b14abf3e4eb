//! Location of the database: a PostgreSQL URL with libpq's parameters.
//!
//! The server's certificate and name are verified (`sslmode=verify-full`) unless the URL contains `sslmode=disable` or
//! every host is local. The modes in between, which encrypt without verification, are refused: they do not protect
//! against an attacker who can redirect the connection.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::engine::OpenError;

/// Connection timeout per host. Three hosts fit into `OPEN_MAX`, so that the last of them is still reached.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A peer that acknowledges nothing for this long is considered lost.
const PEER_SILENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Location of a database and how to connect to it.
#[derive(Clone)]
pub(crate) struct ConnectionTarget {
    pub(crate) config: tokio_postgres::Config,
    /// TLS with verification of the server's name; `None` is plain text.
    pub(crate) tls: Option<ClientConfig>,
    /// Host, port and database name for messages, without the password.
    pub(crate) display_name: String,
}

/// The TLS parameters of the URL.
#[derive(Default)]
struct TlsOptions {
    mode: Option<String>,
    roots: Option<String>,
}

/// Parses a database URL.
pub(crate) fn parse(url: &str, application: &str) -> Result<ConnectionTarget, OpenError> {
    let (rest, wanted) = without_tls(url)?;
    let mut config: tokio_postgres::Config = rest.parse().map_err(|error: tokio_postgres::Error| {
        OpenError::Url(format!("{}: write postgres://USER:PASSWORD@HOST:PORT/DATABASE", reason(&error)))
    })?;
    if config.get_hosts().is_empty() {
        return Err(OpenError::Url("the URL contains no host".to_owned()));
    }
    let tls = match wanted.mode.as_deref() {
        Some("disable") => None,
        Some("verify-full") => Some(verifying_config(wanted.roots.as_deref())?),
        None if config.get_hosts().iter().all(is_local) => None,
        None => Some(verifying_config(wanted.roots.as_deref())?),
        Some(other) => {
            return Err(OpenError::Url(format!(
                "sslmode={other} does not verify the server: use sslmode=verify-full (with sslrootcert=FILE \
                 for a private authority), or sslmode=disable where the network is trusted"
            )));
        }
    };
    config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
    // With several hosts, use the one that accepts writes; after a failover that is another one.
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    config
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_user_timeout(PEER_SILENCE_TIMEOUT)
        .keepalives_idle(PEER_SILENCE_TIMEOUT);
    config.application_name(application);
    let display_name = display_name(&config);
    Ok(ConnectionTarget { config, tls, display_name })
}

/// Removes the TLS parameters, which the client library does not support.
fn without_tls(url: &str) -> Result<(String, TlsOptions), OpenError> {
    let mut wanted = TlsOptions::default();
    let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), wanted)) };
    let mut other_parameters = Vec::new();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value)
            .decode_utf8()
            .map_err(|_| OpenError::Url(format!("{name} is not UTF-8")))?
            .into_owned();
        match name {
            "sslmode" => wanted.mode = Some(value),
            "sslrootcert" => wanted.roots = Some(value),
            _ => other_parameters.push(pair),
        }
    }
    let rest =
        if other_parameters.is_empty() { base.to_owned() } else { format!("{base}?{}", other_parameters.join("&")) };
    Ok((rest, wanted))
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        Host::Unix(_) => true,
    }
}

/// TLS configuration that verifies against a file of root certificates, or against the public roots.
fn verifying_config(roots_file: Option<&str>) -> Result<ClientConfig, OpenError> {
    let mut roots = RootCertStore::empty();
    match roots_file {
        None | Some("system") => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(file) => {
            let wrong = |error: &dyn std::fmt::Display| OpenError::Url(format!("sslrootcert {file}: {error}"));
            let read = CertificateDer::pem_file_iter(Path::new(file)).map_err(|error| wrong(&error))?;
            for certificate in read {
                let certificate = certificate.map_err(|error| wrong(&error))?;
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
            if roots.is_empty() {
                return Err(wrong(&"the file contains no certificate"));
            }
        }
    }
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| OpenError::Url(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn display_name(config: &tokio_postgres::Config) -> String {
    let hosts = config.get_hosts().iter().enumerate().map(|(n, host)| {
        let port = config.get_ports().get(n).or(config.get_ports().first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    });
    let hosts: Vec<String> = hosts.collect();
    format!("{}/{}", hosts.join(","), config.get_dbname().or(config.get_user()).unwrap_or_default())
}

/// The library's error with its source.
pub(crate) fn reason(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    if let Some(db) = error.as_db_error() {
        return format!("{} ({})", db.message(), db.code().code());
    }
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Result<ConnectionTarget, OpenError> {
        parse(url, "test")
    }

    #[test]
    fn the_server_is_verified_unless_it_is_local() {
        assert!(parsed("postgres://u:p@db.example/mail").unwrap().tls.is_some());
        assert!(parsed("postgres://u:p@db.example/mail?sslmode=verify-full").unwrap().tls.is_some());
        assert!(parsed("postgres://u:p@db.example/mail?sslmode=disable").unwrap().tls.is_none());
        for host in ["localhost", "127.0.0.1", "%2Frun%2Fpostgresql"] {
            assert!(parsed(&format!("postgres://u@{host}:5433/mail")).unwrap().tls.is_none(), "{host}");
        }
        assert!(parsed("postgres://u@localhost,db.example/mail").unwrap().tls.is_some());
        for unsafe_mode in ["require", "prefer", "verify-ca"] {
            let refused = parsed(&format!("postgres://u@localhost/mail?sslmode={unsafe_mode}"));
            assert!(refused.is_err_and(|error| error.to_string().contains("verify-full")), "{unsafe_mode}");
        }
    }

    #[test]
    fn an_invalid_url_is_reported_without_its_password() {
        for wrong in ["", "db.example", "http://db/x", "postgres://u:p@/x", "postgres://u@h:port/x"] {
            let error = parsed(wrong).err().map(|error| error.to_string());
            assert!(error.is_some_and(|text| text.starts_with("[store] url: ")), "{wrong}");
        }
        let target = parsed("postgres://u:geheim@db1.example:5433,db2.example/mail?application_name=x").unwrap();
        assert_eq!(target.display_name, "db1.example:5433,db2.example:5432/mail");
        let missing = parsed("postgres://u@db.example/m?sslrootcert=%2Fno%2Fsuch").err().unwrap().to_string();
        assert!(missing.contains("sslrootcert /no/such"), "{missing}");
    }
}
