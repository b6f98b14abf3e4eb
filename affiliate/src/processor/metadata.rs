//! Metadata that a merchant sets on objects for the program: the referral, and the exclusion flag.

use model::id::{ReferralId, VisitId};
use serde::{Deserialize, Serialize};

use super::json_reader::{ProcessorJsonObject, ReadContext, field_of, text_in};

/// Names of the metadata fields that the program uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataKeys {
    /// Field with a visit's or referral's id.
    pub referral: String,
    /// Field with `false` if the sale earns no commission.
    pub exclude: String,
}

impl Default for MetadataKeys {
    fn default() -> Self {
        Self { referral: "stx_referral".to_owned(), exclude: "stx".to_owned() }
    }
}

/// A possible referrer of a customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferralHint {
    /// The visit, as the browser script names it.
    Visit(VisitId),
    /// The referral, as the API names it.
    Referral(ReferralId),
}

impl ReferralHint {
    /// Parses an id; `None` for any other value.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let visit = text.parse().ok().map(Self::Visit);
        visit.or_else(|| text.parse().ok().map(Self::Referral))
    }
}

/// Parsed metadata of an object; state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferralMetadata {
    /// Hints in the order in which they are tried.
    pub hints: Vec<ReferralHint>,
    /// True if the sale earns no commission.
    pub excluded: bool,
}

impl ReferralMetadata {
    /// Parses the metadata at these paths; anything that is not a metadata object is ignored.
    pub(super) fn read(object: &ProcessorJsonObject<'_>, paths: &[&str], reading: &ReadContext<'_>) -> Self {
        let mut marks = Self::default();
        for metadata in paths.iter().filter_map(|path| object.find(path)) {
            let hint = text_in(metadata, &reading.keys.referral);
            marks.add(hint.and_then(|text| ReferralHint::read(&text)));
            let exclude = &reading.keys.exclude;
            marks.excluded |= field_of(metadata, exclude) == Some("false")
                || text_in(metadata, exclude).is_some_and(|text| text.trim().eq_ignore_ascii_case("false"));
        }
        marks
    }

    /// Appends a hint.
    fn add(&mut self, hint: Option<ReferralHint>) {
        self.hints.extend(hint.filter(|hint| !self.hints.contains(hint)));
    }

    /// Moves or inserts a hint at the front.
    pub(super) fn with_first_hint(mut self, hint: Option<ReferralHint>) -> Self {
        if let Some(hint) = hint {
            self.hints.retain(|other| *other != hint);
            self.hints.insert(0, hint);
        }
        self
    }
}
