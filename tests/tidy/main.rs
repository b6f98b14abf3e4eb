//! The house's rules as a test: sizes, names, pages, the one-way order of rooms, README's map.
//!
//! Flow: [`tree`] lists and reads the files of the repository; each other module is one family of
//! rules that takes the files and returns [`tree::Finding`]s; a finding says where it is and what to
//! do about it. Nothing is compiled or run: the test reads text, so it is fast and has no false peace
//! from a part that is switched off.
//!
//! Limits: the scanners trust rustfmt's layout (`tests/run` checks that first). A rule that must be
//! broken is broken in the open: `sizes.rs` has a table of exceptions with their reasons. That each
//! key of `etc/postrider.toml` is documented and read is checked by the configuration's own test.

#![expect(clippy::expect_used, reason = "a repository that cannot be read fails the test")]

mod documents;
mod names;
mod order;
mod pages;
mod sizes;
mod tree;

use tree::{Tree, settle};

#[test]
fn files_and_functions_are_small() {
    settle(sizes::check(&Tree::read()));
}

#[test]
fn names_say_what_things_are() {
    settle(names::check(&Tree::read()));
}

#[test]
fn a_type_name_stands_once_in_a_crate() {
    settle(names::check_unique(&Tree::read()));
}

#[test]
fn each_file_opens_with_its_page() {
    settle(pages::opening(&Tree::read()));
}

#[test]
fn lib_files_hold_no_code() {
    settle(pages::lib_files(&Tree::read()));
}

#[test]
fn nothing_is_left_over() {
    settle(pages::leftovers(&Tree::read()));
}

#[test]
fn rooms_know_only_rooms_on_their_left() {
    settle(order::rooms(&Tree::read()));
}

#[test]
fn each_crate_stays_in_its_rooms() {
    settle(order::crates(&Tree::read()));
}

#[test]
fn the_security_model_names_tests_that_exist() {
    settle(documents::tests(&Tree::read()));
}

#[test]
fn readme_map_is_the_tree() {
    settle(documents::map(&Tree::read()));
}

#[test]
fn documents_name_files_that_exist() {
    settle(documents::paths(&Tree::read()));
}
