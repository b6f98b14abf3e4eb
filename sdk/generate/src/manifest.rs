//! `Manifest`: `manifest.json` in the template folder of a language says which template writes which files.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Directory of the package below `sdk/`; paths of `files` are relative to it.
    pub output: String,
    pub files: Vec<TemplateFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemplateFile {
    pub template: String,
    /// Path of the output. It is a template itself.
    pub output: String,
    #[serde(default)]
    pub each: RenderScope,
    /// First line, before the notice, for example `<?php`.
    #[serde(default)]
    pub opening: Option<String>,
    /// Start of a line comment. Absent only for JSON, which has no comments.
    pub comment: Option<String>,
}

/// How often a template is rendered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RenderScope {
    #[default]
    Once,
    /// For each resource at any depth, as `resource`.
    Resource,
    /// For each webhook event, as `event`.
    Event,
    /// For each named type, as `type`.
    Type,
    /// For each generated class of errors, as `error`.
    Error,
}
