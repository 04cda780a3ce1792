//! Instructions of kernel text.

use super::lex::Token;
use super::{Read, ReadError, Reader};
use crate::ir::{Fold, Ins, MessageId, Operand, Order, Reg};
use pullback_base::index::Index;
use pullback_prim::Prim;

/// A place in memory: pointer and index, and the distance between lanes if it is one for each.
type Element = (Operand, Operand, Option<Operand>);

impl Reader {
    pub(super) fn ins(&mut self) -> Read<Ins> {
        let is_lanes = |r: &Reader| matches!(r.ahead(1), Token::Word(word) if word == "lanes");
        match self.peek() {
            _ if self.is_register() => self.starts_with_register(),
            Token::Number(_) if is_lanes(self) => self.lanes(),
            Token::Number(_) | Token::Sign('-') => self.store(),
            Token::Word(word) => match word.as_str() {
                "for" => self.for_(),
                "while" => self.while_(),
                "if" => self.if_(),
                "call" => self.call(Vec::new()),
                "chunks" => self.chunks(),
                "fill" => self.fill(),
                "copy" => self.copy(),
                "release" => {
                    self.at += 1;
                    Ok(Ins::Release { mark: self.operand()? })
                }
                "fail" => self.fail(),
                "null" => self.store(),
                _ if self.is_constant() => self.store(),
                _ => self.expected("an instruction"),
            },
            _ => self.expected("an instruction"),
        }
    }

    // With blocks inside

    /// `from .. to ..`
    fn range(&mut self) -> Read<(Operand, Operand)> {
        self.expect_word("from")?;
        let from = self.operand()?;
        self.expect_word("to")?;
        Ok((from, self.operand()?))
    }
    fn for_(&mut self) -> Read<Ins> {
        self.at += 1;
        let i = self.set()?;
        let (from, to) = self.range()?;
        let mut order = Order::Given;
        if self.eat_word("in") {
            self.expect_word("any")?;
            self.expect_word("order")?;
            let mut folds = Vec::new();
            while self.eat_word("folding") {
                folds.push(self.fold()?);
            }
            order = Order::Any(folds);
        }
        Ok(Ins::For { i, from, to, body: self.block()?, order })
    }
    fn fold(&mut self) -> Read<Fold> {
        let state = self.listed(Self::set)?;
        self.expect_word("neutral")?;
        let neutral = self.operands()?;
        self.expect_word("left")?;
        let left = self.listed(Self::set)?;
        self.expect_word("right")?;
        let right = self.listed(Self::set)?;
        let combine = self.block()?;
        self.expect_word("out")?;
        Ok(Fold { state, neutral, combine, left, right, out: self.operands()? })
    }
    fn lanes(&mut self) -> Read<Ins> {
        let lanes = self.count()?;
        self.expect_word("lanes")?;
        let i = self.set()?;
        let (from, to) = self.range()?;
        Ok(Ins::Lanes { i, from, to, lanes, body: self.block()? })
    }
    fn while_(&mut self) -> Read<Ins> {
        self.at += 1;
        let condition = self.block()?;
        let test = self.operand()?;
        Ok(Ins::While { condition, test, body: self.block()? })
    }
    fn if_(&mut self) -> Read<Ins> {
        self.at += 1;
        let condition = self.operand()?;
        let then = self.block()?;
        let otherwise = if self.eat_word("else") { self.block()? } else { Vec::new() };
        Ok(Ins::If { condition, then, otherwise })
    }

    // Calls and stops

    fn call(&mut self, to: Vec<Reg>) -> Read<Ins> {
        self.expect_word("call")?;
        let function = self.called()?;
        Ok(Ins::Call { to, function, args: self.operands()? })
    }
    /// `0 .. n`
    fn up_to(&mut self) -> Read<Operand> {
        self.expect_token(&Token::Number("0".to_string()))?;
        self.expect_token(&Token::Dots)?;
        self.operand()
    }
    fn chunks(&mut self) -> Read<Ins> {
        self.at += 1;
        let count = self.up_to()?;
        self.expect_word("of")?;
        let function = self.called()?;
        Ok(Ins::Chunks { count, function, args: self.operands()? })
    }
    fn fail(&mut self) -> Read<Ins> {
        self.at += 1;
        self.expect_word("if")?;
        let condition = self.operand()?;
        self.expect(':')?;
        let (start, number) = (self.position(), self.message_number()?);
        if number >= self.module.messages.len() {
            return Err(ReadError::at(start, format!("there is no message_{number}")));
        }
        Ok(Ins::Fail { condition, message: MessageId::new(number), values: self.operands()? })
    }

    // Memory

    fn element(&mut self) -> Read<Element> {
        let pointer = self.operand()?;
        self.expect('[')?;
        let index = self.operand()?;
        let mut stride = None;
        if self.eat('+') {
            self.expect_word("lane")?;
            self.expect('*')?;
            stride = Some(self.operand()?);
        }
        self.expect(']')?;
        Ok((pointer, index, stride))
    }
    fn mask(&mut self) -> Read<Option<Operand>> {
        if self.eat_word("where") { Ok(Some(self.operand()?)) } else { Ok(None) }
    }
    /// An element that is set or added to.
    fn store(&mut self) -> Read<Ins> {
        let (pointer, index, stride) = self.element()?;
        self.expect(':')?;
        let ty = self.ty()?;
        let adds = self.eat('+');
        self.expect('=')?;
        let value = self.operand()?;
        let mask = if stride.is_some() { self.mask()? } else { None };
        let atomic = adds && self.eat_word("atomically");
        Ok(match (stride, adds) {
            (None, false) => Ins::Store { pointer, index, value, ty },
            (None, true) => Ins::Accumulate { pointer, index, value, ty, atomic },
            (Some(stride), false) => Ins::StoreLanes { pointer, index, stride, value, ty, mask },
            (Some(stride), true) => Ins::AccumulateLanes { pointer, index, stride, value, ty, mask, atomic },
        })
    }
    /// `pointer[0 .. count]: type =`
    fn all(&mut self) -> Read<(Operand, Operand, crate::ir::Ty)> {
        self.at += 1;
        let pointer = self.operand()?;
        self.expect('[')?;
        let count = self.up_to()?;
        self.expect(']')?;
        self.expect(':')?;
        let ty = self.ty()?;
        self.expect('=')?;
        Ok((pointer, count, ty))
    }
    fn fill(&mut self) -> Read<Ins> {
        let (pointer, count, ty) = self.all()?;
        Ok(Ins::Fill { pointer, count, value: self.operand()?, ty })
    }
    fn copy(&mut self) -> Read<Ins> {
        let (to, count, ty) = self.all()?;
        Ok(Ins::Copy { to, from: self.operand()?, count, ty })
    }

    // What sets registers

    fn starts_with_register(&mut self) -> Read<Ins> {
        let quoted = usize::from(matches!(self.peek(), Token::Text(_)));
        if *self.ahead(1 + quoted) == Token::Sign('[') {
            return self.store();
        }
        let mut to = vec![self.set()?];
        while self.eat(',') {
            to.push(self.set()?);
        }
        self.expect('=')?;
        match to[..] {
            [to] if !self.is_word("call") => self.value(to),
            _ => self.call(to),
        }
    }
    /// The instruction that sets a register to what follows.
    fn value(&mut self, to: Reg) -> Read<Ins> {
        if self.eat_word("mark") {
            return Ok(Ins::Mark { to });
        }
        if self.eat_word("clock") {
            return Ok(Ins::Clock { to });
        }
        if self.eat_word("alloc") {
            let count = self.operand()?;
            return Ok(Ins::Alloc { to, count, ty: self.ty()? });
        }
        if self.eat_word("lane") {
            if self.eat_word("numbers") {
                return Ok(Ins::LaneNumber { to });
            }
            let lane = self.count()?;
            self.expect_word("of")?;
            return Ok(Ins::Lane { to, from: self.operand()?, lane });
        }
        let is_prim = matches!(self.peek(), Token::Word(word) if word.contains('.'));
        if is_prim && !self.is_constant() { self.prim(to) } else { self.operand_or_place(to) }
    }
    fn prim(&mut self, to: Reg) -> Read<Ins> {
        let prim = if let Token::Word(word) = self.peek() { Prim::from_name(word) } else { None };
        let Some(prim) = prim else { return self.expected("a primitive") };
        self.at += 1;
        if !self.eat_word("of") {
            return Ok(Ins::Prim { to, prim, args: self.operands()? });
        }
        self.expect_word("lanes")?;
        let from = self.operand()?;
        self.expect_word("neutral")?;
        let neutral = self.constant()?;
        Ok(Ins::FoldLanes { to, prim, neutral, from, mask: self.mask()? })
    }
    fn operand_or_place(&mut self, to: Reg) -> Read<Ins> {
        let start = self.at;
        let value = self.operand()?;
        if *self.peek() == Token::Sign('[') {
            self.at = start;
            let (pointer, index, stride) = self.element()?;
            return Ok(match stride {
                None => Ins::Load { to, pointer, index },
                Some(stride) => Ins::LoadLanes { to, pointer, index, stride, mask: self.mask()? },
            });
        }
        if !self.eat('+') {
            return Ok(Ins::Set { to, value });
        }
        let index = self.operand()?;
        self.expect_word("of")?;
        let ty = self.ty()?;
        let room = if self.eat_word("room") { Some(self.operand()?) } else { None };
        Ok(Ins::Offset { to, pointer: value, index, ty, room })
    }
}
