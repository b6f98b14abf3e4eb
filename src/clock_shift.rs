//! How far the operator has advanced the clock (`admin clock advance`). The shift is stored beside the store: a
//! restarted server continues from it, so no stored time is in the future.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::time::Duration;

use store::engine::private_files;

/// Name of the file. It contains milliseconds in decimal digits.
pub const FILE: &str = "clock-shift";

/// Reads how far the clock of this data directory was advanced; zero if the file does not exist.
pub fn read(data_dir: &Path) -> io::Result<Duration> {
    let text = match fs::read_to_string(data_dir.join(FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Duration::ZERO),
        Err(error) => return Err(error),
    };
    let error = || io::Error::new(ErrorKind::InvalidData, format!("{FILE} is not a number of milliseconds"));
    text.trim().parse().map(Duration::from_millis).map_err(|_| error())
}

/// Stores the shift atomically and syncs it to disk.
pub fn write(data_dir: &Path, shift: Duration) -> io::Result<()> {
    let new_file = data_dir.join(format!("{FILE}.new"));
    let mut file = private_files::create_file(&new_file)?;
    writeln!(file, "{}", shift.as_millis())?;
    file.sync_all()?;
    fs::rename(&new_file, data_dir.join(FILE))?;
    fs::File::open(data_dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_survives_a_round_trip() {
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
