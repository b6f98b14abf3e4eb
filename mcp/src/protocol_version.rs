//! Revisions of the specification.

/// A revision that this server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtocolVersion {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    /// Requests stand alone: there is no `initialize`.
    V2026_07_28,
}

impl ProtocolVersion {
    /// All, the newest first.
    pub const ALL: [Self; 5] =
        [Self::V2026_07_28, Self::V2025_11_25, Self::V2025_06_18, Self::V2025_03_26, Self::V2024_11_05];
    /// The newest that begins with `initialize`.
    pub const NEWEST_WITH_INITIALIZE: Self = Self::V2025_11_25;

    pub const fn word(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.word() == word)
    }

    /// True if requests stand alone, and name version and capabilities in `_meta`.
    pub fn is_stateless(self) -> bool {
        self >= Self::V2026_07_28
    }

    /// The version that an `initialize` with this offer gets.
    pub fn negotiate(offer: &str) -> Self {
        Self::parse(offer).filter(|version| !version.is_stateless()).unwrap_or(Self::NEWEST_WITH_INITIALIZE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initialize_gets_a_version_that_has_it() {
        for (offer, got) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("1999-01-01", "2025-11-25"),
            ("", "2025-11-25"),
        ] {
            assert_eq!(ProtocolVersion::negotiate(offer).word(), got, "{offer}");
        }
    }
}
