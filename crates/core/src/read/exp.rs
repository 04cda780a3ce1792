//! Expressions of the text form.

use super::lex::Token;
use super::{Read, Reader};
use crate::ir::{
    Check, Exp, FusedForm, Loop, LoopAttrs, LoopForm, Mark, Shaped, SliceDim, Soac, TapePolicy, View,
};
use pullback_base::{Code, Diagnostic, Symbol};
use pullback_prim::Prim;

/// What a check of two shapes is about, by its word.
fn shaped(word: &str) -> Option<Shaped> {
    let name = word.strip_prefix("check_shapes_")?;
    Shaped::ALL.into_iter().find(|of| of.name() == name)
}

impl Reader {
    pub(super) fn exp(&mut self) -> Read<Exp> {
        let Token::Word(word) = self.peek().clone() else {
            return Ok(Exp::Atom(self.atom()?));
        };
        let called = matches!(self.tokens.get(self.at + 1), Some((Token::Sign('('), _)));
        if let Some(exp) = self.construct(&word)? {
            return Ok(exp);
        }
        if called && !word.ends_with(".nan") {
            return self.operation(&word);
        }
        let atom = self.atom()?;
        if self.is('[') { Ok(Exp::Index(atom, self.bracketed()?)) } else { Ok(Exp::Atom(atom)) }
    }

    /// Constructs that start with a word and are no calls.
    fn construct(&mut self, word: &str) -> Read<Option<Exp>> {
        let start = self.at;
        self.at += 1;
        // A variable may have the name of a construct: what follows decides.
        let next_is_list = self.is('[') || self.is('#');
        Ok(Some(match word {
            "if" if !self.is('[') => {
                let c = self.atom()?;
                let then = self.body()?;
                self.expect_word("else")?;
                Exp::If(c, then, self.body()?)
            }
            "match" if !self.is('[') => {
                let a = self.atom()?;
                let mut arms = Vec::new();
                while self.eat_word("case") {
                    arms.push(self.lam()?);
                }
                Exp::Match(a, arms)
            }
            "call" if matches!(self.peek(), Token::Word(_) | Token::Text(_)) => {
                let span = self.span();
                let name = self.name()?;
                let Some(f) = self.funs.get(name.as_str()).copied() else {
                    let message = format!("no function `{name}` is defined");
                    return Err(Diagnostic::error(Code::UnknownName, span, message));
                };
                self.expect('(')?;
                Exp::Call(f, self.list(')', Self::atom)?)
            }
            "loop" if self.is('(') || self.is('#') => Exp::Loop(self.loop_()?),
            "map" | "reduce" | "reduce_comm" | "scan" | "hist" | "map_reduce" | "map_reduce_comm"
            | "map_scan"
                if self.starts_atom() =>
            {
                Exp::Soac(self.soac(word)?)
            }
            "withacc" if next_is_list => Exp::WithAcc(self.bracketed()?, self.lam()?),
            "vjp" | "jvp" if next_is_list || self.is_word("seeds") => self.derivative(word)?,
            "custom" if next_is_list || self.is_word("tape") => {
                let tape = if self.eat_word("tape") { self.index()? } else { 0 };
                let args = self.bracketed()?;
                let primal = self.lam()?;
                Exp::Custom { primal, rule: self.lam()?, args, tape }
            }
            "recompute" if self.is('{') => Exp::Marked(Mark::Recompute, self.body()?),
            "store" if self.is('{') => Exp::Marked(Mark::Store, self.body()?),
            "par" => {
                let mut bodies = Vec::new();
                while self.is('{') {
                    bodies.push(self.body()?);
                }
                if bodies.is_empty() {
                    self.at = start;
                    return Ok(None);
                }
                Exp::Par(bodies)
            }
            _ => {
                self.at = start;
                return Ok(None);
            }
        }))
    }
    fn starts_atom(&self) -> bool {
        match self.peek() {
            Token::Word(w) => !super::RESERVED.contains(&w.as_str()) || w == "true" || w == "false",
            Token::Number(_) | Token::Sign('-') => true,
            Token::Text(_) | Token::Sign(_) | Token::Arrow | Token::End => false,
        }
    }

    /// `word(..)`
    fn operation(&mut self, word: &str) -> Read<Exp> {
        if word.contains('.') {
            let (is_check, name) = match word.strip_prefix("check_") {
                Some(name) => (true, name),
                None => (false, word),
            };
            let Some(prim) = Prim::from_name(name) else { return self.fail("a primitive of the table") };
            self.at += 2;
            let args = self.list(')', Self::atom)?;
            return Ok(if is_check { Exp::Check(Check::Prim(prim), args) } else { Exp::Prim(prim, args) });
        }
        let start = self.at;
        self.at += 2;
        let exp = match word {
            "tuple" => return Ok(Exp::Tuple(self.list(')', Self::atom)?)),
            "concat" => return Ok(Exp::Concat(self.list(')', Self::atom)?)),
            "array" => {
                let items = self.list(')', Self::atom)?;
                self.expect(':')?;
                return Ok(Exp::ArrayLit(self.ty()?, items));
            }
            "inject" => {
                let k = self.index()?;
                let fields = if self.eat(',') { self.list(')', Self::atom)? } else { Vec::new() };
                if fields.is_empty() {
                    self.expect(')')?;
                }
                self.expect(':')?;
                return Ok(Exp::Inject(self.ty()?, k, fields));
            }
            "proj" => Exp::Proj(self.atom()?, self.after_comma(Self::index)?),
            "size" => Exp::Size(self.atom()?, self.after_comma(Self::index)?),
            "slice" => Exp::Slice(self.atom()?, self.slice()?),
            "update" => {
                let a = self.atom()?;
                let ix = self.after_comma(Self::bracketed)?;
                Exp::Update(a, ix, self.after_comma(Self::atom)?)
            }
            "update_slice" => {
                let a = self.atom()?;
                let slice = self.slice()?;
                Exp::UpdateSlice(a, slice, self.after_comma(Self::atom)?)
            }
            "gather" => Exp::Gather(self.atom()?, self.after_comma(Self::atom)?),
            "iota" => Exp::Iota(self.atom()?),
            "replicate" => Exp::Replicate(self.bracketed()?, self.after_comma(Self::atom)?),
            "rearrange" => Exp::Rearrange(self.indices()?, self.after_comma(Self::atom)?),
            "reshape" => {
                let shape = self.bracketed()?;
                let from = self.after_comma(Self::index)?;
                Exp::Reshape { shape, from, array: self.after_comma(Self::atom)? }
            }
            "reverse" => Exp::Reverse(self.atom()?),
            "rotate" => Exp::Rotate(self.atom()?, self.after_comma(Self::atom)?),
            "plus" => Exp::Plus(self.atom()?, self.after_comma(Self::atom)?),
            "stop_gradient" => Exp::StopGradient(self.atom()?),
            "assert" => {
                let condition = self.atom()?;
                let message = self.after_comma(Self::text)?;
                let mut values = Vec::new();
                while self.eat(',') {
                    values.push(self.atom()?);
                }
                Exp::Assert(condition, message, values)
            }
            "check_slice" => return Ok(Exp::Check(Check::Slice, self.list(')', Self::atom)?)),
            "check_gather" => return Ok(Exp::Check(Check::Gather, self.list(')', Self::atom)?)),
            "check_rows" => return Ok(Exp::Check(Check::Rows, self.list(')', Self::atom)?)),
            "check_sizes" => return Ok(Exp::Check(Check::Sizes, self.list(')', Self::atom)?)),
            word if word == "check_index" || word == "check_reshape" || shaped(word).is_some() => {
                let count = self.index()?;
                self.expect(',')?;
                let args = self.list(')', Self::atom)?;
                let check = match shaped(word) {
                    Some(of) => Check::Shapes(of, count),
                    None if word == "check_index" => Check::Index(count),
                    None => Check::Reshape(count),
                };
                return Ok(Exp::Check(check, args));
            }
            "scatter" => {
                let width = self.atom()?;
                let dst = self.after_comma(Self::atom)?;
                let indices = self.after_comma(Self::atom)?;
                Exp::Soac(Soac::Scatter { width, dst, indices, values: self.after_comma(Self::atom)? })
            }
            "add_to" => {
                let acc = self.atom()?;
                let ix = self.after_comma(Self::bracketed)?;
                Exp::AccAdd(acc, ix, self.after_comma(Self::atom)?)
            }
            _ => match word.strip_prefix("view_") {
                Some(kind) => self.view(kind, start)?,
                None => {
                    self.at = start;
                    return self.fail("an operation of core");
                }
            },
        };
        self.expect(')')?;
        Ok(exp)
    }
    fn after_comma<T>(&mut self, item: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        self.expect(',')?;
        item(self)
    }
    fn text(&mut self) -> Read<Symbol> {
        match self.peek().clone() {
            Token::Text(t) => {
                self.at += 1;
                Ok(t.into())
            }
            _ => self.fail("a message as a string"),
        }
    }
    fn indices(&mut self) -> Read<Vec<usize>> {
        self.expect('[')?;
        self.list(']', Self::index)
    }
    /// `, start, len, stride`
    fn slice(&mut self) -> Read<SliceDim> {
        let start = self.after_comma(Self::atom)?;
        let len = self.after_comma(Self::atom)?;
        Ok(SliceDim { start, len, stride: self.after_comma(Self::atom)? })
    }
    fn view(&mut self, kind: &str, start: usize) -> Read<Exp> {
        let acc = self.atom()?;
        let view = match kind {
            "index" => View::Index(self.after_comma(Self::bracketed)?),
            "slice" => View::Slice(self.slice()?),
            "proj" => View::Proj(self.after_comma(Self::index)?),
            "rearrange" => View::Rearrange(self.after_comma(Self::indices)?),
            "reshape" => {
                let shape = self.after_comma(Self::bracketed)?;
                View::Reshape { shape, from: self.after_comma(Self::index)? }
            }
            "reverse" => View::Reverse,
            "rotate" => View::Rotate(self.after_comma(Self::atom)?),
            _ => {
                self.at = start;
                return self.fail("a view of an accumulator");
            }
        };
        Ok(Exp::AccView(acc, view))
    }

    fn soac(&mut self, word: &str) -> Read<Soac> {
        let width = self.atom()?;
        if word == "map" {
            let arrays = self.bracketed()?;
            return Ok(Soac::Map { width, lam: self.lam()?, arrays });
        }
        let neutral = self.bracketed()?;
        if word == "hist" {
            let dst = self.bracketed()?;
            let indices = self.atom()?;
            let values = self.bracketed()?;
            return Ok(Soac::Hist { width, lam: self.lam()?, neutral, dst, indices, values });
        }
        let arrays = self.bracketed()?;
        if word.starts_with("map_") {
            let form = match word {
                "map_scan" => FusedForm::Scan,
                _ => FusedForm::Reduce { commutative: word == "map_reduce_comm" },
            };
            let pre = self.lam()?;
            self.expect_word("with")?;
            return Ok(Soac::Fused { form, width, pre, lam: self.lam()?, neutral, arrays });
        }
        let lam = self.lam()?;
        Ok(if word == "scan" {
            Soac::Scan { width, lam, neutral, arrays }
        } else {
            Soac::Reduce { width, lam, neutral, arrays, commutative: word == "reduce_comm" }
        })
    }

    fn derivative(&mut self, word: &str) -> Read<Exp> {
        let mut algorithm = None;
        if self.eat('#') {
            self.expect('[')?;
            self.expect_word("ad")?;
            self.expect('(')?;
            algorithm = Some(self.name()?);
            self.expect(')')?;
            self.expect(']')?;
        }
        let seeds = if self.eat_word("seeds") { Some(self.atom()?) } else { None };
        let args = self.bracketed()?;
        let more = self.bracketed()?;
        let lam = self.lam()?;
        Ok(if word == "vjp" {
            Exp::Vjp { lam, args, cotangents: more, seeds, algorithm }
        } else {
            Exp::Jvp { lam, args, tangents: more, seeds, algorithm }
        })
    }

    fn loop_(&mut self) -> Read<Loop> {
        let mut attrs = LoopAttrs::default();
        while self.eat('#') {
            self.attribute(&mut attrs)?;
        }
        self.expect('(')?;
        let params = self.list(')', |me| {
            let v = me.binder()?;
            me.expect('=')?;
            Ok((v, me.atom()?))
        })?;
        let form = if self.eat_word("for") {
            let i = self.binder()?;
            self.expect('<')?;
            LoopForm::For { i, n: self.atom()? }
        } else {
            self.expect_word("while")?;
            LoopForm::While(self.body()?)
        };
        let collect = if self.eat_word("collect") { self.index()? } else { 0 };
        Ok(Loop { params, form, body: self.body()?, collect, attrs })
    }
    /// After `#`.
    fn attribute(&mut self, attrs: &mut LoopAttrs) -> Read<()> {
        self.expect('[')?;
        if self.eat_word("tape") {
            self.expect('(')?;
            let policy = self.name()?;
            attrs.tape = Some(match policy.as_str() {
                "all" => TapePolicy::All,
                "carry" => TapePolicy::Carry,
                "sqrt" => TapePolicy::Sqrt,
                "revolve" => {
                    self.expect('(')?;
                    let k = self.index()? as u32;
                    self.expect(')')?;
                    TapePolicy::Revolve(k)
                }
                "limit" => {
                    self.expect('(')?;
                    let bytes = self.number()?;
                    self.expect(')')?;
                    TapePolicy::Limit(bytes)
                }
                "near" => {
                    self.expect('(')?;
                    let bytes = self.number()?;
                    self.expect(',')?;
                    let least = self.index()? as u32;
                    self.expect(')')?;
                    TapePolicy::Near { bytes, least }
                }
                _ => {
                    self.at -= 1;
                    return self.fail("`all`, `carry`, `sqrt`, `revolve(k)`, `limit(k)` or `near(b, k)`");
                }
            });
        } else if self.eat_word("stripmine") {
            self.expect('(')?;
            attrs.stripmine = Some(self.index()? as u32);
        } else if self.eat_word("bound") {
            self.expect('(')?;
            attrs.bound = Some(self.number()?);
        } else {
            return self.fail("`tape`, `stripmine` or `bound`");
        }
        self.expect(')')?;
        self.expect(']')
    }
}
