//! A page of a list that the processor was asked for: `GET /v1/invoices`, `/v1/charges`, `/v1/events`.

use serde_json::Value;

use super::reading::{Object, Problem, Unreadable, json};

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Its objects, each for the reader of its kind.
    pub objects: Vec<Value>,
    /// Whether there are more behind them.
    pub has_more: bool,
}

impl Page {
    /// Reads an answer.
    ///
    /// # Errors
    /// It is no list.
    pub fn read(body: &[u8]) -> Result<Self, Unreadable> {
        Self::from_value(json(body)?)
    }

    /// Of an answer that is JSON.
    ///
    /// # Errors
    /// It is no list.
    pub fn from_value(mut value: Value) -> Result<Self, Unreadable> {
        let has_more = Object::of(&value, "")?.is("has_more")?;
        let objects = value.get_mut("data").map(Value::take);
        let wrong = |problem| Unreadable { field: "data".to_owned(), problem };
        match objects {
            Some(Value::Array(objects)) => Ok(Self { objects, has_more }),
            Some(_) => Err(wrong(Problem::NotAList)),
            None => Err(wrong(Problem::Missing)),
        }
    }

    /// The `starting_after` of the next page; `None` when this is the last one.
    #[must_use]
    pub fn next(&self) -> Option<&str> {
        self.objects.last().filter(|_| self.has_more)?.get("id")?.as_str()
    }
}
