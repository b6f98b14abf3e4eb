//! What a merchant writes into an object's metadata for the program: who was referred, and what earns nothing.

use mail::id::{ReferralId, VisitId};
use serde::{Deserialize, Serialize};

use super::reading::{ProcessorJsonObject, ReadContext, field_of, text_in};

/// The names of the metadata fields that the program looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataKeys {
    /// Holds a visit's or a referral's id.
    pub referral: String,
    /// Holds `false` where nothing is to be earned.
    pub exclude: String,
}

impl Default for MetadataKeys {
    fn default() -> Self {
        Self { referral: "stx_referral".to_owned(), exclude: "stx".to_owned() }
    }
}

/// Whom a customer may have been brought by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferralHint {
    /// The visit, as the browser's script names it.
    Visit(VisitId),
    /// The referral, as the API names it.
    Referral(ReferralId),
}

impl ReferralHint {
    /// Reads an id; `None` for whatever else a merchant keeps there.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let visit = text.parse().ok().map(Self::Visit);
        visit.or_else(|| text.parse().ok().map(Self::Referral))
    }
}

/// What an object's metadata say to the program. State: as the metadata stand now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferralMetadata {
    /// Who may have brought the customer, in the order in which they are to be tried.
    pub hints: Vec<ReferralHint>,
    /// Whether it is to earn nothing.
    pub excluded: bool,
}

impl ReferralMetadata {
    /// Reads the metadata that stand at these places; what is no metadata says nothing.
    pub(super) fn read(object: &ProcessorJsonObject<'_>, places: &[&str], reading: &ReadContext<'_>) -> Self {
        let mut marks = Self::default();
        for metadata in places.iter().filter_map(|place| object.find(place)) {
            let hint = text_in(metadata, &reading.keys.referral);
            marks.add(hint.and_then(|text| ReferralHint::read(&text)));
            let exclude = &reading.keys.exclude;
            marks.excluded |= field_of(metadata, exclude) == Some("false")
                || text_in(metadata, exclude).is_some_and(|text| text.trim().eq_ignore_ascii_case("false"));
        }
        marks
    }

    /// Puts a hint behind the others.
    fn add(&mut self, hint: Option<ReferralHint>) {
        self.hints.extend(hint.filter(|hint| !self.hints.contains(hint)));
    }

    /// Puts a hint before all others.
    pub(super) fn with_first_hint(mut self, hint: Option<ReferralHint>) -> Self {
        if let Some(hint) = hint {
            self.hints.retain(|other| *other != hint);
            self.hints.insert(0, hint);
        }
        self
    }
}
