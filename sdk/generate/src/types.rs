//! `TypeRegistry`: gives every object and enum of the schemas a name, once.
//!
//! Components keep their names. A schema that is written in place is named after its parent and its field
//! (`tags` of `SendEmail` has `SendEmailTag`), unless an equal schema has a name already. `words.json` gives other names,
//! to components (`Sent`) and to places (`SendEmail.tag`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::case::{pascal, singular};
use crate::error::GenerateError;
use crate::schema::{Additional, Schema, TypeRef};
use crate::words::Words;

/// Nesting of `allOf` beyond which schemas are taken for circular.
const DEPTH_MAX: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TypeKind {
    Object,
    Enum,
    Alias,
}

/// A type that SDKs declare.
#[derive(Debug, Clone, Serialize)]
pub struct NamedType {
    pub name: String,
    pub doc: String,
    pub kind: TypeKind,
    /// Whether it is the PARAMS of a method; such a type has `in` in its fields.
    pub params: bool,
    /// Whether requests contain it.
    pub in_request: bool,
    /// Whether answers contain it.
    pub in_response: bool,
    /// Whether webhook events contain it.
    pub in_event: bool,
    /// Fields of an object.
    pub fields: Vec<Field>,
    /// The type of an object's fields beside `fields`, if there can be others.
    pub extra: Option<TypeRef>,
    /// Values of an enum.
    pub values: Vec<String>,
    /// The type that an alias stands for.
    pub target: Option<TypeRef>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Location {
    Body,
    Query,
}

#[derive(Debug, Clone, Serialize)]
pub struct Field {
    /// The name in JSON or in the query string.
    pub wire: String,
    pub doc: String,
    #[serde(rename = "type")]
    pub kind: TypeRef,
    pub required: bool,
    pub nullable: bool,
    /// Where it goes in a request; absent in other types.
    #[serde(rename = "in")]
    pub location: Option<Location>,
    /// Whether the keys of its value are the caller's and stay as they are.
    pub free_map: bool,
    pub default: Option<Value>,
    /// Whether an array in the query is a repeated parameter, instead of values separated by commas.
    pub explode: bool,
}

/// An object's fields after `allOf` and references.
#[derive(Debug, Default)]
struct Flat<'a> {
    doc: Option<&'a str>,
    fields: Vec<(&'a str, &'a Schema, bool)>,
    extra: Option<&'a Schema>,
    has_free_keys: bool,
}

pub struct TypeRegistry<'a> {
    components: &'a BTreeMap<String, Schema>,
    renamed: &'a BTreeMap<String, String>,
    event_fields: &'a BTreeMap<String, Schema>,
    is_in_event: bool,
    renames_used: BTreeSet<String>,
    types: BTreeMap<String, NamedType>,
    inline: Vec<(Schema, String)>,
    enums: Vec<(String, Vec<String>, String)>,
}

impl<'a> TypeRegistry<'a> {
    pub fn new(components: &'a BTreeMap<String, Schema>, words: &'a Words) -> Self {
        Self {
            components,
            renamed: &words.types,
            event_fields: &words.event_fields,
            is_in_event: false,
            renames_used: BTreeSet::new(),
            types: BTreeMap::new(),
            inline: Vec::new(),
            enums: Vec::new(),
        }
    }

    /// All types by name.
    pub fn finish(self) -> Result<BTreeMap<String, NamedType>, GenerateError> {
        let is_unused =
            |(place, name): &(&String, &String)| !self.renames_used.contains(*place) && !self.types.contains_key(*name);
        match self.renamed.iter().find(is_unused) {
            Some((place, name)) => Err(GenerateError::Model(format!("words.json: no type is {place} or {name}"))),
            None => Ok(self.types),
        }
    }

    /// Declares all components but those of `bodies`, so that names do not depend on the order of operations.
    pub fn declare_components(&mut self, bodies: &BTreeSet<&str>) -> Result<(), GenerateError> {
        let components = self.components;
        components.keys().filter(|name| !bodies.contains(name.as_str())).try_for_each(|name| {
            self.component(name)?;
            Ok(())
        })
    }

    /// The type of a schema and whether it can be null. `parent` and `field` name what has no name of its own.
    pub fn resolve(&mut self, schema: &'a Schema, parent: &str, field: &str) -> Result<(TypeRef, bool), GenerateError> {
        if let Some(name) = schema.component() {
            return Ok((self.component(name)?, false));
        }
        if !schema.one_of.is_empty() {
            return self.one_of(schema, parent, field);
        }
        if let [only] = &schema.all_of[..] {
            return self.resolve(only, parent, field);
        }
        let nullable = schema.types.has("null");
        if schema.has_fields() || !schema.all_of.is_empty() {
            return Ok((TypeRef::Ref { name: self.inline_object(schema, parent, field)? }, nullable));
        }
        if let Some(values) = strings(schema) {
            return Ok((self.enumeration(schema, values, parent, field)?, nullable));
        }
        let kind = match schema.types.main() {
            Some("string") => TypeRef::String { format: schema.format.clone() },
            Some("integer") => TypeRef::Integer,
            Some("number") => TypeRef::Number,
            Some("boolean") => TypeRef::Boolean,
            Some("array") => {
                let items = match &schema.items {
                    Some(items) => self.resolve(items, parent, &singular(field))?.0,
                    None => TypeRef::Any,
                };
                TypeRef::Array { items: Box::new(items) }
            }
            Some("object") => {
                let items = match &schema.additional_properties {
                    Some(Additional::Typed(items)) => self.resolve(items, parent, &singular(field))?.0,
                    _ => TypeRef::Any,
                };
                TypeRef::Map { items: Box::new(items) }
            }
            _ => TypeRef::Any,
        };
        Ok((kind, nullable))
    }

    fn one_of(&mut self, schema: &'a Schema, parent: &str, field: &str) -> Result<(TypeRef, bool), GenerateError> {
        let nullable = schema.one_of.iter().any(Schema::is_null);
        let alternatives: Vec<&Schema> = schema.one_of.iter().filter(|one| !one.is_null()).collect();
        if let [only] = alternatives[..] {
            return Ok((self.resolve(only, parent, field)?.0, true));
        }
        if alternatives.iter().all(|one| one.is_reference() || one.has_fields() || !one.all_of.is_empty()) {
            return Ok((TypeRef::Ref { name: self.inline_object(schema, parent, field)? }, nullable));
        }
        let mut variants = Vec::new();
        for one in alternatives {
            let (variant, _) = self.resolve(one, parent, field)?;
            if !variants.contains(&variant) {
                variants.push(variant);
            }
        }
        let one_or_many = matches!(&variants[..], [one, TypeRef::Array { items }] if **items == *one);
        Ok((TypeRef::Union { variants, one_or_many }, nullable))
    }

    /// The type of a component, which is declared at its first use.
    fn component(&mut self, name: &str) -> Result<TypeRef, GenerateError> {
        let components = self.components;
        let (wire_name, schema) = components
            .get_key_value(name)
            .ok_or_else(|| GenerateError::Model(format!("the schema {name} is referred to, but absent")))?;
        let name = self.renamed.get(wire_name).unwrap_or(wire_name).clone();
        if self.renamed.contains_key(wire_name) {
            self.renames_used.insert(wire_name.clone());
        }
        let reference = TypeRef::Ref { name: name.clone() };
        if self.inline.iter().any(|(one, known)| one.component() == Some(wire_name) && *known == name) {
            return Ok(reference);
        }
        self.claim(&name)?;
        let marker = Schema { reference: Some(format!("#/components/schemas/{wire_name}")), ..Schema::default() };
        self.inline.push((marker, name.clone()));
        if schema.has_fields() || !schema.all_of.is_empty() || !schema.one_of.is_empty() {
            self.declare_object(schema, &name, &name)?;
        } else {
            let (target, _) = self.resolve(schema, &name, "")?;
            let doc = schema.description.clone().unwrap_or_default();
            self.types.insert(name.clone(), NamedType { target: Some(target), ..named(&name, doc, TypeKind::Alias) });
        }
        Ok(reference)
    }

    fn inline_object(&mut self, schema: &'a Schema, parent: &str, field: &str) -> Result<String, GenerateError> {
        let place = format!("{parent}.{field}");
        if let Some((component, _)) = self.renamed.get(&place).and_then(|name| self.components.get_key_value(name)) {
            self.renames_used.insert(place);
            self.component(component)?;
            return Ok(component.clone());
        }
        if let Some((_, name)) = self.inline.iter().find(|(one, _)| one == schema) {
            return Ok(name.clone());
        }
        if let Some(name) = self.shared_object(schema, &place)? {
            return Ok(name);
        }
        let name = self.new_name(parent, field)?;
        self.inline.push((schema.clone(), name.clone()));
        let base = name.clone();
        self.declare_object(schema, &name, &base)?;
        Ok(name)
    }

    /// The object that `words.json` names for the place, if it exists with the same fields.
    fn shared_object(&mut self, schema: &'a Schema, place: &str) -> Result<Option<String>, GenerateError> {
        let Some(name) = self.renamed.get(place) else { return Ok(None) };
        if !self.types.contains_key(name) {
            return Ok(None);
        }
        let flat = self.flatten(schema, 0)?;
        let fields = self.fields(&flat, name)?;
        let Some(known) = self.types.get(name) else { return Ok(None) };
        let shape = |all: &[Field]| -> Vec<_> { all.iter().map(|one| (one.wire.clone(), one.kind.clone())).collect() };
        if shape(&known.fields) != shape(&fields) {
            return Ok(None);
        }
        self.renames_used.insert(place.to_owned());
        self.inline.push((schema.clone(), name.clone()));
        Ok(Some(name.clone()))
    }

    /// Declares a response that is written in place and has no other name than its operation's.
    pub fn response(&mut self, schema: &'a Schema, wanted: &str) -> Result<TypeRef, GenerateError> {
        if schema.is_reference() {
            return Ok(self.resolve(schema, "", "")?.0);
        }
        if !schema.has_fields() && schema.all_of.is_empty() && schema.one_of.is_empty() {
            return Ok(self.resolve(schema, wanted, "")?.0);
        }
        let name = wanted.to_owned();
        self.claim(&name)?;
        let base = wanted.strip_suffix("Response").unwrap_or(wanted).to_owned();
        self.declare_object(schema, &name, &base)?;
        Ok(TypeRef::Ref { name })
    }

    fn enumeration(
        &mut self,
        schema: &Schema,
        values: Vec<String>,
        parent: &str,
        field: &str,
    ) -> Result<TypeRef, GenerateError> {
        if values.len() < 2 {
            return Ok(TypeRef::Enum { name: None, values });
        }
        let known = self.enums.iter().find(|(one, known, _)| one == field && *known == values);
        let name = match known {
            Some((_, _, name)) => name.clone(),
            None => {
                let name = match self.shared_enum(parent, field, &values) {
                    Some(shared) => return Ok(TypeRef::Enum { name: Some(shared), values }),
                    None => self.new_name(parent, field)?,
                };
                self.enums.push((field.to_owned(), values.clone(), name.clone()));
                let doc = schema.description.clone().unwrap_or_default();
                let declared = NamedType { values: values.clone(), ..named(&name, doc, TypeKind::Enum) };
                self.types.insert(name.clone(), declared);
                name
            }
        };
        Ok(TypeRef::Enum { name: Some(name), values })
    }

    /// The enum that `words.json` names for the place, if it exists with the same values.
    fn shared_enum(&mut self, parent: &str, field: &str, values: &[String]) -> Option<String> {
        let place = format!("{parent}.{field}");
        let name = self.renamed.get(&place)?;
        let known = self.types.get(name)?;
        if known.kind != TypeKind::Enum || known.values != values {
            return None;
        }
        self.renames_used.insert(place);
        Some(name.clone())
    }

    fn new_name(&mut self, parent: &str, field: &str) -> Result<String, GenerateError> {
        let place = format!("{parent}.{field}");
        let name = match self.renamed.get(&place) {
            Some(name) => name.clone(),
            None => format!("{parent}{}", pascal(field)),
        };
        if self.renamed.contains_key(&place) {
            self.renames_used.insert(place.clone());
        }
        if self.types.contains_key(&name) {
            return Err(GenerateError::Model(format!("{place} needs a name in words.json: {name} is another type")));
        }
        self.claim(&name)?;
        Ok(name)
    }

    /// Reserves a name, so that a type which contains itself finds it.
    fn claim(&mut self, name: &str) -> Result<(), GenerateError> {
        let reserved = NamedType { ..named(name, String::new(), TypeKind::Object) };
        match self.types.insert(name.to_owned(), reserved) {
            Some(_) => Err(GenerateError::Model(format!("two types have the name {name}: rename one in words.json"))),
            None => Ok(()),
        }
    }

    fn declare_object(&mut self, schema: &'a Schema, name: &str, base: &str) -> Result<(), GenerateError> {
        let flat = self.flatten(schema, 0)?;
        let fields = self.fields(&flat, base)?;
        let extra = match flat.extra {
            Some(extra) => Some(self.resolve(extra, base, "extra")?.0),
            None => flat.has_free_keys.then_some(TypeRef::Any),
        };
        let doc = flat.doc.unwrap_or_default().to_owned();
        self.types.insert(name.to_owned(), NamedType { fields, extra, ..named(name, doc, TypeKind::Object) });
        Ok(())
    }

    fn fields(&mut self, flat: &Flat<'a>, base: &str) -> Result<Vec<Field>, GenerateError> {
        flat.fields.iter().map(|(wire, schema, required)| self.field(wire, schema, *required, base)).collect()
    }

    /// One field of an object or one parameter.
    pub fn field(
        &mut self,
        wire: &str,
        schema: &'a Schema,
        required: bool,
        parent: &str,
    ) -> Result<Field, GenerateError> {
        let schema = match self.event_fields.get(wire) {
            Some(known) if self.is_in_event && schema.says_nothing() => known,
            _ => schema,
        };
        let (kind, nullable) = self.resolve(schema, parent, wire)?;
        Ok(Field {
            wire: wire.to_owned(),
            doc: schema.description.clone().unwrap_or_default(),
            free_map: kind.is_free_map(),
            kind,
            required,
            nullable,
            location: None,
            default: schema.default.clone(),
            explode: false,
        })
    }

    /// The fields of a request's body.
    pub fn body_fields(&mut self, schema: &'a Schema, parent: &str) -> Result<Vec<Field>, GenerateError> {
        let flat = self.flatten(schema, 0)?;
        if flat.extra.is_some() {
            return Err(GenerateError::Model(format!("the body of {parent} has free keys beside its fields")));
        }
        self.fields(&flat, parent)
    }

    /// Adds a method's params, which are always a type of their own.
    pub fn declare_params(&mut self, name: &str, doc: String, fields: Vec<Field>) -> Result<(), GenerateError> {
        self.claim(name)?;
        self.types.insert(name.to_owned(), NamedType { fields, params: true, ..named(name, doc, TypeKind::Object) });
        Ok(())
    }

    /// Adds the `data` of a webhook event.
    pub fn declare_event(&mut self, name: &str, doc: String, schema: &'a Schema) -> Result<(), GenerateError> {
        self.claim(name)?;
        self.is_in_event = true;
        let fields = self.body_fields(schema, name)?;
        self.is_in_event = false;
        self.types.insert(name.to_owned(), NamedType { fields, ..named(name, doc, TypeKind::Object) });
        Ok(())
    }

    /// Merges `allOf` (all fields) and alternatives of objects (a field is required if all require it).
    fn flatten(&self, schema: &'a Schema, depth: usize) -> Result<Flat<'a>, GenerateError> {
        if depth > DEPTH_MAX {
            return Err(GenerateError::Model("a schema contains itself by allOf or oneOf".to_owned()));
        }
        if let Some(name) = schema.component() {
            let schema = self.components.get(name);
            let schema = schema.ok_or_else(|| GenerateError::Model(format!("the schema {name} is absent")))?;
            return self.flatten(schema, depth + 1);
        }
        let mut flat = Flat { doc: schema.description.as_deref(), ..Flat::default() };
        for (wire, field) in schema.properties.iter().flat_map(|all| &all.0) {
            flat.add(wire, field, schema.required.contains(wire));
        }
        match &schema.additional_properties {
            Some(Additional::Typed(extra)) => flat.extra = Some(extra),
            Some(Additional::Allowed(true)) => flat.has_free_keys = true,
            Some(Additional::Allowed(false)) | None => {}
        }
        for part in &schema.all_of {
            let part = self.flatten(part, depth + 1)?;
            flat.doc = flat.doc.or(part.doc);
            flat.extra = flat.extra.or(part.extra);
            flat.has_free_keys |= part.has_free_keys;
            part.fields.into_iter().for_each(|(wire, field, required)| flat.add(wire, field, required));
        }
        let mut alternatives = Vec::new();
        for part in schema.one_of.iter().filter(|one| !one.is_null()) {
            alternatives.push(self.flatten(part, depth + 1)?);
        }
        for part in &alternatives {
            for (wire, field, _) in &part.fields {
                let required = alternatives.iter().all(|one| one.requires(wire));
                flat.add(wire, field, required);
            }
        }
        Ok(flat)
    }

    /// Sets `flag` on all types that `reference` reaches.
    pub fn mark(types: &mut BTreeMap<String, NamedType>, reference: &TypeRef, flag: fn(&mut NamedType) -> &mut bool) {
        match reference {
            TypeRef::Ref { name } | TypeRef::Enum { name: Some(name), .. } => Self::mark_named(types, name, flag),
            TypeRef::Array { items } | TypeRef::Map { items } => Self::mark(types, items, flag),
            TypeRef::Union { variants, .. } => variants.iter().for_each(|one| Self::mark(types, one, flag)),
            _ => {}
        }
    }

    /// Sets `flag` on the type and all types that it reaches.
    pub fn mark_named(types: &mut BTreeMap<String, NamedType>, name: &str, flag: fn(&mut NamedType) -> &mut bool) {
        let Some(found) = types.get_mut(name) else { return };
        if std::mem::replace(flag(found), true) {
            return;
        }
        let found = found.clone();
        let parts = found.fields.iter().map(|field| &field.kind).chain(&found.extra).chain(&found.target);
        parts.for_each(|part| Self::mark(types, part, flag));
    }
}

impl<'a> Flat<'a> {
    fn add(&mut self, wire: &'a str, schema: &'a Schema, required: bool) {
        match self.fields.iter_mut().find(|(known, _, _)| *known == wire) {
            Some((_, known, is_required)) => {
                *known = schema;
                *is_required |= required;
            }
            None => self.fields.push((wire, schema, required)),
        }
    }

    fn requires(&self, wire: &str) -> bool {
        self.fields.iter().any(|(name, _, required)| *name == wire && *required)
    }
}

fn named(name: &str, doc: String, kind: TypeKind) -> NamedType {
    NamedType {
        name: name.to_owned(),
        doc,
        kind,
        params: false,
        in_request: false,
        in_response: false,
        in_event: false,
        fields: Vec::new(),
        extra: None,
        values: Vec::new(),
        target: None,
    }
}

/// The strings of an enum or a constant.
fn strings(schema: &Schema) -> Option<Vec<String>> {
    let values: Vec<&Value> = match (&schema.constant, &schema.values) {
        (Some(constant), _) => vec![constant],
        (None, Some(values)) => values.iter().filter(|one| !one.is_null()).collect(),
        (None, None) => return None,
    };
    values.into_iter().map(|one| one.as_str().map(str::to_owned)).collect()
}
