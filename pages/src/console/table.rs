//! The page table of the console. `reads` and `operation` are words of admin requests.

use super::screens;
use crate::dashboard::table::{PageRow, find_in};

/// All pages.
pub fn pages() -> impl Iterator<Item = &'static PageRow> {
    screens::ALL.iter().flat_map(|rows| rows.iter())
}

/// Finds a page by its path below `/console`, with its parameters.
pub fn find(path: &str) -> Option<(&'static PageRow, Vec<(String, String)>)> {
    find_in(pages(), path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_unique() {
        let mut paths: Vec<_> = pages().map(|row| row.path).collect();
        paths.sort_unstable();
        let all = paths.len();
        paths.dedup();
        assert_eq!(paths.len(), all);
        for row in pages() {
            let mut names: Vec<_> = row.forms.iter().map(|form| form.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), row.forms.len(), "{}", row.path);
        }
    }
}
