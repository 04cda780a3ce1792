//! Constants that are stored one after the other: a table and a copy of it.
//!
//! LLVM's time grows faster than the number of stores. A literal of thousands of numbers is a constant of the module, and one `memcpy`.

use super::{Emitter, constant, in_memory};
use pullback_kernel::{Ins, Operand, Ty};
use pullback_prim::ScalarValue;

/// Stores of constants that follow each other, in instructions and in memory.
pub(super) struct Data {
    pointer: Operand,
    first: i64,
    ty: Ty,
    values: Vec<ScalarValue>,
}

/// So many stores are worth it: fewer are a few vectors, and LLVM sees through them.
const FEW: usize = 64;

/// The constants that the first instructions of a block store.
pub(super) fn data(block: &[Ins]) -> Option<Data> {
    let Ins::Store { pointer, index, ty: Ty::Scalar(s), .. } = block.first()? else { return None };
    let mut data = Data { pointer: *pointer, first: index.as_i64()?, ty: Ty::Scalar(*s), values: Vec::new() };
    for ins in block {
        match ins {
            Ins::Store { pointer, index, value: Operand::Const(c), ty }
                if (*pointer, *ty) == (data.pointer, data.ty) && index.as_i64() == data.next() =>
            {
                data.values.push(*c);
            }
            _ => break,
        }
    }
    (data.values.len() >= FEW).then_some(data)
}

impl Data {
    /// How many instructions it is.
    pub(super) fn length(&self) -> usize {
        self.values.len()
    }
    /// The place after it.
    fn next(&self) -> Option<i64> {
        self.first.checked_add(self.values.len() as i64)
    }
}

impl Emitter<'_> {
    /// Stores constants. Equal tables are one.
    pub(super) fn store_data(&mut self, data: &Data) {
        let (t, align) = (in_memory(data.ty), data.ty.bytes());
        let element = |c: &ScalarValue| match c {
            ScalarValue::Bool(x) => format!("{t} {}", u8::from(*x)),
            c => format!("{t} {}", constant(*c)),
        };
        let elements: Vec<String> = data.values.iter().map(element).collect();
        let table = format!("constant [{} x {t}] [{}], align {align}", elements.len(), elements.join(", "));
        let number = self.shared.tables.len();
        let number = *self.shared.tables.entry(table.clone()).or_insert(number);
        self.declare(&format!("@data.{number} = private unnamed_addr {table}"));
        let pointer = self.value(data.pointer);
        let to = self.let_(format_args!("getelementptr inbounds {t}, ptr {pointer}, i64 {}", data.first));
        let bytes = data.values.len() * align;
        self.copy_bytes(&to, &format!("@data.{number}"), &bytes.to_string(), align);
    }
}
