//! Path of a template, by id or alias.

use model::template::TemplateKey;

use crate::prelude::*;

const ID_OR_ALIAS: &str = "id_or_alias";

/// The template in a path, by id or alias.
#[derive(Debug, Clone)]
pub struct TemplatePath(pub(super) TemplateKey);

impl FromRequest for TemplatePath {
    fn parameters() -> Vec<Value> {
        vec![schema::path_parameter(ID_OR_ALIAS, "The template's id (`tpl_…`) or alias")]
    }

    /// Any text is a key: an unknown one is answered 404 later.
    fn read(call: &Request) -> Result<Self> {
        Ok(Self(TemplateKey::parse(call.path_parameter(ID_OR_ALIAS))))
    }
}
