//! Signs webhooks as the server does: `Service-Signature`, and the headers of Standard Webhooks.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::error::CliError;
use crate::random::random_bytes;

const SECRET_PREFIX: &str = "whsec_";

/// The headers of a webhook with this body.
pub fn headers(secret: &str, event_id: &str, unix_time: i64, body: &str) -> [(&'static str, String); 4] {
    let own = mac(secret.as_bytes(), &format!("{unix_time}.{body}"));
    let own: String = own.iter().map(|byte| format!("{byte:02x}")).collect();
    let key = secret.strip_prefix(SECRET_PREFIX).and_then(|key| BASE64_STANDARD.decode(key).ok());
    let key = key.unwrap_or_else(|| secret.as_bytes().to_vec());
    let standard = BASE64_STANDARD.encode(mac(&key, &format!("{event_id}.{unix_time}.{body}")));
    [
        ("service-signature", format!("t={unix_time},v1={own}")),
        ("webhook-id", event_id.to_owned()),
        ("webhook-timestamp", unix_time.to_string()),
        ("webhook-signature", format!("v1,{standard}")),
    ]
}

fn mac(key: &[u8], content: &str) -> Vec<u8> {
    // HMAC takes keys of any length (RFC 2104 2).
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(content.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// A new secret for deliveries of this program.
///
/// # Errors
/// The system has no randomness.
pub fn new_secret() -> Result<String, CliError> {
    Ok(format!("{SECRET_PREFIX}{}", BASE64_STANDARD.encode(random_bytes()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_the_specification() {
        let body = "{\"type\":\"email.delivered\",\"created_at\":\"2026-01-01T10:00:01.000Z\",\"data\":{\"event_id\":\"evt_01TEST\",\
                    \"email_id\":\"msg_01TEST\",\"status\":\"delivered\"}}";
        let secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let headers = headers(secret, "evt_01TEST", 1_767_261_601, body);
        let [own, _, _, standard] = &headers;
        assert_eq!(own.1, "t=1767261601,v1=73d1d171b7792518bf34eb652caafd4d13e94b75b22b20e832da53925b9329e7");
        assert_eq!(standard.1, "v1,leGq6P5XZxszBtppSdgPTG85IB61BP80s0YeiHeC2vU=");
    }
}
