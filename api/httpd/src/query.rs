//! The query of a request. One function names each parameter with its description and reads it, so that the OpenAPI
//! document and the reader cannot differ.
//!
//! ```text
//! request ─► Query with the given parameters ─► RequestQuery::read_query ─► input of the handler
//! document ─► Query that collects descriptions ─► the same function
//! ```

use std::str::FromStr;

use jiff::Timestamp;
use schema::{Schemas, ToSchema};
use serde::de::DeserializeOwned;
use serde::de::value::{Error, StrDeserializer};
use serde_json::{Value, json};

use crate::paging::{self, LIMIT_DEFAULT, LIMIT_MAX, PageParameters};
use crate::problem::{Problem, Result};
use crate::request::{FromRequest, Request};

/// Input that is read from the query alone.
pub trait RequestQuery: Sized + Send + 'static {
    /// Reads all parameters, in the order of the document. A parameter is required by a check after the last one: for the
    /// document no parameter is given.
    fn read_query(query: &mut Query) -> Result<Self>;
}

impl<T: RequestQuery> FromRequest for T {
    fn parameters() -> Vec<Value> {
        let mut query = Query { given: Vec::new(), described: Some(Vec::new()) };
        // An error means that a required parameter is missing. It does not matter here.
        let _ = T::read_query(&mut query);
        query.described.unwrap_or_default()
    }

    fn read(call: &Request) -> Result<Self> {
        T::read_query(&mut Query::parse(&call.query)?)
    }
}

impl RequestQuery for PageParameters {
    fn read_query(query: &mut Query) -> Result<Self> {
        query.page()
    }
}

/// The parameters of a query.
#[derive(Debug)]
pub struct Query {
    given: Vec<(String, String)>,
    /// The descriptions, if they are collected.
    described: Option<Vec<Value>>,
}

impl Query {
    /// # Errors
    /// The query is too long, or is not UTF-8.
    pub fn parse(query: &str) -> Result<Self> {
        Ok(Self { given: paging::parse_query(query)?, described: None })
    }

    /// The given parameters.
    pub fn given(&self) -> &[(String, String)] {
        &self.given
    }

    /// Describes a parameter. [`Self::given`] has its values.
    pub fn describe(&mut self, name: &str, description: &str, schema: impl FnOnce() -> Value) {
        if let Some(described) = &mut self.described {
            described.push(schema::query_parameter(name, description, schema()));
        }
    }

    /// Describes a parameter that has several values, separated by commas.
    pub fn describe_list(&mut self, name: &str, description: &str, schema: impl FnOnce() -> Value) {
        self.describe(name, description, schema);
        if let Some(parameter) = self.described.as_mut().and_then(|described| described.last_mut()) {
            (parameter["style"], parameter["explode"]) = (json!("form"), json!(false));
        }
    }

    /// Describes the last parameter as required.
    pub fn require(&mut self) {
        if let Some(parameter) = self.described.as_mut().and_then(|described| described.last_mut()) {
            (parameter["required"], parameter["allowEmptyValue"]) = (json!(true), json!(false));
        }
    }

    /// A parameter with this schema.
    ///
    /// # Errors
    /// It is given twice, as for all other parameters.
    pub fn parameter(&mut self, name: &str, description: &str, schema: impl FnOnce() -> Value) -> Result<Option<&str>> {
        self.describe(name, description, schema);
        paging::single_value(&self.given, name)
    }

    /// `limit` and `cursor`.
    pub fn page(&mut self) -> Result<PageParameters> {
        self.page_described("Number of entries", "`next_cursor` of the previous page")
    }

    /// As [`Self::page`], with descriptions of their own.
    pub fn page_described(&mut self, limit: &str, cursor: &str) -> Result<PageParameters> {
        let range = || json!({"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT});
        self.describe("limit", limit, range);
        self.describe("cursor", cursor, text_schema);
        PageParameters::from_parameters(&self.given)
    }

    /// A text.
    pub fn text(&mut self, name: &str, description: &str) -> Result<Option<String>> {
        Ok(self.parameter(name, description, text_schema)?.map(str::to_owned))
    }

    /// A text of at most this many bytes.
    pub fn bounded_text(&mut self, name: &str, description: &str, bytes_max: usize) -> Result<Option<String>> {
        match self.parameter(name, description, || json!({"type": "string", "maxLength": bytes_max}))? {
            Some(text) if text.len() > bytes_max => {
                Err(Problem::field(name, format!("is longer than {bytes_max} bytes")))
            }
            text => Ok(text.map(str::to_owned)),
        }
    }

    /// A value that a text names; `expected` describes it in the error message.
    pub fn value<T: FromStr>(&mut self, name: &str, description: &str, expected: &str) -> Result<Option<T>> {
        self.value_with(name, description, expected, text_schema)
    }

    /// As [`Self::value`], with this schema.
    pub fn value_with<T: FromStr>(
        &mut self,
        name: &str,
        description: &str,
        expected: &str,
        schema: impl FnOnce() -> Value,
    ) -> Result<Option<T>> {
        let text = self.parameter(name, description, schema)?;
        let refused = || Problem::field(name, format!("must be {expected}"));
        text.map(|text| text.trim().parse().map_err(|_| refused())).transpose()
    }

    /// The exact address of a person.
    pub fn email<T: FromStr>(&mut self) -> Result<Option<T>> {
        let schema = || json!({"type": "string", "format": "email"});
        self.value_with("email", "The exact email address, case-insensitive", "an email address", schema)
    }

    /// Several values, separated by commas; `expected` describes a value in the error message.
    pub fn values<T: FromStr>(&mut self, name: &str, description: &str, expected: &str) -> Result<Vec<T>> {
        self.describe(name, description, text_schema);
        paging::parse_values(&self.given, name, expected)
    }

    /// One word of the closed set that the type's schema lists.
    pub fn word<T: ToSchema + DeserializeOwned>(&mut self, name: &str, description: &str) -> Result<Option<T>> {
        let text = self.parameter(name, description, schema_of::<T>)?;
        let refused = || Problem::field(name, format!("must be one of {}", words_of::<T>()));
        text.map(|text| parse_word(text.trim()).ok_or_else(refused)).transpose()
    }

    /// Several words of the closed set that the type's schema lists, separated by commas.
    pub fn words<T: ToSchema + DeserializeOwned>(&mut self, name: &str, description: &str) -> Result<Vec<T>> {
        self.describe_list(name, description, || json!({"type": "array", "items": schema_of::<T>()}));
        self.given_words(name, words_of::<T>, parse_word)
    }

    /// As [`Self::words`]; the description lists the words, and the schema is a text.
    pub fn words_in_text<T: ToSchema + DeserializeOwned>(
        &mut self,
        name: &str,
        description: impl FnOnce(&str) -> String,
    ) -> Result<Vec<T>> {
        if self.described.is_some() {
            self.describe(name, &description(&words_of::<T>()), text_schema);
        }
        self.given_words(name, words_of::<T>, parse_word)
    }

    /// Several words of this closed set, separated by commas.
    pub fn words_of<T>(
        &mut self,
        name: &str,
        description: &str,
        words: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>> {
        let schema = || json!({"type": "array", "items": {"type": "string", "enum": words}});
        self.describe_list(name, description, schema);
        self.given_words(name, || words.join(", "), parse)
    }

    /// The given words of a parameter that [`Self::describe`] describes, each once; `words` lists those that are
    /// accepted.
    pub fn given_words<T>(
        &self,
        name: &str,
        words: impl Fn() -> String,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>> {
        let text = paging::single_value(&self.given, name)?.unwrap_or_default();
        let refused = || Problem::field(name, format!("must be one of {}, or several separated by commas", words()));
        let (mut given, mut values) = (Vec::new(), Vec::new());
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            // A repeated word would have its rows read and listed again.
            if !given.contains(&word) {
                values.push(parse(word).ok_or_else(refused)?);
                given.push(word);
            }
        }
        if values.is_empty() && !text.trim().is_empty() { Err(refused()) } else { Ok(values) }
    }

    /// A timestamp.
    pub fn time(&mut self, name: &str, description: &str) -> Result<Option<Timestamp>> {
        self.describe(name, description, || json!({"type": "string", "format": "date-time"}));
        paging::parse_time(&self.given, name)
    }

    /// `true` or `false`, the default.
    pub fn flag(&mut self, name: &str, description: &str) -> Result<bool> {
        match self.parameter(name, description, || json!({"type": "boolean", "default": false}))? {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Problem::field(name, "must be true or false")),
        }
    }
}

fn text_schema() -> Value {
    json!({"type": "string"})
}

fn schema_of<T: ToSchema>() -> Value {
    T::schema(&mut Schemas::default())
}

fn words_of<T: ToSchema>() -> String {
    let schema = schema_of::<T>();
    schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

fn parse_word<T: DeserializeOwned>(word: &str) -> Option<T> {
    T::deserialize(StrDeserializer::<Error>::new(word)).ok()
}
