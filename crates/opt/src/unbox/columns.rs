//! Which boxes can go: variables that share boxes, and whether what is in the boxes of an array has one shape.
//!
//! A variable has a node for each level of boxes in its type, numbered from the inside: what a statement hands on, takes out
//! or collects has the same boxes inside. Nodes of variables that a statement connects are one class. A class stays boxed if
//! one of its nodes has to, or if a statement makes an array of such boxes whose sizes have no name there (up to the next box
//! that stays, so the inner ones are decided first).

use pullback_base::index::IdMap;
use pullback_core::shapes::{Dim, Shapes, levels, shapes};
use pullback_core::{Atom, Body, Exp, FunId, Lam, Loop, LoopForm, Program, Soac, Stm, Var};

/// The boxes that can go.
pub(super) struct Columns {
    /// For each variable with boxes: whether they go, the outermost first, and whether the first is the variable's value itself.
    removed: IdMap<Var, (Vec<bool>, bool)>,
}

impl Columns {
    pub(super) fn is_empty(&self) -> bool {
        self.removed.is_empty()
    }
    /// The variables whose type changes, with a flag for each box from the outermost on.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Var, Vec<bool>)> {
        self.removed.iter().map(|(v, (flags, _))| (*v, flags.clone()))
    }
    /// Whether the value is a box that goes.
    pub(super) fn opens(&self, a: Atom) -> bool {
        let flags = a.var().and_then(|v| self.removed.get(&v));
        flags.is_some_and(|(flags, outside)| *outside && flags.first() == Some(&true))
    }
}

/// The boxes of a function that can go.
pub(super) fn columns(program: &Program, id: FunId) -> Columns {
    let fun = &program.funs[id];
    let mut graph =
        Graph { program, nodes: IdMap::new(), parent: Vec::new(), stays: Vec::new(), made: Vec::new() };
    fun.params.iter().for_each(|p| graph.stays(*p));
    graph.body(&fun.body);
    graph.all_stay(&fun.body.result);
    if graph.nodes.is_empty() {
        return Columns { removed: IdMap::new() };
    }
    graph.decide(&shapes(program, &fun.params, &fun.body));
    let mut removed = IdMap::new();
    for (v, nodes) in graph.nodes.clone() {
        let flags: Vec<bool> = nodes.into_iter().rev().map(|n| !graph.has_to_stay(n)).collect();
        if flags.contains(&true) {
            removed.insert(v, (flags, program.vars[v].ty.rank() == 0));
        }
    }
    Columns { removed }
}

struct Graph<'p> {
    program: &'p Program,
    /// For each variable with boxes, its nodes from the inside.
    nodes: IdMap<Var, Vec<usize>>,
    /// Classes: a node that is its own parent stands for them.
    parent: Vec<usize>,
    /// Of a class: whether it stays boxed.
    stays: Vec<bool>,
    /// Variables bound to a new array, whose elements may be boxes.
    made: Vec<Var>,
}

impl Graph<'_> {
    // --- classes ---

    fn root(&mut self, mut node: usize) -> usize {
        while self.parent[node] != node {
            self.parent[node] = self.parent[self.parent[node]];
            node = self.parent[node];
        }
        node
    }
    fn has_to_stay(&mut self, node: usize) -> bool {
        let root = self.root(node);
        self.stays[root]
    }
    fn nodes(&mut self, v: Var) -> Vec<usize> {
        if let Some(nodes) = self.nodes.get(&v) {
            return nodes.clone();
        }
        let boxes = levels(&self.program.vars[v].ty).len() - 1;
        let first = self.parent.len();
        let nodes: Vec<usize> = (first..first + boxes).collect();
        self.parent.extend(&nodes);
        self.stays.extend(nodes.iter().map(|_| false));
        if boxes > 0 {
            self.nodes.insert(v, nodes.clone());
        }
        nodes
    }
    /// The boxes inside both are the same.
    fn same(&mut self, v: Var, a: Atom) {
        let Atom::Var(w) = a else { return };
        let (left, right) = (self.nodes(v), self.nodes(w));
        for (l, r) in left.into_iter().zip(right) {
            let (l, r) = (self.root(l), self.root(r));
            self.stays[l] |= self.stays[r];
            self.parent[r] = l;
        }
    }
    fn all_same(&mut self, vars: &[Var], atoms: &[Atom]) {
        for (v, a) in vars.iter().zip(atoms) {
            self.same(*v, *a);
        }
    }
    /// All boxes of the variable stay.
    fn stays(&mut self, v: Var) {
        for n in self.nodes(v) {
            let root = self.root(n);
            self.stays[root] = true;
        }
    }
    fn all_stay(&mut self, atoms: &[Atom]) {
        atoms.iter().filter_map(|a| a.var()).for_each(|v| self.stays(v));
    }
    /// The outermost box of the variable stays.
    fn outer_stays(&mut self, v: Var) {
        if let Some(n) = self.nodes(v).last() {
            let root = self.root(*n);
            self.stays[root] = true;
        }
    }

    // --- what statements connect ---

    fn body(&mut self, body: &Body) {
        for stm in &body.stms {
            for scope in stm.exp.bodies() {
                self.body(scope.body);
            }
            self.stm(stm);
        }
    }
    fn stm(&mut self, Stm { pat, exp }: &Stm) {
        match exp {
            Exp::Atom(a) | Exp::StopGradient(a) => self.same(pat[0], *a),
            Exp::Index(a, _)
            | Exp::Slice(a, _)
            | Exp::Rearrange(_, a)
            | Exp::Reshape { array: a, .. }
            | Exp::Reverse(a)
            | Exp::Rotate(a, _) => self.same(pat[0], *a),
            Exp::Inject(ty, _, fields) => match ty.boxed() {
                Some(_) => self.same(pat[0], fields[0]),
                None => self.all_stay(fields),
            },
            Exp::Match(a, arms) => {
                let is_box = self.program.atom_type(*a).boxed().is_some();
                for arm in arms {
                    match is_box {
                        true => arm.params.iter().for_each(|p| self.same(*p, *a)),
                        false => arm.params.iter().for_each(|p| self.stays(*p)),
                    }
                    self.all_same(pat, &arm.body.result);
                }
            }
            Exp::If(_, then, otherwise) => {
                self.all_same(pat, &then.result);
                self.all_same(pat, &otherwise.result);
            }
            Exp::Loop(l) => self.loop_(pat, l),
            Exp::Soac(soac) => self.soac(pat, soac),
            Exp::ArrayLit(_, items) => {
                items.iter().for_each(|a| self.same(pat[0], *a));
                // (Without elements it has any shape.)
                self.made.extend(items.first().map(|_| pat[0]));
            }
            Exp::Update(a, _, value) => {
                self.same(pat[0], *a);
                self.same(pat[0], *value);
                self.made.push(pat[0]);
            }
            Exp::UpdateSlice(a, _, b) | Exp::Gather(a, b) => {
                self.same(pat[0], *a);
                self.same(pat[0], *b);
                self.outer_stays(pat[0]);
            }
            Exp::Replicate(_, a) => {
                self.same(pat[0], *a);
                self.outer_stays(pat[0]);
            }
            Exp::Concat(arrays) => {
                arrays.iter().for_each(|a| self.same(pat[0], *a));
                self.outer_stays(pat[0]);
            }
            Exp::WithAcc(inits, lam) => {
                self.all_stay(inits);
                pat.iter().take(inits.len()).for_each(|v| self.stays(*v));
                self.all_same(&pat[inits.len()..], &lam.body.result);
            }
            Exp::Marked(_, body) => self.all_same(pat, &body.result),
            Exp::Par(bodies) => {
                let results: Vec<Atom> = bodies.iter().flat_map(|b| b.result.clone()).collect();
                self.all_same(pat, &results);
            }
            Exp::Vjp { .. } | Exp::Jvp { .. } | Exp::Custom { .. } => {
                for scope in exp.bodies() {
                    scope.binds.iter().for_each(|v| self.stays(v));
                    self.all_stay(&scope.body.result);
                }
                self.everything_stays(pat, exp);
            }
            Exp::Size(..) => {}
            Exp::Prim(..)
            | Exp::Tuple(_)
            | Exp::Proj(..)
            | Exp::Call(..)
            | Exp::Iota(_)
            | Exp::AccView(..)
            | Exp::AccAdd(..)
            | Exp::Plus(..)
            | Exp::Assert(..)
            | Exp::Check(..) => self.everything_stays(pat, exp),
        }
    }
    fn everything_stays(&mut self, pat: &[Var], exp: &Exp) {
        pat.iter().for_each(|v| self.stays(*v));
        self.all_stay(&exp.atoms());
    }
    fn loop_(&mut self, pat: &[Var], l: &Loop) {
        let states = l.params.len();
        for ((param, init), (v, next)) in l.params.iter().zip(pat.iter().zip(&l.body.result)) {
            self.same(*param, *init);
            self.same(*param, *next);
            self.same(*param, (*v).into());
        }
        let collected = &pat[states..states + l.collect];
        self.all_same(collected, &l.body.result[states..]);
        match l.form {
            LoopForm::For { .. } => self.made.extend(collected),
            LoopForm::While(_) => collected.iter().for_each(|v| self.outer_stays(*v)),
        }
    }
    fn soac(&mut self, pat: &[Var], soac: &Soac) {
        match soac {
            Soac::Map { width: _, lam, arrays } => {
                self.all_same(&lam.params, arrays);
                self.all_same(pat, &lam.body.result);
                self.made.extend(pat);
            }
            Soac::Reduce { width: _, lam, neutral, arrays, commutative: _ }
            | Soac::Scan { width: _, lam, neutral, arrays } => {
                self.operator(pat, lam, neutral);
                self.all_stay(arrays);
            }
            Soac::Fused { form: _, width: _, pre, lam, neutral, arrays } => {
                let (results, columns) = pat.split_at(neutral.len());
                let (combined, others) = pre.body.result.split_at(neutral.len());
                self.all_same(&pre.params, arrays);
                self.operator(results, lam, neutral);
                self.all_stay(combined);
                self.all_same(columns, others);
                self.made.extend(columns);
            }
            Soac::Hist { width: _, lam, neutral, dst, indices: _, values } => {
                self.operator(pat, lam, neutral);
                self.all_stay(dst);
                self.all_stay(values);
            }
            Soac::Scatter { width: _, dst, indices: _, values } => {
                self.stays(pat[0]);
                self.all_stay(&[*dst, *values]);
            }
        }
    }
    fn operator(&mut self, pat: &[Var], lam: &Lam, neutral: &[Atom]) {
        pat.iter().chain(&lam.params).for_each(|v| self.stays(*v));
        self.all_stay(neutral);
        self.all_stay(&lam.body.result);
    }

    // --- what stays ---

    /// Boxes in new arrays stay unless all that is in them has sizes known by name. Inner boxes first: from what is in a box
    /// they take part if they go.
    fn decide(&mut self, shapes: &Shapes) {
        let mut made: Vec<(usize, Var)> =
            self.made.iter().filter_map(|v| Some((self.nodes.get(v)?.len(), *v))).collect();
        made.sort();
        for (_, v) in made {
            let levels = levels(&self.program.vars[v].ty);
            // From the outermost: box k is around level k + 1.
            let boxes: Vec<usize> = self.nodes[&v].iter().rev().copied().collect();
            let open = boxes[1..].iter().take_while(|n| !self.has_to_stay(**n)).count();
            let inside: usize = levels[1..=1 + open].iter().sum();
            let dims = &shapes.through(v)[levels[0]..levels[0] + inside];
            if dims.contains(&Dim::Unknown) {
                self.outer_stays(v);
            }
        }
    }
}
