//! Dead-code elimination at the granularity of single results.
//!
//! What it removes: statements nobody needs, and single results and inputs of `map`, `reduce`, `scan`,
//! `reduce_by_index`, `match`, `if`, loops (state that does not influence a needed result, found for cyclic
//! dependencies too; stacked values), `#[recompute]` and `#[store]` bodies, `par`, accumulators whose final value is
//! not needed together with everything added to them (rule E11 of the Fast CHAD notes), and components of products
//! that are only projected.
//!
//! How: one dependence graph over variables and statements of the whole body, marked from the results. "Statement
//! `s` is needed" implies that the statement around it is needed. The mark phase is optimistic, so state that only
//! feeds itself is dead without any fixpoint per loop; cost is linear in the size of the body, and a few bytes for each
//! variable of the program.
//!
//! Effects: adding to an accumulator is needed if and only if an accumulator that it may reach (through views, and
//! through `if` and `match` that choose between accumulators) is needed. Accumulators bound outside the pruned code
//! are needed unless [`Options::dead_accs`] says otherwise. `assert` and checks are always needed unless [`Options::asserts`] is
//! off, and so are calls of functions that can reach one. Any other expression that can stop a program
//! (indexing, integer division, ..) and any loop that may not end is removed if its results are not needed: pruning
//! can make a failing program succeed, never the other way round. Where that must not be, checks are made before
//! (`pullback_opt::checks`).
//!
//! Kept: variables keep their names; a statement that is needed for its effects only, and would have no result left,
//! gets one new `bool` variable. The operands and results of `vjp`, `jvp` and custom rules stay as they are (their
//! numbers are tied to each other); so do the interfaces of functions.

use crate::ir::{Atom, Body, Exp, FunId, Lam, Loop, LoopForm, Origin, Program, Soac, Stm, Var, VarInfo};
use crate::traverse::{for_each_stm, reachable_functions};
use crate::types::Type;
use pullback_base::index::{IdMap, IdSet, Index};

/// What to keep besides the results.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether `assert` and checks are kept. Code that runs a second time on the same values can do without.
    pub asserts: bool,
    /// Accumulators bound outside whose contents are not needed.
    pub dead_accs: IdSet<Var>,
}

impl Default for Options {
    fn default() -> Self {
        Self { asserts: true, dead_accs: IdSet::new() }
    }
}

/// Prunes every function.
pub fn prune_program(program: &mut Program) {
    let ids: Vec<FunId> = program.funs.ids().collect();
    for id in ids {
        let mut body = std::mem::take(&mut program.funs[id].body);
        prune_body(program, &mut body);
        program.funs[id].body = body;
    }
}

/// Prunes a body all of whose results are needed.
pub fn prune_body(program: &mut Program, body: &mut Body) {
    let stms = std::mem::take(&mut body.stms);
    body.stms = prune_stms(program, stms, &body.result, &Options::default());
}

/// The part of `stms` that `results` (atoms valid after them) and the effects selected by `options` need.
pub fn prune_stms(
    program: &mut Program,
    mut stms: Vec<Stm>,
    results: &[Atom],
    options: &Options,
) -> Vec<Stm> {
    let mut graph = Graph::new(program, options);
    graph.stms(&stms, None);
    let live = graph.mark(results);
    let mut sweep = Sweep { program, live, next: 0 };
    sweep.stms(&mut stms);
    stms
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Node {
    /// The variable is needed.
    Var(Var),
    /// The statement with this number (in order of writing, outer before inner) is needed.
    Stm(usize),
    /// The contents of the accumulator are needed.
    Contents(Var),
}

impl Node {
    /// Its number among the nodes of a program with so many variables.
    fn number(self, vars: usize) -> usize {
        match self {
            Node::Var(v) => v.index(),
            Node::Contents(v) => vars + v.index(),
            Node::Stm(n) => 2 * vars + n,
        }
    }
}

/// What each node needs.
struct Edges {
    /// By the number of a node: one past the number of its last edge; 0 if it has none.
    last: Vec<u32>,
    /// The node needed, and one past the number of the edge before.
    edges: Vec<(u32, u32)>,
}

impl Edges {
    fn push(&mut self, from: usize, to: usize) {
        if self.last.len() <= from {
            self.last.resize(from + 1, 0);
        }
        self.edges.push((to as u32, self.last[from]));
        self.last[from] = self.edges.len() as u32;
    }
    /// The nodes that these ones need, themselves included.
    fn reachable(&self, mut work: Vec<u32>, nodes: usize) -> Vec<bool> {
        let mut seen = vec![false; nodes];
        while let Some(node) = work.pop() {
            if std::mem::replace(&mut seen[node as usize], true) {
                continue;
            }
            let mut edge = self.last.get(node as usize).copied().unwrap_or(0);
            while let Some((to, before)) = (edge as usize).checked_sub(1).map(|e| self.edges[e]) {
                work.push(to);
                edge = before;
            }
        }
        seen
    }
}

struct Graph<'a> {
    program: &'a Program,
    options: &'a Options,
    edges: Edges,
    roots: Vec<Node>,
    /// For accumulators: those opened inside the code that they may be part of.
    accs: IdMap<Var, IdSet<Var>>,
    /// Items of products made inside the code.
    products: IdMap<Var, Vec<Atom>>,
    asserting: IdMap<FunId, bool>,
    /// One past the number of the last statement inside each statement.
    end: Vec<usize>,
}

struct Live {
    /// By the numbers of nodes.
    nodes: Vec<bool>,
    /// How many variables the program had.
    vars: usize,
    products: IdMap<Var, Vec<Atom>>,
    end: Vec<usize>,
}

impl Live {
    fn is(&self, node: Node) -> bool {
        self.nodes[node.number(self.vars)]
    }
    fn var(&self, v: Var) -> bool {
        self.is(Node::Var(v))
    }
}

impl<'a> Graph<'a> {
    fn new(program: &'a Program, options: &'a Options) -> Self {
        let vars = program.vars.len();
        Graph {
            program,
            options,
            // Room for a few edges of each variable: memory that is not used costs nothing.
            edges: Edges { last: vec![0; 2 * vars], edges: Vec::with_capacity(4 * vars) },
            roots: Vec::new(),
            accs: IdMap::new(),
            products: IdMap::new(),
            asserting: IdMap::new(),
            end: Vec::new(),
        }
    }

    fn mark(self, results: &[Atom]) -> Live {
        let vars = self.program.vars.len();
        let results = results.iter().filter_map(|a| a.var()).map(Node::Var);
        let work = self.roots.into_iter().chain(results).map(|n| n.number(vars) as u32).collect();
        let nodes = self.edges.reachable(work, 2 * vars + self.end.len());
        Live { nodes, vars, products: self.products, end: self.end }
    }

    fn edge(&mut self, from: Node, to: Node) {
        let vars = self.program.vars.len();
        self.edges.push(from.number(vars), to.number(vars));
    }
    fn needs(&mut self, from: Node, atom: Atom) {
        if let Atom::Var(v) = atom {
            self.edge(from, Node::Var(v));
        }
    }
    fn needs_all(&mut self, from: Node, atoms: &[Atom]) {
        for a in atoms {
            self.needs(from, *a);
        }
    }
    /// The accumulators opened inside that `acc` may be part of, and whether it may be part of one from outside.
    fn roots_of(&self, acc: Atom) -> (IdSet<Var>, bool) {
        let Atom::Var(v) = acc else { return (IdSet::new(), true) };
        match self.accs.get(&v) {
            Some(roots) => {
                let inner: IdSet<Var> = roots.iter().copied().filter(|r| self.is_opened(*r)).collect();
                let outer = roots.iter().any(|r| !self.is_opened(*r) && !self.options.dead_accs.contains(r));
                (inner, outer)
            }
            None => (IdSet::new(), !self.options.dead_accs.contains(&v)),
        }
    }
    fn is_opened(&self, root: Var) -> bool {
        self.accs.get(&root).is_some_and(|r| r.contains(&root))
    }
    fn alias_acc(&mut self, v: Var, of: Atom) {
        if !self.program.vars[v].ty.is_acc() {
            return;
        }
        let Atom::Var(of) = of else { return };
        let roots = self.accs.get(&of).cloned().unwrap_or_else(|| IdSet::from([of]));
        self.accs.entry(v).or_default().extend(roots);
    }
    fn effect_on(&mut self, acc: Atom, me: Node) {
        let (inner, outer) = self.roots_of(acc);
        if outer {
            self.roots.push(me);
        }
        for root in inner {
            self.edge(Node::Contents(root), me);
        }
    }
    fn may_assert(&mut self, f: FunId) -> bool {
        if !self.options.asserts {
            return false;
        }
        if let Some(known) = self.asserting.get(&f) {
            return *known;
        }
        let mut found = false;
        for g in reachable_functions(self.program, [f]) {
            for_each_stm(&self.program.funs[g].body, &mut |s| {
                found |= matches!(s.exp, Exp::Assert(..) | Exp::Check(..))
            });
        }
        self.asserting.insert(f, found);
        found
    }

    fn stms(&mut self, stms: &[Stm], parent: Option<Node>) {
        for stm in stms {
            let number = self.end.len();
            self.end.push(0);
            let me = Node::Stm(number);
            if let Some(parent) = parent {
                self.edge(me, parent);
            }
            for v in &stm.pat {
                self.edge(Node::Var(*v), me);
            }
            self.exp(&stm.pat, &stm.exp, me);
            self.end[number] = self.end.len();
        }
    }
    fn body(&mut self, body: &Body, me: Node) {
        self.stms(&body.stms, Some(me));
    }
    /// Each of `vars` needs the atom at its place, and is an accumulator if that is one.
    fn results(&mut self, vars: &[Var], atoms: &[Atom]) {
        for (v, a) in vars.iter().zip(atoms) {
            self.needs(Node::Var(*v), *a);
            self.alias_acc(*v, *a);
        }
    }

    fn exp(&mut self, pat: &[Var], exp: &Exp, me: Node) {
        match exp {
            Exp::Proj(Atom::Var(t), i) if self.products.get(t).is_some_and(|items| *i < items.len()) => {
                let item = self.products[t][*i];
                self.needs(me, item);
            }
            Exp::Tuple(items) => {
                self.products.insert(pat[0], items.clone());
                self.operands(exp, me);
            }
            Exp::Atom(a) => {
                self.operands(exp, me);
                self.alias_acc(pat[0], *a);
            }
            Exp::AccView(a, _) => {
                self.operands(exp, me);
                self.alias_acc(pat[0], *a);
            }
            Exp::AccAdd(a, _, _) => {
                self.operands(exp, me);
                self.effect_on(*a, me);
            }
            Exp::Assert(..) | Exp::Check(..) => {
                self.operands(exp, me);
                if self.options.asserts {
                    self.roots.push(me);
                }
            }
            Exp::Call(f, args) => {
                self.operands(exp, me);
                for a in args {
                    if self.program.atom_type(*a).is_acc() {
                        self.effect_on(*a, me);
                    }
                }
                if self.may_assert(*f) {
                    self.roots.push(me);
                }
            }
            Exp::Match(a, arms) => {
                self.needs(me, *a);
                for arm in arms {
                    self.body(&arm.body, me);
                    self.results(pat, &arm.body.result);
                }
            }
            Exp::If(c, then, otherwise) => {
                self.needs(me, *c);
                for body in [then, otherwise] {
                    self.body(body, me);
                    self.results(pat, &body.result);
                }
            }
            Exp::Marked(_, body) => {
                self.body(body, me);
                self.results(pat, &body.result);
            }
            Exp::Par(bodies) => {
                let mut rest = pat;
                for body in bodies {
                    self.body(body, me);
                    self.results(rest, &body.result);
                    rest = rest.get(body.result.len()..).unwrap_or_default();
                }
            }
            Exp::Loop(l) => self.loop_(pat, l, me),
            Exp::Soac(soac) => self.soac(pat, soac, me),
            Exp::WithAcc(inits, lam) => {
                for ((v, param), init) in pat.iter().zip(&lam.params).zip(inits) {
                    self.accs.insert(*param, IdSet::from([*param]));
                    self.edge(Node::Var(*v), Node::Contents(*param));
                    self.edge(Node::Var(*v), Node::Var(*param));
                    self.needs(Node::Var(*param), *init);
                }
                self.body(&lam.body, me);
                let rest = pat.get(inits.len()..).unwrap_or_default();
                self.results(rest, &lam.body.result);
            }
            Exp::Vjp { .. } | Exp::Jvp { .. } | Exp::Custom { .. } => {
                self.operands(exp, me);
                for scope in exp.bodies() {
                    self.body(scope.body, me);
                    self.needs_all(me, &scope.body.result);
                }
            }
            Exp::Prim(..)
            | Exp::Proj(..)
            | Exp::Inject(..)
            | Exp::ArrayLit(..)
            | Exp::Index(..)
            | Exp::Slice(..)
            | Exp::Update(..)
            | Exp::UpdateSlice(..)
            | Exp::Gather(..)
            | Exp::Size(..)
            | Exp::Iota(_)
            | Exp::Replicate(..)
            | Exp::Rearrange(..)
            | Exp::Reshape { .. }
            | Exp::Concat(_)
            | Exp::Reverse(_)
            | Exp::Rotate(..)
            | Exp::Plus(..)
            | Exp::StopGradient(_) => self.operands(exp, me),
        }
    }

    fn operands(&mut self, exp: &Exp, me: Node) {
        exp.for_each_atom(|a| self.needs(me, a));
    }

    fn loop_(&mut self, pat: &[Var], l: &Loop, me: Node) {
        let state = l.params.len();
        for ((param, init), next) in l.params.iter().zip(&l.body.result) {
            self.needs(Node::Var(*param), *init);
            self.needs(Node::Var(*param), *next);
        }
        for (v, (param, _)) in pat.iter().zip(&l.params) {
            self.edge(Node::Var(*v), Node::Var(*param));
        }
        let stacked = l.body.result.get(state..).unwrap_or_default();
        let stacked_pat = pat.get(state..).unwrap_or_default();
        for (v, a) in stacked_pat.iter().zip(stacked) {
            self.needs(Node::Var(*v), *a);
        }
        match &l.form {
            LoopForm::For { i: _, n } => self.needs(me, *n),
            LoopForm::While(cond) => {
                self.body(cond, me);
                self.needs_all(me, &cond.result);
                // The number of iterations is a result only as long as something is stacked.
                if let (Some(count), Some(first)) = (pat.get(state + l.collect), stacked_pat.first()) {
                    self.edge(Node::Var(*count), Node::Var(*first));
                }
            }
        }
        self.body(&l.body, me);
    }

    fn soac(&mut self, pat: &[Var], soac: &Soac, me: Node) {
        match soac {
            Soac::Map { width, lam, arrays } => {
                self.needs(me, *width);
                for (param, array) in lam.params.iter().zip(arrays) {
                    self.needs(Node::Var(*param), *array);
                }
                self.body(&lam.body, me);
                for (v, a) in pat.iter().zip(&lam.body.result) {
                    self.needs(Node::Var(*v), *a);
                }
            }
            Soac::Reduce { width, lam, neutral, arrays, commutative: _ }
            | Soac::Scan { width, lam, neutral, arrays } => {
                self.needs(me, *width);
                self.operator(pat, lam, neutral, &[neutral, arrays], me);
            }
            Soac::Fused { form: _, width, pre, lam, neutral, arrays } => {
                self.needs(me, *width);
                for (param, array) in pre.params.iter().zip(arrays) {
                    self.needs(Node::Var(*param), *array);
                }
                self.body(&pre.body, me);
                let (combined, others) = pre.body.result.split_at(neutral.len().min(pre.body.result.len()));
                let (results, columns) = pat.split_at(neutral.len().min(pat.len()));
                self.operator(results, lam, neutral, &[neutral, combined], me);
                for (v, a) in columns.iter().zip(others) {
                    self.needs(Node::Var(*v), *a);
                }
            }
            Soac::Hist { width, lam, neutral, dst, indices, values } => {
                self.needs(me, *width);
                self.needs(me, *indices);
                self.operator(pat, lam, neutral, &[neutral, dst, values], me);
            }
            Soac::Scatter { width, dst, indices, values } => {
                self.needs_all(me, &[*width, *dst, *indices, *values]);
            }
        }
    }

    /// Component `k` of an operator is needed if its result is, or either of its two parameters; then its result
    /// and its operands are needed. The result variable stands for the component.
    fn operator(&mut self, pat: &[Var], lam: &Lam, neutral: &[Atom], operands: &[&[Atom]], me: Node) {
        let count = neutral.len();
        let roots = self.roots.len();
        self.body(&lam.body, me);
        if self.roots.len() > roots
            && let Some(first) = pat.first()
        {
            // It may stop the program: one component is computed in any case.
            self.edge(me, Node::Var(*first));
        }
        for (k, v) in pat.iter().enumerate() {
            let component = Node::Var(*v);
            for param in [lam.params.get(k), lam.params.get(count + k)].into_iter().flatten() {
                self.edge(Node::Var(*param), component);
            }
            if let Some(a) = lam.body.result.get(k) {
                self.needs(component, *a);
            }
            for list in operands {
                if let Some(a) = list.get(k) {
                    self.needs(component, *a);
                }
            }
        }
    }
}

/// Removes what was not marked. Walks statements in the same order as [`Graph`], so that numbers agree.
struct Sweep<'a> {
    program: &'a mut Program,
    live: Live,
    next: usize,
}

impl Sweep<'_> {
    fn stms(&mut self, stms: &mut Vec<Stm>) {
        // What scopes leave that are not needed, and how many statements are before it.
        let mut left: Vec<(usize, Vec<Stm>)> = Vec::new();
        let mut kept = 0;
        stms.retain_mut(|stm| {
            let number = self.next;
            if !self.live.is(Node::Stm(number)) {
                self.next = self.live.end[number];
                return false;
            }
            self.next += 1;
            let inside = self.stm(stm);
            let stays = inside.is_none();
            kept += usize::from(stays);
            left.extend(inside.map(|inside| (kept, inside)));
            stays
        });
        for (at, inside) in left.into_iter().rev() {
            stms.splice(at..at, inside);
        }
    }
    fn body(&mut self, body: &mut Body) {
        self.stms(&mut body.stms);
    }
    fn keep(&self, pat: &[Var]) -> Vec<bool> {
        pat.iter().map(|v| self.live.var(*v)).collect()
    }
    fn dummy(&mut self, ty: Type) -> Var {
        self.program.vars.push(VarInfo { ty, hint: "effect".into(), origin: Origin::default() })
    }

    /// Changes a statement; what is left of one that is not needed itself.
    fn stm(&mut self, stm: &mut Stm) -> Option<Vec<Stm>> {
        let Stm { pat, exp } = stm;
        let origin = pat.first().map(|v| self.program.vars[*v].origin.clone());
        match exp {
            Exp::Proj(Atom::Var(t), i) => {
                if let Some(item) = self.live.products.get(t).and_then(|items| items.get(*i)) {
                    *exp = Exp::Atom(*item);
                }
            }
            Exp::Match(_, arms) => {
                let keep = self.keep(pat);
                for arm in arms.iter_mut() {
                    self.body(&mut arm.body);
                }
                let bodies = arms.iter_mut().map(|arm| &mut arm.body).collect();
                self.choose(pat, bodies, &keep);
            }
            Exp::If(_, then, otherwise) => {
                let keep = self.keep(pat);
                self.body(then);
                self.body(otherwise);
                self.choose(pat, vec![then, otherwise], &keep);
            }
            Exp::Marked(_, body) => {
                let keep = self.keep(pat);
                self.body(body);
                self.choose(pat, vec![body], &keep);
            }
            Exp::Par(bodies) => self.par(pat, bodies),
            Exp::Loop(l) => self.loop_(pat, l),
            Exp::Soac(soac) => self.soac(pat, soac),
            Exp::WithAcc(inits, lam) => {
                self.body(&mut lam.body);
                if self.with_acc(pat, inits, lam) {
                    let body = std::mem::take(&mut lam.body);
                    let results = pat.drain(..).zip(body.result);
                    let results = results.map(|(v, a)| Stm { pat: vec![v], exp: Exp::Atom(a) });
                    return Some(body.stms.into_iter().chain(results).collect());
                }
            }
            Exp::Vjp { .. } | Exp::Jvp { .. } | Exp::Custom { .. } => {
                for scope in exp.bodies_mut() {
                    self.body(scope.body);
                }
            }
            Exp::Atom(_)
            | Exp::Prim(..)
            | Exp::Tuple(_)
            | Exp::Proj(Atom::Const(_), _)
            | Exp::Inject(..)
            | Exp::Call(..)
            | Exp::ArrayLit(..)
            | Exp::Index(..)
            | Exp::Slice(..)
            | Exp::Update(..)
            | Exp::UpdateSlice(..)
            | Exp::Gather(..)
            | Exp::Size(..)
            | Exp::Iota(_)
            | Exp::Replicate(..)
            | Exp::Rearrange(..)
            | Exp::Reshape { .. }
            | Exp::Concat(_)
            | Exp::Reverse(_)
            | Exp::Rotate(..)
            | Exp::AccView(..)
            | Exp::AccAdd(..)
            | Exp::Plus(..)
            | Exp::StopGradient(_)
            | Exp::Assert(..)
            | Exp::Check(..) => {}
        }
        // A statement that is kept for its effect alone still comes from the same place.
        if let (Some(origin), Some(&v)) = (origin, pat.first())
            && self.program.vars[v].origin == Origin::default()
        {
            self.program.vars[v].origin = origin;
        }
        None
    }

    /// Keeps the same results of all bodies; one new one if none is left.
    fn choose(&mut self, pat: &mut Vec<Var>, bodies: Vec<&mut Body>, keep: &[bool]) {
        retain(pat, keep);
        let effect = pat.is_empty();
        if effect {
            pat.push(self.dummy(Type::BOOL));
        }
        for body in bodies {
            retain(&mut body.result, keep);
            if effect {
                body.result.push(Atom::bool(false));
            }
        }
    }

    fn par(&mut self, pat: &mut Vec<Var>, bodies: &mut Vec<Body>) {
        let keep = self.keep(pat);
        let mut rest = keep.as_slice();
        for body in bodies.iter_mut() {
            self.body(body);
            let (mine, others) = rest.split_at(body.result.len().min(rest.len()));
            retain(&mut body.result, mine);
            rest = others;
        }
        retain(pat, &keep);
        bodies.retain(|b| !b.stms.is_empty() || !b.result.is_empty());
        if pat.is_empty()
            && let Some(first) = bodies.first_mut()
        {
            pat.push(self.dummy(Type::BOOL));
            first.result.push(Atom::bool(false));
        }
    }

    fn loop_(&mut self, pat: &mut Vec<Var>, l: &mut Loop) {
        let state = l.params.len();
        let keep_state: Vec<bool> = l.params.iter().map(|(v, _)| self.live.var(*v)).collect();
        let keep_stacked = self.keep(pat.get(state..state + l.collect).unwrap_or_default());
        if let LoopForm::While(cond) = &mut l.form {
            self.body(cond);
        }
        self.body(&mut l.body);
        retain(&mut l.params, &keep_state);
        let keep: Vec<bool> = keep_state.into_iter().chain(keep_stacked).collect();
        retain(&mut l.body.result, &keep);
        l.collect = l.body.result.len().saturating_sub(l.params.len());
        // A count of iterations goes with the last stacked value.
        let count = keep.len();
        let keep: Vec<bool> =
            (0..pat.len()).map(|k| if k < count { keep[k] } else { l.collect > 0 }).collect();
        retain(pat, &keep);
        if pat.is_empty() {
            let (param, last) = (self.dummy(Type::BOOL), self.dummy(Type::BOOL));
            l.params.push((param, Atom::bool(false)));
            l.body.result.push(param.into());
            pat.push(last);
        }
    }

    fn soac(&mut self, pat: &mut Vec<Var>, soac: &mut Soac) {
        let keep = self.keep(pat);
        match soac {
            Soac::Map { width: _, lam, arrays } => {
                self.body(&mut lam.body);
                let keep_params = self.keep(&lam.params);
                retain(arrays, &keep_params);
                retain(&mut lam.params, &keep_params);
                retain(&mut lam.body.result, &keep);
                retain(pat, &keep);
                if pat.is_empty() {
                    pat.push(self.dummy(Type::array(Type::BOOL)));
                    lam.body.result.push(Atom::bool(false));
                }
            }
            Soac::Reduce { width: _, lam, neutral, arrays, commutative: _ }
            | Soac::Scan { width: _, lam, neutral, arrays } => {
                let keep = self.operator(pat, lam, keep);
                retain(neutral, &keep);
                retain(arrays, &keep);
            }
            Soac::Fused { form: _, width, pre, lam, neutral, arrays } => {
                self.body(&mut pre.body);
                let keep_params = self.keep(&pre.params);
                retain(arrays, &keep_params);
                retain(&mut pre.params, &keep_params);
                let mut columns = pat.split_off(neutral.len());
                let keep_columns = keep[neutral.len()..].to_vec();
                let mut others = pre.body.result.split_off(neutral.len());
                retain(&mut others, &keep_columns);
                retain(&mut columns, &keep_columns);
                if !keep[..neutral.len()].contains(&true) {
                    // Nothing is combined any more: a map is left. Numbers of statements in the operator are passed.
                    self.body(&mut lam.body);
                    if columns.is_empty() {
                        columns.push(self.dummy(Type::array(Type::BOOL)));
                        others.push(Atom::bool(false));
                    }
                    let pre = Lam {
                        params: std::mem::take(&mut pre.params),
                        body: Body { stms: std::mem::take(&mut pre.body.stms), result: others },
                    };
                    let (width, arrays) = (*width, std::mem::take(arrays));
                    *pat = columns;
                    *soac = Soac::Map { width, lam: pre, arrays };
                    return;
                }
                let keep = self.operator(pat, lam, keep[..neutral.len()].to_vec());
                retain(neutral, &keep);
                retain(&mut pre.body.result, &keep);
                pre.body.result.extend(others);
                pat.extend(columns);
            }
            Soac::Hist { width: _, lam, neutral, dst, indices: _, values } => {
                let keep = self.operator(pat, lam, keep);
                retain(neutral, &keep);
                retain(dst, &keep);
                retain(values, &keep);
            }
            Soac::Scatter { .. } => {}
        }
    }

    /// Returns the components kept; all of one that nobody needs, which goes as a whole.
    fn operator(&mut self, pat: &mut Vec<Var>, lam: &mut Lam, keep: Vec<bool>) -> Vec<bool> {
        self.body(&mut lam.body);
        if !keep.contains(&true) {
            return vec![true; keep.len()];
        }
        retain(pat, &keep);
        retain(&mut lam.body.result, &keep);
        let twice: Vec<bool> = keep.iter().chain(&keep).copied().collect();
        retain(&mut lam.params, &twice);
        keep
    }

    /// Whether no accumulator is left, so that the body can stand in place of the statement.
    fn with_acc(&mut self, pat: &mut Vec<Var>, inits: &mut Vec<Atom>, lam: &mut Lam) -> bool {
        let keep_accs = self.keep(&lam.params);
        let count = inits.len();
        let keep_results = self.keep(pat.get(count..).unwrap_or_default());
        retain(&mut lam.body.result, &keep_results);
        let keep: Vec<bool> = keep_accs.iter().copied().chain(keep_results).collect();
        retain(pat, &keep);
        retain(inits, &keep_accs);
        retain(&mut lam.params, &keep_accs);
        inits.is_empty()
    }
}

/// Removes the items whose flag is off; items without a flag stay.
fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut flags = keep.iter().copied().chain(std::iter::repeat(true));
    items.retain(|_| flags.next().unwrap_or(true));
}
