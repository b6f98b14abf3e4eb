//! SVG chart of the last 90 days: a bar of earnings for each day, a line of clicks. The caption repeats the totals as
//! text, for screen readers.

use mail::affiliate::money::Currency;

use super::html::{Html, html, push};
use super::texts;

/// Width of the view box.
const WIDTH: f64 = 900.0;
/// The y coordinate of the base line.
const FLOOR: f64 = 160.0;
/// The y coordinate of the highest value.
const TOP: f64 = 14.0;

/// Draws earnings and clicks by day, oldest first.
pub(super) fn draw_chart(currency: Currency, money: &[i64], clicks: &[u64]) -> Html {
    let (earned, clicks_count) = (money.iter().copied().fold(0, i64::saturating_add), clicks.iter().sum::<u64>());
    let most_money = money.iter().copied().max().unwrap_or(0).max(0);
    let most_clicks = clicks.iter().copied().max().unwrap_or(0);
    let caption = html! {
        "Last 90 days: " (texts::format_money(earned, currency)) " earned, " (clicks_count)
        (if clicks_count == 1 { " click" } else { " clicks" })
    };
    let mut svg = html! {
        "<figure><svg viewBox=\"0 0 900 180\" role=\"img\" aria-label=\"" [caption] "\">\
         <line class=\"floor\" x1=\"0\" y1=\"160\" x2=\"900\" y2=\"160\"/>"
    };
    for (day, sum) in money.iter().enumerate() {
        if *sum > 0 {
            let height = relative_height(as_f64(*sum), as_f64(most_money)).max(1.5);
            let (x, width) = (bar_left(day, money.len()), WIDTH / as_count(money.len()) * 0.72);
            push!(
                svg,
                "<rect class=\"money\" x=\"" (round_to_tenth(x)) "\" y=\"" (round_to_tenth(FLOOR - height)) "\" width=\"" (round_to_tenth(width))
                "\" height=\"" (round_to_tenth(height)) "\" rx=\"1.5\"/>"
            );
        }
    }
    if most_clicks > 0 {
        svg.raw("<polyline class=\"clicks\" points=\"");
        for (day, count) in clicks.iter().enumerate() {
            let (x, y) =
                (bar_left(day, clicks.len()), FLOOR - relative_height(count_f64(*count), count_f64(most_clicks)));
            push!(svg, (round_to_tenth(x + WIDTH / as_count(clicks.len()) * 0.36)) "," (round_to_tenth(y)) " ");
        }
        svg.raw("\"/>");
    }
    push!(
        svg,
        "<text x=\"0\" y=\"176\">90 days ago</text><text x=\"900\" y=\"176\" text-anchor=\"end\">today</text></svg>\
         <figcaption><span class=\"key\"></span>earnings by day <span class=\"key clicks\"></span>clicks by day. "
        [caption] ".</figcaption></figure>"
    );
    svg
}

fn bar_left(day: usize, days: usize) -> f64 {
    as_count(day) * (WIDTH / as_count(days.max(1)))
}

/// Height of a value above the base line, scaled to the largest value.
fn relative_height(part: f64, maximum: f64) -> f64 {
    if maximum > 0.0 { part / maximum * (FLOOR - TOP) } else { 0.0 }
}

/// One decimal is finer than a pixel.
fn round_to_tenth(figure: f64) -> String {
    format!("{figure:.1}")
}

#[expect(clippy::cast_precision_loss, reason = "a picture is less precise than a float")]
fn as_f64(amount: i64) -> f64 {
    amount as f64
}

#[expect(clippy::cast_precision_loss, reason = "a picture is less precise than a float")]
fn count_f64(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "days are few")]
fn as_count(days: usize) -> f64 {
    days as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_handles_empty_and_extreme_values() {
        let usd = "usd".parse().unwrap();
        for (money, clicks) in [
            (vec![], vec![]),
            (vec![0; 90], vec![0; 90]),
            (vec![i64::MAX; 90], vec![u64::MAX / 90; 90]),
            (vec![-5, 0, 5], vec![1]),
        ] {
            let text = draw_chart(usd, &money, &clicks).into_string();
            assert!(text.contains("</svg>") && !text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
}
