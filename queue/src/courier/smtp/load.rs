//! Content as DATA or BDAT carries it: what goes before it, the body, what ends it.

use super::connection::{CheckedMessage, DataMethod};
use super::content::CheckedBody;

/// The end of DATA.
pub(super) const FINAL_DOT: &[u8] = b".\r\n";

/// The content of one message with what goes before and behind it.
pub(super) struct DataPayload {
    /// `BDAT n LAST`, or nothing.
    pub head: Vec<u8>,
    /// The content alone, as it goes over the wire.
    pub size_bytes: u64,
    stuffed: bool,
}

impl DataPayload {
    pub(super) fn new(channel: DataMethod, content: &CheckedBody) -> Self {
        match channel {
            DataMethod::Data => Self { head: Vec::new(), size_bytes: content.stuffed_bytes(), stuffed: true },
            DataMethod::Bdat => {
                let size_bytes = content.size_bytes();
                Self { head: format!("BDAT {size_bytes} LAST\r\n").into_bytes(), size_bytes, stuffed: false }
            }
        }
    }

    fn terminator(&self) -> &'static [u8] {
        if self.stuffed { FINAL_DOT } else { b"" }
    }

    /// Everything up to the byte that ends the message for the host.
    pub(super) fn total_bytes(&self) -> u64 {
        (self.head.len() + self.terminator().len()) as u64 + self.size_bytes
    }

    pub(super) fn slices<'a>(&'a self, parcel: &'a CheckedMessage<'_>) -> impl Iterator<Item = &'a [u8]> {
        std::iter::once(self.head.as_slice())
            .chain(parcel.content.slices(&parcel.message.body, self.stuffed))
            .chain(std::iter::once(self.terminator()))
            .filter(|slice| !slice.is_empty())
    }
}
