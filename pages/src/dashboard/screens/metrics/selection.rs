//! The emails that are counted: all, those with one value of a dimension, or those of a category, alone or together with
//! a domain.

use crate::dashboard::prelude::*;

/// A property by which the API counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dimension {
    Domain,
    Tag,
    Template,
    Provider,
    Category,
}

/// The category of emails that were counted before counts had categories.
pub(super) const UNKNOWN_CATEGORY: &str = "(unknown)";
/// The value under which the API counts what has no row of its own.
pub(super) const OTHER: &str = "(other)";
const CATEGORIES: [&str; 3] = ["transactional", "product", "newsletter"];

impl Dimension {
    pub(super) const ALL: [Self; 5] = [Self::Domain, Self::Category, Self::Tag, Self::Template, Self::Provider];

    /// The name in the API, the title, and the name of what is counted as [`OTHER`].
    const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Domain => ("domain", "Domain", "Other domains"),
            Self::Tag => ("tag", "Tag", "Other tags"),
            Self::Template => ("template", "Template", "Other templates"),
            Self::Provider => ("provider", "Provider", "Other providers"),
            Self::Category => ("category", "Category", "Other categories"),
        }
    }

    /// The name in the API.
    pub(super) const fn word(self) -> &'static str {
        self.names().0
    }

    pub(super) const fn title(self) -> &'static str {
        self.names().1
    }

    /// The name of what is counted as [`OTHER`].
    pub(super) const fn others(self) -> &'static str {
        self.names().2
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

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CountedEmails {
    pub(super) only: Option<Selection>,
    /// The API counts categories alone, or together with a domain.
    pub(super) category: Option<&'static str>,
    /// A category was chosen that cannot be combined with the selection.
    pub(super) is_category_ignored: bool,
}

impl CountedEmails {
    /// Reads the filters `only` and `category`.
    pub(super) fn read(query: &Fields) -> Self {
        let only = Selection::parse(query.get("only"));
        let category = CATEGORIES.into_iter().find(|word| *word == query.get("category"));
        let is_combined = only.as_ref().is_none_or(|only| only.dimension == Dimension::Domain);
        Self {
            only,
            category: category.filter(|_| is_combined),
            is_category_ignored: category.is_some() && !is_combined,
        }
    }

    pub(super) fn domain(&self) -> Option<&str> {
        self.only.as_ref().filter(|only| only.dimension == Dimension::Domain).map(|only| only.value.as_str())
    }

    /// The selection whose rows are taken from the answer; domains and categories are filters of the API.
    fn selected_rows(&self) -> Option<&Selection> {
        self.only.as_ref().filter(|only| only.dimension != Dimension::Domain)
    }

    /// Whether the answer has one row for each period.
    pub(super) fn has_total_rows(&self) -> bool {
        self.selected_rows().is_none()
    }

    /// The value of the rows that are counted; `None` for all rows.
    pub(super) fn value(&self) -> Option<&str> {
        self.selected_rows().map(|only| only.value.as_str())
    }

    pub(super) fn is_provider(&self) -> bool {
        self.only.as_ref().is_some_and(|only| only.dimension == Dimension::Provider)
    }

    /// The call that counts these emails.
    pub(super) fn call(&self, range: DateRange) -> Call {
        range
            .within(Call::new("get_email_metrics"))
            .query("dimensions", self.selected_rows().map_or("", |only| only.dimension.word()))
            .query("domain", self.domain().unwrap_or_default())
            .query("category", self.category.unwrap_or_default())
    }

    /// The call that compares the values of a dimension. Domains are compared within the category, and categories within
    /// the domain; the others are of all emails.
    pub(super) fn breakdown_call(&self, range: DateRange, by: Dimension) -> Call {
        let call = range.within(Call::new("get_email_metrics")).query("dimensions", by.word());
        match by {
            Dimension::Domain => call.query("category", self.category.unwrap_or_default()),
            Dimension::Category => call.query("domain", self.domain().unwrap_or_default()),
            Dimension::Tag | Dimension::Template | Dimension::Provider => call,
        }
    }

    /// `All emails`, `Domain example.com, newsletter`.
    pub(super) fn label(&self) -> String {
        match (&self.only, self.category) {
            (None, None) => "All emails".to_owned(),
            (None, Some(category)) => format!("Category {category}"),
            (Some(only), None) => only.label(),
            (Some(only), Some(category)) => format!("{}, category {category}", only.label()),
        }
    }
}

pub(super) fn category_filter() -> Filter {
    let choices = choices(&[("transactional", "Transactional"), ("product", "Product"), ("newsletter", "Newsletter")]);
    Filter::select_or_all("category", "Category", "All categories", choices)
}

/// The domains of the account, as choices; none if they cannot be read.
pub(super) async fn domains(context: &Context<'_>) -> Vec<Selection> {
    let domains = context.domain_choices().await.unwrap_or_default();
    domains.into_iter().map(|(_, name)| Selection::new(Dimension::Domain, name)).collect()
}

/// The filter with these choices.
pub(super) fn filter(mut choices: Vec<Selection>) -> Filter {
    choices.sort();
    choices.dedup();
    let choices = choices.iter().map(|choice| (choice.key(), choice.label()));
    Filter::select_or_all("only", "Emails", "All emails", choices)
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

    #[test]
    fn a_category_is_combined_with_a_domain_only() {
        let read = |query: &str| CountedEmails::read(&Fields::parse(query.as_bytes()));
        let both = read("only=domain:a.example&category=product");
        assert_eq!((both.domain(), both.category, both.value()), (Some("a.example"), Some("product"), None));
        assert_eq!(both.label(), "Domain a.example, category product");
        let tag = read("only=tag:x:y&category=product");
        assert_eq!((tag.category, tag.is_category_ignored, tag.value()), (None, true, Some("x:y")));
        assert_eq!(read("category=spam"), CountedEmails::default());
    }
}
