//! Reads kernel text: `read(print_whole(m)) == m`.
//!
//! # Grammar
//! White space and comments (`//` to the end of a line) may stand between any two tokens. `x*` stands for any number of `x`,
//! `x?` for one or none, `x,*` for a list with commas between.
//! ```text
//! module    = ("lanes" count)? ("without" given)* message* function*
//! given     = "updates" | "schedule" | "code"
//! message   = "message_" number ":" kind text ("at" span)?          numbers from 0, in order
//! text      = "plain" string | "index" count | "shapes" string count | "slice" | "reshape" count
//! span      = file ":" start ".." end
//! function  = "function" name "(" set,* ")" "->" "(" set,* ")" ("called" "by" name "at" span)?
//!             "{" ("register" set)* ins* "}"
//! name      = word | string
//! register  = (word | string) "_" number                            as one word: x_3, "a.b"_4, _5
//! set       = register (":" type ("#" "[" fact,* "]")?)?            the type where it is mentioned first
//! fact      = "tape" | "owned" | "choice" | "at" span | "for" string ("primal" | "reverse" | "both") span?
//!           | "array" "of" type "[" operand,* "]"                   registers that may be declared later
//! type      = scalar | "pointer" | count "lanes" "of" scalar
//! operand   = register | constant | "null"
//! constant  = 1i64, -2.5f32, true, -f64.inf, f32.nan, f64.bits(0x7ff8000000000001), ..
//! block     = "{" ins* "}"
//! ins       = set "=" value
//!           | set,* "=" "call" name "(" operand,* ")" | "call" name "(" operand,* ")"
//!           | element ":" type ("=" | "+=") operand ("where" operand)? "atomically"?
//!           | ("fill" | "copy") operand "[" 0 ".." operand "]" ":" type "=" operand
//!           | "release" operand
//!           | "fail" "if" operand ":" "message_" number "(" operand,* ")"
//!           | "chunks" 0 ".." operand "of" name "(" operand,* ")"
//!           | "for" set "from" operand "to" operand ("in" "any" "order" fold*)? block
//!           | count "lanes" set "from" operand "to" operand block
//!           | "while" block operand block
//!           | "if" operand block ("else" block)?
//! element   = operand "[" operand ("+" "lane" "*" operand)? "]"
//! fold      = "folding" "(" set,* ")" "neutral" "(" operand,* ")" "left" "(" set,* ")" "right" "(" set,* ")"
//!             block "out" "(" operand,* ")"
//! value     = operand | primitive "(" operand,* ")"
//!           | element ("where" operand)?
//!           | operand "+" operand "of" type ("room" operand)?
//!           | "alloc" operand type | "mark" | "clock" | "lane" "numbers"
//!           | primitive "of" "lanes" operand "neutral" constant ("where" operand)?
//!           | "lane" count "of" operand
//! ```
//! Registers of a function are numbered from 0 without gaps. One that the text reads before it sets it, or never mentions, is
//! declared at the head of the body. Functions may be called before the text has them.
//!
//! # Guarantees
//! Any text gives a module or an error with its place; nothing panics. Types, scopes and what instructions demand are not
//! checked, so that a check of kernel IR can be tested from text. Blocks may nest [`MAX_DEPTH`] deep.

mod ins;
mod lex;
mod values;

use crate::ir::{Block, Facts, Function, FunctionId, Module, Reg, RegInfo};
use crate::verify::Fallback;
use lex::{Token, lex};
use pullback_base::index::{Index, IndexVec};
use std::collections::BTreeMap;
use std::fmt;

/// The deepest nesting of blocks that is read.
pub const MAX_DEPTH: usize = 400;

/// Why a text is no module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

impl ReadError {
    fn at(position: Position, message: impl Into<String>) -> ReadError {
        ReadError { line: position.line, column: position.column, message: message.into() }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ReadError {}

/// The place of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    line: usize,
    column: usize,
}

type Read<T> = Result<T, ReadError>;

/// Reads a module. Cost: the size of the text.
///
/// # Errors
/// The first place where the text departs from the grammar, or mentions a register, function or message that it does not have.
pub fn read(text: &str) -> Result<Module, ReadError> {
    let mut reader = Reader {
        tokens: lex(text)?,
        at: 0,
        depth: 0,
        module: Module::default(),
        names: BTreeMap::new(),
        regs: BTreeMap::new(),
        sizes: Vec::new(),
    };
    reader.declare()?;
    reader.module()?;
    Ok(reader.module)
}

/// Where a reader is in the text, and what it has made of it.
struct Reader {
    tokens: Vec<(Token, Position)>,
    at: usize,
    depth: usize,
    module: Module,
    /// The functions of the text.
    names: BTreeMap<String, FunctionId>,
    /// The registers of this function so far, by their numbers.
    regs: BTreeMap<Reg, RegInfo>,
    /// Sizes of arrays that this function has to have.
    sizes: Vec<(Position, String, Reg)>,
}

/// Tokens.
impl Reader {
    fn peek(&self) -> &Token {
        self.ahead(0)
    }
    fn ahead(&self, by: usize) -> &Token {
        self.tokens.get(self.at + by).map_or(&Token::End, |t| &t.0)
    }
    fn position(&self) -> Position {
        let last = self.tokens.last().map_or(Position { line: 1, column: 1 }, |t| t.1);
        self.tokens.get(self.at).map_or(last, |t| t.1)
    }
    fn wrong<T>(&self, message: impl Into<String>) -> Read<T> {
        Err(ReadError::at(self.position(), message))
    }
    fn expected<T>(&self, what: &str) -> Read<T> {
        self.wrong(format!("expected {what}, found {}", self.peek().describe()))
    }
    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(w) if w == word)
    }
    fn eat(&mut self, sign: char) -> bool {
        let found = *self.peek() == Token::Sign(sign);
        self.at += usize::from(found);
        found
    }
    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }
    fn expect(&mut self, sign: char) -> Read<()> {
        if self.eat(sign) { Ok(()) } else { self.expected(&format!("`{sign}`")) }
    }
    fn expect_word(&mut self, word: &str) -> Read<()> {
        if self.eat_word(word) { Ok(()) } else { self.expected(&format!("`{word}`")) }
    }
    fn expect_token(&mut self, token: &Token) -> Read<()> {
        if self.peek() != token {
            return self.expected(&token.describe());
        }
        self.at += 1;
        Ok(())
    }
    /// Items with commas between them, up to the closing sign, which is consumed.
    fn list<T>(&mut self, close: char, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let mut out = Vec::new();
        if self.eat(close) {
            return Ok(out);
        }
        loop {
            out.push(item(self)?);
            if !self.eat(',') {
                self.expect(close)?;
                return Ok(out);
            }
        }
    }
    /// A list in parentheses.
    fn listed<T>(&mut self, item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        self.expect('(')?;
        self.list(')', item)
    }
}

/// Functions and registers.
impl Reader {
    /// Numbers the functions of the text, so that calls may come first.
    fn declare(&mut self) -> Read<()> {
        for k in 0..self.tokens.len() {
            let is_function = matches!(&self.tokens[k].0, Token::Word(w) if w == "function");
            let Some((Token::Word(name) | Token::Text(name), place)) = self.tokens.get(k + 1) else {
                continue;
            };
            let next = FunctionId::new(self.names.len());
            if is_function && self.names.insert(name.clone(), next).is_some() {
                return Err(ReadError::at(*place, format!("there are two functions named {name:?}")));
            }
        }
        Ok(())
    }
    fn module(&mut self) -> Read<()> {
        if self.eat_word("lanes") {
            self.module.lanes = self.count()?;
        }
        while self.eat_word("without") {
            let given = Fallback::ALL.into_iter().find(|fallback| self.is_word(fallback.name()));
            let Some(given) = given else { return self.expected("`updates`, `schedule` or `code`") };
            self.at += 1;
            self.module.fallbacks.push(given);
        }
        while !self.is_word("function") && *self.peek() != Token::End {
            let message = self.message()?;
            self.module.messages.push(message);
        }
        while self.eat_word("function") {
            let function = self.function()?;
            self.module.functions.push(function);
        }
        if *self.peek() == Token::End { Ok(()) } else { self.expected("`function`") }
    }
    fn function(&mut self) -> Read<Function> {
        let id = FunctionId::new(self.module.functions.len());
        let name = self.name()?;
        let params = self.listed(Self::set)?;
        self.expect_token(&Token::Arrow)?;
        let results = self.listed(Self::set)?;
        if self.eat_word("called") {
            self.expect_word("by")?;
            let by = self.called()?;
            self.expect_word("at")?;
            let span = self.span()?;
            self.module.calls.insert(id, (by, span));
        }
        let start = self.position();
        self.expect('{')?;
        while self.eat_word("register") {
            self.set()?;
        }
        let body = self.instructions()?;
        for (place, hint, reg) in std::mem::take(&mut self.sizes) {
            self.known(place, &hint, reg)?;
        }
        let mut regs = IndexVec::new();
        for (r, info) in std::mem::take(&mut self.regs) {
            if r.index() != regs.len() {
                let message = format!("this function has register {}, but not {}", r.index(), regs.len());
                return Err(ReadError::at(start, message));
            }
            regs.push(info);
        }
        Ok(Function { name, params, results, regs, body })
    }
    fn name(&mut self) -> Read<String> {
        let (Token::Word(name) | Token::Text(name)) = self.peek() else { return self.expected("a name") };
        let name = name.clone();
        self.at += 1;
        Ok(name)
    }
    /// The function of a name.
    fn called(&mut self) -> Read<FunctionId> {
        let start = self.position();
        let name = self.name()?;
        let found = self.names.get(&name).copied();
        found.ok_or_else(|| ReadError::at(start, format!("there is no function named {name:?}")))
    }
    /// Whether a register is next.
    fn is_register(&self) -> bool {
        match self.peek() {
            Token::Word(word) => register(word).is_some(),
            Token::Text(_) => matches!(self.ahead(1), Token::Word(word) if word.starts_with('_')),
            _ => false,
        }
    }
    /// The name of a register before its number, and the number.
    fn register(&mut self) -> Read<(String, Reg)> {
        let quoted = if let Token::Text(text) = self.peek() { Some(text.clone()) } else { None };
        let last = self.ahead(usize::from(quoted.is_some()));
        let found = if let Token::Word(word) = last { register(word) } else { None };
        let Some((hint, reg)) = found.filter(|(hint, _)| quoted.is_none() || hint.is_empty()) else {
            return self.expected("a register");
        };
        let hint = hint.to_string();
        self.at += 1 + usize::from(quoted.is_some());
        Ok((quoted.unwrap_or(hint), reg))
    }
    /// A register that is read.
    fn used(&mut self) -> Read<Reg> {
        let start = self.position();
        let (hint, reg) = self.register()?;
        self.known(start, &hint, reg)
    }
    /// A register that has been declared.
    fn known(&self, start: Position, hint: &str, reg: Reg) -> Read<Reg> {
        let message = match self.regs.get(&reg) {
            Some(known) if known.hint == hint => return Ok(reg),
            Some(known) => format!("register {} is named {:?}, not {hint:?}", reg.index(), known.hint),
            None => format!("register {} has no type so far", reg.index()),
        };
        Err(ReadError::at(start, message))
    }
    /// A register that is set: with its type, if it is mentioned for the first time.
    fn set(&mut self) -> Read<Reg> {
        let start = self.position();
        let (hint, reg) = self.register()?;
        if !self.eat(':') {
            return self.known(start, &hint, reg);
        }
        let ty = self.ty()?;
        let facts = if self.eat('#') { self.facts()? } else { Facts::default() };
        if self.regs.insert(reg, RegInfo { ty, hint, facts }).is_some() {
            let message = format!("register {} has a type already", reg.index());
            return Err(ReadError::at(start, message));
        }
        Ok(reg)
    }
    fn block(&mut self) -> Read<Block> {
        self.expect('{')?;
        self.instructions()
    }
    /// Instructions up to the closing brace, which is consumed.
    fn instructions(&mut self) -> Read<Block> {
        if self.depth == MAX_DEPTH {
            return self.wrong(format!("blocks nest more than {MAX_DEPTH} deep"));
        }
        self.depth += 1;
        let mut out = Vec::new();
        while !self.eat('}') {
            out.push(self.ins()?);
        }
        self.depth -= 1;
        Ok(out)
    }
}

/// The parts of a register that is written as one word.
fn register(word: &str) -> Option<(&str, Reg)> {
    let (hint, number) = word.rsplit_once('_')?;
    Some((hint, Reg::new(id(number)?)))
}

/// A number of a register, message or file.
fn id(digits: &str) -> Option<usize> {
    let is_plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    // Ids are one smaller than their greatest number.
    digits.parse::<u32>().ok().filter(|n| is_plain && *n < u32::MAX - 1).map(|n| n as usize)
}
