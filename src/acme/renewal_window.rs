//! Renewal time as advised by the authority (ACME Renewal Information, RFC 9773). The authority can move it forward
//! before it revokes certificates, and can spread the load of its customers.
//!
//! ```text
//! certificate installed ─► renewal window of the authority ─► a time in it ─► fetched again after Retry-After ─► …
//!                                  └─ none, or no response: two thirds of the lifetime
//! ```

use std::time::Duration;

use instant_acme::{Account, CertificateIdentifier, Error, RenewalInfo};
use jiff::Timestamp;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, Der};
use x509_cert::der::oid::AssociatedOid as _;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::AuthorityKeyIdentifier;

use super::validity::Validity;
use super::{AcmeError, CertificateRenewer};

/// Bounds of the authority's Retry-After (RFC 9773 4.3.2).
const RECHECK_BOUNDS: (Duration, Duration) = (Duration::from_secs(3600), Duration::from_secs(24 * 3600));
/// Delay before the next fetch after a failure (RFC 9773 4.3.3).
const RECHECK_AFTER_FAILURE: Duration = Duration::from_secs(6 * 3600);
/// Minimum age of a certificate at renewal. Prevents continuous orders if an authority's windows are always in the
/// past.
const CERTIFICATE_AGE_MIN: Duration = Duration::from_secs(24 * 3600);

impl CertificateRenewer {
    /// Fetches the renewal information of the installed certificate and updates the status.
    pub(super) async fn refresh_renewal_info(&self) {
        let window = self.fetch_renewal_window().await;
        let time_after = |wait: Duration| self.clock.now().checked_add(wait).unwrap_or(Timestamp::MAX);
        self.status.send_modify(|status| match window {
            Ok(Some((renews_at, wait))) => {
                status.renews_at = Some(renews_at);
                status.asks_again_at = Some(time_after(wait.clamp(RECHECK_BOUNDS.0, RECHECK_BOUNDS.1)));
            }
            Ok(None) => status.asks_again_at = None,
            Err(error) => {
                tracing::debug!(%error, "cannot fetch the authority's renewal information");
                status.asks_again_at = Some(time_after(RECHECK_AFTER_FAILURE));
            }
        });
    }

    /// Returns the renewal time and the delay before the next fetch; none if the authority has no renewal information.
    async fn fetch_renewal_window(&self) -> Result<Option<(Timestamp, Duration)>, AcmeError> {
        let Some(identifier) = self.certificate_id() else { return Ok(None) };
        let validity = Validity::from_chain(&self.installed_chain()).map_err(AcmeError::Certificate)?;
        let Some(credentials) = self.store.read_account().await? else { return Ok(None) };
        let account = Account::builder_with_http(Box::new(self.client.clone()));
        match account.from_credentials(credentials).await?.renewal_info(&identifier).await {
            Ok((info, wait)) => Ok(Some((self.renewal_time(&info, validity)?, wait))),
            Err(Error::Unsupported(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn renewal_time(&self, info: &RenewalInfo, validity: Validity) -> Result<Timestamp, AcmeError> {
        let to_error = |error: jiff::Error| AcmeError::Certificate(error.to_string());
        let [start, end] = [info.suggested_window.start, info.suggested_window.end]
            .map(|time| Timestamp::from_second(time.unix_timestamp()).map_err(to_error));
        if let Some(page) = &info.explanation_url {
            tracing::info!(page, "the certificate authority explains its renewal window");
        }
        Ok(renewal_time_in_window(start?, end?, validity, self.window_share))
    }

    /// Certificate identifier of the installed certificate (RFC 9773 4.1); none while it is self-signed.
    pub(super) fn certificate_id(&self) -> Option<CertificateIdentifier<'static>> {
        parse_certificate_id(&self.installed_chain())
    }
}

/// Selects a time in the window by this process's random share, bounded by the minimum age and the expiry.
fn renewal_time_in_window(start: Timestamp, end: Timestamp, validity: Validity, share: u32) -> Timestamp {
    let length = Duration::try_from(end.duration_since(start)).unwrap_or_default();
    let offset = (u128::from(length.as_secs()) * u128::from(share)) >> 32;
    let offset = Duration::from_secs(u64::try_from(offset).unwrap_or(u64::MAX));
    let time = start.checked_add(offset).unwrap_or(end);
    let earliest = validity.not_before.checked_add(CERTIFICATE_AGE_MIN).unwrap_or(validity.not_after);
    time.max(earliest).min(validity.not_after)
}

/// Builds the identifier from authority key identifier and serial number (RFC 9773 4.1).
fn parse_certificate_id(chain: &[u8]) -> Option<CertificateIdentifier<'static>> {
    /// Bytes of tag and length (X.690 8.1): a serial number has at most 20 bytes (RFC 5280 4.1.2.2).
    const HEAD: usize = 2;
    let leaf = CertificateDer::pem_slice_iter(chain).next()?.ok()?;
    let leaf = x509_cert::Certificate::from_der(&leaf).ok()?.tbs_certificate;
    let mut extensions = leaf.extensions.iter().flatten();
    let authority = extensions.find(|extension| extension.extn_id == AuthorityKeyIdentifier::OID)?;
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
    fn the_renewal_time_is_within_the_window_and_sensible_bounds() {
        let validity = Validity { not_before: at(0), not_after: at(90) };
        let time = renewal_time_in_window(at(50), at(60), validity, u32::MAX / 2);
        assert!(at(54) < time && time < at(56), "{time}");
        assert_eq!(renewal_time_in_window(at(50), at(60), validity, 0), at(50));
        assert_eq!(
            renewal_time_in_window(at(-5), at(-3), validity, 7),
            at(1),
            "a window in the past must not cause an order after each order"
        );
        assert_eq!(renewal_time_in_window(at(95), at(99), validity, 7), at(90));
        assert_eq!(
            renewal_time_in_window(at(60), at(50), validity, u32::MAX),
            at(60),
            "a window that ends before it begins"
        );
    }

    #[test]
    fn the_certificate_identifier_is_that_of_rfc_9773() {
        // Example of RFC 9773 4.1: the first bit of the serial number is set, so DER prepends a zero byte.
        let authority_key = "69885b6b87464041e1b37b847ba0ae2cde01c8d4";
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_identifier_method =
            KeyIdMethod::PreSpecified(message::hexadecimal::decode(authority_key).unwrap());
        let mut params = CertificateParams::new(["example.com".to_owned()]).unwrap();
        params.serial_number = Some(SerialNumber::from_slice(&[0x87, 0x65, 0x43, 0x21]));
        params.use_authority_key_identifier_extension = true;
        let issuer = Issuer::new(authority, KeyPair::generate().unwrap());
        let certificate = params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap();
        assert_eq!(
            parse_certificate_id(certificate.pem().as_bytes()).unwrap().to_string(),
            "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE"
        );
        let self_signed = crate::certificate::Certificate::self_signed(&["localhost"]).unwrap();
        assert!(parse_certificate_id(&self_signed.chain).is_none());
    }
}
