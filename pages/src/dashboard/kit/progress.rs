//! Progress of long work: an import, a backfill, a payout run.

use hypertext::{Buffer, prelude::*};

use super::text::grouped;

/// Work in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The name of the bar: `Payouts`.
    pub label: &'a str,
    pub done: u64,
    /// `None` while it is not known how much there is.
    pub total: Option<u64>,
    /// The work has ended, well or not.
    pub is_ended: bool,
}

impl Progress<'_> {
    /// `12 of 40`, or `12 so far`.
    pub fn text(&self) -> String {
        match self.total {
            Some(total) => format!("{} of {}", grouped(self.done), grouped(total)),
            None if self.is_ended => grouped(self.done),
            None => format!("{} so far", grouped(self.done)),
        }
    }
}

impl Renderable for Progress<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        // Without a value, the browser shows a bar in motion.
        let (value, max) = match self.total {
            Some(total) => (Some(self.done.min(total)), total.max(1)),
            None if self.is_ended => (Some(1), 1),
            None => (None, 1),
        };
        maud! {
            div.progress {
                p { span { (self.label) } span.number { (self.text()) } }
                progress value=[value] max=(max) aria-label=(self.label) {}
            }
        }
        .render_to(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dashboard::page::render;

    #[test]
    fn known_and_unknown_totals_differ() {
        let known = Progress { label: "Payouts", done: 3, total: Some(4), is_ended: false };
        assert_eq!(known.text(), "3 of 4");
        assert!(render(known).contains("value=\"3\" max=\"4\""));
        let unknown = Progress { label: "Invoices", done: 3, total: None, is_ended: false };
        assert_eq!(unknown.text(), "3 so far");
        assert!(!render(unknown).contains("value="));
    }
}
