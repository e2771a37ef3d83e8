//! `#[kopf::test]`: an async function of a world becomes a plain test.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Error, ItemFn, Result};

/// Wraps the function into a test that runs it in a world of its own.
pub(crate) fn attribute(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !options.is_empty() {
        return Err(Error::new(options.span(), "`#[kopf::test]` has no options"));
    }
    let function: ItemFn = syn::parse2(item)
        .map_err(|error| Error::new(error.span(), "`#[kopf::test]` goes above a function"))?;
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        let advice = "a test in a world is `async`, so that time can pass in it";
        return Err(Error::new(signature.fn_token.span(), advice));
    }
    if let Some(extra) = signature.inputs.iter().nth(1) {
        return Err(Error::new(extra.span(), "a test in a world takes the world and nothing else"));
    }
    let (attrs, vis, name, output, body) =
        (&function.attrs, &function.vis, &signature.ident, &signature.output, &function.block);
    let inputs = &signature.inputs;
    let call = if inputs.is_empty() { quote!(|_| test()) } else { quote!(test) };
    Ok(quote! {
        #[::core::prelude::v1::test]
        #(#attrs)*
        #vis fn #name() #output {
            async fn test(#inputs) #output #body
            ::kopf::testing::run(#call)
        }
    })
}
