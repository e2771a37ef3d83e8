//! Emits the function unchanged, and next to it the type that declares its handlers.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ItemFn, Meta, Result, ReturnType, Type};

use crate::convert;
use crate::duration;
use crate::filter;
use crate::function::{self, Parameter, Passing};
use crate::kind::{Family, Kind};
use crate::options::{Options, Positional};
use crate::selector::{self, Target};
use crate::signature;

/// Expands one attribute together with all other handler attributes of the function.
pub(crate) fn attribute(name: &str, options: TokenStream, item: TokenStream) -> TokenStream {
    let kind = Kind::of(name).expect("every attribute has its kind");
    let original = item.clone();
    match expand(kind, options, item) {
        Ok(expanded) => expanded,
        // The function is kept, so that its callers do not cause errors about its absence.
        Err(error) => {
            let error = error.to_compile_error();
            let rest = syn::parse2::<ItemFn>(original.clone()).map_or(original, |mut function| {
                function.attrs.retain(|attribute| Kind::from_attribute(attribute).is_none());
                let vis = &function.vis;
                let name = &function.sig.ident;
                if function.sig.receiver().is_some() {
                    return quote!(#[allow(unused)] #function);
                }
                quote!(#[allow(unused, non_camel_case_types)] #vis struct #name {}
                    impl ::kopf::__private::HandlerSet for #name {
                        fn declarations() -> ::std::vec::Vec<::kopf::__private::Declaration> { ::std::vec![] }
                    }
                    #[allow(unused)] #function)
            });
            quote!(#error #rest)
        }
    }
}

impl Kind {
    /// The kind that an attribute of a function declares, if it is one of ours.
    pub(crate) fn from_attribute(attribute: &Attribute) -> Option<Self> {
        let segments = &attribute.path().segments;
        let name = segments.last()?.ident.to_string();
        let is_ours = segments.len() == 1
            || segments.iter().any(|segment| segment.ident == "kopf" || segment.ident == "on");
        is_ours.then(|| Self::of(&name)).flatten()
    }
}

struct Declared {
    kind: Kind,
    options: Options,
}

fn expand(kind: Kind, options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut function: ItemFn = syn::parse2(item)
        .map_err(|error| Error::new(error.span(), "a handler attribute goes above a function"))?;
    function::check(&function)?;
    let parameters = function::parameters(&function)?;
    let mut declared =
        vec![Declared { kind, options: Options::read(kind, Span::call_site(), options)? }];
    let mut others = Vec::new();
    function.attrs.retain(|attribute| match Kind::from_attribute(attribute) {
        Some(kind) => {
            others.push((kind, attribute.clone()));
            false
        }
        None => true,
    });
    for (kind, attribute) in others {
        let tokens = match &attribute.meta {
            Meta::List(list) => list.tokens.clone(),
            _ => TokenStream::new(),
        };
        let options = Options::read(kind, attribute.path().span(), tokens)?;
        declared.push(Declared { kind, options });
    }
    write(&function, &parameters, &declared)
}

fn write(
    function: &ItemFn,
    parameters: &[Parameter],
    declared: &[Declared],
) -> Result<TokenStream> {
    let (vis, name) = (&function.vis, &function.sig.ident);
    let cfgs: Vec<_> = function.attrs.iter().filter(|a| a.path().is_ident("cfg")).collect();
    let mut families: Vec<(Family, Ident)> = Vec::new();
    let mut invokes = TokenStream::new();
    let mut declarations = Vec::new();
    for declared in declared {
        let kind = declared.kind;
        let known = families.iter().find(|(family, _)| *family == kind.family);
        let invoke = match known {
            Some((_, invoke)) => {
                invokes.extend(checks(kind, parameters));
                invoke.clone()
            }
            None => {
                let invoke = format_ident!("invoke_{}", families.len());
                invokes.extend(write_invoke(&invoke, kind, function, parameters));
                families.push((kind.family, invoke.clone()));
                invoke
            }
        };
        invokes.extend(family_checks(&declared.options, parameters));
        if kind.family == Family::Conversion {
            invokes.extend(convert::checks(&declared.options, function)?);
        }
        declarations.push(declaration(declared, function, parameters, &invoke)?);
    }
    let index = index_source(function, declared);
    Ok(quote! {
        #function

        #(#cfgs)*
        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #vis struct #name {}

        #(#cfgs)*
        const _: () = {
            #[automatically_derived]
            impl ::kopf::__private::HandlerSet for #name {
                fn declarations() -> ::std::vec::Vec<::kopf::__private::Declaration> {
                    #invokes
                    ::std::vec![#(#declarations),*]
                }
            }
            #index
        };
    })
}

/// The type behind `&Index<name>`.
fn index_source(function: &ItemFn, declared: &[Declared]) -> TokenStream {
    let name = &function.sig.ident;
    let Some(index) = declared.iter().find(|declared| declared.kind.family == Family::Index) else {
        return TokenStream::new();
    };
    let ReturnType::Type(_, returned) = &function.sig.output else { return TokenStream::new() };
    let id = base_id(&index.options, function);
    quote! {
        #[automatically_derived]
        impl ::kopf::index::IndexSource for #name {
            const NAME: &'static str = #id;
            type Entries = #returned;
        }
    }
}

/// The type-erased function: takes inputs, calls the function, returns changes and the outcome.
fn write_invoke(
    invoke: &Ident,
    kind: Kind,
    function: &ItemFn,
    parameters: &[Parameter],
) -> TokenStream {
    let marker = kind.marker();
    let name = &function.sig.ident;
    let mut takes = TokenStream::new();
    let mut puts = TokenStream::new();
    let mut arguments = Vec::new();
    let is_async = function.sig.asyncness.is_some();
    let wait = if is_async { quote!(.await) } else { TokenStream::new() };
    for (index, Parameter { passing, ty }) in parameters.iter().enumerate() {
        let input = format_ident!("input_{index}");
        let span = ty.span();
        let (take, argument) = taking(passing, ty, &marker, is_async, &input);
        let mutable = (*passing == Passing::Mutable).then(|| quote!(mut));
        takes.extend(quote_spanned!(span=> let #mutable #input = #take;));
        arguments.push(argument);
        if *passing == Passing::Mutable {
            puts.extend(quote_spanned!(span=>
                let returned = ::kopf::__private::put_back::<::kopf::kind::#marker, #ty>(#input, &call, returned);
            ));
        }
    }
    let span = match &function.sig.output {
        ReturnType::Default => Span::call_site(),
        ReturnType::Type(_, ty) => ty.span(),
    };
    let finish = quote_spanned!(span=>
        ::kopf::__private::Returning(returned).finish::<::kopf::kind::#marker>()
    );
    let body = quote! {
        #takes
        let returned = #name(#(#arguments),*) #wait;
        let returned = #finish;
        #puts
        returned
    };
    let invocation = match (is_async, kind.inlined) {
        (true, _) => quote!(::kopf::__private::future(async move { #body })),
        (false, true) => {
            quote!(::kopf::__private::inline(move || -> ::kopf::__private::Returned { #body }))
        }
        (false, false) => {
            quote!(::kopf::__private::blocking(move || -> ::kopf::__private::Returned { #body }))
        }
    };
    quote! {
        #[allow(clippy::let_unit_value, clippy::unit_arg, unused_variables)]
        fn #invoke(call: ::kopf::__private::Call) -> ::kopf::__private::Invocation {
            #[allow(unused_imports)]
            use ::kopf::__private::FinishPlain as _;
            #invocation
        }
        let #invoke = ::kopf::__private::function(#invoke);
    }
}

/// How an input is taken and passed to the function.
///
/// Calls the trait methods, so that compiler errors do not name our functions.
fn taking(
    passing: &Passing,
    ty: &Type,
    marker: &Ident,
    is_async: bool,
    input: &Ident,
) -> (TokenStream, TokenStream) {
    let span = ty.span();
    match passing {
        Passing::Value => (
            quote_spanned!(span=> ::kopf::__private::taken(
                <#ty as ::kopf::__private::Input<::kopf::kind::#marker>>::take(&call))?),
            quote!(#input),
        ),
        Passing::Reference => (
            quote_spanned!(span=> ::kopf::__private::taken(
                <#ty as ::kopf::__private::InputRef<::kopf::kind::#marker>>::take(&call))?),
            quote!(&#input),
        ),
        Passing::Mutable => {
            let take = quote_spanned!(span=>
                <#ty as ::kopf::__private::InputMut<::kopf::kind::#marker>>::take(&call));
            let take = match is_async {
                true => quote_spanned!(span=> ::kopf::__private::taken(#take.await)?),
                false => quote_spanned!(span=> ::kopf::__private::taken_blocking(#take)?),
            };
            (take, quote!(::std::convert::AsMut::as_mut(&mut #input)))
        }
    }
}

/// Checks the inputs against one more kind.
fn checks(kind: Kind, parameters: &[Parameter]) -> TokenStream {
    let marker = kind.marker();
    let checks = parameters.iter().map(|Parameter { passing, ty }| {
        let input = match passing {
            Passing::Value => quote!(Input),
            Passing::Reference => quote!(InputRef),
            Passing::Mutable => quote!(InputMut),
        };
        quote_spanned!(ty.span()=>
            let _ = <#ty as ::kopf::__private::#input<::kopf::kind::#marker>>::take;)
    });
    quote!(#(#checks)*)
}

/// The kinds of children that are watched for the handler.
fn children(kind: Kind, options: &Options, parameters: &[Parameter]) -> Result<TokenStream> {
    let resources = options.resources("children");
    let wanted = parameters.iter().find_map(Parameter::owned);
    if let (Some(wanted), true, true) = (wanted, resources.is_empty(), kind.has_option("children"))
    {
        let advice = "say that these children are watched: add `children(...)` to the attribute";
        return Err(Error::new(wanted.span(), advice));
    }
    let children = resources.iter().map(|child| match child {
        Positional::Type(path) => Ok(quote_spanned! {path.span()=>
            ::kopf::__private::selector_of::<#path>()
        }),
        other => selector::parsed(other),
    });
    let children = children.collect::<Result<Vec<_>>>()?;
    Ok(quote!(#(handler.children.push(#children);)*))
}

/// Makes the compiler reject `&Children<T>` if `T` is not among the children.
///
/// Children given by name may be of any type; they are checked when the handler is called.
fn family_checks(options: &Options, parameters: &[Parameter]) -> TokenStream {
    let children = options.resources("children").iter().map(|child| match child {
        Positional::Type(path) => Some(path),
        _ => None,
    });
    let Some(children) = children.collect::<Option<Vec<_>>>() else { return TokenStream::new() };
    let wanted: Vec<_> = parameters.iter().filter_map(Parameter::owned).collect();
    if children.is_empty() || wanted.is_empty() {
        return TokenStream::new();
    }
    let checks = wanted.iter().map(|ty| {
        quote_spanned!(ty.span()=> {
            fn watches<T>() where Family: ::kopf::__private::Watches<T> {}
            watches::<#ty>();
        })
    });
    quote!({
        #[allow(dead_code)]
        struct Family;
        #(impl ::kopf::__private::Watches<#children> for Family {})*
        #(#checks)*
    })
}

fn base_id(options: &Options, function: &ItemFn) -> String {
    let named = options.text("id").ok().flatten();
    named.map_or_else(|| function.sig.ident.to_string(), |id| id.value())
}

fn declaration(
    declared: &Declared,
    function: &ItemFn,
    parameters: &[Parameter],
    invoke: &Ident,
) -> Result<TokenStream> {
    let Declared { kind, options } = declared;
    let id = base_id(options, function);
    options.text("id")?;
    let was = options.texts("was")?;
    let handler_kind = handler_kind(*kind, options)?;
    let target = target(*kind, options)?;
    let filters = filter::statements(options)?;
    let retrying = retrying(options)?;
    let children = children(*kind, options, parameters)?;
    let param = param(*kind, options, parameters)?;
    let needs = needs(options)?;
    let description = description(function);
    let signature = signature::text(&function.sig);
    let marker = kind.marker();
    let requires = parameters.iter().filter_map(|Parameter { passing, ty }| match passing {
        Passing::Value => {
            Some(quote_spanned!(ty.span()=> ::kopf::__private::Requires::<::kopf::kind::#marker, #ty>::find()))
        }
        Passing::Reference => {
            Some(quote_spanned!(ty.span()=> ::kopf::__private::RequiresRef::<::kopf::kind::#marker, #ty>::find()))
        }
        Passing::Mutable => None,
    });
    let touches = touches(*kind, function, parameters);
    Ok(quote!({
        let mut handler = ::kopf::__private::Handler::new(
            #id,
            #handler_kind,
            ::std::sync::Arc::clone(&#invoke),
        );
        #target
        #filters
        let id = |id: &str| {
            ::kopf::__private::handler_id(id, handler.filters.field.as_ref(), &handler.kind)
        };
        (handler.id, handler.was) = (id(#id), ::std::vec![#(id(#was)),*]);
        #retrying
        #children
        #param
        #needs
        #description
        handler.docs.signature = ::std::option::Option::Some(#signature.into());
        #[allow(unused_imports)]
        use ::kopf::__private::RequiresNothing as _;
        let requires: ::std::vec::Vec<::std::option::Option<::kopf::__private::Requirement>> =
            ::std::vec![#(#requires),*];
        handler.access.touches = #touches;
        ::kopf::__private::Declaration { handler, requires: requires.into_iter().flatten().collect() }
    }))
}

/// What the engine may write for the function, according to its inputs and its result.
fn touches(kind: Kind, function: &ItemFn, parameters: &[Parameter]) -> TokenStream {
    let marker = kind.marker();
    let inputs = parameters.iter().filter_map(|Parameter { passing, ty }| {
        let requires = match passing {
            Passing::Value => quote!(Requires),
            Passing::Reference => return None,
            Passing::Mutable => quote!(RequiresMut),
        };
        let input = quote!(::kopf::__private::#requires::<::kopf::kind::#marker, #ty>);
        Some(quote_spanned!(ty.span()=> .or(#input::touches())))
    });
    let result = match &function.sig.output {
        ReturnType::Type(_, ty) if kind.stores() && !matches!(**ty, Type::ImplTrait(_)) => {
            quote_spanned!(ty.span()=> ::kopf::__private::Answered::<#ty>::touches())
        }
        // Only its caller knows the concrete type.
        ReturnType::Type(..) if kind.stores() => {
            quote!(::kopf::__private::Touches::everything())
        }
        _ => quote!(::kopf::__private::Touches::nothing()),
    };
    quote!({
        #[allow(unused_imports)]
        use ::kopf::__private::ReturnsValue as _;
        #result #(#inputs)*
    })
}

fn target(kind: Kind, options: &Options) -> Result<TokenStream> {
    if !kind.selects {
        return Ok(TokenStream::new());
    }
    Ok(match selector::target(kind, options)? {
        Target::Type(path) => quote_spanned! {path.span()=>
            handler.selector =
                ::std::option::Option::Some(::kopf::__private::selector_of::<#path>());
            handler.definition = {
                #[allow(unused_imports)]
                use ::kopf::__private::NoDefinition as _;
                ::kopf::__private::Definition::<#path>::of().find()
            };
        },
        Target::Selector(selector) => quote! {
            handler.selector = ::std::option::Option::Some(#selector);
        },
    })
}

fn handler_kind(kind: Kind, options: &Options) -> Result<TokenStream> {
    let marker = kind.marker();
    let path = quote!(::kopf::__private::HandlerKind::#marker);
    Ok(match kind.attribute {
        "delete" => {
            let optional = options.flag("optional")?;
            quote!(#path { optional: #optional })
        }
        "resume" => {
            let deleted = options.flag("deleted")?;
            quote!(#path { deleted: #deleted })
        }
        "daemon" => {
            let initial_delay = delay(options)?;
            let backoff = optional_duration(options, "cancellation_backoff")?;
            let timeout = optional_duration(options, "cancellation_timeout")?;
            let polling = optional_duration(options, "cancellation_polling")?;
            quote!(#path(::kopf::__private::DaemonOptions {
                initial_delay: #initial_delay,
                cancellation_backoff: #backoff,
                cancellation_timeout: #timeout,
                cancellation_polling: #polling,
            }))
        }
        "timer" => {
            let initial_delay = delay(options)?;
            let interval = optional_duration(options, "interval")?;
            let idle = optional_duration(options, "idle")?;
            let sharp = options.flag("sharp")?;
            quote!(#path(::kopf::__private::TimerOptions {
                interval: #interval,
                initial_delay: #initial_delay,
                sharp: #sharp,
                idle: #idle,
            }))
        }
        "validate" | "mutate" => {
            let webhook = webhook(options)?;
            quote!(#path(#webhook))
        }
        "convert" => {
            let conversion = convert::options(options)?;
            quote!(#path(#conversion))
        }
        _ => path,
    })
}

fn webhook(options: &Options) -> Result<TokenStream> {
    let operations = options.texts("operations")?;
    for operation in &operations {
        if !["CREATE", "UPDATE", "DELETE", "CONNECT"].contains(&operation.value().as_str()) {
            let advice = "an operation is \"CREATE\", \"UPDATE\", \"DELETE\" or \"CONNECT\"";
            return Err(Error::new(operation.span(), advice));
        }
    }
    if let (Some(option), true) = (options.get("operations"), operations.is_empty()) {
        return Err(Error::new(
            option.name.span(),
            "name at least one operation, or leave this out",
        ));
    }
    let subresource = match options.text("subresource")? {
        Some(text) => quote!(::std::option::Option::Some(#text.into())),
        None => quote!(::std::option::Option::None),
    };
    let persistent = options.flag("persistent")?;
    let side_effects = options.flag("side_effects")?;
    let ignore_failures = options.flag("ignore_failures")?;
    Ok(quote!(::kopf::__private::WebhookOptions {
        operations: ::std::vec![#(#operations.into()),*],
        subresource: #subresource,
        persistent: #persistent,
        side_effects: #side_effects,
        ignore_failures: #ignore_failures,
    }))
}

fn retrying(options: &Options) -> Result<TokenStream> {
    let mut statements = TokenStream::new();
    for name in ["timeout", "backoff"] {
        if options.get(name).is_some() {
            let field = format_ident!("{name}");
            let duration = optional_duration(options, name)?;
            statements.extend(quote!(handler.retrying.#field = #duration;));
        }
    }
    if let Some(retries) = options.expression("retries")? {
        let retries = quote_spanned!(retries.span()=> let retries: u32 = #retries;);
        statements.extend(quote!({
            #retries
            handler.retrying.retries = ::std::option::Option::Some(retries);
        }));
    }
    if let Some(errors) = options.expression("errors")? {
        let word = match errors {
            Expr::Path(path) => path.path.segments.last().map(|word| word.ident.to_string()),
            _ => None,
        };
        let mode = match word.as_deref() {
            Some("ignored" | "Ignored") => quote!(Ignored),
            Some("temporary" | "Temporary") => quote!(Temporary),
            Some("permanent" | "Permanent") => quote!(Permanent),
            _ => {
                let advice = "`errors` is `ignored`, `temporary` or `permanent`";
                return Err(Error::new(errors.span(), advice));
            }
        };
        statements.extend(quote! {
            handler.retrying.errors =
                ::std::option::Option::Some(::kopf::__private::ErrorsMode::#mode);
        });
    }
    Ok(statements)
}

fn param(kind: Kind, options: &Options, parameters: &[Parameter]) -> Result<TokenStream> {
    let wanted = parameters.iter().find(|parameter| parameter.is_named("Param"));
    let given = options.expression("param")?;
    match (given, wanted) {
        (Some(value), Some(Parameter { ty, .. })) => Ok(quote_spanned! {value.span()=>
            handler.param = ::std::option::Option::Some(::kopf::__private::param::<#ty>(#value));
        }),
        (Some(value), None) => Err(Error::new(
            value.span(),
            "nobody takes this: add an input `Param<T>` to the function",
        )),
        // The parameter of a sub-handler is given when it is registered.
        (None, Some(parameter)) if kind.marker != "Sub" => {
            Err(Error::new(parameter.ty.span(), "there is no `param = ...` in the attribute"))
        }
        _ => Ok(TokenStream::new()),
    }
}

/// `needs = ["get,create deployments.apps"]`, and what children grant: `grants`, `binds`.
fn needs(options: &Options) -> Result<TokenStream> {
    let mut statements = TokenStream::new();
    let lists =
        [("needs", quote!(handler.access.needs)), ("grants", quote!(handler.access.grants.rules))];
    for (name, list) in lists {
        for text in options.texts(name)? {
            let need = need(&text)?;
            statements.extend(quote!(#list.push(#need);));
        }
    }
    for text in options.texts("binds")? {
        let value = text.value();
        let (plural, name) = value.trim().split_once('/').unwrap_or_default();
        if !["roles", "clusterroles"].contains(&plural) || name.is_empty() {
            let advice = "say which role is bound: \"roles/NAME\" or \"clusterroles/NAME\"";
            return Err(Error::new(text.span(), advice));
        }
        statements
            .extend(quote!(handler.access.grants.bound.push((#plural.into(), #name.into()));));
    }
    Ok(statements)
}

fn need(text: &syn::LitStr) -> Result<TokenStream> {
    let value = text.value();
    let (verbs, resource) = value.trim().split_once(' ').ok_or_else(|| {
        let advice = "a need is verbs and a resource: \"get,create deployments.apps\"";
        Error::new(text.span(), advice)
    })?;
    let (resource, group) = resource.trim().split_once('.').unwrap_or((resource.trim(), ""));
    let verbs = verbs.split(',');
    Ok(quote!(::kopf::__private::Need {
        group: #group.into(),
        resource: #resource.into(),
        verbs: ::std::vec![#(#verbs.into()),*],
    }))
}

fn description(function: &ItemFn) -> TokenStream {
    let lines = function.attrs.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                Some(text.value().trim().to_owned())
            }
            _ => None,
        },
        _ => None,
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        return TokenStream::new();
    }
    quote!(handler.docs.description = ::std::option::Option::Some(#text.into());)
}

fn optional_duration(options: &Options, name: &str) -> Result<TokenStream> {
    Ok(match options.expression(name)? {
        Some(value) => {
            let duration = duration::expression(value)?;
            quote!(::std::option::Option::Some(#duration))
        }
        None => quote!(::std::option::Option::None),
    })
}

fn delay(options: &Options) -> Result<TokenStream> {
    Ok(match options.expression("initial_delay")? {
        None => quote!(::kopf::__private::Delay::None),
        Some(function @ (Expr::Closure(_) | Expr::Path(_))) => {
            quote_spanned!(function.span()=> ::kopf::__private::delay(#function))
        }
        Some(value) => {
            let duration = duration::expression(value)?;
            quote!(::kopf::__private::Delay::Fixed(#duration))
        }
    })
}
