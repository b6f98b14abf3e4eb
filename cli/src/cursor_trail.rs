//! `CursorTrail`: the cursors of a list that is walked. A list that leads back to a page would never end.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use crate::error::CliError;

/// Hashes of the cursors so far.
#[derive(Debug, Default)]
pub(crate) struct CursorTrail {
    hasher: RandomState,
    seen: HashSet<u64>,
}

impl CursorTrail {
    /// Adds the cursor of the next page.
    ///
    /// # Errors
    /// The list had this cursor before.
    pub(crate) fn add(&mut self, cursor: &str) -> Result<(), CliError> {
        if self.seen.insert(self.hasher.hash_one(cursor)) {
            return Ok(());
        }
        Err(CliError::Failed("the server repeats a cursor; the list would never end".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_that_alternate_are_refused() {
        let mut trail = CursorTrail::default();
        assert!(trail.add("a").is_ok() && trail.add("b").is_ok());
        assert!(trail.add("a").is_err());
    }
}
