//! Rules of the repository as tests: sizes, names, texts, file docs, crate dependencies, import cycles, README's map.
//!
//! [`tree`] lists and reads the files of the repository. Each other module is one group of rules; it takes the files
//! and returns [`tree::Finding`]s, each with its place and what to do. The tests read text and compile nothing, so they
//! are fast and also see code that is not compiled by default.
//!
//! Limits: the scanners rely on rustfmt's layout (`tests/run` checks it first). Exceptions are listed with their
//! reasons in `sizes.rs`. tests/configuration.rs checks the keys of `etc/postrider.toml`.

#![expect(clippy::expect_used, reason = "a repository that cannot be read fails the test")]

mod cycles;
mod documents;
mod names;
mod order;
mod pages;
mod sizes;
mod texts;
mod tree;

use tree::{Tree, assert_none};

#[test]
fn files_and_functions_are_small() {
    assert_none(sizes::check(&Tree::read()));
}

#[test]
fn names_use_the_terms_of_the_trade() {
    assert_none(names::check(&Tree::read()));
}

#[test]
fn comments_open_with_their_subject() {
    assert_none(names::check_comments(&Tree::read()));
}

#[test]
fn type_names_are_unique_in_a_crate() {
    assert_none(names::check_unique(&Tree::read()));
}

#[test]
fn texts_for_users_are_plain() {
    assert_none(texts::check(&Tree::read()));
}

#[test]
fn import_cycles_do_not_grow() {
    assert_none(cycles::check(&Tree::read()));
}

#[test]
fn each_file_begins_with_file_docs() {
    assert_none(pages::missing_file_docs(&Tree::read()));
}

#[test]
fn lib_files_hold_no_code() {
    assert_none(pages::lib_files(&Tree::read()));
}

#[test]
fn nothing_is_left_over() {
    assert_none(pages::leftovers(&Tree::read()));
}

#[test]
fn crates_depend_only_on_crates_to_their_left() {
    assert_none(order::dependencies_between_crates(&Tree::read()));
}

#[test]
fn external_crates_are_used_only_in_their_places() {
    assert_none(order::crates(&Tree::read()));
}

#[test]
fn the_security_model_names_tests_that_exist() {
    assert_none(documents::tests(&Tree::read()));
}

#[test]
fn readme_map_is_the_tree() {
    assert_none(documents::map(&Tree::read()));
}

#[test]
fn the_glossary_names_what_the_code_has() {
    assert_none(documents::glossary(&Tree::read()));
}

#[test]
fn documents_name_files_that_exist() {
    assert_none(documents::paths(&Tree::read()));
}
