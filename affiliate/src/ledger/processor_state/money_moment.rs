//! Moments at which the returned amount of an invoice changes.
//!
//! The processor's clock has whole seconds, and a partial and a full refund may happen within one. A partial total
//! reported by the charge takes precedence. Otherwise refunds of one second are ordered by id, which is deterministic.

use jiff::Timestamp;

/// A moment; the greater is the later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MoneyMoment<'a> {
    pub(super) second: Timestamp,
    /// Position within the second.
    pub(super) within: SecondPart<'a>,
}

/// Position within a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SecondPart<'a> {
    /// Before the object with this id was created.
    Before(&'a str),
    /// At the charge's report of a partial total.
    Told,
    End,
}

impl<'a> MoneyMoment<'a> {
    /// Returns the moments within a second in which something changed; `id` is an object created in that second.
    pub(super) fn all_of(second: Timestamp, id: Option<&'a str>) -> impl Iterator<Item = Self> + use<'a> {
        let within = [Some(SecondPart::End), Some(SecondPart::Told), id.map(SecondPart::Before)];
        within.into_iter().flatten().map(move |within| Self { second, within })
    }

    /// True if an object created in second `created_at` existed at this moment.
    pub(super) fn includes(self, created_at: Timestamp, id: &str) -> bool {
        let is_before = match self.within {
            SecondPart::Before(first) => id < first,
            SecondPart::Told | SecondPart::End => true,
        };
        created_at < self.second || created_at == self.second && is_before
    }

    /// True if a change in second `at`, whose position is unknown, had happened by this moment.
    pub(super) fn is_after(self, at: Timestamp) -> bool {
        at < self.second || at == self.second && self.within == SecondPart::End
    }
}
