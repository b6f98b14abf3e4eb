//! The emails that are counted: all, or those with one value of a dimension.

use serde::Deserialize;

use crate::dashboard::backend::Call;
use crate::dashboard::context::Context;
use crate::dashboard::kit::filter::{Filter, FilterControl};

/// A property by which the API counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dimension {
    Domain,
    Tag,
    Template,
    Provider,
}

impl Dimension {
    pub(super) const ALL: [Self; 4] = [Self::Domain, Self::Tag, Self::Template, Self::Provider];

    /// The name in the API.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Domain => "domain",
            Self::Tag => "tag",
            Self::Template => "template",
            Self::Provider => "provider",
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Domain => "Domain",
            Self::Tag => "Tag",
            Self::Template => "Template",
            Self::Provider => "Provider",
        }
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| dimension.word() == word)
    }
}

/// One value of a dimension.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Selection {
    pub(super) dimension: Dimension,
    pub(super) value: String,
}

impl Selection {
    pub(super) fn new(dimension: Dimension, value: impl Into<String>) -> Self {
        Self { dimension, value: value.into() }
    }

    /// Reads the filter: `domain:example.com`, `tag:flow:welcome`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (word, value) = text.split_once(':')?;
        let dimension = Dimension::parse(word).filter(|_| !value.is_empty())?;
        Some(Self::new(dimension, value))
    }

    /// The filter's value.
    pub(super) fn key(&self) -> String {
        format!("{}:{}", self.dimension.word(), self.value)
    }

    pub(super) fn label(&self) -> String {
        format!("{} {}", self.dimension.title(), self.value)
    }
}

#[derive(Debug, Default, Deserialize)]
struct NamedDomainList {
    domains: Vec<NamedDomain>,
}

#[derive(Debug, Deserialize)]
struct NamedDomain {
    #[serde(default)]
    id: String,
    name: String,
}

/// The domains of the account, as choices; none if they cannot be read.
pub(super) async fn domains(context: &Context<'_>) -> Vec<Selection> {
    if !context.allows("list_domains") {
        return Vec::new();
    }
    let list: NamedDomainList =
        context.read(&Call::new("list_domains").query("limit", "100")).await.unwrap_or_default();
    list.domains.into_iter().map(|domain| Selection::new(Dimension::Domain, domain.name)).collect()
}

/// The id of a domain of the account.
pub(super) async fn domain_id(context: &Context<'_>, name: &str) -> Option<String> {
    let list: NamedDomainList = context.read(&Call::new("list_domains").query("q", name)).await.ok()?;
    list.domains.into_iter().find(|domain| domain.name == name).map(|domain| domain.id)
}

/// The filter with these choices.
pub(super) fn filter(mut choices: Vec<Selection>) -> Filter {
    choices.sort();
    choices.dedup();
    let all = (String::new(), "All emails".to_owned());
    let choices = choices.iter().map(|choice| (choice.key(), choice.label()));
    let control = FilterControl::Select(std::iter::once(all).chain(choices).collect());
    Filter { name: "only", label: "Emails", control }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_are_read_and_written() {
        let tag = Selection::parse("tag:flow:welcome").unwrap();
        assert_eq!((tag.dimension, tag.value.as_str()), (Dimension::Tag, "flow:welcome"));
        assert_eq!(tag.key(), "tag:flow:welcome");
        for wrong in ["", "domain", "domain:", "color:red"] {
            assert_eq!(Selection::parse(wrong), None, "{wrong}");
        }
    }
}
