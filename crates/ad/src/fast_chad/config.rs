//! Choices of the algorithm, for tests and comparisons.

/// The default of [`Config::max_inlined`]: more than any helper function has, and little beside a large program.
const MAX_INLINED: usize = 4_000;

/// The default of [`Config::kept_calls`]: the tape of so many calls stays in a cache of the second level.
const KEPT_CALLS: i64 = 1_024;

/// How the transformation is run. The default is the production algorithm.
#[derive(Clone, Debug)]
pub struct Config {
    /// The rule for indexing.
    pub variant: Variant,
    /// Whether a map whose results have finitely many hot cotangents is run again for those elements only.
    pub sparse_map: bool,
    /// Whether names that stand for part of an accumulated variable get views of its accumulator.
    pub views: bool,
    /// Whether loops and branches that hand on names of arrays hand on where those lie.
    pub locations: bool,
    /// Which free variables of maps and loops get accumulators.
    pub accumulate: Accumulate,
    /// The rule for reductions with an operator that is nothing special.
    pub reduce: ReduceRule,
    /// The rule for scans with an operator that is nothing special.
    pub scan: ScanRule,
    /// At most so many statements come from inlined functions; further calls become pairs of functions.
    pub max_inlined: usize,
    /// What bodies store for their reverse code.
    pub tape: Tape,
    /// Recursive calls that made at most so many calls may be run again instead of keeping their tapes; negative: all
    /// tapes are kept.
    pub kept_calls: i64,
    /// Whether calls that give what is only weighted and added are reversed where they run, where tapes may be given up.
    pub at_once: bool,
    /// Whether long loops over cheap arrays keep blocks of their tapes only, where whole ones would leave the caches.
    pub near: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            variant: Variant::Production,
            sparse_map: true,
            views: true,
            locations: true,
            accumulate: Accumulate::ArraysAndSums,
            reduce: ReduceRule::Chosen,
            scan: ScanRule::Chosen,
            max_inlined: MAX_INLINED,
            tape: Tape::Cut,
            kept_calls: KEPT_CALLS,
            at_once: true,
            near: true,
        }
    }
}

/// The rule for `y = a[i]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// One hot entry: constant cost.
    Production,
    /// Didactic: a dense array of zeros with one element set. Right, and too expensive; the growth tests must say so.
    OneHot,
}

/// Which free variables of maps and loops get accumulators; the others are returned as values and summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accumulate {
    /// Those that hold arrays or sums.
    ArraysAndSums,
    /// All, scalars too. For comparisons: the same derivatives.
    Everything,
}

/// The rule for `reduce` with an operator that is neither addition nor product nor choice, nor elementwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceRule {
    /// Two scans where that is right and costs no more than a constant factor, else by prefixes.
    Chosen,
    /// Two scans for every operator without active free variables, whatever they cost.
    TwoScans,
    /// The partial results from the left are stored and replayed: as a scan where that is reversed in parallel, else as
    /// a loop.
    Prefixes,
    /// The partial results of about √n blocks are stored and replayed. For parallel machines: the brackets are not those
    /// of the interpreter, so the last bits of the result may be others.
    Blocks,
}

/// The rule for `scan` with an operator that is neither addition nor choice, nor elementwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanRule {
    /// Jacobians where they are small, else lifted where that is right and costs no more than a constant factor, else
    /// backward.
    Chosen,
    /// A scan of affine maps made of the Jacobians of the steps: any operator on scalars. Depth: logarithmic.
    Jacobians,
    /// A scan of triples of prefix, element and cotangent: operators that are smooth and of steady cost. Depth:
    /// logarithmic.
    Lifted,
    /// A loop forwards and a loop backwards: every operator, with the least work. Depth: linear.
    Backward,
}

/// What the body of a loop, map or branch stores, where no attribute says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tape {
    /// Every value that its reverse code reads.
    Store,
    /// As little as possible: all statements without effects run again, whatever that costs.
    Recompute,
    /// What is cheapest, by a minimum cut; never more than a constant factor of work. The default.
    Cut,
    /// One of the three for each body, drawn from the seed.
    Random(u64),
}
