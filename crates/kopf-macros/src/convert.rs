//! `#[kopf::on::convert(v1::Database, to = v2::Database)]`: the target of a conversion.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, ExprPath, ItemFn, Lit, LitStr, Path, Result, ReturnType, Type};

use crate::kind::Kind;
use crate::options::{Options, Positional};
use crate::selector::{self, Target};

/// The version that a conversion converts to.
enum Destination<'a> {
    Type(&'a Path),
    Version(&'a LitStr),
}

impl<'a> Destination<'a> {
    fn of(options: &'a Options) -> Result<Self> {
        let advice = "`to` is a version or a type: `to = \"v2\"`, or `to = v2::Database`";
        let Some(expression) = options.expression("to")? else {
            return Err(Error::new(options.span, advice));
        };
        match expression {
            Expr::Path(ExprPath { path, qself: None, .. }) => Ok(Self::Type(path)),
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if is_version(&text.value()) => {
                Ok(Self::Version(text))
            }
            other => Err(Error::new(other.span(), advice)),
        }
    }
}

/// Any label that can be a version; the group and the plural are given elsewhere.
fn is_version(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
}

/// The options for the engine.
pub(crate) fn options(options: &Options) -> Result<TokenStream> {
    let kind = Kind::of("convert").expect("every attribute has its kind");
    let (target, destination) = (selector::target(kind, options)?, Destination::of(options)?);
    reject_same_version(options, &target, &destination)?;
    let private = quote!(::kopf::__private);
    let from = match &target {
        Target::Type(path) => quote_spanned!(path.span()=> #private::selector_of::<#path>()),
        Target::Selector(selector) => selector.clone(),
    };
    Ok(match destination {
        Destination::Type(path) => quote_spanned! {path.span()=>
            #private::ConvertOptions {
                to: #private::selector_of::<#path>(),
                definition: {
                    #[allow(unused_imports)]
                    use #private::NoDefinition as _;
                    #private::Definition::<#path>::of().find()
                },
            }
        },
        Destination::Version(version) => quote! {
            #private::ConvertOptions {
                to: #private::in_version(&#from, #version),
                definition: ::std::option::Option::None,
            }
        },
    })
}

/// Mistakes that the compiler cannot detect are checked again when the operator starts.
fn reject_same_version(options: &Options, target: &Target, to: &Destination<'_>) -> Result<()> {
    let (is_same, span) = match (target, to) {
        (Target::Type(from), Destination::Type(to)) => {
            (from.to_token_stream().to_string() == to.to_token_stream().to_string(), to.span())
        }
        (Target::Selector(_), Destination::Version(to)) => {
            (version(options)?.is_some_and(|from| from == to.value()), to.span())
        }
        _ => return Ok(()),
    };
    if is_same {
        return Err(Error::new(span, "this is the version to convert from: name another one"));
    }
    Ok(())
}

/// The version of a resource given by strings, wherever it is written.
fn version(options: &Options) -> Result<Option<String>> {
    let texts: Vec<String> = options
        .positional
        .iter()
        .filter_map(|argument| match argument {
            Positional::Text(text) => Some(text.value()),
            _ => None,
        })
        .collect();
    if let [_, version, _] = texts.as_slice() {
        return Ok(Some(version.clone()));
    }
    Ok(options.text("version")?.map(|version| version.value()))
}

/// Makes the compiler reject functions that return another type than the target version.
pub(crate) fn checks(options: &Options, function: &ItemFn) -> Result<TokenStream> {
    let ReturnType::Type(_, returned) = &function.sig.output else {
        let advice = "a conversion returns the object in the other version";
        return Err(Error::new(function.sig.ident.span(), advice));
    };
    let Destination::Type(path) = Destination::of(options)? else { return Ok(TokenStream::new()) };
    if matches!(**returned, Type::ImplTrait(_)) {
        return Ok(TokenStream::new());
    }
    Ok(quote_spanned! {returned.span()=> {
        #[allow(unused_imports)]
        use ::kopf::__private::ConvertedPlain as _;
        ::kopf::__private::Converted::<#returned>::check::<#path>();
    }})
}
