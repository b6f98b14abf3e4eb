//! Times. Without the script they are shown in UTC; the script shows how long ago they were.

use hypertext::{Buffer, prelude::*};
use jiff::Timestamp;

use crate::table::or_dash;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub Timestamp);

impl Time {
    /// Reads a timestamp of the API.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

/// `14 Nov 2026, 09:30`, in UTC.
pub fn date_and_time(time: Timestamp) -> String {
    time.strftime("%-d %b %Y, %H:%M").to_string()
}

impl Renderable for Time {
    fn render_to(&self, buffer: &mut Buffer) {
        let machine = self.0.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        maud! {
            time datetime=(machine) title={ (self.0.strftime("%Y-%m-%d %H:%M:%S").to_string()) " UTC" } {
                (date_and_time(self.0)) " UTC"
            }
        }
        .render_to(buffer);
    }
}

/// The time of a field of the API, or a dash.
pub fn time_or_dash(text: Option<&str>) -> impl Renderable + use<> {
    or_dash(text.and_then(Time::parse))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::render;

    #[test]
    fn times_name_their_zone() {
        let html = render(time_or_dash(Some("2026-11-14T09:30:00Z")));
        assert!(html.contains(">14 Nov 2026, 09:30 UTC</time>"), "{html}");
    }
}
