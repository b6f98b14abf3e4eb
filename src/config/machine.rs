//! Checks of a configuration against this machine: files, keys, directories and source addresses.

use std::fmt::Display;
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::Config;
use super::check::{ConfigFault, config_fault};
use crate::certificate::{self, Certificate};
use crate::services;

/// Checks files, keys and directories on this machine.
pub(super) fn check_machine(config: &Config) -> Vec<ConfigFault> {
    let mut faults = Vec::new();
    check_certificate(config, &mut faults);
    let acme_roots = config.tls.acme.as_ref().and_then(|acme| acme.roots.as_deref());
    for (section, roots) in [("tls.acme", acme_roots), ("delivery", config.delivery.roots.as_deref())] {
        let Some(file) = roots else { continue };
        if let Some(reason) = read_error(file) {
            faults.push(config_fault(section, "roots", file_text(file, reason)));
        } else if let Err(error) = certificate::load_roots(file) {
            faults.push(config_fault(
                section,
                "roots",
                format!("{error}; the file must contain CA certificates in PEM"),
            ));
        }
    }
    if let Some(file) = &config.dns.trust_anchors {
        if let Some(reason) = read_error(file) {
            faults.push(config_fault("dns", "trust_anchors", file_text(file, reason)));
        } else if let Err(error) = dns::resolver::check_trust_anchors(file) {
            let example = ". 172800 IN DNSKEY 257 3 8 AwEAAa…";
            faults.push(config_fault("dns", "trust_anchors", format!("{error} (example of a line: {example:?})")));
        }
    }
    if let Some(database) = services::database(config) {
        let begins_with = |scheme| database.url.starts_with(scheme);
        if !begins_with("postgres://") && !begins_with("postgresql://") {
            let text = "the URL must begin with postgres:// (example: \"postgres://USER:PASSWORD@HOST:5432/DATABASE\")";
            faults.push(config_fault("store", "url", text));
        } else if let Err(error) = database.check_url() {
            faults.push(config_fault("store", "url", error));
        }
    }
    if let Some(file) = &config.service.domain_connect_key {
        if let Some(reason) = read_error(file) {
            faults.push(config_fault("service", "domain_connect_key", file_text(file, reason)));
        } else if let Err(error) = config.domain_connect_key() {
            faults.push(config_fault("service", "domain_connect_key", error));
        }
    }
    if let Some((directory, error)) = write_error(&config.data_dir) {
        faults.push(config_fault("", "data_dir", file_text(&directory, error)));
    }
    faults
}

/// Checks the certificate and private key of `[tls]`: both must be readable PEM, and belong together.
fn check_certificate(config: &Config, faults: &mut Vec<ConfigFault>) {
    let (Some(certificate), Some(private_key)) = (&config.tls.certificate, &config.tls.private_key) else { return };
    let has_certificate = |pem: &[u8]| CertificateDer::pem_slice_iter(pem).any(|certificate| certificate.is_ok());
    let has_key = |pem: &[u8]| PrivateKeyDer::from_pem_slice(pem).is_ok();
    let mut check_file = |key, file: &Path, content: &str, is_valid: &dyn Fn(&[u8]) -> bool| match std::fs::read(file) {
        Err(error) => faults.push(config_fault("tls", key, file_text(file, file_error_reason(&error)))),
        Ok(pem) if !is_valid(&pem) => {
            let text = format!("{} contains no {content} in PEM (-----BEGIN …-----)", file.display());
            faults.push(config_fault("tls", key, text));
        }
        Ok(_) => {}
    };
    check_file("certificate", certificate, "certificate", &has_certificate);
    check_file("private_key", private_key, "private key", &has_key);
    if faults.is_empty()
        && let Err(error) =
            Certificate::from_pem_files(certificate, private_key).and_then(|pair| pair.server_config(Vec::new()))
    {
        faults.push(config_fault("tls", "certificate", error.to_string()));
    }
}

/// Returns the source addresses that this machine does not have (yet). These are notes: mail can still be accepted.
#[must_use]
pub fn missing_source_addresses(config: &Config) -> Vec<IpAddr> {
    let addresses = config.delivery.all_source_addresses().into_iter().map(|(address, _)| address);
    let is_missing = |address: &IpAddr| {
        let socket = UdpSocket::bind((*address, 0));
        socket.is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable)
    };
    addresses.filter(is_missing).collect()
}

fn file_text(file: &Path, reason: impl Display) -> String {
    format!("{}: {reason}", file.display())
}

fn read_error(file: &Path) -> Option<String> {
    std::fs::read(file).err().map(|error| file_error_reason(&error))
}

/// Describes why a file cannot be read, without its path.
pub(super) fn file_error_reason(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "the file does not exist".to_owned(),
        ErrorKind::PermissionDenied => "this user may not read the file".to_owned(),
        ErrorKind::IsADirectory => "this is a directory, not a file".to_owned(),
        ErrorKind::InvalidData => "the file is not UTF-8 text".to_owned(),
        _ => format!("cannot read the file: {error}"),
    }
}

/// Returns why a directory, or the nearest existing parent of a missing one, is not writable.
fn write_error(directory: &Path) -> Option<(PathBuf, String)> {
    let nearest = directory.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok())?;
    let reason = match std::fs::metadata(nearest) {
        Err(error) => Some(format!("cannot be read: {error}")),
        Ok(metadata) if !metadata.is_dir() => Some("is not a directory".to_owned()),
        Ok(_) => {
            let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
            rustix::fs::access(nearest, access).err().map(|_| "this user may not write to it".to_owned())
        }
    };
    let suffix = if nearest == directory { "" } else { ": `data_dir` cannot be created in it" };
    reason.map(|reason| (nearest.to_owned(), format!("{reason}{suffix}")))
}

#[cfg(test)]
mod tests {
    use crate::config::from_file;

    #[test]
    fn missing_files_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let generate = |name: &str| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let (certificate, other) = (generate("a.example"), generate("b.example"));
        std::fs::write(at("one.pem"), certificate.cert.pem()).unwrap();
        std::fs::write(at("one.key"), certificate.signing_key.serialize_pem()).unwrap();
        std::fs::write(at("other.key"), other.signing_key.serialize_pem()).unwrap();
        let find_problems = |certificate: &str, key: &str, data_dir: &str| {
            let text = format!(
                "hostname = \"mx.example.net\"\ndata_dir = {:?}\n[api]\nlisten = \"127.0.0.1:1\"\n\
                 [tls]\ncertificate = {:?}\nprivate_key = {:?}\n",
                at(data_dir),
                at(certificate),
                at(key)
            );
            std::fs::write(at("postrider.toml"), text).unwrap();
            let problems = from_file(&at("postrider.toml")).err().unwrap_or_default();
            problems.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(find_problems("one.pem", "one.key", "new/data"), Vec::<String>::new());
        let missing = find_problems("none.pem", "one.key", "data");
        assert!(
            missing.len() == 1 && missing[0].starts_with("line 6: ") && missing[0].contains("none.pem"),
            "{missing:?}"
        );
        let mismatched = find_problems("one.pem", "other.key", "data");
        assert!(
            mismatched.len() == 1 && mismatched[0].starts_with("line 6: `certificate` in [tls]: "),
            "{mismatched:?}"
        );
        let key_twice = find_problems("one.key", "one.key", "data");
        assert!(key_twice.len() == 1 && key_twice[0].contains("one.key contains no certificate"), "{key_twice:?}");
        let certificate_twice = find_problems("one.pem", "one.pem", "data");
        assert!(
            certificate_twice.len() == 1 && certificate_twice[0].contains("one.pem contains no private key"),
            "{certificate_twice:?}"
        );
        let not_directory = find_problems("one.pem", "one.key", "one.pem/data");
        assert!(
            not_directory.len() == 1
                && not_directory[0].starts_with("line 2: ")
                && not_directory[0].contains("not a directory"),
            "{not_directory:?}"
        );
    }

    #[test]
    fn unusable_files_are_named_with_their_key_and_the_reason() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let certificate = rcgen::generate_simple_self_signed(["ca.example".to_owned()]).unwrap();
        std::fs::write(at("ca.pem"), certificate.cert.pem()).unwrap();
        std::fs::write(at("text.pem"), "no certificate here\n").unwrap();
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(at("broken.pem"), broken).unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        let find_problems = |section: &str| {
            let text = format!(
                "hostname = \"mx.example.net\"\ndata_dir = {:?}\n[api]\nlisten = \"127.0.0.1:1\"\n{section}",
                at("data")
            );
            std::fs::write(at("postrider.toml"), text).unwrap();
            let problems = from_file(&at("postrider.toml")).err().unwrap_or_default();
            problems.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let roots = |name: &str| format!("[delivery]\nroots = {:?}\n", at(name));
        assert_eq!(find_problems(&roots("ca.pem")), Vec::<String>::new());
        for (name, reason) in [
            ("missing.pem", "the file does not exist"),
            ("directory", "this is a directory"),
            ("text.pem", "contains no certificate"),
            ("broken.pem", "must contain CA certificates"),
        ] {
            for (section, section_text) in [
                ("[delivery]", roots(name)),
                ("[tls.acme]", format!("[tls.acme]\nroots = {:?}\nhttp_listen = \"127.0.0.1:2\"\n", at(name))),
            ] {
                let found = find_problems(&section_text);
                assert_eq!(found.len(), 1, "{found:?}");
                assert!(found[0].starts_with(&format!("line 6: `roots` in {section}: ")), "{found:?}");
                assert!(found[0].contains(name) && found[0].contains(reason), "{found:?}");
                assert!(!found[0].contains("os error"), "{found:?}");
            }
        }
        for (section, key) in [("dns", "trust_anchors"), ("store", "url")] {
            let value = if key == "url" { "nonsense".to_owned() } else { at("missing").display().to_string() };
            let engine = if key == "url" { "engine = \"postgres\"\n" } else { "" };
            let found = find_problems(&format!("[{section}]\n{key} = {value:?}\n{engine}"));
            assert!(
                found.len() == 1 && found[0].starts_with(&format!("line 6: `{key}` in [{section}]: ")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_missing_configuration_is_reported_without_its_path() {
        let problems = from_file(std::path::Path::new("no-such-file.toml")).unwrap_err();
        assert_eq!(problems.iter().map(ToString::to_string).collect::<Vec<_>>(), ["the file does not exist"]);
    }
}
