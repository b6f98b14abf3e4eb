//! The attributes `omit_none` and `omit_empty`: serde's attributes for the fields of a stored row that are often empty.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, Data, DeriveInput, Ident, Type, parse_quote};

/// Adds serde's attributes to the fields of these types, except to those with a serde attribute of their own and to
/// those with `row(always)`.
pub(crate) fn expand(mut input: DeriveInput, types: &[&str]) -> TokenStream {
    if let Data::Struct(data) = &mut input.data {
        for field in &mut data.fields {
            let is_left = field.attrs.iter().any(|one| one.path().is_ident("serde") || is_row_always(one));
            field.attrs.retain(|one| !is_row_always(one));
            let name = type_name(&field.ty).filter(|name| !is_left && types.contains(&name.as_str()));
            field.attrs.extend(name.map(|name| attribute(&name)));
        }
    }
    input.into_token_stream()
}

/// Returns whether this is `#[row(always)]`. The compiler reports any other `row` as unknown.
fn is_row_always(attribute: &Attribute) -> bool {
    attribute.path().is_ident("row") && attribute.parse_args::<Ident>().is_ok_and(|word| word == "always")
}

/// Returns the last segment of a type's path, without its arguments.
fn type_name(of: &Type) -> Option<String> {
    let Type::Path(named) = of else { return None };
    named.path.segments.last().map(|segment| segment.ident.to_string())
}

fn attribute(type_name: &str) -> Attribute {
    match type_name {
        // serde reads a missing field of this type as `None`.
        "Option" => parse_quote!(#[serde(skip_serializing_if = "Option::is_none")]),
        "bool" => parse_quote!(#[serde(default, skip_serializing_if = "std::ops::Not::not")]),
        name => {
            let is_empty = format!("{name}::is_empty");
            parse_quote!(#[serde(default, skip_serializing_if = #is_empty)])
        }
    }
}
