//! How far the operator has moved the clock (`admin clock advance`): kept beside the store, so that a restarted server
//! goes on from there and nothing that was done then lies in the future.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::time::Duration;

use store::engine::private;

/// The file's name: milliseconds, in digits.
pub const FILE: &str = "clock-shift";

/// By how much the clock was moved in this data directory.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub fn read(data_dir: &Path) -> io::Result<Duration> {
    let text = match fs::read_to_string(data_dir.join(FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Duration::ZERO),
        Err(error) => return Err(error),
    };
    let wrong = || io::Error::new(ErrorKind::InvalidData, format!("{FILE} holds no number of milliseconds"));
    text.trim().parse().map(Duration::from_millis).map_err(|_| wrong())
}

/// Keeps it, on disk when this returns.
///
/// # Errors
/// It cannot be written.
pub fn write(data_dir: &Path, shift: Duration) -> io::Result<()> {
    let fresh = data_dir.join(format!("{FILE}.new"));
    let mut file = private::create_file(&fresh)?;
    writeln!(file, "{}", shift.as_millis())?;
    file.sync_all()?;
    fs::rename(&fresh, data_dir.join(FILE))?;
    fs::File::open(data_dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(directory.path()).unwrap(), Duration::ZERO);
        for seconds in [5, 86_400] {
            write(directory.path(), Duration::from_secs(seconds)).unwrap();
            assert_eq!(read(directory.path()).unwrap(), Duration::from_secs(seconds));
        }
        fs::write(directory.path().join(FILE), "soon").unwrap();
        assert!(read(directory.path()).is_err());
    }
}
