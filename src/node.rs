//! Which node this is: a name that is new at every start, kept in a file of the data directory.
//!
//! The file is locked while the process lives, so a data directory serves one process; and whoever starts
//! on it knows that the node whose name stands there is dead, and need not wait until the lease is over.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use mail::address::DomainName;
use store::engine::private;

/// The file's name in the data directory.
pub const NODE_FILE: &str = "node";
/// Names are shorter: a host name and a number.
const NAME_BYTES_MAX: u64 = 512;

/// This node, while it lives.
#[derive(Debug, Clone)]
pub struct NodeIdentity {
    /// Its name.
    pub name: String,
    /// The name of the node that had this data directory before: it is dead.
    pub previous_name: Option<String>,
    /// Locked.
    file: Arc<File>,
}

impl NodeIdentity {
    /// Takes a data directory. `unique` makes the name a new one; it stands in the file when it is
    /// [written](Self::write).
    ///
    /// # Errors
    /// Another process has it, or it cannot be written.
    pub fn claim_directory(data_dir: &Path, hostname: &DomainName, unique: u64) -> std::io::Result<Self> {
        let path = data_dir.join(NODE_FILE);
        let file = private::open_or_create_file(&path)?;
        store::engine::lock_with_retry(&file).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => {
                std::io::Error::other("in use by another process; one directory belongs to one running server")
            }
            _ => error,
        })?;
        let mut former = String::new();
        // A file that is no text is nobody's name.
        let _ = (&file).take(NAME_BYTES_MAX).read_to_string(&mut former);
        let name = format!("{hostname} {unique:016x}");
        let former = Some(former.trim().to_owned()).filter(|former| !former.is_empty());
        Ok(Self { name, previous_name: former, file: Arc::new(file) })
    }

    /// Writes the name down: before others see it, and when nothing stands in the way of this start any more.
    ///
    /// # Errors
    /// It cannot be written.
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
    fn a_directory_serves_one_and_remembers_the_last() {
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
