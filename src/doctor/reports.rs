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

use mail::address::Name;

use super::finding::{Finding, Notes};
use super::place::Place;
use super::record;

/// Any customer's: the record is one for all.
const PROBE: &str = "customer.example._report._dmarc";

/// Whether somebody reads what is written to us.
pub(super) async fn postmaster(place: &Place) -> Finding {
    let (mx, hostname) = (&place.config.mx, &place.config.hostname);
    if mx.listen.is_empty() {
        return Finding::skipped("postmaster", "no mail is taken in here");
    }
    let mut notes = Notes::default();
    match &mx.postmaster {
        Some(address) => notes.good(format!("mail to postmaster@{hostname} and abuse@{hostname} goes to {address}")),
        None => notes.warn(
            format!("mail to postmaster@{hostname} and abuse@{hostname} is refused: who has a complaint is not heard (RFC 5321 4.5.1, RFC 2142)"),
            "Set `postmaster` in [mx] to an address that somebody reads, and `sandbox_sender` in [service], from whose domain it is passed on.",
        ),
    }
    notes.settle("postmaster")
}

/// Whether the record for all is there.
pub(super) async fn dmarc_reports(place: &Place) -> Finding {
    let host = place.config.return_path_host();
    let Ok(name) = host.child(PROBE) else {
        return Finding::skipped("dmarc_reports", format!("{host} is too long a name to ask below it"));
    };
    judge(&host, place.resolver.txt(&name).await.map(|found| found.data).map_err(|error| error.to_string()))
}

fn judge(host: &Name, found: Result<Vec<String>, String>) -> Finding {
    let mut notes = Notes::default();
    let is_leave = |text: &String| {
        let first = text.split(';').next().unwrap_or_default();
        first.split_whitespace().collect::<String>().eq_ignore_ascii_case("v=dmarc1")
    };
    let fix = record::txt_for_all(&format!("_report._dmarc.{host}"), "v=DMARC1");
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
    notes.settle("dmarc_reports")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Status;
    use super::super::testing::{Ground, place, place_with};
    use super::*;

    #[tokio::test]
    async fn somebody_reads_what_is_written_to_us() {
        let ground = Ground::of("").await;
        assert_eq!(postmaster(&place(&ground, "").await).await.status, Status::Skipped);
        let open =
            "[tls]\ncertificate = \"c.pem\"\nprivate_key = \"k.pem\"\n[mx]\nlisten = \"127.0.0.1:25\"\n";
        let nobody = postmaster(&place_with(&ground, open).await).await;
        assert_eq!(nobody.status, Status::Warning, "{nobody:#?}");
        let somebody = format!(
            "{open}postmaster = \"you@example.org\"\n[service]\nsandbox_sender = \"hi@example.net\"\n"
        );
        assert_eq!(postmaster(&place_with(&ground, &somebody).await).await.status, Status::Ok);
    }

    #[tokio::test]
    async fn reports_need_leave_to_come() {
        for (zone, status, said) in [
            ("*._report._dmarc.rp.mx1.example.net. TXT \"v=DMARC1\"", Status::Ok, "may be sent"),
            (
                "customer.example._report._dmarc.rp.mx1.example.net. TXT \"V = dmarc1;\"",
                Status::Ok,
                "may be sent",
            ),
            ("", Status::Warning, "most send none"),
            ("*._report._dmarc.rp.mx1.example.net. TXT \"v=spf1 -all\"", Status::Warning, "is no leave"),
            (
                "$SERVFAIL customer.example._report._dmarc.rp.mx1.example.net",
                Status::Warning,
                "gave no answer",
            ),
        ] {
            let ground = Ground::of(zone).await;
            let found = dmarc_reports(&place(&ground, "").await).await;
            assert_eq!(found.status, status, "{zone}: {found:#?}");
            assert!(found.found.contains(said), "{zone}: {found:#?}");
        }
        let ground = Ground::of("").await;
        let fix = dmarc_reports(&place(&ground, "").await).await.fix.unwrap();
        assert_eq!(fix, "*._report._dmarc.rp.mx1.example.net. 3600 IN TXT \"v=DMARC1\"");
    }
}
