//! The word that the threads of a pool agree on: counts of threads, whether a launch is open, and which.
//!
//! Assumes at most [`MAX_THREADS`] threads. Guarantees: no count runs into the next one.

/// No pool has more threads, the caller included.
pub const MAX_THREADS: usize = 1024;

/// One more worker inside.
pub(crate) const INSIDE: u64 = 1;
/// One more thread that may take part.
const MEMBER: u64 = 1 << 12;
/// One more worker asleep.
pub(crate) const SLEEPER: u64 = 1 << 24;
/// A count of the gate.
const COUNT: u64 = (1 << 12) - 1;
/// Workers may enter.
pub(crate) const OPEN: u64 = 1 << 36;
/// The caller sleeps until the last worker has left.
pub(crate) const WAITING: u64 = 1 << 37;
/// Workers end.
pub(crate) const SHUT: u64 = 1 << 38;
/// The number of the launch. If it wraps around, a worker may miss a launch, which nobody waits for.
const LAUNCH: u64 = 1 << 40;

/// The word that all threads agree on.
#[derive(Clone, Copy)]
pub(crate) struct Gate(pub(crate) u64);

impl Gate {
    pub(crate) fn is(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
    pub(crate) fn inside(self) -> u64 {
        (self.0 / INSIDE) & COUNT
    }
    pub(crate) fn members(self) -> usize {
        ((self.0 / MEMBER) & COUNT) as usize
    }
    pub(crate) fn sleepers(self) -> u64 {
        (self.0 / SLEEPER) & COUNT
    }
    pub(crate) fn launch(self) -> u64 {
        self.0 / LAUNCH
    }
    /// Whether a thread that was in the launch `seen` has something to do.
    pub(crate) fn calls(self, thread: usize, seen: Option<u64>) -> bool {
        self.is(SHUT) || (self.is(OPEN) && thread < self.members() && Some(self.launch()) != seen)
    }
    /// The gate opened for the next launch.
    pub(crate) fn opened(self, members: usize) -> Gate {
        let kept = self.0 & !(COUNT * MEMBER);
        Gate(kept.wrapping_add(LAUNCH) | OPEN | (members as u64 * MEMBER))
    }
    /// Wakes the threads below this one in the tree of those that take part.
    pub(crate) fn wake_below(self, thread: usize, wake: &impl Fn(usize)) {
        if self.sleepers() > 0 {
            (2 * thread + 1..2 * thread + 3).filter(|t| *t < self.members()).for_each(wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_the_gate_do_not_touch_each_other() {
        let most = MAX_THREADS as u64;
        let gate = Gate(most * INSIDE + most * SLEEPER + (LAUNCH.wrapping_neg())).opened(MAX_THREADS);
        assert_eq!((gate.inside(), gate.members(), gate.sleepers()), (most, MAX_THREADS, most));
        // The number of the launch starts again.
        assert_eq!(gate.launch(), 0);
        assert!(gate.is(OPEN) && !gate.is(WAITING) && !gate.is(SHUT));
        assert_eq!(gate.opened(2).members(), 2);
    }
}
