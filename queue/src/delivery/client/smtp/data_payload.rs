//! The payload of DATA or BDAT: command, body and terminator.

use super::connection::{CheckedMessage, DataMethod};
use super::content::CheckedBody;

pub(super) const FINAL_DOT: &[u8] = b".\r\n";

/// The content of one message with its command and terminator.
pub(super) struct DataPayload {
    /// `BDAT n LAST`; empty for DATA.
    pub head: Vec<u8>,
    /// Bytes of the content alone, as transferred.
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

    /// Bytes up to and including the one that ends the message for the host.
    pub(super) fn total_bytes(&self) -> u64 {
        (self.head.len() + self.terminator().len()) as u64 + self.size_bytes
    }

    pub(super) fn slices<'a>(&'a self, checked: &'a CheckedMessage<'_>) -> impl Iterator<Item = &'a [u8]> {
        std::iter::once(self.head.as_slice())
            .chain(checked.content.slices(&checked.message.body, self.stuffed))
            .chain(std::iter::once(self.terminator()))
            .filter(|slice| !slice.is_empty())
    }
}
