//! The protobuf wire format: tags, varints and lengths.

/// One value on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

/// Reads the fields of one message.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The number and the value of the next field; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Wire<'a>)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| illegal_tag(tag))?;
        if number == 0 {
            return Err(illegal_tag(tag));
        }
        let value = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.take()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| short())?;
                let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(short)?;
                self.rest = rest;
                Wire::Bytes(bytes)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.take()?)),
            other => return Err(format!("proto: illegal wireType {other}")),
        };
        Ok(Some((number, value)))
    }

    pub(super) fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or_else(short)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("proto: integer overflow".to_owned())
    }

    fn take<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], String> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(short)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

/// The text of a string field.
pub(super) fn text(bytes: &[u8]) -> Result<String, String> {
    // Go keeps invalid UTF-8; JSON cannot.
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn short() -> String {
    "unexpected EOF".to_owned()
}

fn illegal_tag(tag: u64) -> String {
    format!("proto: illegal tag {} (wire type {})", tag >> 3, tag & 7)
}
