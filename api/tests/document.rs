//! The OpenAPI document against its golden file. `UPDATE_GOLDEN=1` writes it anew.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::path::Path;

use api::operations::table;

#[test]
fn the_document_is_the_golden_one() {
    let text = api::openapi::text(&table(), "https://api.example.test");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/openapi.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&file).unwrap();
    assert!(text == golden, "the document changed: look at it, then run again with UPDATE_GOLDEN=1");
}

#[test]
fn the_table_names_everything_once() {
    let table = table();
    let ids: BTreeSet<_> = table.iter().map(|operation| operation.id).collect();
    assert_eq!(ids.len(), table.len());
    let routes: BTreeSet<_> =
        table.iter().map(|operation| (operation.path, operation.method.as_str())).collect();
    assert_eq!(routes.len(), table.len());
    assert!(table.iter().all(|operation| !operation.summary.is_empty()));
}

/// What a path names in braces is described, and the other way round.
#[test]
fn path_parameters_are_described() {
    for operation in table() {
        let takes = (operation.takes)(&mut api::schema::Schemas::default());
        let described: BTreeSet<String> = takes
            .parameters
            .iter()
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
            .collect();
        let named: BTreeSet<String> = operation
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .map(str::to_owned)
            .collect();
        assert_eq!(described, named, "{}", operation.path);
    }
}
