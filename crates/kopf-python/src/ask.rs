//! Decisions that only Python can take: filters, delays, transformations, lifecycles, storages.
//!
//! A question is an item of the queue; the engine never attaches to the interpreter. Where the engine
//! makes a decision, no thread waits for the answer: see `kopf_core::answers`. Only the few questions
//! outside decisions, at the start or for handlers that are registered later, block their thread. A
//! question that fails is an error of the callback, which ends the cycle of the object; the object is
//! then throttled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use kopf_core::answers::{self, CallbackId};
use kopf_core::filter::FilterResult;
use kopf_core::invoke::{CallbackError, ErrorObject};
use kopf_core::occasion::{Occasion, Subject};
use parking_lot::Mutex;
use pyo3::prelude::*;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::json;
use crate::matter::{Matter, Transformer};
use crate::queue::{Item, Queue};

/// How many threads may wait for Python and be replaced by others; more of them just wait.
const WAITING_MAX: usize = 32;

/// How many threads wait for Python.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Asks Python.
#[derive(Clone)]
pub(crate) struct Asker(Arc<Queue>);

/// One question on its way to Python.
pub(crate) struct Question {
    /// What is asked, such as `when`.
    pub(crate) kind: &'static str,
    /// The number of the handler, if it is about one.
    pub(crate) handler: Option<usize>,
    /// The label, the annotation or the record in question.
    pub(crate) key: Option<String>,
    /// The value to judge or to change.
    pub(crate) value: Option<Value>,
    pub(crate) matter: Option<Matter>,
    pub(crate) function: Option<Arc<Py<PyAny>>>,
    reply: Box<dyn FnOnce(Answer) + Send>,
}

type Answer = Result<Value, CallbackError>;

/// What is asked, without the way back.
#[derive(Default)]
pub(crate) struct Query {
    pub(crate) kind: &'static str,
    pub(crate) handler: Option<usize>,
    pub(crate) key: Option<String>,
    pub(crate) value: Option<Value>,
    pub(crate) matter: Option<Matter>,
    pub(crate) function: Option<Arc<Py<PyAny>>>,
}

impl Asker {
    pub(crate) fn new(queue: Arc<Queue>) -> Self {
        Self(queue)
    }

    /// Asks and waits for the answer.
    pub(crate) fn ask(&self, query: Query) -> Answer {
        ask(&self.0, query)
    }

    /// Whether a filter accepts the object.
    pub(crate) fn accepts(
        &self,
        query: Query,
        subject: &Subject,
        occasion: &Occasion,
    ) -> FilterResult {
        let matter = Some(self.matter(subject, occasion));
        let answer = self.ask(Query { matter, ..query })?;
        Ok(answer.as_bool().unwrap_or(false))
    }

    /// What a callback sees of an object.
    pub(crate) fn matter(&self, subject: &Subject, occasion: &Occasion) -> Matter {
        let context = kopf_engine::callbacks::context();
        Matter {
            subject: Some(subject.clone()),
            occasion: occasion.clone(),
            memo: context.as_ref().map(|context| Arc::clone(&context.memo)),
            patch: context.as_ref().map(|context| Arc::clone(&context.patch)),
            transformer: self.transformer(),
        }
    }

    /// What changes bodies by functions of Python.
    pub(crate) fn transformer(&self) -> Arc<dyn Transformer> {
        Arc::clone(&self.0) as Arc<_>
    }
}

impl Transformer for Queue {
    fn transform(
        self: Arc<Self>,
        function: &Arc<Py<PyAny>>,
        body: &mut Value,
    ) -> Result<(), CallbackError> {
        let value = Some(body.clone());
        let function = Some(Arc::clone(function));
        *body = ask(&self, Query { kind: "transform", value, function, ..Query::default() })?;
        Ok(())
    }
}

fn ask(queue: &Arc<Queue>, query: Query) -> Answer {
    if answers::is_deciding() {
        return answers::later(query.id(), || answered(Arc::clone(queue), query));
    }
    let (reply, answer) = mpsc::sync_channel(1);
    // Nobody waits any more if the engine is gone.
    push(queue, query, move |answer| drop(reply.send(answer)));
    waited(|| answer.recv()).unwrap_or_else(|_| gone())
}

async fn answered(queue: Arc<Queue>, query: Query) -> Answer {
    let (reply, answer) = oneshot::channel();
    let hold = queue.hold();
    push(&queue, query, move |answer| {
        // The cycle may have been aborted in the meantime.
        drop(reply.send(answer));
        drop(hold);
    });
    answer.await.unwrap_or_else(|_| gone())
}

fn push(queue: &Queue, query: Query, reply: impl FnOnce(Answer) + Send + 'static) {
    let Query { kind, handler, key, value, matter, function } = query;
    let reply = Box::new(reply);
    queue.push(Question { kind, handler, key, value, matter, function, reply });
}

fn gone() -> Answer {
    Err(CallbackError::new("the event loop of the operator is closed"))
}

impl Query {
    /// The identity of the function in question.
    fn id(&self) -> CallbackId {
        let Self { kind, handler, key, function, .. } = self;
        CallbackId::of((kind, handler, key, function.as_ref().map(|it| it.as_ptr() as usize)))
    }
}

impl Item for Question {
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(("ask", Ask::from(self)).into_pyobject(py)?.into_any())
    }
}

/// Waits for Python, and lets another thread take over the engine's tasks, as long as there
/// are not too many such threads.
fn waited<T>(wait: impl FnOnce() -> T) -> T {
    let waiting = WAITING.fetch_add(1, Ordering::Relaxed);
    // A world has only one thread: there is no other one to take over.
    let flavor = tokio::runtime::Handle::try_current().map(|handle| handle.runtime_flavor());
    let is_alone = matches!(flavor, Ok(tokio::runtime::RuntimeFlavor::CurrentThread));
    let result = match waiting < WAITING_MAX && !is_alone {
        true => tokio::task::block_in_place(wait),
        false => wait(),
    };
    WAITING.fetch_sub(1, Ordering::Relaxed);
    result
}

/// A question as Python sees it.
#[pyclass(frozen, module = "kopf._native")]
pub(crate) struct Ask {
    question: Mutex<Option<Box<Question>>>,
    #[pyo3(get)]
    kind: &'static str,
    #[pyo3(get)]
    handler: Option<usize>,
    #[pyo3(get)]
    key: Option<String>,
}

impl From<Box<Question>> for Ask {
    fn from(question: Box<Question>) -> Self {
        Self {
            kind: question.kind,
            handler: question.handler,
            key: question.key.clone(),
            question: Mutex::new(Some(question)),
        }
    }
}

#[pymethods]
impl Ask {
    /// The value to judge or to change.
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.question.lock().as_ref().and_then(|question| question.value.clone());
        value.map(|value| json::to_python(py, &value)).transpose()
    }

    /// What it is about.
    fn matter(&self) -> Option<Matter> {
        self.question.lock().as_ref().and_then(|question| question.matter.clone())
    }

    /// The function to call.
    fn function<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let question = self.question.lock();
        let function = question.as_ref()?.function.as_ref()?;
        Some(function.bind(py).clone())
    }

    /// Answers; fails when the value is not JSON, and can then still be answered.
    fn answer(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = json::to_value(value)?;
        self.reply(Ok(value));
        Ok(())
    }

    /// Tells that the decision has failed, with the exception if there is one, and with what refers
    /// to it in the log.
    #[pyo3(signature = (text, exception = None, details = None))]
    fn fail(&self, text: String, exception: Option<Py<PyAny>>, details: Option<String>) {
        let object = exception.map(|exception| ErrorObject(Arc::new(exception)));
        self.reply(Err(CallbackError { message: text, object, details }));
    }
}

impl Ask {
    fn reply(&self, answer: Answer) {
        let question = self.question.lock().take();
        if let Some(question) = question {
            (question.reply)(answer);
        }
    }
}
