//! The committed files: each operation has an example, and each generated file is current.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;

use generate::generator::{generate, languages, read_model, repository};
use generate::model::Model;
use generate::output;

fn model() -> Model {
    read_model(&repository()).expect("the model is built")
}

#[test]
fn every_operation_has_an_example_of_its_fields() {
    for method in &model().methods {
        let example = method.example.as_ref().unwrap_or_else(|| panic!("{} has no example", method.id));
        let path = example["path"].as_array().expect("path is an array");
        assert_eq!(path.len(), method.path_parameters.len(), "path of {}", method.id);
        let params = example["params"].as_object().expect("params are an object");
        for name in params.keys() {
            assert!(method.fields.iter().any(|field| field.wire == *name), "{} has no field {name}", method.id);
        }
        for field in method.fields.iter().filter(|field| field.required) {
            assert!(params.contains_key(&field.wire), "the example of {} lacks {}", method.id, field.wire);
        }
    }
}

#[test]
fn names_are_unique() {
    let model = model();
    let mut names = BTreeSet::new();
    for name in model.types.iter().map(|one| &one.name).chain(model.webhook_events.iter().map(|one| &one.type_name)) {
        assert!(names.insert(name.to_lowercase()), "{name} occurs twice");
    }
    let mut methods = BTreeSet::new();
    for method in &model.methods {
        assert!(methods.insert(&method.full_name), "{} occurs twice", method.full_name);
    }
}

#[test]
fn generated_files_are_current() {
    let root = repository();
    let model = model();
    for language in languages(&root).expect("languages are listed") {
        let (files, folder) = generate(&root, &model, &language).expect("the templates render");
        let differences = output::differences(&root, &files, folder.as_deref()).expect("files are compared");
        assert_eq!(differences, [], "{language}: run `cargo run -p generate`");
    }
}
