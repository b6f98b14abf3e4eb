//! Issuer, subject and validity of an X.509 certificate (RFC 5280 4.1).

use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use x509_cert::der::Decode as _;
use x509_cert::name::Name;
use x509_cert::time::Time;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CertificateFields {
    pub(super) issuer: Name,
    pub(super) subject: Name,
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
}

/// Reads the first certificate of a PEM file.
pub(crate) fn parse_first(pem: &[u8]) -> Result<CertificateFields, String> {
    let first = CertificateDer::pem_slice_iter(pem).next().ok_or("contains no certificate")?;
    parse_certificate(&first.map_err(|error| error.to_string())?)
}

/// Reads a certificate in DER.
pub(crate) fn parse_certificate(certificate: &[u8]) -> Result<CertificateFields, String> {
    let fields = x509_cert::Certificate::from_der(certificate).map_err(|error| error.to_string())?.tbs_certificate;
    Ok(CertificateFields {
        issuer: fields.issuer,
        subject: fields.subject,
        not_before: to_timestamp(fields.validity.not_before)?,
        not_after: to_timestamp(fields.validity.not_after)?,
    })
}

fn to_timestamp(time: Time) -> Result<Timestamp, String> {
    let seconds = i64::try_from(time.to_unix_duration().as_secs()).map_err(|error| error.to_string())?;
    Timestamp::from_second(seconds).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_read() {
        let mut params = rcgen::CertificateParams::new(["mx1.example.net".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2024, 2, 29);
        params.not_after = rcgen::date_time_ymd(2051, 1, 2);
        let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let read = parse_certificate(certificate.der()).unwrap();
        assert_eq!(read.issuer, read.subject);
        assert_eq!(read.not_before.to_string(), "2024-02-29T00:00:00Z");
        assert_eq!(read.not_after.to_string(), "2051-01-02T00:00:00Z");
        for end in 0..certificate.der().len() {
            let _ = parse_certificate(&certificate.der()[..end]);
        }
        assert!(parse_certificate(b"\x30\x84\xff\xff\xff\xff").is_err());
    }
}
