//! The development inbox: captured messages as files that survive a restart, limited in number and size.
//!
//! ```text
//! DATA_DIR/inbox/0000000042.eml    the message as received
//! DATA_DIR/inbox/0000000042.json   its [`Entry`]; written last, so every entry has its message
//! DATA_DIR/inbox/last_id           the highest number used; written before the newest message is removed
//! ```
//!
//! Entries are in memory; messages are read from their files. The oldest messages above [`MESSAGES_MAX`] and
//! [`BYTES_MAX`] are removed. Files are not synced: the inbox survives the end of the process, but possibly not a power
//! failure.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::Timestamp;
use message::address::Address;
use message::received::ParsedReceivedEmail;
use serde::{Deserialize, Serialize};
use store::engine::private_files;
use tokio::sync::watch;

use super::inbox_queries::InboxQuery;

const MESSAGES_MAX: usize = 1_000;
/// Maximum size of all messages in bytes.
const BYTES_MAX: u64 = 256 << 20;
/// Characters of a message's text in the list.
const PREVIEW_CHARS: usize = 140;
/// Bytes of a message that a search covers.
const SEARCHED_BYTES: usize = 16 << 10;

/// Elements of HTML whose text stands on lines of its own.
const BLOCKS: &str = "address article aside blockquote center dd div dl dt figcaption figure footer h1 h2 h3 h4 h5 h6 \
                      header hr li main ol p pre section table td th ul";

/// File with the highest number used, so that numbers of removed messages are not used again.
const LAST_ID_FILE: &str = "last_id";
/// Extension of a file while it is written.
const NEW_EXTENSION: &str = "new";
/// Extensions of the inbox's files.
const EXTENSIONS: [&str; 3] = ["eml", "json", NEW_EXTENSION];

/// Result of verifying a DKIM signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureResult {
    /// Signing domain (`d=`).
    pub domain: String,
    /// Selector (`s=`).
    pub selector: String,
    /// `rsa-sha256` or `ed25519-sha256`.
    pub algorithm: String,
    /// `pass`, `fail`, …
    pub result: String,
}

/// How a message reached the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Postrider sent it: it was accepted, queued, signed and delivered.
    Delivered,
    /// A program submitted it to the mail host, without AUTH.
    HandedIn,
}

/// A received message, before it is stored.
#[derive(Debug, Clone)]
pub struct NewMessage {
    pub source: Source,
    /// MAIL FROM; none is the null path.
    pub sender: Option<Address>,
    /// RCPT TO.
    pub recipients: Vec<Address>,
    pub received_at: Timestamp,
    /// True if it was received over TLS.
    pub tls: bool,
    pub raw: Bytes,
    pub dkim: Vec<SignatureResult>,
}

/// Summary of a message in the inbox, as the list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Number, from 1; never used again, also after a restart, until `--fresh` deletes the inbox.
    pub id: u64,
    pub source: Source,
    /// `From` field, decoded.
    pub from: Option<String>,
    /// MAIL FROM; none is the null path.
    pub envelope_from: Option<Address>,
    /// RCPT TO.
    pub to: Vec<Address>,
    /// Subject, decoded.
    pub subject: String,
    /// Beginning of the text.
    pub preview: String,
    pub received_at: Timestamp,
    /// Size of the message in bytes.
    pub size: u64,
    /// True if it was received over TLS.
    pub tls: bool,
    pub attachment_count: u64,
    pub dkim: Vec<SignatureResult>,
    /// Searchable text in lower case.
    searched: String,
}

impl Entry {
    fn new(id: u64, message: NewMessage, reading: &ParsedReceivedEmail) -> Self {
        let text = plain_text(reading);
        let heading = &reading.heading;
        let mut searched = format!("{}\n{}\n", heading.from, heading.subject);
        for address in message.recipients.iter().chain(&message.sender) {
            searched.push_str(&address.to_string());
            searched.push('\n');
        }
        searched.push_str(&text);
        searched.truncate(searched.floor_char_boundary(SEARCHED_BYTES));
        Self {
            id,
            source: message.source,
            from: Some(heading.from.clone()).filter(|from| !from.is_empty()),
            envelope_from: message.sender,
            to: message.recipients,
            subject: heading.subject.clone(),
            preview: text.chars().take(PREVIEW_CHARS).collect(),
            received_at: message.received_at,
            size: message.raw.len() as u64,
            tls: message.tls,
            attachment_count: heading.attachment_count,
            dkim: message.dkim,
            searched: searched.to_lowercase(),
        }
    }

    /// Returns whether addresses, subject or text contain all these lower-case words.
    fn matches(&self, words: &[String]) -> bool {
        words.iter().all(|word| self.searched.contains(word.as_str()))
    }
}

/// Text of a message, or of its HTML if it has no text.
pub(super) fn text_of(reading: &ParsedReceivedEmail) -> String {
    match (&reading.text, &reading.html) {
        (Some(text), _) => text.clone(),
        (None, Some(html)) => mail_parser::decoders::html::html_to_text(&separate_blocks(html)),
        (None, None) => String::new(),
    }
}

/// Puts a space before each tag of a block, so that its text is separate from the text beside it.
fn separate_blocks(html: &str) -> String {
    let mut pieces = html.split('<');
    let mut separated = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let name = piece.trim_start_matches('/').split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        if BLOCKS.split(' ').any(|block| block.eq_ignore_ascii_case(name)) {
            separated.push(' ');
        }
        separated.push('<');
        separated.push_str(piece);
    }
    separated
}

/// Text of a message in one line.
fn plain_text(reading: &ParsedReceivedEmail) -> String {
    text_of(reading).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Parses a message. A panic of the parser yields an empty result, and the message is stored.
pub(super) fn read(raw: &Bytes) -> ParsedReceivedEmail {
    let raw = raw.clone();
    std::panic::catch_unwind(move || ParsedReceivedEmail::parse(&raw)).unwrap_or_default()
}

#[derive(Debug, Default)]
struct Messages {
    /// Newest first.
    entries: VecDeque<Entry>,
    bytes: u64,
    last_id: u64,
}

/// The inbox. Its functions block on file I/O.
#[derive(Debug)]
pub struct DevInbox {
    directory: PathBuf,
    messages: Mutex<Messages>,
    /// Changes with every change of the inbox; starts at the time of the start.
    version: watch::Sender<u64>,
}

impl DevInbox {
    /// Opens or creates the inbox in a directory. Removes messages without an entry, but no files with other names.
    pub fn open(directory: PathBuf, now: Timestamp) -> io::Result<Self> {
        private_files::create_directory(&directory)?;
        let (mut entries, mut unreadable_files) = (Vec::new(), Vec::new());
        for file in std::fs::read_dir(&directory)? {
            let path = file?.path();
            let Some(id) = parse_file_id(&path) else { continue };
            match path.extension().and_then(std::ffi::OsStr::to_str) {
                Some("json") => match read_entry(&path).filter(|entry| entry.id == id) {
                    Some(entry) => entries.push(entry),
                    None => unreadable_files.push(path),
                },
                Some("eml") if path.with_extension("json").exists() => {}
                _ => unreadable_files.push(path),
            }
        }
        for path in unreadable_files {
            tracing::warn!(path = %path.display(), "removing an unreadable file from the inbox");
            std::fs::remove_file(&path)?;
        }
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.id));
        let messages = Messages {
            bytes: entries.iter().map(|entry| entry.size).sum(),
            last_id: entries.first().map_or(0, |entry| entry.id).max(read_last_id(&directory)?),
            entries: entries.into(),
        };
        let version = watch::Sender::new(u64::try_from(now.as_millisecond()).unwrap_or(0));
        Ok(Self { directory, messages: Mutex::new(messages), version })
    }

    /// Stores a message.
    pub fn add(&self, message: NewMessage) -> io::Result<Entry> {
        let (raw, reading) = (message.raw.clone(), read(&message.raw));
        let mut messages = self.messages.lock();
        messages.last_id += 1;
        let entry = Entry::new(messages.last_id, message, &reading);
        let [message, entry_file] = self.files(entry.id);
        write(&message, &raw)?;
        write(&entry_file, &serde_json::to_vec(&entry)?)?;
        messages.bytes += entry.size;
        messages.entries.push_front(entry.clone());
        while messages.entries.len() > MESSAGES_MAX || (messages.bytes > BYTES_MAX && messages.entries.len() > 1) {
            let Some(oldest) = messages.entries.pop_back() else { break };
            messages.bytes -= oldest.size;
            self.delete(oldest.id)?;
        }
        self.bump_version();
        Ok(entry)
    }

    /// Lists messages, newest first, that contain all words of a search.
    pub fn list(&self, search: &str) -> Vec<Entry> {
        let words: Vec<String> = search.split_whitespace().map(str::to_lowercase).collect();
        self.messages.lock().entries.iter().filter(|entry| entry.matches(&words)).cloned().collect()
    }

    /// Lists the messages that a query asks for, newest first, and their number without its limit.
    pub(super) fn find(&self, query: &InboxQuery) -> (usize, Vec<Entry>) {
        let mut entries = self.list(&query.search);
        entries.retain(|entry| query.matches(entry));
        let total = entries.len();
        entries.truncate(query.limit);
        (total, entries)
    }

    /// Waits until a message matches the query, at most for its time.
    pub(super) async fn wait_for(&self, query: &InboxQuery) {
        let mut changes = self.version.subscribe();
        let arrival = async { while self.find(query).0 == 0 && changes.changed().await.is_ok() {} };
        let _ = tokio::time::timeout(query.wait, arrival).await;
    }

    /// Number of messages.
    pub fn count(&self) -> usize {
        self.messages.lock().entries.len()
    }

    /// Returns a message and its content.
    pub fn get(&self, id: u64) -> io::Result<Option<(Entry, Bytes)>> {
        let messages = self.messages.lock();
        let Some(entry) = messages.entries.iter().find(|entry| entry.id == id) else { return Ok(None) };
        let [message, _] = self.files(id);
        Ok(Some((entry.clone(), std::fs::read(message)?.into())))
    }

    /// Removes a message. Returns false if it does not exist.
    pub fn remove(&self, id: u64) -> io::Result<bool> {
        let mut messages = self.messages.lock();
        let Some(position) = messages.entries.iter().position(|entry| entry.id == id) else { return Ok(false) };
        self.write_last_id(&messages)?;
        self.delete(id)?;
        if let Some(entry) = messages.entries.remove(position) {
            messages.bytes -= entry.size;
        }
        self.bump_version();
        Ok(true)
    }

    /// Removes all messages.
    pub fn clear(&self) -> io::Result<()> {
        let mut messages = self.messages.lock();
        self.write_last_id(&messages)?;
        while let Some(id) = messages.entries.back().map(|entry| entry.id) {
            self.delete(id)?;
            messages.entries.pop_back();
        }
        messages.bytes = 0;
        self.bump_version();
        Ok(())
    }

    /// Returns a number that changes with every change of the inbox.
    pub fn version(&self) -> u64 {
        *self.version.borrow()
    }

    fn bump_version(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    fn write_last_id(&self, messages: &Messages) -> io::Result<()> {
        write(&self.directory.join(LAST_ID_FILE), messages.last_id.to_string().as_bytes())
    }

    /// Files of a message and of its entry.
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

/// Reads the highest number used; 0 if none was written.
fn read_last_id(directory: &Path) -> io::Result<u64> {
    match std::fs::read_to_string(directory.join(LAST_ID_FILE)) {
        Ok(text) => Ok(text.trim().parse().unwrap_or_else(|_| {
            tracing::warn!("the inbox's file {LAST_ID_FILE} is damaged: the numbers of deleted messages may be reused");
            0
        })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Parses the number from a file's name, if the inbox uses such a name.
fn parse_file_id(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let id: u64 = name.split_once('.')?.0.parse().ok()?;
    EXTENSIONS.iter().any(|extension| name == file_name(id, extension)).then_some(id)
}

fn file_name(id: u64, extension: &str) -> String {
    format!("{id:010}.{extension}")
}

/// Removes the files of an inbox that is not open, and its directory if it is then empty.
///
/// # Errors
/// The directory does not exist, or a file cannot be removed.
pub(super) fn remove_files(directory: &Path) -> io::Result<()> {
    for file in std::fs::read_dir(directory)? {
        let path = file?.path();
        let is_last_id = path.file_name().is_some_and(|name| name == LAST_ID_FILE);
        if is_last_id || parse_file_id(&path).is_some() {
            std::fs::remove_file(path)?;
        }
    }
    match std::fs::remove_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        result => result,
    }
}

fn read_entry(path: &Path) -> Option<Entry> {
    let entry: Entry = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    path.with_extension("eml").exists().then_some(entry)
}

/// Writes a file atomically: to a temporary name, then renamed.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    use io::Write as _;
    let new_file = path.with_extension(NEW_EXTENSION);
    private_files::create_file(&new_file)?.write_all(content)?;
    std::fs::rename(new_file, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(subject: &str) -> NewMessage {
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
        let entry = first.add(message("one")).unwrap();
        assert_eq!((entry.id, entry.preview.as_str()), (1, "Hello, Wörld"));
        first.add(message("two")).unwrap();
        assert!(first.remove(1).unwrap() && !first.remove(1).unwrap());
        drop(first);
        // As a process leaves it that was killed between writing the two files.
        std::fs::write(directory.path().join("inbox/0000000009.eml"), "x").unwrap();
        let second = open(directory.path());
        assert!(!directory.path().join("inbox/0000000009.eml").exists());
        let (entry, raw) = second.get(2).unwrap().unwrap();
        assert_eq!((entry.subject.as_str(), &raw), ("two", &message("two").raw));
        assert_eq!(second.add(message("three")).unwrap().id, 3);
        second.clear().unwrap();
        let left = std::fs::read_dir(directory.path().join("inbox")).unwrap().map(|file| file.unwrap().file_name());
        assert_eq!(left.collect::<Vec<_>>(), [LAST_ID_FILE]);
    }

    #[test]
    fn the_preview_separates_blocks() {
        let preview = |html: &str| {
            let raw = format!("From: ada@example.com\r\nContent-Type: text/html\r\n\r\n{html}\r\n");
            plain_text(&read(&raw.into()))
        };
        assert_eq!(preview("<h1>Hi Ada</h1><p>Thanks for signing up</p>"), "Hi Ada Thanks for signing up");
        let table = "<TABLE><tr><td>Total</td><td>5 <b>EU</b>R</td></tr></TABLE>Bye<div class=\"a\">Ada</div>";
        assert_eq!(preview(table), "Total 5 EUR Bye Ada");
        assert_eq!(preview("so <!-- <div>no</div> -->it is"), "so it is");
    }

    #[test]
    fn foreign_files_are_not_touched() {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path()).add(message("one")).unwrap();
        let at = |name: &str| directory.path().join("inbox").join(name);
        let other_files = ["notes.txt", "letter.eml", "data.json", "7.eml", "0000000007.txt", "0000000007"];
        for name in other_files {
            std::fs::write(at(name), "x").unwrap();
        }
        std::fs::write(at("0000000008.new"), "x").unwrap();
        assert_eq!(open(directory.path()).count(), 1);
        assert!(!at("0000000008.new").exists());
        remove_files(&directory.path().join("inbox")).unwrap();
        assert!(!at("0000000001.eml").exists() && other_files.iter().all(|name| at(name).exists()));
    }

    #[test]
    fn numbers_of_removed_messages_are_not_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let inbox = open(directory.path());
        let add = |inbox: &DevInbox| inbox.add(message("x")).unwrap().id;
        assert_eq!([add(&inbox), add(&inbox)], [1, 2]);
        inbox.clear().unwrap();
        drop(inbox);
        let inbox = open(directory.path());
        assert_eq!(add(&inbox), 3);
        assert!(inbox.remove(3).unwrap());
        drop(inbox);
        let inbox = open(directory.path());
        assert_eq!(add(&inbox), 4);
        drop(inbox);
        remove_files(&directory.path().join("inbox")).unwrap();
        assert!(!directory.path().join("inbox").exists());
    }

    #[test]
    fn a_search_matches_all_words_in_any_order() {
        let directory = tempfile::tempdir().unwrap();
        let inbox = open(directory.path());
        inbox.add(message("Invoice 42")).unwrap();
        inbox.add(message("Welcome")).unwrap();
        let matching_ids = |search: &str| inbox.list(search).iter().map(|entry| entry.id).collect::<Vec<_>>();
        assert_eq!(matching_ids(""), [2, 1]);
        assert_eq!(matching_ids("invoice ADA@"), [1]);
        assert_eq!(matching_ids("wörld welcome"), [2]);
        assert_eq!(matching_ids("nobody"), Vec::<u64>::new());
    }

    #[test]
    fn the_oldest_messages_make_room() {
        let directory = tempfile::tempdir().unwrap();
        let inbox = open(directory.path());
        for _ in 0..=MESSAGES_MAX {
            inbox.add(message("x")).unwrap();
        }
        assert_eq!(inbox.count(), MESSAGES_MAX);
        assert!(inbox.get(1).unwrap().is_none() && inbox.get(2).unwrap().is_some());
    }
}
