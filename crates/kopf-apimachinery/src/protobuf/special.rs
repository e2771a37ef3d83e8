//! Messages whose JSON is not an object of their fields.

use serde_json::Value;

use super::wire::{self, Reader, Wire};

/// The JSON of a special message; `None` for ordinary messages.
pub(super) fn decode(name: &str, bytes: &[u8], depth: usize) -> Result<Option<Value>, String> {
    let value = match name {
        "io.k8s.apimachinery.pkg.apis.meta.v1.Time" => time(bytes, 0)?,
        "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime" => time(bytes, 6)?,
        "io.k8s.apimachinery.pkg.apis.meta.v1.Duration" => {
            duration(number(bytes, 1)?.unwrap_or_default()).into()
        }
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => {
            let text = bytes_of(bytes, 1)?.map(wire::text).transpose()?;
            text.filter(|text| !text.is_empty()).unwrap_or_else(|| "0".to_owned()).into()
        }
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => int_or_string(bytes)?,
        "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"
        | "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"
        | "io.k8s.apimachinery.pkg.runtime.RawExtension" => raw(bytes, depth)?,
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool" => {
            match bytes_of(bytes, 2)? {
                Some(schema) => schema_props(schema, depth)?,
                None => (number(bytes, 1)?.unwrap_or_default() != 0).into(),
            }
        }
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray" => {
            match bytes_of(bytes, 1)? {
                Some(schema) => schema_props(schema, depth)?,
                None => list(bytes, |schema| schema_props(schema, depth))?,
            }
        }
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray" => {
            match bytes_of(bytes, 1)? {
                Some(schema) => schema_props(schema, depth)?,
                None => list(bytes, |text| wire::text(text).map(Value::from))?,
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(value))
}

/// A message that wraps a list of strings.
pub(super) fn text_list(bytes: &[u8]) -> Result<Value, String> {
    let mut items = Vec::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.next()? {
        if let (1, Wire::Bytes(text)) = (number, value) {
            items.push(Value::from(wire::text(text)?));
        }
    }
    Ok(Value::Array(items))
}

fn list(bytes: &[u8], decode: impl Fn(&[u8]) -> Result<Value, String>) -> Result<Value, String> {
    let mut items = Vec::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.next()? {
        if let (2, Wire::Bytes(item)) = (number, value) {
            items.push(decode(item)?);
        }
    }
    Ok(Value::Array(items))
}

fn schema_props(bytes: &[u8], depth: usize) -> Result<Value, String> {
    let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    super::message(name, bytes, depth + 1)
}

fn number(bytes: &[u8], wanted: u32) -> Result<Option<i64>, String> {
    let mut found = None;
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.next()? {
        if let (true, Wire::Varint(value)) = (number == wanted, value) {
            found = Some(value.cast_signed());
        }
    }
    Ok(found)
}

fn bytes_of(bytes: &[u8], wanted: u32) -> Result<Option<&[u8]>, String> {
    let mut found = None;
    let mut reader = Reader::new(bytes);
    while let Some((number, value)) = reader.next()? {
        if let (true, Wire::Bytes(value)) = (number == wanted, value) {
            found = Some(value);
        }
    }
    Ok(found)
}

/// Null is the zero time, which means absent.
fn time(bytes: &[u8], digits: u8) -> Result<Value, String> {
    let seconds = number(bytes, 1)?.unwrap_or_default();
    let nanoseconds = number(bytes, 2)?.unwrap_or_default();
    if seconds == 0 && nanoseconds == 0 {
        return Ok(Value::Null);
    }
    let nanoseconds = i32::try_from(nanoseconds).unwrap_or_default().clamp(0, 999_999_999);
    let Ok(timestamp) = jiff::Timestamp::new(seconds, nanoseconds) else {
        return Err("proto: a time is out of range".to_owned());
    };
    Ok(Value::from(match digits {
        0 => timestamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        _ => timestamp.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
    }))
}

fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let is_text = number(bytes, 1)? == Some(1);
    if is_text {
        let text = bytes_of(bytes, 3)?.map(wire::text).transpose()?;
        return Ok(text.unwrap_or_default().into());
    }
    Ok(number(bytes, 2)?.unwrap_or_default().into())
}

/// JSON inside protobuf, or a whole object in its own envelope.
fn raw(bytes: &[u8], depth: usize) -> Result<Value, String> {
    let Some(raw) = bytes_of(bytes, 1)?.filter(|raw| !raw.is_empty()) else {
        return Ok(Value::Null);
    };
    if raw.starts_with(super::MAGIC) {
        return super::decode_nested(raw, depth + 1);
    }
    serde_json::from_slice(raw).map_err(|error| format!("embedded JSON: {error}"))
}

/// Go's `time.Duration.String`: `1h0m0s`, `1.5s`, `300ms`.
fn duration(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let total = nanoseconds.unsigned_abs();
    if total == 0 {
        return "0s".to_owned();
    }
    if total < 1_000_000_000 {
        let (unit, scale) = match total {
            1_000_000.. => ("ms", 1_000_000),
            1_000.. => ("µs", 1_000),
            _ => ("ns", 1),
        };
        return format!("{sign}{}{unit}", fraction(total, scale));
    }
    let (minutes, rest) = (total / 60_000_000_000, total % 60_000_000_000);
    let seconds = fraction(rest, 1_000_000_000);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

fn fraction(value: u64, scale: u64) -> String {
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return whole.to_string();
    }
    let digits = scale.ilog10() as usize;
    let rest = format!("{rest:0digits$}");
    format!("{whole}.{}", rest.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_print_as_in_go() {
        let table = [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (300_000_000, "300ms"),
            (1_500_000_000, "1.5s"),
            (90_000_000_000, "1m30s"),
            (3_600_000_000_000, "1h0m0s"),
            (-2_000_000_000, "-2s"),
        ];
        for (nanoseconds, expected) in table {
            assert_eq!(duration(nanoseconds), expected);
        }
    }
}
