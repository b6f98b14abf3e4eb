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
//! | field | `with = function` | `fn(&mut Schemas) -> Value` makes the schema |
//! | field | `as = Type` | the schema of another type |
//! | field | `all_of = "text"` | a flattened object is referred to with `allOf`; the text describes the other fields |
//! | field | `skip` | the field is not in the schema, because every response may have it (`warnings`) |
//! | struct, field | `maximum = MAX`, `examples = [1]` | any other name is a keyword of JSON Schema, with its value |

mod attributes;
mod derive;

#[proc_macro_derive(ToSchema, attributes(schema))]
pub fn derive_to_schema(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    derive::expand(input).unwrap_or_else(syn::Error::into_compile_error).into()
}
