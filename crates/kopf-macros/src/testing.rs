//! `#[kopf::test]`: turns an async function of a world into a plain test.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, FnArg, Ident, ItemFn, LitInt, Result, Token};

/// How the test runs, other than once in its own world.
#[derive(Default)]
struct Options {
    torture: Option<LitInt>,
    rbac: bool,
    least_privilege: bool,
    killed: Option<LitInt>,
    program: Option<Expr>,
    names: Vec<Ident>,
}

const OPTIONS: &str = "`#[kopf::test]` has the options `torture = 50`, `rbac`, `least_privilege`, \
    and `killed = 5, program = ...`";

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        while !input.is_empty() {
            let name: Ident = input.parse().map_err(|error| Error::new(error.span(), OPTIONS))?;
            match name.to_string().as_str() {
                "torture" => options.torture = Some(rounds(&name, input)?),
                "killed" => options.killed = Some(rounds(&name, input)?),
                "program" => options.program = Some(program(&name, input)?),
                "rbac" => options.rbac = true,
                "least_privilege" => options.least_privilege = true,
                _ => return Err(Error::new(name.span(), OPTIONS)),
            }
            if options.names.contains(&name) {
                return Err(Error::new(name.span(), format!("`{name}` is given twice")));
            }
            if input.peek(Token![=]) {
                let advice = format!("`{name}` has no value: write `{name}` alone");
                return Err(input.error(advice));
            }
            options.names.push(name);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        options.check()?;
        Ok(options)
    }
}

impl Options {
    /// Checks options that are valid only together.
    fn check(&self) -> Result<()> {
        let lonely = match (&self.killed, &self.program) {
            (Some(_), None) => "killed",
            (None, Some(_)) => "program",
            _ => return Ok(()),
        };
        let advice = "a program is killed: `killed = 5` goes along with \
            `program = Program::new(env!(\"CARGO_BIN_EXE_name\"))`";
        let name = self.names.iter().find(|name| *name == lonely);
        Err(Error::new(name.map_or_else(Span::call_site, Ident::span), advice))
    }
}

fn rounds(name: &Ident, input: ParseStream<'_>) -> Result<LitInt> {
    let rounds = input.parse::<Token![=]>().and_then(|_| input.parse());
    rounds.map_err(|_| {
        let advice = format!("`{name}` is a number of rounds: `{name} = 5`");
        Error::new(name.span(), advice)
    })
}

fn program(name: &Ident, input: ParseStream<'_>) -> Result<Expr> {
    let program = input.parse::<Token![=]>().and_then(|_| input.parse());
    program.map_err(|_| {
        let advice = "`program` needs a value: `Program::new(env!(\"CARGO_BIN_EXE_name\"))`";
        Error::new(name.span(), advice)
    })
}

/// Rejects functions that cannot be a test in a world.
fn check(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        let advice = "a test in a world is `async`, so that time can pass in it";
        return Err(Error::new(signature.fn_token.span(), advice));
    }
    if let Some(parameter) = signature.generics.params.first() {
        let advice = "a test has no generic parameters: nobody could choose them";
        return Err(Error::new(parameter.span(), advice));
    }
    if let Some(FnArg::Receiver(receiver)) = signature.inputs.first() {
        let advice = "a test in a world is a plain function: it takes `world: World`";
        return Err(Error::new(receiver.span(), advice));
    }
    if let Some(extra) = signature.inputs.iter().nth(1) {
        return Err(Error::new(extra.span(), "a test in a world takes the world and nothing else"));
    }
    Ok(())
}

/// Wraps the function into a test that runs it in its own world.
pub(crate) fn attribute(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options: Options = syn::parse2(options)?;
    let function: ItemFn = syn::parse2(item)
        .map_err(|error| Error::new(error.span(), "`#[kopf::test]` goes above a function"))?;
    check(&function)?;
    let signature = &function.sig;
    let (attrs, vis, name, output, body) =
        (&function.attrs, &function.vis, &signature.ident, &signature.output, &function.block);
    let inputs = &signature.inputs;
    let test = if inputs.is_empty() { quote!(|_| test()) } else { quote!(test) };
    let mut runs = Vec::new();
    if options.rbac {
        runs.push(quote!(::kopf::testing::with_derived_rights(#test);));
    }
    if options.least_privilege {
        runs.push(quote!(::kopf::testing::least_privilege(#test);));
    }
    if let Some(rounds) = &options.torture {
        runs.push(quote!(::kopf::testing::torture(#rounds, #test);));
    }
    if let (Some(rounds), Some(program)) = (&options.killed, &options.program) {
        runs.push(quote!(::kopf::testing::Program::kill_test(#program, #rounds, #test);));
    }
    // The other ways to run a test report failures themselves.
    let (result, call) = match runs.as_slice() {
        [] => (quote!(#output), quote!(::kopf::testing::run(#test))),
        runs => (TokenStream::new(), quote!(#(#runs)*)),
    };
    // Code blocks of documentation are not compiled as tests; they call the function themselves.
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
