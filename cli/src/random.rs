//! Random bytes for secrets, PKCE and the state of a sign-in.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::error::CliError;

/// 32 random bytes in base64url: 43 characters, as a code verifier needs (RFC 7636 4.1).
///
/// # Errors
/// The system has no randomness.
pub(crate) fn random_text() -> Result<String, CliError> {
    Ok(URL_SAFE_NO_PAD.encode(random_bytes()?))
}

/// 32 random bytes.
///
/// # Errors
/// The system has no randomness.
pub(crate) fn random_bytes() -> Result<[u8; 32], CliError> {
    let mut bytes = [0; 32];
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let filled = provider.secure_random.fill(&mut bytes);
    filled.map_err(|_| CliError::Io("the system provides no random numbers".to_owned()))?;
    Ok(bytes)
}
