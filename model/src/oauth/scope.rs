//! Scopes of grants and access tokens (RFC 6749 3.3).

use std::fmt;
use std::str::FromStr;

use message::words;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::user::UserRole;

words! {
    /// A part of what a grant allows. Secrets, money and the team are in none.
    OAuthScope {
        /// Reads everything except secrets.
        Read = "read",
        /// Sends email.
        Send = "send",
        /// Creates, changes and deletes objects.
        Manage = "manage",
    }
}

impl OAuthScope {
    /// The least role of a user who may give it.
    pub fn least_role(self) -> UserRole {
        match self {
            Self::Read => UserRole::Viewer,
            Self::Send | Self::Manage => UserRole::Developer,
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Send => 2,
            Self::Manage => 4,
        }
    }
}

impl FromStr for OAuthScope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::from_word(text).ok_or_else(|| "must be `read`, `send` or `manage`".to_owned())
    }
}

/// Scopes, written as words with spaces between them.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ScopeSet(u8);

impl ScopeSet {
    /// The known scopes of a `scope` parameter. Others, for example `offline_access`, are ignored (RFC 6749 3.3).
    pub fn parse_known(text: &str) -> Self {
        text.split(' ').filter_map(|word| word.parse().ok()).collect()
    }

    pub fn contains(self, scope: OAuthScope) -> bool {
        self.0 & scope.bit() != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn is_subset_of(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = OAuthScope> {
        OAuthScope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }

    /// The scopes that a user with this role may give.
    pub fn permitted_for(self, role: UserRole) -> Self {
        self.iter().filter(|scope| role >= scope.least_role()).collect()
    }
}

impl FromIterator<OAuthScope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = OAuthScope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.iter().map(OAuthScope::word).collect();
        f.write_str(&words.join(" "))
    }
}

impl fmt::Debug for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopeSet({self})")
    }
}

impl Serialize for ScopeSet {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ScopeSet {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(input)?;
        text.split(' ').filter(|word| !word.is_empty()).map(|word| word.parse().map_err(D::Error::custom)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_words() {
        let scopes = ScopeSet::parse_known("send offline_access read");
        assert_eq!(scopes.to_string(), "read send");
        assert!(ScopeSet::parse_known("admin").is_empty());
        assert_eq!(serde_json::to_string(&scopes).unwrap(), r#""read send""#);
        assert_eq!(serde_json::from_str::<ScopeSet>(r#""read send""#).unwrap(), scopes);
        assert!(serde_json::from_str::<ScopeSet>(r#""root""#).is_err());
        assert!(
            ScopeSet::parse_known("read").is_subset_of(scopes) && !ScopeSet::parse_known("manage").is_subset_of(scopes)
        );
    }

    #[test]
    fn a_viewer_gives_read_only() {
        let all: ScopeSet = OAuthScope::ALL.into_iter().collect();
        assert_eq!(all.permitted_for(UserRole::Viewer).to_string(), "read");
        assert_eq!(all.permitted_for(UserRole::Developer), all);
    }
}
