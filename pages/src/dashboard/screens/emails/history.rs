//! The events of an email as a timeline.

use super::object::EmailEvent;
use crate::dashboard::kit::timeline::Timeline;
use crate::dashboard::prelude::*;

/// The timeline of events, which the API gives newest first.
pub(super) fn history(events: &[EmailEvent]) -> Timeline {
    let mut timeline = Timeline::new("What happened to the email");
    for event in events.iter().rev() {
        let (tone, title) = event.title();
        let remark = event.remark();
        let next = event.detail.pointer("/delay/next_attempt_at").and_then(Value::as_str);
        let scheduled = event.detail.pointer("/scheduled_at").and_then(Value::as_str);
        let details = maud! {
            @if let Some(recipient) = &event.recipient { p { (recipient) } }
            @if let Some(remark) = &remark { p.soft { (remark) } }
            @if let Some(next) = next { p.soft { "Next attempt: " (time_or_dash(Some(next))) } }
            @if let Some(at) = scheduled { p.soft { "To be sent: " (time_or_dash(Some(at))) } }
        };
        timeline.push(tone, title, Some(&event.created_at), details);
    }
    timeline
}

impl EmailEvent {
    fn title(&self) -> (Tone, String) {
        let kind = self.r#type.strip_prefix("email.").unwrap_or(&self.r#type);
        let title = match kind {
            "sent" => "Accepted for delivery".to_owned(),
            "delivery_delayed" => "Delayed".to_owned(),
            "complained" => "Reported as spam".to_owned(),
            "clicked" => "Link clicked".to_owned(),
            other => sentence_case(other),
        };
        (Tone::of(kind), title)
    }

    /// The details in one line.
    fn remark(&self) -> Option<String> {
        let text = |path: &str| self.detail.pointer(path).and_then(Value::as_str).map(str::to_owned);
        [
            "/delivery/smtp_response",
            "/delay/diagnostic",
            "/bounce/diagnostic",
            "/bounce_reason",
            "/failure/reason",
            "/failure/diagnostic",
            "/click/url",
            "/complaint/feedback_type",
            "/reason",
        ]
        .into_iter()
        .find_map(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::dashboard::page::render;

    #[test]
    fn events_are_told_oldest_first() {
        let event = |kind: &str, detail: Value| EmailEvent {
            r#type: kind.into(),
            created_at: "2026-01-01T10:00:00Z".into(),
            detail,
            ..EmailEvent::default()
        };
        let events = [
            event("email.bounced", json!({"bounce": {"diagnostic": "smtp; 550 <b>"}})),
            event("email.sent", json!({"recipients_count": 1})),
        ];
        let html = render(history(&events));
        assert!(html.find("Accepted for delivery") < html.find("Bounced"), "{html}");
        assert!(html.contains("550 &lt;b&gt;"));
    }
}
