//! The log: lines on standard error, as text or JSON (`[log]` in the configuration; docs/LOGS.md).
//!
//! ```text
//! event ─► level, target, message, fields ─► each value cleaned (model::log_text) ─► one line
//! ```
//!
//! Every value is limited in length and has its control characters escaped here, so no logged input can forge a line.
//! Above DEBUG, the local parts of email addresses are masked, unless `[log] addresses = true`.

use std::cell::RefCell;
use std::fmt::{self, Debug, Write as _};
use std::io::IsTerminal as _;

use model::log_text;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::log::{self, LogFormat, LogSection};

thread_local! {
    /// Buffer per thread for a value before it is cleaned; avoids an allocation per line.
    static VALUE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Installs the subscriber that logs to standard error. `RUST_LOG` takes precedence over the section's level.
pub fn begin(section: &LogSection) {
    log_text::show_addresses(section.addresses);
    let is_colored = std::io::stderr().is_terminal() && section.format == LogFormat::Text;
    let subscriber = subscriber(section.format, filter(section), is_colored, std::io::stderr);
    // Fails on a second call (in tests), which keeps the first subscriber.
    let _ = subscriber.try_init();
}

fn filter(section: &LogSection) -> EnvFilter {
    let by_environment = std::env::var(EnvFilter::DEFAULT_ENV).ok().filter(|level| !level.is_empty());
    if let Some(level) = by_environment {
        match log::filter(&level) {
            Ok(filter) => return filter,
            Err(error) => eprintln!("postrider: warning: ignoring RUST_LOG: {error}"),
        }
    }
    log::filter(&section.level).unwrap_or_else(|_| EnvFilter::new("info"))
}

/// Creates the subscriber that writes lines.
pub fn subscriber<W>(format: LogFormat, filter: EnvFilter, is_colored: bool, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(is_colored)
        .event_format(LineFormat(format))
        .with_writer(writer)
        .finish()
}

/// Formats an event as one line.
#[derive(Debug, Clone, Copy)]
struct LineFormat(LogFormat);

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (level, target) = (*event.metadata().level(), event.metadata().target());
        match self.0 {
            LogFormat::Json => {
                writer.write_str("{\"timestamp\":\"")?;
                SystemTime.format_time(&mut writer)?;
                write!(writer, "\",\"level\":\"{level}\",\"target\":\"{target}\"")?;
            }
            LogFormat::Text => {
                SystemTime.format_time(&mut writer)?;
                write_level(&mut writer, level)?;
                write!(writer, "{target}:")?;
            }
        }
        let masks_addresses = level <= Level::INFO && !log_text::shows_addresses();
        let mut fields = Fields { writer, format: self.0, masks_addresses, result: Ok(()) };
        event.record(&mut fields);
        let Fields { mut writer, result, .. } = fields;
        result?;
        writer.write_str(if self.0 == LogFormat::Json { "}\n" } else { "\n" })
    }
}

fn write_level(writer: &mut Writer<'_>, level: Level) -> fmt::Result {
    if !writer.has_ansi_escapes() {
        return write!(writer, " {level:>5} ");
    }
    let color = match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        _ => 34,
    };
    write!(writer, " \u{1b}[{color}m{level:>5}\u{1b}[0m ")
}

/// Writes the fields of an event in sequence.
struct Fields<'w> {
    writer: Writer<'w>,
    format: LogFormat,
    masks_addresses: bool,
    result: fmt::Result,
}

impl Fields<'_> {
    fn name(&mut self, field: &Field) -> fmt::Result {
        match (self.format, field.name()) {
            (LogFormat::Json, name) => write!(self.writer, ",\"{name}\":"),
            (LogFormat::Text, "message") => self.writer.write_char(' '),
            (LogFormat::Text, name) => write!(self.writer, " {name}="),
        }
    }

    /// Writes a field, unless an earlier one failed. Skips the source position that libraries log.
    fn field(&mut self, field: &Field, write: impl FnOnce(&mut Self) -> fmt::Result) {
        let is_source_position = matches!(field.name(), "log.module_path" | "log.file" | "log.line");
        if self.result.is_ok() && !is_source_position {
            self.result = write(self);
        }
    }

    /// Writes a number or a boolean.
    fn plain(&mut self, field: &Field, value: impl fmt::Display) {
        self.field(field, |fields| {
            fields.name(field)?;
            write!(fields.writer, "{value}")
        });
    }

    fn text(&mut self, field: &Field, value: &str) -> fmt::Result {
        self.name(field)?;
        let value = log_text::cleaned(value, self.masks_addresses);
        let is_message = field.name() == "message";
        if self.format == LogFormat::Text && (is_message || needs_no_quotes(&value)) {
            return self.writer.write_str(&value);
        }
        self.writer.write_char('"')?;
        for character in value.chars() {
            if matches!(character, '"' | '\\') {
                self.writer.write_char('\\')?;
            }
            self.writer.write_char(character)?;
        }
        self.writer.write_char('"')
    }

    /// Writes a value by its `Display` or `Debug` text.
    fn write_value(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        self.field(field, |fields| match value.as_str() {
            Some(text) => fields.text(field, text),
            None => VALUE.with(|buffer| match buffer.try_borrow_mut() {
                Ok(mut buffer) => {
                    buffer.clear();
                    buffer.write_fmt(value)?;
                    let written = fields.text(field, &buffer);
                    buffer.shrink_to(log_text::BYTES_MAX);
                    written
                }
                // The buffer is in use: formatting the value logs another event.
                Err(_) => fields.text(field, &value.to_string()),
            }),
        });
    }
}

/// Returns whether a value needs no quotation marks.
fn needs_no_quotes(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-:/@+*[]<>,".contains(&b))
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.write_value(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.field(field, |fields| fields.text(field, value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.plain(field, value);
        } else {
            self.write_value(field, format_args!("{value}"));
        }
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.plain(field, value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.plain(field, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::io;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Captures what is logged in one format, without timestamps.
    fn logged(format: LogFormat, log: impl FnOnce()) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let filter = log::filter("debug").unwrap();
        let subscriber = subscriber(format, filter, false, move || writer.clone());
        tracing::subscriber::with_default(subscriber, log);
        let text = String::from_utf8(lines.0.lock().clone()).unwrap();
        text.lines()
            .map(|line| match format {
                LogFormat::Text => line.split_once(' ').unwrap().1.to_owned() + "\n",
                LogFormat::Json => line.to_owned() + "\n",
            })
            .collect()
    }

    const FORGED: &str = "no\r\n2026-01-01T00:00:00Z  INFO queue: delivered \"x\" \u{1b}[2J code=250";

    #[test]
    fn logged_values_cannot_forge_a_line() {
        let text = logged(LogFormat::Text, || {
            tracing::info!(error = FORGED, other = %FORGED, third = ?FORGED, "{FORGED}");
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!text.contains('\u{1b}'));
        let json = logged(LogFormat::Json, || {
            tracing::info!(error = FORGED, other = %FORGED, third = ?FORGED, "{FORGED}");
        });
        assert_eq!(json.lines().count(), 1, "{json}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let escaped = FORGED.replace('\r', "\\r").replace('\n', "\\n").replace('\u{1b}', "\\u{1b}");
        for field in ["message", "error", "other"] {
            assert_eq!(value[field], escaped, "{field}");
        }
    }

    #[test]
    fn a_line_is_formatted_as_text_and_json() {
        let log = || {
            let (id, none) = ("msg_1".to_owned(), None::<&str>);
            tracing::info!(email.id = %id, code = 250, text = "2.0.0 Ok, thanks", host = none, "delivered");
        };
        let text = logged(LogFormat::Text, log);
        let expected = " INFO postrider::log::tests: delivered email.id=msg_1 code=250 text=\"2.0.0 Ok, thanks\"\n";
        assert_eq!(text, expected);
        let json: serde_json::Value = serde_json::from_str(&logged(LogFormat::Json, log)).unwrap();
        assert_eq!((&json["level"], &json["message"]), (&"INFO".into(), &"delivered".into()));
        assert_eq!((&json["email.id"], &json["code"]), (&"msg_1".into(), &250.into()));
    }

    #[test]
    fn addresses_are_shown_at_debug_alone() {
        let log = || {
            tracing::info!(to = "bob@example.net", "to bob@example.net");
            tracing::debug!(to = "bob@example.net", "to bob@example.net");
        };
        let text = logged(LogFormat::Text, log);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(": to ***@example.net to=***@example.net"), "{text}");
        assert!(lines[1].ends_with(": to bob@example.net to=bob@example.net"), "{text}");
    }

    #[test]
    fn problems_of_a_reload_keep_their_examples() {
        let config = "hostname = \"mx.example.net\"\n[store]\nengine = \"postgres\"\n\
                      [service]\nsandbox_sender = \"x\"\n[mx]\npostmaster = \"bob smith@example.org\"\n";
        let valid_addresses = config.replace("\"x\"", "\"x@y.example\"").replace("bob smith", "bob");
        let log = |config: &str| {
            let problems = crate::config::from_text(config, []).unwrap_err();
            let log_all = || {
                for problem in &problems {
                    crate::reload::log_problem(std::path::Path::new("postrider.toml"), problem);
                }
            };
            logged(LogFormat::Text, log_all)
        };
        let text = log(config);
        assert!(text.contains("form local@domain (example: \"postmaster@example.net\")"), "{text}");
        assert!(text.contains("***@example.org") && !text.contains("smith"), "{text}");
        let text = log(&valid_addresses);
        assert!(text.contains("postgres://USER:PASSWORD@HOST/DATABASE"), "{text}");
    }

    #[test]
    fn a_long_value_is_cut() {
        let long = "x".repeat(1 << 20);
        assert!(logged(LogFormat::Text, || tracing::info!(%long, "much")).len() < 2 * log_text::BYTES_MAX);
    }
}
