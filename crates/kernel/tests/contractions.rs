//! Random contractions: sums of products of elements whose indices are loops in any order, some of them only up to another one,
//! with something done to elements before and after. Values and gradients are those of the interpreter, as lowered and with the schedule
//! of machine code.

#[path = "common/numbers.rs"]
mod numbers;

use crate::common::counted::{additions, all, allocations, count, loops, named};
use numbers::Numbers;
use pullback_core::{FunId, Program, Type, Value};
use pullback_driver::{Kind, Session, Settings, Wrt};
use pullback_interp::core::{Compiled, Options};
use pullback_kernel::run::{self, Memory, Word, run};
use pullback_kernel::schedule::{self, Model, schedule};
use pullback_kernel::values::{from_words, to_words};
use pullback_kernel::{Function, Ins, Module, Operand, lower, print};
use pullback_prim::{Op, Prim};

impl Numbers {
    fn shuffled(&mut self, mut xs: Vec<usize>) -> Vec<usize> {
        for k in (1..xs.len()).rev() {
            xs.swap(k, self.below(k + 1));
        }
        xs
    }
    fn float(&mut self) -> f64 {
        self.below(2001) as f64 / 1000.0 - 1.0
    }
}

const NAMES: [&str; 4] = ["i", "j", "k", "l"];

/// A program with inputs: `out[..] = after (sum over the others of the product of the inputs, or of one of them changed)`.
struct Contraction {
    text: String,
    args: Vec<Value>,
    /// Whether there are a row, a column, and a loop that is contracted: of the last product one factor has the loops of the
    /// last input, the other one those of all others. `None`: it depends on what becomes of a condition.
    is_product: Option<bool>,
}

fn contraction(numbers: &mut Numbers) -> Contraction {
    let loops = 3 + numbers.below(2);
    let extents: Vec<usize> = (0..loops).map(|_| [1, 2, 3, 7, 8, 9, 12, 17][numbers.below(8)]).collect();
    let order = numbers.shuffled((0..loops).collect());
    // Some are results, at least one is summed.
    let (results, summed) = order.split_at(1 + numbers.below(loops - 1));
    // Every loop is in some input, in any place.
    let mut inputs: Vec<Vec<usize>> = vec![Vec::new(); 2 + numbers.below(2)];
    let many = inputs.len();
    // One in two is a product of matrices with something more.
    let matrices = numbers.below(2) == 0 && results.len() >= 2;
    for l in 0..loops {
        if matrices && (l == results[0] || l == results[1] || l == summed[0]) {
            inputs[0].extend((l != results[1]).then_some(l));
            inputs[many - 1].extend((l != results[0]).then_some(l));
            continue;
        }
        let first = numbers.below(many);
        inputs[first].push(l);
        let second = (first + 1 + numbers.below(many - 1)) % many;
        if numbers.below(2) == 0 {
            inputs[second].push(l);
        }
    }
    inputs.retain(|dims| !dims.is_empty());
    let inputs: Vec<Vec<usize>> = inputs.into_iter().map(|dims| numbers.shuffled(dims)).collect();
    let element = |k: usize, dims: &Vec<usize>| {
        let ix: Vec<&str> = dims.iter().map(|d| NAMES[*d]).collect();
        format!("a{k}[{}]", ix.join(", "))
    };
    let mut factors: Vec<String> = inputs.iter().enumerate().map(|(k, dims)| element(k, dims)).collect();
    if numbers.below(3) == 0 {
        factors[0] = format!("f64.exp ({} * 0.1)", factors[0]);
    }
    // One sum may go up to a result only, if that is not larger; or its terms may be zero but for some counters.
    let triangular = numbers.below(3) == 0 && extents[results[0]] <= extents[summed[0]];
    let in_last = |l: &usize| inputs[inputs.len() - 1].contains(l);
    let in_others = |l: &usize| inputs[..inputs.len() - 1].iter().any(|dims| dims.contains(l));
    // A loop that bounds another one stays outside.
    let free = &results[usize::from(triangular)..];
    let has_row = free.iter().any(|l| in_others(l) && !in_last(l));
    let has_column = free.iter().any(|l| in_last(l) && !in_others(l));
    let is_summed = summed.iter().any(|l| in_last(l) && in_others(l));
    let mut sum = factors.join(" * ");
    let conditional = !triangular && numbers.below(2) == 0;
    if conditional {
        let (i, j) = (NAMES[results[0]], NAMES[summed[0]]);
        let condition =
            ["I <= J", "J <= I", "J < I + 2", "I + J < 7", "J - I > 1", "I == J", "J <= 2 && I > 1"];
        let condition = condition[numbers.below(7)].replace('I', i).replace('J', j);
        sum = format!("(if {condition} then {sum} else 0)");
    }
    for (n, l) in summed.iter().enumerate().rev() {
        let bound =
            if triangular && n == 0 { format!("({} + 1)", NAMES[results[0]]) } else { format!("n{l}") };
        sum = format!("f64.sum (map (\\{} -> {sum}) (iota {bound}))", NAMES[*l]);
    }
    if numbers.below(2) == 0 {
        sum = format!("(let s = {sum} in f64.sin s + 0.5 * s)");
    }
    for l in results.iter().rev() {
        sum = format!("tabulate n{l} (\\{} -> {sum})", NAMES[*l]);
    }
    let params: Vec<String> = inputs
        .iter()
        .enumerate()
        .map(|(k, dims)| {
            let sizes: String = dims.iter().map(|d| format!("[n{d}]")).collect();
            format!("(a{k}: {sizes}f64)")
        })
        .collect();
    let names: Vec<String> = (0..inputs.len()).map(|k| format!("a{k}")).collect();
    let sizes: String = (0..loops).map(|l| format!("[n{l}] ")).collect();
    let shape: String = results.iter().map(|l| format!("[n{l}]")).collect();
    let mut total = "f64.sum (map (\\x -> x * x) out)".to_string();
    let mut flat = "out".to_string();
    for _ in 1..results.len() {
        flat = format!("(flatten {flat})");
    }
    total = total.replace("out", &flat);
    let (params, names) = (params.join(" "), names.join(" "));
    let text = format!(
        "entry product {sizes}{params} : {shape}f64 =\n  {sum}\nentry loss {sizes}{params} : f64 =\n  let out = product {names} in {total}\n"
    );
    let mut args = Vec::new();
    for dims in &inputs {
        let shape: Vec<usize> = dims.iter().map(|d| extents[*d]).collect();
        args.push(array(numbers, &shape));
    }
    Contraction { text, args, is_product: (!conditional).then_some(has_row && has_column && is_summed) }
}

/// How the module runs: as it was lowered, or with so many lanes of a machine with registers of 8 lanes.
#[derive(Clone, Copy, Debug)]
enum How {
    Plain,
    Lanes(usize),
    /// Contractions of any size in tiles.
    Tiles(usize),
}

/// The results of kernel IR, and its text.
fn kernel(program: &Program, fun: FunId, args: &[Value], how: How) -> (Vec<f64>, Module) {
    let (mut module, id) = lower(program, fun).expect("native");
    if let How::Lanes(lanes) | How::Tiles(lanes) = how {
        let mut sizes = Vec::new();
        for arg in args {
            let shape = if let Value::Array(a) = arg { a.shape.to_vec() } else { Vec::new() };
            sizes.push(None);
            sizes.extend(shape.iter().map(|n| Some(*n as i64)));
            sizes.extend(shape.iter().map(|_| None));
        }
        // In tiles for sizes that were not expected.
        let sizes = if let How::Tiles(_) = how { Vec::new() } else { vec![(id, sizes)] };
        let tiles = if let How::Tiles(_) = how { [1.0; 4] } else { [f64::INFINITY; 4] };
        let (most, model, grain) = (2 * lanes, Model { tiles, ..Model::machine(8) }, Some(500.0));
        let options =
            schedule::Options { lanes, most, model, grain, relaxed: false, sizes, without: Vec::new() };
        schedule(&mut module, &options);
    }
    let mut memory = Memory::new(1 << 24);
    let mut words: Vec<Word> = Vec::new();
    for (p, value) in program.funs[fun].params.iter().zip(args) {
        to_words(&mut memory, value, &program.vars[*p].ty, &mut words).expect("arguments");
    }
    let options = run::Options { steps: 400_000_000, backwards: false };
    let results = run(&module, id, &words, &mut memory, options).expect("it runs");
    let mut words = results.into_iter();
    let read = |t: &Type| from_words(&memory, t, &mut words).expect("values").floats();
    (program.funs[fun].results.iter().flat_map(read).collect(), module)
}

/// Compares an entry point, or its gradient in all parameters, with the interpreter. Gives the kernel IR in 16 lanes.
fn agrees(text: &str, entry: &str, args: &[Value], gradient: bool) -> Module {
    agrees_in_all(&session(text), entry, args, gradient).0
}

fn session(text: &str) -> Session {
    Session::compile("program.fut", text, Settings::default())
        .unwrap_or_else(|e| panic!("{text}\n{}", e.render()))
}

/// The same, with the number of contractions that are put in tiles, whatever their size.
fn agrees_in_all(session: &Session, name: &str, args: &[Value], gradient: bool) -> (Module, usize) {
    let entry = session.entry(Some(name)).expect("an entry");
    let mut args = args.to_vec();
    let ready = if gradient {
        let all: Vec<String> = (0..args.len()).map(|k| format!("a{k}")).collect();
        args.push(Value::f64(1.0));
        let wanted = session.select(&entry, &Wrt::parse(&all.join(","))).expect("parameters");
        session.derivative(&entry, Kind::Vjp, &wanted, &mut |_, _| {})
    } else {
        session.primal(&entry)
    };
    let ready = ready.expect("differentiable");
    let compiled = Compiled::new(&ready.program);
    let expected = compiled.run(ready.fun, &args, &Options::default()).expect("the interpreter runs it");
    let expected: Vec<f64> = expected.results.iter().flat_map(Value::floats).collect();
    let largest = expected.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    let (mut code, mut tiles) = (Module::default(), 0);
    for how in [How::Plain, How::Tiles(2), How::Tiles(8), How::Lanes(2), How::Lanes(16)] {
        let (found, here) = kernel(&ready.program, ready.fun, &args, how);
        let far = |(x, y): &(&f64, &f64)| (*x - *y).abs() > 1e-12 * largest || x.is_nan();
        let wrong = found.iter().zip(&expected).enumerate().find(|(_, pair)| far(pair));
        assert!(
            found.len() == expected.len() && wrong.is_none(),
            "gradient {gradient}, {how:?}\n{}\n{}\nfound and expected: {wrong:?}",
            pullback_core::print::print(&ready.program),
            print(&here)
        );
        if let How::Tiles(8) = how {
            tiles = named(&here, "columns").into_iter().filter(|ins| allocations(ins)).count();
        }
        code = here;
    }
    (code, tiles)
}

fn array(numbers: &mut Numbers, shape: &[usize]) -> Value {
    let count = shape.iter().product();
    Value::f64_array(shape, &(0..count).map(|_| numbers.float()).collect::<Vec<_>>())
}

#[test]
fn random_contractions_and_their_gradients_have_the_values_of_the_interpreter() {
    let seed = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let count = std::env::var("COUNT").ok().and_then(|s| s.parse().ok()).unwrap_or(60);
    let mut numbers = Numbers(seed);
    let (mut jammed, mut products, mut tiled) = (0, 0, 0);
    for _ in 0..count {
        let Contraction { text, args, is_product } = contraction(&mut numbers);
        for (entry, gradient) in [("product", false), ("loss", true)] {
            let (code, tiles) = agrees_in_all(&session(&text), entry, &args, gradient);
            jammed += named(&code, "group").into_iter().filter(|ins| loops(ins)).count();
            let expected = is_product.map(usize::from);
            assert!(gradient || expected.is_none_or(|n| tiles == n), "{tiles} tiled\n{text}");
            (products, tiled) = (products + expected.unwrap_or(0), tiled + tiles);
        }
    }
    assert!(products > count / 8 && tiled > products, "{tiled} tiled, {products} products");
    // Otherwise nothing is tested but loops one by one.
    assert!(jammed > count / 2, "{jammed} jammed loops in {count} contractions");
}

/// Elements of matrices: rows share nothing but the start of their loops.
const ELEMENTS: &str = "
entry main [n] [d] (a0: [n][d]f64) (a1: [n][d]f64) : [n][d]f64 =
  tabulate_2d n d (\\i j -> a0[i, j] * a1[i, j] + f64.sqrt (a1[i, j] * a1[i, j]))
";

/// How many iterations each loop over groups runs together: by so much the number of the group is multiplied.
fn sizes_of_groups(module: &Module) -> Vec<Operand> {
    let of = |f: &Function| {
        let is_group = |a: &Operand| a.as_reg().is_some_and(|r| f.regs[r].hint == "group");
        let size = |ins: &Ins| match ins {
            Ins::Prim { prim: Prim::Op(Op::Mul, _), args, .. } if is_group(&args[0]) => Some(args[1]),
            _ => None,
        };
        all(&f.body).into_iter().filter_map(size).collect::<Vec<_>>()
    };
    module.functions.iter().flat_map(of).collect()
}

#[test]
fn iterations_that_share_nothing_are_two_at_most() {
    let mut numbers = Numbers(5);
    let args = [array(&mut numbers, &[33, 9]), array(&mut numbers, &[33, 9])];
    let code = agrees(ELEMENTS, "main", &args, false);
    let sizes = sizes_of_groups(&code);
    assert!(!sizes.is_empty() && sizes.iter().all(|size| *size == Operand::i64(2)), "{}", print(&code));
}

/// What is summed goes down the columns of `a0`; something is done with each sum.
const DOWN: &str = "
entry main [n] [d] (a0: [n][d]f64) (a1: [n]f64) (a2: [d]f64) : [d]f64 =
  map2 (\\column w -> w * w + f64.sum (map2 (*) column a1)) (transpose a0) a2
";

#[test]
fn sums_down_columns_are_turned_inside_out() {
    let mut numbers = Numbers(3);
    for (n, d) in [(900, 100), (70, 39), (1, 40), (0, 16)] {
        let args = [array(&mut numbers, &[n, d]), array(&mut numbers, &[n]), array(&mut numbers, &[d])];
        let code = agrees(DOWN, "main", &args, false);
        assert!(n < 900 || count(&code, additions) > 0, "{}", print(&code));
    }
}

/// The sum of a row and functions of it want different loops in lanes.
const ROWS: &str = "
entry main [n] [d] (a0: [n][d]f64) (a1: [d]f64) (a2: [n]f64) : (f64, [n]f64) =
  let scores = map2 (\\row y -> f64.exp (f64.sum (map2 (*) row a1)) * y) a0 a2
  in (f64.sum scores, scores)
";

#[test]
fn sums_of_rows_and_functions_of_them_are_two_loops() {
    let mut numbers = Numbers(4);
    for (n, d) in [(100, 64), (67, 100), (3, 70), (0, 1)] {
        let args = [array(&mut numbers, &[n, d]), array(&mut numbers, &[d]), array(&mut numbers, &[n])];
        let code = agrees(ROWS, "main", &args, false);
        assert!(n < 100 || !named(&code, "kept").is_empty(), "{}", print(&code));
    }
}

/// What a step leaves for the next is used before the loop inside in `before`, after it in `after`.
const STEPS: &str = "
entry before [n] [k] [d] (a0: [n][d]f64) (a1: [k][d]f64) : [n]f64 =
  map (\\x -> loop s = 0.5 for c < k do
                let t = f64.sin s in 0.1 * f64.sum (map2 (\\p q -> p * q + t) x a1[c])) a0
entry after [n] [k] [d] (a0: [n][d]f64) (a1: [k][d]f64) : [n]f64 =
  map (\\x -> loop s = 0.5 for c < k do
                let d = f64.sum (map2 (*) x a1[c]) in f64.sin s + d) a0
";

#[test]
fn steps_run_together_where_what_they_hand_on_stays_between_two_loops() {
    let mut numbers = Numbers(5);
    for k in [0, 1, 7, 8, 21] {
        let args = [array(&mut numbers, &[40, 6]), array(&mut numbers, &[k, 6])];
        agrees(STEPS, "before", &args, false);
        let code = agrees(STEPS, "after", &args, false);
        assert!(k < 8 || named(&code, "group").into_iter().any(loops), "{}", print(&code));
    }
}

/// Few directions of few coordinates; sums to which all coordinates add; rows that are added to one row.
const FEW: &str = "
entry directions [n] [k] [d] (a0: [n][d]f64) (a1: [k][COUNT][d]f64) : [n][k][COUNT]f64 =
  map (\\x -> map (map (\\row -> f64.sum (map2 (*) row x))) a1) a0
entry added [n] [k] [d] (a0: [n][d]f64) (a1: [k][COUNT][d]f64) : f64 =
  f64.sum (map (\\x -> f64.sum (map (\\rows -> f64.sum (map (\\row -> f64.sin (f64.sum (map2 (*) row x))) rows)) a1)) a0)
entry onto [d] (a0: [d]f64) (a1: [COUNT][d]f64) : f64 =
  f64.sum (map (\\row -> f64.sin (f64.sum (map2 (*) row a0))) a1)
";

/// A loop over coordinates is run whole, and then the loop around it has its turn.
#[test]
fn loops_that_always_run_a_few_times_run_whole() {
    let mut numbers = Numbers(8);
    let mut whole = 0;
    for count in [2, 3, 5, 7, 8, 9] {
        let text = FEW.replace("COUNT", &count.to_string());
        let args = [array(&mut numbers, &[40, 11]), array(&mut numbers, &[9, count, 11])];
        let code = agrees(&text, "directions", &args, false);
        let is_first = |ins: &&Ins| matches!(ins, Ins::Set { value, .. } if *value == Operand::i64(0));
        whole += named(&code, "group").into_iter().filter(is_first).count();
        agrees(&text, "added", &args, true);
        let args = [array(&mut numbers, &[67]), array(&mut numbers, &[count, 67])];
        agrees(&text, "onto", &args, true);
    }
    assert!(whole > 0);
}

/// Products with factors as they are and turned, batches outside and inside, functions before and after.
const PRODUCTS: &str = "
entry ab [n] [k] [m] (a0: [n][k]f64) (a1: [k][m]f64) : [n][m]f64 =
  map (\\row -> map (\\column -> f64.sum (map2 (*) row column)) (transpose a1)) a0
entry atb [n] [k] [m] (a0: [k][n]f64) (a1: [k][m]f64) : [n][m]f64 =
  map (\\row -> map (\\column -> f64.sum (map2 (*) row column)) (transpose a1)) (transpose a0)
entry abt [n] [k] [m] (a0: [n][k]f64) (a1: [m][k]f64) : [n][m]f64 =
  map (\\row -> map (\\column -> f64.sum (map2 (*) row column)) a1) a0
entry layer [n] [k] [m] (a0: [n][k]f64) (a1: [m][k]f64) : [n][m]f64 =
  map (\\row -> map (\\weights -> f64.sin (f64.sum (map2 (\\x w -> f64.exp x * w) row weights) + row[0])) a1) a0
entry batch [p] [n] [k] [m] (a0: [p][n][k]f64) (a1: [p][k][m]f64) : [p][n][m]f64 =
  map2 (\\a b -> map (\\row -> map (\\column -> f64.sum (map2 (*) row column)) (transpose b)) a) a0 a1
entry inside [p] [n] [k] [m] (a0: [p][n][k]f64) (a1: [p][k][m]f64) : [n][p][m]f64 =
  tabulate n (\\i -> tabulate p (\\q -> tabulate m (\\j ->
    f64.sum (map (\\l -> a0[q, i, l] * a1[q, l, j]) (iota k)))))
entry two [p] [n] [k] [m] (a0: [p][n][k]f64) (a1: [p][k][m]f64) : [n][m]f64 =
  tabulate n (\\i -> tabulate m (\\j ->
    f64.sum (map (\\q -> f64.sum (map (\\l -> a0[q, i, l] * a1[q, l, j]) (iota k))) (iota p))))
";

#[test]
fn products_of_any_size_are_put_in_tiles() {
    let mut numbers = Numbers(6);
    let sizes = [
        [0, 8, 8],
        [8, 0, 8],
        [8, 8, 0],
        [1, 1, 1],
        [1, 65, 9],
        [7, 9, 63],
        [8, 8, 8],
        [9, 7, 65],
        [63, 64, 24],
        [65, 8, 64],
        [100, 3, 25],
        [97, 2, 1],
        [3, 200, 17],
        [193, 1, 49],
    ];
    let session = session(PRODUCTS);
    for entry in ["ab", "atb", "abt", "layer", "batch", "inside", "two"] {
        for [n, k, m] in sizes {
            let (mut a, mut b) = (vec![n, k], vec![k, m]);
            match entry {
                "atb" => a.reverse(),
                "abt" | "layer" => b.reverse(),
                "batch" | "inside" | "two" => {
                    a.insert(0, 2);
                    b.insert(0, 2);
                }
                _ => {}
            }
            if entry == "layer" && k == 0 {
                continue;
            }
            let args = [array(&mut numbers, &a), array(&mut numbers, &b)];
            let (_, tiles) = agrees_in_all(&session, entry, &args, false);
            assert!(tiles == 1, "{entry}: {tiles}");
        }
    }
}
