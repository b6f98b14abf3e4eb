//! Collects the variables that a template uses, and how, from its parsed markup.
//!
//! The collector tracks the scopes opened by `{{#each}}` and `{{#with}}`, so `{{price}}` within `{{#each items}}` is
//! recognised as a field of the entries of `items`. It also rejects syntax that the grammar accepts but templates may
//! not use.

use std::collections::BTreeMap;

use handlebars::template::{BlockParam, HelperTemplate, Parameter, TemplateElement};
use handlebars::{Path, PathSeg, Template as Parsed};
use serde_json::{Map, Value, json};

use super::markup::{MarkupError, MarkupPiece};
use super::{TemplateVariable, UNSUBSCRIBE_URL, VariableType};

const PATH_NAMES_MAX: usize = 16;

/// Use of a variable, and of the values in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VariableUsage {
    fields: BTreeMap<String, VariableUsage>,
    entries: Option<Box<VariableUsage>>,
    printed: bool,
    tested: bool,
}

/// A step from the variables to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Field(String),
    Entry,
}

struct BlockScope {
    path: Vec<PathStep>,
    names: BlockParamNames,
}

/// Names from `as |item index|` with the path of the entry; the index has no path.
type BlockParamNames = Vec<(String, Option<Vec<PathStep>>)>;

impl VariableUsage {
    /// Collects the variables of a piece of a template.
    ///
    /// # Errors
    /// Returns an error at an unsupported tag.
    pub(crate) fn collect(piece: &MarkupPiece) -> Result<Self, MarkupError> {
        let mut collector =
            UsageCollector { root: Self::default(), scopes: vec![BlockScope { path: Vec::new(), names: Vec::new() }] };
        collector
            .visit_elements(&piece.parsed, (1, 1))
            .map_err(|UsageError(position, message)| piece.error(position, message))?;
        let mut root = collector.root;
        root.fields.remove(UNSUBSCRIBE_URL);
        Ok(root)
    }

    /// Adds the usage of another part.
    pub(crate) fn merge(&mut self, other: Self) {
        self.printed |= other.printed;
        self.tested |= other.tested;
        for (name, usage) in other.fields {
            self.fields.entry(name).or_default().merge(usage);
        }
        if let Some(entries) = other.entries {
            self.entries.get_or_insert_default().merge(*entries);
        }
    }

    fn at_path(&mut self, path: &[PathStep]) -> &mut Self {
        path.iter().fold(self, |usage, step| match step {
            PathStep::Field(name) => usage.fields.entry(name.clone()).or_default(),
            PathStep::Entry => usage.entries.get_or_insert_default(),
        })
    }

    pub fn uses(&self, name: &str) -> bool {
        // `{{#each this}}` uses all variables.
        self.fields.contains_key(name) || self.entries.is_some() || self.printed
    }

    /// Example variables for a test: the fallback if there is one, otherwise a generated value.
    pub fn example_variables(&self, declared: &[TemplateVariable]) -> Map<String, Value> {
        let mut suggested: Map<String, Value> =
            self.fields.iter().map(|(name, usage)| (name.clone(), usage.example_value(name))).collect();
        for variable in declared {
            let example = match (&variable.fallback_value, variable.r#type) {
                (Some(fallback), _) => fallback.clone(),
                (None, VariableType::Number) => json!(1),
                (None, VariableType::Boolean) => json!(true),
                (None, VariableType::Object | VariableType::List | VariableType::String) => {
                    let found = suggested.get(&variable.key).filter(|value| variable.r#type.accepts(value));
                    found.cloned().unwrap_or_else(|| match variable.r#type {
                        VariableType::Object => json!({}),
                        VariableType::List => json!([]),
                        _ => json!(format!("{}_value", variable.key)),
                    })
                }
            };
            suggested.insert(variable.key.clone(), example);
        }
        suggested
    }

    fn example_value(&self, name: &str) -> Value {
        if let Some(entries) = &self.entries {
            return json!([entries.example_value(name)]);
        }
        if !self.fields.is_empty() {
            return self.fields.iter().map(|(name, usage)| (name.clone(), usage.example_value(name))).collect();
        }
        if self.tested && !self.printed {
            return json!(true);
        }
        json!(format!("{name}_value"))
    }
}

struct UsageCollector {
    root: VariableUsage,
    scopes: Vec<BlockScope>,
}

type TagPosition = (usize, usize);

/// Position and message of an error in a piece.
struct UsageError(TagPosition, String);

fn usage_error(position: TagPosition, message: impl Into<String>) -> UsageError {
    UsageError(position, message.into())
}

impl UsageCollector {
    fn visit_elements(&mut self, parsed: &Parsed, around: TagPosition) -> Result<(), UsageError> {
        for (n, element) in parsed.elements.iter().enumerate() {
            let position = parsed.mapping.get(n).map_or(around, |mapping| (mapping.0, mapping.1));
            match element {
                TemplateElement::RawString(_) | TemplateElement::Comment(_) => {}
                TemplateElement::Expression(tag) | TemplateElement::HtmlExpression(tag) => {
                    self.visit_expression(tag, position)?;
                }
                TemplateElement::HelperBlock(tag) => self.visit_block(tag, position)?,
                _ => return Err(usage_error(position, "this tag is not supported")),
            }
        }
        Ok(())
    }

    fn visit_expression(&mut self, tag: &HelperTemplate, position: TagPosition) -> Result<(), UsageError> {
        let name = tag.name.as_name().unwrap_or_default();
        if !tag.params.is_empty() || !tag.hash.is_empty() {
            let text = format!("helpers such as `{name}` are not supported: a tag names one variable");
            return Err(usage_error(position, text));
        }
        if is_block(name) {
            return Err(usage_error(position, format!("`{name}` is a block: `{{{{#{name} …}}}} … {{{{/{name}}}}}`")));
        }
        let Parameter::Path(path) = &tag.name else {
            return Err(usage_error(position, "a tag names one variable"));
        };
        if let Some(steps) = self.resolve(path, position)? {
            self.root.at_path(&steps).printed = true;
        }
        Ok(())
    }

    fn visit_block(&mut self, tag: &HelperTemplate, position: TagPosition) -> Result<(), UsageError> {
        let name = tag.name.as_name().unwrap_or_default();
        if !is_block(name) {
            let text = format!("`{{{{#{name}}}}}` is not supported; use #if, #unless, #each or #with");
            return Err(usage_error(position, text));
        }
        let [parameter] = tag.params.as_slice() else {
            return Err(usage_error(position, format!("`{name}` needs one variable")));
        };
        let is_test = matches!(name, "if" | "unless");
        if tag.hash.keys().any(|key| !is_test || key != "includeZero") {
            return Err(usage_error(position, format!("`{name}` takes no named parameters")));
        }
        let steps = match parameter {
            Parameter::Path(path) => self.resolve(path, position)?,
            Parameter::Literal(_) if is_test => None,
            _ => return Err(usage_error(position, format!("`{name}` needs a variable"))),
        };
        if is_test {
            if let Some(steps) = steps {
                self.root.at_path(&steps).tested = true;
            }
            self.visit_bodies(tag, None, position)
        } else {
            let Some(mut path) = steps else {
                return Err(usage_error(position, format!("`{name}` needs a variable")));
            };
            let usage = self.root.at_path(&path);
            usage.tested = true;
            if name == "each" {
                usage.entries.get_or_insert_default();
                path.push(PathStep::Entry);
            }
            let names = block_names(tag, name, &path, position)?;
            self.visit_bodies(tag, Some(BlockScope { path, names }), position)
        }
    }

    fn visit_bodies(
        &mut self,
        tag: &HelperTemplate,
        scope: Option<BlockScope>,
        position: TagPosition,
    ) -> Result<(), UsageError> {
        let opened = scope.is_some();
        self.scopes.extend(scope);
        if let Some(template) = &tag.template {
            self.visit_elements(template, position)?;
        }
        if opened {
            self.scopes.pop();
        }
        match &tag.inverse {
            Some(inverse) => self.visit_elements(inverse, position),
            None => Ok(()),
        }
    }

    /// Resolves a path to steps; `None` for `@index` and similar local variables.
    fn resolve(&self, path: &Path, position: TagPosition) -> Result<Option<Vec<PathStep>>, UsageError> {
        let (segments, raw) = match path {
            Path::Local((_, name, _)) if matches!(name.as_str(), "index" | "key" | "first" | "last") => {
                return Ok(None);
            }
            Path::Local((_, name, _)) => {
                return Err(usage_error(position, format!("`@{name}` is not known")));
            }
            Path::Relative((segments, raw)) => (segments, raw),
        };
        let names: Vec<&String> = segments
            .iter()
            .filter_map(|segment| match segment {
                PathSeg::Named(name) => Some(name),
                _ => None,
            })
            .collect();
        if names.len() > PATH_NAMES_MAX {
            return Err(usage_error(position, format!("a path has more than {PATH_NAMES_MAX} names")));
        }
        if names.first().is_some_and(|name| *name == UNSUBSCRIBE_URL) {
            return Ok(Some(vec![PathStep::Field(UNSUBSCRIBE_URL.to_owned())]));
        }
        let is_root = raw.contains("@root");
        let ups = segments.len() - names.len() - usize::from(is_root);
        let named = |name: &String| {
            let mut scopes = self.scopes.iter().rev();
            scopes.find_map(|scope| scope.names.iter().find(|(n, _)| n == name).map(|(_, path)| path.clone()))
        };
        let first = names.first().filter(|_| !is_root).and_then(|first| named(first));
        let (mut steps, rest) = match first {
            Some(None) => return Ok(None),
            Some(Some(path)) => (path, names.get(1..).unwrap_or_default()),
            None if is_root => (Vec::new(), names.as_slice()),
            None => {
                let scope = self.scopes.len().checked_sub(ups + 1).and_then(|n| self.scopes.get(n));
                (scope.map(|scope| scope.path.clone()).unwrap_or_default(), names.as_slice())
            }
        };
        steps.extend(rest.iter().map(|name| PathStep::Field((*name).clone())));
        Ok(Some(steps))
    }
}

fn is_block(name: &str) -> bool {
    matches!(name, "if" | "unless" | "each" | "with")
}

/// Parses `as |item|`, and `as |item index|` of `each`.
fn block_names(
    tag: &HelperTemplate,
    name: &str,
    path: &[PathStep],
    position: TagPosition,
) -> Result<BlockParamNames, UsageError> {
    let entry = |item: &String| (item.clone(), Some(path.to_vec()));
    match (&tag.block_param, name) {
        (None, _) => Ok(Vec::new()),
        (Some(BlockParam::Single(Parameter::Name(item))), _) => Ok(vec![entry(item)]),
        (Some(BlockParam::Pair((Parameter::Name(item), Parameter::Name(at)))), "each") => {
            Ok(vec![entry(item), (at.clone(), None)])
        }
        _ => Err(usage_error(position, format!("`{name}` takes one name: `as |item|`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::markup::parse;

    fn usage_of(source: &str) -> Result<VariableUsage, MarkupError> {
        VariableUsage::collect(&parse(source)?[0])
    }

    #[test]
    fn variables_are_found_in_every_construct() {
        let source = "Hi {{user.name}}{{#if vip}}!{{/if}} {{{unsubscribe_url}}} {{../unsubscribe_url}}
            {{#each items}}{{@index}} {{name}} {{this.price}} {{../currency}} {{@root.shop}}
              {{#with maker}}{{city}}{{../name}}{{/with}}{{#each tags as |tag n|}}{{tag}}{{n}}{{/each}}
            {{else}}{{none}}{{/each}}";
        let suggested = usage_of(source).unwrap().example_variables(&[]);
        assert_eq!(
            Value::Object(suggested),
            json!({
                "user": {"name": "name_value"}, "vip": true, "currency": "currency_value",
                "shop": "shop_value", "none": "none_value",
                "items": [{"name": "name_value", "price": "price_value", "maker": {"city": "city_value"},
                    "tags": ["tags_value"]}],
            }),
        );
    }

    #[test]
    fn declared_variables_determine_the_example() {
        let variable = |key: &str, kind, fallback_value| TemplateVariable {
            key: key.to_owned(),
            r#type: kind,
            required: true,
            fallback_value,
        };
        let declared = [
            variable("name", VariableType::String, Some(json!("friend"))),
            variable("count", VariableType::Number, None),
            variable("items", VariableType::List, None),
            variable("unused", VariableType::Object, None),
        ];
        let suggested =
            usage_of("{{name}} {{count}} {{#each items}}{{id}}{{/each}}").unwrap().example_variables(&declared);
        assert_eq!(
            Value::Object(suggested),
            json!({"name": "friend", "count": 1, "items": [{"id": "id_value"}], "unused": {}}),
        );
    }

    #[test]
    fn unsupported_markup_is_refused_with_its_position() {
        for source in [
            "\n {{upper name}}",
            "\n {{name x=1}}",
            "\n {{#items}}{{/items}}",
            "\n {{#if}}{{/if}}",
            "\n {{#if a b}}{{/if}}",
            "\n {{#each \"x\"}}{{/each}}",
            "\n {{#each a x=1}}{{/each}}",
            "\n {{#with a as |b c|}}{{/with}}",
            "\n {{if}}",
            "\n {{@nothing}}",
            "\n {{a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q}}",
        ] {
            let error = usage_of(source).unwrap_err();
            assert_eq!((error.line, error.column), (2, 2), "{source}: {error}");
        }
    }
}
