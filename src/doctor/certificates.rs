//! `certificate`: checks the certificate files that mail clients, mail hosts and API clients are presented with.
//!
//! ```text
//! files readable? ─► key matches? ─► chain in order? ─► names: hostname, the API's host ─► validity ─► trusted?
//! ```
//!
//! Sending mail hosts accept any certificate (RFC 7435), unless a policy requires a valid one (MTA-STS, DANE). Mail
//! clients and API clients accept valid certificates only, so whatever they would refuse is a failure.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use message::address::DomainName;
use message::dane::Tlsa;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::aws_lc_rs;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::context::{CheckContext, join_words};
use super::finding::{DoctorFinding, Observations};
use super::hostname::join_lines;
use super::systemd::{self, UNIT};
use super::x509;
use crate::certificate::Certificate;
use crate::config::Config;

const NAME: &str = "certificate";
/// Directory of the unit's credentials (systemd.exec(5), `LoadCredential=`).
const CREDENTIALS: &str = "/run/credentials/postrider.service";
/// Remaining days below which renewal is overdue: ACME clients renew with a third of the lifetime left.
const DAYS_LEFT: i64 = 14;

/// Checks the files that the configuration names.
pub(super) async fn check_certificate(context: &CheckContext) -> DoctorFinding {
    let config = &context.config;
    if config.tls.acme.is_some() {
        let found = "certificates are issued by ACME: `postrider admin certificate` shows their status";
        return DoctorFinding::skipped(NAME, found);
    }
    let (Some(certificate), Some(key)) = (&config.tls.certificate, &config.tls.private_key) else {
        return DoctorFinding::skipped(NAME, "no certificate is configured, so submission and TLS are disabled");
    };
    let mut notes = Observations::default();
    for file in [certificate, key] {
        if let Err(error) = std::fs::File::open(file) {
            let found = format!("{}: {error}", file.display());
            match error.kind() {
                ErrorKind::NotFound if file.starts_with(CREDENTIALS) => {
                    let found = format!("{}: exists only while {UNIT} runs, and it is not running", file.display());
                    notes.warn(found, "systemctl start postrider");
                }
                ErrorKind::PermissionDenied => {
                    notes.warn(found, "Run the doctor as root or as the server's user: sudo postrider doctor");
                }
                _ => notes.fail(found, renewal_advice(config)),
            }
            return notes.into_finding(NAME);
        }
    }
    if systemd::load_unit().await.is_some_and(|unit| unit.has_dynamic_user) {
        readable_by_service(&mut notes, [certificate, key], config);
    }
    if is_world_readable(key) {
        notes.warn(
            format!("the private key {} is readable by all users", key.display()),
            format!("chmod o= {}", key.display()),
        );
    }
    match Certificate::from_pem_files(certificate, key) {
        Err(error) => notes.fail(error.to_string(), renewal_advice(config)),
        Ok(pair) => evaluate(&mut notes, config, &pair, context.clock.now()),
    }
    notes.into_finding(NAME)
}

fn is_world_readable(key: &Path) -> bool {
    std::fs::metadata(key).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}

/// Names that clients connect to, with the reason.
fn required_names(config: &Config) -> Vec<(DomainName, &'static str)> {
    let mut names = vec![(config.hostname.clone(), "mail clients and mail hosts connect to `hostname`")];
    let api = config.api.base_url.as_deref().filter(|_| config.api.tls);
    let host = api.and_then(|url| url.parse::<http::Uri>().ok()?.host()?.parse::<DomainName>().ok());
    if let Some(host) = host.filter(|host| *host != config.hostname) {
        names.push((host, "API clients connect to `base_url`"));
    }
    names
}

/// Instructions for a valid certificate: by ACME, or by certbot. Only root may read certbot's files, and the unit does
/// not run as root, so systemd passes them as credentials (systemd.exec(5), `LoadCredential=`).
fn renewal_advice(config: &Config) -> String {
    let domain_options: Vec<String> = required_names(config).iter().map(|(name, _)| format!("-d {name}")).collect();
    let port = if config.api.tls && config.api.listen.iter().any(|listen| listen.port() == 443) {
        ""
    } else {
        "http_listen = \"[::]:80\"\n"
    };
    let host = &config.hostname;
    format!(
        "Have postrider order and renew it: replace `certificate` and `private_key` in [tls] with these lines, and \
         restart:\n\
         [tls.acme]\n\
         contact = \"postmaster@{host}\"\n\
         {port}\
         Or use certbot, and let systemd pass its files (only root may read them):\n\
         certbot certonly --standalone {} --deploy-hook \"systemctl restart postrider\"\n\
         systemctl edit postrider, and add:\n\
         [Service]\n\
         LoadCredential=tls.crt:/etc/letsencrypt/live/{host}/fullchain.pem\n\
         LoadCredential=tls.key:/etc/letsencrypt/live/{host}/privkey.pem\n\
         In the configuration:\n\
         [tls]\n\
         certificate = \"{CREDENTIALS}/tls.crt\"\n\
         private_key = \"{CREDENTIALS}/tls.key\"\n\
         Then: systemctl restart postrider",
        domain_options.join(" "),
    )
}

/// Returns whether any user may read a file, including search permission on the directories above it.
fn is_readable_by_all(file: &Path) -> bool {
    let has_mode =
        |path: &Path, bits: u32| std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & bits == bits);
    let Ok(file) = std::fs::canonicalize(file) else { return false };
    has_mode(&file, 0o004) && file.ancestors().skip(1).all(|directory| has_mode(directory, 0o001))
}

/// Adds a failure if the unit's dynamic user cannot read a file.
fn readable_by_service(notes: &mut Observations, files: [&Path; 2], config: &Config) {
    for file in files {
        if !file.starts_with(CREDENTIALS) && !is_readable_by_all(file) {
            let found = format!("{}: the user of {UNIT} cannot read it", file.display());
            notes.fail(found, renewal_advice(config));
        }
    }
}

fn evaluate(notes: &mut Observations, config: &Config, certificate: &Certificate, now: Timestamp) {
    let chain: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(&certificate.chain).flatten().collect();
    let Some((leaf, intermediates)) = chain.split_first() else {
        return notes.fail("the certificate file contains no certificate (no PEM block)", renewal_advice(config));
    };
    match certificate.server_config(Vec::new()) {
        Ok(_) => notes.good("the private key matches the certificate"),
        Err(error) => notes.fail(
            error.to_string(),
            "The key and the certificate must belong together, and the server's certificate must come first in the \
             file. Certbot writes both into one directory: privkey.pem belongs to the fullchain.pem beside it.",
        ),
    }
    let fields: Vec<x509::CertificateFields> =
        chain.iter().filter_map(|cert| x509::parse_certificate(cert).ok()).collect();
    if let [leaf, ..] = &fields[..] {
        evaluate_lifetime(notes, leaf, now, &renewal_advice(config));
    }
    let is_ordered = fields.windows(2).all(|pair| matches!(pair, [cert, next] if cert.issuer == next.subject));
    if !is_ordered {
        notes.fail(
            "the certificates in the file are out of order: some clients cannot build the chain",
            "Put the server's certificate first, then the one that issued it, and so on, without the root: cat \
             cert.pem chain.pem > fullchain.pem",
        );
    }
    evaluate_names(notes, config, leaf);
    let is_self_issued = matches!(&fields[..], [only] if only.issuer == only.subject);
    evaluate_trust(notes, config, leaf, intermediates, TrustInput { now, self_issued: is_self_issued });
}

fn evaluate_lifetime(notes: &mut Observations, leaf: &x509::CertificateFields, now: Timestamp, renew: &str) {
    let remaining = leaf.not_after.duration_since(now);
    let lifetime = leaf.not_after.duration_since(leaf.not_before);
    let day = |time: Timestamp| time.strftime("%Y-%m-%d").to_string();
    if remaining.is_negative() {
        notes.fail(format!("the certificate expired on {}", day(leaf.not_after)), renew);
    } else if leaf.not_before > now {
        let fix = "Check the system clock; see the finding `clock`.";
        notes.fail(format!("the certificate is not valid before {}", leaf.not_before), fix);
    } else if remaining < SignedDuration::from_hours(24 * DAYS_LEFT).min(lifetime / 4) {
        notes.warn(
            format!("the certificate expires on {}, in {} days", day(leaf.not_after), remaining.as_hours() / 24),
            format!("Check that it is renewed automatically (systemctl list-timers 'certbot*').\n{renew}"),
        );
    } else {
        notes.good(format!("it is valid until {}", day(leaf.not_after)));
    }
}

fn evaluate_names(notes: &mut Observations, config: &Config, leaf: &CertificateDer<'_>) {
    let Ok(parsed) = ParsedCertificate::try_from(leaf) else {
        return notes.fail("the certificate cannot be parsed", renewal_advice(config));
    };
    let (mut covered, mut missing) = (Vec::new(), Vec::new());
    for (name, reason) in required_names(config) {
        let is_covered =
            ServerName::try_from(name.as_str()).is_ok_and(|name| verify_server_name(&parsed, &name).is_ok());
        if is_covered { covered.push(name) } else { missing.push((name, reason)) }
    }
    if !config.mx.listen.is_empty() {
        // For operators who publish it in a signed zone (RFC 7672 3.1.1).
        let key = Tlsa::public_key_digest(parsed.subject_public_key_info().as_ref());
        notes.good(format!("its TLSA record, for DANE: _25._tcp.{}. TLSA 3 1 1 {key}", config.hostname));
    }
    if !covered.is_empty() {
        notes.good(format!("it covers {}", join_words(&covered)));
    }
    if !missing.is_empty() {
        let found = missing.iter().map(|(name, reason)| format!("the certificate does not cover {name} ({reason})"));
        notes.fail(join_lines(found), renewal_advice(config));
    }
}

/// Input of the trust check.
struct TrustInput {
    now: Timestamp,
    /// True for a single self-signed certificate.
    self_issued: bool,
}

/// Checks whether clients with the public CAs trust the chain. Names and validity are reported elsewhere.
fn evaluate_trust(
    notes: &mut Observations,
    config: &Config,
    leaf: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    TrustInput { now, self_issued }: TrustInput,
) {
    if self_issued {
        return notes.warn(
            "the certificate is self-signed: mail clients and API clients will refuse it",
            renewal_advice(config),
        );
    }
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = Arc::new(aws_lc_rs::default_provider());
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return;
    };
    let Ok(name) = ServerName::try_from(config.hostname.as_str()) else { return };
    let now = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0)));
    match verifier.verify_server_cert(leaf, intermediates, &name, &[], now) {
        Ok(_) => notes.good("clients with the usual roots trust it"),
        Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            let (found, fix) = if intermediates.is_empty() {
                (
                    "the file has only the server's certificate; clients also need the one that issued it",
                    "Set `certificate` to the whole chain (fullchain.pem instead of cert.pem).",
                )
            } else {
                (
                    "the chain does not end at a public CA: only clients that trust your own CA accept it",
                    "This is intended with a private CA; otherwise use a public one, such as Let's Encrypt.",
                )
            };
            notes.warn(found, fix);
        }
        // Reported by other checks with better texts.
        Err(rustls::Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. }
            | CertificateError::NotValidForName
            | CertificateError::NotValidForNameContext { .. },
        )) => {}
        Err(error) => notes.warn(format!("clients may refuse the certificate: {error}"), renewal_advice(config)),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};

    use super::super::finding::CheckStatus;
    use super::*;
    use crate::config;

    /// A leaf for these names, valid until 2030-06-01, and its CA as PEM; and the leaf's key.
    fn issued(names: &[&str]) -> (String, String, Vec<u8>) {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let mut leaf = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        leaf.distinguished_name = rcgen::DistinguishedName::new();
        (leaf.not_before, leaf.not_after) = (date_time_ymd(2030, 3, 1), date_time_ymd(2030, 6, 1));
        let key = KeyPair::generate().unwrap();
        let leaf = leaf.signed_by(&key, &authority).unwrap();
        (leaf.pem(), authority.pem(), key.serialize_pem().into_bytes())
    }

    fn run_check(chain: String, key: Vec<u8>, now: &str) -> DoctorFinding {
        let text =
            "hostname = \"mx1.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\nbase_url = \"https://api.example.net\"\n";
        let mut config = config::from_text(text, []).unwrap();
        config.api.tls = true;
        let mut notes = Observations::default();
        evaluate(&mut notes, &config, &Certificate { chain: chain.into_bytes(), key }, now.parse().unwrap());
        notes.into_finding(NAME)
    }

    const NOW: &str = "2030-04-01T00:00:00Z";

    #[test]
    fn names_validity_keys_and_order_are_checked() {
        let names = ["mx1.example.net", "api.example.net"];
        let (leaf, authority, key) = issued(&names);
        let valid = run_check(format!("{leaf}{authority}"), key.clone(), NOW);
        // The CA is private: nothing else is reported.
        assert!(
            valid.status == CheckStatus::Warning && valid.found.starts_with("the chain does not end"),
            "{valid:#?}"
        );
        assert!(valid.found.contains("covers mx1.example.net and api.example.net"), "{valid:#?}");
        for (now, status, expected_text) in [
            ("2030-07-01T00:00:00Z", CheckStatus::Failed, "expired on 2030-06-01"),
            ("2030-05-25T00:00:00Z", CheckStatus::Warning, "expires on 2030-06-01, in 7 days"),
            ("2030-01-01T00:00:00Z", CheckStatus::Failed, "not valid before"),
        ] {
            let expiring = run_check(format!("{leaf}{authority}"), key.clone(), now);
            assert!(expiring.status == status && expiring.found.contains(expected_text), "{expiring:#?}");
        }
        let reversed = run_check(format!("{authority}{leaf}"), key.clone(), NOW);
        assert!(reversed.status == CheckStatus::Failed && reversed.found.contains("out of order"), "{reversed:#?}");
        let leaf_only = run_check(leaf.clone(), key.clone(), NOW);
        assert!(leaf_only.fix.unwrap().contains("fullchain.pem"));
        let (_, _, other_key) = issued(&names);
        let mismatched = run_check(format!("{leaf}{authority}"), other_key, NOW);
        assert!(mismatched.status == CheckStatus::Failed && mismatched.fix.unwrap().contains("belong together"));
        assert_eq!(run_check(String::new(), key, NOW).status, CheckStatus::Failed);
    }

    #[test]
    fn names_that_are_not_covered_are_reported() {
        let (leaf, authority, key) = issued(&["*.example.net"]);
        assert!(run_check(format!("{leaf}{authority}"), key, NOW).found.contains("covers mx1"));
        let (leaf, authority, key) = issued(&["mx1.example.net"]);
        let finding = run_check(format!("{leaf}{authority}"), key, NOW);
        assert!(finding.found.contains("does not cover api.example.net"), "{finding:#?}");
        assert!(finding.fix.unwrap().contains("-d mx1.example.net -d api.example.net"));
    }

    /// The user of etc/postrider.service cannot read files of root.
    #[test]
    fn the_advice_works_for_the_unit() {
        let text = "hostname = \"mx1.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\n";
        let fix = renewal_advice(&config::from_text(text, []).unwrap());
        let (acme, certbot) = (fix.find("[tls.acme]").unwrap(), fix.find("certbot").unwrap());
        assert!(acme < certbot && fix.contains("http_listen = \"[::]:80\""), "{fix}");
        let unit = include_str!("../../etc/postrider.service");
        for line in fix.lines().filter(|line| line.starts_with("LoadCredential=")) {
            assert!(unit.contains(line), "the unit lacks this line: {line}");
        }
        assert!(!fix.contains("reload postrider"), "a reload does not update credentials");
        let authored = "[tls.acme]\ncontact = \"postmaster@mx1.example.net\"\nhttp_listen = \"[::]:80\"\n";
        config::from_text(&format!("{text}{authored}"), []).unwrap();
    }

    #[test]
    fn files_that_only_root_can_read_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let (open, closed) = (directory.path().join("open.pem"), directory.path().join("closed.pem"));
        for (path, mode) in [(&open, 0o644), (&closed, 0o640)] {
            std::fs::write(path, "").unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(!is_readable_by_all(&open), "its directory is not accessible");
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(is_readable_by_all(&open) && !is_readable_by_all(&closed));
        let text = "hostname = \"mx1.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\n";
        let config = config::from_text(text, []).unwrap();
        let (mut notes, credential) =
            (Observations::default(), Path::new("/run/credentials/postrider.service/tls.key"));
        readable_by_service(&mut notes, [&open, credential], &config);
        assert_eq!(notes.into_finding(NAME).notes, []);
        let mut notes = Observations::default();
        readable_by_service(&mut notes, [&open, &closed], &config);
        assert_eq!(notes.into_finding(NAME).status, CheckStatus::Failed);
    }
}
