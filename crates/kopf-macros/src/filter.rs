//! Filters in attributes: strings and values, `present`, `absent`, functions and closures.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Lit, LitStr, Pat, Result, Type};

use crate::options::Options;

/// Statements that fill the filters of `handler`.
pub(crate) fn statements(options: &Options) -> Result<TokenStream> {
    let mut statements = TokenStream::new();
    for name in ["labels", "annotations"] {
        let field = syn::Ident::new(name, proc_macro2::Span::call_site());
        for (key, value) in options.map(name) {
            let filter = meta_filter(value)?;
            statements.extend(quote!(handler.filters.#field.push((#key.into(), #filter));));
        }
    }
    if let Some(path) = field_path(options)? {
        statements.extend(quote!(handler.filters.field = ::std::option::Option::Some(#path);));
    }
    for name in ["value", "old", "new"] {
        let Some(value) = options.expression(name)? else { continue };
        let field = syn::Ident::new(name, proc_macro2::Span::call_site());
        let filter = value_filter(value)?;
        statements.extend(quote!(handler.filters.#field = ::std::option::Option::Some(#filter);));
    }
    if let Some(condition) = options.expression("when")? {
        let condition = when(condition)?;
        statements.extend(quote!(handler.filters.when = ::std::option::Option::Some(#condition);));
    }
    Ok(statements)
}

/// The keys of the field option.
pub(crate) fn field_keys(options: &Options) -> Result<Vec<String>> {
    let Some(option) = options.get("field") else { return Ok(Vec::new()) };
    let texts = option.texts().map_err(|_| {
        let advice = "`field` is a dotted path, or a list of keys: `field = \"spec.size\"`";
        Error::new(option.name.span(), advice)
    })?;
    let is_list = matches!(option.expression(), Ok(Expr::Array(_)));
    let keys: Vec<String> = if is_list {
        texts.iter().map(LitStr::value).collect()
    } else {
        texts.iter().flat_map(|text| dotted(&text.value())).collect()
    };
    if keys.is_empty() || keys.iter().any(String::is_empty) {
        return Err(Error::new(
            option.expression()?.span(),
            "the path of a field has no empty keys",
        ));
    }
    Ok(keys)
}

fn dotted(text: &str) -> Vec<String> {
    text.split('.').map(str::to_owned).collect()
}

fn field_path(options: &Options) -> Result<Option<TokenStream>> {
    let keys = field_keys(options)?;
    Ok((!keys.is_empty()).then(|| quote!(::kopf::__private::FieldPath::from_keys([#(#keys),*]))))
}

fn meta_filter(value: &Expr) -> Result<TokenStream> {
    let path = quote!(::kopf::__private::MetaFilter);
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(quote!(#path::Equals(#text.into()))),
        Expr::Lit(other) => Err(Error::new(
            other.span(),
            "labels and annotations are texts: write the value in quotes, `present`, `absent` or a function",
        )),
        Expr::Path(word) if word.path.is_ident("present") => Ok(quote!(#path::Present)),
        Expr::Path(word) if word.path.is_ident("absent") => Ok(quote!(#path::Absent)),
        Expr::Closure(closure) if closure.inputs.len() > 1 => {
            let function = with_views(closure, &syn::parse_quote!(str))?;
            Ok(quote!(#path::Matches(#function)))
        }
        // Only a bound that is itself a function lets the compiler infer the closure's parameter
        // types.
        Expr::Closure(closure) => {
            Ok(quote_spanned!(closure.span()=> ::kopf::__private::meta_matches(#closure)))
        }
        function => {
            Ok(quote_spanned!(function.span()=> ::kopf::__private::meta_matches_with(#function)))
        }
    }
}

fn value_filter(value: &Expr) -> Result<TokenStream> {
    let path = quote!(::kopf::__private::ValueFilter);
    Ok(match value {
        Expr::Path(word) if word.path.is_ident("present") => quote!(#path::Present),
        Expr::Path(word) if word.path.is_ident("absent") => quote!(#path::Absent),
        Expr::Closure(closure) if closure.inputs.len() > 1 => {
            let value = syn::parse_quote!(::kopf::__private::Value);
            let function = with_views(closure, &value)?;
            quote!(#path::Matches(#function))
        }
        Expr::Closure(_) => {
            quote_spanned!(value.span()=> ::kopf::__private::value_matches(#value))
        }
        Expr::Path(_) => {
            quote_spanned!(value.span()=> ::kopf::__private::value_matches_with(#value))
        }
        constant => quote!(#path::Equals(::kopf::__private::json!(#constant))),
    })
}

/// A closure over a value and views of its object: `|value, spec: &Spec| ...`.
fn with_views(closure: &syn::ExprClosure, value: &Type) -> Result<TokenStream> {
    let mut closure = closure.clone();
    if let Some(first) = closure.inputs.first_mut()
        && !matches!(first, Pat::Type(_))
    {
        let untyped = first.clone();
        let typed: syn::PatType = syn::parse_quote!(#untyped: ::std::option::Option<&#value>);
        *first = Pat::Type(typed);
    }
    let (views, arguments) = views(closure.inputs.iter().skip(1))?;
    Ok(quote!(::std::sync::Arc::new(move |value, subject, occasion| {
        let _ = (subject, occasion);
        #views
        ::std::result::Result::Ok((#closure)(value, #(#arguments),*))
    })))
}

/// Statements that create the views for a closure, and its arguments.
fn views<'a>(inputs: impl Iterator<Item = &'a Pat>) -> Result<(TokenStream, Vec<TokenStream>)> {
    let mut views = TokenStream::new();
    let mut arguments = Vec::new();
    for (index, input) in inputs.enumerate() {
        let Pat::Type(input) = input else {
            let advice = "say what to look at: `|spec: &Spec| ...`";
            return Err(Error::new(input.span(), advice));
        };
        if let Some(whole) = whole(input.ty.as_ref()) {
            arguments.push(whole);
            continue;
        }
        let name = quote::format_ident!("view_{index}");
        let (view, argument) = match input.ty.as_ref() {
            Type::Reference(reference) => (reference.elem.as_ref(), quote!(&#name)),
            other => (other, quote!(#name)),
        };
        let read =
            quote_spanned!(view.span()=> ::kopf::__private::read_input::<#view>(subject, occasion));
        views.extend(quote_spanned!(view.span()=>
            let ::std::option::Option::Some(#name) = #read else {
                return ::std::result::Result::Ok(false);
            };
        ));
        arguments.push(argument);
    }
    Ok((views, arguments))
}

fn when(condition: &Expr) -> Result<TokenStream> {
    let Expr::Closure(closure) = condition else {
        return Ok(quote_spanned!(condition.span()=> ::kopf::__private::condition(#condition)));
    };
    let (views, arguments) = views(closure.inputs.iter())?;
    Ok(quote!({
        let when: ::kopf::__private::When = ::std::sync::Arc::new(move |subject, occasion| {
            let _ = (subject, occasion);
            #views
            ::std::result::Result::Ok((#closure)(#(#arguments),*))
        });
        when
    }))
}

/// The argument for a parameter that is the whole input: `&Subject` or `&Occasion`.
fn whole(ty: &Type) -> Option<TokenStream> {
    let Type::Reference(reference) = ty else { return None };
    let Type::Path(path) = reference.elem.as_ref() else { return None };
    let name = &path.path.segments.last()?.ident;
    if name == "Subject" {
        return Some(quote!(subject));
    }
    (name == "Occasion").then(|| quote!(occasion))
}
