//! Moments in what is known of an invoice's money.
//!
//! The processor's clock ticks in seconds, and a part and then all may be given back within one. What the charge said of a
//! part is believed first; of what has no such word, the order of ids stands for that of time: it is always the same.

use jiff::Timestamp;

/// A moment: the greater is the later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MoneyMoment<'a> {
    /// The second in which it is.
    pub(super) second: Timestamp,
    /// Where in that.
    pub(super) within: SecondPart<'a>,
}

/// Where in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SecondPart<'a> {
    /// Before the thing of this id was made.
    Before(&'a str),
    /// When the charge told of a part, if it did in this second.
    Told,
    /// At its end.
    End,
}

impl<'a> MoneyMoment<'a> {
    /// The moments of a second in which something changed; with an id, that was made in it.
    pub(super) fn all_of(second: Timestamp, id: Option<&'a str>) -> impl Iterator<Item = Self> + use<'a> {
        let within = [Some(SecondPart::End), Some(SecondPart::Told), id.map(SecondPart::Before)];
        within.into_iter().flatten().map(move |within| Self { second, within })
    }

    /// Whether a thing was there by then that was made in this second.
    pub(super) fn includes(self, made: Timestamp, id: &str) -> bool {
        let is_before = match self.within {
            SecondPart::Before(first) => id < first,
            SecondPart::Told | SecondPart::End => true,
        };
        made < self.second || made == self.second && is_before
    }

    /// Whether something that happened in this second, and of which the order is not known, had happened by then.
    pub(super) fn is_after(self, happened: Timestamp) -> bool {
        happened < self.second || happened == self.second && self.within == SecondPart::End
    }
}
