//! From the repository's files to the model, and from the model to the files of a language.

use std::path::{Path, PathBuf};

use crate::error::GenerateError;
use crate::model::Model;
use crate::render::{Files, Renderer, read_manifest};
use crate::words::read_json;

/// The repository that the crate was compiled in.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads `sdk/operations.json`, `sdk/examples.json` and `words.json` of the repository.
pub fn read_model(root: &Path) -> Result<Model, GenerateError> {
    let operations = read_json(&root.join("sdk/operations.json"))?;
    let words = read_json(&root.join("sdk/generate/words.json"))?;
    let examples = read_json(&root.join("sdk/examples.json"))?;
    Model::build(&operations, &words, &examples)
}

/// Folders of templates, in order: each is a language.
pub fn languages(root: &Path) -> Result<Vec<String>, GenerateError> {
    let folder = root.join("sdk/generate/templates");
    let file_error = |cause| GenerateError::File { path: folder.clone(), cause };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(file_error)? {
        let entry = entry.map_err(file_error)?;
        if entry.path().join("manifest.json").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// All files of a language, and the folder that can have files left over. There is none for files directly in `sdk/`.
pub fn generate(root: &Path, model: &Model, language: &str) -> Result<(Files, Option<PathBuf>), GenerateError> {
    let folder = root.join("sdk/generate/templates").join(language);
    let manifest = read_manifest(&folder)?;
    let files = Renderer::new(model, &folder)?.render_manifest(&manifest)?;
    let folder = (manifest.output != ".").then(|| Path::new("sdk").join(&manifest.output));
    Ok((files, folder))
}
