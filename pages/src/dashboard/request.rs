//! A request for a page: path, query, and the fields of a form.

use std::borrow::Cow;

use bytes::Bytes;

/// Most fields of a form or a query.
const FIELDS_MAX: usize = 2_000;

/// Name and value pairs in the order of the form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads the fields of a form; `None` if it has too many, so that none is lost unnoticed.
    pub fn parse_form(encoded: &[u8]) -> Option<Self> {
        (form_urlencoded::parse(encoded).take(FIELDS_MAX + 1).count() <= FIELDS_MAX).then(|| Self::parse(encoded))
    }

    /// Reads `application/x-www-form-urlencoded` data, such as a query; what exceeds the limit is left out.
    pub fn parse(encoded: &[u8]) -> Self {
        let pairs = form_urlencoded::parse(encoded).take(FIELDS_MAX);
        Self(pairs.map(|(name, value)| (name.into_owned(), normalize_lines(value).into_owned())).collect())
    }

    pub fn from_pairs(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }

    /// The first value; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        self.find(name).unwrap_or_default()
    }

    /// The first value.
    pub fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// All values of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Sets a value in place of all values of its name; removes the name if the value is empty.
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut pairs: Vec<_> = self.0.iter().filter(|(other, _)| other != name).cloned().collect();
        if !value.is_empty() {
            pairs.push((name.to_owned(), value.to_owned()));
        }
        Self(pairs)
    }

    /// Encodes the fields that are not empty as a query.
    pub fn to_query(&self) -> String {
        let filled = self.0.iter().filter(|(_, value)| !value.is_empty());
        form_urlencoded::Serializer::new(String::new()).extend_pairs(filled).finish()
    }
}

/// Most objects that one form changes: a page of their list.
const MARKED_MAX: usize = 50;

/// The ids of the objects that are marked in a list, each once.
pub fn marked_ids<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ids: Vec<&str> = Vec::new();
    for id in all {
        if ids.len() < MARKED_MAX && !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// Browsers send line ends as CRLF (HTML, "constructing the entry list").
fn normalize_lines(value: Cow<'_, str>) -> Cow<'_, str> {
    if value.contains('\r') { Cow::Owned(value.replace("\r\n", "\n").replace('\r', "\n")) } else { value }
}

/// A file that a form sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadedFile {
    /// The name of the form's field.
    pub field: String,
    pub file_name: String,
    pub content: Bytes,
}

#[derive(Debug, Clone, Default)]
pub struct PageRequest {
    pub is_post: bool,
    /// Percent-encoded.
    pub path: String,
    pub query: Fields,
    /// The fields of the form; empty for GET.
    pub form: Fields,
    pub files: Vec<UploadedFile>,
    /// The page that the person wanted before they asked for a sign-in link, from the browser's cookie.
    pub wanted: Option<String>,
}

impl PageRequest {
    /// Path and query, without the notice of what was done before.
    pub fn target(&self) -> String {
        self.target_with("done", "")
    }

    /// [`Self::target`] with another value of a query field.
    pub fn target_with(&self, name: &str, value: &str) -> String {
        let query = self.query.with(name, value).with("done", "").to_query();
        if query.is_empty() { self.path.clone() } else { format!("{}?{query}", self.path) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_changed() {
        let fields = Fields::parse(b"a=1&b=x%0D%0Ay&a=2&c=");
        assert_eq!((fields.get("a"), fields.get("b"), fields.find("c")), ("1", "x\ny", Some("")));
        assert_eq!(fields.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(fields.with("a", "3 &").to_query(), "b=x%0Ay&a=3+%26");
        assert_eq!(fields.with("a", "").to_query(), "b=x%0Ay");
    }
}
