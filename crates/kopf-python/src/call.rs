//! Calls of Python handlers: an item of the queue, finished from Python.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kopf_core::HandlerKind;
use kopf_core::invoke::{
    Attempt, Call as CoreCall, HandlerError, Invocation, Invoke, Output, Returned, Stop, StopReason,
};
use kopf_engine::Leadership;
use parking_lot::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tokio::sync::oneshot;

use crate::ask::Asker;
use crate::body::RawBody;
use crate::index::PythonValue;
use crate::json;
use crate::matter::Matter;
use crate::queue::{self, Item, Queue};
use crate::session::SessionLogin;
use crate::stillness::Hold;

/// The numbers of calls, unique in the process.
static CALLS: AtomicU64 = AtomicU64::new(1);

/// A Python handler.
pub(crate) struct PythonHandler {
    /// The number of the handler in the declaration.
    pub(crate) index: usize,
    /// The address of the function.
    pub(crate) identity: usize,
    pub(crate) queue: Arc<Queue>,
}

/// A call on its way to Python.
pub(crate) struct Pending {
    id: u64,
    handler: usize,
    call: CoreCall,
    reply: oneshot::Sender<Returned>,
    /// The handler counts as running while this is held.
    alive: Arc<dyn Any + Send + Sync>,
    /// Virtual time stands still while this is held.
    hold: Option<Hold>,
    queue: Arc<Queue>,
}

impl Item for Pending {
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(Call::from(self).into_pyobject(py)?.into_any())
    }
}

/// The engine does not wait for this call any more: Python cancels it.
struct Cancelling {
    call: u64,
    reason: u8,
}

/// A daemon did not stop when asked: Python cancels it, and it may still finish its work.
struct Interrupting {
    call: u64,
    reason: u8,
}

impl Item for Interrupting {
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(("interrupt", self.call, self.reason).into_pyobject(py)?.into_any())
    }
}

impl Item for Cancelling {
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(("cancel", self.call, self.reason).into_pyobject(py)?.into_any())
    }
}

/// A daemon is asked to stop.
struct Stopping {
    call: u64,
    reason: u8,
}

impl Item for Stopping {
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(("stop", self.call, self.reason).into_pyobject(py)?.into_any())
    }
}

impl Invoke for PythonHandler {
    fn invoke(&self, call: CoreCall) -> Invocation {
        self.invoke_guarded(call, Arc::new(()))
    }

    fn invoke_guarded(&self, call: CoreCall, alive: Arc<dyn Any + Send + Sync>) -> Invocation {
        let (reply, returned) = oneshot::channel();
        let id = CALLS.fetch_add(1, Ordering::Relaxed);
        let stopped = call.stopped.clone();
        let queue = Arc::clone(&self.queue);
        let handler = self.index;
        let (hold, queue_of_call) = (self.queue.hold(), Arc::clone(&self.queue));
        let pending = Pending { id, handler, call, reply, alive, hold, queue: queue_of_call };
        Invocation::Future(Box::pin(async move {
            let mut waiting = Waiting { id, queue, stopped, is_over: false };
            waiting.queue.push(pending);
            let returned = waiting.until(returned).await;
            waiting.is_over = true;
            returned.map(|output| connected(output, &waiting.queue))
        }))
    }

    fn cancels_itself(&self) -> bool {
        true
    }

    fn identity(&self) -> usize {
        self.identity
    }
}

/// Credentials that are a session of Python, made usable: here is the runtime for it.
fn connected(output: Output, queue: &Arc<Queue>) -> Output {
    let Output::Opaque(value) = output else { return output };
    match value.downcast::<SessionLogin>() {
        Ok(login) => Output::Opaque(Arc::new(login.credentials(Arc::clone(queue)))),
        Err(value) => Output::Opaque(value),
    }
}

/// The engine's side of a call. Dropped before the end, it asks Python to cancel the call.
struct Waiting {
    id: u64,
    queue: Arc<Queue>,
    stopped: Option<Arc<dyn Stop>>,
    is_over: bool,
}

impl Waiting {
    async fn until(&self, returned: oneshot::Receiver<Returned>) -> Returned {
        tokio::pin!(returned);
        if let Some(stopped) = &self.stopped {
            tokio::select! {
                returned = &mut returned => return returned.unwrap_or(Err(HandlerError::Cancelled)),
                () = stopped.wait(None) => {
                    self.queue.push(Stopping { call: self.id, reason: self.reason() });
                }
            }
            tokio::select! {
                returned = &mut returned => return returned.unwrap_or(Err(HandlerError::Cancelled)),
                () = stopped.wait_for(StopReason::DAEMON_CANCELLED) => {
                    self.queue.push(Interrupting { call: self.id, reason: self.reason() });
                }
            }
        }
        // Without the loop, the call cannot be finished.
        returned.await.unwrap_or(Err(HandlerError::Cancelled))
    }

    fn reason(&self) -> u8 {
        let reason = self.stopped.as_ref().and_then(|stopped| stopped.reason());
        reason.map_or(0, StopReason::bits)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_over {
            self.queue.push(Cancelling { call: self.id, reason: self.reason() });
        }
    }
}

/// A call as Python sees it.
#[pyclass(frozen, module = "kopf._native")]
pub(crate) struct Call {
    #[pyo3(get)]
    id: u64,
    /// The number of the handler.
    #[pyo3(get)]
    handler: usize,
    /// Made on first use: many handlers look at nothing.
    matter: PyOnceLock<Py<Matter>>,
    call: CoreCall,
    end: Mutex<Option<End>>,
    queue: Arc<Queue>,
}

/// How a call gets back to the engine.
struct End {
    reply: oneshot::Sender<Returned>,
    /// The handler counts as running while this is held.
    alive: Arc<dyn Any + Send + Sync>,
    /// Virtual time stands still while this is held.
    hold: Option<Hold>,
}

/// A call that has ended.
struct Ended {
    end: End,
    returned: Returned,
}

impl queue::Ended for Ended {
    fn deliver(self: Box<Self>) {
        let Self { end: End { reply, alive, hold }, returned } = *self;
        // First, so that the engine lets the last token go, with its own log and not here.
        drop(alive);
        // The engine may have stopped waiting for it.
        let _ = reply.send(returned);
        // Last: the engine goes on before time does.
        drop(hold);
    }
}

impl From<Box<Pending>> for Call {
    fn from(pending: Box<Pending>) -> Self {
        let Pending { id, handler, call, reply, alive, hold, queue } = *pending;
        // Daemons have no end to wait for.
        let hold = hold.filter(|_| !matches!(call.handler.kind, HandlerKind::Daemon(_)));
        let end = Mutex::new(Some(End { reply, alive, hold }));
        Self { id, handler, matter: PyOnceLock::new(), call, end, queue }
    }
}

impl Call {
    fn end(&self, returned: Returned) {
        let end = self.end.lock().take();
        if let Some(end) = end {
            self.queue.give_back(Ended { end, returned });
        }
    }
}

#[pymethods]
impl Call {
    /// What the call is about.
    #[getter]
    fn matter<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, Matter>> {
        let made = || {
            let call = &self.call;
            let matter = Matter {
                subject: call.subject.clone(),
                occasion: call.occasion.clone(),
                memo: Some(Arc::clone(&call.memo)),
                patch: Some(Arc::clone(&call.patch)),
                transformer: Asker::new(Arc::clone(&self.queue)).transformer(),
            };
            Py::new(py, matter)
        };
        Ok(self.matter.get_or_try_init(py, made)?.bind(py))
    }

    /// How many attempts were finished before this one.
    #[getter]
    fn retry(&self) -> u32 {
        self.call.attempt.retry
    }

    /// When the first attempt began, in seconds since 1970.
    #[getter]
    fn started(&self) -> f64 {
        self.call.attempt.started.as_nanosecond() as f64 / 1e9
    }

    /// The seconds since the first attempt began.
    #[getter]
    fn runtime(&self) -> f64 {
        let attempt: &Attempt = &self.call.attempt;
        attempt.runtime().as_secs_f64()
    }

    /// The reasons to stop so far, as the bits of `DaemonStoppingReason`.
    fn stop_reason(&self) -> u8 {
        let reason = self.call.stopped.as_ref().and_then(|stopped| stopped.reason());
        reason.map_or(0, StopReason::bits)
    }

    /// The number of the term of this replica, if it has the right to act at this moment.
    fn term(&self) -> Option<u64> {
        self.call.operator.state.get::<Leadership>()?.term()
    }

    /// Adds a warning for the user who asks for admission.
    fn warn(&self, text: String) {
        if let Some(warnings) = &self.call.warnings {
            warnings.lock().push(text);
        }
    }

    /// Tells the ids of all sub-handlers that were seen.
    fn note_subrefs(&self, ids: Vec<String>) {
        if let Some(children) = &self.call.sub_handlers {
            children.note(ids.into_iter().map(Into::into).collect());
        }
    }

    /// The children that the object has of a kind, by its number among those of the handler; none
    /// while they could not be listed.
    fn children(&self, number: usize) -> Option<Vec<RawBody>> {
        crate::family::children(&self.call, number)
    }

    /// Ends with a result for the status, or none.
    fn finish(&self, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let output = match json::to_value(result)? {
            serde_json::Value::Null => Output::Nothing,
            value => Output::Json(value),
        };
        self.end(Ok(output));
        Ok(())
    }

    /// Ends with the entries of an index: numbers of keys, and values; none to keep the former ones.
    fn finish_index(&self, entries: Option<Vec<(u64, Py<PyAny>)>>) {
        let output = match entries {
            None => Output::Nothing,
            Some(entries) => {
                let entry = |(key, value): (u64, Py<PyAny>)| {
                    let value: Arc<dyn Any + Send + Sync> = Arc::new(PythonValue(value));
                    (serde_json::Value::from(key), value)
                };
                Output::Entries(entries.into_iter().map(entry).collect())
            }
        };
        self.end(Ok(output));
    }

    /// Ends with credentials, by the names of `ConnectionInfo`.
    fn finish_login(&self, info: &Bound<'_, PyAny>) -> PyResult<()> {
        let info = crate::login::connection_info(&json::to_value(info)?)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        self.end(Ok(Output::Opaque(Arc::new(info))));
        Ok(())
    }

    /// Ends with a session of Python as credentials, known by its number.
    #[pyo3(signature = (session, default_namespace = None, priority = 0, expiration = None))]
    fn finish_session(
        &self,
        session: u64,
        default_namespace: Option<String>,
        priority: i64,
        expiration: Option<f64>,
    ) {
        let moment = |seconds: f64| jiff::Timestamp::from_microsecond((seconds * 1e6) as i64).ok();
        self.end(Ok(Output::Opaque(Arc::new(SessionLogin {
            session,
            default_namespace: default_namespace.unwrap_or_else(|| "default".to_owned()),
            priority,
            expiration: expiration.and_then(moment),
        }))));
    }

    /// Ends with a failure: `temporary`, `permanent`, `arbitrary`, `denied`, `children` or
    /// `cancelled`.
    #[pyo3(signature = (kind, message = String::new(), delay = None, code = None, details = None))]
    fn fail(
        &self,
        kind: &str,
        message: String,
        delay: Option<f64>,
        code: Option<u16>,
        details: Option<String>,
    ) -> PyResult<()> {
        let delay = delay.map(|delay| Duration::try_from_secs_f64(delay).unwrap_or_default());
        let error = match kind {
            "temporary" => HandlerError::Temporary { message, delay },
            "permanent" => HandlerError::Permanent { message },
            "arbitrary" => HandlerError::Arbitrary { message, details },
            "denied" => HandlerError::Denied { message, code: code.unwrap_or(500) },
            "children" => HandlerError::SubHandlers { delay },
            "cancelled" => HandlerError::Cancelled,
            other => return Err(PyValueError::new_err(format!("unknown failure: {other}"))),
        };
        self.end(Err(error));
        Ok(())
    }
}

/// A call that Python forgets counts as cancelled.
impl Drop for Call {
    fn drop(&mut self) {
        self.end(Err(HandlerError::Cancelled));
    }
}
