//! Values of flags from files: `@file.html` is the file's content, `@-` standard input, `@@text` the text `@text`.

use std::io::Read as _;
use std::path::Path;

use crate::error::CliError;

/// The largest file that a flag may name; the API's requests are smaller.
const BYTES_MAX: u64 = 150 << 20;

/// Returns the text of a flag, or the content of the file that it names.
///
/// # Errors
/// The file cannot be read, is too large, or is not UTF-8.
pub fn expand(text: &str) -> Result<String, CliError> {
    if let Some(literal) = text.strip_prefix("@@") {
        return Ok(format!("@{literal}"));
    }
    match text.strip_prefix('@') {
        None | Some("") => Ok(text.to_owned()),
        Some(path) => String::from_utf8(read(path)?)
            .map_err(|_| CliError::usage(format!("{path} is not UTF-8 text; write `@@` if the value begins with @"))),
    }
}

/// Reads a text file, or standard input for `-`.
///
/// # Errors
/// As `read`; or the file is not UTF-8.
pub fn read_text(path: &str) -> Result<String, CliError> {
    String::from_utf8(read(path)?).map_err(|_| CliError::usage(format!("{path} is not UTF-8 text")))
}

/// Reads a file, or standard input for `-`.
///
/// # Errors
/// The file cannot be read or is too large.
pub fn read(path: &str) -> Result<Vec<u8>, CliError> {
    let mut content = Vec::new();
    let failed = |error: std::io::Error| CliError::usage(format!("cannot read {path}: {error}"));
    let taken = match path {
        "-" => std::io::stdin().lock().take(BYTES_MAX + 1).read_to_end(&mut content),
        _ => std::fs::File::open(Path::new(path)).map_err(failed)?.take(BYTES_MAX + 1).read_to_end(&mut content),
    };
    taken.map_err(failed)?;
    if content.len() as u64 > BYTES_MAX {
        return Err(CliError::usage(format!("{path} is larger than {} MiB", BYTES_MAX >> 20)));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_be_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.html");
        std::fs::write(&path, "<p>ä</p>").unwrap();
        assert_eq!(expand(&format!("@{}", path.display())).unwrap(), "<p>ä</p>");
        assert_eq!(expand("@@x").unwrap(), "@x");
        assert_eq!(expand("x@y").unwrap(), "x@y");
        assert!(expand("@/no/such/file").unwrap_err().to_string().contains("/no/such/file"));
    }
}
