//! Functions that differ in names only.

use pullback_base::Span;
use pullback_base::index::{IdMap, IndexVec};
use pullback_kernel::{Block, Fold, Function, FunctionId, Ins, Operand, Order, Reg, RegInfo};
use std::collections::BTreeMap;

/// Code with the registers that it mentions, numbered in the order in which it does.
pub(super) struct Compact {
    /// It has no name, and neither have its registers.
    pub(super) function: Function,
    /// The new number of each register.
    pub(super) numbers: IdMap<Reg, Reg>,
}

/// Functions that are there once, by their size.
#[derive(Default)]
pub(super) struct Same(BTreeMap<(usize, usize), Vec<Known>>);

struct Known {
    function: Function,
    spans: Vec<(Reg, Span)>,
    id: FunctionId,
}

impl Same {
    /// The function that has this code, and asks for memory in these places: this one, if no earlier one does.
    pub(super) fn find(&mut self, code: &Compact, spans: &[(Reg, Span)], id: FunctionId) -> FunctionId {
        let f = &code.function;
        let alike = self.0.entry((f.regs.len(), super::size(&f.body))).or_default();
        if let Some(known) = alike.iter().find(|k| k.function == *f && k.spans == spans) {
            return known.id;
        }
        alike.push(Known { function: f.clone(), spans: spans.to_vec(), id });
        id
    }
}

/// Code of a function with these parameters and results.
pub(super) fn compact(f: &Function, mut body: Block, (params, results): (&[Reg], &[Reg])) -> Compact {
    let mut new = Numbers { of: f, regs: IndexVec::new(), numbers: IdMap::new() };
    let params = params.iter().map(|r| new.number(*r)).collect();
    new.block(&mut body);
    let results = results.iter().map(|r| new.number(*r)).collect();
    let function = Function { name: String::new(), params, results, regs: new.regs, body };
    Compact { function, numbers: new.numbers }
}

struct Numbers<'a> {
    of: &'a Function,
    regs: IndexVec<Reg, RegInfo>,
    numbers: IdMap<Reg, Reg>,
}

impl Numbers<'_> {
    fn number(&mut self, r: Reg) -> Reg {
        let (of, regs) = (self.of, &mut self.regs);
        let new = || regs.push(RegInfo::new(of.regs[r].ty, ""));
        *self.numbers.entry(r).or_insert_with(new)
    }
    fn block(&mut self, block: &mut Block) {
        for ins in block {
            ins.reads_mut(&mut |a| {
                if let Operand::Reg(r) = a {
                    *r = self.number(*r);
                }
            });
            ins.sets_mut().iter_mut().for_each(|r| *r = self.number(*r));
            if let Ins::For { order: Order::Any(folds), .. } = ins {
                folds.iter_mut().for_each(|fold| self.fold(fold));
            }
            ins.blocks_mut().into_iter().for_each(|b| self.block(b));
        }
    }
    /// What a fold sets: its reads are those of the loop.
    fn fold(&mut self, fold: &mut Fold) {
        let registers = fold.state.iter_mut().chain(&mut fold.left).chain(&mut fold.right);
        registers.for_each(|r| *r = self.number(*r));
        self.sets(&mut fold.combine);
    }
    fn sets(&mut self, block: &mut Block) {
        for ins in block {
            ins.sets_mut().iter_mut().for_each(|r| *r = self.number(*r));
            ins.blocks_mut().into_iter().for_each(|b| self.sets(b));
        }
    }
}
