//! Durations in attributes: `"1m30s"`, `30`, `0.5`, or any expression of type `Duration`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Expr, ExprLit, Lit, Result};

/// The expression of a duration.
pub(crate) fn expression(value: &Expr) -> Result<TokenStream> {
    let Expr::Lit(ExprLit { lit, .. }) = value else {
        return Ok(quote!({ let duration: ::std::time::Duration = #value; duration }));
    };
    let seconds = match lit {
        Lit::Str(text) => parse(&text.value()),
        Lit::Int(number) => number.base10_parse::<u64>().ok().map(|number| number as f64),
        Lit::Float(number) => number.base10_parse::<f64>().ok(),
        _ => None,
    };
    let seconds = seconds.ok_or_else(|| {
        let advice = "not a duration: write it as \"90s\", \"1m30s\", \"500ms\" or in seconds";
        Error::new_spanned(lit, advice)
    })?;
    Ok(quote!(::std::time::Duration::from_secs_f64(#seconds)))
}

/// The seconds of a text such as `1h30m`, or `None` if it is not a duration.
fn parse(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let scale = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * scale;
        rest = after.trim_start();
    }
    (!text.trim().is_empty()).then_some(seconds)
}

#[cfg(test)]
mod tests;
