//! Tables of lists. A narrow screen shows each row as a card, with the column's name before each value.

use std::borrow::Cow;
use std::ops::Deref;

use hypertext::{Buffer, prelude::*};

use crate::fragment::{raw, render};

/// A table; the first column names the row.
#[must_use]
#[derive(Debug, Clone, Default)]
pub struct Table {
    caption: String,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

#[derive(Debug, Clone)]
struct Column {
    title: Cow<'static, str>,
    is_number: bool,
}

impl Table {
    /// A table; `caption` describes it to screen readers.
    pub fn new(caption: impl Into<String>, columns: &[&'static str]) -> Self {
        Self::with_columns(caption, columns.iter().copied())
    }

    /// A table whose columns are known only when it is made.
    pub fn with_columns(
        caption: impl Into<String>,
        columns: impl IntoIterator<Item = impl Into<Cow<'static, str>>>,
    ) -> Self {
        let columns = columns.into_iter().map(|title| Column { title: title.into(), is_number: false }).collect();
        Self { caption: caption.into(), columns, rows: Vec::new() }
    }

    /// Aligns the columns with these titles as numbers.
    pub fn numbers(mut self, titles: &[&str]) -> Self {
        for column in &mut self.columns {
            column.is_number |= titles.contains(&&*column.title);
        }
        self
    }

    /// Adds a row of rendered cells.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row.0);
    }

    /// Adds a row for each item.
    pub fn rows<T>(mut self, items: impl IntoIterator<Item = T>, row: impl FnMut(T) -> Row) -> Self {
        self.rows.extend(items.into_iter().map(row).map(|row| row.0));
        self
    }

    /// A table with a row for each item; [`ItemTable::column`] adds its columns.
    pub fn of<T: Copy>(caption: impl Into<String>, items: impl IntoIterator<Item = T>) -> ItemTable<T> {
        let items: Vec<T> = items.into_iter().collect();
        let rows = vec![Vec::new(); items.len()];
        ItemTable { items, table: Self { caption: caption.into(), columns: Vec::new(), rows } }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// A table of items, stated as columns: the title and the cell of an item.
#[must_use]
#[derive(Debug, Clone)]
pub struct ItemTable<T> {
    items: Vec<T>,
    table: Table,
}

impl<T: Copy> ItemTable<T> {
    pub fn column<C: Renderable>(self, title: impl Into<Cow<'static, str>>, cell: impl Fn(T) -> C) -> Self {
        self.add(title.into(), false, cell)
    }

    /// A column that is aligned as numbers.
    pub fn number<C: Renderable>(self, title: impl Into<Cow<'static, str>>, cell: impl Fn(T) -> C) -> Self {
        self.add(title.into(), true, cell)
    }

    fn add<C: Renderable>(mut self, title: Cow<'static, str>, is_number: bool, cell: impl Fn(T) -> C) -> Self {
        self.table.columns.push(Column { title, is_number });
        for (row, item) in self.table.rows.iter_mut().zip(&self.items) {
            row.push(render(cell(*item)));
        }
        self
    }
}

impl<T> From<ItemTable<T>> for Table {
    fn from(items: ItemTable<T>) -> Self {
        items.table
    }
}

impl<T> Deref for ItemTable<T> {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

impl<T> Renderable for ItemTable<T> {
    fn render_to(&self, buffer: &mut Buffer) {
        self.table.render_to(buffer);
    }
}

/// A value, or a dash.
pub fn or_dash(value: Option<impl Renderable>) -> impl Renderable {
    maud! { @match &value { Some(value) => (value), None => span.dash { "–" } } }
}

/// A link to a page, as a cell.
pub fn link(path: impl AsRef<str>, text: impl AsRef<str>) -> impl Renderable {
    let (path, text) = (path.as_ref().to_owned(), text.as_ref().to_owned());
    maud! { a href=(path) { (text) } }
}

/// A link to a page, or only its text if there is no page.
pub fn link_or_text(path: Option<String>, text: impl AsRef<str>) -> impl Renderable {
    let text = text.as_ref().to_owned();
    maud! { @match &path { Some(path) => { a href=(path) { (text) } } None => { (text) } } }
}

/// True for a cell that says nothing: a narrow screen leaves it out.
fn is_blank(cell: &str) -> bool {
    matches!(cell, "" | "–" | "<span class=\"dash\">–</span>")
}

/// A row under construction.
#[derive(Debug, Clone, Default)]
pub struct Row(Vec<String>);

impl Row {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn cell(mut self, content: impl Renderable) -> Self {
        self.0.push(render(content));
        self
    }

    /// A cell that links to a page.
    pub fn link(self, path: impl AsRef<str>, text: impl AsRef<str>) -> Self {
        self.cell(link(path, text))
    }
}

impl Renderable for Table {
    fn render_to(&self, buffer: &mut Buffer) {
        maud! {
            div.table {
                table {
                    caption.hidden { (self.caption) }
                    thead {
                        tr { @for column in &self.columns { th.number[column.is_number] scope="col" {
                                @if column.title.is_empty() { span.hidden { "Actions" } } @else { (column.title) }
                            } } }
                    }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                @for (column, cell) in self.columns.iter().zip(row) {
                                    td.number[column.is_number].blank[is_blank(cell)] data-label=(column.title) { div { (raw(cell)) } }
                                }
                            }
                        }
                    }
                }
            }
        }
        .render_to(buffer);
    }
}
