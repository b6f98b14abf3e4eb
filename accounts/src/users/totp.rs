//! One-time passwords of users: set-up, acceptance of codes, recovery codes (RFC 6238, [`model::totp`]).
//!
//! ```text
//! begin ─► sealed secret, pending ─► confirm with a code ─► active, ten recovery codes ─► disable
//! ```
//!
//! Accepting a code changes the user's row (last step, or one recovery code less). The caller writes it in the same
//! commit as what the code permits, so that of two uses of one code one conflicts.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dns::secrets::Vault;
use model::domain::SealedSecret;
use model::id::UserId;
use model::totp::{RECOVERY_CODES, RecoveryCode, SECRET_BYTES, SecondFactorCode, Totp, TotpCode, acceptable_steps};
use model::user::User;
use store::engine::Batch;

use super::{UserError, UserService};

/// Appended to the user's id: the sealed secret opens only as the TOTP secret of this user.
const SEAL_CONTEXT: &[u8] = b"totp";

impl UserService {
    /// Stores a new secret, which sign-in does not use until it is confirmed. Returns its bytes, to be shown once.
    ///
    /// # Errors
    /// [`UserError::TotpActive`]; [`UserError::Conflict`] when the stored user differs from `before`.
    pub async fn begin_totp(&self, vault: &Vault, before: &User) -> Result<[u8; SECRET_BYTES], UserError> {
        if before.has_totp() {
            return Err(UserError::TotpActive);
        }
        let mut secret = [0; SECRET_BYTES];
        self.entropy.fill(&mut secret);
        let sealed = vault.seal(&seal_context(before.id), &secret).map_err(|_| UserError::Seal)?;
        let totp = Totp::Pending { secret: SealedSecret(STANDARD.encode(sealed)) };
        self.set_totp(before, Some(totp)).await?;
        Ok(secret)
    }

    /// Activates the pending secret if the code is correct. Returns the recovery codes, to be shown once.
    ///
    /// # Errors
    /// [`UserError::TotpNotPending`], [`UserError::WrongCode`]; [`UserError::Conflict`] when the stored user differs
    /// from `before`.
    pub async fn confirm_totp(
        &self,
        vault: &Vault,
        before: &User,
        code: &SecondFactorCode,
    ) -> Result<Vec<RecoveryCode>, UserError> {
        let Some(Totp::Pending { secret }) = &before.totp else { return Err(UserError::TotpNotPending) };
        let SecondFactorCode::Totp(code) = code else { return Err(UserError::WrongCode) };
        let opened = open_secret(vault, before.id, secret)?;
        let last_step = self.matching_step(&opened, *code, None).ok_or(UserError::WrongCode)?;
        let (codes, recovery_codes) = self.new_recovery_codes();
        self.set_totp(before, Some(Totp::Active { secret: secret.clone(), last_step, recovery_codes })).await?;
        Ok(codes)
    }

    /// Replaces the recovery codes. Returns the new ones, to be shown once.
    ///
    /// # Errors
    /// [`UserError::TotpNotActive`]; [`UserError::Conflict`] when the stored user differs from `before`.
    pub async fn replace_recovery_codes(&self, before: &User) -> Result<Vec<RecoveryCode>, UserError> {
        let Some(Totp::Active { secret, last_step, .. }) = &before.totp else { return Err(UserError::TotpNotActive) };
        let (codes, recovery_codes) = self.new_recovery_codes();
        let totp = Totp::Active { secret: secret.clone(), last_step: *last_step, recovery_codes };
        self.set_totp(before, Some(totp)).await?;
        Ok(codes)
    }

    /// Removes the secret and the recovery codes. The caller has verified the password or a code.
    ///
    /// # Errors
    /// [`UserError::Conflict`] when the stored user differs from `before`.
    pub async fn disable_totp(&self, before: &User) -> Result<(), UserError> {
        self.set_totp(before, None).await
    }

    /// Checks a code of a user with active one-time passwords. Returns the user as it must be stored with whatever the
    /// code permits; `None` if the code is wrong or has already been used.
    ///
    /// # Errors
    /// [`UserError::Seal`].
    pub fn accept_code(&self, vault: &Vault, user: &User, code: &SecondFactorCode) -> Result<Option<User>, UserError> {
        let Some(Totp::Active { secret, last_step, recovery_codes }) = &user.totp else { return Ok(None) };
        let accepted = match code {
            SecondFactorCode::Totp(code) => {
                let opened = open_secret(vault, user.id, secret)?;
                let step = self.matching_step(&opened, *code, Some(*last_step));
                step.map(|last_step| (last_step, recovery_codes.clone()))
            }
            SecondFactorCode::Recovery(code) => {
                let used = code.hash();
                let unused: Vec<_> = recovery_codes.iter().filter(|hash| **hash != used).copied().collect();
                (unused.len() < recovery_codes.len()).then_some((*last_step, unused))
            }
        };
        Ok(accepted.map(|(last_step, recovery_codes)| User {
            totp: Some(Totp::Active { secret: secret.clone(), last_step, recovery_codes }),
            ..user.clone()
        }))
    }

    /// The step of the code, if it is acceptable now and later than `after`.
    fn matching_step(&self, secret: &[u8], code: TotpCode, after: Option<u64>) -> Option<u64> {
        acceptable_steps(self.clock.now())
            .filter(|step| after.is_none_or(|after| *step > after))
            .find(|step| code_at(secret, *step) == Some(code))
    }

    fn new_recovery_codes(&self) -> (Vec<RecoveryCode>, Vec<model::credential::SecretHash>) {
        let codes: Vec<_> = (0..RECOVERY_CODES).map(|_| RecoveryCode::new(&self.entropy.secret())).collect();
        let hashes = codes.iter().map(RecoveryCode::hash).collect();
        (codes, hashes)
    }

    async fn set_totp(&self, before: &User, totp: Option<Totp>) -> Result<(), UserError> {
        let after = User { totp, ..before.clone() };
        let mut batch = Batch::progress();
        store::user::update(&mut batch, before, &after);
        Ok(self.store.commit(batch).await?)
    }
}

fn seal_context(user: UserId) -> Vec<u8> {
    [&user.to_bytes()[..], SEAL_CONTEXT].concat()
}

fn open_secret(vault: &Vault, user: UserId, sealed: &SealedSecret) -> Result<Vec<u8>, UserError> {
    let blob = STANDARD.decode(&sealed.0).map_err(|_| UserError::Seal)?;
    vault.open(&seal_context(user), &blob).map_err(|_| UserError::Seal)
}

/// The code of a step (RFC 6238 4.2).
fn code_at(secret: &[u8], step: u64) -> Option<TotpCode> {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    tag.as_ref().try_into().ok().map(TotpCode::from_hmac)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_rfc_6238() {
        // Appendix B, SHA-1; its codes have eight digits, of which ours are the last six.
        let secret = b"12345678901234567890";
        for (second, code) in [
            (59, "94287082"),
            (1_111_111_109, "07081804"),
            (1_111_111_111, "14050471"),
            (1_234_567_890, "89005924"),
            (2_000_000_000, "69279037"),
            (20_000_000_000, "65353130"),
        ] {
            assert_eq!(code_at(secret, second / 30).unwrap().text(), code[2..], "{second}");
        }
    }
}
