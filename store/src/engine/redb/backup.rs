//! Backup and restore: a whole store in one checksummed file.
//!
//! ```text
//! backup file, numbers little-endian, checksums CRC-32
//!   header   magic "postrbak", format u32 (1), checksum u32 of the 12 bytes before
//!   blocks   kind u8, size u32, checksum u32 of kind, size and content, content
//!     1 rows   put entries of the log's row part (record.rs), about 256 KiB of them
//!     2 body   key size u16, key, the bytes
//!     9 end    rows u64, bodies u64; nothing follows
//! ```
//!
//! A backup reads one snapshot after a checkpoint, without blocking other work; segments are not removed until it ends.
//! It is written under a temporary name and renamed once it is complete and durable.
//!
//! A restore first reads the whole file, and starts to write only if every checksum is valid. While it writes, a file
//! `restoring` exists in the directory, which cannot be opened then.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::record::{LogEntries, LogEntry, encode_row};
use super::state::EngineState;
use super::{LOCK_FILE, RedbEngine};
use crate::engine::{
    BODY_BYTES_MAX, BackupError, BackupProgress, Batch, CommitError, KEY_BYTES_MAX, Key, OpenError, ReadError,
    RedbOptions, ScanOrder, private_files,
};

/// Marker of a restore in progress.
pub(crate) const RESTORING_FILE: &str = "restoring";
/// The format that this version writes, and the newest that it reads.
const BACKUP_FORMAT: u32 = 1;
const MAGIC: &[u8; 8] = b"postrbak";
const HEADER_BYTES: usize = 16;
const ROWS: u8 = 1;
const BODY: u8 = 2;
const END: u8 = 9;
/// Approximate size of a block of rows.
const BLOCK_BYTES: usize = 256 << 10;
/// Rows and bodies are restored in batches of this size, one log group each.
const RESTORE_BATCH_BYTES: usize = 4 << 20;

/// Rows or bodies in key order.
pub(crate) type RowIterator = Box<dyn Iterator<Item = Result<(Key, Bytes), ReadError>> + Send>;

/// Prevents the removal of segments while it exists.
pub(super) struct SegmentPin(pub(super) Arc<EngineState>);

impl SegmentPin {
    pub(super) fn new(shared: &Arc<EngineState>) -> Self {
        shared.pins.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(shared))
    }
}

impl Drop for SegmentPin {
    fn drop(&mut self) {
        self.0.pins.fetch_sub(1, Ordering::SeqCst);
    }
}

impl RedbEngine {
    /// Writes a backup of the current snapshot.
    pub(crate) async fn backup(
        &self,
        file: &Path,
        progress: impl FnMut(BackupProgress) + Send + 'static,
    ) -> Result<BackupProgress, BackupError> {
        let file = file.to_owned();
        let everything = self.read_all().await?;
        let work = tokio::task::spawn_blocking(move || {
            let (rows, bodies) = everything()?;
            write(&file, rows, bodies, progress)
        });
        work.await.map_err(ReadError::io)?
    }

    /// Returns a function that opens iterators over all committed rows and bodies in key order. Call it, and use the
    /// iterators, on a blocking thread.
    pub(crate) async fn read_all(
        &self,
    ) -> Result<impl FnOnce() -> Result<(RowIterator, RowIterator), ReadError> + Send + use<>, CommitError> {
        let pin = SegmentPin::new(&self.shared);
        self.flush().await?;
        Ok(move || {
            let base = pin.0.index_snapshot();
            let all = Bytes::new()..Bytes::from(vec![0xFF; KEY_BYTES_MAX + 1]);
            let rows: RowIterator = Box::new(base.rows(&all, ScanOrder::Ascending)?);
            let bodies = base.body_locations()?.map(move |entry| {
                let (key, location) = entry?;
                Ok((key, pin.0.segments.read(location)?))
            });
            Ok((rows, Box::new(bodies) as RowIterator))
        })
    }
}

/// Writes a backup file from rows and bodies in key order.
pub(crate) fn write(
    path: &Path,
    rows: RowIterator,
    bodies: RowIterator,
    progress: impl FnMut(BackupProgress),
) -> Result<BackupProgress, BackupError> {
    if path.exists() {
        return Err(BackupError::Exists { file: path.to_owned() });
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let result = write_partial(&partial, rows, bodies, progress);
    let finished = result.and_then(|done| {
        std::fs::rename(&partial, path).map_err(|error| BackupError::io(path, error))?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| BackupError::io(directory, error))?;
        Ok(done)
    });
    if finished.is_err() {
        drop(std::fs::remove_file(&partial));
    }
    finished
}

fn write_partial(
    path: &Path,
    rows: RowIterator,
    bodies: RowIterator,
    mut progress: impl FnMut(BackupProgress),
) -> Result<BackupProgress, BackupError> {
    let failed = |error| BackupError::io(path, error);
    let mut out = BufWriter::with_capacity(BLOCK_BYTES, private_files::create_file(path).map_err(failed)?);
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&BACKUP_FORMAT.to_le_bytes());
    header.extend_from_slice(&crc32fast::hash(&header).to_le_bytes());
    out.write_all(&header).map_err(failed)?;
    let mut done = BackupProgress { bytes: header.len() as u64, ..BackupProgress::default() };
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    for row in rows {
        let (key, value) = row?;
        encode_row(&mut block, &key, Some(&value));
        done.rows += 1;
        if block.len() >= BLOCK_BYTES {
            done.bytes += write_block(&mut out, ROWS, &[&block]).map_err(failed)?;
            block.clear();
            progress(done);
        }
    }
    if !block.is_empty() {
        done.bytes += write_block(&mut out, ROWS, &[&block]).map_err(failed)?;
    }
    for body in bodies {
        let (key, bytes) = body?;
        let key_bytes = u16::try_from(key.len()).unwrap_or(u16::MAX).to_le_bytes();
        done.bytes += write_block(&mut out, BODY, &[&key_bytes, &key, &bytes]).map_err(failed)?;
        done.bodies += 1;
        progress(done);
    }
    let counts = [done.rows.to_le_bytes(), done.bodies.to_le_bytes()].concat();
    done.bytes += write_block(&mut out, END, &[&counts]).map_err(failed)?;
    let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    progress(done);
    Ok(done)
}

fn write_block(out: &mut impl Write, kind: u8, parts: &[&[u8]]) -> std::io::Result<u64> {
    let size_bytes: usize = parts.iter().map(|part| part.len()).sum();
    let size = u32::try_from(size_bytes).map_err(std::io::Error::other)?.to_le_bytes();
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&[kind]);
    checksum.update(&size);
    parts.iter().for_each(|part| checksum.update(part));
    out.write_all(&[kind])?;
    out.write_all(&size)?;
    out.write_all(&checksum.finalize().to_le_bytes())?;
    for part in parts {
        out.write_all(part)?;
    }
    Ok(BLOCK_HEADER_BYTES + size_bytes as u64)
}

const BLOCK_HEADER_BYTES: u64 = 9;

/// Reads a backup file block by block.
struct BackupReader {
    path: PathBuf,
    input: BufReader<File>,
    at: u64,
    left: u64,
}

impl BackupReader {
    fn open(path: &Path) -> Result<Self, BackupError> {
        let failed = |error| BackupError::io(path, error);
        let file = File::open(path).map_err(failed)?;
        let left = file.metadata().map_err(failed)?.len();
        let input = BufReader::with_capacity(BLOCK_BYTES, file);
        let mut reader = Self { path: path.to_owned(), input, at: 0, left };
        let header = reader.take(HEADER_BYTES as u64)?;
        let (content, checksum) = header.split_at(HEADER_BYTES - 4);
        if !content.starts_with(MAGIC) || checksum != crc32fast::hash(content).to_le_bytes() {
            return Err(reader.damaged("not a backup, or the header is damaged"));
        }
        match content.last_chunk().map(|format| u32::from_le_bytes(*format)) {
            Some(BACKUP_FORMAT) => Ok(reader),
            found => {
                let (file, found) = (path.to_owned(), found.unwrap_or(0));
                Err(OpenError::Newer { file, found, known: BACKUP_FORMAT }.into())
            }
        }
    }

    fn damaged(&self, reason: &str) -> BackupError {
        BackupError::Damaged { file: self.path.clone(), reason: format!("{reason} (at byte {})", self.at) }
    }

    fn take(&mut self, count: u64) -> Result<Vec<u8>, BackupError> {
        if count > self.left {
            return Err(self.damaged("the file is truncated"));
        }
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(0)];
        self.input.read_exact(&mut bytes).map_err(|error| BackupError::io(&self.path, error))?;
        self.at += count;
        self.left -= count;
        Ok(bytes)
    }

    fn block(&mut self) -> Result<(u8, Bytes), BackupError> {
        let header = self.take(BLOCK_HEADER_BYTES)?;
        let (head, checksum) = header.split_at(5);
        let (kind, size) = head.split_at(1);
        let size = size.first_chunk().map_or(0, |size| u32::from_le_bytes(*size));
        if u64::from(size) > (BODY_BYTES_MAX + KEY_BYTES_MAX + 2) as u64 {
            return Err(self.damaged("the size of a block is invalid"));
        }
        let content = self.take(u64::from(size))?;
        let mut found = crc32fast::Hasher::new();
        found.update(head);
        found.update(&content);
        if checksum != found.finalize().to_le_bytes() {
            return Err(self.damaged("the block that ends here fails its checksum"));
        }
        Ok((kind.first().copied().unwrap_or(0), Bytes::from(content)))
    }

    /// Reads every block up to the end block, whose counts must match.
    fn read(
        &mut self,
        mut take: impl FnMut(BackupItem) -> Result<(), BackupError>,
    ) -> Result<BackupProgress, BackupError> {
        let mut done = BackupProgress::default();
        loop {
            let (kind, content) = self.block()?;
            match kind {
                ROWS => {
                    for entry in LogEntries::new(&content, 0, 0) {
                        let Ok(LogEntry::Row { key, value: Some(value) }) = entry else {
                            return Err(self.damaged("cannot decode a row"));
                        };
                        done.rows += 1;
                        take(BackupItem::Row(content.slice_ref(key), content.slice_ref(value)))?;
                    }
                }
                BODY => {
                    let key_bytes = content.first_chunk().map_or(0, |size| usize::from(u16::from_le_bytes(*size)));
                    if content.len() < 2 + key_bytes {
                        return Err(self.damaged("cannot decode a body"));
                    }
                    done.bodies += 1;
                    take(BackupItem::Body(content.slice(2..2 + key_bytes), content.slice(2 + key_bytes..)))?;
                }
                END => {
                    let counts = [done.rows.to_le_bytes(), done.bodies.to_le_bytes()].concat();
                    if content != counts || self.left != 0 {
                        return Err(self.damaged("the counts in the end block do not match"));
                    }
                    done.bytes = self.at;
                    return Ok(done);
                }
                _ => return Err(self.damaged("unknown block type")),
            }
        }
    }
}

enum BackupItem {
    Row(Key, Bytes),
    Body(Key, Bytes),
}

/// Restores a backup into a directory, and writes `additional` before it can be opened.
pub(crate) fn restore(
    file: &Path,
    options: &RedbOptions,
    additional: Batch,
    progress: impl FnMut(BackupProgress) + Send,
) -> Result<BackupProgress, BackupError> {
    let directory = options.directory.as_path();
    let failed = |error| BackupError::io(directory, error);
    private_files::create_directory(directory).map_err(failed)?;
    let mut found = std::fs::read_dir(directory).map_err(failed)?;
    // A process that only inspected the directory leaves a lock file.
    if found.any(|entry| !entry.is_ok_and(|entry| entry.file_name() == LOCK_FILE)) {
        return Err(BackupError::NotEmpty { directory: directory.to_owned() });
    }
    let whole = BackupReader::open(file)?.read(|_| Ok(()))?;
    let store = RedbEngine::open(options)?;
    let marker = directory.join(RESTORING_FILE);
    let marked = private_files::create_file(&marker).and_then(|marker| marker.sync_all());
    marked.and_then(|()| File::open(directory)?.sync_all()).map_err(failed)?;
    // Use a separate thread: the caller may be a runtime thread, which must not block on the commit.
    let loaded = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let result = load(file, &store, progress);
            let result = result.and_then(|done| {
                store.commit_blocking(additional)?;
                Ok(done)
            });
            store.close_blocking();
            result
        });
        load.join().unwrap_or_else(|_| Err(BackupError::io(directory, std::io::ErrorKind::Other)))
    })?;
    if loaded != whole {
        return Err(BackupError::Damaged {
            file: file.to_owned(),
            reason: "the file changed while it was read".into(),
        });
    }
    let unmarked = std::fs::remove_file(&marker).and_then(|()| File::open(directory)?.sync_all());
    unmarked.map_err(failed)?;
    Ok(loaded)
}

fn load(
    file: &Path,
    store: &RedbEngine,
    mut progress: impl FnMut(BackupProgress),
) -> Result<BackupProgress, BackupError> {
    let mut done = BackupProgress::default();
    let mut batch = Batch::progress();
    let mut size_bytes = 0;
    let result = BackupReader::open(file)?.read(|item| {
        match item {
            BackupItem::Row(key, value) => {
                size_bytes += key.len() + value.len();
                done.rows += 1;
                batch.put(key, value);
            }
            BackupItem::Body(key, bytes) => {
                size_bytes += key.len() + bytes.len();
                done.bodies += 1;
                batch.put_body(key, bytes);
            }
        }
        if size_bytes >= RESTORE_BATCH_BYTES {
            done.bytes += size_bytes as u64;
            size_bytes = 0;
            store.commit_blocking(std::mem::replace(&mut batch, Batch::progress()))?;
            progress(done);
        }
        Ok(())
    })?;
    store.commit_blocking(batch)?;
    progress(result);
    Ok(result)
}
