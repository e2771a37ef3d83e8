//! The arguments of an attribute, checked against the valid options of its kind.

use proc_macro2::{Ident, Span, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, Lit, LitBool, LitStr, Path, Result, Token, braced};

use crate::kind::Kind;

/// All arguments of one attribute.
pub(crate) struct Options {
    pub(crate) positional: Vec<Positional>,
    named: Vec<Named>,
    /// The span for errors about missing arguments.
    pub(crate) span: Span,
}

/// An argument without a name.
pub(crate) enum Positional {
    Text(LitStr),
    Type(Path),
    Everything(Span),
}

/// An argument with a name.
pub(crate) struct Named {
    pub(crate) name: Ident,
    value: Argument,
}

enum Argument {
    Flag,
    Expression(Expr),
    /// Resources in parentheses: types, or strings such as "deployments.apps".
    Resources(Vec<Positional>),
    Map(Vec<(LitStr, Expr)>),
}

const FLAGS: &[&str] =
    &["optional", "deleted", "sharp", "persistent", "side_effects", "ignore_failures"];

impl Options {
    /// Parses the arguments of an attribute.
    pub(crate) fn read(kind: Kind, span: Span, tokens: TokenStream) -> Result<Self> {
        let parse = |input: ParseStream<'_>| Self::parse(kind, span, input);
        let options = parse.parse2(tokens)?;
        options.check(kind)?;
        Ok(options)
    }

    fn parse(kind: Kind, span: Span, input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self { positional: Vec::new(), named: Vec::new(), span };
        while !input.is_empty() {
            if input.peek(LitStr) {
                options.add_positional(kind, input.span(), Positional::Text(input.parse()?))?;
            } else if input.peek(Ident::peek_any)
                && input.peek2(Token![=])
                && !input.peek2(Token![==])
            {
                options.add_named(kind, input)?;
            } else if input.peek(Ident::peek_any) && input.peek2(syn::token::Paren) {
                options.add_resources(kind, input)?;
            } else if input.peek(Ident::peek_any) {
                options.add_bare(kind, input)?;
            } else {
                let advice = "expected a resource, or an option such as `retries = 5`";
                return Err(input.error(advice));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }

    fn add_positional(&mut self, kind: Kind, span: Span, argument: Positional) -> Result<()> {
        if !kind.selects {
            let title = kind.title;
            return Err(Error::new(span, format!("{title} is not for a resource: remove this")));
        }
        if !self.named.is_empty() {
            return Err(Error::new(span, "the resource comes before the options"));
        }
        self.positional.push(argument);
        Ok(())
    }

    fn add_bare(&mut self, kind: Kind, input: ParseStream<'_>) -> Result<()> {
        let span = input.span();
        let path: Path = input.parse()?;
        let Some(name) = path.get_ident().cloned() else {
            return self.add_positional(kind, span, Positional::Type(path));
        };
        let text = name.to_string();
        if text == "everything" {
            self.add_positional(kind, span, Positional::Everything(span))
        } else if FLAGS.contains(&text.as_str()) {
            self.push(kind, Named { name, value: Argument::Flag })
        } else if Kind::is_any_option(&text) {
            Err(Error::new(span, format!("`{text}` needs a value: `{text} = ...`")))
        } else {
            self.add_positional(kind, span, Positional::Type(path))
        }
    }

    fn add_named(&mut self, kind: Kind, input: ParseStream<'_>) -> Result<()> {
        let name = Ident::parse_any(input)?;
        input.parse::<Token![=]>()?;
        if input.is_empty() || input.peek(Token![,]) {
            return Err(Error::new(name.span(), format!("`{name}` needs a value: `{name} = ...`")));
        }
        let is_map = name == "labels" || name == "annotations";
        let value = if is_map {
            Argument::Map(parse_map(&name, input)?)
        } else {
            Argument::Expression(input.parse()?)
        };
        self.push(kind, Named { name, value })
    }

    /// `children(Service, "deployments.apps")`.
    fn add_resources(&mut self, kind: Kind, input: ParseStream<'_>) -> Result<()> {
        let name = Ident::parse_any(input)?;
        if name != "children" {
            let advice = format!("`{name}` needs a value: `{name} = ...`");
            return Err(Error::new(name.span(), advice));
        }
        let content;
        syn::parenthesized!(content in input);
        let mut resources = Vec::new();
        while !content.is_empty() {
            resources.push(if content.peek(LitStr) {
                Positional::Text(content.parse()?)
            } else {
                Positional::Type(content.parse()?)
            });
            if !content.is_empty() {
                content.parse::<Token![,]>()?;
            }
        }
        self.push(kind, Named { name, value: Argument::Resources(resources) })
    }

    fn push(&mut self, kind: Kind, option: Named) -> Result<()> {
        let name = option.name.to_string();
        let span = option.name.span();
        if !kind.has_option(&name) {
            let title = kind.title;
            if Kind::is_any_option(&name) {
                return Err(Error::new(span, format!("`{name}` makes no sense for {title}")));
            }
            let known: Vec<_> = kind.all_options().collect();
            let known = known.join(", ");
            let message =
                format!("there is no option `{name}`; the options of {title} are: {known}");
            return Err(Error::new(span, message));
        }
        if self.get(&name).is_some() {
            return Err(Error::new(span, format!("`{name}` is given twice")));
        }
        self.named.push(option);
        Ok(())
    }

    /// Checks what the compiler would not notice: options that depend on each other.
    fn check(&self, kind: Kind) -> Result<()> {
        for name in ["value", "old", "new"] {
            if let Some(option) = self.get(name)
                && self.get("field").is_none()
            {
                let message = format!("`{name}` needs `field`: say which field");
                return Err(Error::new(option.name.span(), message));
            }
        }
        if self.get("value").is_some()
            && let Some(option) = self.get("old").or_else(|| self.get("new"))
        {
            let name = &option.name;
            let message =
                format!("`{name}` cannot be combined with `value`, which means both sides");
            return Err(Error::new(name.span(), message));
        }
        if ["desired", "observe"].contains(&kind.attribute) && self.resources("children").is_empty()
        {
            let message = "say which kinds of children there are: `children(Service, Secret)`";
            return Err(Error::new(self.span, message));
        }
        if kind.attribute == "convert" && self.get("to").is_none() {
            let message = "say which version to convert to: `to = \"v2\"`, or `to = v2::Database`";
            return Err(Error::new(self.span, message));
        }
        if kind.attribute == "field" && self.get("field").is_none() {
            let message = "a field handler needs `field = \"spec.size\"`";
            return Err(Error::new(self.span, message));
        }
        Ok(())
    }

    /// The option with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Named> {
        self.named.iter().find(|option| option.name == name)
    }

    /// The string of an option.
    pub(crate) fn text(&self, name: &str) -> Result<Option<LitStr>> {
        self.get(name).map(Named::text).transpose()
    }

    /// The strings of an option; a single one needs no brackets.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<LitStr>> {
        self.get(name).map(Named::texts).transpose().map(Option::unwrap_or_default)
    }

    /// The expression of an option.
    pub(crate) fn expression(&self, name: &str) -> Result<Option<&Expr>> {
        self.get(name).map(Named::expression).transpose()
    }

    /// The flag of an option: `optional` or `optional = true`.
    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name).map(|option| (&option.value, &option.name)) {
            None => Ok(false),
            Some((Argument::Flag, _)) => Ok(true),
            Some((Argument::Expression(Expr::Lit(ExprLit { lit: Lit::Bool(flag), .. })), _)) => {
                Ok(LitBool::value(flag))
            }
            Some((_, name)) => {
                Err(Error::new(name.span(), format!("`{name}` is either `true` or `false`")))
            }
        }
    }

    /// The resources of an option.
    pub(crate) fn resources(&self, name: &str) -> &[Positional] {
        match self.get(name).map(|option| &option.value) {
            Some(Argument::Resources(resources)) => resources,
            _ => &[],
        }
    }

    /// The keys and values of an option.
    pub(crate) fn map(&self, name: &str) -> &[(LitStr, Expr)] {
        match self.get(name).map(|option| &option.value) {
            Some(Argument::Map(entries)) => entries,
            _ => &[],
        }
    }
}

impl Named {
    /// The string.
    pub(crate) fn text(&self) -> Result<LitStr> {
        match &self.value {
            Argument::Expression(Expr::Lit(ExprLit { lit: Lit::Str(text), .. })) => {
                Ok(text.clone())
            }
            _ => {
                let name = &self.name;
                Err(Error::new(name.span(), format!("`{name}` is a text: `{name} = \"...\"`")))
            }
        }
    }

    /// The strings, in brackets, or a single one without.
    pub(crate) fn texts(&self) -> Result<Vec<LitStr>> {
        let name = &self.name;
        let mistake = || {
            let message = format!("`{name}` is a list of texts: `{name} = [\"...\", \"...\"]`");
            Error::new(name.span(), message)
        };
        match &self.value {
            Argument::Expression(Expr::Array(array)) => {
                let text = |element: &Expr| match element {
                    Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.clone()),
                    _ => Err(mistake()),
                };
                array.elems.iter().map(text).collect()
            }
            _ => self.text().map(|text| vec![text]).map_err(|_| mistake()),
        }
    }

    /// The expression.
    pub(crate) fn expression(&self) -> Result<&Expr> {
        match &self.value {
            Argument::Expression(expression) => Ok(expression),
            _ => Err(Error::new(self.name.span(), format!("`{}` needs a value", self.name))),
        }
    }
}

struct Entry(LitStr, Expr);

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let key = input.parse()?;
        input.parse::<Token![:]>()?;
        Ok(Self(key, input.parse()?))
    }
}

fn parse_map(name: &Ident, input: ParseStream<'_>) -> Result<Vec<(LitStr, Expr)>> {
    let mistake = || {
        let message =
            format!("`{name}` is a map: `{name} = {{\"key\": \"value\", \"other\": present}}`");
        Error::new(name.span(), message)
    };
    if !input.peek(syn::token::Brace) {
        return Err(mistake());
    }
    let content;
    braced!(content in input);
    let entries = Punctuated::<Entry, Token![,]>::parse_terminated(&content);
    let entries = entries.map_err(|_| mistake())?;
    Ok(entries.into_iter().map(|Entry(key, value)| (key, value)).collect())
}
