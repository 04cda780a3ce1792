//! Deliberate errors of the scheduling, which tests must notice (`tests/small.rs`, `tests/joined.rs`, `tests/contractions.rs`, `tests/filled.rs`,
//! `tests/borders.rs`, `tests/blocks.rs`, `tests/loaded.rs`, `tests/sums.rs`). They are on for a thread, and only in builds with
//! the feature `mutations`.

/// An error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "mutations"), allow(unreachable_pub, reason = "public where it can be switched on"))]
pub enum Mutation {
    /// What iterations hand to each other is not handed on when they are written out.
    NothingHandedOn,
    /// The last iteration of a loop that is written out is left out.
    LastIterationLost,
    /// A part of small memory begins where the memory does.
    PartsBeginAtZero,
    /// What is added to an element of small memory replaces it.
    AddedReplaces,
    /// Of small memory that is filled or copied only the first element is.
    FirstElementOnly,
    /// A check before a loop asks only its least number.
    LastNumberUnchecked,
    /// A check before a loop asks the counter without what is added to it.
    CounterNotMoved,
    /// A check before a loop fails although no iteration asks.
    EmptyLoopsFail,
    /// The message of a check before a loop shows its first number.
    FirstNumberShown,
    /// Numbers of a loop that begin again below zero pass the check before it.
    OverflowPasses,
    /// What a block computed is taken to be known behind it.
    BlocksStayOpen,
    /// What one arm of a branch computed is known in the other one.
    ArmsAreAlike,
    /// What is in memory while additions to it are in a register is not looked at.
    TermsAreSeenLate,
    /// Elements at unknown places are never the same.
    PointersNeverMeet,
    /// The first of several additions to a register is lost.
    FirstTermLost,
    /// What has been loaded stays, whatever is written.
    WritesUnseen,
    /// Registers that are set more than once are numbered too.
    SetOnceForAll,
    /// `0 - x` is `x`.
    SubtractsNothing,
    /// A branch or a choice by a constant is the other one.
    OtherArm,
    /// After a check all others have passed.
    ChecksAreAlike,
    /// Loops with other bounds are joined.
    BoundsAreAlike,
    /// Loops are joined although an iteration may not end.
    AllLoopsEnd,
    /// Loops are joined whatever they do to the same memory.
    LoopsNeverMeet,
    /// Rows of all sizes are the same rows.
    RowsAreAlike,
    /// What all iterations add to is read by each of them.
    SumsAreReadEarly,
    /// Every place is in a row of its iteration.
    PlacesAreInRows,
    /// Sizes are not compared.
    SizesUncompared,
    /// What the second loop needs may come after it.
    SecondLoopWaits,
    /// What needs the first loop may come before it.
    NothingIsLate,
    /// Memory of which each iteration makes a row is used after the loop.
    RowsAreReadLater,
    /// A row that an iteration makes is at the place where it was.
    RowsStayApart,
    /// Iterations run together although they share nothing.
    AnythingIsShared,
    /// A row is filled near whatever is loaded meanwhile.
    LoadsUnseen,
    /// A row is filled near whatever else is written to that memory.
    StoresUnseen,
    /// A loop fills a row although it stores a part of it only.
    PartsAreWhole,
    /// A loop in a branch fills a row.
    BranchesAreTaken,
    /// A row that is filled near is not copied to its place.
    FilledStaysNear,
    /// In blocks no stage runs later than another.
    StagesInStep,
    /// In blocks no step runs later than another.
    StepsAtOnce,
    /// What parts of loops leave out is not run.
    SeamsOpen,
    /// A window on memory stays where it is.
    WindowsStay,
    /// Code between loops runs in each part.
    FirstCodeAgain,
    /// What reads the row behind its own is taken to read its own.
    RowsEndEarly,
    /// The middle of a loop begins where the loop does.
    FirstBorderForgotten,
    /// The middle of a loop ends where the loop does.
    LastBorderForgotten,
    /// The iterations at the borders are left out.
    BordersLost,
    /// `<=` is taken for `<`.
    ClosedIsOpen,
    /// A truth value is known although it is set again.
    AnswersStay,
}

#[cfg(feature = "mutations")]
impl Mutation {
    /// Those of code before lanes are chosen.
    pub const SMALL: &'static [Mutation] = &[
        Mutation::NothingHandedOn,
        Mutation::LastIterationLost,
        Mutation::PartsBeginAtZero,
        Mutation::AddedReplaces,
        Mutation::FirstElementOnly,
        Mutation::LastNumberUnchecked,
        Mutation::CounterNotMoved,
        Mutation::EmptyLoopsFail,
        Mutation::FirstNumberShown,
        Mutation::OverflowPasses,
        Mutation::BlocksStayOpen,
        Mutation::ArmsAreAlike,
        Mutation::SetOnceForAll,
        Mutation::SubtractsNothing,
        Mutation::OtherArm,
        Mutation::ChecksAreAlike,
    ];
    /// Those of what is loaded again.
    pub const LOADED: &'static [Mutation] = &[Mutation::WritesUnseen];
    /// Those of sums in registers.
    pub const SUMS: &'static [Mutation] =
        &[Mutation::TermsAreSeenLate, Mutation::PointersNeverMeet, Mutation::FirstTermLost];
    /// Those of loops that are joined.
    pub const JOINED: &'static [Mutation] = &[
        Mutation::BoundsAreAlike,
        Mutation::AllLoopsEnd,
        Mutation::LoopsNeverMeet,
        Mutation::RowsAreAlike,
        Mutation::SumsAreReadEarly,
        Mutation::PlacesAreInRows,
        Mutation::SizesUncompared,
        Mutation::SecondLoopWaits,
        Mutation::NothingIsLate,
        Mutation::RowsAreReadLater,
        Mutation::RowsStayApart,
    ];
    /// Those of rows that are filled near.
    pub const FILLED: &'static [Mutation] = &[
        Mutation::LoadsUnseen,
        Mutation::StoresUnseen,
        Mutation::PartsAreWhole,
        Mutation::BranchesAreTaken,
        Mutation::FilledStaysNear,
    ];
    /// Those of loops in blocks.
    pub const BLOCKS: &'static [Mutation] = &[
        Mutation::StagesInStep,
        Mutation::StepsAtOnce,
        Mutation::SeamsOpen,
        Mutation::WindowsStay,
        Mutation::FirstCodeAgain,
        Mutation::RowsEndEarly,
    ];
    /// Those of loops that are cut at their borders.
    pub const BORDERS: &'static [Mutation] = &[
        Mutation::FirstBorderForgotten,
        Mutation::LastBorderForgotten,
        Mutation::BordersLost,
        Mutation::ClosedIsOpen,
        Mutation::AnswersStay,
    ];

    pub(crate) fn is_on(self) -> bool {
        ON.get() == Some(self)
    }
}

#[cfg(not(feature = "mutations"))]
impl Mutation {
    pub(crate) fn is_on(self) -> bool {
        false
    }
}

#[cfg(feature = "mutations")]
std::thread_local! {
    static ON: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

/// Does something on this thread with an error from here on.
#[cfg(feature = "mutations")]
pub fn switch_on(mutation: Mutation) {
    ON.set(Some(mutation));
}
