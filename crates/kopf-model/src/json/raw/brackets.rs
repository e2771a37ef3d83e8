//! Finds the end of a map or list in JSON bytes, 64 bytes at a time.
//!
//! Most of the received bytes are scanned here. Whether a byte is inside a string follows from the
//! quotes before it, and its depth from the brackets before it. Sets of positions are the bits of
//! an integer, and only the last block of a value is examined bracket by bracket.

use wide::u8x16;

const BLOCK: usize = 64;

/// The length of the map or list that begins with the first byte; `None` if it does not end.
pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    let mut walk = Walk::default();
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    for (index, block) in blocks.iter().enumerate() {
        if let Some(end) = walk.scan_block(block) {
            return Some(index * BLOCK + end + 1);
        }
    }
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    walk.scan_block(&last).map(|end| blocks.len() * BLOCK + end + 1)
}

/// The state before a block.
#[derive(Default)]
struct Walk {
    depth: usize,
    /// All bits are set inside a string.
    in_text: u64,
    /// One if the first byte is escaped.
    escaped: u64,
}

impl Walk {
    /// Scans a block. Returns where the outermost bracket closes.
    fn scan_block(&mut self, block: &[u8; BLOCK]) -> Option<usize> {
        let mut found = Places::of(block);
        found.quotes &= !self.escaped_places(found.backslashes);
        let in_text = with_all_after(found.quotes) ^ self.in_text;
        self.in_text = 0_u64.wrapping_sub(in_text >> (BLOCK - 1));
        found.opening &= !in_text;
        found.closing &= !in_text;
        let closed = count(found.closing);
        if closed < self.depth {
            self.depth = self.depth + count(found.opening) - closed;
            return None;
        }
        let mut brackets = found.opening | found.closing;
        while brackets != 0 {
            let next = brackets & brackets.wrapping_neg();
            if found.opening & next != 0 {
                self.depth += 1;
            } else {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return Some(next.trailing_zeros() as usize);
                }
            }
            brackets ^= next;
        }
        None
    }

    /// The positions after a backslash that is not itself escaped.
    ///
    /// In a run of backslashes, every second one is escaped; a subtraction carries along each run.
    fn escaped_places(&mut self, backslashes: u64) -> u64 {
        const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
        if backslashes == 0 {
            return std::mem::take(&mut self.escaped);
        }
        let escaping = backslashes & !self.escaped;
        let rows = ((escaping << 1) | ODD).wrapping_sub(escaping) ^ ODD;
        let escaped = rows ^ (backslashes | self.escaped);
        self.escaped = (rows & backslashes) >> (BLOCK - 1);
        escaped
    }
}

/// The number of set bits, which are few. Not all processors have an instruction for this.
fn count(mut bits: u64) -> usize {
    let mut count = 0;
    while bits != 0 {
        bits &= bits - 1;
        count += 1;
    }
    count
}

/// Flips all bits from each set bit on: sets those from the first to the second, the third to the
/// fourth and so on.
fn with_all_after(bits: u64) -> u64 {
    let mut all = bits;
    for shift in [1, 2, 4, 8, 16, 32] {
        all ^= all << shift;
    }
    all
}

/// The positions of the relevant bytes; the lowest bit is the first byte.
#[derive(Default)]
struct Places {
    quotes: u64,
    backslashes: u64,
    opening: u64,
    closing: u64,
}

/// The bit in which the two kinds of brackets differ.
const CURLY: u8 = b'{' ^ b'[';

impl Places {
    fn of(block: &[u8; BLOCK]) -> Self {
        let places = |bytes: u8x16, wanted: u8| {
            u64::from(bytes.cmp_eq(u8x16::splat(wanted)).move_mask().cast_unsigned())
        };
        let mut found = Self::default();
        let (parts, _) = block.as_chunks::<16>();
        for (index, part) in parts.iter().enumerate() {
            let bytes = u8x16::new(*part);
            let curly = bytes | u8x16::splat(CURLY);
            let shift = 16 * index;
            found.quotes |= places(bytes, b'"') << shift;
            found.backslashes |= places(bytes, b'\\') << shift;
            found.opening |= places(curly, b'{') << shift;
            found.closing |= places(curly, b'}') << shift;
        }
        found
    }
}
