//! The source of random decisions: SplitMix64, or a byte string (for fuzzers), behind one interface.
//!
//! Guarantees: equal seeds give equal decisions on every machine; an exhausted byte string decides for the first
//! alternative everywhere, which ends every recursion of the generator.

/// A stream of random decisions.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
    bytes: Option<Vec<u8>>,
    position: usize,
}

impl Rng {
    /// Decisions from a seed (SplitMix64, Steele, Lea and Flood 2014).
    pub fn new(seed: u64) -> Rng {
        Rng {
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03,
            bytes: None,
            position: 0,
        }
    }
    /// Decisions read from bytes, eight per decision.
    pub fn from_bytes(bytes: Vec<u8>) -> Rng {
        Rng { state: 0, bytes: Some(bytes), position: 0 }
    }
    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        if let Some(bytes) = &self.bytes {
            let mut word = 0u64;
            for k in 0..8 {
                word |= u64::from(bytes.get(self.position + k).copied().unwrap_or(0)) << (8 * k);
            }
            self.position += 8;
            return word;
        }
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.next_u64() % n as u64) as usize }
    }
    /// A number from `low` to `high`, both included.
    pub fn range(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }
    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
    /// A number in `[-1, 1)`.
    pub fn signed(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
    }
    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        // `1 - unit` so that an exhausted byte string (unit = 0) says no.
        1.0 - self.unit() <= probability
    }
    /// One of the positions of `weights`, each with a probability in proportion to its weight.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let total: f64 = weights.iter().sum();
        let mut left = self.unit() * total;
        for (k, w) in weights.iter().enumerate() {
            if left < *w {
                return k;
            }
            left -= w;
        }
        0
    }
    /// One of the items; panics if there is none.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
