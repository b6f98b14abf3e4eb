//! Moments in what is known of an invoice's money.
//!
//! The processor's clock ticks in seconds, and a part and then all may be given back within one. What the charge said of a
//! part is believed first; of what has no such word, the order of ids stands for that of time: it is always the same.

use jiff::Timestamp;

/// A moment: the greater is the later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment<'a> {
    /// The second in which it is.
    pub(super) second: Timestamp,
    /// Where in that.
    pub(super) within: Within<'a>,
}

/// Where in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Within<'a> {
    /// Before the thing of this id was made.
    Before(&'a str),
    /// When the charge told of a part, if it did in this second.
    Told,
    /// At its end.
    End,
}

impl<'a> Moment<'a> {
    /// The moments of a second in which something changed; with an id, that was made in it.
    pub(super) fn all_of(second: Timestamp, id: Option<&'a str>) -> impl Iterator<Item = Self> + use<'a> {
        let within = [Some(Within::End), Some(Within::Told), id.map(Within::Before)];
        within.into_iter().flatten().map(move |within| Self { second, within })
    }

    /// Whether a thing was there by then that was made in this second.
    pub(super) fn knows(self, made: Timestamp, id: &str) -> bool {
        let is_before = match self.within {
            Within::Before(first) => id < first,
            Within::Told | Within::End => true,
        };
        made < self.second || made == self.second && is_before
    }

    /// Whether something that happened in this second, and of which the order is not known, had happened by then.
    pub(super) fn is_after(self, happened: Timestamp) -> bool {
        happened < self.second || happened == self.second && self.within == Within::End
    }
}
