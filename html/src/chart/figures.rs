//! The figures of a chart as a table that is folded away.

use hypertext::{Buffer, prelude::*};

/// A table of figures; the first column names the row.
#[derive(Debug, Clone)]
pub struct Figures {
    caption: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Figures {
    /// A table; `caption` describes it to screen readers.
    pub fn new(caption: impl Into<String>, columns: Vec<String>) -> Self {
        Self { caption: caption.into(), columns, rows: Vec::new() }
    }

    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }
}

impl Renderable for Figures {
    fn render_to(&self, buffer: &mut Buffer) {
        maud! {
            details.figures {
                summary { "Figures" }
                div.table role="group" tabindex="0" aria-label=(self.caption) {
                    table {
                        caption.hidden { (self.caption) }
                        thead {
                            tr {
                                @for (n, column) in self.columns.iter().enumerate() {
                                    th.number[n > 0] scope="col" { (column) }
                                }
                            }
                        }
                        tbody {
                            @for row in &self.rows {
                                tr {
                                    @for (n, (cell, column)) in row.iter().zip(&self.columns).enumerate() {
                                        td.number[n > 0] data-label=(column) { (cell) }
                                    }
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
