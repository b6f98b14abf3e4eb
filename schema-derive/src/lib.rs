//! The derive macro `ToSchema` of crate `schema`: the JSON Schema of a response follows from its struct.
//!
//! ```text
//! struct ─► attributes (serde, schema, doc) ─► table of properties ─► schema::object_schema
//! ```
//!
//! The generated code is a constant table, not statements, so that a hundred structs add little to the build time.
//!
//! The names are serde's: `rename`, `flatten` and `skip_serializing_if` have their effect. A doc comment is the
//! description, without its last full stop. The attribute `schema` adds what the type cannot tell:
//!
//! | on | attribute | effect |
//! |---|---|---|
//! | struct | `name = "Email"` | the schema is a component of this name; without it, it stands where it is used |
//! | struct | `status = ACCEPTED` | the status of a successful response |
//! | struct | `body_bytes_max = MAX` | a request's body is this object (`FromRequest`); with `optional_body` it may be empty |
//! | struct | `check = function` | `fn(&Self, &ObjectFields, &mut FieldDiagnostics)` adds the errors of fields of such a body that do not fit together |
//! | field | `with = function` | `fn(&mut Schemas) -> Value` makes the schema |
//! | field | `as = Type` | the schema of another type |
//! | field | `all_of = "text"` | a flattened object is referred to with `allOf`; the text describes the other fields |
//! | field | `skip` | the field is not in the schema, because every response may have it (`warnings`) |
//! | struct, field | `maximum = MAX`, `examples = [1]` | any other name is a keyword of JSON Schema, with its value |
//!
//! The derive macro `RequestObject` of crate `httpd`: a request's fields, each with its names, its reader and its schema. The
//! type decides: `T` is required, `Option<T>` is optional, `Option<Option<T>>` may be null. The attribute `schema` of the
//! struct is as above; the attribute `field` has:
//!
//! | attribute | effect |
//! |---|---|
//! | `rename = "reply_to"` | the name in JSON, if it is not the struct's |
//! | `aliases = ["replyTo"]` | other accepted names |
//! | `foreign = ["ReplyTo"]` | names of other providers, which are rejected with the hint to use this one |
//! | `reader = Type` | `RequestValue` that reads the value and has its schema; without it, the field's type |
//! | `parse = function` | `fn(&RawValue) -> Result<T, String>` reads the value |
//! | `read = function` | `fn(&ObjectFields, &mut FieldDiagnostics)` reads the field, with others that it depends on |
//! | `schema = function` | `fn(&mut Schemas) -> Value` makes the schema |
//! | `schema = expression` | the schema; `schemas` is in scope |
//! | `absent = value`, `null = value` | the value of an absent field, and of null |
//! | `nullable` | null is accepted, and is as absence |
//! | `required` | an `Option<T>` must be given; it is `None` only after an error, for checks that concern several fields |
//! | `flatten` | the fields of another object |
//! | `maximum = MAX`, `examples = [1]` | any other name is a keyword of JSON Schema, with its value |
//!
//! The attributes `omit_none` and `omit_empty` stand above the serde derives of stored rows, and of responses that leave
//! out fields without a value. The attribute `answer` stands in place of the derives of what a page reads from an answer
//! of the API.

mod attributes;
mod derive;
mod omit;
mod request;

#[proc_macro_derive(ToSchema, attributes(schema))]
pub fn derive_to_schema(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    derive::expand(input).unwrap_or_else(syn::Error::into_compile_error).into()
}

#[proc_macro_derive(RequestObject, attributes(field, schema))]
pub fn derive_request_object(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    request::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Omits the fields of type `Option` that are `None`. A field with a serde attribute of its own keeps that one alone.
/// A field with `#[row(always)]` is never omitted: rows that were stored with it keep their bytes.
#[proc_macro_attribute]
pub fn omit_none(_: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    omit::expand(syn::parse_macro_input!(item as syn::DeriveInput), &["Option"]).into()
}

/// As `omit_none`, and omits empty lists, maps and sets and false flags; a missing one is read as empty or false.
#[proc_macro_attribute]
pub fn omit_empty(_: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let types = ["Option", "Vec", "BTreeMap", "BTreeSet", "bool"];
    omit::expand(syn::parse_macro_input!(item as syn::DeriveInput), &types).into()
}

/// Derives `Debug`, `Clone`, `Default` and `Deserialize`. A field that the answer does not have gets its
/// default (`false`, 0, an empty text).
#[proc_macro_attribute]
pub fn answer(_: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let item = proc_macro2::TokenStream::from(item);
    quote::quote! { #[derive(Debug, Clone, Default, serde::Deserialize)] #[serde(default)] #item }.into()
}
