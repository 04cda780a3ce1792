//! What accumulator elimination leaves of the benchmark problems (Fast CHAD notes 3.3, features F36 to F38): no additions
//! into accumulators inside array operations, and products of matrices that are written as such.

#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

use pullback_base::index::IdMap;
use pullback_core::traverse::for_each_stm;
use pullback_core::{Atom, Body, Exp, Program, Soac, Value, Var, print};
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_interp::core::Options;
use pullback_prim::{Op, Prim};
use std::collections::BTreeSet;
use std::path::Path;

/// The program of the gradient when accumulators have been eliminated and what that left is cleaned up, before fusion
/// joins sums with what they sum.
fn gradient(text: &str, entry: &str, wrt: &str) -> Program {
    let session = Session::compile("program.fut", text, Settings::default()).map_err(|e| e.render()).unwrap();
    let entry = session.entry(Some(entry)).unwrap();
    let wanted = session.select(&entry, &Wrt::parse(wrt)).unwrap();
    let (mut found, mut steps) = (Program::default(), None);
    let mut watch = |name: &'static str, p: &Program| {
        steps = if name == "eliminate_accumulators" { Some(0) } else { steps.map(|n: usize| n + 1) };
        // After it come simplify, cse and prune.
        if steps.is_some_and(|n| n <= 3) {
            found = p.clone();
        }
    };
    session.derivative(&entry, Kind::Vjp, &wanted, &mut watch).unwrap();
    found
}

fn of_file(file: &str, entry: &str, wrt: &str) -> Program {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    gradient(&std::fs::read_to_string(root.join(file)).unwrap(), entry, wrt)
}

/// Additions into accumulators inside array operations and loops.
fn hot(body: &Body, inside: bool) -> usize {
    let here = |exp: &Exp| usize::from(inside && matches!(exp, Exp::AccAdd(..)));
    let within = |exp: &Exp| inside || matches!(exp, Exp::Soac(_) | Exp::Loop(_));
    let nested = |exp: &Exp| exp.bodies().iter().map(|s| hot(s.body, within(exp))).sum::<usize>();
    body.stms.iter().map(|s| here(&s.exp) + nested(&s.exp)).sum()
}

fn expect_none(name: &str, program: &Program) {
    for fun in program.funs.iter() {
        assert_eq!(hot(&fun.body, false), 0, "{name}:\n{}", print(program));
    }
}

#[test]
fn no_accumulation_is_left_in_maps_and_loops() {
    expect_none("lstm", &of_file("examples/lstm.fut", "objective", "main_params,extra_params"));
    expect_none(
        "lstm, all",
        &of_file("examples/lstm.fut", "objective", "main_params,extra_params,state,sequence"),
    );
    expect_none("gmm", &of_file("examples/gmm.fut", "objective", "params"));
    expect_none("gmm with data", &of_file("examples/gmm.fut", "objective", "x,gamma,params"));
    expect_none("bundle adjustment", &of_file("examples/ba.fut", "cost", "cams,points,weights"));
    expect_none("logistic regression", &of_file("benches/programs/matvec.fut", "squares", "a,v"));
}

/// Blocks of a Jacobian of independent observations: each is a result of the map over them, and nothing is added into
/// accumulators anywhere, be the rows asked for one by one or all at once.
const BLOCKS: &str = "
entry by_rows [n] [p] (cams: [n][3]f64) (points: [p][2]f64) (obs: [p]i64) : [p][2][5]f64 =
  let f (c: [3]f64) (x: [2]f64) : [2]f64 =
    let s = c[0] * x[0] + c[1] * x[1]
    in [c[2] * s * x[0], c[2] * s * f64.sin x[1]]
  in tabulate p (\\i ->
       let row (seed: [2]f64) : [5]f64 =
         let (dc, dx) = vjp (\\(c, x) -> f c x) (cams[obs[i]], points[i]) seed
         in [dc[0], dc[1], dc[2], dx[0], dx[1]]
       in [row [1, 0], row [0, 1]])
entry at_once [n] [p] (cams: [n][3]f64) (points: [p][2]f64) (obs: [p]i64) : [p]([2][3]f64, [2][2]f64) =
  let f (c: [3]f64) (x: [2]f64) : [2]f64 =
    let s = c[0] * x[0] + c[1] * x[1]
    in [c[2] * s * x[0], c[2] * s * f64.sin x[1]]
  in tabulate p (\\i -> unzip (mjp (\\(c, x) -> f c x) (cams[obs[i]], points[i]) [[1, 0], [0, 1]]))
";

fn optimised(text: &str, entry: &str) -> Program {
    let session = Session::compile("program.fut", text, Settings::default()).map_err(|e| e.render()).unwrap();
    let entry = session.entry(Some(entry)).unwrap();
    let mut last = Program::default();
    session.watch(&entry, &mut |_, p| last = p.clone()).unwrap();
    last
}

#[test]
fn blocks_of_a_jacobian_are_results_of_a_map() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let adjustment = std::fs::read_to_string(root.join("examples/ba.fut")).unwrap();
    for (text, entry) in [(&adjustment[..], "jacobian"), (BLOCKS, "by_rows"), (BLOCKS, "at_once")] {
        let program = optimised(text, entry);
        for fun in program.funs.iter() {
            for_each_stm(&fun.body, &mut |s| {
                let adds = matches!(s.exp, Exp::WithAcc(..) | Exp::AccAdd(..));
                assert!(!adds, "{entry}:\n{}", print(&program));
            });
        }
    }
}

/// Rows of a table by given numbers.
const LOOK_UP: &str = "
entry given [n] [k] [d] (is: [n]i64) (table: [k][d]f64) : f64 =
  f64.sum (map (\\i -> let row = table[i] in f64.sum (map f64.exp row)) is)
";

/// `hist` and additions to accumulators in the functions that differentiation made.
fn histograms_and_additions(program: &Program) -> (usize, usize) {
    let (mut histograms, mut additions) = (0, 0);
    for fun in program.funs.iter().filter(|f| f.entry.is_none()) {
        for_each_stm(&fun.body, &mut |s| {
            histograms += usize::from(matches!(s.exp, Exp::Soac(Soac::Hist { .. })));
            additions += usize::from(matches!(s.exp, Exp::AccAdd(..)));
        });
    }
    (histograms, additions)
}

#[test]
fn data_dependent_indices_become_one_histogram() {
    let program = gradient(LOOK_UP, "given", "table");
    assert_eq!(histograms_and_additions(&program), (1, 0), "{}", print(&program));
}

/// In k-means the row of the nearest centroid is added to where there is one. A histogram would keep a row, or that there is
/// none, for every point.
#[test]
fn rows_under_a_condition_are_added_where_they_are() {
    let program = of_file("examples/kmeans.fut", "cost", "centroids");
    assert_eq!(histograms_and_additions(&program), (0, 1), "{}", print(&program));
}

const MATMUL: &str = "
entry by_rows [n] [m] [p] (a: [n][p]f64) (b: [p][m]f64) : [n][m]f64 =
  map (\\row -> map (\\col -> f64.sum (map2 (*) row col)) (transpose b)) a
entry by_index [n] [m] [p] (a: [n][p]f64) (b: [p][m]f64) : [n][m]f64 =
  tabulate_2d n m (\\i j -> f64.sum (tabulate p (\\k -> a[i, k] * b[k, j])))
entry batched [q] [n] [m] [p] (a: [q][n][p]f64) (b: [q][p][m]f64) : [q][n][m]f64 =
  map2 (\\x y -> map (\\row -> map (\\col -> f64.sum (map2 (*) row col)) (transpose y)) x) a b
";

/// A recurrent network: the gradients of both weight matrices are products over all time steps.
const NETWORK: &str = "
entry loss [t] [h] [d] (w: [h][d]f64) (u: [h][h]f64) (b: [h]f64) (xs: [t][d]f64) : f64 =
  let dot [k] (p: [k]f64) (q: [k]f64) = f64.sum (map2 (*) p q)
  let last = loop s = replicate h 0f64 for i < t do
    map3 (\\wr ur c -> f64.tanh (dot wr xs[i] + dot ur s + c)) w u b
  in f64.sum last
";

/// With one row the loop runs -1 times: the state stays zero, and so is the derivative.
const SHORT: &str = "
entry loss [t] [h] [d] (w: [h][d]f64) (b: [h]f64) (xs: [t][d]f64) : f64 =
  let last = loop s = replicate h 0f64 for i < t - 2 do
    map3 (\\wr c y -> f64.tanh (f64.sum (map2 (*) wr xs[i]) + c) * y) w b s
  in f64.sum last
";

#[test]
fn a_loop_that_does_not_run_leaves_no_sum() {
    let session =
        Session::compile("program.fut", SHORT, Settings::default()).map_err(|e| e.render()).unwrap();
    let entry = session.entry(None).unwrap();
    let wanted = session.select(&entry, &Wrt::parse("w,b")).unwrap();
    let ready = session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {}).unwrap();
    let matrix = |x| Value::f64_array(&[1, 2], &[x, 2.0 * x]);
    let args = [matrix(1.0), Value::f64s(&[3.0]), matrix(2.0), Value::f64(1.0)];
    let found = ready.run(&args, &Options::default()).unwrap().results;
    assert_eq!(found, [Value::f64(0.0), matrix(0.0), Value::f64s(&[0.0])]);
}

#[test]
fn the_reverse_of_a_matrix_product_is_two_matrix_products() {
    for entry in ["by_rows", "by_index"] {
        let program = gradient(MATMUL, entry, "a,b");
        expect_none(entry, &program);
        let found = contractions(&program);
        let kinds: Vec<(usize, usize, usize, usize)> = found.iter().map(Contraction::kind).collect();
        // The primal product and the two of the gradient: rows, columns and one contracted axis each.
        assert_eq!(kinds, [(0, 1, 1, 1); 3], "{entry}: {found:?}\n{}", print(&program));
    }
    let program = gradient(MATMUL, "batched", "a,b");
    expect_none("batched", &program);
}

#[test]
fn rank_one_updates_of_a_loop_are_one_product_after_it() {
    let program = gradient(NETWORK, "loss", "w,u");
    expect_none("network", &program);
    // After the loop over time: w_bar and u_bar, both rows by columns, contracted over time.
    let outside =
        contractions(&program).into_iter().filter(|c| c.loops == 0 && c.kind() == (0, 1, 1, 1)).count();
    assert_eq!(outside, 2, "{}", print(&program));
}

/// The cotangent of a shift in front of a matrix: the matrix is applied to a sum, not to each term.
const SHIFT: &str = "
entry loss [n] [d] (q: [d][d]f64) (mu: [d]f64) (xs: [n][d]f64) : f64 =
  let dot [k] (p: [k]f64) (r: [k]f64) = f64.sum (map2 (*) p r)
  in f64.sum (map (\\x -> let y = map2 (-) x mu
                         in f64.sum (map (\\row -> let t = dot row y in t * t) q)) xs)
";

#[test]
fn a_linear_function_is_applied_once_to_a_sum() {
    let session =
        Session::compile("program.fut", SHIFT, Settings::default()).map_err(|e| e.render()).unwrap();
    let entry = session.entry(None).unwrap();
    let wanted = session.select(&entry, &Wrt::parse("mu")).unwrap();
    let (primal, gradient) = (
        session.primal(&entry).unwrap(),
        session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {}).unwrap(),
    );
    // What the gradient costs besides the objective: n d, and d d once; a product for every point would be n d d.
    let extra = |d: usize| {
        let n = 64;
        let numbers = |k: usize| (0..k).map(|i| (i % 7) as f64 - 3.0).collect::<Vec<f64>>();
        let mut args = vec![
            Value::f64_array(&[d, d], &numbers(d * d)),
            Value::f64s(&numbers(d)),
            Value::f64_array(&[n, d], &numbers(n * d)),
        ];
        let before = primal.run(&args, &Options::default()).unwrap().counts.work;
        args.push(Value::f64(1.0));
        gradient.run(&args, &Options::default()).unwrap().counts.work - before
    };
    let [small, big] = [16, 32].map(extra);
    assert!(big < 3 * small, "{small} steps, {big} steps for rows twice as long");
}

/// Elements chosen by the segment of a position, by the place in it, and by a quotient with a number that need not divide.
const SEGMENTS: &str = "
entry by_size [m] [c] (a: [m]f64) (b: [m][c]f64) : f64 =
  f64.sum (map2 (\\i x -> a[i / c] * x) (iota (m * c)) (flatten b))
entry by_place [m] [c] (a: [c]f64) (b: [m][c]f64) : f64 =
  f64.sum (map2 (\\i x -> a[i % c] * x) (iota (m * c)) (flatten b))
entry by_number [m] [n] (k: i64) (a: [m]f64) (b: [n]f64) : f64 =
  f64.sum (map2 (\\i x -> a[i / k] * x) (iota n) b)
";

/// The cotangent of `a`, the steps of value and gradient, and whether additions or histograms are left.
fn of_segments(entry: &str, args: &[Value]) -> (Vec<f64>, u64, bool) {
    let session =
        Session::compile("program.fut", SEGMENTS, Settings::default()).map_err(|e| e.render()).unwrap();
    let entry = session.entry(Some(entry)).unwrap();
    let wanted = session.select(&entry, &Wrt::parse("a")).unwrap();
    let (mut last, mut adds) = (Program::default(), false);
    let derivative = session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, p| last = p.clone()).unwrap();
    for fun in last.funs.iter() {
        for_each_stm(&fun.body, &mut |s| {
            adds |= matches!(s.exp, Exp::WithAcc(..) | Exp::AccAdd(..) | Exp::Soac(Soac::Hist { .. }));
        });
    }
    let out = derivative.run(args, &Options::default()).unwrap();
    (out.results.last().unwrap().floats(), out.counts.work, adds)
}

#[test]
fn segments_of_a_dimension_are_sums_of_rows() {
    let numbers = |n: usize| Value::f64s(&(0..n).map(|k| k as f64).collect::<Vec<f64>>());
    let (a, b) = (Value::f64s(&[2.0, 3.0]), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let matrix = Value::f64_array(&[2, 3], &b);
    let seed = Value::f64(1.0);
    let (x_bar, _, adds) = of_segments("by_size", &[a, matrix.clone(), seed.clone()]);
    assert_eq!((x_bar, adds), (vec![3.0, 12.0], false));
    let (x_bar, _, adds) = of_segments("by_place", &[numbers(3), matrix, seed.clone()]);
    assert_eq!((x_bar, adds), (vec![3.0, 5.0, 7.0], false));

    let (m, c) = (20, 30);
    let b: Vec<f64> = (0..m * c).map(|k| (k % 7) as f64).collect();
    let (sums, sum_steps, _) =
        of_segments("by_size", &[numbers(m), Value::f64_array(&[m, c], &b), seed.clone()]);
    let args = [Value::i64(c as i64), numbers(m), Value::f64s(&b), seed];
    let (added, steps, adds) = of_segments("by_number", &args);
    assert!(adds, "a number that need not divide");
    assert_eq!(sums, added);
    assert!(sum_steps <= steps, "{sum_steps} steps for sums, {steps} for a histogram");
}

/// The elements of `w` and `c` are read for each point, of which there are none.
#[test]
fn a_read_is_not_taken_out_of_a_sum_without_points() {
    let text = "
entry f [n] [m] (c: [m]f64) (w: [m]f64) (b: [n]f64) : f64 =
  f64.sum (map (\\x -> (w[0] * x) * c[0]) b)
";
    let session = Session::compile("program.fut", text, Settings::default()).map_err(|e| e.render()).unwrap();
    let entry = session.entry(None).unwrap();
    let wanted = session.select(&entry, &Wrt::parse("c,w,b")).unwrap();
    let derivative = session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {}).unwrap();
    let none = Value::f64s(&[]);
    let out = derivative.run(&[none.clone(), none.clone(), none, Value::f64(1.0)], &Options::default());
    assert_eq!(out.unwrap().results[0].floats(), [0.0]);
}

/// A nest of maps around the sum of products of two elements, by what its axes do. An axis is a dimension of the nest.
#[derive(Debug)]
struct Contraction {
    kept: BTreeSet<usize>,
    left: BTreeSet<usize>,
    right: BTreeSet<usize>,
    /// Loops around it.
    loops: usize,
}

impl Contraction {
    /// Axes in both factors and the result, in one factor and the result (twice), in both factors only.
    fn kind(&self) -> (usize, usize, usize, usize) {
        let both: BTreeSet<usize> = self.left.intersection(&self.right).copied().collect();
        let only = |x: &BTreeSet<usize>| x.difference(&both).filter(|a| self.kept.contains(a)).count();
        let batch = both.intersection(&self.kept).count();
        (batch, only(&self.left), only(&self.right), both.len() - batch)
    }
}

fn contractions(program: &Program) -> Vec<Contraction> {
    let mut out = Vec::new();
    for fun in program.funs.iter().filter(|f| f.entry.is_none()) {
        let mut search = Search { axes: 0, dims: IdMap::new(), terms: IdMap::new(), found: Vec::new() };
        search.body(&fun.body, &[], 0);
        out.extend(search.found);
    }
    out
}

#[derive(Default)]
struct Search {
    axes: usize,
    /// The axes by which an element of something outside was chosen.
    dims: IdMap<Var, BTreeSet<usize>>,
    /// Arrays of products, by the axis that numbers their elements.
    terms: IdMap<Var, (usize, BTreeSet<usize>, BTreeSet<usize>)>,
    found: Vec<Contraction>,
}

impl Search {
    fn chosen(&self, a: Atom) -> BTreeSet<usize> {
        a.var().and_then(|v| self.dims.get(&v).cloned()).unwrap_or_default()
    }
    fn body(&mut self, body: &Body, around: &[usize], loops: usize) {
        for stm in &body.stms {
            match &stm.exp {
                Exp::Soac(Soac::Map { lam, arrays, .. }) => {
                    let axis = self.axes;
                    self.axes += 1;
                    for (p, a) in lam.params.iter().zip(arrays) {
                        let mut dims = self.chosen(*a);
                        dims.insert(axis);
                        self.dims.insert(*p, dims);
                    }
                    for (v, result) in stm.pat.iter().zip(&lam.body.result) {
                        let product = lam.body.stms.iter().find(|s| Atom::Var(s.pat[0]) == *result);
                        // Reads by index come before the product.
                        self.reads(&lam.body);
                        if let Some(Exp::Prim(Prim::Op(Op::Mul, _), args)) = product.map(|s| &s.exp) {
                            self.terms.insert(*v, (axis, self.chosen(args[0]), self.chosen(args[1])));
                        }
                    }
                    let inner: Vec<usize> = around.iter().copied().chain([axis]).collect();
                    self.body(&lam.body, &inner, loops);
                }
                Exp::Soac(Soac::Reduce { lam, arrays, .. }) => {
                    let adds = matches!(&lam.body.stms[..], [s] if matches!(s.exp, Exp::Prim(Prim::Op(Op::Add, _), _)));
                    if let (true, [Atom::Var(v)]) = (adds, &arrays[..])
                        && let Some((_, left, right)) = self.terms.get(v).cloned()
                    {
                        let kept = around.iter().copied().collect();
                        self.found.push(Contraction { kept, left, right, loops });
                    }
                }
                exp => {
                    self.read(stm.pat[0], exp);
                    let loops = loops + usize::from(matches!(exp, Exp::Loop(_)));
                    for scope in exp.bodies() {
                        self.body(scope.body, around, loops);
                    }
                }
            }
        }
    }
    fn reads(&mut self, body: &Body) {
        body.stms.iter().for_each(|s| self.read(s.pat[0], &s.exp));
    }
    /// Views keep, and indices extend, what chooses an element.
    fn read(&mut self, v: Var, exp: &Exp) {
        let dims = match exp {
            Exp::Rearrange(_, a) | Exp::Reverse(a) | Exp::Atom(a) => self.chosen(*a),
            Exp::Reshape { array, .. } => self.chosen(*array),
            Exp::Index(a, ix) => ix.iter().fold(self.chosen(*a), |mut dims, i| {
                dims.extend(self.chosen(*i));
                dims
            }),
            _ => return,
        };
        self.dims.insert(v, dims);
    }
}
