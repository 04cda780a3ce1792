//! The recurrence `r[i] = y_bar[i] + (∂(y[i] ⊕ a[i+1]) / ∂y[i])ᵀ r[i+1]` of a reversed scan, computed by a scan.
//!
//! Source: Schenck et al., IFL 2023, section 5 (Jacobians); Paszke et al., FHPNC 2021 (lifted scan).
//! Jacobians: a step of the recurrence is the affine map `r ↦ y_bar[i] + M r`; maps compose associatively whatever the
//! operator is. `M` is found by reversing the step once per component with a unit cotangent. What is statically zero in
//! it, and stays so in products (the transitive closure of the pattern of its entries), is left out; ones on the diagonal
//! that stay one are left out; and entries that are equal in every step and stay equal in products are computed once.
//! If the products would still cost more than the other rule, that one is taken. Where the operator has partial derivatives
//! that may be infinite, its entries are multiplied as those are: what was multiplied first is the tangent.
//! Lifted: `(x, a, z)` with the prefix `x`, the combined elements `a` and the cotangent `z` that arrives; two neighbours
//! combine to `(x, a ⊕ a', z + vjp (\x -> x ⊕ a) x z')`. No Jacobian is needed, so elements may be of any type; it is
//! associative if derivatives do not depend on brackets (smooth operators).

use super::config::ScanRule;
use super::cotangent::{Cotangent, plus};
use super::desc::Desc;
use super::operator::{Fold, applied, is_straight};
use super::reverse::{Env, Reverse};
use crate::contract::Unsupported;
use crate::regularity::may_be_bracketed_anew;
use crate::tangent::{emit_product, product};
use pullback_base::index::IdMap;
use pullback_core::traverse::for_each_stm;
use pullback_core::{Atom, Body, Builder, Exp, Lam, Soac, Stm, Type, Var};
use pullback_prim::{Op, Prim, Product, Scalar};

/// What a lifted operator costs, in steps of the operator: the operator, and its derivative.
const LIFTED_COST: usize = 4;

impl<'p> Reverse<'p> {
    /// The completed cotangents `r` of the results of a scan, absent for what is inactive.
    pub(crate) fn completed(
        &mut self,
        rule: ScanRule,
        stm: &Stm,
        fold: &Fold,
        cts: &[Cotangent],
    ) -> Result<Vec<Cotangent>, Unsupported> {
        let active: Vec<usize> = (0..fold.count()).filter(|&k| self.is_active(fold.left(k).into())).collect();
        let bars: Vec<Cotangent> =
            active.iter().map(|&k| self.dense_of(stm.pat[k].into(), &cts[k])).collect();
        let by_jacobians = match rule {
            ScanRule::Jacobians => self.by_jacobians(stm, fold, &active, &bars)?,
            ScanRule::Chosen | ScanRule::Lifted | ScanRule::Backward => None,
        };
        let done = match by_jacobians {
            Some(done) => done,
            None => self.by_lifting(stm, fold, &active, &bars)?,
        };
        let mut out = vec![Cotangent::absent(); fold.count()];
        for (k, c) in active.into_iter().zip(done) {
            out[k] = c;
        }
        Ok(out)
    }

    /// Element `i + 1` beside element `i`; beside the last one stands some element.
    fn following(&mut self, fold: &Fold) -> Vec<Atom> {
        let rotate = |&a: &Atom| self.b.emit(Exp::Rotate(a, Atom::i64(1)), "next");
        fold.arrays.iter().map(rotate).collect()
    }

    fn reversed(&mut self, arrays: &[Atom]) -> Vec<Atom> {
        arrays.iter().map(|&a| self.b.emit(Exp::Reverse(a), "rev")).collect()
    }

    /// Scans from the right; of the results, the first `keep`.
    fn scan_from_right(&mut self, fold: Fold, keep: usize) -> Vec<Atom> {
        let arrays = self.reversed(&fold.arrays);
        let scanned = self.b.emit_all(Fold { arrays, ..fold }.exp(), "r");
        let scanned: Vec<Atom> = scanned.into_iter().take(keep).map(Atom::Var).collect();
        self.reversed(&scanned)
    }

    // ---- Jacobians ----

    /// Nothing where the products of Jacobians cost more than lifting would.
    fn by_jacobians(
        &mut self,
        stm: &Stm,
        fold: &Fold,
        active: &[usize],
        bars: &[Cotangent],
    ) -> Result<Option<Vec<Cotangent>>, Unsupported> {
        let s = self.b.scalar(fold.left(active[0]).into());
        let next = self.following(fold);
        let is = self.b.emit(Exp::Iota(fold.width), "is");
        let last = self.b.op2(Op::Sub, fold.width, Atom::i64(1));
        let inputs: Vec<Atom> = stm.pat.iter().map(|&y| y.into()).chain(next).chain([is]).collect();
        let params: Vec<Var> = inputs
            .iter()
            .map(|&a| {
                let elem = self.b.elem(a);
                self.b.fresh(elem, "x")
            })
            .collect();
        let atoms: Vec<Atom> = params.iter().map(|&v| v.into()).collect();
        let (operands, i) = atoms.split_at(2 * fold.count());
        let (lefts, rights) = operands.split_at(fold.count());
        self.b.open();
        self.b.open();
        let entries = self.jacobian(fold, active, s, lefts, rights)?;
        let mut step = self.b.close(Vec::new());
        let matrix = Matrix::of(&entries, &step, s);
        let dense = matrix.products() > LIFTED_COST * fold.lam.body.stms.len();
        if dense && self.config.scan == ScanRule::Chosen && may_be_bracketed_anew(self.b.program, &fold.lam) {
            self.b.close(Vec::new());
            return Ok(None);
        }
        step.result = matrix.values.clone();
        // Nothing comes from beyond the last element, whatever the derivative there would be.
        let beyond = self.b.op2(Op::Eq, i[0], last);
        let nothing = Body { stms: Vec::new(), result: vec![Atom::Const(s.zero()); matrix.values.len()] };
        let columns = if matrix.values.is_empty() {
            self.b.close(Vec::new());
            Vec::new()
        } else {
            let values = self.b.emit_all(Exp::If(beyond, nothing, step), "m");
            let body = self.b.close(values.into_iter().map(Atom::Var).collect());
            let map = Soac::Map { width: fold.width, lam: Lam { params, body }, arrays: inputs };
            self.b.emit_all(Exp::Soac(map), "m")
        };
        let zeros = active.iter().map(|_| Atom::Const(s.zero()));
        let neutral = zeros.chain(matrix.neutral(s)).collect();
        let arrays = bars.iter().map(|c| c.atoms[0]).chain(columns.into_iter().map(Atom::Var)).collect();
        let product = self.product_of_entries(&fold.lam.body);
        let lam = matrix.composition(&mut self.b, s, product);
        let maps = Fold { width: fold.width, lam, neutral, arrays, commutative: None };
        let r = self.scan_from_right(maps, active.len());
        Ok(Some(bars.iter().zip(r).map(|(c, r)| Cotangent::new(c.desc.clone(), vec![r])).collect()))
    }

    /// How Jacobians of an operator with this body are multiplied.
    fn product_of_entries(&self, body: &Body) -> Product {
        let mut is_plain = true;
        for_each_stm(body, &mut |stm| match &stm.exp {
            Exp::Prim(prim, args) => {
                is_plain &=
                    (0..args.len()).all(|i| product(self.b.program, *prim, i, args) == Product::Plain);
            }
            Exp::Call(..) => is_plain &= self.b.program.ieee_partials,
            _ => {}
        });
        if is_plain { Product::Plain } else { Product::Strong }
    }

    /// `m[j][i]`: the derivative of component `i` of the step by component `j` of its left argument.
    fn jacobian(
        &mut self,
        fold: &Fold,
        active: &[usize],
        s: Scalar,
        lefts: &[Atom],
        rights: &[Atom],
    ) -> Result<Vec<Vec<Option<Atom>>>, Unsupported> {
        let unit = Cotangent::new(Desc::Real(s), vec![Atom::Const(s.one())]);
        let mut rows = Vec::new();
        if is_straight(&fold.lam.body) {
            // One forward part serves all components.
            let (xs, body) = self.step_of_left(&fold.lam, lefts, rights);
            self.b.open();
            for &i in active {
                let mut env = Env::default();
                self.contribute(&mut env, body.result[i], unit.clone());
                self.stms(&body.stms, &mut env)?;
                rows.push(xs.iter().map(|&x| self.take(&mut env, x)).collect::<Vec<Cotangent>>());
            }
            let reverse = self.b.close(Vec::new());
            for stm in body.stms.into_iter().chain(reverse.stms) {
                self.b.emit_stm(stm);
            }
        } else {
            for &i in active {
                let mut seeds = vec![Cotangent::absent(); fold.count()];
                seeds[i] = unit.clone();
                rows.push(self.left_vjp(&fold.lam, lefts, rights, &seeds)?);
            }
        }
        let entry = |i: usize, j: usize| rows[i][active[j]].atoms.first().copied();
        let size = active.len();
        Ok((0..size).map(|j| (0..size).map(|i| entry(i, j)).collect()).collect())
    }

    // ---- lifted ----

    fn by_lifting(
        &mut self,
        stm: &Stm,
        fold: &Fold,
        active: &[usize],
        bars: &[Cotangent],
    ) -> Result<Vec<Cotangent>, Unsupported> {
        let count = fold.count();
        let bar_atoms: Vec<Atom> = bars.iter().flat_map(|c| c.atoms.clone()).collect();
        let next = self.following(fold);
        let ys = stm.pat.iter().map(|&y| Atom::Var(y));
        let arrays: Vec<Atom> = bar_atoms.iter().copied().chain(ys).chain(next).collect();
        let mut neutral: Vec<Atom> = active.iter().flat_map(|&k| self.element_zeros(fold, k)).collect();
        neutral.extend(fold.neutral.iter().chain(&fold.neutral));

        let types: Vec<Type> = arrays.iter().map(|&a| self.b.elem(a)).collect();
        let group = |s: &mut Self| -> Vec<Var> { types.iter().map(|t| s.b.fresh(t.clone(), "x")).collect() };
        // From the right: the first argument is what has been combined so far, the second stands to its left.
        let (after, here) = (group(self), group(self));
        let atoms = |vs: &[Var]| -> Vec<Atom> { vs.iter().map(|&v| v.into()).collect() };
        let parts = |vs: &[Var]| {
            let (z, rest) = vs.split_at(bar_atoms.len());
            let (x, a) = rest.split_at(count);
            (atoms(z), atoms(x), atoms(a))
        };
        let ((after_z, _, after_a), (here_z, x, a)) = (parts(&after), parts(&here));
        let descs: Vec<Desc> =
            bars.iter().map(|c| c.desc.element().cloned().unwrap_or(Desc::Absent)).collect();
        let mut seeds = vec![Cotangent::absent(); count];
        for (&k, c) in active.iter().zip(super::cotangent::split(&descs, &after_z)) {
            seeds[k] = c;
        }
        self.b.open();
        let arrived = self.left_vjp(&fold.lam, &x, &a, &seeds)?;
        let mut result = Vec::new();
        for (&k, own) in active.iter().zip(super::cotangent::split(&descs, &here_z)) {
            let total = plus(&mut self.b, own.clone(), arrived[k].clone());
            result.extend(self.converted(&total, &own));
        }
        result.extend(x);
        let args: Vec<Atom> = a.iter().chain(&after_a).copied().collect();
        result.extend(applied(&mut self.b, &fold.lam, &args));
        let body = self.b.close(result);
        let params = after.into_iter().chain(here).collect();
        let lam = Lam { params, body };
        let lifted = Fold { width: fold.width, lam, neutral, arrays, commutative: None };
        let mut r = self.scan_from_right(lifted, bar_atoms.len()).into_iter();
        Ok(bars
            .iter()
            .map(|c| Cotangent::new(c.desc.clone(), r.by_ref().take(c.atoms.len()).collect()))
            .collect())
    }
}

/// An entry of a matrix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    /// Zero in every product.
    Zero,
    /// One in every product.
    One,
    /// The value of this number.
    Value(usize),
}

/// The form of the matrices of all steps and of their products.
struct Matrix {
    entries: Vec<Vec<Entry>>,
    /// The values of a step, one for each class of entries.
    values: Vec<Atom>,
    /// Whether a class stands on the diagonal.
    diagonal: Vec<bool>,
}

impl Matrix {
    /// The form of products of matrices with these entries, which the body computes.
    fn of(entries: &[Vec<Option<Atom>>], body: &Body, s: Scalar) -> Matrix {
        let size = entries.len();
        let reach = closure(entries);
        let one = Some(Atom::Const(s.one()));
        let alone = |i: usize| (0..size).all(|j| j == i || !reach[i][j] || !reach[j][i]);
        let mut numbers = Numbers::new(body);
        let mut places = Vec::new();
        let mut classes = Vec::new();
        for (i, row) in entries.iter().enumerate() {
            for (j, &entry) in row.iter().enumerate() {
                let stays_one = i == j && entry == one && alone(i);
                if reach[i][j] && !stays_one {
                    let value = entry.unwrap_or(Atom::Const(s.zero()));
                    places.push((i, j, value));
                    classes.push(2 * numbers.of(value) + usize::from(i == j));
                }
            }
        }
        let table = |classes: &[usize]| -> Vec<Vec<Entry>> {
            let mut table = vec![vec![Entry::Zero; size]; size];
            for (i, row) in table.iter_mut().enumerate() {
                row[i] = Entry::One;
            }
            for (&(i, j, _), &class) in places.iter().zip(classes) {
                table[i][j] = Entry::Value(class);
            }
            table
        };
        // Two entries stay equal if their products are made of equal entries.
        let mut classes = numbered(&classes);
        loop {
            let now = table(&classes);
            let product = |&(i, j, _): &(usize, usize, Atom)| {
                let mut terms: Vec<(usize, usize)> = (0..size)
                    .filter(|&k| now[i][k] != Entry::Zero && now[k][j] != Entry::Zero)
                    .map(|k| (number_of(now[i][k]), number_of(now[k][j])))
                    .collect();
                terms.sort_unstable();
                terms
            };
            let finer: Vec<_> = classes.iter().copied().zip(places.iter().map(product)).collect();
            let finer = numbered(&finer);
            if finer == classes {
                break;
            }
            classes = finer;
        }
        let mut values = Vec::new();
        let mut diagonal = Vec::new();
        for (&(i, j, value), &class) in places.iter().zip(&classes) {
            if class == values.len() {
                values.push(value);
                diagonal.push(i == j);
            }
        }
        Matrix { entries: table(&classes), values, diagonal }
    }

    /// The number of multiplications in a composition.
    fn products(&self) -> usize {
        let size = self.entries.len();
        let is_value = |e: Entry| matches!(e, Entry::Value(_));
        let of_vector = self.entries.iter().flatten().filter(|&&e| is_value(e)).count();
        let of_class = |class: usize| {
            let place = (0..size * size).find(|p| self.entries[p / size][p % size] == Entry::Value(class));
            let terms = |p: usize| {
                let factors = (0..size).map(|k| (self.entries[p / size][k], self.entries[k][p % size]));
                factors.filter(|&(x, y)| is_value(x) && is_value(y)).count()
            };
            place.map_or(0, terms)
        };
        of_vector + (0..self.values.len()).map(of_class).sum::<usize>()
    }

    /// The values of the identity.
    fn neutral(&self, s: Scalar) -> impl Iterator<Item = Atom> {
        self.diagonal.iter().map(move |&on| Atom::Const(if on { s.one() } else { s.zero() }))
    }

    /// The operator on `(b, m)`: `(b, m)` then `(b', m')` is `(b' + m' b, m' m)`.
    fn composition(&self, b: &mut Builder<'_>, s: Scalar, product: Product) -> Lam {
        let times =
            |b: &mut Builder<'_>, after: Factor, before: Factor| times(b, (product, s), after, before);
        let size = self.entries.len();
        let count = size + self.values.len();
        let types = vec![Type::Scalar(s); 2 * count];
        b.lam(&types, "m", |b, params| {
            let (first, second) = params.split_at(count);
            let mut result = Vec::new();
            for (i, row) in self.entries.iter().enumerate() {
                let mut sum: Atom = second[i].into();
                for (k, &entry) in row.iter().enumerate() {
                    let before = Factor::Value(first[k].into());
                    if let Some(term) = times(b, Factor::of(entry, size, second), before) {
                        sum = b.op2(Op::Add, sum, term);
                    }
                }
                result.push(sum);
            }
            for class in 0..self.values.len() {
                let place =
                    (0..size * size).find(|p| self.entries[p / size][p % size] == Entry::Value(class));
                let Some((i, j)) = place.map(|p| (p / size, p % size)) else { continue };
                let mut sum: Option<Atom> = None;
                for k in 0..size {
                    let left = Factor::of(self.entries[i][k], size, second);
                    let right = Factor::of(self.entries[k][j], size, first);
                    let Some(term) = times(b, left, right) else { continue };
                    sum = Some(sum.map_or(term, |sum| b.op2(Op::Add, sum, term)));
                }
                result.push(sum.unwrap_or(Atom::Const(s.zero())));
            }
            result
        })
    }
}

/// A factor of a product.
#[derive(Clone, Copy)]
enum Factor {
    Zero,
    One,
    Value(Atom),
}

impl Factor {
    /// An entry, given the components and values of a map.
    fn of(entry: Entry, size: usize, map: &[Var]) -> Factor {
        match entry {
            Entry::Zero => Factor::Zero,
            Entry::One => Factor::One,
            Entry::Value(class) => Factor::Value(map[size + class].into()),
        }
    }
}

/// The product of a factor with one that comes from before it; nothing if it is zero.
fn times(
    b: &mut Builder<'_>,
    (product, s): (Product, Scalar),
    after: Factor,
    before: Factor,
) -> Option<Atom> {
    match (after, before) {
        (Factor::Zero, _) | (_, Factor::Zero) => None,
        (Factor::One, Factor::One) => Some(Atom::Const(s.one())),
        (Factor::One, Factor::Value(x)) | (Factor::Value(x), Factor::One) => Some(x),
        (Factor::Value(after), Factor::Value(before)) => Some(emit_product(b, product, after, before)),
    }
}

fn number_of(entry: Entry) -> usize {
    match entry {
        Entry::Zero => 0,
        Entry::One => 1,
        Entry::Value(class) => class + 2,
    }
}

/// Equal things get equal numbers, in the order in which they occur.
fn numbered<T: PartialEq>(things: &[T]) -> Vec<usize> {
    let mut known: Vec<&T> = Vec::new();
    let mut number = |t| {
        known.iter().position(|&k| k == t).unwrap_or_else(|| {
            known.push(t);
            known.len() - 1
        })
    };
    things.iter().map(&mut number).collect()
}

/// Which entries may be different from zero in a product of any number of matrices, none included.
fn closure(entries: &[Vec<Option<Atom>>]) -> Vec<Vec<bool>> {
    let size = entries.len();
    let mut reach: Vec<Vec<bool>> =
        (0..size).map(|i| (0..size).map(|j| i == j || entries[i][j].is_some()).collect()).collect();
    for k in 0..size {
        for i in 0..size {
            for j in 0..size {
                reach[i][j] |= reach[i][k] && reach[k][j];
            }
        }
    }
    reach
}

/// Numbers for the values in a body, equal if they are computed alike.
struct Numbers {
    known: IdMap<Var, usize>,
    forms: Vec<Form>,
}

/// How a value is computed.
#[derive(PartialEq)]
enum Form {
    Constant(Atom),
    Prim(Prim, Vec<usize>),
    /// Known by its name only.
    Name(Var),
}

impl Numbers {
    fn new(body: &Body) -> Numbers {
        let mut numbers = Numbers { known: IdMap::new(), forms: Vec::new() };
        for stm in &body.stms {
            let [y] = stm.pat[..] else { continue };
            let number = match &stm.exp {
                Exp::Atom(a) => numbers.of(*a),
                Exp::Prim(prim, args) => {
                    let args = args.iter().map(|&a| numbers.of(a)).collect();
                    numbers.of_form(Form::Prim(*prim, args))
                }
                _ => continue,
            };
            numbers.known.insert(y, number);
        }
        numbers
    }
    fn of(&mut self, a: Atom) -> usize {
        match a {
            Atom::Const(_) => self.of_form(Form::Constant(a)),
            Atom::Var(v) => match self.known.get(&v) {
                Some(&number) => number,
                None => self.of_form(Form::Name(v)),
            },
        }
    }
    fn of_form(&mut self, form: Form) -> usize {
        self.forms.iter().position(|f| *f == form).unwrap_or_else(|| {
            self.forms.push(form);
            self.forms.len() - 1
        })
    }
}
