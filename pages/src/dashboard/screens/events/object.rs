//! Product events as the API gives them, and the people who did them.

use serde_json::value::RawValue;

use crate::dashboard::prelude::*;

#[answer]
pub(in crate::dashboard::screens) struct EventItem {
    pub(in crate::dashboard::screens) id: String,
    pub(in crate::dashboard::screens) name: String,
    #[serde(flatten)]
    pub(in crate::dashboard::screens) person: PersonKey,
    /// As it was sent: numbers keep all their digits.
    pub(in crate::dashboard::screens) data: Box<RawValue>,
    pub(in crate::dashboard::screens) source: String,
    pub(in crate::dashboard::screens) created_at: String,
}

impl EventItem {
    /// The data on one line, shortened.
    pub(in crate::dashboard::screens) fn short_data(&self) -> String {
        const SHOWN: usize = 90;
        let text = self.json_data().unwrap_or_default();
        match text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text.to_owned(),
        }
    }

    /// The data as JSON, unless there is none.
    pub(in crate::dashboard::screens) fn json_data(&self) -> Option<&str> {
        Some(self.data.get()).filter(|text| !matches!(*text, "null" | "{}"))
    }
}

/// The path of an event's page.
pub(in crate::dashboard::screens) fn event_path(id: &str) -> String {
    format!("{}/{}", super::LIST, encode(id))
}

/// The person of an event: by id in the customer's product, by address, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(in crate::dashboard::screens) struct PersonKey {
    pub(in crate::dashboard::screens) user_id: Option<String>,
    pub(in crate::dashboard::screens) email: Option<String>,
}

impl PersonKey {
    pub(in crate::dashboard::screens) fn read(query: &Fields) -> Self {
        let field = |name| Some(query.get(name).trim().to_owned()).filter(|text| !text.is_empty());
        Self { user_id: field("user_id"), email: field("email") }
    }

    pub(in crate::dashboard::screens) const fn is_unknown(&self) -> bool {
        self.user_id.is_none() && self.email.is_none()
    }

    /// The address if it is known, else the id.
    pub(in crate::dashboard::screens) fn label(&self) -> &str {
        self.email.as_deref().or(self.user_id.as_deref()).unwrap_or("unknown")
    }

    /// The fields of a query.
    pub(in crate::dashboard::screens) fn fields(&self) -> Fields {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Fields::default().with("user_id", &text(&self.user_id)).with("email", &text(&self.email))
    }

    pub(in crate::dashboard::screens) fn path(&self) -> String {
        format!("/dashboard/people/person?{}", self.fields().to_query())
    }
}

/// A link to the person, or a dash.
impl Renderable for PersonKey {
    fn render_to(&self, buffer: &mut Buffer) {
        maud! {
            @if self.is_unknown() { span.dash { "–" } } @else { span.address { a href=(self.path()) { (self.label()) } } }
        }
        .render_to(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_shortened_at_characters() {
        let event = |data: &str| EventItem { data: serde_json::from_str(data).unwrap(), ..EventItem::default() };
        assert_eq!(event("null").short_data(), "");
        assert_eq!(event("{}").short_data(), "");
        assert_eq!(event(r#"{"a":1.10}"#).short_data(), r#"{"a":1.10}"#);
        assert_eq!(event(&format!(r#"{{"a":"{}"}}"#, "é".repeat(200))).short_data().chars().count(), 91);
    }

    #[test]
    fn people_have_an_address() {
        let key = PersonKey { user_id: Some("a&b".into()), email: None };
        assert_eq!((key.path().as_str(), key.label()), ("/dashboard/people/person?user_id=a%26b", "a&b"));
    }
}
