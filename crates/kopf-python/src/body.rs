//! The body of an object for Python: a mapping whose sections become dicts on first access.
//!
//! A section is converted once and then stays the same mutable dict. A live body follows the object
//! of a daemon: it drops its sections when there is a newer state.

use std::ops::Range;

use bytes::Bytes;
use kopf_core::occasion::Live;
use kopf_model::Object;
use parking_lot::Mutex;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use serde_json::value::RawValue;

use crate::json;

/// A read-only mapping over the JSON of an object.
#[pyclass(frozen, mapping, module = "kopf._native")]
pub(crate) struct RawBody {
    live: Option<Live>,
    /// Used by the thread that has the interpreter only; the lock is only for the compiler.
    sections: Mutex<Sections>,
}

struct Sections {
    raw: Bytes,
    entries: Vec<Section>,
}

struct Section {
    key: String,
    place: Range<usize>,
    value: Option<Py<PyAny>>,
}

impl Sections {
    fn of(object: &Object) -> Self {
        let raw = object.raw().clone();
        let entries = {
            let start = raw.as_ptr() as usize;
            let parsed: Result<indexmap::IndexMap<String, &RawValue>, _> =
                serde_json::from_slice(&raw);
            let section = |(key, value): (String, &RawValue)| {
                let from = value.get().as_ptr() as usize - start;
                Section { key, place: from..from + value.get().len(), value: None }
            };
            parsed.unwrap_or_default().into_iter().map(section).collect()
        };
        Self { raw, entries }
    }
}

impl RawBody {
    /// The body of one state.
    pub(crate) fn fixed(object: &Object) -> Self {
        Self { live: None, sections: Mutex::new(Sections::of(object)) }
    }

    /// The body of the newest state, always.
    pub(crate) fn live(live: Live) -> Self {
        let sections = Sections::of(&live.get());
        Self { live: Some(live), sections: Mutex::new(sections) }
    }

    fn refresh(&self) {
        let Some(live) = &self.live else { return };
        let newest = live.get();
        let mut sections = self.sections.lock();
        if newest.raw().as_ptr() != sections.raw.as_ptr() {
            let former = std::mem::replace(&mut *sections, Sections::of(&newest));
            drop(sections);
            drop(former);
        }
    }

    fn find<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.refresh();
        let (raw, place) = {
            let sections = self.sections.lock();
            let Some(section) = sections.entries.iter().find(|section| section.key == key) else {
                return Ok(None);
            };
            if let Some(value) = &section.value {
                return Ok(Some(value.bind(py).clone()));
            }
            (sections.raw.clone(), section.place.clone())
        };
        let value = json::parse(py, &raw[place])?;
        let mut sections = self.sections.lock();
        if raw.as_ptr() == sections.raw.as_ptr()
            && let Some(section) = sections.entries.iter_mut().find(|section| section.key == key)
        {
            section.value = Some(value.clone().unbind());
        }
        Ok(Some(value))
    }

    fn names(&self) -> Vec<String> {
        self.refresh();
        self.sections.lock().entries.iter().map(|section| section.key.clone()).collect()
    }
}

#[pymethods]
impl RawBody {
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let found = match key.cast::<PyString>() {
            Ok(text) => self.find(py, &text.to_cow()?)?,
            Err(_) => None,
        };
        found.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }

    #[pyo3(signature = (key, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.find(py, key)?.or(default))
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(text) = key.cast::<PyString>() else { return Ok(false) };
        let text = text.to_cow()?;
        self.refresh();
        Ok(self.sections.lock().entries.iter().any(|section| section.key == *text))
    }

    fn __len__(&self) -> usize {
        self.refresh();
        self.sections.lock().entries.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys(py)?.try_iter()?.into_any())
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.names())
    }

    fn values<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.to_dict(py)?.values().try_iter()?.collect()
    }

    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.to_dict(py)?.items().try_iter()?.collect()
    }

    /// A dict with all sections.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for key in self.names() {
            if let Some(value) = self.find(py, &key)? {
                dict.set_item(key, value)?;
            }
        }
        Ok(dict)
    }

    fn __eq__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<bool> {
        let other = match other.cast::<Self>() {
            Ok(other) => other.get().to_dict(py)?.into_any(),
            Err(_) => other.clone(),
        };
        self.to_dict(py)?.eq(other)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.to_dict(py)?.repr()?.to_string())
    }

    fn __copy__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.to_dict(py)
    }

    fn __deepcopy__<'py>(
        &self,
        py: Python<'py>,
        memo: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        py.import("copy")?.call_method1("deepcopy", (self.to_dict(py)?, memo))
    }

    /// Other processes get a plain dict.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let dict = py.get_type::<PyDict>();
        let arguments = PyTuple::new(py, [self.to_dict(py)?])?;
        PyTuple::new(py, [dict.into_any(), arguments.into_any()])
    }
}
