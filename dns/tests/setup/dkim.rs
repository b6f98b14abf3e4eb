//! Checks of DKIM keys, valid and invalid.

use model::domain_setup::RecordPurpose::Dkim;
use model::domain_setup::RecordStatus::{Conflict, Mismatch, Missing, Verified};

use crate::world::{KEY, check, table};

/// A key of another service, of 2,048 bits.
const OTHER: &str = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAjSvhBuY6OlugP/2YyN9ec5aVB/GDLeKFQ0BfhSlmdOWZygWgAuXIgu+R6yulDs/GQLIWsC4daUTXKdpv5heUTmz7awxxbAGboxyZjxunGfwAQY60jhXAvJE33QojyLSgl++pLJuOP5tvlEMnJsFTkYYGdfcVMlK5xBMIqGObPDEsgSY6xDsYzE6/84AtCCjtwlHfc9irKo9BqqWDRUmieMHJSqRl05T5f054UuNrXis6WfZVZvm9uYADZwh5wSvZot4+JOPUR1v6OKvq6eKCtSXvomEh+oAfzbGLt7J4f7wKLKZO3lKrh4FV1ZN3B+cYvWowjJoIifhUrI0fcW5yDwIDAQAB";
/// A key of 1,024 bits.
const WEAK: &str = "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCvT1VhVQid6ASS2eH+i1vn6W88hzaWnYwJ8aZoUBp/18K++K+aZyrLShdZftg8dgr1o+Ve+9DzQ+UzkGRReb7eph98syQZEi5DmEDqw5MBDkFudak739f66tyrz3ZUnDQ7JFpZW9ZytFJM5qLdkc7eFax2PfHAM8HZFzqUYz95PwIDAQAB";

/// A TXT record at the selector, with strings of any length.
fn at_selector(value: &str) -> String {
    format!("s1._domainkey.example.com TXT {value}\n")
}

#[tokio::test]
async fn the_key_is_verified_in_any_spelling() {
    let (front, back) = KEY.split_at(200);
    for value in [
        format!("\"v=DKIM1; k=rsa; p={KEY}\""),
        format!("\"p={KEY}\""),
        format!("\"v=DKIM1;k=rsa;t=s;s=email;h=sha1:sha256;n=note;p={KEY};\""),
        // Strings are joined without a separator (RFC 6376 3.6.2.2).
        format!("\"v=DKIM1; k=rsa; p={front}\" \"{back}\""),
        format!("\"v=DKIM1; k=rsa; \" \"p=\" \"{front}\" \"{back}\""),
        // A key with spaces.
        format!("\"v=DKIM1; k=rsa; p={front} \" \" {back}\""),
    ] {
        table(Dkim, &[(&at_selector(&value), Verified, "")]).await;
    }
    let elsewhere = format!("s1._domainkey.example.com CNAME s1.keys.example.\ns1.keys.example TXT \"p={KEY}\"\n");
    table(Dkim, &[(&elsewhere, Verified, "")]).await;
}

#[tokio::test]
async fn another_key_is_explained() {
    let cut = KEY.split_at(230).0;
    let lower = KEY.to_ascii_lowercase();
    for (key, words) in [
        (WEAK, "a different key of 1024 bits, which is too weak"),
        (OTHER, "is a different key: an old one"),
        ("11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "not one of our RSA keys"),
        ("nonsense!", "is damaged: its \"p=\" is not valid base64"),
        ("", "is revoked: its \"p=\" is empty"),
        (cut, "was cut off after 230 of its 392 characters"),
        (lower.as_str(), "its upper and lower case letters differ"),
    ] {
        let zone = at_selector(&format!("\"v=DKIM1; k=rsa; p={key}\""));
        table(Dkim, &[(&zone, Mismatch, words)]).await;
    }
}

#[tokio::test]
async fn faults_in_other_tags_are_explained() {
    for (value, words) in [
        (format!("v=DKIM2; p={KEY}"), "its version is not"),
        (format!("k=rsa; p={KEY}; v=DKIM1"), "is not its first tag"),
        (format!("v=DKIM1; k=ed25519; p={KEY}"), "\"k=ed25519\" declares a key type other than"),
        (format!("v=DKIM1; h=sha1; p={KEY}"), "\"h=sha1\" excludes the hash"),
        (format!("v=DKIM1; s=tlsrpt; p={KEY}"), "not for email"),
        (format!("v=DKIM1; t=y:s; p={KEY}"), "testing flag \"t=y\""),
        ("v=DKIM1; k=rsa".to_owned(), "not a DKIM key: it has no tag \"p=\""),
        ("v=spf1 -all".to_owned(), "not a DKIM key: it has no tag"),
        (KEY.to_owned(), "not a DKIM key"),
    ] {
        table(Dkim, &[(&at_selector(&format!("\"{value}\"")), Mismatch, words)]).await;
    }
}

#[tokio::test]
async fn double_quoting_and_escaping_are_explained() {
    let (front, back) = KEY.split_at(200);
    let quoted = at_selector(&format!("\"\\\"v=DKIM1; k=rsa; p={front}\\\" \\\"{back}\\\"\""));
    let escaped = at_selector(&format!("\"v=DKIM1\\\\; k=rsa\\\\; p={KEY}\""));
    table(
        Dkim,
        &[
            (&quoted, Mismatch, "was quoted twice: its quotation marks were published"),
            (&escaped, Mismatch, "with backslashes"),
        ],
    )
    .await;
}

#[tokio::test]
async fn an_old_key_next_to_ours_is_explained() {
    let both = at_selector(&format!("\"p={KEY}\"")) + &at_selector(&format!("\"p={OTHER}\""));
    let neither = at_selector(&format!("\"p={WEAK}\"")) + &at_selector(&format!("\"p={OTHER}\""));
    table(
        Dkim,
        &[
            (&both, Mismatch, "There are 2 TXT records at s1._domainkey.example.com, and receivers use any"),
            (&neither, Mismatch, "none of which has this key"),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_missing_key_is_explained() {
    let twice = format!("s1._domainkey.example.com.example.com TXT \"p={KEY}\"\n");
    let foreign = format!("s1._domainkey.example.com CNAME k.example.\nk.example TXT \"p={OTHER}\"\n");
    table(
        Dkim,
        &[
            (&foreign, Conflict, "There is a CNAME to k.example at s1._domainkey.example.com"),
            ("", Missing, "There is no TXT record at s1._domainkey.example.com."),
            (&twice, Missing, "at s1._domainkey.example.com.example.com instead of"),
            (
                "s1._domainkey.example.com CNAME gone.example.",
                Conflict,
                "There is a CNAME to gone.example at s1._domainkey.example.com",
            ),
            ("*.example.com TXT \"v=spf1 -all\"", Missing, "from a wildcard (*.example.com)"),
            ("*.example.com CNAME shop.example.", Missing, "from a wildcard (*.example.com)"),
        ],
    )
    .await;
    let finding = check(Dkim, &twice).await;
    assert!(finding.error.unwrap().ends_with("as its name, type \"s1._domainkey\"."));
    assert!(finding.found.is_empty());
}
