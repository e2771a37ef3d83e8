//! The function under the attribute: its parameters, and why it cannot be a handler.

use syn::spanned::Spanned;
use syn::{Error, FnArg, GenericArgument, ItemFn, PathArguments, Result, Type};

/// One parameter of a handler.
pub(crate) struct Parameter {
    pub(crate) passing: Passing,
    /// The type without its reference.
    pub(crate) ty: Type,
}

/// How a parameter is passed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passing {
    Value,
    Reference,
    Mutable,
}

impl Parameter {
    /// Whether the type has this name, with any path and arguments.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        last_segment(&self.ty).is_some_and(|segment| segment == name)
    }

    /// The type `T` of `&Children<T>`.
    pub(crate) fn owned(&self) -> Option<&Type> {
        let Type::Path(path) = &self.ty else { return None };
        let last = path.path.segments.last().filter(|last| last.ident == "Children")?;
        match &last.arguments {
            PathArguments::AngleBracketed(arguments) => match arguments.args.first()? {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Rejects functions that the engine cannot call.
pub(crate) fn check(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if let Some(parameter) = signature.generics.params.first() {
        let advice =
            "a handler is called by the engine, which cannot choose its generic parameters";
        return Err(Error::new(parameter.span(), advice));
    }
    if let Some(unsafety) = &signature.unsafety {
        return Err(Error::new(unsafety.span(), "a handler cannot be unsafe"));
    }
    if let Some(constness) = &signature.constness {
        return Err(Error::new(constness.span(), "a handler cannot be const"));
    }
    Ok(())
}

/// The parameters of a function.
pub(crate) fn parameters(function: &ItemFn) -> Result<Vec<Parameter>> {
    function.sig.inputs.iter().map(parameter).collect()
}

fn parameter(input: &FnArg) -> Result<Parameter> {
    let input = match input {
        FnArg::Typed(input) => input,
        FnArg::Receiver(receiver) => {
            let advice = "a handler is a plain function: take what it needs as `State<T>`";
            return Err(Error::new(receiver.span(), advice));
        }
    };
    let (passing, ty) = match input.ty.as_ref() {
        Type::Reference(reference) if reference.mutability.is_some() => {
            (Passing::Mutable, reference.elem.as_ref())
        }
        Type::Reference(reference) => (Passing::Reference, reference.elem.as_ref()),
        other => (Passing::Value, other),
    };
    if let Type::ImplTrait(unnamed) = ty {
        let advice = "name the input that you want instead of a trait";
        return Err(Error::new(unnamed.span(), advice));
    }
    reject_plain_types(ty)?;
    Ok(Parameter { passing, ty: ty.clone() })
}

/// Types that can be read from JSON, but never from a whole object.
fn reject_plain_types(ty: &Type) -> Result<()> {
    let Some(name) = last_segment(ty) else {
        if matches!(ty, Type::Path(_)) {
            return Ok(());
        }
        return Err(Error::new(
            ty.span(),
            "this is not an input of handlers: name one by its type",
        ));
    };
    let advice = match name.as_str() {
        "str" | "String" => "a text is not an input: take `Name`, `Namespace`, `Uid` or `&Spec`",
        "bool" | "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "f32" | "f64"
        | "usize" | "isize" => {
            "a number or a flag is not an input: take `&Spec` or a struct that names the field"
        }
        "Vec" | "HashMap" | "BTreeMap" => {
            "a collection is not an input: take `&Spec`, `&Labels`, `&Annotations` or a struct"
        }
        _ => return Ok(()),
    };
    Err(Error::new(ty.span(), advice))
}

fn last_segment(ty: &Type) -> Option<String> {
    let Type::Path(path) = ty else { return None };
    let segment = path.path.segments.last()?;
    let is_plain =
        matches!(segment.arguments, PathArguments::None | PathArguments::AngleBracketed(_));
    is_plain.then(|| segment.ident.to_string())
}
