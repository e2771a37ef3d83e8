//! Resources in attributes: a type, or strings in all of Kopf's forms.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Expr, LitStr, Path, Result};

use crate::kind::{Family, Kind};
use crate::options::{Options, Positional};

/// The resource of a handler.
pub(crate) enum Target {
    /// A type that represents a resource.
    Type(Path),
    /// An expression of a selector.
    Selector(TokenStream),
}

/// The target of the positional arguments and selecting options.
pub(crate) fn target(kind: Kind, options: &Options) -> Result<Target> {
    let names = ["kind", "plural", "singular", "shortcut", "category", "resources"];
    let named: Vec<_> = names.iter().filter_map(|name| options.get(name)).collect();
    let group = options.text("group")?;
    let version = options.text("version")?;
    if let [Positional::Type(path)] = options.positional.as_slice() {
        if let Some(other) = named.first().or(options.get("group").as_ref()) {
            return Err(Error::new(
                other.name.span(),
                format!("`{}` cannot be combined with a type: the type says it all", other.name),
            ));
        }
        return Ok(Target::Type(path.clone()));
    }
    let mut parts = Parts { group, version, name: None };
    parts.add_positional(&options.positional)?;
    for option in named {
        if parts.name.is_some() {
            let advice = "a handler has one criterion for the name of its resource";
            return Err(Error::new(option.name.span(), advice));
        }
        let name = option.name.to_string();
        parts.name = Some(if name == "resources" {
            let function: &Expr = option.expression()?;
            quote!(::kopf::__private::matching_resources(#function))
        } else {
            let value = option.text()?;
            not_empty(&value)?;
            let mut variant = name;
            variant[..1].make_ascii_uppercase();
            let variant = syn::Ident::new(&variant, Span::call_site());
            quote!(::kopf::__private::SelectorName::#variant(#value.into()))
        });
    }
    let Some(name) = parts.name.clone() else {
        let title = kind.title;
        return Err(Error::new(
            options.span,
            format!(
                "{title} needs a resource: a type, or a text such as \"pods\" or \"plural.group\""
            ),
        ));
    };
    if kind.family == Family::Conversion {
        parts.reject_inexact(options)?;
    }
    let (group, version) = (optional(parts.group), optional(parts.version));
    Ok(Target::Selector(quote!(::kopf::__private::Selector {
        group: #group,
        version: #version,
        name: #name,
    })))
}

/// The selector of one string, such as "deployments.apps".
pub(crate) fn parsed(text: &Positional) -> Result<TokenStream> {
    let mut parts = Parts { group: None, version: None, name: None };
    parts.add_positional(std::slice::from_ref(text))?;
    let (group, version, name) = (optional(parts.group), optional(parts.version), parts.name);
    Ok(quote!(::kopf::__private::Selector { group: #group, version: #version, name: #name }))
}

struct Parts {
    group: Option<LitStr>,
    version: Option<LitStr>,
    name: Option<TokenStream>,
}

impl Parts {
    fn add_positional(&mut self, positional: &[Positional]) -> Result<()> {
        let mut texts = Vec::new();
        for (index, argument) in positional.iter().enumerate() {
            match argument {
                Positional::Text(text) => {
                    not_empty_except_group(text, index, positional.len())?;
                    texts.push(text);
                }
                Positional::Everything(_) if index + 1 == positional.len() => {}
                Positional::Everything(span) => {
                    return Err(Error::new(*span, "`everything` comes last"));
                }
                Positional::Type(path) => {
                    let advice = "a type stands alone: it says group, version and plural";
                    return Err(Error::new(path.span(), advice));
                }
            }
        }
        let everything = matches!(positional.last(), Some(Positional::Everything(_)));
        if everything {
            self.name = Some(quote!(::kopf::__private::SelectorName::Everything));
        }
        match (texts.as_slice(), everything) {
            ([], _) => {}
            ([only], false) => self.split_dotted(only),
            ([group, name], false) => {
                self.split_group(group);
                self.name = Some(any(name));
            }
            ([group, version, name], false) => {
                self.group = Some((*group).clone());
                self.version = Some((*version).clone());
                self.name = Some(any(name));
            }
            ([group], true) => self.split_group(group),
            ([group, version], true) => {
                self.group = Some((*group).clone());
                self.version = Some((*version).clone());
            }
            ([.., extra], _) => {
                let advice = "a resource has three parts at most: group, version, name";
                return Err(Error::new(extra.span(), advice));
            }
        }
        Ok(())
    }

    /// A conversion needs exactly one version of one custom resource.
    fn reject_inexact(&self, options: &Options) -> Result<()> {
        let is_everything = matches!(options.positional.last(), Some(Positional::Everything(_)));
        if self.group.is_some() && self.version.is_some() && !is_everything {
            return Ok(());
        }
        let advice = "a conversion is from one version: say \"group\", \"version\", \"plural\"";
        Err(Error::new(options.span, advice))
    }

    /// `plural`, `plural.group`, `plural.version` or `plural.version.group`.
    fn split_dotted(&mut self, text: &LitStr) {
        let value = text.value();
        let literal = |part: &str| LitStr::new(part, text.span());
        let Some((name, rest)) = value.split_once('.') else {
            self.name = Some(any(text));
            return;
        };
        self.name = Some(any(&literal(name)));
        match rest.split_once('.') {
            Some((version, group)) if is_version(version) => {
                self.version = Some(literal(version));
                self.group = Some(literal(group));
            }
            None if is_version(rest) => self.version = Some(literal(rest)),
            _ => self.group = Some(literal(rest)),
        }
    }

    /// `group`, `group/version` or `v1` of the core group.
    fn split_group(&mut self, text: &LitStr) {
        let value = text.value();
        let literal = |part: &str| LitStr::new(part, text.span());
        if let Some((group, version)) = value.rsplit_once('/') {
            self.group = Some(literal(group));
            self.version = Some(literal(version));
        } else if value == "v1" {
            self.group = Some(literal(""));
            self.version = Some(literal("v1"));
        } else {
            self.group = Some(text.clone());
        }
    }
}

/// `v1`, `v1alpha1`, `v2beta3`.
pub(crate) fn is_version(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else { return false };
    let stage = ["alpha", "beta"].iter().find_map(|stage| rest.split_once(stage));
    match stage {
        Some((major, minor)) => is_number(major) && is_number(minor),
        None => is_number(rest),
    }
}

fn any(name: &LitStr) -> TokenStream {
    quote_spanned!(name.span()=> ::kopf::__private::SelectorName::Any(#name.into()))
}

fn optional(text: Option<LitStr>) -> TokenStream {
    match text {
        Some(text) => quote!(::std::option::Option::Some(#text.into())),
        None => quote!(::std::option::Option::None),
    }
}

fn not_empty(text: &LitStr) -> Result<()> {
    if text.value().is_empty() {
        return Err(Error::new(text.span(), "the name of a resource cannot be empty"));
    }
    Ok(())
}

fn not_empty_except_group(text: &LitStr, index: usize, count: usize) -> Result<()> {
    // The first of several is a group, and the core group has the empty name.
    if index == 0 && count > 1 { Ok(()) } else { not_empty(text) }
}

#[cfg(test)]
mod tests;
