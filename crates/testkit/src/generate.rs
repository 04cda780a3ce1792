//! Random well-typed core programs, typed by goal.
//!
//! "A value of this type with these sizes, in this scope, with this much fuel": small constructs composed at random,
//! built through [`pullback_core::Builder`] only, so that what comes out is well typed by construction.
//!
//! Guarantees: the same seed and [`Config`] give the same program; every program runs without a run-time error at the
//! sizes it was made for and at larger ones; floats stay bounded (every value carries a bound, and is scaled or put
//! through `sin` where the bound gets large); every float variable of the top level reaches a result.
//! Not guaranteed: differentiability. Comparisons of floats, `min`, `max` and `abs` have kinks; the oracle reports when
//! it stepped on one, and the properties that need smoothness skip the program and count it.

pub mod array;
pub mod control;
pub mod endings;
pub mod operators;
pub mod own_rules;
pub mod scalar;
pub mod shape;
pub mod sink;
pub mod stops;

use crate::rng::Rng;
use pullback_core::{Atom, Builder, FunId, Program, Value, Var};
use pullback_prim::{Op, Scalar};
use shape::{Dim, Shaped, Sizes};

/// Every probability of the generator.
#[derive(Clone, Debug)]
pub struct Config {
    /// Smallest and largest number of statements of the main function.
    pub statements: (usize, usize),
    /// Smallest and largest fuel of a statement: about the number of constructs in it.
    pub fuel: (i64, i64),
    /// How deep bodies nest.
    pub nesting: usize,
    /// Largest of the sizes `n` and `m`.
    pub largest_size: usize,
    /// That the size `m` is 0.
    pub empty: f64,
    /// That a constant size is 0, where sizes are chosen.
    pub empty_dim: f64,
    /// That the inputs come from a grid of five numbers, so that ties and zeros occur.
    pub ties: f64,
    /// That a variable of the goal's type is reused, where there is one.
    pub reuse: f64,
    /// That a goal is reached by control flow (if, match, loop, call, nested derivative) and not by an operation.
    pub control: f64,
    /// Weights of the ways of control flow.
    pub control_weights: ControlWeights,
    /// That a counted loop keeps an array of each iteration in a value of a sum type.
    pub kept: f64,
    /// Weights of the ways to an array.
    pub array_weights: ArrayWeights,
    /// That a program has `f32` numbers besides `f64` (and then 15 % of its floats).
    pub f32: f64,
    /// That a value of a chosen type is a tuple.
    pub tuple: f64,
    /// That a value of a chosen type is a sum.
    pub sum: f64,
    /// That it is an array of sums.
    pub sums: f64,
    /// Operations with a kink (`abs`, `min`, `max`): weight against 1 for each smooth group.
    pub kinks: f64,
    /// Float to integer conversions, which have jumps.
    pub jumps: f64,
    /// `stop_gradient`; programs with it are excluded from comparisons with differences.
    pub stop_gradient: f64,
    /// That the operator of a reduction is other than `+`.
    pub general_operator: f64,
    /// That the operator of a reduction is a minimum or maximum, apart from those among the others.
    pub extremum: f64,
    /// That the operator of a reduction has a free variable.
    pub free_operator: f64,
    /// That the operator of a histogram is other than `+`.
    pub general_hist: f64,
    /// That there are helper functions.
    pub functions: f64,
    /// That a helper function is recursive.
    pub recursive: f64,
    /// That a function ends in a branch, and half as often that another body does.
    pub ending: f64,
}

/// Weights of the ways of control flow.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each is the weight of the construct it is named after")]
pub struct ControlWeights {
    pub if_: f64,
    pub match_: f64,
    pub for_loop: f64,
    pub while_loop: f64,
    pub call: f64,
    pub project: f64,
    pub vjp: f64,
    pub jvp: f64,
    pub marked: f64,
    pub par: f64,
}

/// Weights of the ways to an array.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each is the weight of the construct it is named after")]
pub struct ArrayWeights {
    pub map: f64,
    pub scan: f64,
    pub hist: f64,
    pub scatter: f64,
    pub update: f64,
    pub update_slice: f64,
    pub concat: f64,
    pub reverse: f64,
    pub rotate: f64,
    pub rearrange: f64,
    pub reshape: f64,
    pub gather: f64,
    pub slice: f64,
    pub windows: f64,
    pub index: f64,
    pub replicate: f64,
    pub literal: f64,
    pub with_acc: f64,
    pub collect: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            statements: (3, 8),
            fuel: (4, 16),
            nesting: 3,
            largest_size: 4,
            empty: 0.08,
            empty_dim: 0.02,
            ties: 0.15,
            reuse: 0.3,
            control: 0.22,
            control_weights: ControlWeights {
                if_: 1.5,
                match_: 1.2,
                for_loop: 1.5,
                while_loop: 0.5,
                call: 0.8,
                project: 0.8,
                vjp: 0.15,
                jvp: 0.15,
                marked: 0.2,
                par: 0.2,
            },
            kept: 0.25,
            array_weights: ArrayWeights {
                map: 5.0,
                scan: 1.2,
                hist: 0.8,
                scatter: 0.8,
                update: 1.0,
                update_slice: 0.5,
                concat: 0.7,
                reverse: 0.6,
                rotate: 0.6,
                rearrange: 0.8,
                reshape: 0.6,
                gather: 0.8,
                slice: 0.8,
                windows: 0.6,
                index: 0.8,
                replicate: 0.8,
                literal: 0.8,
                with_acc: 0.4,
                collect: 0.3,
            },
            f32: 0.12,
            tuple: 0.07,
            sum: 0.07,
            sums: 0.02,
            kinks: 0.5,
            jumps: 0.02,
            stop_gradient: 0.001,
            general_operator: 0.45,
            extremum: 0.0,
            free_operator: 0.03,
            general_hist: 0.5,
            functions: 0.35,
            recursive: 0.15,
            ending: 0.0,
        }
    }
}

impl Config {
    /// Programs whose functions end in branches, about what was made before them: see [`endings`].
    pub fn endings() -> Config {
        let usual = Config::default();
        Config {
            statements: (1, 4),
            fuel: (3, 10),
            tuple: 0.12,
            sum: 0.14,
            sums: 0.06,
            kept: 0.4,
            functions: 0.8,
            recursive: 0.45,
            ending: 0.85,
            control_weights: ControlWeights { call: 3.0, ..usual.control_weights },
            ..usual
        }
    }
    /// Programs with much of what bulk dual numbers have forms for, and less of the rest.
    pub fn bulk() -> Config {
        let usual = Config::default();
        Config {
            statements: (2, 6),
            fuel: (3, 12),
            control_weights: ControlWeights { match_: 0.0, while_loop: 0.0, ..usual.control_weights },
            array_weights: ArrayWeights { scatter: 0.0, with_acc: 0.0, ..usual.array_weights },
            kept: 0.0,
            sum: 0.0,
            sums: 0.0,
            extremum: 0.5,
            general_hist: 0.0,
            recursive: 0.0,
            ..usual
        }
    }
    /// The same for reverse AD for Accelerate, which takes histograms by any operator, scatters, and `while` loops.
    pub fn accelerate() -> Config {
        let (bulk, usual) = (Config::bulk(), Config::default());
        let scatter = usual.array_weights.scatter;
        let while_loop = usual.control_weights.while_loop;
        Config {
            control_weights: ControlWeights { while_loop, ..bulk.control_weights },
            array_weights: ArrayWeights { scatter, ..bulk.array_weights },
            general_hist: usual.general_hist,
            ..bulk
        }
    }
}

/// What a generated program contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the number of constructs of its name")]
pub struct Features {
    pub map: usize,
    pub nested_map: usize,
    pub reduce: usize,
    pub scan: usize,
    pub hist: usize,
    pub scatter: usize,
    pub for_loop: usize,
    pub while_loop: usize,
    pub conditional: usize,
    pub sums: usize,
    pub tuples: usize,
    pub calls: usize,
    pub recursion: usize,
    pub with_acc: usize,
    pub derivatives: usize,
    pub updates: usize,
    pub indexing: usize,
    pub shape_operations: usize,
    pub general_operators: usize,
    pub singles: usize,
    pub stop_gradients: usize,
    pub empty_arrays: usize,
    pub endings: usize,
}

/// A program with what is needed to run it.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The program.
    pub program: Program,
    /// Its main function.
    pub main: FunId,
    /// Types and sizes of the parameters of `main`.
    pub params: Vec<Shaped>,
    /// The sizes it was made for.
    pub sizes: Sizes,
    /// Whether inputs come from a grid with ties and zeros.
    pub ties: bool,
    /// What it contains.
    pub features: Features,
    /// The seed it was made from.
    pub seed: u64,
}

impl Generated {
    /// Random arguments of these sizes, the same for the same program and `salt`.
    pub fn inputs(&self, sizes: Sizes, salt: u64) -> Vec<Value> {
        let seed = self.seed.wrapping_add(salt.wrapping_mul(0x5851_F42D_4C95_7F2D)) ^ 0xA5A5;
        let one = |(k, t): (usize, &Shaped)| {
            // A stream per argument: at other sizes scalars and beginnings of arrays are the same, and with them most
            // of the control flow.
            let mut rng = Rng::new(seed ^ (k as u64 + 1).wrapping_mul(0x2545_F491_4F6C_DD1D));
            t.random_value(&mut rng, sizes, INPUT_BOUND, self.ties)
        };
        self.params.iter().enumerate().map(one).collect()
    }
}

/// Largest magnitude of input floats.
const INPUT_BOUND: f64 = 1.0;
/// Largest magnitude a float may reach before it is scaled.
pub(crate) const LIMIT: f64 = 6.0;

/// The program of a seed.
pub fn generate(seed: u64, config: &Config) -> Generated {
    generate_from(Rng::new(seed), seed, config)
}

/// The program of a byte string (for fuzzers).
pub fn generate_from_bytes(bytes: &[u8], config: &Config) -> Generated {
    generate_from(Rng::from_bytes(bytes.to_vec()), 0, config)
}

fn generate_from(mut rng: Rng, seed: u64, config: &Config) -> Generated {
    let empty = rng.chance(config.empty);
    let sizes = Sizes {
        n: rng.range(1, config.largest_size),
        m: if empty { 0 } else { rng.range(1, config.largest_size) },
    };
    let ties = rng.chance(config.ties);
    let mut program = Program::default();
    let mut generator = Generator::new(rng, config, sizes);
    generator.singles = generator.rng.chance(config.f32);
    if generator.rng.chance(config.functions) {
        for k in 0..generator.rng.range(1, 2) {
            generator.helper(&mut program, k);
        }
    }
    let (main, params) = generator.main(&mut program);
    let mut features = generator.features;
    features.empty_arrays += usize::from(sizes.m == 0);
    Generated { program, main, params, sizes, ties, features, seed }
}

/// A value: an atom and a bound on the magnitude of the floats inside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Val {
    pub(crate) atom: Atom,
    pub(crate) bound: f64,
}

/// A variable in scope.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) atom: Atom,
    pub(crate) shape: Shaped,
    pub(crate) bound: f64,
    pub(crate) used: bool,
}

/// A helper function: the sizes come first, as two `i64` parameters.
#[derive(Clone, Debug)]
pub(crate) struct Helper {
    pub(crate) id: FunId,
    /// Parameters after the sizes.
    pub(crate) params: Vec<Shaped>,
    pub(crate) results: Vec<Shaped>,
    pub(crate) bound: f64,
    pub(crate) recursive: bool,
}

/// The state of a generation.
pub(crate) struct Generator<'c> {
    pub(crate) rng: Rng,
    pub(crate) config: &'c Config,
    pub(crate) sizes: Sizes,
    pub(crate) scope: Vec<Entry>,
    pub(crate) fuel: i64,
    pub(crate) nesting: usize,
    pub(crate) map_nesting: usize,
    /// The atoms of the sizes `n` and `m` in the current function.
    pub(crate) size_atoms: (Atom, Atom),
    pub(crate) helpers: Vec<Helper>,
    pub(crate) features: Features,
    /// Whether `f32` may be used.
    pub(crate) singles: bool,
}

impl<'c> Generator<'c> {
    fn new(rng: Rng, config: &'c Config, sizes: Sizes) -> Self {
        Generator {
            rng,
            config,
            sizes,
            scope: Vec::new(),
            fuel: 0,
            nesting: 0,
            map_nesting: 0,
            size_atoms: (Atom::i64(0), Atom::i64(0)),
            helpers: Vec::new(),
            features: Features::default(),
            singles: false,
        }
    }

    fn main(&mut self, program: &mut Program) -> (FunId, Vec<Shaped>) {
        let mut params =
            vec![Shaped::array(Dim::N, Shaped::F64), Shaped::array(Dim::M, Shaped::F64), Shaped::F64];
        for _ in 0..self.rng.below(4) {
            let shape = self.random_shape(true);
            params.push(shape);
        }
        // The results are known only after the body; they are filled in below.
        let types: Vec<(&str, _)> = params.iter().map(|t| ("p", t.ty())).collect();
        let main = Builder::function(program, "main", &types, Vec::new(), |b, vars| {
            self.size_atoms = (b.size(vars[0].into(), 0), b.size(vars[1].into(), 0));
            self.scope = entries(vars, &params, INPUT_BOUND);
            let statements = self.rng.range(self.config.statements.0, self.config.statements.1);
            for _ in 0..statements {
                self.statement(b);
            }
            if self.ends() {
                return self.main_ending(b);
            }
            // What used a parameter may be multiplied by zero, overwritten or not selected later.
            for k in 0..vars.len() {
                if self.rng.chance(0.7) {
                    self.scope[k].used = false;
                }
            }
            self.results(b)
        });
        program.funs[main].results = program.body_types(&program.funs[main].body);
        (main, params)
    }

    /// The results of the main function: some variables as they are, and one number that depends on everything else.
    fn results(&mut self, b: &mut Builder<'_>) -> Vec<Atom> {
        let mut out = Vec::new();
        for _ in 0..self.rng.below(3) {
            let candidates: Vec<usize> = (0..self.scope.len())
                .filter(|&k| !self.scope[k].used && self.scope[k].shape.has_floats())
                .collect();
            if let Some(&k) = candidates.last() {
                self.scope[k].used = true;
                out.push(self.scope[k].atom);
            }
        }
        let total = self.total(b, 0);
        out.push(total.atom);
        out
    }

    /// A helper function with one or two results; recursive ones count down their third parameter.
    fn helper(&mut self, program: &mut Program, number: usize) {
        let recursive = self.rng.chance(self.config.recursive);
        let ends = self.ends();
        let mut params: Vec<Shaped> = (0..self.rng.range(1, 2)).map(|_| self.random_shape(true)).collect();
        let results: Vec<Shaped> = if recursive && !ends {
            params.clone()
        } else {
            (0..self.rng.range(1, 2)).map(|_| self.random_shape(true)).collect()
        };
        if recursive {
            params.insert(0, Shaped::I64);
            self.features.recursion += 1;
        }
        let mut types = vec![("n", Shaped::I64.ty()), ("m", Shaped::I64.ty())];
        types.extend(params.iter().map(|t| ("p", t.ty())));
        let result_types: Vec<_> = results.iter().map(Shaped::ty).collect();
        let name = format!("helper{number}");
        // A recursive body mentions its own function: it is in the table, without a body, before the body is built.
        let id = Builder::function(program, &name, &types, result_types, |_, _| Vec::new());
        let vars = program.funs[id].params.clone();
        let mut b = Builder::new(program);
        let body = b.scope(|b| {
            self.size_atoms = (vars[0].into(), vars[1].into());
            self.scope = entries(&vars[2..], &params, LIMIT);
            match (recursive, ends) {
                (true, true) => self.branching_body(b, id, (&params, &results)),
                (true, false) => self.recursive_body(b, id, &results),
                (false, true) => self.helper_ending(b, &results),
                (false, false) => self.straight_body(b, &results),
            }
        });
        program.funs[id].body = body;
        self.helpers.push(Helper { id, params, results, bound: LIMIT, recursive });
    }

    pub(crate) fn straight_body(&mut self, b: &mut Builder<'_>, results: &[Shaped]) -> Vec<Atom> {
        for _ in 0..self.rng.below(3) {
            self.statement(b);
        }
        results
            .iter()
            .map(|t| {
                self.fuel = self.rng.range(2, 5) as i64;
                let v = self.value(b, t);
                let v = self.absorb(b, t, v, 0);
                self.limit(b, t, v, LIMIT).atom
            })
            .collect()
    }

    fn recursive_body(&mut self, b: &mut Builder<'_>, id: FunId, results: &[Shaped]) -> Vec<Atom> {
        let counter = self.scope[0].atom;
        let old: Vec<Atom> = self.scope[1..].iter().map(|e| e.atom).collect();
        let sizes = [self.size_atoms.0, self.size_atoms.1];
        let stop = b.op2(Op::Le, counter, Atom::i64(0));
        b.if_(
            stop,
            |_| old,
            |b| {
                let next = self.straight_body(b, results);
                let less = b.op2(Op::Sub, counter, Atom::i64(1));
                let args = sizes.into_iter().chain([less]).chain(next).collect();
                b.emit_all(pullback_core::Exp::Call(id, args), "r").into_iter().map(Atom::from).collect()
            },
        )
        .into_iter()
        .map(Atom::from)
        .collect()
    }

    /// One statement: a value of a random type, added to the scope.
    pub(crate) fn statement(&mut self, b: &mut Builder<'_>) {
        let shape = self.random_shape(false);
        let (low, high) = self.config.fuel;
        self.fuel = low + self.rng.below((high - low + 1) as usize) as i64;
        let v = self.value(b, &shape);
        match self.scope.iter_mut().find(|e| e.atom == v.atom) {
            // It must reach the output from here, even if it was used to get here.
            Some(entry) => entry.used = false,
            None if matches!(v.atom, Atom::Var(_)) => {
                self.scope.push(Entry { atom: v.atom, shape, bound: v.bound, used: false });
            }
            None => {}
        }
    }

    /// Runs `f` such that floats used in it count as unused: it makes something discrete from them, or may not run.
    pub(crate) fn discretely<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let used: Vec<bool> = self.scope.iter().map(|e| e.used).collect();
        let result = f(self);
        for (entry, used) in self.scope.iter_mut().zip(used) {
            entry.used = used;
        }
        result
    }

    /// A value of this type.
    pub(crate) fn value(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> Val {
        self.fuel -= 1;
        if self.fuel <= 0 {
            return self.leaf(b, goal);
        }
        if self.rng.chance(self.config.reuse)
            && let Some(v) = self.pick(goal)
        {
            return v;
        }
        if self.rng.chance(self.config.control)
            && let Some(v) = self.control(b, goal)
        {
            return self.remember(goal, v);
        }
        let v = match goal {
            Shaped::Scalar(s) => self.scalar(b, *s),
            Shaped::Tuple(items) => self.tuple(b, items),
            Shaped::Sum(alternatives) => self.inject(b, goal, alternatives),
            Shaped::Array(dim, element) => self.array(b, *dim, element),
        };
        self.remember(goal, v)
    }

    /// Keeps an intermediate value in scope now and then, so that values are shared.
    pub(crate) fn remember(&mut self, shape: &Shaped, v: Val) -> Val {
        if matches!(v.atom, Atom::Var(_))
            && self.rng.chance(0.3)
            && !self.scope.iter().any(|e| e.atom == v.atom)
        {
            self.scope.push(Entry { atom: v.atom, shape: shape.clone(), bound: v.bound, used: true });
        }
        v
    }

    /// A variable of this type, preferring unused and recent ones.
    pub(crate) fn pick(&mut self, goal: &Shaped) -> Option<Val> {
        let fitting: Vec<usize> =
            (0..self.scope.len()).rev().filter(|&k| self.scope[k].shape == *goal).collect();
        if fitting.is_empty() {
            return None;
        }
        let unused = fitting.iter().copied().find(|&k| !self.scope[k].used);
        let k = match unused {
            Some(k) if self.rng.chance(0.6) => k,
            _ => {
                let mut at = 0;
                while at + 1 < fitting.len() && self.rng.chance(0.5) {
                    at += 1;
                }
                fitting[at]
            }
        };
        let entry = &mut self.scope[k];
        entry.used = true;
        Some(Val { atom: entry.atom, bound: entry.bound })
    }

    /// A value of this type without further constructs than needed.
    pub(crate) fn leaf(&mut self, b: &mut Builder<'_>, goal: &Shaped) -> Val {
        if let Some(v) = self.pick(goal) {
            return v;
        }
        match goal {
            Shaped::Scalar(s) => self.scalar_leaf(b, *s),
            Shaped::Tuple(items) => {
                let parts: Vec<Val> = items.iter().map(|t| self.leaf(b, t)).collect();
                self.build_tuple(b, &parts)
            }
            Shaped::Sum(alternatives) => {
                let k = self.rng.below(alternatives.len());
                self.inject_leaf(b, goal, k, &alternatives[k])
            }
            Shaped::Array(..) => {
                let element = self.leaf(b, goal.innermost());
                let shape: Vec<Atom> = goal.dims().into_iter().map(|d| self.dim(b, d)).collect();
                let atom = b.emit(pullback_core::Exp::Replicate(shape, element.atom), "rep");
                Val { atom, bound: element.bound }
            }
        }
    }

    /// The atom of a size.
    pub(crate) fn dim(&mut self, b: &mut Builder<'_>, d: Dim) -> Atom {
        let (n, m) = self.size_atoms;
        let mut sum: Option<Atom> = None;
        for (count, size) in [(d.n, n), (d.m, m)] {
            let term = match count {
                0 => continue,
                1 => size,
                k => b.op2(Op::Mul, Atom::i64(k as i64), size),
            };
            sum = Some(match sum {
                None => term,
                Some(s) => b.op2(Op::Add, s, term),
            });
        }
        match sum {
            None => Atom::i64(d.c as i64),
            Some(s) if d.c == 0 => s,
            Some(s) => b.op2(Op::Add, s, Atom::i64(d.c as i64)),
        }
    }

    /// A random size.
    pub(crate) fn random_dim(&mut self) -> Dim {
        if self.rng.chance(self.config.empty_dim) {
            self.features.empty_arrays += 1;
            return Dim::constant(0);
        }
        match self.rng.weighted(&[0.45, 0.25, 0.16, 0.07, 0.07]) {
            0 => Dim::N,
            1 => Dim::M,
            2 => Dim::constant(self.rng.range(1, 3)),
            3 => Dim::N.plus(Dim::constant(1)),
            _ => Dim::N.times(2),
        }
    }

    /// A random type; `simple`: without rank 3 and without much else that makes interfaces large.
    pub(crate) fn random_shape(&mut self, simple: bool) -> Shaped {
        let (tuple, sum) = (self.config.tuple, self.config.sum);
        let rank3 = if simple { 0.0 } else { 0.02 };
        match self.rng.weighted(&[0.36, 0.32, 0.12, rank3, 0.03, 0.02, tuple, sum, self.config.sums, 0.005]) {
            0 => Shaped::Scalar(self.float_type()),
            k @ 1..=3 => {
                let dims: Vec<Dim> = (0..k).map(|_| self.random_dim()).collect();
                Shaped::of_dims(&dims, Shaped::Scalar(self.float_type()))
            }
            4 => Shaped::I64,
            5 => Shaped::array(self.random_dim(), Shaped::I64),
            6 => self.tuple_shape(simple),
            7 => self.sum_shape(true),
            8 => {
                let (dim, arrays) = (self.random_dim(), self.rng.chance(0.4));
                Shaped::array(dim, self.sum_shape(arrays))
            }
            _ => Shaped::BOOL,
        }
    }

    pub(crate) fn float_type(&mut self) -> Scalar {
        if self.singles && self.rng.chance(0.15) {
            self.features.singles += 1;
            Scalar::F32
        } else {
            Scalar::F64
        }
    }

    fn tuple_shape(&mut self, simple: bool) -> Shaped {
        let count = self.rng.range(1, 3);
        Shaped::Tuple(
            (0..count)
                .map(|k| match self.rng.below(6) {
                    0 => Shaped::I64,
                    1 | 2 => Shaped::array(self.random_dim(), Shaped::F64),
                    3 if !simple && k == 0 => Shaped::Tuple(vec![Shaped::F64, Shaped::BOOL]),
                    _ => Shaped::Scalar(self.float_type()),
                })
                .collect(),
        )
    }

    /// A sum of two to four alternatives; `arrays`: payloads may be arrays.
    fn sum_shape(&mut self, arrays: bool) -> Shaped {
        let count = self.rng.range(2, 4);
        let mut alternatives: Vec<Vec<Shaped>> = Vec::new();
        for k in 0..count {
            let fields = if k == 0 { 1 } else { self.rng.below(3) };
            let mut payload = Vec::new();
            for _ in 0..fields {
                payload.push(match self.rng.below(8) {
                    0 => Shaped::I64,
                    1 if arrays => Shaped::array(self.random_dim(), Shaped::F64),
                    2 if arrays => Shaped::Tuple(vec![Shaped::F64, Shaped::F64]),
                    _ => Shaped::F64,
                });
            }
            alternatives.push(payload);
        }
        Shaped::Sum(alternatives)
    }

    /// Runs `f` in an inner body: its own fuel, one level deeper, with what it added to the scope removed afterwards.
    /// Float variables added and not used there flow into `v` if that is a float.
    pub(crate) fn inner<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let mark = self.scope.len();
        let fuel = self.fuel;
        self.fuel = fuel.min(8) / 2 + self.rng.range(1, 3) as i64;
        self.nesting += 1;
        let result = f(self);
        self.nesting -= 1;
        self.fuel = fuel - 2;
        self.scope.truncate(mark);
        result
    }

    /// As [`Self::inner`], for a body that may not run: what it uses still counts as unused most of the time.
    pub(crate) fn maybe<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        if self.rng.chance(0.85) { self.discretely(|g| g.inner(f)) } else { self.inner(f) }
    }

    /// The value of a body: maybe a few statements, then a value of the type, bounded by `limit`. Unused float
    /// variables from position `mark` of the scope on flow into it.
    pub(crate) fn body_value(&mut self, b: &mut Builder<'_>, goal: &Shaped, limit: f64, mark: usize) -> Val {
        let fuel = self.fuel;
        if fuel > 3 && self.rng.chance(0.4) {
            self.statement(b);
            self.fuel = fuel / 2;
        }
        let v = self.value(b, goal);
        let v = self.absorb(b, goal, v, mark);
        self.limit(b, goal, v, limit)
    }

    /// Pushes variables on the scope.
    pub(crate) fn push(&mut self, vars: &[Var], shapes: &[Shaped], bound: f64, used: bool) {
        for (v, shape) in vars.iter().zip(shapes) {
            self.scope.push(Entry { atom: (*v).into(), shape: shape.clone(), bound, used });
        }
    }
}

fn entries(vars: &[Var], shapes: &[Shaped], bound: f64) -> Vec<Entry> {
    vars.iter()
        .zip(shapes)
        .map(|(v, t)| Entry { atom: (*v).into(), shape: t.clone(), bound, used: false })
        .collect()
}
