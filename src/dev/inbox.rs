//! The development inbox: the messages that were caught, as files that survive a restart, within bounds.
//!
//! ```text
//! DATA_DIR/inbox/0000000042.eml    the message as it came
//! DATA_DIR/inbox/0000000042.json   its [`Entry`]; written last, so an entry always has its message
//! ```
//!
//! The entries are in memory; messages are read from their files. The oldest messages are removed beyond
//! [`MESSAGES_MAX`] and [`BYTES_MAX`]. Nothing is synced to disk: the inbox survives the end of the process, and not
//! necessarily a power failure.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use mail::address::Address;
use mail::received::ParsedReceivedEmail;
use serde::{Deserialize, Serialize};
use store::engine::private;

/// Messages kept.
const MESSAGES_MAX: usize = 1_000;
/// Bytes of messages kept.
const BYTES_MAX: u64 = 256 << 20;
/// Characters of the text that the list shows.
const PREVIEW_CHARS: usize = 140;
/// Bytes of the text that a search looks at.
const SEARCHED_BYTES: usize = 16 << 10;

/// The extension of a file while it is written.
const NEW_EXTENSION: &str = "new";
/// The extensions of the files that the inbox writes.
const EXTENSIONS: [&str; 3] = ["eml", "json", NEW_EXTENSION];

/// The verdict about a DKIM signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureResult {
    /// Who signed (`d=`).
    pub domain: String,
    /// The selector (`s=`).
    pub selector: String,
    /// `rsa-sha256`, `ed25519-sha256`.
    pub algorithm: String,
    /// `pass`, `fail`, …
    pub result: String,
}

/// How a message came into the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Postrider sent it: it was accepted, queued, signed and delivered.
    Delivered,
    /// A program handed it in at the mail host, without AUTH.
    HandedIn,
}

/// A message that came, before it is in the inbox.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// How it came.
    pub source: Source,
    /// MAIL FROM; none is the null path.
    pub sender: Option<Address>,
    /// RCPT TO.
    pub recipients: Vec<Address>,
    /// When.
    pub received_at: Timestamp,
    /// Over TLS.
    pub tls: bool,
    /// The message.
    pub raw: Bytes,
    /// Its signatures.
    pub dkim: Vec<SignatureResult>,
}

/// A message in the inbox: what the list shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number, from 1; never used again before the inbox is begun anew.
    pub id: u64,
    /// How it came.
    pub source: Source,
    /// The From field, decoded.
    pub from: Option<String>,
    /// MAIL FROM.
    pub envelope_from: Option<Address>,
    /// RCPT TO.
    pub to: Vec<Address>,
    /// The subject, decoded.
    pub subject: String,
    /// The beginning of its text.
    pub preview: String,
    /// When it came.
    pub received_at: Timestamp,
    /// Bytes of the message.
    pub size: u64,
    /// Over TLS.
    pub tls: bool,
    /// How many files it has.
    pub attachment_count: u64,
    /// Its signatures.
    pub dkim: Vec<SignatureResult>,
    /// What a search looks at, in lower case.
    searched: String,
}

impl Entry {
    fn new(id: u64, caught: NewMessage, reading: &ParsedReceivedEmail) -> Self {
        let text = text_of(reading);
        let heading = &reading.heading;
        let mut searched = format!("{}\n{}\n", heading.from, heading.subject);
        for address in caught.recipients.iter().chain(&caught.sender) {
            searched.push_str(&address.to_string());
            searched.push('\n');
        }
        searched.push_str(&text);
        searched.truncate(searched.floor_char_boundary(SEARCHED_BYTES));
        Self {
            id,
            source: caught.source,
            from: Some(heading.from.clone()).filter(|from| !from.is_empty()),
            envelope_from: caught.sender,
            to: caught.recipients,
            subject: heading.subject.clone(),
            preview: text.chars().take(PREVIEW_CHARS).collect(),
            received_at: caught.received_at,
            size: caught.raw.len() as u64,
            tls: caught.tls,
            attachment_count: heading.attachment_count,
            dkim: caught.dkim,
            searched: searched.to_lowercase(),
        }
    }

    /// Whether all these words, in lower case, stand in its addresses, its subject or its text.
    fn has(&self, words: &[String]) -> bool {
        words.iter().all(|word| self.searched.contains(word.as_str()))
    }
}

/// The text of a message, of its HTML where it has no other, in one line.
fn text_of(reading: &ParsedReceivedEmail) -> String {
    let text = match (&reading.text, &reading.html) {
        (Some(text), _) => text.clone(),
        (None, Some(html)) => mail_parser::decoders::html::html_to_text(html),
        (None, None) => String::new(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads a message. A parser's bug costs the reading and not the message.
pub(super) fn read(raw: &Bytes) -> ParsedReceivedEmail {
    let raw = raw.clone();
    std::panic::catch_unwind(move || ParsedReceivedEmail::parse(&raw)).unwrap_or_default()
}

#[derive(Debug, Default)]
struct Messages {
    /// The newest first.
    entries: VecDeque<Entry>,
    bytes: u64,
    last_id: u64,
}

/// The inbox. Its functions read and write files.
#[derive(Debug)]
pub struct DevInbox {
    directory: PathBuf,
    kept: Mutex<Messages>,
    /// Another number after each change; begins with the time of the start.
    version: std::sync::atomic::AtomicU64,
}

impl DevInbox {
    /// Opens the inbox in a directory, which it makes; messages without an entry are removed. Files whose names the inbox
    /// does not give are left alone.
    ///
    /// # Errors
    /// The directory cannot be made or read.
    pub fn open(directory: PathBuf, now: Timestamp) -> io::Result<Self> {
        private::create_directory(&directory)?;
        let (mut entries, mut orphans) = (Vec::new(), Vec::new());
        for file in std::fs::read_dir(&directory)? {
            let path = file?.path();
            let Some(id) = id_in_name(&path) else { continue };
            match path.extension().and_then(std::ffi::OsStr::to_str) {
                Some("json") => match read_entry(&path).filter(|entry| entry.id == id) {
                    Some(entry) => entries.push(entry),
                    None => orphans.push(path),
                },
                Some("eml") if path.with_extension("json").exists() => {}
                _ => orphans.push(path),
            }
        }
        for path in orphans {
            tracing::warn!(path = %path.display(), "removing a file of the inbox that cannot be read");
            std::fs::remove_file(&path)?;
        }
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.id));
        let kept = Messages {
            bytes: entries.iter().map(|entry| entry.size).sum(),
            last_id: entries.first().map_or(0, |entry| entry.id),
            entries: entries.into(),
        };
        let version = u64::try_from(now.as_millisecond()).unwrap_or(0).into();
        Ok(Self { directory, kept: Mutex::new(kept), version })
    }

    /// Puts a message in.
    ///
    /// # Errors
    /// Its files cannot be written.
    pub fn add(&self, caught: NewMessage) -> io::Result<Entry> {
        let (raw, reading) = (caught.raw.clone(), read(&caught.raw));
        let mut kept = self.lock();
        kept.last_id += 1;
        let entry = Entry::new(kept.last_id, caught, &reading);
        let [message, described] = self.files(entry.id);
        write(&message, &raw)?;
        write(&described, &serde_json::to_vec(&entry)?)?;
        kept.bytes += entry.size;
        kept.entries.push_front(entry.clone());
        while kept.entries.len() > MESSAGES_MAX || (kept.bytes > BYTES_MAX && kept.entries.len() > 1) {
            let Some(oldest) = kept.entries.pop_back() else { break };
            kept.bytes -= oldest.size;
            self.delete(oldest.id)?;
        }
        self.changed();
        Ok(entry)
    }

    /// The messages, the newest first: those that have all words of a search.
    #[must_use]
    pub fn list(&self, search: &str) -> Vec<Entry> {
        let words: Vec<String> = search.split_whitespace().map(str::to_lowercase).collect();
        self.lock().entries.iter().filter(|entry| entry.has(&words)).cloned().collect()
    }

    /// How many messages there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().entries.len()
    }

    /// One message and its bytes.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn get(&self, id: u64) -> io::Result<Option<(Entry, Bytes)>> {
        let kept = self.lock();
        let Some(entry) = kept.entries.iter().find(|entry| entry.id == id) else { return Ok(None) };
        let [message, _] = self.files(id);
        Ok(Some((entry.clone(), std::fs::read(message)?.into())))
    }

    /// Removes one message. False when there is none of this number.
    ///
    /// # Errors
    /// Its files cannot be removed.
    pub fn remove(&self, id: u64) -> io::Result<bool> {
        let mut kept = self.lock();
        let Some(at) = kept.entries.iter().position(|entry| entry.id == id) else { return Ok(false) };
        self.delete(id)?;
        if let Some(entry) = kept.entries.remove(at) {
            kept.bytes -= entry.size;
        }
        self.changed();
        Ok(true)
    }

    /// Removes all messages.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn clear(&self) -> io::Result<()> {
        let mut kept = self.lock();
        while let Some(id) = kept.entries.back().map(|entry| entry.id) {
            self.delete(id)?;
            kept.entries.pop_back();
        }
        kept.bytes = 0;
        self.changed();
        Ok(())
    }

    /// Another number after each change.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(std::sync::atomic::Ordering::Acquire)
    }

    fn changed(&self) {
        self.version.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
    }

    fn lock(&self) -> MutexGuard<'_, Messages> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of a message, and that of its entry.
    fn files(&self, id: u64) -> [PathBuf; 2] {
        ["eml", "json"].map(|extension| self.directory.join(file_name(id, extension)))
    }

    fn delete(&self, id: u64) -> io::Result<()> {
        for path in self.files(id).iter().rev() {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The number in the name of a file, where it is a name that the inbox gives.
fn id_in_name(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let id: u64 = name.split_once('.')?.0.parse().ok()?;
    EXTENSIONS.iter().any(|extension| name == file_name(id, extension)).then_some(id)
}

fn file_name(id: u64, extension: &str) -> String {
    format!("{id:010}.{extension}")
}

/// Removes the files of an inbox that is not open, and its directory when nothing else is in it.
///
/// # Errors
/// The directory is not there, or something cannot be removed.
pub(super) fn remove_files(directory: &Path) -> io::Result<()> {
    for file in std::fs::read_dir(directory)? {
        let path = file?.path();
        if id_in_name(&path).is_some() {
            std::fs::remove_file(path)?;
        }
    }
    match std::fs::remove_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => removed,
    }
}

fn read_entry(path: &Path) -> Option<Entry> {
    let entry: Entry = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    path.with_extension("eml").exists().then_some(entry)
}

/// Writes a file beside its place and moves it there: a reader sees all of it or nothing.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    use io::Write as _;
    let fresh = path.with_extension(NEW_EXTENSION);
    private::create_file(&fresh)?.write_all(content)?;
    std::fs::rename(fresh, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caught(subject: &str) -> NewMessage {
        let raw = format!("From: Ada <ada@example.com>\r\nSubject: {subject}\r\n\r\nHello,\r\n  Wörld\r\n");
        NewMessage {
            source: Source::HandedIn,
            sender: "ada@example.com".parse().ok(),
            recipients: vec!["you@example.net".parse().unwrap()],
            received_at: Timestamp::UNIX_EPOCH,
            tls: false,
            raw: raw.into(),
            dkim: Vec::new(),
        }
    }

    fn open(directory: &Path) -> DevInbox {
        DevInbox::open(directory.join("inbox"), Timestamp::UNIX_EPOCH).unwrap()
    }

    #[test]
    fn messages_survive_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let first = open(directory.path());
        let entry = first.add(caught("one")).unwrap();
        assert_eq!((entry.id, entry.preview.as_str()), (1, "Hello, Wörld"));
        first.add(caught("two")).unwrap();
        assert!(first.remove(1).unwrap() && !first.remove(1).unwrap());
        drop(first);
        // As a process leaves it that was killed between the two files.
        std::fs::write(directory.path().join("inbox/0000000009.eml"), "x").unwrap();
        let second = open(directory.path());
        assert!(!directory.path().join("inbox/0000000009.eml").exists());
        let (entry, raw) = second.get(2).unwrap().unwrap();
        assert_eq!((entry.subject.as_str(), &raw), ("two", &caught("two").raw));
        assert_eq!(second.add(caught("three")).unwrap().id, 3);
        second.clear().unwrap();
        assert_eq!(std::fs::read_dir(directory.path().join("inbox")).unwrap().count(), 0);
    }

    #[test]
    fn files_of_others_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path()).add(caught("one")).unwrap();
        let at = |name: &str| directory.path().join("inbox").join(name);
        let others = ["notes.txt", "letter.eml", "data.json", "7.eml", "0000000007.txt", "0000000007"];
        for name in others {
            std::fs::write(at(name), "x").unwrap();
        }
        std::fs::write(at("0000000008.new"), "x").unwrap();
        assert_eq!(open(directory.path()).count(), 1);
        assert!(!at("0000000008.new").exists());
        remove_files(&directory.path().join("inbox")).unwrap();
        assert!(!at("0000000001.eml").exists() && others.iter().all(|name| at(name).exists()));
    }

    #[test]
    fn a_search_finds_all_words_wherever_they_stand() {
        let directory = tempfile::tempdir().unwrap();
        let inbox = open(directory.path());
        inbox.add(caught("Invoice 42")).unwrap();
        inbox.add(caught("Welcome")).unwrap();
        let found = |search: &str| inbox.list(search).iter().map(|entry| entry.id).collect::<Vec<_>>();
        assert_eq!(found(""), [2, 1]);
        assert_eq!(found("invoice ADA@"), [1]);
        assert_eq!(found("wörld welcome"), [2]);
        assert_eq!(found("nobody"), Vec::<u64>::new());
    }

    #[test]
    fn the_oldest_messages_make_room() {
        let directory = tempfile::tempdir().unwrap();
        let inbox = open(directory.path());
        for _ in 0..=MESSAGES_MAX {
            inbox.add(caught("x")).unwrap();
        }
        assert_eq!(inbox.count(), MESSAGES_MAX);
        assert!(inbox.get(1).unwrap().is_none() && inbox.get(2).unwrap().is_some());
    }
}
