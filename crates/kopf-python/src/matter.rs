//! What a call or a question is about, for Python: the object, what happened, memo and patch.

use std::sync::Arc;

use kopf_core::invoke::{CallbackError, Extensions};
use kopf_core::occasion::{Change, Occasion, Subject};
use kopf_model::{Diff, Essence, Patch, Resource};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::body::RawBody;
use crate::json;

/// The object, what happened to it, and what belongs to it.
#[pyclass(frozen, skip_from_py_object, module = "kopf._native")]
#[derive(Clone)]
pub(crate) struct Matter {
    pub(crate) subject: Option<Subject>,
    pub(crate) occasion: Occasion,
    pub(crate) memo: Option<Arc<Extensions>>,
    pub(crate) patch: Option<Arc<Mutex<Patch>>>,
    pub(crate) transformer: Arc<dyn Transformer>,
}

/// Changes bodies by functions of Python.
pub(crate) trait Transformer: Send + Sync {
    /// Calls the function with the body in the event loop.
    fn transform(
        self: Arc<Self>,
        function: &Arc<Py<PyAny>>,
        body: &mut serde_json::Value,
    ) -> Result<(), CallbackError>;
}

/// Under this name the client's certificate comes with the headers of a review.
const SSL_PEER: &str = "\0sslpeer";

/// The memo of an object as Python keeps it.
struct PythonMemo(Py<PyAny>);

impl Matter {
    fn change(&self) -> Option<&Change> {
        match &self.occasion {
            Occasion::Change(change) => Some(change),
            _ => None,
        }
    }
}

#[pymethods]
impl Matter {
    /// Which cause it is: `event`, `change`, `index`, `desired`, `background`, `admission` or
    /// `activity`.
    #[getter]
    fn kind(&self) -> &'static str {
        match &self.occasion {
            Occasion::Event { .. } => "event",
            Occasion::Change(_) => "change",
            Occasion::Index => "index",
            Occasion::Background { .. } => "background",
            Occasion::Admission(_) => "admission",
            Occasion::Activity(_) => "activity",
            Occasion::Desired => "desired",
            Occasion::Conversion => "other",
        }
    }

    /// The body of the object; that of daemons and timers is always the newest one.
    fn body(&self) -> Option<RawBody> {
        match (&self.occasion, &self.subject) {
            (Occasion::Background { live }, _) => Some(RawBody::live(live.clone())),
            (_, Some(subject)) => Some(RawBody::fixed(&subject.object)),
            _ => None,
        }
    }

    /// API version, kind, name, uid and namespace of the object, without reading the body.
    fn reference(&self) -> Option<(&str, &str, &str, &str, Option<&str>)> {
        let object = &self.subject.as_ref()?.object;
        let (name, uid) = (object.name(), object.uid());
        Some((object.api_version(), object.kind(), name, uid, object.namespace()))
    }

    /// Group, version and plural of the resource.
    fn resource_key(&self) -> Option<(String, String, String)> {
        let Resource { group, version, plural, .. } = &*self.subject.as_ref()?.resource;
        Some((group.clone(), version.clone(), plural.clone()))
    }

    /// All that is known of the resource, by Kopf's names.
    fn resource<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(subject) = &self.subject else { return Ok(None) };
        resource_dict(py, &subject.resource).map(Some)
    }

    /// The type of a raw event; none for objects from a list.
    #[getter]
    fn event_type(&self) -> Option<&'static str> {
        match &self.occasion {
            Occasion::Event { kind } => kind.map(|kind| kind.as_str()),
            _ => None,
        }
    }

    /// The phase of the operator.
    #[getter]
    fn activity(&self) -> Option<&'static str> {
        match &self.occasion {
            Occasion::Activity(activity) => Some(activity.as_str()),
            _ => None,
        }
    }

    /// The reason of a change.
    #[getter]
    fn reason(&self) -> Option<&'static str> {
        self.change().map(|change| change.reason.as_str())
    }

    /// Whether the object was first seen in a list after the start.
    #[getter]
    fn initial(&self) -> bool {
        self.change().is_some_and(|change| change.initial)
    }

    /// The last handled state, or that of the field.
    fn old<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        essence(py, self.change().and_then(|change| change.old.as_ref()))
    }

    /// The present state, or that of the field.
    #[pyo3(name = "new")]
    fn current<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        essence(py, self.change().and_then(|change| change.new.as_ref()))
    }

    /// Whether all that differs is the present state as a whole, since there was none before.
    #[getter]
    fn is_addition(&self) -> bool {
        let is_whole = |change: &Change| change.old.is_none() && change.new.is_some();
        self.change().is_some_and(|change| is_whole(change) && change.diff.len() == 1)
    }

    /// What differs: operation, path, old and new value of each field.
    fn diff<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        match &self.occasion {
            Occasion::Change(change) => diff_list(py, &change.diff),
            Occasion::Admission(review) => diff_list(py, &review.diff),
            _ => Ok(PyList::empty(py)),
        }
    }

    /// An admission request, by the names of the kwargs.
    fn review<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Occasion::Admission(review) = &self.occasion else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("operation", &review.operation)?;
        dict.set_item("subresource", &review.subresource)?;
        dict.set_item("dryrun", review.dry_run)?;
        dict.set_item("userinfo", json::to_python(py, &review.user_info)?)?;
        let headers = PyDict::new(py);
        for (name, value) in &review.headers {
            // Not a header: what the server knows of the client's certificate.
            if name == SSL_PEER {
                dict.set_item("sslpeer", json::parse(py, value.as_bytes())?)?;
            } else {
                headers.set_item(name, value)?;
            }
        }
        dict.set_item("headers", headers)?;
        dict.set_item("old", review.old.as_ref().map(RawBody::fixed))?;
        dict.set_item("new", review.new.as_ref().map(RawBody::fixed))?;
        Ok(Some(dict))
    }

    /// The memo of the object, if one was set.
    fn memo<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let memo = self.memo.as_ref()?.get::<PythonMemo>()?;
        Some(memo.0.bind(py).clone())
    }

    /// Sets the memo for all handlers of the object.
    fn set_memo(&self, value: Py<PyAny>) {
        if let Some(memo) = &self.memo {
            memo.insert(Arc::new(PythonMemo(value)));
        }
    }

    /// Which patch it is: the same number for all calls that share it.
    #[getter]
    fn patch_key(&self) -> Option<usize> {
        self.patch.as_ref().map(|patch| Arc::as_ptr(patch) as usize)
    }

    /// The merge patch so far.
    fn patch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let merge = self.patch.as_ref().map(|patch| patch.lock().merge.clone());
        json::map_to_python(py, &merge.unwrap_or_default())
    }

    /// Takes changes over: a dict to be merged, and functions over the freshest body.
    fn absorb(&self, merge: &Bound<'_, PyAny>, functions: Vec<Py<PyAny>>) -> PyResult<()> {
        let Some(patch) = &self.patch else { return Ok(()) };
        let serde_json::Value::Object(merge) = json::to_value(merge)? else { return Ok(()) };
        let mut change = Patch { merge, ..Patch::default() };
        for function in functions {
            let transformer = Arc::clone(&self.transformer);
            let function = Arc::new(function);
            change.try_transform(move |body| Arc::clone(&transformer).transform(&function, body));
        }
        patch.lock().absorb(change);
        Ok(())
    }
}

/// A resource by the names of Kopf's fields.
pub(crate) fn resource_dict<'py>(
    py: Python<'py>,
    resource: &Resource,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("group", &resource.group)?;
    dict.set_item("version", &resource.version)?;
    dict.set_item("plural", &resource.plural)?;
    dict.set_item("kind", &resource.kind)?;
    dict.set_item("singular", &resource.singular)?;
    dict.set_item("shortcuts", resource.shortcuts.iter().collect::<Vec<_>>())?;
    dict.set_item("categories", resource.categories.iter().collect::<Vec<_>>())?;
    dict.set_item("subresources", resource.subresources.iter().collect::<Vec<_>>())?;
    dict.set_item("namespaced", resource.namespaced)?;
    dict.set_item("preferred", resource.preferred)?;
    dict.set_item("verbs", resource.verbs.iter().collect::<Vec<_>>())?;
    Ok(dict)
}

fn essence<'py>(py: Python<'py>, essence: Option<&Essence>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(essence) = essence else { return Ok(None) };
    // The text is there already, the tree would be made for us alone; the parser is not for what
    // nests deep, or is a part of an object.
    if !essence.is_partial()
        && let Ok(parsed) = json::parse(py, essence.text().as_bytes())
    {
        return Ok(Some(parsed));
    }
    json::to_python(py, essence.value()).map(Some)
}

fn diff_list<'py>(py: Python<'py>, diff: &Diff) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for item in diff {
        let path = PyTuple::new(py, item.field.keys())?;
        let side = |value: &Option<serde_json::Value>| {
            value.as_ref().map(|value| json::to_python(py, value)).transpose()
        };
        list.append((item.operation.as_str(), path, side(&item.old)?, side(&item.new)?))?;
    }
    Ok(list)
}
