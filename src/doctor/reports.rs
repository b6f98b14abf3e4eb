//! Whether what others have to say reaches us.
//!
//! `postmaster`: people write to `postmaster` and `abuse` at any host that mail comes from (RFC 5321 4.5.1, RFC 2142).
//!
//! `dmarc_reports`: whether receivers may send us what they report about customers' domains. The record that customers are given sends DMARC reports to `dmarc@{return_path_host}`, which is no address in
//! their own domain: a receiver sends there only what the other side has asked for, by a record for each domain or
//! one for all (RFC 7489 7.1).
//!
//! ```text
//! _dmarc.customer.example                           TXT "v=DMARC1; p=none; rua=mailto:dmarc@{return_path_host}"
//! customer.example._report._dmarc.{return_path_host} TXT "v=DMARC1"   by the wildcard *._report._dmarc.…
//! ```

use mail::address::DomainName;

use super::finding::{DoctorFinding, Observations};
use super::place::CheckContext;
use super::record;

/// Any customer's: the record is one for all.
const PROBE: &str = "customer.example._report._dmarc";

/// Whether somebody reads what is written to us.
pub(super) async fn check_postmaster(place: &CheckContext) -> DoctorFinding {
    let (mx, hostname) = (&place.config.mx, &place.config.hostname);
    if mx.listen.is_empty() {
        return DoctorFinding::skipped("postmaster", "no mail is taken in here");
    }
    let mut notes = Observations::default();
    match &mx.postmaster {
        Some(address) => notes.good(format!("mail to postmaster@{hostname} and abuse@{hostname} goes to {address}")),
        None => notes.warn(
            format!("mail to postmaster@{hostname} and abuse@{hostname} is refused: who has a complaint is not heard (RFC 5321 4.5.1, RFC 2142)"),
            "Set `postmaster` in [mx] to an address that somebody reads, and `sandbox_sender` in [service], from whose domain it is passed on.",
        ),
    }
    notes.into_finding("postmaster")
}

/// Whether the record for all is there.
pub(super) async fn check_dmarc_reports(place: &CheckContext) -> DoctorFinding {
    let host = place.config.return_path_host();
    let Ok(name) = host.child(PROBE) else {
        return DoctorFinding::skipped("dmarc_reports", format!("{host} is too long a name to ask below it"));
    };
    judge(&host, place.resolver.txt(&name).await.map(|found| found.data).map_err(|error| error.to_string()))
}

fn judge(host: &DomainName, found: Result<Vec<String>, String>) -> DoctorFinding {
    let mut notes = Observations::default();
    let is_leave = |text: &String| {
        let first = text.split(';').next().unwrap_or_default();
        first.split_whitespace().collect::<String>().eq_ignore_ascii_case("v=dmarc1")
    };
    let fix = record::wildcard_txt_record(&format!("_report._dmarc.{host}"), "v=DMARC1");
    match found {
        Err(why) => notes.warn(why, "See the finding `dns`: ask again when the name server answers."),
        Ok(texts) if texts.iter().any(is_leave) => {
            notes.good(format!("DMARC reports about customers' domains may be sent to dmarc@{host}"));
        }
        Ok(texts) if texts.is_empty() => notes.warn(
            format!("receivers are not told that dmarc@{host} takes DMARC reports about other domains, so most send none (RFC 7489 7.1)"),
            fix,
        ),
        Ok(_) => notes.warn(
            format!("what stands below _report._dmarc.{host} is no leave to send DMARC reports here (RFC 7489 7.1)"),
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
    async fn somebody_reads_what_is_written_to_us() {
        let ground = TestDns::new("").await;
        assert_eq!(check_postmaster(&test_context(&ground, "").await).await.status, CheckStatus::Skipped);
        let open = "[tls]\ncertificate = \"c.pem\"\nprivate_key = \"k.pem\"\n[mx]\nlisten = \"127.0.0.1:25\"\n";
        let nobody = check_postmaster(&test_context_with(&ground, open).await).await;
        assert_eq!(nobody.status, CheckStatus::Warning, "{nobody:#?}");
        let somebody =
            format!("{open}postmaster = \"you@example.org\"\n[service]\nsandbox_sender = \"hi@example.net\"\n");
        assert_eq!(check_postmaster(&test_context_with(&ground, &somebody).await).await.status, CheckStatus::Ok);
    }

    #[tokio::test]
    async fn reports_need_leave_to_come() {
        for (zone, status, said) in [
            ("*._report._dmarc.rp.mx1.example.net. TXT \"v=DMARC1\"", CheckStatus::Ok, "may be sent"),
            ("customer.example._report._dmarc.rp.mx1.example.net. TXT \"V = dmarc1;\"", CheckStatus::Ok, "may be sent"),
            ("", CheckStatus::Warning, "most send none"),
            ("*._report._dmarc.rp.mx1.example.net. TXT \"v=spf1 -all\"", CheckStatus::Warning, "is no leave"),
            ("$SERVFAIL customer.example._report._dmarc.rp.mx1.example.net", CheckStatus::Warning, "gave no answer"),
        ] {
            let ground = TestDns::new(zone).await;
            let found = check_dmarc_reports(&test_context(&ground, "").await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(said), "{zone}: {found:#?}");
        }
        let ground = TestDns::new("").await;
        let fix = check_dmarc_reports(&test_context(&ground, "").await).await.fix.unwrap();
        assert_eq!(fix, "*._report._dmarc.rp.mx1.example.net. 3600 IN TXT \"v=DMARC1\"");
    }
}
