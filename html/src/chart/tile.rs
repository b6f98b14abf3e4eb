//! Tiles: a value with its name, and how it changed against the time before.

use hypertext::prelude::*;

use super::unit::Unit;
use crate::badge::Tone;

/// The change of a value against the time before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    pub now: f64,
    pub before: f64,
    /// A larger value is better; `None` is neither.
    pub up_is_good: Option<bool>,
}

impl Change {
    /// The words: counts change by a share, rates by points.
    fn text(self, unit: Unit) -> String {
        let difference = self.now - self.before;
        let (sign, size) = if difference < 0.0 { ("−", -difference) } else { ("+", difference) };
        match unit {
            Unit::Percent if size < 0.005 => "no change".to_owned(),
            Unit::Percent => format!("{sign}{size:.2} points"),
            _ if size == 0.0 => "no change".to_owned(),
            _ if self.before == 0.0 => "none previously".to_owned(),
            Unit::Count | Unit::Amount { .. } => {
                format!("{sign}{:.0}\u{202f}%", (size / self.before * 100.0).min(99_999.0))
            }
            Unit::Seconds => format!("{sign}{}", unit.exact(size)),
        }
    }

    fn tone(self, unit: Unit) -> Tone {
        let noise = if unit == Unit::Percent { 0.005 } else { 0.0 };
        match self.up_is_good {
            // Without a value before, the change means nothing.
            _ if unit == Unit::Count && self.before == 0.0 => Tone::Neutral,
            Some(up_is_good) if (self.now - self.before).abs() > noise => {
                if (self.now > self.before) == up_is_good {
                    Tone::Good
                } else {
                    Tone::Bad
                }
            }
            _ => Tone::Neutral,
        }
    }
}

/// A value with its name.
#[derive(Debug, Clone)]
pub struct Tile {
    pub label: &'static str,
    pub unit: Unit,
    /// `None` is shown as a dash.
    pub value: Option<f64>,
    pub change: Option<Change>,
}

/// Tiles in a row.
///
/// `before`: the time before, in words: "the 30 days before".
pub fn metric_tiles(tiles: &[Tile], before: &str) -> impl Renderable {
    let tone = |tile: &Tile| tile.change.map_or(Tone::Neutral, |change| change.tone(tile.unit));
    maud! {
        dl.tiles {
            @for tile in tiles {
                div {
                    dt { (tile.label) }
                    dd.tile-value { (tile.value.map_or_else(|| "–".to_owned(), |value| tile.unit.exact(value))) }
                    @if let Some(change) = tile.change {
                        dd class={ "tile-change " (tone(tile).class()) } title={ "Against " (before) ": " (tile.unit.exact(change.before)) } {
                            (change.text(tile.unit))
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_put_into_words() {
        let change = |now, before| Change { now, before, up_is_good: Some(false) };
        let text = |unit, now, before| change(now, before).text(unit).replace('\u{202f}', " ");
        assert_eq!(text(Unit::Count, 150.0, 100.0), "+50 %");
        assert_eq!(text(Unit::Count, 0.0, 100.0), "−100 %");
        assert_eq!(text(Unit::Count, 5.0, 0.0), "none previously");
        assert_eq!(text(Unit::Percent, 0.12, 0.02), "+0.10 points");
        assert_eq!(text(Unit::Percent, 0.12, 0.12), "no change");
        assert_eq!(text(Unit::Seconds, 1.0, 3.0), "−2 s");
        assert_eq!(change(2.0, 1.0).tone(Unit::Percent), Tone::Bad);
        assert_eq!(change(1.0, 2.0).tone(Unit::Percent), Tone::Good);
        assert_eq!(change(1.0, 1.0).tone(Unit::Percent), Tone::Neutral);
    }
}
