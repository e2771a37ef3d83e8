//! Finds the end of a map or a list in JSON bytes, 64 of them at a time.
//!
//! Most of the received bytes are scanned here. What is inside of strings follows from the quotes
//! before it, and how deep a place is from the number of brackets before it: sets of places are
//! bits of a number, and only the last block of a value is looked at bracket by bracket.

use wide::u8x16;

const BLOCK: usize = 64;

/// How long the map or list is that begins with the first byte; `None` if it has no end.
pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    let mut walk = Walk::default();
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    for (index, block) in blocks.iter().enumerate() {
        if let Some(end) = walk.go_over(block) {
            return Some(index * BLOCK + end + 1);
        }
    }
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    walk.go_over(&last).map(|end| blocks.len() * BLOCK + end + 1)
}

/// What is known before a block.
#[derive(Default)]
struct Walk {
    depth: usize,
    /// All bits are set inside of a text.
    in_text: u64,
    /// One if the first byte is escaped.
    escaped: u64,
}

impl Walk {
    /// Goes over a block; tells where the outermost bracket closes.
    fn go_over(&mut self, block: &[u8; BLOCK]) -> Option<usize> {
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

    /// The places after a backslash that is not escaped itself.
    ///
    /// Of a row of backslashes, every second one is escaped: a subtraction runs along each row.
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

/// How many bits are set: few. Processors have an instruction for that, but not all of them.
fn count(mut bits: u64) -> usize {
    let mut count = 0;
    while bits != 0 {
        bits &= bits - 1;
        count += 1;
    }
    count
}

/// Flips everything from each of the bits on: between the first and the second, the third and so on.
fn with_all_after(bits: u64) -> u64 {
    let mut all = bits;
    for shift in [1, 2, 4, 8, 16, 32] {
        all ^= all << shift;
    }
    all
}

/// Where the bytes are that matter; the lowest bit is the first byte.
#[derive(Default)]
struct Places {
    quotes: u64,
    backslashes: u64,
    opening: u64,
    closing: u64,
}

/// By this bit, the two kinds of brackets differ.
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
