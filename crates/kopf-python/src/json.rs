//! JSON to Python objects and back.

use std::fmt;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyNone, PyString, PyTuple};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// How deep values from Python may nest.
const DEPTH_MAX: usize = 256;

/// Keys up to this length are shared by all dicts that have them.
const INTERNED_MAX: usize = 40;

/// A JSON text as a Python object.
pub(crate) fn parse<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    Seed(py)
        .deserialize(&mut deserializer)
        .map_err(|error| PyValueError::new_err(format!("the object is not valid JSON: {error}")))
}

/// A JSON value as a Python object.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Number(number) => number_to_python(py, number),
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_python(py, item)?)?;
            }
            list.into_any()
        }
        Value::Object(map) => map_to_python(py, map)?.into_any(),
    })
}

/// A JSON map as a Python dict.
pub(crate) fn map_to_python<'py>(
    py: Python<'py>,
    map: &Map<String, Value>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in map {
        dict.set_item(key_to_python(py, key), to_python(py, value)?)?;
    }
    Ok(dict)
}

fn key_to_python<'py>(py: Python<'py>, key: &str) -> Bound<'py, PyString> {
    if key.len() <= INTERNED_MAX { PyString::intern(py, key) } else { PyString::new(py, key) }
}

fn number_to_python<'py>(py: Python<'py>, number: &Number) -> Bound<'py, PyAny> {
    if let Some(number) = number.as_i64() {
        PyInt::new(py, number).into_any()
    } else if let Some(number) = number.as_u64() {
        PyInt::new(py, number).into_any()
    } else {
        PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any()
    }
}

/// A Python object as JSON; fails for what JSON cannot express.
pub(crate) fn to_value(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    convert(object, 0)
}

fn convert(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > DEPTH_MAX {
        return Err(PyValueError::new_err("the value nests too deep, or contains itself"));
    }
    if object.is_instance_of::<PyNone>() {
        return Ok(Value::Null);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::String(text.to_cow()?.into_owned()));
    }
    // Before integers: True is one of them.
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        if let Ok(number) = object.extract::<i64>() {
            return Ok(number.into());
        }
        if let Ok(number) = object.extract::<u64>() {
            return Ok(number.into());
        }
        return float(object.extract::<f64>()?);
    }
    if object.is_instance_of::<PyFloat>() {
        return float(object.extract::<f64>()?);
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        let mut map = Map::with_capacity(dict.len());
        for (key, value) in dict.iter() {
            map.insert(key_text(&key)?, convert(&value, depth + 1)?);
        }
        return Ok(Value::Object(map));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let items = object.try_iter()?.map(|item| convert(&item?, depth + 1));
        return Ok(Value::Array(items.collect::<PyResult<_>>()?));
    }
    if let Ok(mapping) = object.cast::<PyMapping>() {
        let mut map = Map::new();
        for item in mapping.items()?.iter() {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            map.insert(key_text(&key)?, convert(&value, depth + 1)?);
        }
        return Ok(Value::Object(map));
    }
    let kind = object.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!("Object of type {kind} is not JSON serializable")))
}

/// As `json.dumps` writes keys.
fn key_text(key: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = key.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned());
    }
    match convert(key, DEPTH_MAX)? {
        Value::Null => Ok("null".to_owned()),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        _ => {
            let kind = key.get_type().name()?.to_string();
            let text = format!("keys must be str, int, float, bool or None, not {kind}");
            Err(PyTypeError::new_err(text))
        }
    }
}

/// Fails for what is not a number: null instead would remove a field from the object.
fn float(number: f64) -> PyResult<Value> {
    let number = Number::from_f64(number).map(Value::Number);
    number.ok_or_else(|| PyValueError::new_err("nan and infinity cannot be expressed in JSON"))
}

/// Makes Python objects while JSON is read, without a tree in between.
struct Seed<'py>(Python<'py>);

impl<'de, 'py> DeserializeSeed<'de> for Seed<'py> {
    type Value = Bound<'py, PyAny>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, 'py> Visitor<'de> for Seed<'py> {
    type Value = Bound<'py, PyAny>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.0.None().into_bound(self.0))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(PyBool::new(self.0, value).to_owned().into_any())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(PyInt::new(self.0, value).into_any())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(PyInt::new(self.0, value).into_any())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(PyFloat::new(self.0, value).into_any())
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(PyString::new(self.0, value).into_any())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let list = PyList::empty(self.0);
        while let Some(item) = access.next_element_seed(Seed(self.0))? {
            list.append(item).map_err(A::Error::custom)?;
        }
        Ok(list.into_any())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let dict = PyDict::new(self.0);
        while let Some(key) = access.next_key_seed(KeySeed(self.0))? {
            let value = access.next_value_seed(Seed(self.0))?;
            dict.set_item(key, value).map_err(A::Error::custom)?;
        }
        Ok(dict.into_any())
    }
}

struct KeySeed<'py>(Python<'py>);

impl<'de, 'py> DeserializeSeed<'de> for KeySeed<'py> {
    type Value = Bound<'py, PyString>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'py> Visitor<'_> for KeySeed<'py> {
    type Value = Bound<'py, PyString>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(key_to_python(self.0, value))
    }
}
