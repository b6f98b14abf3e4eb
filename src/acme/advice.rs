//! When a certificate is renewed, as its authority advises (ACME Renewal Information, RFC 9773): so that what it
//! must revoke is renewed before, and so that not all of its customers come at once.
//!
//! ```text
//! a certificate is shown ─► the authority's window ─► a moment in it ─► asked again when it says ─► …
//!                                  └─ none, or no answer: two thirds of its life
//! ```

use std::time::Duration;

use instant_acme::{Account, CertificateIdentifier, Error, RenewalInfo};
use jiff::Timestamp;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, Der};
use x509_cert::der::oid::AssociatedOid as _;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::AuthorityKeyIdentifier;

use super::facts::Validity;
use super::{AcmeError, CertificateRenewer};

/// How soon the authority is asked again at the earliest and at the latest, whatever it says (RFC 9773 4.3.2).
const RECHECK_BOUNDS: (Duration, Duration) = (Duration::from_secs(3600), Duration::from_secs(24 * 3600));
/// When it is asked again after no answer (RFC 9773 4.3.3).
const RECHECK_AFTER_FAILURE: Duration = Duration::from_secs(6 * 3600);
/// A certificate is kept for so long at least: an authority whose windows are always over gets no order after
/// the other.
const CERTIFICATE_AGE_MIN: Duration = Duration::from_secs(24 * 3600);

impl CertificateRenewer {
    /// Asks the authority when the certificate that is shown is to be renewed, and notes it.
    pub(super) async fn refresh_renewal_info(&self) {
        let advised = self.fetch_renewal_window().await;
        let again = |wait: Duration| self.clock.now().checked_add(wait).unwrap_or(Timestamp::MAX);
        self.status.send_modify(|standing| match advised {
            Ok(Some((renews_at, wait))) => {
                standing.renews_at = Some(renews_at);
                standing.asks_again_at = Some(again(wait.clamp(RECHECK_BOUNDS.0, RECHECK_BOUNDS.1)));
            }
            Ok(None) => standing.asks_again_at = None,
            Err(error) => {
                tracing::debug!(%error, "the authority does not say when to renew");
                standing.asks_again_at = Some(again(RECHECK_AFTER_FAILURE));
            }
        });
    }

    /// When to renew, and how soon to ask again; none where the authority gives no advice.
    async fn fetch_renewal_window(&self) -> Result<Option<(Timestamp, Duration)>, AcmeError> {
        let Some(identifier) = self.certificate_id() else { return Ok(None) };
        let validity = Validity::from_chain(&self.installed_chain()).map_err(AcmeError::Certificate)?;
        let Some(credentials) = self.store.read_account().await? else { return Ok(None) };
        let account = Account::builder_with_http(Box::new(self.client.clone()));
        match account.from_credentials(credentials).await?.renewal_info(&identifier).await {
            Ok((advice, wait)) => Ok(Some((self.renewal_time(&advice, validity)?, wait))),
            Err(Error::Unsupported(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn renewal_time(&self, advice: &RenewalInfo, validity: Validity) -> Result<Timestamp, AcmeError> {
        let wrong = |error: jiff::Error| AcmeError::Certificate(error.to_string());
        let [start, end] = [advice.suggested_window.start, advice.suggested_window.end]
            .map(|time| Timestamp::from_second(time.unix_timestamp()).map_err(wrong));
        if let Some(page) = &advice.explanation_url {
            tracing::info!(page, "the certificate authority says why it advises when to renew");
        }
        Ok(renewal_time_in_window((start?, end?), validity, self.window_share))
    }

    /// What the certificate that is shown is called there (RFC 9773 4.1); none while a self-signed one is.
    pub(super) fn certificate_id(&self) -> Option<CertificateIdentifier<'static>> {
        parse_certificate_id(&self.installed_chain())
    }
}

/// The moment in a window that is ours: by the share that this process drew once, within what is sensible.
fn renewal_time_in_window((start, end): (Timestamp, Timestamp), validity: Validity, share: u32) -> Timestamp {
    let length = Duration::try_from(end.duration_since(start)).unwrap_or_default();
    let into = (u128::from(length.as_secs()) * u128::from(share)) >> 32;
    let into = Duration::from_secs(u64::try_from(into).unwrap_or(u64::MAX));
    let chosen = start.checked_add(into).unwrap_or(end);
    let earliest = validity.not_before.checked_add(CERTIFICATE_AGE_MIN).unwrap_or(validity.not_after);
    chosen.max(earliest).min(validity.not_after)
}

/// The authority's key and the serial number, as RFC 9773 4.1 writes them.
fn parse_certificate_id(chain: &[u8]) -> Option<CertificateIdentifier<'static>> {
    /// Tag and length (X.690 8.1): a serial number has 20 bytes at the most (RFC 5280 4.1.2.2).
    const HEAD: usize = 2;
    let leaf = CertificateDer::pem_slice_iter(chain).next()?.ok()?;
    let leaf = x509_cert::Certificate::from_der(&leaf).ok()?.tbs_certificate;
    let mut extensions = leaf.extensions.iter().flatten();
    let authority = extensions.find(|one| one.extn_id == AuthorityKeyIdentifier::OID)?;
    let authority = AuthorityKeyIdentifier::from_der(authority.extn_value.as_bytes()).ok()?;
    let serial = leaf.serial_number.to_der().ok()?;
    let identifier = CertificateIdentifier::new(
        Der::from_slice(authority.key_identifier?.as_bytes()),
        Der::from_slice(serial.get(HEAD..)?),
    );
    Some(identifier.into_owned())
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyIdMethod, KeyPair, SerialNumber};

    use super::*;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_second(day * 86_400).unwrap()
    }

    #[test]
    fn a_moment_of_the_window_is_chosen_that_makes_sense() {
        let validity = Validity { not_before: at(0), not_after: at(90) };
        let within = renewal_time_in_window((at(50), at(60)), validity, u32::MAX / 2);
        assert!(at(54) < within && within < at(56), "{within}");
        assert_eq!(renewal_time_in_window((at(50), at(60)), validity, 0), at(50));
        assert_eq!(
            renewal_time_in_window((at(-5), at(-3)), validity, 7),
            at(1),
            "not at once, and then again, and again"
        );
        assert_eq!(renewal_time_in_window((at(95), at(99)), validity, 7), at(90));
        assert_eq!(
            renewal_time_in_window((at(60), at(50)), validity, u32::MAX),
            at(60),
            "a window that ends before it begins"
        );
    }

    #[test]
    fn a_certificate_is_named_as_in_the_standard() {
        // Those of RFC 9773, 4.1: the serial number's first bit is set, so that a zero goes before it.
        let authority_key = "69885b6b87464041e1b37b847ba0ae2cde01c8d4";
        let bytes = |n: usize| u8::from_str_radix(&authority_key[2 * n..2 * n + 2], 16).unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_identifier_method = KeyIdMethod::PreSpecified((0..20).map(bytes).collect());
        let mut asked = CertificateParams::new(["example.com".to_owned()]).unwrap();
        asked.serial_number = Some(SerialNumber::from_slice(&[0x87, 0x65, 0x43, 0x21]));
        asked.use_authority_key_identifier_extension = true;
        let issuer = Issuer::new(authority, KeyPair::generate().unwrap());
        let made = asked.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap();
        assert_eq!(
            parse_certificate_id(made.pem().as_bytes()).unwrap().to_string(),
            "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE"
        );
        let own = crate::certificate::Certificate::self_signed(&["localhost"]).unwrap();
        assert!(parse_certificate_id(&own.chain).is_none());
    }
}
