//! Descriptions of files and directories that cannot be used, without a library's sentences.

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Returns why a file contains no certificate chain.
pub(super) fn certificate_file_error(file: &Path) -> Option<String> {
    let has_certificate = |pem: &[u8]| CertificateDer::pem_slice_iter(pem).any(|certificate| certificate.is_ok());
    pem_file_error(file, "certificate", has_certificate)
}

/// Returns why a file contains no private key.
pub(super) fn key_file_error(file: &Path) -> Option<String> {
    pem_file_error(file, "private key", |pem| PrivateKeyDer::from_pem_slice(pem).is_ok())
}

fn pem_file_error(file: &Path, content: &str, has_content: impl FnOnce(&[u8]) -> bool) -> Option<String> {
    match std::fs::read(file) {
        Err(error) => Some(file_text(file, file_error_reason(&error))),
        Ok(pem) if !has_content(&pem) => {
            Some(format!("{} contains no {content} in PEM (-----BEGIN …-----)", file.display()))
        }
        Ok(_) => None,
    }
}

/// Prefixes a reason with the path.
pub(super) fn file_text(file: &Path, reason: impl Display) -> String {
    format!("{}: {reason}", file.display())
}

/// Returns why a file cannot be read, without its path.
pub(super) fn read_error(file: &Path) -> Option<String> {
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
pub(super) fn write_error(directory: &Path) -> Option<(PathBuf, String)> {
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
            mismatched.len() == 1
                && mismatched[0].starts_with("line 6: `certificate` in [tls]: ")
                && mismatched[0].ends_with("the key does not belong to the certificate"),
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
