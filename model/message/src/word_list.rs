//! Lists of words in text files: one entry a line. Empty lines and lines that begin with `#` do not count.

/// The entries of a list, in its order.
pub fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}
