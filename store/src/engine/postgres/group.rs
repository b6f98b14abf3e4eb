//! A group: batches that share one transaction. Pure.
//!
//! ```text
//! batches ─► RowLocks (rows to lock) ─► locked rows ─► results, and the rows to write
//! ```
//!
//! The batches are evaluated in order, each against the locked rows and the changes of the batches before it, as if
//! each were a transaction. A refused batch changes nothing.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bytes::Bytes;

use crate::engine::{Batch, Body, CommitError, Key, Value};

/// Rows that a group must lock before it is evaluated, each list in key order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RowLocks {
    /// Rows that a batch checks to be absent: locked by inserting an empty row, which only one transaction can do.
    pub(crate) claim: BTreeSet<Key>,
    /// Rows that are read and written: exclusive lock.
    pub(crate) lock: BTreeSet<Key>,
    /// Rows that are only read: shared lock.
    pub(crate) share: BTreeSet<Key>,
}

impl RowLocks {
    pub(crate) fn for_batches<'a>(batches: impl Iterator<Item = &'a Batch> + Clone) -> Self {
        let written: HashSet<&Key> = batches.clone().flat_map(|batch| batch.rows.iter().map(|row| &row.key)).collect();
        let mut needs = Self::default();
        for (key, holds) in batches.clone().flat_map(|batch| &batch.checks) {
            if holds.is_none() {
                needs.claim.insert(key.clone());
            }
        }
        for (key, _) in batches.flat_map(|batch| &batch.checks) {
            let lists =
                if written.contains(key) || needs.claim.contains(key) { &mut needs.lock } else { &mut needs.share };
            lists.insert(key.clone());
        }
        needs
    }
}

/// Result of evaluating a group.
#[derive(Debug, Default)]
pub(crate) struct GroupOutcome {
    /// One result for each batch, in order.
    pub(crate) verdicts: Vec<Result<(), CommitError>>,
    /// Rows to put, or to delete if `None`, in key order.
    pub(crate) rows: BTreeMap<Key, Option<Value>>,
    /// Bodies to put, or to delete if `None`.
    pub(crate) bodies: BTreeMap<Key, Option<Body>>,
}

/// Evaluates a group. `stored` contains the locked rows, `claimed` the keys that were absent.
pub(crate) fn evaluate<'a>(
    batches: impl Iterator<Item = &'a Batch>,
    mut stored: BTreeMap<Key, Value>,
    claimed: &HashSet<Key>,
) -> GroupOutcome {
    stored.retain(|key, _| !claimed.contains(key));
    let mut outcome = GroupOutcome::default();
    // Claimed rows that no batch writes are deleted again.
    outcome.rows.extend(claimed.iter().map(|key| (key.clone(), None)));
    for batch in batches {
        let failed = batch.checks.iter().find(|(key, holds)| {
            let found = outcome.rows.get(key).map_or_else(|| stored.get(key), Option::as_ref);
            found != holds.as_ref()
        });
        if let Some((key, _)) = failed {
            outcome.verdicts.push(Err(CommitError::Conflict { key: key.clone() }));
            continue;
        }
        for row in &batch.rows {
            outcome.rows.insert(row.key.clone(), row.value.clone());
        }
        for change in &batch.bodies {
            outcome.bodies.insert(change.key.clone(), change.body.clone());
        }
        outcome.verdicts.push(Ok(()));
    }
    outcome
}

impl GroupOutcome {
    pub(crate) fn puts(&self) -> (Vec<&[u8]>, Vec<&[u8]>) {
        self.rows.iter().filter_map(|(key, value)| Some((&key[..], value.as_deref()?))).unzip()
    }

    pub(crate) fn deletes(&self) -> Vec<&[u8]> {
        self.rows.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| &key[..]).collect()
    }

    pub(crate) fn body_puts(&self) -> (Vec<&[u8]>, Vec<Bytes>) {
        self.bodies.iter().filter_map(|(key, body)| Some((&key[..], body.as_ref()?.to_bytes()))).unzip()
    }

    pub(crate) fn body_deletes(&self) -> Vec<&[u8]> {
        self.bodies.iter().filter(|(_, body)| body.is_none()).map(|(key, _)| &key[..]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn k(text: &'static str) -> Key {
        Key::from_static(text.as_bytes())
    }

    #[test]
    fn each_batch_sees_the_changes_of_the_batches_before_it() {
        let mut first = Batch::intake();
        first.check(k("a"), None).put(k("a"), k("1"));
        let mut second = Batch::intake();
        second.check(k("a"), None).put(k("b"), k("never"));
        let mut third = Batch::progress();
        third.check(k("a"), Some(k("1"))).check(k("fence"), Some(k("7"))).delete(k("a"));
        let group = [first, second, third];
        let needs = RowLocks::for_batches(group.iter());
        assert_eq!(needs.claim, [k("a")].into());
        assert_eq!(needs.lock, [k("a")].into());
        assert_eq!(needs.share, [k("fence")].into());

        let stored = || BTreeMap::from([(k("a"), Value::new()), (k("fence"), k("7"))]);
        let outcome = evaluate(group.iter(), stored(), &[k("a")].into());
        assert!(outcome.verdicts[0].is_ok() && outcome.verdicts[2].is_ok());
        assert!(matches!(&outcome.verdicts[1], Err(CommitError::Conflict { key }) if *key == k("a")));
        assert_eq!(outcome.deletes(), [b"a"], "a row that is claimed and deleted leaves no row");

        let outcome = evaluate(group.iter(), stored(), &HashSet::new());
        assert_eq!(outcome.verdicts.iter().filter(|verdict| verdict.is_ok()).count(), 0, "row a exists");
        assert!(outcome.rows.is_empty());
    }
}
