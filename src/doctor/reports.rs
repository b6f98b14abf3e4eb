//! `postmaster` and `dmarc_reports`: checks that complaints and reports of others reach this server.
//!
//! `postmaster`: people write to `postmaster` and `abuse` at every host that sends mail (RFC 5321 4.5.1, RFC 2142).
//!
//! `dmarc_reports`: the record that customers publish sends DMARC reports to `dmarc@{return_path_host}`, an address
//! outside of their own domain. Receivers send reports there only if the target domain authorizes it, by a record for
//! each customer domain or a wildcard (RFC 7489 7.1).
//!
//! ```text
//! _dmarc.customer.example                           TXT "v=DMARC1; p=none; rua=mailto:dmarc@{return_path_host}"
//! customer.example._report._dmarc.{return_path_host} TXT "v=DMARC1"   by the wildcard *._report._dmarc.…
//! ```

use message::address::DomainName;
use model::log_text;

use super::context::CheckContext;
use super::finding::{DoctorFinding, Observations};
use super::zone_lines;

/// An arbitrary customer's name, which the wildcard record must match.
const PROBE: &str = "customer.example._report._dmarc";

/// Checks that mail to postmaster and abuse is forwarded.
pub(super) async fn check_postmaster(context: &CheckContext) -> DoctorFinding {
    let (mx, hostname) = (&context.config.mx, &context.config.hostname);
    if mx.listen.is_empty() {
        return DoctorFinding::skipped("postmaster", "this server does not receive mail");
    }
    let mut notes = Observations::default();
    match &mx.postmaster {
        Some(address) => {
            let address = log_text::cleaned(&address.to_string(), true).into_owned();
            notes.good(format!("mail to postmaster@{hostname} and abuse@{hostname} is forwarded to {address}"));
        }
        None => notes.warn(
            format!(
                "mail to postmaster@{hostname} and abuse@{hostname} is refused, so complaints do not reach you \
                 (RFC 5321 4.5.1, RFC 2142)"
            ),
            "Set `postmaster` in [mx] to an address that you read, and `sandbox_sender` in [service], from whose \
             domain mail is forwarded.",
        ),
    }
    notes.into_finding("postmaster")
}

/// Checks that the wildcard record authorizes DMARC reports.
pub(super) async fn check_dmarc_reports(context: &CheckContext) -> DoctorFinding {
    let host = context.config.return_path_host();
    let Ok(name) = host.child(PROBE) else {
        return DoctorFinding::skipped("dmarc_reports", format!("{host} is too long to query a name below it"));
    };
    evaluate(&host, context.resolver.txt(&name).await.map(|found| found.data).map_err(|error| error.to_string()))
}

fn evaluate(host: &DomainName, records: Result<Vec<String>, String>) -> DoctorFinding {
    let mut notes = Observations::default();
    let is_authorization = |text: &String| {
        let first = text.split(';').next().unwrap_or_default();
        first.split_whitespace().collect::<String>().eq_ignore_ascii_case("v=dmarc1")
    };
    let fix = zone_lines::wildcard_txt_record(&format!("_report._dmarc.{host}"), "v=DMARC1");
    match records {
        Err(reason) => notes.warn(reason, "See the finding `dns`; retry when the name server responds."),
        Ok(texts) if texts.iter().any(is_authorization) => {
            notes.good(format!("DMARC reports about customers' domains may be sent to dmarc@{host}"));
        }
        Ok(texts) if texts.is_empty() => notes.warn(
            format!(
                "no record authorizes DMARC reports about other domains to dmarc@{host}, so most receivers send none \
                 (RFC 7489 7.1)"
            ),
            fix,
        ),
        Ok(_) => notes.warn(
            format!("the record below _report._dmarc.{host} does not authorize DMARC reports (RFC 7489 7.1)"),
            format!("Replace it: {fix}"),
        ),
    }
    notes.into_finding("dmarc_reports")
}

#[cfg(test)]
mod tests {
    use super::super::finding::CheckStatus;
    use super::super::testing::{TestDns, test_context, test_context_with};
    use super::*;

    #[tokio::test]
    async fn postmaster_must_be_configured() {
        let dns = TestDns::new("").await;
        assert_eq!(check_postmaster(&test_context(&dns, "").await).await.status, CheckStatus::Skipped);
        let open = "[tls]\ncertificate = \"c.pem\"\nprivate_key = \"k.pem\"\n[mx]\nlisten = \"127.0.0.1:25\"\n";
        let unset = check_postmaster(&test_context_with(&dns, open).await).await;
        assert_eq!(unset.status, CheckStatus::Warning, "{unset:#?}");
        let configured =
            format!("{open}postmaster = \"you@example.org\"\n[service]\nsandbox_sender = \"hi@example.net\"\n");
        let found = check_postmaster(&test_context_with(&dns, &configured).await).await;
        assert_eq!(found.status, CheckStatus::Ok);
        assert!(found.found.ends_with("forwarded to ***@example.org"), "{found:#?}");
    }

    #[tokio::test]
    async fn dmarc_reports_need_an_authorizing_record() {
        for (zone, status, expected_text) in [
            ("*._report._dmarc.rp.mx1.example.net. TXT \"v=DMARC1\"", CheckStatus::Ok, "may be sent"),
            ("customer.example._report._dmarc.rp.mx1.example.net. TXT \"V = dmarc1;\"", CheckStatus::Ok, "may be sent"),
            ("", CheckStatus::Warning, "most receivers send none"),
            ("*._report._dmarc.rp.mx1.example.net. TXT \"v=spf1 -all\"", CheckStatus::Warning, "does not authorize"),
            ("$SERVFAIL customer.example._report._dmarc.rp.mx1.example.net", CheckStatus::Warning, "did not answer"),
        ] {
            let dns = TestDns::new(zone).await;
            let found = check_dmarc_reports(&test_context(&dns, "").await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(expected_text), "{zone}: {found:#?}");
        }
        let dns = TestDns::new("").await;
        let fix = check_dmarc_reports(&test_context(&dns, "").await).await.fix.unwrap();
        assert_eq!(fix, "*._report._dmarc.rp.mx1.example.net. 3600 IN TXT \"v=DMARC1\"");
    }
}
