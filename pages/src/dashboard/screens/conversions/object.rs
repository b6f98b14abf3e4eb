//! Conversions as the API gives them.

use serde::Deserialize;

use crate::dashboard::screens::events::PersonKey;

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Conversion {
    pub(super) event_id: String,
    pub(super) kind: String,
    #[serde(default)]
    pub(super) subject_id: String,
    #[serde(flatten)]
    pub(super) person: PersonKey,
    pub(super) source: Option<String>,
    pub(super) came_from: Option<String>,
    pub(super) signup_method: Option<String>,
    pub(super) gclid: Option<String>,
    pub(super) value: Option<f64>,
    pub(super) currency: Option<String>,
    pub(super) occurred_at: String,
}

impl Conversion {
    /// "Sign-up" or "Subscription".
    pub(super) fn title(&self) -> &str {
        match self.kind.as_str() {
            "sign_up" => "Sign-up",
            "subscription" => "Subscription",
            other => other,
        }
    }

    /// The value with its currency; empty if there is none.
    pub(super) fn money(&self) -> String {
        let currency = self.currency.as_deref().unwrap_or_default().to_uppercase();
        self.value.map_or_else(String::new, |value| format!("{value:.2} {currency}").trim_end().to_owned())
    }
}
