//! Deliberate errors of the translation, which tests must notice (`tests/mutations.rs`).

/// An error. Only builds with the feature `mutations` can switch one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "mutations"), allow(dead_code, reason = "named by rules, never on"))]
#[cfg_attr(not(feature = "mutations"), allow(unreachable_pub, reason = "public where it can be switched on"))]
pub enum Mutation {
    /// What loops and branches set is taken to be what it was.
    NothingForgotten,
    /// What a block computes is taken to be known behind it.
    BlocksStayOpen,
    /// A check is dropped after any other one.
    ChecksAreAlike,
    /// A choice by the contrary of a condition chooses what the condition would.
    ContraryNotExchanged,
    /// A register that is set again is dropped although a block reads it before.
    ReadInsideUnseen,
    /// A copy is joined with what makes it although its register is used between.
    CopiesJoinedAcrossUses,
    /// A copy is joined with what makes it although something else reads that.
    CopiesOfManyReaders,
    /// Lanes stay in memory although it is written before they are read.
    StaysAcrossStores,
    /// A check of those lanes that a mask means looks at all of them.
    ChecksAllLanes,
    /// Lanes count from zero, not from a scalar.
    CountsFromZero,
    /// A comparison with lanes that count is true one lane further on.
    CountedOneFurther,
    /// Accesses to memory take no notice of their mask.
    MaskIgnored,
    /// Lanes of memory with a stride are taken to be neighbours.
    StrideIgnored,
    /// Lanes are stored where they should be added.
    StoredNotAdded,
    /// Whether a truth value holds in one lane is answered for all of them, and the other way round.
    AnyIsAll,
    /// Lanes that a mask leaves out are taken together too.
    FoldsAllLanes,
    /// Lanes that are not active count as anything where they are taken together.
    NeutralIsAnything,
    /// Another lane is read than the one that is asked for.
    FirstLane,
    /// Two operations are one although something else reads the first result.
    PairsOfManyReaders,
    /// `c - t` is `t - c`.
    PairsExchanged,
    /// The same on scalars.
    ScalarPairsExchanged,
    /// The second argument of a kernel is taken to be a scalar.
    FirstLaneForAll,
    /// What comes before a jump's target is joined with what follows.
    JoinedAcrossTargets,
    /// A jump that is taken unless `a < b` is taken unless `a <= b`.
    JumpsAtEqual,
    /// A choice by a comparison takes the other value.
    ChoicesExchanged,
    /// `x != y` is `x == y`.
    EqualIsUnequal,
    /// Elements with a sign are loaded as if they had none.
    SignLost,
    /// The negative of zero is zero.
    NegativeZeroLost,
    /// What a loop reads is not kept for its next iteration.
    LoopsRunOnce,
    /// A slot that is taken a second time is taken to be free still.
    SlotsStayFree,
}

#[cfg(feature = "mutations")]
impl Mutation {
    /// All of them.
    pub const ALL: &'static [Mutation] = &[
        Mutation::NothingForgotten,
        Mutation::BlocksStayOpen,
        Mutation::ChecksAreAlike,
        Mutation::ContraryNotExchanged,
        Mutation::ReadInsideUnseen,
        Mutation::CopiesJoinedAcrossUses,
        Mutation::CopiesOfManyReaders,
        Mutation::StaysAcrossStores,
        Mutation::ChecksAllLanes,
        Mutation::CountsFromZero,
        Mutation::CountedOneFurther,
        Mutation::MaskIgnored,
        Mutation::StrideIgnored,
        Mutation::StoredNotAdded,
        Mutation::AnyIsAll,
        Mutation::FoldsAllLanes,
        Mutation::NeutralIsAnything,
        Mutation::FirstLane,
        Mutation::PairsOfManyReaders,
        Mutation::PairsExchanged,
        Mutation::ScalarPairsExchanged,
        Mutation::FirstLaneForAll,
        Mutation::JoinedAcrossTargets,
        Mutation::JumpsAtEqual,
        Mutation::ChoicesExchanged,
        Mutation::EqualIsUnequal,
        Mutation::SignLost,
        Mutation::NegativeZeroLost,
        Mutation::LoopsRunOnce,
        Mutation::SlotsStayFree,
    ];
}
