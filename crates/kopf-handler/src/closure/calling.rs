//! How closures are called: from the inputs to the result.
//!
//! There is one rule for all closures, and its parts are separate traits: so the compiler first
//! determines what a closure takes and returns, and then names the part that does not match. With
//! separate rules for closures of one, two and more inputs, each with all conditions, it would have
//! one message for all mistakes: that none of the rules holds.

use std::future::Future;
use std::sync::Arc;

use kopf_core::handler::Touches;
use kopf_core::{Call, HandlerError, Invocation, Returned};

use crate::desired::Child;
use crate::error::Error;
use crate::input::{Input, Requirement};
use crate::kind::{self, Kind};
use crate::outcome::{Failure, Outcome};

/// A closure that can be a handler of a kind.
#[diagnostic::on_unimplemented(
    message = "this cannot be a `{HandlerKind}` handler",
    label = "not a closure of at most eight inputs",
    note = "a handler is a closure such as `|name: Name| async move {{ ... }}`, of at most eight inputs"
)]
pub trait HandlerFn<HandlerKind: Kind, Inputs>: Send + Sync + 'static {
    /// Calls the closure with its inputs.
    fn call(self: Arc<Self>, call: Call) -> Invocation;
    /// The requirements of its inputs.
    fn requires() -> Vec<Requirement>;
    /// What the engine may write for it, depending on whether results are stored.
    fn touches(is_stored: bool) -> Touches;
}

impl<K, F, I> HandlerFn<K, I> for F
where
    K: Kind,
    F: Callable<I>,
    I: Inputs<K>,
    F::Made: Promise + Send,
    <F::Made as Promise>::Answer: Answer<K>,
{
    fn call(self: Arc<Self>, call: Call) -> Invocation {
        let make = move || Ok(self.make(I::take(&call).map_err(HandlerError::from)?));
        F::Made::keep(make, Answer::<K>::into_returned)
    }

    fn requires() -> Vec<Requirement> {
        I::requires()
    }

    fn touches(is_stored: bool) -> Touches {
        let status = is_stored && <<F::Made as Promise>::Answer as Answer<K>>::has_value();
        Touches { status, ..Touches::nothing() }.or(I::touches())
    }
}

/// A function of some inputs of any types that returns any type.
pub trait Callable<Inputs>: Send + Sync + 'static {
    /// What it returns.
    type Made;

    /// Calls the function.
    fn make(&self, inputs: Inputs) -> Self::Made;
}

/// The inputs of a closure as a tuple.
pub trait Inputs<HandlerKind: Kind>: Sized {
    /// Takes all of them.
    ///
    /// # Errors
    /// Fails with the first failure.
    fn take(call: &Call) -> Result<Self, Error>;
    /// Their requirements.
    fn requires() -> Vec<Requirement>;
    /// What may be written through them.
    fn touches() -> Touches;
}

/// An input of a closure: every [`Input`].
#[diagnostic::on_unimplemented(
    message = "a closure for `{HandlerKind}` has no input `{Self}`",
    label = "`{Self}` is not an input of this closure",
    note = "closures take the inputs of their kind by value: `Spec`, and `Typed<Database>` for the typed object; `&Spec`, `&Database` and `&mut Patch` are for functions with attributes"
)]
pub trait Given<HandlerKind: Kind>: Input<HandlerKind> {}

#[diagnostic::do_not_recommend]
impl<K: Kind, T: Input<K>> Given<K> for T {}

/// The direct result of a closure: a future, or for [`blocking`] closures the answer itself.
#[diagnostic::on_unimplemented(
    message = "a closure that returns `{Self}` is not async",
    label = "not async",
    note = "write `|name: Name| async move {{ ... }}`, or `closure::blocking(|name: Name| ...)` for one that may block"
)]
pub trait Promise: Sized {
    /// The final result.
    type Answer;

    /// Creates it and waits for its result, each in the right place.
    fn keep(
        make: impl FnOnce() -> Result<Self, HandlerError> + Send + 'static,
        finish: fn(Self::Answer) -> Returned,
    ) -> Invocation
    where
        Self: Send;
}

#[diagnostic::do_not_recommend]
impl<F: Future + 'static> Promise for F {
    type Answer = F::Output;

    fn keep(
        make: impl FnOnce() -> Result<F, HandlerError> + Send + 'static,
        finish: fn(F::Output) -> Returned,
    ) -> Invocation
    where
        F: Send,
    {
        match make() {
            Ok(future) => Invocation::Future(Box::pin(async move { finish(future.await) })),
            Err(error) => Invocation::Future(Box::pin(std::future::ready(Err(error)))),
        }
    }
}

/// A closure that runs on the pool of threads for blocking handlers; made by [`blocking`].
#[derive(Debug)]
pub struct Blocking<F>(F);

/// Makes a handler from a closure that is not async and may block.
///
/// ```
/// use kopf_handler::{Name, closure};
///
/// let handler = closure::create("kopfexamples", closure::blocking(|name: Name| {
///     std::fs::write("/tmp/last", &*name)
/// }));
/// ```
pub fn blocking<F>(function: F) -> Blocking<F> {
    Blocking(function)
}

/// The result of a closure that may block.
#[derive(Debug)]
pub struct Blocked<R>(R);

#[diagnostic::do_not_recommend]
impl<R: 'static> Promise for Blocked<R> {
    type Answer = R;

    fn keep(
        make: impl FnOnce() -> Result<Self, HandlerError> + Send + 'static,
        finish: fn(R) -> Returned,
    ) -> Invocation {
        Invocation::Blocking(Box::new(move || finish(make()?.0)))
    }
}

/// What a closure may return: nothing, or a `Result`; for desired children also a list of them.
#[diagnostic::on_unimplemented(
    message = "a closure for `{HandlerKind}` cannot return `{Self}`",
    label = "returns `{Self}`",
    note = "return nothing, or a `kopf::Result` of a value"
)]
pub trait Answer<HandlerKind: Kind> {
    /// The answer in the form for the engine.
    ///
    /// # Errors
    /// Returns the failure of the closure.
    fn into_returned(self) -> Returned;

    /// Whether there is a value, which is stored in the status.
    #[must_use]
    fn has_value() -> bool;
}

#[diagnostic::do_not_recommend]
impl<K: Kind> Answer<K> for ()
where
    (): Outcome<K>,
{
    fn into_returned(self) -> Returned {
        Outcome::<K>::into_output(self).map_err(HandlerError::from)
    }

    fn has_value() -> bool {
        false
    }
}

impl<K: Kind, T: Outcome<K>, E: Failure> Answer<K> for Result<T, E> {
    fn into_returned(self) -> Returned {
        let value = self.map_err(|error| HandlerError::from(error.into_error()))?;
        value.into_output().map_err(HandlerError::from)
    }

    fn has_value() -> bool {
        // Only types without borrowed parts have a type id, so the names are compared.
        std::any::type_name::<T>() != std::any::type_name::<()>()
    }
}

#[diagnostic::do_not_recommend]
impl<C: Into<Child>> Answer<kind::Desired> for Vec<C> {
    fn into_returned(self) -> Returned {
        Outcome::<kind::Desired>::into_output(self).map_err(HandlerError::from)
    }

    fn has_value() -> bool {
        true
    }
}

macro_rules! closures {
    ($($input:ident $name:ident)*) => {
        #[diagnostic::do_not_recommend]
        impl<F, R, $($input),*> Callable<($($input,)*)> for F
        where
            F: Fn($($input),*) -> R + Send + Sync + 'static,
        {
            type Made = R;

            fn make(&self, ($($name,)*): ($($input,)*)) -> R {
                self($($name),*)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<F, R, $($input),*> Callable<($($input,)*)> for Blocking<F>
        where
            F: Fn($($input),*) -> R + Send + Sync + 'static,
        {
            type Made = Blocked<R>;

            fn make(&self, ($($name,)*): ($($input,)*)) -> Blocked<R> {
                Blocked((self.0)($($name),*))
            }
        }

        impl<K: Kind, $($input: Given<K>),*> Inputs<K> for ($($input,)*) {
            fn take(call: &Call) -> Result<Self, Error> {
                // Closures without inputs ignore the call.
                let _ = call;
                Ok(($($input::take(call)?,)*))
            }

            fn requires() -> Vec<Requirement> {
                let all: Vec<Option<Requirement>> = vec![$($input::requires()),*];
                all.into_iter().flatten().collect()
            }

            fn touches() -> Touches {
                let all: &[Touches] = &[$($input::touches()),*];
                all.iter().fold(Touches::nothing(), |all, one| all.or(*one))
            }
        }
    };
}

closures!();
closures!(A a);
closures!(A a B b);
closures!(A a B b C c);
closures!(A a B b C c D d);
closures!(A a B b C c D d E e);
closures!(A a B b C c D d E e G g);
closures!(A a B b C c D d E e G g H h);
closures!(A a B b C c D d E e G g H h I i);
