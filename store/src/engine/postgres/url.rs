//! Where the database is, and how it is reached: a PostgreSQL URL with the keys that libpq knows.
//!
//! Whoever answers is checked (`sslmode=verify-full`) unless the URL says `disable`, or every host is this
//! machine. The modes between, which encrypt and do not look who is there, are refused: they protect
//! from nobody who can redirect a connection.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::engine::OpenError;

/// How long a connection may take to be made, per host.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A peer that acknowledges nothing for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// A database, and how to reach it.
#[derive(Clone)]
pub(crate) struct ConnectionTarget {
    /// For the client.
    pub(crate) config: tokio_postgres::Config,
    /// TLS with the server's name checked; none is plain text.
    pub(crate) tls: Option<ClientConfig>,
    /// Host, port and name, for a person: without the password.
    pub(crate) shown: String,
}

/// What the URL says of TLS.
#[derive(Default)]
struct TlsOptions {
    mode: Option<String>,
    roots: Option<String>,
}

/// Reads a URL.
pub(crate) fn parse(url: &str, application: &str) -> Result<ConnectionTarget, OpenError> {
    let (rest, wanted) = without_tls(url)?;
    let mut config: tokio_postgres::Config = rest.parse().map_err(|error: tokio_postgres::Error| {
        OpenError::Url(format!("{}: write postgres://USER:PASSWORD@HOST:PORT/DATABASE", reason(&error)))
    })?;
    if config.get_hosts().is_empty() {
        return Err(OpenError::Url("it names no host".to_owned()));
    }
    let tls = match wanted.mode.as_deref() {
        Some("disable") => None,
        Some("verify-full") => Some(verifying_config(wanted.roots.as_deref())?),
        None if config.get_hosts().iter().all(is_local) => None,
        None => Some(verifying_config(wanted.roots.as_deref())?),
        Some(other) => {
            return Err(OpenError::Url(format!(
                "sslmode={other} does not check who answers: write sslmode=verify-full (with sslrootcert=FILE \
                 for a private authority), or sslmode=disable where the wire is trusted"
            )));
        }
    };
    config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
    // Of several hosts, the one that takes writes: after a failover, that is another.
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    config.connect_timeout(CONNECT_TIMEOUT).tcp_user_timeout(SILENCE_MAX).keepalives_idle(SILENCE_MAX);
    config.application_name(application);
    let shown = display_name(&config);
    Ok(ConnectionTarget { config, tls, shown })
}

/// Takes out what the client library does not know.
fn without_tls(url: &str) -> Result<(String, TlsOptions), OpenError> {
    let mut wanted = TlsOptions::default();
    let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), wanted)) };
    let mut kept = Vec::new();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value)
            .decode_utf8()
            .map_err(|_| OpenError::Url(format!("{name} is not UTF-8")))?
            .into_owned();
        match name {
            "sslmode" => wanted.mode = Some(value),
            "sslrootcert" => wanted.roots = Some(value),
            _ => kept.push(pair),
        }
    }
    let rest = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
    Ok((rest, wanted))
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        Host::Unix(_) => true,
    }
}

/// Certificates are checked against a file, or against the public roots.
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
                return Err(wrong(&"there is no certificate in it"));
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

/// What the library says, with what is behind it.
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
    fn who_answers_is_checked_unless_it_is_this_machine() {
        assert!(parsed("postgres://u:p@db.example/mail").unwrap().tls.is_some());
        assert!(parsed("postgres://u:p@db.example/mail?sslmode=verify-full").unwrap().tls.is_some());
        assert!(parsed("postgres://u:p@db.example/mail?sslmode=disable").unwrap().tls.is_none());
        for here in ["localhost", "127.0.0.1", "%2Frun%2Fpostgresql"] {
            assert!(parsed(&format!("postgres://u@{here}:5433/mail")).unwrap().tls.is_none(), "{here}");
        }
        assert!(parsed("postgres://u@localhost,db.example/mail").unwrap().tls.is_some());
        for unsafe_mode in ["require", "prefer", "verify-ca"] {
            let refused = parsed(&format!("postgres://u@localhost/mail?sslmode={unsafe_mode}"));
            assert!(refused.is_err_and(|error| error.to_string().contains("verify-full")), "{unsafe_mode}");
        }
    }

    #[test]
    fn a_wrong_url_is_told_without_its_password() {
        for wrong in ["", "db.example", "http://db/x", "postgres://u:p@/x", "postgres://u@h:port/x"] {
            let error = parsed(wrong).err().map(|error| error.to_string());
            assert!(error.is_some_and(|text| text.starts_with("[store] url: ")), "{wrong}");
        }
        let target = parsed("postgres://u:geheim@db1.example:5433,db2.example/mail?application_name=x").unwrap();
        assert_eq!(target.shown, "db1.example:5433,db2.example:5432/mail");
        let missing = parsed("postgres://u@db.example/m?sslrootcert=%2Fno%2Fsuch").err().unwrap().to_string();
        assert!(missing.contains("sslrootcert /no/such"), "{missing}");
    }
}
