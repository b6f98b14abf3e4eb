//! Filters of a list. They are fields of a GET form, so a filtered list has an address.

use hypertext::{Buffer, prelude::*};

use super::empty::EmptyState;
use super::table::Table;
use super::text::input_value;
use crate::dashboard::backend::Failure;
use crate::dashboard::context::{Context, List};

/// Filters that are always shown; further ones are folded away until they are used.
const SHOWN: usize = 5;

#[derive(Debug, Clone)]
pub struct Filter {
    /// The query parameter.
    pub name: &'static str,
    pub label: &'static str,
    pub control: FilterControl,
}

/// How a filter is entered.
#[derive(Debug, Clone)]
pub enum FilterControl {
    Text {
        placeholder: &'static str,
    },
    /// One of several values with their labels; an empty value means all.
    Select(Vec<(String, String)>),
    Date,
}

impl Filter {
    pub fn text(name: &'static str, label: &'static str, placeholder: &'static str) -> Self {
        Self { name, label, control: FilterControl::Text { placeholder } }
    }

    /// One of these words of the API, or all.
    pub fn words(name: &'static str, label: &'static str, words: &[&str]) -> Self {
        Self::labelled(name, label, words, super::text::sentence_case)
    }

    /// One of these words of the API, or all, with the labels that the list shows.
    pub fn labelled(
        name: &'static str,
        label: &'static str,
        words: &[&str],
        label_of: impl Fn(&str) -> String,
    ) -> Self {
        Self::select_or_all(name, label, "All", words.iter().map(|word| ((*word).to_owned(), label_of(word))))
    }

    /// One of these values with their labels; an empty value means all.
    pub fn select(name: &'static str, label: &'static str, choices: Vec<(String, String)>) -> Self {
        Self { name, label, control: FilterControl::Select(choices) }
    }

    /// One of these values with their labels, or all; `all` is the label of that choice.
    pub fn select_or_all(
        name: &'static str,
        label: &'static str,
        all: &str,
        choices: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let all = (String::new(), all.to_owned());
        Self::select(name, label, std::iter::once(all).chain(choices).collect())
    }

    pub fn date(name: &'static str, label: &'static str) -> Self {
        Self { name, label, control: FilterControl::Date }
    }
}

/// The filters of a list in their form.
#[derive(Clone, Copy)]
pub struct FilterBar<'c> {
    pub context: &'c Context<'c>,
    pub filters: &'c [Filter],
}

impl<'c> FilterBar<'c> {
    /// True if a filter is set.
    pub fn is_active(&self) -> bool {
        self.filters.iter().any(|filter| !self.context.query().get(filter.name).is_empty())
    }

    /// The filters and the list, which is replaced when they change; `empty` is the text without entries.
    pub fn with_list<T>(self, list: &'c List<T>, table: &'c Table, empty: EmptyState<'c>) -> impl Renderable {
        maud! { (self) (list.fragment(self.context, table, empty.clone())) }
    }
}

impl Renderable for FilterBar<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let request = self.context.request;
        let (shown, more) = self.filters.split_at(self.filters.len().min(SHOWN));
        let is_used = more.iter().any(|filter| !request.query.get(filter.name).is_empty());
        let view = |filter| filter_view(filter, request.query.get(filter.name));
        maud! {
            form.filters method="get" action=(request.path) role="search" data-swap="list" {
                @for filter in shown { (view(filter)) }
                @if !more.is_empty() {
                    details.more-filters open[is_used] {
                        summary { "More filters" }
                        div.filters { @for filter in more { (view(filter)) } }
                    }
                }
                div.buttons {
                    button.button type="submit" { "Filter" }
                    @if self.is_active() { a.button.quiet href=(request.path) { "Clear" } }
                }
            }
        }
        .render_to(buffer);
    }
}

/// A list whose filters were refused: the page keeps its filters, so that the person can correct them.
///
/// # Errors
/// The call failed for another reason.
pub fn or_refused<T: Default>(answer: Result<T, Failure>) -> Result<(T, Option<Failure>), Failure> {
    match answer {
        Ok(list) => Ok((list, None)),
        Err(failure) if failure.status == 400 => Ok((T::default(), Some(failure))),
        Err(failure) => Err(failure),
    }
}

/// Says which filter was refused, and why.
pub fn refused_filter(failure: &Failure) -> impl Renderable {
    maud! {
        div.notice.bad role="alert" { p { "The list could not be read: " (failure.message.replace('`', "")) } }
    }
}

fn filter_view(filter: &Filter, value: &str) -> impl Renderable {
    let id = format!("filter-{}", filter.name);
    maud! {
        div.field {
            label for=(id) { (filter.label) }
            @match &filter.control {
                FilterControl::Text { placeholder } => {
                    input id=(id) type="search" name=(filter.name) value=(input_value(value)) placeholder=(*placeholder)
                        autocomplete="off";
                }
                FilterControl::Select(choices) => {
                    select id=(id) name=(filter.name) {
                        @for (choice, label) in choices {
                            option value=(choice) selected[choice == value] { (label) }
                        }
                    }
                }
                FilterControl::Date => { input id=(id) type="date" name=(filter.name) value=(input_value(value)); }
            }
        }
    }
}
