//! `domain_connect`: checks whether the key that signs Domain Connect requests is published, so that DNS providers can
//! verify them.

use message::address::DomainName;
use provider::RequestKey;

use super::context::CheckContext;
use super::finding::{DoctorFinding, Observations};
use super::zone_lines;

const NAME: &str = "domain_connect";

/// Looks up the public key.
pub(super) async fn check_domain_connect(context: &CheckContext) -> DoctorFinding {
    let config = &context.config;
    let Some(name) = &config.service.domain_connect_key_name else {
        return DoctorFinding::skipped(NAME, "Domain Connect requests are not signed: no key is configured");
    };
    match config.domain_connect_key() {
        Ok(Some(key)) => {
            let found = context.resolver.txt(name).await.map(|found| found.data);
            evaluate(&key, name, found.map_err(|error| error.to_string()))
        }
        Ok(None) => DoctorFinding::skipped(NAME, "Domain Connect requests are not signed: no key is configured"),
        Err(reason) => {
            let mut notes = Observations::default();
            notes.fail(
                reason,
                "Set `domain_connect_key` in [service] to an RSA private key in PEM that the server can read.",
            );
            notes.into_finding(NAME)
        }
    }
}

/// TXT records that publish a key, as lines of a zone file.
pub(crate) fn key_records(key: &RequestKey, name: &DomainName) -> String {
    let lines: Vec<String> = key.texts().iter().map(|text| zone_lines::txt_record(name, text)).collect();
    lines.join("\n")
}

fn evaluate(key: &RequestKey, name: &DomainName, found: Result<Vec<String>, String>) -> DoctorFinding {
    let mut notes = Observations::default();
    match found {
        Err(reason) => notes.warn(reason, "See the finding `dns`; retry when the name server responds."),
        Ok(texts) if key.is_published_by(&texts) => {
            notes.good(format!("Domain Connect requests are signed, and the key is published at {name}"));
        }
        Ok(texts) if texts.is_empty() => notes.fail(
            format!("{name} has no TXT records, so DNS providers refuse signed Domain Connect requests"),
            key_records(key, name),
        ),
        Ok(_) => notes.fail(
            format!("the TXT records at {name} publish a different key than `domain_connect_key`"),
            format!("Publish these, and no others that begin with p=:\n{}", key_records(key, name)),
        ),
    }
    notes.into_finding(NAME)
}

#[cfg(test)]
mod tests {
    use super::super::finding::CheckStatus;
    use super::super::testing::{TestDns, test_context_with};
    use super::*;

    const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/dns/tests/keys/rsa2048.pkcs8.pem");

    #[tokio::test]
    async fn the_published_key_is_looked_up() {
        let name: DomainName = "_dck1.example.net".parse().unwrap();
        let key = RequestKey::new(&std::fs::read_to_string(KEY).unwrap(), &name).unwrap();
        let service = format!(
            "[service]\ndomain_connect_template = \"example.net/email\"\ndomain_connect_key = \"{KEY}\"\n\
             domain_connect_key_name = \"{name}\"\n"
        );
        let texts: Vec<String> = key.texts().iter().map(|text| format!("{name}. TXT \"{text}\"")).collect();
        for (zone, status, expected_text) in [
            (texts.join("\n"), CheckStatus::Ok, "are signed"),
            (String::new(), CheckStatus::Failed, "has no TXT records"),
            (texts[1].clone(), CheckStatus::Failed, "different key"),
            (format!("$SERVFAIL {name}"), CheckStatus::Warning, "did not answer"),
        ] {
            let dns = TestDns::new(&zone).await;
            let found = check_domain_connect(&test_context_with(&dns, &service).await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(expected_text), "{zone}: {found:#?}");
        }
        let dns = TestDns::new("").await;
        let fix = check_domain_connect(&test_context_with(&dns, &service).await).await.fix.unwrap();
        assert!(fix.starts_with("_dck1.example.net. 3600 IN TXT \"p=1,a=RS256,d="), "{fix}");
        assert_eq!(check_domain_connect(&test_context_with(&dns, "").await).await.status, CheckStatus::Skipped);
    }
}
