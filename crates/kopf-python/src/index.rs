//! Indexes for Python: keys are numbers that Python gives to its own keys, values are its objects.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use kopf_core::invoke::{IndexView, Indexes};
use pyo3::prelude::*;
use serde_json::Value;

/// A value of an index.
pub(crate) struct PythonValue(pub(crate) Py<PyAny>);

/// One index as Python reads it; empty until the engine has made it.
#[pyclass(frozen, module = "kopf._native")]
pub(crate) struct NativeIndex {
    indexes: Arc<Indexes>,
    name: String,
    found: OnceLock<Arc<dyn IndexView>>,
}

impl NativeIndex {
    /// The index of this name.
    pub(crate) fn new(indexes: Arc<Indexes>, name: String) -> Self {
        Self { indexes, name, found: OnceLock::new() }
    }

    fn view(&self) -> Option<&Arc<dyn IndexView>> {
        if let Some(view) = self.found.get() {
            return Some(view);
        }
        let view = self.indexes.get(&self.name)?;
        Some(self.found.get_or_init(|| view))
    }
}

#[pymethods]
impl NativeIndex {
    /// How many values are under a key.
    fn count(&self, key: u64) -> usize {
        self.view().map_or(0, |view| view.count(&Value::from(key)))
    }

    /// The values under a key, in the order of their coming.
    fn get<'py>(&self, py: Python<'py>, key: u64) -> Vec<Bound<'py, PyAny>> {
        let value = |value: Arc<dyn Any + Send + Sync>| {
            let value = value.downcast::<PythonValue>().ok()?;
            Some(value.0.bind(py).clone())
        };
        let values = self.view().map(|view| view.get(&Value::from(key)));
        values.unwrap_or_default().into_iter().filter_map(value).collect()
    }

    /// The numbers of all keys.
    fn keys(&self) -> Vec<u64> {
        let keys = self.view().map(|view| view.keys()).unwrap_or_default();
        let mut keys: Vec<u64> = keys.iter().filter_map(Value::as_u64).collect();
        keys.sort_unstable();
        keys
    }
}
