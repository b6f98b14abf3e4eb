//! Programs: looked up by account or publishable key.

use model::affiliate::program::AffiliateProgram;
use model::id::AccountId;
use store::affiliate::program;

use crate::context::Context;
use crate::error::{AffiliateError, Result};

impl Context {
    /// Returns an account's program, in any status.
    ///
    /// # Errors
    /// `NotSetUp` without a program; the store cannot be read.
    pub async fn get_program(&self, account: AccountId) -> Result<AffiliateProgram> {
        let found = program::get(&self.store, account).await?;
        found.ok_or(AffiliateError::NotSetUp)
    }

    /// Returns the program if its setup is complete.
    ///
    /// # Errors
    /// `NotSetUp` without a program or with missing steps; the store cannot be read.
    pub async fn require_set_up(&self, account: AccountId) -> Result<AffiliateProgram> {
        let program = self.get_program(account).await?;
        if program.missing_steps().is_empty() { Ok(program) } else { Err(AffiliateError::NotSetUp) }
    }

    /// Finds a program by its publishable key.
    pub async fn find_program_by_key(&self, key: &str) -> Result<Option<AffiliateProgram>> {
        let found = program::find_by_id_or_key(&self.store, key).await?;
        // The lookup also accepts program ids, which are not public keys.
        Ok(found.filter(|program| program.publishable_key == key))
    }

    /// Finds a program by its publishable key, if its setup is complete.
    pub async fn find_portal_by_key(&self, key: &str) -> Result<Option<AffiliateProgram>> {
        let found = self.find_program_by_key(key).await?;
        Ok(found.filter(|program| program.missing_steps().is_empty()))
    }
}
