//! Events, oldest first: each with its time, its colour and its details.

use hypertext::{Buffer, prelude::*};

use super::badge::Tone;
use super::time::time_or_dash;
use crate::dashboard::context::raw;
use crate::dashboard::page::render;

/// A list of steps in time.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    label: String,
    steps: Vec<TimelineStep>,
}

#[derive(Debug, Clone)]
struct TimelineStep {
    tone: Tone,
    title: String,
    /// As the API writes it.
    time: Option<String>,
    /// Rendered.
    details: String,
}

impl Timeline {
    /// A timeline; `label` describes it to screen readers.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), steps: Vec::new() }
    }

    /// Adds a step at a time of the API.
    pub fn push(&mut self, tone: Tone, title: impl Into<String>, time: Option<&str>, details: impl Renderable) {
        let (title, time) = (title.into(), time.map(str::to_owned));
        self.steps.push(TimelineStep { tone, title, time, details: render(details) });
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl Renderable for Timeline {
    fn render_to(&self, buffer: &mut Buffer) {
        maud! {
            div role="group" aria-label=(self.label) {
                ol.timeline {
                    @for step in &self.steps {
                        li class=(step.tone.class()) {
                            p.timeline-head { strong { (step.title) } " " (time_or_dash(step.time.as_deref())) }
                            @if !step.details.is_empty() { div.timeline-details { (raw(&step.details)) } }
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

    #[test]
    fn steps_show_their_texts_escaped() {
        let mut timeline = Timeline::new("History");
        timeline.push(Tone::Bad, "Bounced <b>", Some("2026-01-01T10:00:00Z"), maud! { p { "550 <no>" } });
        let html = render(timeline);
        assert!(html.contains("Bounced &lt;b&gt;") && html.contains("550 &lt;no&gt;") && html.contains("1 Jan 2026"));
    }
}
