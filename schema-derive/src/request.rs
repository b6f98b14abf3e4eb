//! The code that `#[derive(RequestObject)]` writes.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt as _;
use syn::parse::ParseStream;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Field, Fields, LitStr, Path, Result, Type};

use crate::attributes::{Keyword, StructAttributes, description, for_each_value, keyword};
use crate::derive::{keywords, option, option_argument};

/// Attributes of a field of a request.
#[derive(Default)]
struct RequestFieldAttributes {
    description: Option<String>,
    aliases: Option<Expr>,
    foreign: Option<Expr>,
    /// Type with reader and schema (`RequestValue`).
    reader: Option<Type>,
    parse: Option<Path>,
    /// Reads the field with others.
    read: Option<Path>,
    /// Function that makes the schema, or the schema.
    schema: Option<Expr>,
    /// Value if the field is absent.
    absent: Option<Expr>,
    /// Value if the field is null.
    null: Option<Expr>,
    is_flattened: bool,
    /// Name of the field in JSON, if it is not the struct's.
    rename: Option<LitStr>,
    /// The schema accepts null.
    is_nullable: bool,
    /// An `Option<T>` must be given; it is `None` after an error.
    is_required: bool,
    keywords: Vec<Keyword>,
}

impl RequestFieldAttributes {
    fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut parsed = Self { description: description(attributes), ..Self::default() };
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("field")) {
            attribute.parse_args_with(|input: ParseStream<'_>| {
                for_each_value(input, &["flatten", "nullable", "required"], |name, input| {
                    match name.to_string().as_str() {
                        "rename" => parsed.rename = Some(input.parse()?),
                        "aliases" => parsed.aliases = Some(input.parse()?),
                        "foreign" => parsed.foreign = Some(input.parse()?),
                        "reader" => parsed.reader = Some(input.parse()?),
                        "parse" => parsed.parse = Some(input.parse()?),
                        "read" => parsed.read = Some(input.parse()?),
                        "schema" => parsed.schema = Some(input.parse()?),
                        "absent" => parsed.absent = Some(input.parse()?),
                        "null" => parsed.null = Some(input.parse()?),
                        "flatten" => parsed.is_flattened = true,
                        "nullable" => parsed.is_nullable = true,
                        "required" => parsed.is_required = true,
                        _ => parsed.keywords.push(keyword(&name, input)?),
                    }
                    Ok(())
                })
            })?;
        }
        Ok(parsed)
    }
}

/// How often a field may be absent or null follows from its type.
enum Presence<'t> {
    /// `T`: must be given, unless there is a value for its absence.
    Required(&'t Type),
    /// `Option<T>`: null is as absence.
    Optional(&'t Type),
    /// `Option<Option<T>>`: null is `Some(None)`.
    Nullable(&'t Type),
}

impl<'t> Presence<'t> {
    fn of_type(field_type: &'t Type) -> Self {
        match option_argument(field_type) {
            None => Self::Required(field_type),
            Some(inner) => option_argument(inner).map_or(Self::Optional(inner), Self::Nullable),
        }
    }
}

/// The implementation of `RequestObject` for a struct, and of `FromRequest` if the whole body is the object.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let attributes = StructAttributes::parse(&input.attrs)?;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "`RequestObject` can be derived for structs only"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&input.ident, "`RequestObject` needs named fields"));
    };
    let (mut specs, mut reads, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for field in &fields.named {
        let code = FieldCode::of_field(field)?;
        specs.push(code.spec);
        reads.push(code.read);
        values.push(code.value);
    }
    let text = attributes.description.unwrap_or_default();
    let mut object = quote!(::httpd::request_object::object_schema(schemas, #text, Self::FIELDS));
    if let Some(keywords) = keywords(&attributes.keywords) {
        object = quote!(::schema::with_keywords(#object, #keywords));
    }
    if let Some(name) = &attributes.name {
        object = quote!(schemas.component(#name, |schemas| #object));
    }
    let name = &input.ident;
    let (generics, arguments, conditions) = input.generics.split_for_impl();
    let from_request = attributes.body_bytes_max.map(|bytes_max| {
        let (media, read) = match (&attributes.check, attributes.is_optional_body) {
            (Some(check), _) => (quote!(Json), quote!(read_checked_body(call, #check))),
            (None, true) => (quote!(OptionalJson), quote!(read_optional_body(call))),
            (None, false) => (quote!(Json), quote!(read_body(call))),
        };
        quote! {
            impl #generics ::httpd::request::FromRequest for #name #arguments #conditions {
                const BODY_BYTES_MAX: Option<usize> = Some(#bytes_max);
                const MEDIA: ::httpd::request::Media = ::httpd::request::Media::#media;
                const BODY: Option<::httpd::request::BodySchema> =
                    Some(<Self as ::httpd::request_object::RequestObject>::schema);

                fn read(call: &::httpd::request::Request) -> Result<Self, ::httpd::problem::Problem> {
                    ::httpd::request_object::#read
                }
            }
        }
    });
    Ok(quote! {
        #from_request
        impl #generics ::httpd::request_object::RequestObject for #name #arguments #conditions {
            const FIELDS: &'static [::httpd::request_object::FieldSpec] = &[#(#specs),*];

            fn schema(schemas: &mut ::schema::Schemas) -> ::serde_json::Value {
                #object
            }

            fn read_fields(reader: &mut ::httpd::request_object::FieldReader<'_, '_>) -> Option<Self> {
                #(#reads)*
                Some(Self { #(#values),* })
            }
        }
    })
}

/// A field's row, the statement that reads it, and its value in the struct.
struct FieldCode {
    spec: TokenStream,
    read: TokenStream,
    value: TokenStream,
}

impl FieldCode {
    fn of_field(field: &Field) -> Result<Self> {
        let attributes = RequestFieldAttributes::parse(&field.attrs)?;
        let variable = field.ident.as_ref().ok_or_else(|| Error::new_spanned(field, "the field has no name"))?;
        let field_type = &field.ty;
        if attributes.is_flattened {
            let object = quote!(<#field_type as ::httpd::request_object::RequestObject>);
            return Ok(Self {
                spec: quote!(::httpd::request_object::FieldSpec::Flattened(#object::FIELDS)),
                read: quote!(let #variable = #object::read_fields(reader);),
                value: quote!(#variable: #variable?),
            });
        }
        let name = LitStr::new(&variable.unraw().to_string(), variable.span());
        let name = attributes.rename.clone().unwrap_or(name);
        let presence = Presence::of_type(field_type);
        let (Presence::Required(value_type) | Presence::Optional(value_type) | Presence::Nullable(value_type)) =
            presence;
        let reader = attributes.reader.as_ref().unwrap_or(value_type);
        let parse = match &attributes.parse {
            Some(function) => quote!(#function),
            None => quote!(<#reader as ::httpd::request_object::RequestValue>::parse),
        };
        let is_required =
            attributes.is_required || matches!(presence, Presence::Required(_)) && attributes.absent.is_none();
        let read = match (&attributes.read, &attributes.null, &presence) {
            (Some(function), ..) => quote!(#function(reader.fields, reader.notes)),
            (None, Some(null), _) => quote!(reader.or_null(#name, #parse, || #null)),
            (None, None, Presence::Nullable(_)) => quote!(reader.nullable(#name, #parse)),
            (None, None, _) if is_required => quote!(reader.required(#name, #parse)),
            (None, None, _) => quote!(reader.optional(#name, #parse)),
        };
        let value = match (&attributes.absent, &presence) {
            (Some(absent), _) => quote!(#variable: #variable.unwrap_or_else(|| #absent)),
            (None, Presence::Required(_)) => quote!(#variable: #variable?),
            (None, _) => quote!(#variable),
        };
        Ok(Self {
            spec: Self::spec(&name, &attributes, reader, matches!(presence, Presence::Nullable(_)), is_required),
            read: quote!(let #variable = #read;),
            value,
        })
    }

    /// The field's row in the table.
    fn spec(
        name: &LitStr,
        attributes: &RequestFieldAttributes,
        reader: &Type,
        is_nullable: bool,
        is_required: bool,
    ) -> TokenStream {
        let list = |names: &Option<Expr>| names.as_ref().map_or_else(|| quote!(&[]), |names| quote!(&#names));
        let (aliases, foreign) = (list(&attributes.aliases), list(&attributes.foreign));
        let mut schema = match &attributes.schema {
            Some(Expr::Path(function)) => quote!(#function(schemas)),
            Some(schema) => quote!(#schema),
            None => quote!(<#reader as ::httpd::request_object::RequestValue>::schema(schemas)),
        };
        if is_nullable || attributes.is_nullable {
            schema = quote!(::httpd::request_object::nullable_schema(#schema));
        }
        let description = option(attributes.description.as_ref());
        schema = quote!(::schema::describe(#schema, #description));
        if let Some(keywords) = keywords(&attributes.keywords) {
            schema = quote!(::schema::with_keywords(#schema, #keywords));
        }
        quote! {
            ::httpd::request_object::FieldSpec::Named {
                name: #name,
                aliases: #aliases,
                foreign: #foreign,
                schema: |schemas| {
                    let _ = &*schemas;
                    #schema
                },
                is_required: #is_required,
            }
        }
    }
}
