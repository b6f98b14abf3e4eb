//! Secrets at rest: sealed for the row that holds them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dns::secrets::Vault;
use model::domain::SealedSecret;

use crate::error::AffiliateError;

pub(crate) fn seal(vault: &Vault, row: &[u8], text: &str) -> Result<SealedSecret, AffiliateError> {
    let blob = vault.seal(row, text.as_bytes()).map_err(|_| AffiliateError::Seal)?;
    Ok(SealedSecret(STANDARD.encode(blob)))
}

/// Unseals a secret; `None` if it cannot be opened.
pub(crate) fn open(vault: &Vault, row: &[u8], sealed: &SealedSecret) -> Option<String> {
    let blob = STANDARD.decode(&sealed.0).ok()?;
    String::from_utf8(vault.open(row, &blob).ok()?).ok()
}
