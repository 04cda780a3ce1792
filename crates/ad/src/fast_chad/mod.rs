//! Fast CHAD: the production reverse mode, core to core.
//!
//! Source: T. Smeding, PhD thesis, chapter 7 (sections 7.2 to 7.5, figures 7.5 to 7.9);
//!   rules for array operations also from Schenck et al., SC 2022, and Schenck et al., IFL 2023.
//! Judgement: `D[Γ ⊢ e : t] = let D0 in ⟨D1, λy_bar. D2⟩`; D0 the forward statements, D1 the primal results, D2 the
//!   reverse statements, which read the save list D0S and the cotangents of the results.
//! Types: the cotangent of a value of type `t` is represented by the atoms of a descriptor `s ≤ T(t)` (see `desc`):
//!   `A` absent, `R` float, `P` product, `C` sum, `T` array, `S` option, `H` multi-hot array; a recursive sum is one value.
//! Notation: Γ_M is `Env::cts` (cotangents as values), Γ_A is `Env::accs` (open accumulators), `x_bar` a cotangent,
//!   `acc` an accumulator, `primal` a forward value, `generatePlus` is `desc::sum` with `cotangent::plus`, `+=` is `contribute`.
//! Rules: (in the order of `Exp`; `y_bar` is the cotangent of what the statement binds; nothing happens if it is absent)
//!   atom: x_bar += y_bar · prim: xᵢ_bar += ∂ᵢ · y_bar · tuple, proj: componentwise · inject: the payload ·
//!   match, if: arm by arm, contributions joined · loop: backwards over the stacked values ·
//!   call: inlined, or a pair of functions with a recursive tape between them (`calls`) ·
//!   index: one hot entry · slice: into a part · update: read and set to zero · gather: a histogram of sums ·
//!   replicate: the sum · rearrange, reshape, reverse, rotate: their inverses · concat: slices ·
//!   map: with_acc (map D2) over inputs, saved values and cotangents, or a rerun of the elements hit ·
//!   reduce: replicate for +, quotients for *, one hot entry for a choice (min, argmax ..), by columns for elementwise
//!     operators, two scans for closed smooth operators of steady cost, else the prefixes replayed ·
//!   scan: a scan backwards for +, to the chosen for a choice, by columns for elementwise operators, else a scan of the
//!     Jacobians of steps or of lifted elements and a map of steps, or a loop backwards ·
//!   hist: by the operator, see `hist` · scatter: gather for the winners ·
//!   with_acc, acc_view, acc_add: read the cotangent of the final value · plus: to both · custom: the user's rule ·
//!   marked: rerun or store · stop_gradient, assert: nothing · par: as its statements.
//! Differences from the paper: 1. Input in ANF: the save list is the free variables of D2 after dead-code elimination
//!   that D0 binds, not a construction by cases. 2. Accumulators are opened at maps and loops only, for free variables
//!   that hold arrays or sums; everything else is merged with known sparsity. 3. Multi-hot arrays, so that indexing makes no
//!   dense zero in straight-line code. 4. Branches join contributions by padding; no scope opens there. 5. An open
//!   accumulator is inherited by inner bodies, and views of it stand for aliases. 6. Activity analysis. 7. Fork-join is
//!   sequential in the derivative. 8. Loops may bound their memory by checkpoints (`checkpoint`, `revolve`).
//!   9. Of what the reverse code of a body reads, the body stores what a minimum cut says; the rest is computed again in
//!   the reverse code (`cut`), and arrays that last are read again (`lasting`). Whole arrays of a body around a branch pass
//!   through the branch, so that they are stored only where an arm needs them.
//!   10. Loops, branches and functions that hand on names of arrays hand on where these lie (`locate`), so that only whoever made an
//!   array has a cotangent for it; what stands for another array adds to that one's accumulator (`chosen`).
//! Guarantee: work(vjp f) ≤ c · work(f) + c' · |xs|, c independent of sizes (tested in `tests/fast_chad_growth.rs` and by the search of
//!   `testkit::growth`), but for histograms whose operator is none of the known ones: they sort their elements by the binary digits of the bins,
//!   so their share of the work is multiplied by the logarithm of the number of bins (`by_bin`).
//! Not supported: vjp jvp (expanded before).

mod accumulators;
mod cache_blocking;
mod calls;
mod checkpoint;
mod chosen;
mod config;
mod control;
pub(crate) mod cotangent;
pub(crate) mod cut;
mod dense;
pub(crate) mod desc;
mod effects;
mod facts;
mod gather;
mod hist;
mod joint_reversal;
mod kept;
mod locate;
mod map;
pub(crate) mod operator;
mod reads;
mod recurrence;
mod reduce;
mod reloadable;
pub(crate) mod reverse;
mod revolve;
mod save;
mod scan;
mod scatter;
mod shapes;
mod sort_based_histogram;

pub use config::{Accumulate, Config, ReduceRule, ScanRule, Tape, Variant};
pub use revolve::iterations_run_again;

use crate::contract::{Algorithm, Bound, Mode, Status, Unsupported};
use pullback_core::rename::{Subst, copy_lam};
use pullback_core::{Lam, Program};
use reverse::Results;

/// The entry of the table of algorithms.
pub const ALGORITHM: Algorithm = Algorithm {
    id: "fast_chad",
    title: "Fast CHAD",
    citation: "T. Smeding, PhD thesis, chapter 7",
    mode: Mode::Reverse,
    bound: Bound::Constant,
    status: Status::Default,
    sources: &[
        include_str!("mod.rs"),
        include_str!("reverse.rs"),
        include_str!("shapes.rs"),
        include_str!("control.rs"),
        include_str!("calls.rs"),
        include_str!("joint_reversal.rs"),
        include_str!("checkpoint.rs"),
        include_str!("revolve.rs"),
        include_str!("map.rs"),
        include_str!("recurrence.rs"),
        include_str!("reduce.rs"),
        include_str!("scan.rs"),
        include_str!("gather.rs"),
        include_str!("hist.rs"),
        include_str!("sort_based_histogram.rs"),
        include_str!("scatter.rs"),
        include_str!("accumulators.rs"),
    ],
    transform: vjp,
    derivatives: Some(cotangents),
    many: None,
    sizes: false,
};

/// `\xs -> ys` to `\xs y_bars -> ys x_bars`; see [`crate::contract`].
pub fn vjp(program: &mut Program, lam: &Lam, wanted: &[bool]) -> Result<Lam, Unsupported> {
    vjp_with(program, lam, wanted, &Config::default())
}

/// As [`vjp`], with other choices than the default.
pub fn vjp_with(
    program: &mut Program,
    lam: &Lam,
    wanted: &[bool],
    config: &Config,
) -> Result<Lam, Unsupported> {
    derived(program, lam, wanted, config, Results::All)
}

/// `\xs -> ys` to `\xs y_bars -> x_bars`: what serves only the results of the function is not there.
pub fn cotangents(program: &mut Program, lam: &Lam, wanted: &[bool]) -> Result<Lam, Unsupported> {
    cotangents_with(program, lam, wanted, &Config::default())
}

/// As [`cotangents`], with other choices than the default.
pub fn cotangents_with(
    program: &mut Program,
    lam: &Lam,
    wanted: &[bool],
    config: &Config,
) -> Result<Lam, Unsupported> {
    derived(program, lam, wanted, config, Results::Cotangents)
}

fn derived(
    program: &mut Program,
    lam: &Lam,
    wanted: &[bool],
    config: &Config,
    results: Results,
) -> Result<Lam, Unsupported> {
    let mut lam = copy_lam(program, lam, &Subst::new());
    pullback_core::fused::split(program, &mut lam.body);
    pullback_core::choose::operators_choose(program, &mut lam.body);
    reverse::Reverse::new(program, config.clone()).lambda(lam, wanted, results)
}
