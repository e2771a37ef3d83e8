//! The signature of a handler as written by users, for `describe` and the web UI.
//!
//! Tokens do not include spaces; this file adds them where `rustfmt` does.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{FnArg, Signature};

/// One line such as `async fn resize(old: Old<u64>, spec: &Spec) -> Result`.
pub(crate) fn text(signature: &Signature) -> String {
    let inputs = signature.inputs.iter().map(|input| match input {
        FnArg::Typed(input) => {
            format!("{}: {}", line(input.pat.to_token_stream()), line(input.ty.to_token_stream()))
        }
        FnArg::Receiver(receiver) => line(receiver.to_token_stream()),
    });
    let inputs = inputs.collect::<Vec<_>>().join(", ");
    let asyncness = if signature.asyncness.is_some() { "async " } else { "" };
    let output = line(signature.output.to_token_stream());
    let output = if output.is_empty() { output } else { format!(" {output}") };
    format!("{asyncness}fn {}({inputs}){output}", signature.ident)
}

fn line(tokens: TokenStream) -> String {
    let mut text = String::new();
    append(&mut text, tokens);
    text.trim_end().to_owned()
}

fn append(text: &mut String, tokens: TokenStream) {
    // Whether the last token was a word, which must be separated from the next word.
    let mut is_word = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{ ", " }"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                if is_word && group.delimiter() == Delimiter::Brace {
                    text.push(' ');
                }
                text.push_str(open);
                append(text, group.stream());
                text.truncate(text.trim_end().len());
                text.push_str(close);
                is_word = false;
            }
            TokenTree::Punct(punct) => {
                let sign = punct.as_char();
                if sign == '+' || (sign == '-' && punct.spacing() == Spacing::Joint) {
                    pad(text);
                }
                text.push(sign);
                let is_arrow = sign == '>' && text.ends_with("->");
                if is_arrow || matches!(sign, ',' | ';' | '+') {
                    text.push(' ');
                }
                is_word = false;
            }
            TokenTree::Ident(_) | TokenTree::Literal(_) => {
                if is_word {
                    text.push(' ');
                }
                text.push_str(&token.to_string());
                is_word = true;
            }
        }
    }
}

/// Adds a space, unless there is one.
fn pad(text: &mut String) {
    if !text.is_empty() && !text.ends_with(' ') {
        text.push(' ');
    }
}

#[cfg(test)]
mod tests;
