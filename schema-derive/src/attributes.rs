//! The attributes of structs and fields that decide about a schema: `serde`, `schema` and doc comments.

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::meta::ParseNestedMeta;
use syn::parse::ParseStream;
use syn::{Attribute, Error, Expr, ExprLit, Field, Ident, Lit, LitStr, Meta, Path, Result, Token, Type};

/// A keyword of JSON Schema with its value.
pub(crate) type Keyword = (LitStr, TokenStream);

/// Attributes of a struct.
#[derive(Default)]
pub(crate) struct StructAttributes {
    pub(crate) description: Option<String>,
    /// Name of the component.
    pub(crate) name: Option<LitStr>,
    /// Constant of `http::StatusCode`.
    pub(crate) status: Option<Ident>,
    /// Limit of a request body that is this object.
    pub(crate) body_bytes_max: Option<Expr>,
    /// Function that adds the errors of fields that do not fit together.
    pub(crate) check: Option<Path>,
    /// An empty request body is an object without fields.
    pub(crate) is_optional_body: bool,
    /// Keywords of JSON Schema with their values.
    pub(crate) keywords: Vec<Keyword>,
}

impl StructAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut parsed = Self { description: description(attributes), ..Self::default() };
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("schema")) {
            attribute.parse_args_with(|input: ParseStream<'_>| {
                for_each_value(input, &["optional_body"], |name, input| {
                    match name.to_string().as_str() {
                        "check" => parsed.check = Some(input.parse()?),
                        "body_bytes_max" => parsed.body_bytes_max = Some(input.parse()?),
                        "optional_body" => parsed.is_optional_body = true,
                        "name" => parsed.name = Some(input.parse()?),
                        "status" => parsed.status = Some(input.parse()?),
                        _ => parsed.keywords.push(keyword(&name, input)?),
                    }
                    Ok(())
                })
            })?;
        }
        Ok(parsed)
    }
}

/// Attributes of a field.
#[derive(Default)]
pub(crate) struct FieldAttributes {
    pub(crate) description: Option<String>,
    /// serde's `rename`.
    rename: Option<LitStr>,
    /// serde's `flatten`.
    pub(crate) is_flattened: bool,
    /// serde's `skip_serializing_if`: the field may be absent.
    pub(crate) is_optional: bool,
    /// The field is not in the schema.
    pub(crate) is_skipped: bool,
    /// Function that makes the schema.
    pub(crate) with: Option<Path>,
    /// Type whose schema it is, if not the field's.
    pub(crate) schema_type: Option<Type>,
    /// Description of the other fields, if this one is referred to with `allOf`.
    pub(crate) all_of: Option<LitStr>,
    /// Keywords of JSON Schema with their values.
    pub(crate) keywords: Vec<Keyword>,
}

impl FieldAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut parsed = Self { description: description(attributes), ..Self::default() };
        for attribute in attributes {
            if attribute.path().is_ident("serde") {
                attribute.parse_nested_meta(|meta| parsed.read_serde(&meta))?;
            } else if attribute.path().is_ident("schema") {
                attribute.parse_args_with(|input: ParseStream<'_>| parsed.read_schema(input))?;
            }
        }
        Ok(parsed)
    }

    /// The name of the field in JSON.
    pub(crate) fn name(&self, field: &Field) -> Result<LitStr> {
        if let Some(name) = &self.rename {
            return Ok(name.clone());
        }
        let name = field.ident.as_ref().ok_or_else(|| Error::new_spanned(field, "the field has no name"))?;
        Ok(LitStr::new(&name.unraw().to_string(), name.span()))
    }

    fn read_serde(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("rename") {
            self.rename = Some(meta.value()?.parse()?);
            return Ok(());
        }
        self.is_flattened |= meta.path.is_ident("flatten");
        self.is_optional |= meta.path.is_ident("skip_serializing_if");
        if meta.input.peek(Token![=]) {
            meta.value()?.parse::<Expr>()?;
        }
        Ok(())
    }

    fn read_schema(&mut self, input: ParseStream<'_>) -> Result<()> {
        for_each_value(input, &["skip"], |name, input| {
            match name.to_string().as_str() {
                "with" => self.with = Some(input.parse()?),
                "as" => self.schema_type = Some(input.parse()?),
                "skip" => self.is_skipped = true,
                "all_of" => self.all_of = Some(input.parse()?),
                _ => self.keywords.push(keyword(&name, input)?),
            }
            Ok(())
        })
    }
}

/// Calls `read` for each `name = value`, after the equals sign; the flags have no value. The names include Rust's
/// keywords `as` and `enum`.
pub(crate) fn for_each_value(
    input: ParseStream<'_>,
    flags: &[&str],
    mut read: impl FnMut(Ident, ParseStream<'_>) -> Result<()>,
) -> Result<()> {
    while !input.is_empty() {
        let name = input.call(Ident::parse_any)?;
        if !flags.iter().any(|flag| name == flag) {
            input.parse::<Token![=]>()?;
        }
        read(name, input)?;
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(())
}

/// Reads the value of a keyword: JSON as in `json!`.
pub(crate) fn keyword(name: &Ident, input: ParseStream<'_>) -> Result<Keyword> {
    let mut value = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        value.extend([input.parse::<TokenTree>()?]);
    }
    Ok((LitStr::new(&name.to_string(), name.span()), value))
}

fn doc_text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
        // The argument of a declarative macro.
        Expr::Group(group) => doc_text(&group.expr),
        _ => None,
    }
}

/// The doc comment as one line, without its last full stop.
pub(crate) fn description(attributes: &[Attribute]) -> Option<String> {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => doc_text(&meta.value),
        _ => None,
    });
    let text = lines.collect::<Vec<_>>().join(" ");
    let text = text.strip_suffix('.').unwrap_or(&text).trim();
    (!text.is_empty()).then(|| text.to_owned())
}
