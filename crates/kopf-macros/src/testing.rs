//! `#[kopf::test]`: an async function of a world becomes a plain test.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, Ident, ItemFn, LitInt, Result, Token};

/// How the test is run, beyond once in a world of its own.
#[derive(Default)]
struct Options {
    torture: Option<LitInt>,
    rbac: bool,
    least_privilege: bool,
    killed: Option<LitInt>,
    program: Option<Expr>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            match name.to_string().as_str() {
                "torture" => {
                    input.parse::<Token![=]>()?;
                    options.torture = Some(input.parse()?);
                }
                "killed" => {
                    input.parse::<Token![=]>()?;
                    options.killed = Some(input.parse()?);
                }
                "program" => {
                    input.parse::<Token![=]>()?;
                    options.program = Some(input.parse()?);
                }
                "rbac" => options.rbac = true,
                "least_privilege" => options.least_privilege = true,
                _ => {
                    let advice = "`#[kopf::test]` has the options `torture = 50`, `rbac`, \
                        `least_privilege`, and `killed = 5, program = ...`";
                    return Err(Error::new(name.span(), advice));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if options.killed.is_some() != options.program.is_some() {
            let advice = "a program is killed: `killed = 5` goes along with \
                `program = Program::new(env!(\"CARGO_BIN_EXE_name\"))`";
            return Err(input.error(advice));
        }
        Ok(options)
    }
}

/// Wraps the function into a test that runs it in a world of its own.
pub(crate) fn attribute(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options: Options = syn::parse2(options)?;
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
    let test = if inputs.is_empty() { quote!(|_| test()) } else { quote!(test) };
    let mut runs = Vec::new();
    if options.rbac {
        runs.push(quote!(::kopf::testing::guarded(#test);));
    }
    if options.least_privilege {
        runs.push(quote!(::kopf::testing::least_privilege(#test);));
    }
    if let Some(rounds) = &options.torture {
        runs.push(quote!(::kopf::testing::torture(#rounds, #test);));
    }
    if let (Some(rounds), Some(program)) = (&options.killed, &options.program) {
        runs.push(quote!(::kopf::testing::Program::killed(#program, #rounds, #test);));
    }
    // The other ways to run a test report failures themselves.
    let (result, call) = match runs.as_slice() {
        [] => (quote!(#output), quote!(::kopf::testing::run(#test))),
        runs => (TokenStream::new(), quote!(#(#runs)*)),
    };
    // Code blocks of documentation are not compiled as tests, and call the function themselves.
    Ok(quote! {
        #[cfg_attr(test, ::core::prelude::v1::test)]
        #[cfg_attr(not(test), allow(dead_code))]
        #(#attrs)*
        #vis fn #name() #result {
            async fn test(#inputs) #output #body
            #call
        }
    })
}
