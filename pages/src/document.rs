//! Rendered documents by path.

use std::collections::BTreeMap;
use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::asset::hex_hash;

/// How long others may keep a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// For ever: its name changes with its content.
    Immutable,
    /// For five minutes; afterwards it is compared by its entity tag.
    Revalidated,
}

/// A document with what its response needs.
#[derive(Debug, Clone)]
pub struct Document {
    pub media_type: &'static str,
    pub body: Bytes,
    /// The body in gzip.
    pub gzip: Bytes,
    /// The opaque part of the strong entity tag of the body (RFC 9110 8.8.3).
    pub entity_tag: String,
    pub freshness: Freshness,
}

impl Document {
    pub fn new(media_type: &'static str, body: String, freshness: Freshness) -> Self {
        let entity_tag = hex_hash(body.as_bytes());
        Self { media_type, gzip: compress(body.as_bytes()), body: body.into(), entity_tag, freshness }
    }
}

/// Empty if it fails, which it does not: a vector takes all.
fn compress(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.unwrap_or_default().into()
}

/// Documents by path.
#[derive(Debug, Clone, Default)]
pub struct DocumentSet {
    documents: BTreeMap<String, Document>,
}

impl DocumentSet {
    pub fn insert(&mut self, path: String, document: Document) {
        self.documents.insert(path, document);
    }

    pub fn get(&self, path: &str) -> Option<&Document> {
        self.documents.get(path)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Document)> {
        self.documents.iter().map(|(path, document)| (path.as_str(), document))
    }

    /// The memory that the documents occupy, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.documents.values().map(|document| document.body.len() + document.gzip.len()).sum()
    }
}
