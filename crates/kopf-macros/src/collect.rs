//! `#[kopf::handlers]`: all handlers of a module or an `impl` block under one name.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, ImplItem, ImplItemFn, Item, ItemImpl, ItemMod, Result, Type,
    parse_quote,
};

use crate::kind::Kind;

/// Collects the handlers of a module or an `impl` block.
pub(crate) fn attribute(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !options.is_empty() {
        return Err(Error::new(options.span(), "`#[kopf::handlers]` has no options"));
    }
    match syn::parse2::<Item>(item)? {
        Item::Mod(module) => collect_module(module),
        Item::Impl(block) => collect_methods(block),
        other => {
            let advice = "`#[kopf::handlers]` goes above a module or an `impl` block";
            Err(Error::new(other.span(), advice))
        }
    }
}

fn is_handler(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attribute| Kind::from_attribute(attribute).is_some())
}

fn collect_module(mut module: ItemMod) -> Result<TokenStream> {
    let Some((_, items)) = &mut module.content else {
        let advice = "put the handlers between the braces of this module";
        return Err(Error::new(module.ident.span(), advice));
    };
    let names: Vec<_> = items
        .iter()
        .filter_map(|item| match item {
            Item::Fn(function) if is_handler(&function.attrs) => Some(function.sig.ident.clone()),
            _ => None,
        })
        .collect();
    if names.is_empty() {
        return Err(Error::new(module.ident.span(), "there are no handlers in this module"));
    }
    items.push(parse_quote! {
        /// All handlers of this module.
        pub struct Handlers {}
    });
    items.push(parse_quote! {
        #[automatically_derived]
        impl ::kopf::__private::HandlerSet for Handlers {
            fn declarations() -> ::std::vec::Vec<::kopf::__private::Declaration> {
                [#(<#names as ::kopf::__private::HandlerSet>::declarations()),*].concat()
            }
        }
    });
    Ok(quote!(#module))
}

fn collect_methods(mut block: ItemImpl) -> Result<TokenStream> {
    if let Some((_, path, _)) = &block.trait_ {
        return Err(Error::new(path.span(), "methods of a trait cannot be handlers"));
    }
    if let Some(parameter) = block.generics.params.first() {
        let advice = "the type of the state is one type: it cannot be generic";
        return Err(Error::new(parameter.span(), advice));
    }
    let state = block.self_ty.as_ref().clone();
    let mut functions = Vec::new();
    let mut names = Vec::new();
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        if !is_handler(&method.attrs) {
            continue;
        }
        functions.push(free_function(method, &state)?);
        names.push(method.sig.ident.clone());
        method.attrs.retain(|attribute| Kind::from_attribute(attribute).is_none());
    }
    if names.is_empty() {
        return Err(Error::new(state.span(), "there are no handlers in this block"));
    }
    Ok(quote! {
        #block

        const _: () = {
            #(#functions)*

            #[automatically_derived]
            impl ::kopf::__private::HandlerSet for #state {
                fn declarations() -> ::std::vec::Vec<::kopf::__private::Declaration> {
                    [#(<#names as ::kopf::__private::HandlerSet>::declarations()),*].concat()
                }
            }
        };
    })
}

/// A function that takes `State<T>` instead of `&self`, with the attributes of the method.
fn free_function(method: &ImplItemFn, state: &Type) -> Result<TokenStream> {
    let signature = &method.sig;
    let mut parameters = Vec::new();
    let mut arguments = Vec::new();
    for (index, input) in signature.inputs.iter().enumerate() {
        match input {
            FnArg::Receiver(receiver) => {
                if receiver.reference.is_none() || receiver.mutability.is_some() {
                    let advice = "the state is shared by all handlers: take `&self`";
                    return Err(Error::new(receiver.span(), advice));
                }
                parameters.push(quote!(state: ::kopf::input::State<#state>));
                arguments.push(quote!(&*state));
            }
            FnArg::Typed(typed) => {
                let (name, ty) = (format_ident!("input_{index}"), &typed.ty);
                parameters.push(quote!(#name: #ty));
                arguments.push(quote!(#name));
            }
        }
    }
    let attrs = method.attrs.iter().filter(|attribute| {
        attribute.path().is_ident("doc") || Kind::from_attribute(attribute).is_some()
    });
    let (name, asyncness, output) = (&signature.ident, &signature.asyncness, &signature.output);
    let wait = asyncness.map(|_| quote!(.await));
    Ok(quote! {
        #(#attrs)*
        #asyncness fn #name(#(#parameters),*) #output {
            <#state>::#name(#(#arguments),*) #wait
        }
    })
}
