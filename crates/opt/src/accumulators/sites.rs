//! Where accumulations are: the statements `add_to`, the bodies around them, and what may be tried on each.

use pullback_base::index::IdMap;
use pullback_core::{Body, Exp, FunId, Loop, LoopForm, Program, Soac, Var};

/// An accumulation.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// Statement and body, from the function's body inwards; the last entry is the body that holds the site.
    pub(super) path: Vec<(usize, usize)>,
    /// The position in that body.
    pub(super) at: usize,
    /// What the statement binds: its name.
    pub(super) done: Var,
    /// The entry of the path that is the scope of the accumulator.
    pub(super) root: usize,
    /// The number of the accumulator among those of the scope.
    pub(super) number: usize,
    /// The first accumulator of the scope: its name.
    pub(super) scope: Var,
    /// Nothing else is added to the accumulator.
    pub(super) alone: bool,
    pub(super) attempts: Vec<Attempt>,
}

/// A way to treat an accumulation; `nest` is the entry of the path that is taken as the nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) nest: usize,
    pub(super) way: Way,
}

/// How values get out of the nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Written anew in a nest of their own.
    Anew,
    /// A linear function of a sum: the function is taken out of the sum over the nest.
    Linear,
    /// Handed out by the nest.
    HandedOut,
    /// The components of a row handed out together, for one histogram over columns.
    Columns,
    /// Handed out together with the indices, for a histogram.
    Histogram,
    /// Summed in the state of loops.
    Carried,
}

/// The accumulations of a function, those of inner scopes first.
pub(super) fn find(program: &Program, id: FunId) -> Vec<Site> {
    let mut search = Search { views: IdMap::new(), roots: IdMap::new(), sites: Vec::new(), adds: Vec::new() };
    search.body(&program.funs[id].body, &mut Vec::new(), &mut Vec::new());
    let mut sites = search.sites;
    let mut counts: IdMap<Var, usize> = IdMap::new();
    search.adds.iter().for_each(|acc| *counts.entry(*acc).or_default() += 1);
    for (site, acc) in sites.iter_mut().zip(&search.adds) {
        site.alone = counts[acc] == 1;
    }
    sites.sort_by_key(|s| std::cmp::Reverse(s.root));
    sites
}

struct Search {
    /// The accumulator that a view is part of.
    views: IdMap<Var, Var>,
    /// The entry of the path, the number and the first of the accumulators bound by scopes.
    roots: IdMap<Var, (usize, usize, Var)>,
    sites: Vec<Site>,
    /// The accumulator of a scope that each of them adds to.
    adds: Vec<Var>,
}

/// What a path leads through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Map,
    Counted,
    While,
    Open,
    Barrier,
}

impl Search {
    fn body(&mut self, body: &Body, path: &mut Vec<(usize, usize)>, kinds: &mut Vec<Kind>) {
        for (at, stm) in body.stms.iter().enumerate() {
            match &stm.exp {
                Exp::AccView(acc, _) => {
                    if let Some(acc) = acc.var() {
                        self.views.insert(stm.pat[0], acc);
                    }
                }
                Exp::WithAcc(_, lam) => {
                    let entry = path.len();
                    let accs = lam.params.iter().enumerate();
                    self.roots.extend(accs.map(|(k, p)| (*p, (entry, k, lam.params[0]))));
                }
                Exp::AccAdd(acc, ..) => {
                    let mut acc = acc.var();
                    while let Some(v) = acc
                        && let Some(base) = self.views.get(&v)
                    {
                        acc = Some(*base);
                    }
                    if let Some(acc) = acc
                        && let Some((root, number, scope)) = self.roots.get(&acc).copied()
                    {
                        let attempts = attempts(kinds, root);
                        let (path, done) = (path.clone(), stm.pat[0]);
                        self.adds.push(acc);
                        let alone = false;
                        self.sites.push(Site { path, at, done, root, number, scope, alone, attempts });
                    }
                }
                _ => {}
            }
            let kind = kind(&stm.exp);
            for (k, scope) in stm.exp.bodies().iter().enumerate() {
                path.push((at, k));
                kinds.push(kind);
                self.body(scope.body, path, kinds);
                path.pop();
                kinds.pop();
            }
        }
    }
}

fn kind(exp: &Exp) -> Kind {
    match exp {
        Exp::Soac(Soac::Map { .. }) => Kind::Map,
        Exp::Loop(Loop { form: LoopForm::For { .. }, .. }) => Kind::Counted,
        Exp::Loop(Loop { form: LoopForm::While(_), .. }) => Kind::While,
        Exp::If(..) | Exp::Match(..) | Exp::WithAcc(..) | Exp::Marked(..) => Kind::Open,
        _ => Kind::Barrier,
    }
}

fn attempts(kinds: &[Kind], root: usize) -> Vec<Attempt> {
    let inside = &kinds[root + 1..];
    let closed = |k: &Kind| matches!(k, Kind::Counted | Kind::While | Kind::Barrier);
    let start = root + 1 + inside.iter().rposition(closed).map_or(0, |k| k + 1);
    let maps: Vec<usize> = (start..kinds.len()).filter(|k| kinds[*k] == Kind::Map).collect();
    if let (Some(&first), Some(&last)) = (maps.first(), maps.last()) {
        let mut out =
            vec![Attempt { nest: first, way: Way::Anew }, Attempt { nest: first, way: Way::Linear }];
        // An index may mention dimensions of outer maps together with inner ones.
        out.extend(maps[1..].iter().map(|nest| Attempt { nest: *nest, way: Way::Anew }));
        out.push(Attempt { nest: last, way: Way::HandedOut });
        if first == root + 1 {
            out.push(Attempt { nest: first, way: Way::Columns });
            out.push(Attempt { nest: first, way: Way::Histogram });
        }
        return out;
    }
    let mut out = Vec::new();
    if start > root + 1 && kinds[start - 1] == Kind::Counted {
        out.push(Attempt { nest: start - 1, way: Way::Anew });
        out.push(Attempt { nest: start - 1, way: Way::HandedOut });
    }
    // The outermost loop first: what is carried through it needs no first value per inner loop.
    let parallel = |k: &Kind| matches!(k, Kind::Map | Kind::Barrier);
    let sequential = root + 1 + inside.iter().rposition(parallel).map_or(0, |k| k + 1);
    let loops = (sequential..kinds.len()).filter(|k| matches!(kinds[*k], Kind::Counted | Kind::While));
    out.extend(loops.map(|nest| Attempt { nest, way: Way::Carried }));
    out
}
