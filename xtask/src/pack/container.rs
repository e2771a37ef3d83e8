//! The file format of packs: named chunks, each compressed separately.
//!
//! Layout: length of the index (u32, little endian), the index as JSON
//! (`{"name": [offset, compressed length, length]}`, offsets from the end of the index), then the
//! zstd frames. Its reader is `schema::pack` of the embedded server.

use serde_json::{Map, Value, json};

/// Packing happens rarely, so the best compression is affordable.
const COMPRESSION_LEVEL: i32 = 22;

/// Packs named JSON chunks.
pub(super) fn pack(chunks: &[(String, Value)]) -> anyhow::Result<Vec<u8>> {
    let mut index = Map::new();
    let mut frames = Vec::new();
    for (name, content) in chunks {
        let text = serde_json::to_vec(content)?;
        let frame = zstd::bulk::compress(&text, COMPRESSION_LEVEL)?;
        index.insert(name.clone(), json!([frames.len(), frame.len(), text.len()]));
        frames.extend_from_slice(&frame);
    }
    let index = serde_json::to_vec(&index)?;
    let mut packed = u32::try_from(index.len())?.to_le_bytes().to_vec();
    packed.extend_from_slice(&index);
    packed.extend_from_slice(&frames);
    Ok(packed)
}
