//! A funnel: how many people did each step, and how many went on from the step before.

use hypertext::{Buffer, prelude::*};

use super::coordinate::as_f64;
use super::svg::{hypertext_elements, share};
use super::unit::{Unit, percent};
use crate::text::grouped;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunnelStep {
    pub name: String,
    pub people: u64,
}

/// The steps of a funnel in their order.
#[derive(Debug, Clone)]
pub struct FunnelChart<'a> {
    pub title: &'a str,
    pub steps: &'a [FunnelStep],
}

impl FunnelChart<'_> {
    /// The length of a step's bar in percent; the longest step fills the line.
    fn length(&self, people: u64) -> f64 {
        let most = self.steps.iter().map(|step| step.people).max().unwrap_or_default();
        if most == 0 { 0.0 } else { as_f64(people) / as_f64(most) * 100.0 }
    }

    /// The share of the people of the step before who did this step too.
    fn conversion(&self, n: usize) -> Option<String> {
        let (before, step) = (self.steps.get(n.checked_sub(1)?)?, self.steps.get(n)?);
        let rate = percent(step.people, before.people).map_or_else(|| "–".to_owned(), |rate| Unit::Percent.exact(rate));
        let lost = before.people.saturating_sub(step.people);
        Some(format!("{rate} continued, {} did not", grouped(lost)))
    }
}

impl Renderable for FunnelChart<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let first = self.steps.first().map_or(0, |step| step.people);
        maud! {
            figure {
                figcaption.hidden { (self.title) }
            ol.funnel.plain {
                @for (n, step) in self.steps.iter().enumerate() {
                    @let of_first = percent(step.people, first).map(|rate| Unit::Percent.exact(rate));
                    @let people = format!("{} {}", grouped(step.people), if step.people == 1 { "person" } else { "people" });
                    li {
                        @if let Some(conversion) = self.conversion(n) { p.funnel-rate { (conversion) } }
                        p.funnel-head {
                            strong { (n + 1) ". " (step.name) }
                            span {
                                (people)
                                @if let Some(rate) = of_first.as_ref().filter(|_| n > 0) { span.soft { " · " (rate) " of the first" } }
                            }
                        }
                        svg.funnel-bar role="img" aria-label={ (step.name) ": " (people) } {
                            title { (step.name) ": " (people) }
                            rect.track x="0" y="0" width="100%" height="100%" rx="4" {}
                            rect.s0 x="0" y="0" width=(share(self.length(step.people))) height="100%" rx="4" {}
                        }
                    }
                }
            }
            }
        }
        .render_to(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::render;

    fn funnel(people: &[u64]) -> String {
        let steps: Vec<_> =
            people.iter().map(|people| FunnelStep { name: "<step>".to_owned(), people: *people }).collect();
        render(FunnelChart { title: "Sign-ups", steps: &steps })
    }

    #[test]
    fn steps_show_who_went_on() {
        let html = funnel(&[200, 50, 50]).replace('\u{202f}', " ");
        assert!(html.contains("25.0 % continued, 150 did not") && html.contains("100.0 % continued, 0 did not"));
        assert!(html.contains("width=\"25%\"") && html.contains("&lt;step&gt;"));
    }

    #[test]
    fn odd_funnels_are_drawn() {
        for people in [&[][..], &[0], &[0, 0], &[1, 5], &[u64::MAX, 0, u64::MAX]] {
            let html = funnel(people);
            assert!(!html.contains("NaN") && !html.contains("inf") && !html.contains("style="), "{html}");
        }
    }
}
