//! Row codec: the encoding of nouns as rows.
//!
//! A row is JSON, `[format version, {…}]`, so that an operator can read it in PostgreSQL or a backup file and every
//! released version remains decodable. The redb engine compresses it in its own files. A noun's stored shape is its
//! serde derive; golden rows (`golden_rows.rs`) fail when a change of the noun would change the shape.

use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::{Key, ReadError, Result};
use crate::key::KeyDecodeError;

/// Prefix with the current format version. A noun that changes reads its own older versions.
const FORMAT: &[u8] = b"[1,";

/// A noun with a stored shape. The methods are not generic over the format, so that each shape is compiled once in this
/// crate, and not in every crate that reads the noun.
pub(crate) trait RowCodec: Sized {
    /// Appends the stored shape as JSON.
    fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()>;
    /// Parses the stored shape.
    fn read(json: &[u8]) -> serde_json::Result<Self>;
}

/// Makes a noun storable. Its serde derive is its stored shape.
macro_rules! stored {
    ($noun:ty) => {
        impl $crate::codec::RowCodec for $noun {
            fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
                serde_json::to_writer(out, self)
            }
            fn read(json: &[u8]) -> serde_json::Result<Self> {
                serde_json::from_slice(json)
            }
        }
    };
}

/// Declares a noun whose rows are stored under account and id: its stored shape, `key_of`, `get` and `check_unchanged`.
/// `list` and `update` are declared if they are named.
macro_rules! account_rows {
    (@list $noun:ty, $id:ty, $space:ident) => {
        /// Lists an account's rows before `before`, newest first, at most `limit`.
        pub async fn list(
            store: &$crate::engine::Store,
            account: model::id::AccountId,
            before: Option<$id>,
            limit: usize,
        ) -> $crate::engine::Result<Vec<$noun>> {
            let rows = $crate::key::key($crate::key::Space::$space).account(account);
            let range = rows.range_before(before.map(<$id>::to_bytes));
            $crate::rows::scan(store, range, $crate::engine::ScanOrder::Descending, limit).await
        }
    };
    (@update $noun:ty, $id:ty, $space:ident) => {
        /// Updates a row that was read as `before`. The commit conflicts if the stored row has changed since.
        pub fn update(batch: &mut $crate::engine::Batch, before: &$noun, after: &$noun) {
            $crate::rows::update(batch, key_of(before.account, before.id), before, after);
        }
    };
    ($noun:ty, $id:ty, $space:ident $(, $method:ident)*) => {
        $crate::codec::stored!($noun);

        pub(crate) fn key_of(account: model::id::AccountId, id: $id) -> $crate::engine::Key {
            $crate::key::key($crate::key::Space::$space).account(account).id(id.to_bytes()).build()
        }

        pub async fn get(
            store: &$crate::engine::Store,
            account: model::id::AccountId,
            id: $id,
        ) -> $crate::engine::Result<Option<$noun>> {
            store.get(&key_of(account, id)).await?.map(|row| $crate::codec::decode(&row)).transpose()
        }

        /// Makes the commit conflict if the row has changed since it was read.
        pub fn check_unchanged(batch: &mut $crate::engine::Batch, read: &$noun) {
            batch.check(key_of(read.account, read.id), Some($crate::codec::encode(read)));
        }

        $($crate::codec::account_rows!(@$method $noun, $id, $space);)*
    };
}

pub(crate) use account_rows;
pub(crate) use stored;

/// A value whose type is its own stored shape, for types that belong to other crates.
pub(crate) struct SerdeRow<T>(pub(crate) T);

impl<T: Serialize + DeserializeOwned> RowCodec for SerdeRow<T> {
    fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(out, &self.0)
    }
    fn read(json: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(json).map(Self)
    }
}

thread_local! {
    /// Buffer in which rows are encoded before they are copied to bytes of exact length.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}
/// Maximum capacity of the buffer that is retained after a row.
const SCRATCH_BYTES_MAX: usize = 64 * 1024;

pub(crate) fn encode<T: RowCodec>(noun: &T) -> Bytes {
    SCRATCH.with_borrow_mut(|out| {
        out.clear();
        out.extend_from_slice(FORMAT);
        // Writing types that JSON can represent to memory does not fail.
        let _ = noun.write(out);
        out.push(b']');
        let row = Bytes::copy_from_slice(out);
        if out.capacity() > SCRATCH_BYTES_MAX {
            *out = Vec::new();
        }
        row
    })
}

pub(crate) fn decode<T: RowCodec>(row: &[u8]) -> Result<T> {
    let inner = row
        .strip_prefix(FORMAT)
        .and_then(|rest| rest.strip_suffix(b"]"))
        .ok_or_else(|| damaged("a row has an unknown format; run the newer version"))?;
    T::read(inner).map_err(damaged)
}

/// Keys of rows that [`decode_or_leave`] has logged.
static LOGGED: Mutex<BTreeSet<Key>> = Mutex::new(BTreeSet::new());
const LOGGED_MAX: usize = 1_000;

/// Decodes a row of work that waits for any node. A row that cannot be decoded is left where it is, so that the other
/// work goes on: a newer node of the cluster may have written it, and processes it. Each row is logged once.
pub(crate) fn decode_or_leave<T: RowCodec>(at: &Key, row: &[u8]) -> Option<T> {
    match decode(row) {
        Ok(noun) => Some(noun),
        Err(error) => {
            let mut logged = LOGGED.lock();
            if logged.len() < LOGGED_MAX && logged.insert(at.clone()) {
                tracing::warn!(%error, "cannot decode a row of waiting work; it waits for a newer node");
            }
            None
        }
    }
}

/// The error for a row that cannot be decoded.
pub(crate) fn damaged(reason: impl std::fmt::Display) -> ReadError {
    ReadError::Corrupt(Arc::from(reason.to_string()))
}

impl From<KeyDecodeError> for ReadError {
    fn from(error: KeyDecodeError) -> Self {
        damaged(error)
    }
}
