//! A module as one text, or as several that are compiled at the same time.
//!
//! A function is in one text, and so are the functions of floats that it uses, in each text that uses them. Which functions
//! are together depends on the module only.

use super::{Emitter, Options, Scopes, Shared, Symbol, TAIL, calls, entry_symbol, lanes, quoted, ty, uses};
use crate::pieces::{Pieces, cut};
use pullback_base::index::{IdSet, Index, IndexVec};
use pullback_kernel::{Block, Function, FunctionId, Ins, Module, recursive, size, walk};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The most texts.
const MOST: usize = 12;

/// A module that becomes text.
pub(super) struct Whole<'a> {
    options: &'a Options,
    pieces: Pieces,
    recursive: IndexVec<FunctionId, bool>,
    /// The functions for parts of loops.
    parts: IdSet<FunctionId>,
    small_enough: usize,
    width: Option<u32>,
    /// The functions of each text.
    texts: Vec<Vec<FunctionId>>,
    /// Functions that are called from another text.
    shared: IdSet<FunctionId>,
}

impl<'a> Whole<'a> {
    pub(super) fn new(module: &Module, options: &'a Options, several: bool) -> Whole<'a> {
        let pieces = cut(module, &options.pieces);
        let module = &pieces.module;
        let there = module.functions.ids().filter(|f| pieces.same[*f] == *f);
        let texts = if several {
            distributed(module, there.collect(), options.pieces.text)
        } else {
            vec![there.collect()]
        };
        let shared = shared(module, &texts);
        Whole {
            options,
            recursive: recursive(module),
            parts: uses::parts(module),
            small_enough: lanes::small_enough(module),
            width: options.vector_width.or_else(|| lanes_width(module)),
            texts,
            shared,
            pieces,
        }
    }

    /// The texts, and what they call.
    pub(super) fn texts(&self) -> (Vec<String>, Vec<Symbol>) {
        let mut symbols = BTreeMap::new();
        let texts = self.texts.iter().map(|functions| self.text(functions, &mut symbols)).collect();
        (texts, symbols.into_values().collect())
    }
    /// Whether a function may call itself.
    pub(super) fn is_recursive(&self) -> bool {
        self.recursive.iter().any(|r| *r)
    }
    /// The name of what enters each function that was there before it was cut.
    pub(super) fn entries(&self) -> Vec<String> {
        let whole = self.pieces.module.functions.ids().take(self.pieces.whole);
        whole.map(|f| entry_symbol(&self.pieces.module.functions[self.pieces.same[f]])).collect()
    }

    fn text(&self, functions: &[FunctionId], symbols: &mut BTreeMap<String, Symbol>) -> String {
        let mut shared = Shared::default();
        let mut text = String::new();
        for id in functions {
            let f = &self.pieces.module.functions[*id];
            let is_piece = id.index() >= self.pieces.whole;
            let is_large = is_piece || size(&f.body) >= self.options.pieces.whole;
            let emitter = Emitter {
                scopes: Scopes::new(f, &mut shared),
                options: self.options,
                lanes: None,
                small_enough: self.small_enough,
                active: None,
                writes: true,
                folds: Vec::new(),
                is_fold: false,
                pieces: &self.pieces,
                id: *id,
                f,
                shared: &mut shared,
                out: String::new(),
                slots: String::new(),
                values: uses::values(f),
                reads: uses::reads(f),
                speculation: None,
                stopped: BTreeMap::new(),
                record: 0,
                next: 0,
                has_stop: false,
                open_loops: 0,
                unordered: 0,
                // Where functions call themselves, what is outside of loops is done again and again.
                is_large: !self.is_recursive() && (is_large || self.is_cut(f)),
            };
            let linkage = if self.shared.contains(id) { "" } else { "internal " };
            // What is large stays a function, or it would not be compiled at the same time as others.
            let attributes = match (is_large || self.shared.contains(id), self.recursive[*id]) {
                (true, true) => "#4 noinline",
                (true, false) => "#0 noinline",
                (false, true) => "#4",
                (false, false) => "#0",
            };
            // Arguments on the stack are not copied in vectors, which would wait for the stores of their words.
            let hands_on = if uses::only_calls(&f.body) { " noimplicitfloat" } else { "" };
            let attributes = format!("{attributes}{hands_on}");
            text += &emitter.function(self.recursive[*id], (linkage, &attributes));
            if !is_piece {
                text += &entry(f, self.parts.contains(id));
            }
        }
        let elsewhere: String = self.called(functions).map(|line| line + "\n").collect();
        let width = self.width.map_or(String::new(), |bits| format!(" \"prefer-vector-width\"=\"{bits}\""));
        // The stack is aligned: vectors that do not fit in registers lie there, and across lines of the cache they take longer. Not in functions that
        // call themselves, of which there are many small calls.
        let attributes = format!(
            "attributes #0 = {{ nounwind{width} \"stackrealign\" }}\n\
             attributes #3 = {{ nounwind readnone{width} }}\n\
             attributes #4 = {{ nounwind{width} }}\n\
             attributes #6 = {{ nounwind argmemonly noinline cold{width} }}\n"
        );
        let declarations: String = shared.declarations.values().map(|d| format!("{d}\n")).collect();
        let nodes: String = shared
            .nodes
            .iter()
            .enumerate()
            .map(|(k, n)| format!("!{} = {n}\n", k + super::FIRST_NODE))
            .collect();
        symbols.append(&mut shared.symbols);
        format!("{text}{elsewhere}{declarations}{attributes}{TAIL}{nodes}")
    }

    /// Whether a function calls pieces: it was large.
    fn is_cut(&self, f: &Function) -> bool {
        let mut called = IdSet::new();
        callees(&f.body, &mut called);
        called.iter().any(|(f, _)| f.index() >= self.pieces.whole)
    }
    /// Declarations of what functions call that is in other texts.
    fn called(&self, functions: &[FunctionId]) -> impl Iterator<Item = String> {
        let (here, mut called): (IdSet<FunctionId>, _) = (functions.iter().copied().collect(), IdSet::new());
        functions.iter().for_each(|f| callees(&self.pieces.module.functions[*f].body, &mut called));
        called.into_iter().filter(move |(f, _)| !here.contains(f)).map(|(f, is_part)| {
            let f = &self.pieces.module.functions[f];
            if is_part {
                return format!("declare i32 @{}(ptr, ptr, ptr)", quoted(&entry_symbol(f)));
            }
            let params: String = f.params.iter().map(|p| format!(", {}", ty(f.regs[*p].ty))).collect();
            format!("declare i32 @{}(ptr{params}, ptr)", quoted(&format!("fn.{}", f.name)))
        })
    }
}

/// The width of vectors of as many numbers of eight bytes as there are lanes, up to the widest registers.
fn lanes_width(module: &Module) -> Option<u32> {
    (module.lanes > 0).then(|| (64 * module.lanes).clamp(128, 512) as u32)
}

/// Functions that a block calls, and whether as a part of a loop.
fn callees(block: &Block, out: &mut IdSet<(FunctionId, bool)>) {
    walk(block, &mut |ins| match ins {
        Ins::Call { function, .. } => _ = out.insert((*function, false)),
        Ins::Chunks { function, .. } => _ = out.insert((*function, true)),
        _ => {}
    });
}

/// Functions as texts of about equal length: the largest first, each to the shortest text so far.
fn distributed(module: &Module, mut functions: Vec<FunctionId>, worth: usize) -> Vec<Vec<FunctionId>> {
    let length = |f: &FunctionId| size(&module.functions[*f].body) + 10;
    let all: usize = functions.iter().map(length).sum();
    let mut texts = vec![(0, Vec::new()); (all / worth.max(1)).clamp(1, MOST)];
    functions.sort_by_key(|f| Reverse(length(f)));
    for f in functions {
        if let Some(shortest) = texts.iter_mut().min_by_key(|(length, _)| *length) {
            shortest.0 += length(&f);
            shortest.1.push(f);
        }
    }
    let texts = texts.into_iter().map(|(_, functions)| functions);
    texts.filter(|functions: &Vec<FunctionId>| !functions.is_empty()).collect()
}

/// Functions that are called from another text than their own.
fn shared(module: &Module, texts: &[Vec<FunctionId>]) -> IdSet<FunctionId> {
    let mut out = IdSet::new();
    for functions in texts {
        let mut called = IdSet::new();
        functions.iter().for_each(|f| callees(&module.functions[*f].body, &mut called));
        let called = called.into_iter().filter(|(f, is_part)| !is_part && !functions.contains(f));
        out.extend(called.map(|(f, _)| f));
    }
    out
}

/// The exported function on words. That of a part of a loop stays one: it is long, and the call is nothing beside it.
fn entry(f: &Function, is_part: bool) -> String {
    let attributes = if is_part { "#0 noinline" } else { "#0" };
    let mut out = format!(
        "define i32 @{}(ptr noalias nonnull %cx, ptr noalias %arguments, ptr noalias nonnull %results) {attributes} {{\n",
        quoted(&entry_symbol(f))
    );
    let mut args = vec!["ptr %cx".to_string()];
    for (k, r) in f.params.iter().enumerate() {
        let t = f.regs[*r].ty;
        let _ = writeln!(out, "  %p{k} = getelementptr inbounds i64, ptr %arguments, i64 {k}");
        out += &calls::load_word(&format!("%a{k}"), &format!("%p{k}"), t);
        args.push(format!("{} %a{k}", ty(t)));
    }
    args.push("ptr %results".to_string());
    let _ = write!(
        out,
        "  %status = call i32 @{}({})\n  ret i32 %status\n}}\n",
        quoted(&format!("fn.{}", f.name)),
        args.join(", ")
    );
    out
}
