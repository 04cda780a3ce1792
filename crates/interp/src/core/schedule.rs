//! Simulated parallel schedules: a small generator of random numbers (SplitMix64) and what is drawn from it.

/// A source of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Schedule(u64);

impl Schedule {
    pub(crate) fn new(seed: u64) -> Schedule {
        Schedule(seed)
    }
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// A number below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    /// The numbers below `n` in random order.
    pub(crate) fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
    /// Ends of consecutive blocks that cover `0 .. n`.
    pub(crate) fn blocks(&mut self, n: usize) -> Vec<usize> {
        let mut ends = Vec::new();
        let mut at = 0;
        while at < n {
            at = n.min(at + 1 + self.below(1 + n / 2));
            ends.push(at);
        }
        ends
    }
}
