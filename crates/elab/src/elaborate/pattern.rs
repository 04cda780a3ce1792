//! Patterns that cannot fail, sizes, and the wrapping of terms.

use super::{Elaborator, Wrap};
use pullback_base::Span;
use pullback_front::typed::{Pattern, PatternKind, Place, Root, SizeBind, SizeCheck, Step};
use pullback_lambda::{Arm, Exp, Term, Var};
use pullback_prim::{Op, Prim, Scalar};

impl<'s> Elaborator<'s, '_> {
    /// Puts the wraps around a body, the last one innermost.
    pub(super) fn close(&mut self, wraps: Vec<Wrap>, body: Term) -> Term {
        wraps.into_iter().rev().fold(body, |body, wrap| match wrap {
            Wrap::Let(var, value) => self.b.term(Exp::Let(var, value, body)),
            Wrap::Only(value, params) => self.b.term(Exp::Match(value, vec![Arm { params, body }])),
            Wrap::SameSize(left, right, span) => {
                self.at(span, |e| e.b.same_size(left, right, "a size is not what its type says", body))
            }
            Wrap::Assert(condition, message, None) => self.b.assert(condition, message, body),
            Wrap::Assert(condition, message, Some(span)) => {
                self.at(span, |e| e.b.assert(condition, message, body))
            }
            Wrap::Functions(id) => self.close_functions(id, body),
        })
    }

    /// Binds the instances of a polymorphic local function that were asked for.
    fn close_functions(&mut self, id: pullback_front::typed::VarId, mut body: Term) -> Term {
        let Some(local) = self.local_functions.remove(&id) else { return body };
        for (types, var) in local.instances {
            let pairs: Vec<_> = local.fun.type_params.iter().copied().zip(types).collect();
            for (param, ty) in pairs {
                self.type_env.insert(param, ty);
            }
            let value = self.function_value(local.fun);
            body = self.b.term(Exp::Let(var, value, body));
        }
        body
    }

    /// A hint for the variable that holds what a pattern matches.
    pub(super) fn pattern_name(&self, pattern: &Pattern) -> String {
        match &pattern.kind {
            PatternKind::Var(v) => self.source.vars[*v].name.to_string(),
            PatternKind::Wildcard => "_".to_string(),
            PatternKind::Literal(_)
            | PatternKind::Tuple(_)
            | PatternKind::Record(_)
            | PatternKind::Construct(..) => "p".to_string(),
        }
    }

    /// A new variable for a value that the pattern will be matched against.
    pub(super) fn parameter(&mut self, pattern: &Pattern) -> Var {
        let ty = self.ty(&pattern.ty);
        let name = self.pattern_name(pattern);
        self.at(pattern.span, |e| e.b.fresh(ty, &name))
    }

    /// Does something with another source position.
    pub(super) fn at<T>(&mut self, span: Span, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.b.span;
        if !self.in_prelude {
            self.b.span = Some(span);
        }
        let result = work(self);
        self.b.span = outer;
        result
    }

    /// A term that may be used several times: a variable or constant, bound first if need be.
    pub(super) fn atom(&mut self, term: Term, hint: &str, wraps: &mut Vec<Wrap>) -> Term {
        match term.exp() {
            Exp::Var(_) | Exp::Const(_) => term,
            _ => {
                let var = self.named(term, hint, wraps);
                self.b.var(var)
            }
        }
    }

    /// The variable that holds a term, bound first if need be.
    pub(super) fn named(&mut self, term: Term, hint: &str, wraps: &mut Vec<Wrap>) -> Var {
        if let Exp::Var(var) = term.exp() {
            return *var;
        }
        let var = self.b.fresh(term.ty().clone(), hint);
        wraps.push(Wrap::Let(var, term));
        var
    }

    /// Binds the variables of a pattern that cannot fail to the parts of a value; the value is evaluated even if
    /// nothing of it is used. Returns the variable that holds the whole.
    pub(super) fn bind(&mut self, pattern: &'s Pattern, value: Term, wraps: &mut Vec<Wrap>) -> Var {
        let name = self.pattern_name(pattern);
        let var = self.named(value, &name, wraps);
        self.destructure(pattern, var, wraps);
        var
    }

    /// Binds the variables of a pattern that cannot fail to the parts of the value of a variable.
    pub(super) fn destructure(&mut self, pattern: &'s Pattern, var: Var, wraps: &mut Vec<Wrap>) {
        match &pattern.kind {
            // A literal fits: patterns here cannot fail.
            PatternKind::Wildcard | PatternKind::Literal(_) => {}
            PatternKind::Var(id) => {
                self.vars.insert(*id, var);
            }
            PatternKind::Tuple(parts) => {
                for (i, part) in parts.iter().enumerate() {
                    self.destructure_component(part, var, i, wraps);
                }
            }
            PatternKind::Record(fields) => {
                for (i, (_, part)) in fields.iter().enumerate() {
                    self.destructure_component(part, var, i, wraps);
                }
            }
            PatternKind::Construct(_, _, parts) => {
                let params: Vec<Var> = parts.iter().map(|p| self.parameter(p)).collect();
                let value = self.b.var(var);
                wraps.push(Wrap::Only(value, params.clone()));
                for (part, param) in parts.iter().zip(params) {
                    self.destructure(part, param, wraps);
                }
            }
        }
    }

    fn destructure_component(&mut self, part: &'s Pattern, var: Var, i: usize, wraps: &mut Vec<Wrap>) {
        if let PatternKind::Wildcard | PatternKind::Literal(_) = part.kind {
            return;
        }
        let whole = self.b.var(var);
        let value = self.b.proj(whole, i);
        let name = self.pattern_name(part);
        let inner = self.named(value, &name, wraps);
        self.destructure(part, inner, wraps);
    }

    // ---- sizes

    pub(super) fn bind_size(
        &mut self,
        bind: &SizeBind,
        params: &[Var],
        value: Option<Var>,
        wraps: &mut Vec<Wrap>,
    ) {
        let mut size = self.place(&bind.place, params, value);
        if bind.offset != 0 {
            let offset = self.b.i64(bind.offset);
            size = self.b.term(Exp::Prim(Prim::Op(Op::Sub, Scalar::I64), vec![size, offset]));
        }
        if bind.factor != 1 {
            let factor = self.b.i64(bind.factor);
            size = self.b.term(Exp::Prim(Prim::Op(Op::Quot, Scalar::I64), vec![size, factor]));
        }
        let name = self.source.vars[bind.var].name.to_string();
        let var = self.named(size, &name, wraps);
        self.vars.insert(bind.var, var);
    }

    pub(super) fn check_size(
        &mut self,
        check: &'s SizeCheck,
        params: &[Var],
        value: Option<Var>,
        wraps: &mut Vec<Wrap>,
    ) {
        let size = self.place(&check.place, params, value);
        let expected = self.exp(&check.expected);
        wraps.push(Wrap::SameSize(size, expected, check.span));
    }

    /// The size that a place stands for.
    fn place(&mut self, place: &Place, params: &[Var], value: Option<Var>) -> Term {
        let root = match place.root {
            Root::Param(i) => params.get(i).copied(),
            Root::Value => value,
        };
        let Some(root) = root else {
            self.broken("a size comes from a parameter that is not there".to_string());
            return self.b.i64(0);
        };
        let mut term = self.b.var(root);
        let mut depth = 0;
        for step in &place.steps {
            match step {
                Step::Component(i) => term = self.component(term, *i, depth),
                Step::Element => depth += 1,
            }
        }
        self.b.size(term, depth)
    }

    /// Component `i` of the products below `depth` array dimensions, as an array of that depth.
    fn component(&mut self, term: Term, i: usize, depth: usize) -> Term {
        match depth {
            0 => self.b.proj(term, i),
            1 => {
                let columns = self.b.term(Exp::Unzip(term));
                self.b.proj(columns, i)
            }
            _ => {
                let Some(row) = term.ty().elem().cloned() else { return term };
                let var = self.b.fresh(row, "row");
                let inner = self.b.var(var);
                let inner = self.component(inner, i, depth - 1);
                let f = self.b.term(Exp::Lam(var, inner));
                self.b.map(f, vec![term])
            }
        }
    }
}
