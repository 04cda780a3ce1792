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
    /// A deliberate error.
    #[cfg(feature = "mutations")]
    pub mutation: Option<Mutation>,
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
            #[cfg(feature = "mutations")]
            mutation: None,
        }
    }
}

impl Config {
    #[cfg(feature = "mutations")]
    pub(crate) fn is(&self, m: Mutation) -> bool {
        self.mutation == Some(m)
    }
    #[cfg(not(feature = "mutations"))]
    pub(crate) fn is(&self, _: Mutation) -> bool {
        false
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

/// Deliberate errors that tests must find. Only builds with the feature `mutations` can switch them on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "mutations"), allow(dead_code, reason = "named by rules, never on"))]
pub enum Mutation {
    /// `x - y` adds its cotangent to that of `y`.
    SignOfSubtraction,
    /// The partials of binary primitives are exchanged.
    SwappedPartials,
    /// Of two contributions of different form the second is lost.
    ContributionLost,
    /// Loops are reversed first iteration first.
    LoopOrder,
    /// The state of a reversed loop starts at zero.
    LoopSeedLost,
    /// Free scalars of a loop get nothing.
    LoopFreeSumLost,
    /// Free scalars of a map get nothing.
    MapFreeSumLost,
    /// An accumulator starts at zero although there was a contribution before.
    InitialValueLost,
    /// `with` keeps the cotangent of the overwritten element.
    OverwrittenKept,
    /// `scatter` keeps the cotangents of overwritten elements.
    ScatterKept,
    /// Every value written by `scatter` counts as written, also where another one won.
    ScatterLosersCount,
    /// What only the second arm of a branch contributes is lost.
    SecondArmLost,
    /// A `match` gives nothing to the payload.
    PayloadLost,
    /// Reversing an array is forgotten.
    ReverseForgotten,
    /// Rotation in the wrong direction.
    RotateSign,
    /// All parts of a concatenation start at the beginning.
    ConcatOffset,
    /// A replicated value gets the cotangent of the first copy only.
    ReplicateFirstOnly,
    /// A prefix sum is reversed as a prefix sum.
    ScanNotReversed,
    /// The general reduction forgets what stands to the right.
    ReduceRightLost,
    /// The first element always wins a minimum.
    MinimumWinnerFirst,
    /// A sparse map runs element 0 again instead of the one that was hit.
    SparseMapWrongElement,
    /// Every element of a product gets the whole product instead of that of the others.
    ProductOfAll,
    /// Free variables of an operator get nothing.
    ScanFreeLost,
    /// Jacobians of steps are not transposed.
    ScanJacobianNotTransposed,
    /// The lifted scan keeps only a position's own cotangent.
    ScanLiftedSumLost,
    /// In a running choice the element of the same position counts as the chosen one.
    ScanChoiceOfSelf,
    /// Steps are linearised at the next prefix.
    ScanPrefixShifted,
    /// Histogram values get the cotangent of the next bin.
    HistogramOffByOne,
    /// The destination of a minimum keeps the cotangent of a bin that a value won.
    HistogramLoserCounts,
    /// The values of a product get nothing of the destination's factor.
    HistogramFactorLost,
    /// A histogram in general forgets what comes later in the bin.
    HistogramRightLost,
    /// A histogram in general does not sort its values.
    HistogramUnsorted,
    /// An element that is gathered twice counts once.
    GatherOnce,
    /// What the reverse function of a call returns is lost.
    CallResultLost,
    /// Functions do not add to the accumulators that they are given.
    CallAccumulatorLost,
    /// A snapshot is recorded at the position of the one before.
    SnapshotPosition,
    /// The blocks of a strip-mined loop start one iteration too late.
    BlocksShifted,
    /// An element that is read again instead of stored is always the first one.
    RerunReadsFirst,
    /// What iterations stored is read in the order in which it was stored.
    TapeForwards,
    /// Reverse loops count upwards for the statements that they run again.
    CounterForwards,
    /// Of the state of a loop the values after an iteration are stored, not those before.
    StateStoredLate,
    /// The first arm of a branch stores holes.
    BranchTapeLost,
    /// The iteration that a limit runs once more adds to accumulators once more.
    EffectsTwice,
    /// A limit for a tape is not looked at.
    LimitIgnored,
    /// Every iteration of a map has the whole limit.
    LimitNotShared,
}

impl Mutation {
    /// Those that make derivatives wrong.
    pub const ALL: &[Mutation] = &[
        Mutation::SignOfSubtraction,
        Mutation::SwappedPartials,
        Mutation::ContributionLost,
        Mutation::LoopOrder,
        Mutation::LoopSeedLost,
        Mutation::LoopFreeSumLost,
        Mutation::MapFreeSumLost,
        Mutation::InitialValueLost,
        Mutation::OverwrittenKept,
        Mutation::ScatterKept,
        Mutation::ScatterLosersCount,
        Mutation::SecondArmLost,
        Mutation::PayloadLost,
        Mutation::ReverseForgotten,
        Mutation::RotateSign,
        Mutation::ConcatOffset,
        Mutation::ReplicateFirstOnly,
        Mutation::ScanNotReversed,
        Mutation::ReduceRightLost,
        Mutation::MinimumWinnerFirst,
        Mutation::SparseMapWrongElement,
        Mutation::ProductOfAll,
        Mutation::ScanFreeLost,
        Mutation::ScanJacobianNotTransposed,
        Mutation::ScanLiftedSumLost,
        Mutation::ScanChoiceOfSelf,
        Mutation::ScanPrefixShifted,
        Mutation::HistogramOffByOne,
        Mutation::HistogramLoserCounts,
        Mutation::HistogramFactorLost,
        Mutation::HistogramRightLost,
        Mutation::HistogramUnsorted,
        Mutation::GatherOnce,
        Mutation::CallResultLost,
        Mutation::CallAccumulatorLost,
        Mutation::SnapshotPosition,
        Mutation::BlocksShifted,
        Mutation::RerunReadsFirst,
        Mutation::TapeForwards,
        Mutation::CounterForwards,
        Mutation::StateStoredLate,
        Mutation::BranchTapeLost,
        Mutation::EffectsTwice,
    ];

    /// Those that make derivatives use more memory than they may.
    pub const OF_MEMORY: &[Mutation] = &[Mutation::LimitIgnored, Mutation::LimitNotShared];
}
