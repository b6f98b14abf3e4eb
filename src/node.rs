//! Identity of this node: a name that is new at every start, stored in a file of the data directory.
//!
//! The file is locked while the process runs, so a data directory serves one process. A process that gets the lock
//! can conclude that the node named in the file is dead, and can evict it without waiting for its lease to expire.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use message::address::DomainName;
use store::engine::private_files;

/// File name in the data directory.
pub const NODE_FILE: &str = "node";
/// Maximum size of the file; a name is a host name and a number.
const NAME_BYTES_MAX: u64 = 512;

/// Identity of this node. Holds the lock of the data directory until the last clone is dropped.
#[derive(Debug, Clone)]
pub struct NodeIdentity {
    pub name: String,
    /// Name of the node that used this data directory before. It is dead.
    pub previous_name: Option<String>,
    /// Locked while the process runs.
    file: Arc<File>,
}

impl NodeIdentity {
    /// Locks a data directory and creates a new name with `unique`. The name is written to the file by
    /// [`persist`](Self::persist).
    ///
    /// # Errors
    /// Another process holds the lock, or the file cannot be opened.
    pub fn claim_directory(data_dir: &Path, hostname: &DomainName, unique: u64) -> std::io::Result<Self> {
        let path = data_dir.join(NODE_FILE);
        let file = private_files::open_or_create_file(&path)?;
        store::engine::lock_with_retry(&file).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => {
                std::io::Error::other("in use by another process; a data directory serves one running server")
            }
            _ => error,
        })?;
        let mut previous_name = String::new();
        // A file that is not UTF-8 names no previous node.
        let _ = (&file).take(NAME_BYTES_MAX).read_to_string(&mut previous_name);
        let name = format!("{hostname} {unique:016x}");
        let previous_name = Some(previous_name.trim().to_owned()).filter(|previous_name| !previous_name.is_empty());
        Ok(Self { name, previous_name, file: Arc::new(file) })
    }

    /// Writes the name to the file. Call it before other nodes see the name, and after all checks of the start passed.
    pub fn persist(&self) -> std::io::Result<()> {
        let mut file = &*self.file;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(self.name.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_serves_one_process_and_stores_the_previous_node() {
        let directory = tempfile::tempdir().unwrap();
        let hostname: DomainName = "mx.example".parse().unwrap();
        let first = NodeIdentity::claim_directory(directory.path(), &hostname, 1).unwrap();
        assert_eq!(first.previous_name, None);
        first.persist().unwrap();
        let second = NodeIdentity::claim_directory(directory.path(), &hostname, 2).unwrap_err().to_string();
        assert!(second.contains("in use by another process"), "{second}");
        drop(first);
        let second = NodeIdentity::claim_directory(directory.path(), &hostname, 2).unwrap();
        assert_eq!(second.previous_name.as_deref(), Some("mx.example 0000000000000001"));
    }
}
