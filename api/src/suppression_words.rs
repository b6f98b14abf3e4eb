//! The words of suppressions in the API: for schemas, parameters and error messages.

use mail::suppression::{SuppressionReason, SuppressionSource};

pub(crate) fn reason_words() -> Vec<&'static str> {
    SuppressionReason::ALL.iter().map(|reason| reason.word()).collect()
}

pub(crate) fn source_words() -> Vec<&'static str> {
    SuppressionSource::ALL.iter().map(|source| source.word()).collect()
}
