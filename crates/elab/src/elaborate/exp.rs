//! Expressions.

use super::{Elaborator, LocalFunction, Wrap};
use pullback_base::{Code, Symbol};
use pullback_front::intrinsics::Intrinsic;
use pullback_front::typed::{self, Attribute, AttributeArgument, Binding, DefId, ExpKind, LetFun, VarId};
use pullback_lambda::term::{LoopAttrs, LoopForm, Mark, TapePolicy};
use pullback_lambda::{Exp, Term, Type, Var};

impl<'s> Elaborator<'s, '_> {
    /// An expression as a term.
    pub(super) fn exp(&mut self, e: &'s typed::Exp) -> Term {
        stacker::maybe_grow(128 << 10, 1 << 20, || self.at(e.span, |s| s.exp_kind(e)))
    }

    pub(super) fn exps(&mut self, es: &'s [typed::Exp]) -> Vec<Term> {
        es.iter().map(|e| self.exp(e)).collect()
    }

    fn exp_kind(&mut self, e: &'s typed::Exp) -> Term {
        match &e.kind {
            ExpKind::Literal(value) => self.b.constant(*value),
            ExpKind::Var(id, types) => self.variable(*id, types),
            ExpKind::Def(id, types) => self.definition(*id, types, Vec::new()),
            ExpKind::Intrinsic(i, _) => {
                let ty = self.ty(&e.ty);
                self.intrinsic(*i, Vec::new(), &ty)
            }
            ExpKind::Tuple(items) => {
                let items = self.exps(items);
                self.b.tuple(items)
            }
            ExpKind::Record(fields) => self.record(fields),
            ExpKind::Array(items) => {
                let ty = self.ty(&e.ty);
                let items = self.exps(items);
                let element = ty.elem().cloned().unwrap_or_else(Type::unit);
                self.b.term(Exp::ArrayLit(element, items))
            }
            ExpKind::Construct(_, number, payload) => {
                let ty = self.ty(&e.ty);
                let payload = self.exps(payload);
                self.b.term(Exp::Inject(ty, *number, payload))
            }
            ExpKind::Project(record, i) => {
                let record = self.exp(record);
                self.b.proj(record, *i)
            }
            ExpKind::RecordUpdate(record, path, value) => self.record_update(record, path, value),
            ExpKind::Apply(f, arguments) => self.apply(f, arguments),
            ExpKind::Lambda(params, body) => {
                let vars: Vec<Var> = params.iter().map(|p| self.parameter(p)).collect();
                let mut wraps = Vec::new();
                for (pattern, var) in params.iter().zip(&vars) {
                    self.destructure(pattern, *var, &mut wraps);
                }
                let body = self.exp(body);
                let body = self.close(wraps, body);
                vars.into_iter().rev().fold(body, |b, v| self.b.term(Exp::Lam(v, b)))
            }
            ExpKind::Let(bindings, body) => self.let_chain(bindings, body),
            ExpKind::If(..) => self.if_exp(e),
            ExpKind::Match(value, cases) => self.match_exp(value, cases),
            ExpKind::Loop(l) => self.loop_exp(l, LoopAttrs::default()),
            ExpKind::Index(array, dims) => self.index(array, dims),
            ExpKind::With(array, dims, value) => self.with(array, dims, value),
            ExpKind::Range(range) => self.range(range),
            ExpKind::Coerce(value, checks) => {
                let mut wraps = Vec::new();
                let value = self.exp(value);
                let value = self.named(value, "v", &mut wraps);
                for check in checks {
                    self.check_size(check, &[], Some(value), &mut wraps);
                }
                let value = self.b.var(value);
                self.close(wraps, value)
            }
            ExpKind::Attributed(attributes, inner) => self.attributed(attributes, inner),
            ExpKind::Assert(condition, value) => {
                let condition = self.exp(condition);
                let value = self.exp(value);
                self.b.assert(condition, "the condition is false", value)
            }
            ExpKind::Error => {
                self.broken("an expression is wrong".to_string());
                self.b.unit()
            }
        }
    }

    fn variable(&mut self, id: VarId, types: &[typed::Type]) -> Term {
        if self.local_functions.contains_key(&id) {
            let types = self.types(types);
            return self.local_instance(id, types);
        }
        match self.vars.get(&id) {
            Some(var) => self.b.var(*var),
            None => {
                let name = self.source.vars[id].name.clone();
                self.broken(format!("the variable {name} is not in scope"));
                self.b.unit()
            }
        }
    }

    /// The instance of a polymorphic local function at these types.
    fn local_instance(&mut self, id: VarId, types: Vec<Type>) -> Term {
        let Some(local) = self.local_functions.get(&id) else { return self.b.unit() };
        if let Some((_, var)) = local.instances.iter().find(|(t, _)| *t == types) {
            return self.b.var(*var);
        }
        let (fun, name) = (local.fun, local.name.clone());
        let outer = self.type_env.clone();
        self.type_env.extend(fun.type_params.iter().copied().zip(types.iter().cloned()));
        let params: Vec<Type> = fun.params.iter().map(|p| self.ty(&p.ty)).collect();
        let ty = Type::funs(params, self.ty(&fun.result));
        self.type_env = outer;
        let var = self.b.fresh(ty, name.as_str());
        if let Some(local) = self.local_functions.get_mut(&id) {
            local.instances.push((types, var));
        }
        self.b.var(var)
    }

    /// Fields are evaluated in the order written and stored in the order of the type.
    fn record(&mut self, fields: &'s [(Symbol, typed::Exp)]) -> Term {
        let sorted = fields.windows(2).all(|pair| pair[0].0 <= pair[1].0);
        let mut wraps = Vec::new();
        let mut items = Vec::new();
        for (name, value) in fields {
            let value = self.exp(value);
            let value = if sorted { value } else { self.atom(value, name.as_str(), &mut wraps) };
            items.push((name, value));
        }
        items.sort_by(|a, b| a.0.cmp(b.0));
        let record = self.b.tuple(items.into_iter().map(|(_, value)| value).collect());
        self.close(wraps, record)
    }

    fn record_update(&mut self, record: &'s typed::Exp, path: &[usize], value: &'s typed::Exp) -> Term {
        let mut wraps = Vec::new();
        let record = self.exp(record);
        let record = self.atom(record, "r", &mut wraps);
        let value = self.exp(value);
        let value = self.atom(value, "v", &mut wraps);
        let updated = self.updated(record, path, value, &mut wraps);
        self.close(wraps, updated)
    }

    fn updated(&mut self, record: Term, path: &[usize], value: Term, wraps: &mut Vec<Wrap>) -> Term {
        let Some((first, rest)) = path.split_first() else { return value };
        let count = record.ty().items().map_or(0, <[Type]>::len);
        let mut items = Vec::new();
        for i in 0..count {
            let item = self.b.proj(record.clone(), i);
            if i == *first {
                let item = if rest.is_empty() { item } else { self.atom(item, "r", wraps) };
                items.push(self.updated(item, rest, value.clone(), wraps));
            } else {
                items.push(item);
            }
        }
        self.b.tuple(items)
    }

    // ---- application

    fn apply(&mut self, f: &'s typed::Exp, arguments: &'s [typed::Exp]) -> Term {
        match &f.kind {
            ExpKind::Def(id, types) => {
                let arguments = self.exps(arguments);
                self.definition(*id, types, arguments)
            }
            ExpKind::Intrinsic(Intrinsic::Par, _) if arguments.len() == 1 => match &arguments[0].kind {
                ExpKind::Tuple(items) => {
                    let items = self.exps(items);
                    self.b.term(Exp::Par(items))
                }
                _ => self.exp(&arguments[0]),
            },
            ExpKind::Intrinsic(i, _) => {
                let algorithm = self.algorithm.take();
                let ty = self.ty(&f.ty);
                let arguments = self.exps(arguments);
                self.algorithm = algorithm;
                let result = self.intrinsic(*i, arguments, &ty);
                self.algorithm = None;
                result
            }
            _ => {
                let f = self.exp(f);
                let arguments = self.exps(arguments);
                self.b.apply(f, arguments)
            }
        }
    }

    /// A definition applied to as many arguments as there are.
    fn definition(&mut self, id: DefId, types: &[typed::Type], arguments: Vec<Term>) -> Term {
        let types = self.types(types);
        let fun = self.instance(id, types);
        let params: Vec<Type> =
            self.b.params(fun).into_iter().map(|v| self.b.program.vars[v].ty.clone()).collect();
        self.saturate(params, arguments, |e, all| e.b.call(fun, all))
    }

    /// Calls something with parameters of these types: arguments that are missing become parameters of a function
    /// value, those that are left over are applied to the result.
    pub(super) fn saturate(
        &mut self,
        params: Vec<Type>,
        mut arguments: Vec<Term>,
        call: impl FnOnce(&mut Self, Vec<Term>) -> Term,
    ) -> Term {
        if arguments.len() >= params.len() {
            let rest = arguments.split_off(params.len());
            let result = call(self, arguments);
            return self.b.apply(result, rest);
        }
        let mut wraps = Vec::new();
        // The arguments given are evaluated now, not when the function value is called.
        let mut all: Vec<Term> = arguments.into_iter().map(|a| self.argument(a, &mut wraps)).collect();
        let missing: Vec<Var> = params[all.len()..].iter().map(|ty| self.b.fresh(ty.clone(), "x")).collect();
        for var in &missing {
            let argument = self.b.var(*var);
            all.push(argument);
        }
        let body = call(self, all);
        let value = missing.into_iter().rev().fold(body, |b, v| self.b.term(Exp::Lam(v, b)));
        self.close(wraps, value)
    }

    /// An argument of a partial application. A function expression is a value already.
    fn argument(&mut self, argument: Term, wraps: &mut Vec<Wrap>) -> Term {
        if let Exp::Lam(..) = argument.exp() { argument } else { self.atom(argument, "a", wraps) }
    }

    // ---- local definitions and loops

    fn let_chain(&mut self, bindings: &'s [Binding], body: &'s typed::Exp) -> Term {
        let mut wraps = Vec::new();
        for binding in bindings {
            match binding {
                Binding::Value(binding) => {
                    let value = self.exp(&binding.value);
                    let var = self.bind(&binding.pattern, value, &mut wraps);
                    for bind in &binding.sizes {
                        self.bind_size(bind, &[], Some(var), &mut wraps);
                    }
                }
                Binding::Fun(LetFun { var, fun }) => self.local_function(*var, fun, &mut wraps),
            }
        }
        let body = self.exp(body);
        self.close(wraps, body)
    }

    fn local_function(&mut self, id: VarId, fun: &'s typed::Function, wraps: &mut Vec<Wrap>) {
        let name = self.source.vars[id].name.clone();
        if fun.type_params.is_empty() {
            let value = self.function_value(fun);
            let var = self.b.fresh(value.ty().clone(), name.as_str());
            wraps.push(Wrap::Let(var, value));
            self.vars.insert(id, var);
            return;
        }
        self.local_functions.insert(id, LocalFunction { fun, name, instances: Vec::new() });
        wraps.push(Wrap::Functions(id));
    }

    fn loop_exp(&mut self, l: &'s typed::Loop, attrs: LoopAttrs) -> Term {
        let mut outside = Vec::new();
        let init = self.exp(&l.initial);
        let state = self.parameter(&l.pattern);
        let mut inside = Vec::new();
        let form = match &l.form {
            typed::LoopForm::For(id, bound) => {
                let bound = self.exp(bound);
                let name = self.source.vars[*id].name.to_string();
                let i = self.b.fresh(bound.ty().clone(), &name);
                self.vars.insert(*id, i);
                LoopForm::For(i, bound)
            }
            typed::LoopForm::ForIn(pattern, array) => {
                let array = self.exp(array);
                let array = self.atom(array, "xs", &mut outside);
                let count = self.b.size(array.clone(), 0);
                let i = self.b.fresh(Type::I64, "i");
                let position = self.b.var(i);
                let element = self.b.index(array, vec![position]);
                self.bind(pattern, element, &mut inside);
                LoopForm::For(i, count)
            }
            typed::LoopForm::While(condition) => {
                let mut wraps = Vec::new();
                self.destructure(&l.pattern, state, &mut wraps);
                let condition = self.exp(condition);
                LoopForm::While(self.close(wraps, condition))
            }
        };
        self.destructure(&l.pattern, state, &mut inside);
        let body = self.exp(&l.body);
        let body = self.close(inside, body);
        let result = self.b.term(Exp::Loop(pullback_lambda::term::Loop { state, init, form, body, attrs }));
        self.close(outside, result)
    }

    // ---- attributes

    fn attributed(&mut self, attributes: &'s [Attribute], mut inner: &'s typed::Exp) -> Term {
        let mut all: Vec<&Attribute> = attributes.iter().collect();
        while let ExpKind::Attributed(more, next) = &inner.kind {
            all.extend(more);
            inner = next;
        }
        let mut attrs = LoopAttrs::default();
        let mut marks = Vec::new();
        for attribute in all {
            match attribute.name.as_str() {
                "recompute" => marks.push(Mark::Recompute),
                "store" => marks.push(Mark::Store),
                "tape" | "stripmine" | "bound" => self.loop_attribute(attribute, inner, &mut attrs),
                "ad" => self.algorithm_attribute(attribute, inner),
                // Futhark ignores attributes it does not know; so do we.
                _ => {}
            }
        }
        let term = match &inner.kind {
            ExpKind::Loop(l) => self.at(inner.span, |e| e.loop_exp(l, attrs)),
            _ => self.exp(inner),
        };
        marks.into_iter().rev().fold(term, |term, mark| self.b.term(Exp::Marked(mark, term)))
    }

    fn loop_attribute(&mut self, attribute: &Attribute, inner: &typed::Exp, attrs: &mut LoopAttrs) {
        if !matches!(inner.kind, ExpKind::Loop(_)) {
            let message = format!("#[{}] stands before something that is no loop", attribute.name);
            self.at(attribute.span, |e| e.report(Code::Syntax, message, "put it right before `loop`"));
            return;
        }
        let number = match attribute.arguments.as_slice() {
            [AttributeArgument::Int(n)] => u64::try_from(*n).ok().filter(|n| *n > 0),
            _ => None,
        };
        let (known, hint) = match attribute.name.as_str() {
            "tape" => {
                attrs.tape = tape_policy(&attribute.arguments);
                (attrs.tape.is_some(), "known are tape(all), tape(carry), tape(sqrt) and tape(revolve s)")
            }
            "stripmine" => {
                attrs.stripmine = number.and_then(|n| u32::try_from(n).ok());
                (attrs.stripmine.is_some(), "write stripmine(k) with a positive number k")
            }
            _ => {
                attrs.bound = number;
                (attrs.bound.is_some(), "write bound(b) with a positive number b")
            }
        };
        if !known {
            let name = attribute.name.clone();
            self.at(attribute.span, |e| {
                e.report(Code::Syntax, format!("the arguments of #[{name}] are wrong"), hint)
            });
        }
    }

    fn algorithm_attribute(&mut self, attribute: &Attribute, inner: &typed::Exp) {
        let derivative = match &inner.kind {
            ExpKind::Apply(f, _) => matches!(
                f.kind,
                ExpKind::Intrinsic(
                    Intrinsic::Vjp
                        | Intrinsic::Vjp2
                        | Intrinsic::Jvp
                        | Intrinsic::Jvp2
                        | Intrinsic::Mjp
                        | Intrinsic::Mjp2
                        | Intrinsic::Jmp
                        | Intrinsic::Jmp2,
                    _
                )
            ),
            _ => false,
        };
        match attribute.arguments.as_slice() {
            [AttributeArgument::Name(name, more)] if derivative && more.is_empty() => {
                self.algorithm = Some(name.clone());
            }
            _ => self.at(attribute.span, |e| {
                e.report(
                    Code::Syntax,
                    "#[ad(NAME)] chooses the algorithm of a vjp or jvp, and here is none".to_string(),
                    "put it right before the application: #[ad(NAME)] vjp f x y_bar",
                );
            }),
        }
    }
}

fn tape_policy(arguments: &[AttributeArgument]) -> Option<TapePolicy> {
    let [AttributeArgument::Name(name, more)] = arguments else { return None };
    match (name.as_str(), more.as_slice()) {
        ("all", []) => Some(TapePolicy::All),
        ("carry", []) => Some(TapePolicy::Carry),
        ("sqrt", []) => Some(TapePolicy::Sqrt),
        ("revolve", [AttributeArgument::Int(s)]) => {
            u32::try_from(*s).ok().filter(|s| *s > 0).map(TapePolicy::Revolve)
        }
        _ => None,
    }
}
