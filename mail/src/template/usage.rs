//! Usage: which variables a template uses, and how, found in its parsed markup.
//!
//! The walk keeps the scopes that `{{#each}}` and `{{#with}}` open, so that `{{price}}` within
//! `{{#each items}}` is known to be a field of the entries of `items`. On the way it refuses what the
//! grammar takes and a template may not use.

use std::collections::BTreeMap;

use handlebars::template::{BlockParam, HelperTemplate, Parameter, TemplateElement};
use handlebars::{Path, PathSeg, Template as Parsed};
use serde_json::{Map, Value, json};

use super::markup::{MarkupError, Piece};
use super::{UNSUBSCRIBE_URL, Variable, VariableType};

/// Names in a path.
const PATH_NAMES_MAX: usize = 16;

/// What is done with a variable, and with what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage {
    fields: BTreeMap<String, Usage>,
    entries: Option<Box<Usage>>,
    printed: bool,
    tested: bool,
}

/// A step from the variables to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Entry,
}

struct Scope {
    path: Vec<Step>,
    names: Names,
}

/// `as |item index|`: what a block calls its entry, and, leading nowhere, the entry's place in the list.
type Names = Vec<(String, Option<Vec<Step>>)>;

impl Usage {
    /// What a piece of a template uses.
    ///
    /// # Errors
    /// A tag that may not be used.
    pub(crate) fn of(piece: &Piece) -> Result<Self, MarkupError> {
        let mut walk =
            Walk { root: Self::default(), scopes: vec![Scope { path: Vec::new(), names: Vec::new() }] };
        walk.elements(&piece.parsed, (1, 1))
            .map_err(|Refused(place, message)| piece.error(place, message))?;
        let mut root = walk.root;
        root.fields.remove(UNSUBSCRIBE_URL);
        Ok(root)
    }

    /// Adds what another part uses.
    pub(crate) fn add(&mut self, other: Self) {
        self.printed |= other.printed;
        self.tested |= other.tested;
        for (name, usage) in other.fields {
            self.fields.entry(name).or_default().add(usage);
        }
        if let Some(entries) = other.entries {
            self.entries.get_or_insert_default().add(*entries);
        }
    }

    fn at(&mut self, path: &[Step]) -> &mut Self {
        path.iter().fold(self, |usage, step| match step {
            Step::Field(name) => usage.fields.entry(name.clone()).or_default(),
            Step::Entry => usage.entries.get_or_insert_default(),
        })
    }

    /// Whether a variable of this name is used.
    #[must_use]
    pub fn uses(&self, name: &str) -> bool {
        // `{{#each this}}` goes over all of them.
        self.fields.contains_key(name) || self.entries.is_some() || self.printed
    }

    /// Variables that would do: fallbacks where there are any, examples elsewhere.
    #[must_use]
    pub fn suggest(&self, declared: &[Variable]) -> Map<String, Value> {
        let mut suggested: Map<String, Value> =
            self.fields.iter().map(|(name, usage)| (name.clone(), usage.example(name))).collect();
        for variable in declared {
            let example = match (&variable.fallback_value, variable.r#type) {
                (Some(fallback), _) => fallback.clone(),
                (None, VariableType::Number) => json!(1),
                (None, VariableType::Boolean) => json!(true),
                (None, VariableType::Object | VariableType::List | VariableType::String) => {
                    let found = suggested.get(&variable.key).filter(|value| variable.r#type.takes(value));
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

    fn example(&self, name: &str) -> Value {
        if let Some(entries) = &self.entries {
            return json!([entries.example(name)]);
        }
        if !self.fields.is_empty() {
            return self.fields.iter().map(|(name, usage)| (name.clone(), usage.example(name))).collect();
        }
        if self.tested && !self.printed {
            return json!(true);
        }
        json!(format!("{name}_value"))
    }
}

struct Walk {
    root: Usage,
    scopes: Vec<Scope>,
}

type Place = (usize, usize);

/// Where in a piece something is refused, and why.
struct Refused(Place, String);

fn refused(place: Place, message: impl Into<String>) -> Refused {
    Refused(place, message.into())
}

impl Walk {
    fn elements(&mut self, parsed: &Parsed, around: Place) -> Result<(), Refused> {
        for (n, element) in parsed.elements.iter().enumerate() {
            let place = parsed.mapping.get(n).map_or(around, |mapping| (mapping.0, mapping.1));
            match element {
                TemplateElement::RawString(_) | TemplateElement::Comment(_) => {}
                TemplateElement::Expression(tag) | TemplateElement::HtmlExpression(tag) => {
                    self.expression(tag, place)?;
                }
                TemplateElement::HelperBlock(tag) => self.block(tag, place)?,
                _ => return Err(refused(place, "this tag is not supported")),
            }
        }
        Ok(())
    }

    fn expression(&mut self, tag: &HelperTemplate, place: Place) -> Result<(), Refused> {
        let name = tag.name.as_name().unwrap_or_default();
        if !tag.params.is_empty() || !tag.hash.is_empty() {
            let text = format!("helpers such as `{name}` are not supported: a tag names one variable");
            return Err(refused(place, text));
        }
        if is_block(name) {
            return Err(refused(
                place,
                format!("`{name}` is a block: `{{{{#{name} …}}}} … {{{{/{name}}}}}`"),
            ));
        }
        let Parameter::Path(path) = &tag.name else {
            return Err(refused(place, "a tag names one variable"));
        };
        if let Some(steps) = self.resolve(path, place)? {
            self.root.at(&steps).printed = true;
        }
        Ok(())
    }

    fn block(&mut self, tag: &HelperTemplate, place: Place) -> Result<(), Refused> {
        let name = tag.name.as_name().unwrap_or_default();
        if !is_block(name) {
            let text = format!("`{{{{#{name}}}}}` is not supported; use #if, #unless, #each or #with");
            return Err(refused(place, text));
        }
        let [of] = tag.params.as_slice() else {
            return Err(refused(place, format!("`{name}` needs one variable")));
        };
        let is_test = matches!(name, "if" | "unless");
        if tag.hash.keys().any(|key| !is_test || key != "includeZero") {
            return Err(refused(place, format!("`{name}` takes no named parameters")));
        }
        let steps = match of {
            Parameter::Path(path) => self.resolve(path, place)?,
            Parameter::Literal(_) if is_test => None,
            _ => return Err(refused(place, format!("`{name}` needs a variable"))),
        };
        if is_test {
            if let Some(steps) = steps {
                self.root.at(&steps).tested = true;
            }
            self.bodies(tag, None, place)
        } else {
            let Some(mut path) = steps else {
                return Err(refused(place, format!("`{name}` needs a variable")));
            };
            let usage = self.root.at(&path);
            usage.tested = true;
            if name == "each" {
                usage.entries.get_or_insert_default();
                path.push(Step::Entry);
            }
            let names = block_names(tag, name, &path, place)?;
            self.bodies(tag, Some(Scope { path, names }), place)
        }
    }

    fn bodies(&mut self, tag: &HelperTemplate, scope: Option<Scope>, place: Place) -> Result<(), Refused> {
        let opened = scope.is_some();
        self.scopes.extend(scope);
        if let Some(template) = &tag.template {
            self.elements(template, place)?;
        }
        if opened {
            self.scopes.pop();
        }
        match &tag.inverse {
            Some(inverse) => self.elements(inverse, place),
            None => Ok(()),
        }
    }

    /// Where a path leads; nowhere for `@index` and its like.
    fn resolve(&self, path: &Path, place: Place) -> Result<Option<Vec<Step>>, Refused> {
        let (segments, raw) = match path {
            Path::Local((_, name, _)) if matches!(name.as_str(), "index" | "key" | "first" | "last") => {
                return Ok(None);
            }
            Path::Local((_, name, _)) => {
                return Err(refused(place, format!("`@{name}` is not known")));
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
            return Err(refused(place, format!("a path has more than {PATH_NAMES_MAX} names")));
        }
        if names.first().is_some_and(|name| *name == UNSUBSCRIBE_URL) {
            return Ok(Some(vec![Step::Field(UNSUBSCRIBE_URL.to_owned())]));
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
        steps.extend(rest.iter().map(|name| Step::Field((*name).clone())));
        Ok(Some(steps))
    }
}

fn is_block(name: &str) -> bool {
    matches!(name, "if" | "unless" | "each" | "with")
}

/// `as |item|`, and `as |item index|` of `each`.
fn block_names(tag: &HelperTemplate, name: &str, path: &[Step], place: Place) -> Result<Names, Refused> {
    let entry = |item: &String| (item.clone(), Some(path.to_vec()));
    match (&tag.block_param, name) {
        (None, _) => Ok(Vec::new()),
        (Some(BlockParam::Single(Parameter::Name(item))), _) => Ok(vec![entry(item)]),
        (Some(BlockParam::Pair((Parameter::Name(item), Parameter::Name(at)))), "each") => {
            Ok(vec![entry(item), (at.clone(), None)])
        }
        _ => Err(refused(place, format!("`{name}` takes one name: `as |item|`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::markup::parse;

    fn of(source: &str) -> Result<Usage, MarkupError> {
        Usage::of(&parse(source)?[0])
    }

    #[test]
    fn variables_are_found_where_they_are() {
        let source = "Hi {{user.name}}{{#if vip}}!{{/if}} {{{unsubscribe_url}}} {{../unsubscribe_url}}
            {{#each items}}{{@index}} {{name}} {{this.price}} {{../currency}} {{@root.shop}}
              {{#with maker}}{{city}}{{../name}}{{/with}}{{#each tags as |tag n|}}{{tag}}{{n}}{{/each}}
            {{else}}{{none}}{{/each}}";
        let suggested = of(source).unwrap().suggest(&[]);
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
    fn declared_variables_shape_what_is_suggested() {
        let variable = |key: &str, kind, fallback_value| Variable {
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
        let suggested = of("{{name}} {{count}} {{#each items}}{{id}}{{/each}}").unwrap().suggest(&declared);
        assert_eq!(
            Value::Object(suggested),
            json!({"name": "friend", "count": 1, "items": [{"id": "id_value"}], "unused": {}}),
        );
    }

    #[test]
    fn what_may_not_be_used_is_refused_with_its_place() {
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
            let error = of(source).unwrap_err();
            assert_eq!((error.line, error.column), (2, 2), "{source}: {error}");
        }
    }
}
