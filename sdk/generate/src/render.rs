//! `Renderer`: the files of one language from its templates.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value, context};

use serde::Serialize;

use crate::error::GenerateError;
use crate::filters;
use crate::manifest::{Manifest, RenderScope, TemplateFile};
use crate::model::Model;
use crate::words::read_json;

/// The notice in each generated file. It also finds files that are left over.
pub const NOTICE: &str = "Generated from sdk/operations.json by sdk/generate; do not edit.";

/// Generated files: path below the repository → content.
pub type Files = BTreeMap<PathBuf, String>;

pub struct Renderer<'a> {
    environment: Environment<'a>,
    base: Value,
    model: &'a Model,
}

impl<'a> Renderer<'a> {
    /// Reads all templates of `folder`, and those of `shared` beside it.
    pub fn new(model: &'a Model, folder: &Path) -> Result<Self, GenerateError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build();
        let syntax = syntax.map_err(|cause| GenerateError::Template { path: "syntax".to_owned(), cause })?;
        environment.set_syntax(syntax);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        filters::add(&mut environment);
        let types: BTreeMap<String, Value> =
            model.types.iter().map(|one| (one.name.clone(), serialized(one))).collect();
        environment.add_function("type_named", move |name: String| -> Result<Value, minijinja::Error> {
            types.get(&name).cloned().ok_or_else(|| {
                minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, format!("no type is called {name}"))
            })
        });
        for (name, text) in templates(folder)? {
            let added = environment.add_template_owned(name.clone(), text);
            added.map_err(|cause| GenerateError::Template { path: name, cause })?;
        }
        let base = context! {
            all_resources => serialized(&model.all_resources()),
            notice => NOTICE,
            ..serialized(model)
        };
        Ok(Self { environment, base, model })
    }

    /// All files that the manifest of the folder names.
    pub fn render_manifest(&self, manifest: &Manifest) -> Result<Files, GenerateError> {
        let mut files = Files::new();
        for file in &manifest.files {
            for scope in self.scopes(file.each) {
                let path = self.output_path(file, &scope)?;
                let package = if manifest.output == "." { "" } else { &*manifest.output };
                let path = Path::new("sdk").join(package).join(path);
                let body = self.render(&file.template, &scope)?;
                let content = with_notice(file, &body);
                if files.insert(path.clone(), content).is_some() {
                    let text = format!("{}: two templates write it", path.display());
                    return Err(GenerateError::Model(text));
                }
            }
        }
        Ok(files)
    }

    fn scopes(&self, each: RenderScope) -> Vec<Value> {
        let base = &self.base;
        let with = |name: &str, value: Value| {
            let own = Value::from(BTreeMap::from([(name.to_owned(), value)]));
            context! { ..own, ..base.clone() }
        };
        match each {
            RenderScope::Once => vec![base.clone()],
            RenderScope::Resource => {
                let all = self.model.all_resources();
                all.into_iter().map(|one| with("resource", serialized(one))).collect()
            }
            RenderScope::Event => self.model.webhook_events.iter().map(|one| with("event", serialized(one))).collect(),
            RenderScope::Error => self.model.error_classes.iter().map(|one| with("error", serialized(one))).collect(),
            RenderScope::Type => self.model.types.iter().map(|one| with("type", serialized(one))).collect(),
        }
    }

    fn output_path(&self, file: &TemplateFile, scope: &Value) -> Result<String, GenerateError> {
        let rendered = self.environment.render_str(&file.output, scope);
        rendered.map_err(|cause| GenerateError::Template { path: format!("output {}", file.output), cause })
    }

    pub fn render(&self, template: &str, scope: &Value) -> Result<String, GenerateError> {
        let template_error = |cause| GenerateError::Template { path: template.to_owned(), cause };
        let found = self.environment.get_template(template).map_err(template_error)?;
        found.render(scope).map_err(template_error)
    }
}

/// A value of the model for templates.
fn serialized<T: Serialize + ?Sized>(value: &T) -> Value {
    Value::from(Serde(value))
}

fn with_notice(file: &TemplateFile, body: &str) -> String {
    let mut content = String::new();
    if let Some(opening) = &file.opening {
        content.push_str(opening);
        content.push('\n');
    }
    if let Some(comment) = &file.comment {
        content.push_str(comment);
        content.push(' ');
        content.push_str(NOTICE);
        content.push_str("\n\n");
    }
    content.push_str(body.trim());
    content.push('\n');
    content
}

/// Reads the manifest of a template folder.
pub fn read_manifest(folder: &Path) -> Result<Manifest, GenerateError> {
    read_json(&folder.join("manifest.json"))
}

/// Name and text of each template of the folder.
fn templates(folder: &Path) -> Result<Vec<(String, String)>, GenerateError> {
    let file_error = |cause| GenerateError::File { path: folder.to_owned(), cause };
    let mut templates = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(file_error)? {
        let path = entry.map_err(file_error)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.ends_with(".jinja") {
            templates.push((name.to_owned(), std::fs::read_to_string(&path).map_err(file_error)?));
        }
    }
    Ok(templates)
}
