//! What a derivative costs, in the parts that the theorem is about.

use super::mutants::{Mutation, mutate};
use super::{Case, size};
use pullback_ad::chad::c_accumulating::{Shape, interface, transform};
use pullback_base::RuntimeError;
use pullback_base::index::Index;
use pullback_core::Value;
use pullback_interp::lambda::{Options, run};
use pullback_lambda::{Builder, Exp, FunId, Program, Term, Type, Var};

/// So many steps at most: errors can make functions call themselves without end.
const STEPS: u64 = 1_000_000;

/// The costs and results of a case.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Of the term itself.
    pub cost: i64,
    /// Of evaluating its derivative: the forward pass.
    pub forward: i64,
    /// Of calling the backpropagator.
    pub call: i64,
    /// Of running what it returned, on the cells.
    pub monad: i64,
    /// The value of the derivative.
    pub value: Value,
    /// The final cells, one per parameter.
    pub cells: Vec<Value>,
    /// The cost on the left of the theorem: forward, call and run, less the potentials that come in, more those that come out,
    /// less the number of cells.
    pub amortised: i64,
}

/// The value of a case, and what its derivative costs.
///
/// Errors: those of the program.
///
/// # Panics
/// If CHAD refuses the term or makes an ill-formed one.
pub fn measure(case: &Case, shape: Shape) -> Result<Measured, RuntimeError> {
    measure_with(case, shape, None)
}

/// The same with a deliberate error in what CHAD makes.
///
/// Errors and panics: as for [`measure`].
pub fn measure_with(case: &Case, shape: Shape, error: Option<Mutation>) -> Result<Measured, RuntimeError> {
    let mut program = case.program.clone();
    let new = transform(&mut program, case.f, shape).unwrap_or_else(|e| panic!("{e}"));
    if let Some(error) = error {
        mutate(&mut program, FunId::new(case.program.funs.len()), error);
    }
    let (bars, seed) = interface(&program, case.f).unwrap_or_else(|e| panic!("{e}"));
    let n = case.args.len() as i64;
    let env: Vec<Type> = bars.iter().rev().cloned().collect();
    let forward = helper(&mut program, case.f, "forward", &[], |b, args, _| {
        let pair = b.call(new, args);
        b.let_("r", pair, |b, _| b.unit())
    });
    let call = helper(&mut program, case.f, "call", std::slice::from_ref(&seed), |b, args, extra| {
        let pair = b.call(new, args);
        b.let_("r", pair, |b, r| {
            let called = called(b, r, extra[0]);
            b.let_("m", called, |b, _| b.unit())
        })
    });
    let ran = helper(&mut program, case.f, "ran", &[seed.clone(), Type::tuple(env)], |b, args, extra| {
        let pair = b.call(new, args);
        b.let_("r", pair, |b, r| {
            let computation = called(b, r, extra[0]);
            let cells = b.var(extra[1]);
            b.term(Exp::EvmRun(computation, cells))
        })
    });
    let value = helper(&mut program, case.f, "value", &[], |b, args, _| {
        let pair = b.call(new, args);
        b.proj(pair, 0)
    });
    assert_eq!(
        pullback_lambda::check::check(&program),
        Ok(()),
        "{}",
        pullback_lambda::print::print(&program)
    );
    let run = |f: FunId, more: &[Value]| {
        let args: Vec<Value> = case.args.iter().chain(more).cloned().collect();
        run(&program, f, args, &Options { work_limit: STEPS, ..Options::default() })
    };
    let inside = Value::Tuple(case.cells.iter().rev().cloned().collect());
    let cost = run(case.f, &[])?.counts.work as i64;
    // What the helpers add is written down beside each: `let`, the call and its arguments, the application, the unit value.
    let forward = run(forward, &[])?.counts.work as i64 - (1 + (1 + n) + 1);
    let call =
        run(call, std::slice::from_ref(&case.seed))?.counts.work as i64 - (1 + (1 + n) + forward + 1 + 4 + 1);
    let outcome = run(ran, &[case.seed.clone(), inside])?;
    let monad = outcome.counts.work as i64 - (1 + (1 + n) + forward + (1 + (4 + call) + 1));
    let mut cells = match outcome.result {
        Value::Tuple(parts) => match parts.into_iter().nth(1) {
            Some(Value::Tuple(cells)) => cells,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    cells.reverse();
    let potential = |cells: &[Value]| cells.iter().zip(&bars).map(|(d, t)| size(d, t)).sum::<i64>();
    let amortised =
        forward + call + monad - size(&case.seed, &seed) - potential(&case.cells) + potential(&cells) - n;
    let value = run(value, &[])?.result;
    Ok(Measured { cost, forward, call, monad, value, cells, amortised })
}

/// Steps and final cells of a computation that is made of two backpropagations of a case, with cotangents `seeds` and initial cells; `made` gets the
/// variables of the two computations. The steps are those of the run alone (`1 + |G|` and what the computation does).
///
/// Errors: those of the program.
///
/// # Panics
/// If the computation is ill-formed.
pub fn run_of_two(
    case: &Case,
    seeds: [&Value; 2],
    cells: &[Value],
    made: &dyn Fn(&mut Builder<'_>, Var, Var) -> Term,
) -> Result<(i64, Vec<Value>), RuntimeError> {
    let mut program = case.program.clone();
    let new = transform(&mut program, case.f, Shape::Figure).unwrap_or_else(|e| panic!("{e}"));
    let (bars, seed) = interface(&program, case.f).unwrap_or_else(|e| panic!("{e}"));
    let env: Vec<Type> = bars.iter().rev().cloned().collect();
    let more = [seed.clone(), seed, Type::tuple(env.clone())];
    let mut build = |name: &str, of: &dyn Fn(&mut Builder<'_>, Var, Var) -> Term| {
        helper(&mut program, case.f, name, &more, |b, args, extra| {
            let pair = b.call(new, args);
            b.let_("r", pair, |b, r| {
                let first = called(b, r, extra[0]);
                b.let_("m", first, |b, m| {
                    let second = called(b, r, extra[1]);
                    b.let_("n", second, |b, n| {
                        let (computation, cells) = (of(b, m, n), b.var(extra[2]));
                        let ran = b.term(Exp::EvmRun(computation, cells));
                        b.proj(ran, 1)
                    })
                })
            })
        })
    };
    let pure = build("pure", &|b, _, _| {
        let unit = b.unit();
        b.term(Exp::EvmReturn(env.clone().into(), unit))
    });
    let wanted = build("wanted", made);
    // What is evaluated before the run, but for the parts that the run is about.
    let cost_of_made = {
        let mut b = Builder::new(&mut program);
        let (m, n) = (
            b.fresh(Type::evm(env.clone(), Type::unit()), "m"),
            b.fresh(Type::evm(env.clone(), Type::unit()), "n"),
        );
        construction(&made(&mut b, m, n))
    };
    assert_eq!(
        pullback_lambda::check::check(&program),
        Ok(()),
        "{}",
        pullback_lambda::print::print(&program)
    );
    let inside = Value::Tuple(cells.iter().rev().cloned().collect());
    let args: Vec<Value> =
        case.args.iter().cloned().chain(seeds.into_iter().cloned()).chain([inside]).collect();
    let options = Options { work_limit: STEPS, ..Options::default() };
    let base = run(&program, pure, args.clone(), &options)?.counts.work as i64 - 2 - (2 + bars.len() as i64);
    let outcome = run(&program, wanted, args, &options)?;
    let Value::Tuple(mut found) = outcome.result else { panic!("cells that are no product") };
    found.reverse();
    Ok((outcome.counts.work as i64 - base - cost_of_made, found))
}

/// What it costs to build a computation of variables, `bind` and additions, which is not what it costs to run it: one per node, and one per variable that a
/// function captures.
fn construction(t: &Term) -> i64 {
    match t.exp() {
        Exp::EvmBind(m, k) => 1 + construction(m) + construction(k),
        Exp::Lam(_, body) => 1 + i64::from(matches!(body.exp(), Exp::Var(_))),
        Exp::EvmAdd { value, .. } => 1 + construction(value),
        Exp::EvmScope(zero, m) => 1 + construction(zero) + construction(m),
        Exp::Zero(Type::Scalar(_)) | Exp::Const(_) => 2,
        Exp::Plus(x, y) => 1 + construction(x) + construction(y),
        _ => 1,
    }
}

/// `r.1 d`
fn called(b: &mut Builder<'_>, r: Var, d: Var) -> Term {
    let (r, d) = (b.var(r), b.var(d));
    let back = b.proj(r, 1);
    b.apply(back, [d])
}

/// A function with the parameters of another one, and more; `body` gets the former as terms.
fn helper(
    program: &mut Program,
    f: FunId,
    name: &str,
    more: &[Type],
    body: impl FnOnce(&mut Builder<'_>, Vec<Term>, &[Var]) -> Term,
) -> FunId {
    let types: Vec<Type> = program.funs[f].params.iter().map(|p| program.vars[*p].ty.clone()).collect();
    let own = types.len();
    let mut b = Builder::new(program);
    // The result is known once the body is there: the function is declared twice, the first one is not used.
    let params: Vec<(&str, Type)> = types.into_iter().chain(more.iter().cloned()).map(|t| ("a", t)).collect();
    let vars: Vec<Var> = params.iter().map(|(hint, t)| b.fresh(t.clone(), hint)).collect();
    let args = vars[..own].iter().map(|v| b.var(*v)).collect();
    let made = body(&mut b, args, &vars[own..]);
    let g = b.declare(name, &[], made.ty().clone(), None);
    b.program.funs[g].params = vars;
    b.define(g, made);
    g
}

/// The left side of the second statement of the theorem, for cells that the measured term makes zero itself: run, application, projection and
/// variable, and the environment of zeros as nested pairs that end in a unit.
pub fn whole(zeros: &Measured, bars: &[Type]) -> i64 {
    let zero = |t: &Type| if matches!(t, Type::Scalar(s) if s.is_float()) { 2 } else { 1 };
    let environment: i64 = 1 + bars.iter().map(|t| 1 + zero(t)).sum::<i64>();
    4 + zeros.forward + zeros.call + environment + zeros.monad
}
