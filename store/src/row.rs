//! Rows: how a noun lies in the store.
//!
//! A row is JSON, `[format version, {…}]`, so that an operator can read it with the engine's own
//! tools and every released version decodes for ever. The stored shape of a noun is a type of its
//! own beside the noun's functions (serde's remote derive checks it against the domain type, so that
//! neither drifts without the compiler saying so).

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::ReadError;

/// The version that is written. Older ones are read by the noun that changed.
const FORMAT: &[u8] = b"[1,";

/// A noun that has a stored shape. JSON by name and no generic form: so each shape is compiled once, here, and not in
/// every room that reads the noun.
pub(crate) trait RowCodec: Sized {
    /// Adds the stored shape.
    fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()>;
    /// Reads it.
    fn read(json: &[u8]) -> serde_json::Result<Self>;
}

/// Says which type is the stored shape of a noun: another one, or its own.
macro_rules! stored {
    ($noun:ty) => {
        $crate::row::stored!($noun as $noun);
    };
    ($noun:ty as $row:ty) => {
        impl $crate::row::RowCodec for $noun {
            fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
                <$row>::serialize(self, &mut serde_json::Serializer::new(out))
            }
            fn read(json: &[u8]) -> serde_json::Result<Self> {
                let mut json = serde_json::Deserializer::from_slice(json);
                let noun = <$row>::deserialize(&mut json)?;
                json.end().map(|()| noun)
            }
        }
    };
}
pub(crate) use stored;

/// A value whose stored shape is its own, where the room that it belongs to says what it is.
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
    /// Where rows are written before they are copied into bytes of just their length.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}
/// A row larger than this does not leave its buffer behind.
const SCRATCH_BYTES_MAX: usize = 64 * 1024;

/// The bytes of a row.
pub(crate) fn encode<T: RowCodec>(noun: &T) -> Bytes {
    SCRATCH.with_borrow_mut(|out| {
        out.clear();
        out.extend_from_slice(FORMAT);
        // Into memory, and of types that JSON has: this does not fail.
        let _ = noun.write(out);
        out.push(b']');
        let row = Bytes::copy_from_slice(out);
        if out.capacity() > SCRATCH_BYTES_MAX {
            *out = Vec::new();
        }
        row
    })
}

/// The noun of a row.
pub(crate) fn decode<T: RowCodec>(row: &[u8]) -> Result<T, ReadError> {
    let inner = row
        .strip_prefix(FORMAT)
        .and_then(|rest| rest.strip_suffix(b"]"))
        .ok_or_else(|| damaged("a row of a format that this version does not know; run the newer version"))?;
    T::read(inner).map_err(damaged)
}

/// The error for a row that cannot be what was written.
pub(crate) fn damaged(what: impl std::fmt::Display) -> ReadError {
    ReadError::Corrupt(Arc::from(what.to_string()))
}
