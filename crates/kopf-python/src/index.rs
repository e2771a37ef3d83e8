//! Indexes for Python: keys are numbers that Python gives to its own keys, values are its objects.

use std::any::Any;
use std::sync::Arc;

use kopf_core::invoke::IndexView;
use pyo3::prelude::*;
use serde_json::Value;

/// A value of an index.
pub(crate) struct PythonValue(pub(crate) Py<PyAny>);

/// One index as Python reads it.
#[pyclass(frozen, module = "kopf._native")]
pub(crate) struct NativeIndex(pub(crate) Arc<dyn IndexView>);

#[pymethods]
impl NativeIndex {
    /// The values under a key, in the order of their coming.
    fn get<'py>(&self, py: Python<'py>, key: u64) -> Vec<Bound<'py, PyAny>> {
        let value = |value: Arc<dyn Any + Send + Sync>| {
            let value = value.downcast::<PythonValue>().ok()?;
            Some(value.0.bind(py).clone())
        };
        self.0.get(&Value::from(key)).into_iter().filter_map(value).collect()
    }

    /// The numbers of all keys.
    fn keys(&self) -> Vec<u64> {
        let mut keys: Vec<u64> = self.0.keys().iter().filter_map(Value::as_u64).collect();
        keys.sort_unstable();
        keys
    }
}
