//! The primitive table as a page of the book.
//!
//! Guarantees: the text is a function of the table alone, so that a checked-in copy can be compared with it.

use std::fmt::Write;

use crate::prim::Partial;
use crate::table::{Class, Op, Row};

/// The table as Markdown: meaning and conventions of every operation, then the partial derivatives.
pub fn table_as_markdown() -> String {
    let mut page = String::from(
        "# Primitive operations\n\n\
         Generated from the primitive table; `r` is the result, `x`, `y`, `z` are the arguments in order.\n\n\
         | operation | types | cost | meaning and conventions |\n|---|---|---|---|\n",
    );
    for op in Op::ALL {
        let row = op.row();
        let types: Vec<&str> = row.classes.iter().map(class_name).collect();
        let signature = format!("{}({})", row.name, argument_names(row).join(", "));
        line(&mut page, &[&code(&signature), &types.join(", "), &row.cost.to_string(), row.note]);
    }
    page.push_str(
        "\n## Partial derivatives\n\n\
         At float types. The operations that are not listed are discrete: they contribute nothing to a derivative. Where a partial \
         derivative is infinite or no number at some finite arguments, a tangent or cotangent that is exactly zero stops there \
         (`kinks.md`).\n\n\
         | operation | with respect to | partial derivative | not finite somewhere |\n|---|---|---|---|\n",
    );
    for op in Op::ALL {
        let row = op.row();
        let partials = row.partials.unwrap_or_default().iter().zip(row.singular);
        for (argument, (partial, singular)) in argument_names(row).iter().zip(partials) {
            let mark = if *singular { "yes" } else { "" };
            line(&mut page, &[&code(row.name), &code(argument), &code(&infix(partial)), mark]);
        }
    }
    page
}

/// A partial derivative in the usual notation.
pub fn infix(partial: &Partial) -> String {
    let mut text = String::new();
    write_infix(&mut text, partial, LOOSEST);
    text
}

/// Binding strengths: an expression is put in parentheses where a stronger one is required.
const LOOSEST: u8 = 0;
const COMPARISON: u8 = 1;
const SUM: u8 = 2;
const PRODUCT: u8 = 3;
const PREFIX: u8 = 4;
const TIGHTEST: u8 = 5;

fn write_infix(text: &mut String, partial: &Partial, required: u8) {
    match *partial {
        Partial::Arg(i) => text.push_str(ARGUMENTS.get(usize::from(i)).copied().unwrap_or("?")),
        Partial::Result => text.push('r'),
        Partial::Const(c) => push(text, format_args!("{c}")),
        Partial::Op(op, operands) => {
            let (strength, pieces): (u8, &[&str]) = match op {
                Op::Add => (SUM, &["", " + ", ""]),
                Op::Sub => (SUM, &["", " - ", ""]),
                Op::Mul => (PRODUCT, &["", " * ", ""]),
                Op::Div => (PRODUCT, &["", " / ", ""]),
                Op::Neg => (PREFIX, &["-", ""]),
                Op::Eq => (COMPARISON, &["", " = ", ""]),
                Op::Lt => (COMPARISON, &["", " < ", ""]),
                Op::Le => (COMPARISON, &["", " <= ", ""]),
                Op::Select => (LOOSEST, &["if ", " then ", " else ", ""]),
                other => return write_call(text, other, operands),
            };
            let parenthesised = strength < required;
            if parenthesised {
                text.push('(');
            }
            text.push_str(pieces[0]);
            for (i, (operand, piece)) in operands.iter().zip(&pieces[1..]).enumerate() {
                // Operators associate to the left, so only the first operand may be as loose as the operator.
                let is_first = i == 0 && strength != PREFIX;
                write_infix(text, operand, if is_first { strength } else { (strength + 1).min(TIGHTEST) });
                text.push_str(piece);
            }
            if parenthesised {
                text.push(')');
            }
        }
    }
}

fn write_call(text: &mut String, op: Op, operands: &[Partial]) {
    push(text, format_args!("{}(", op.name()));
    for (i, operand) in operands.iter().enumerate() {
        if i > 0 {
            text.push_str(", ");
        }
        write_infix(text, operand, LOOSEST);
    }
    text.push(')');
}

fn push(text: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(piece);
}

const ARGUMENTS: [&str; 3] = ["x", "y", "z"];

fn argument_names(row: &Row) -> &'static [&'static str] {
    &ARGUMENTS[..row.arity]
}

fn class_name(class: &Class) -> &'static str {
    match class {
        Class::Float => "float",
        Class::Integer => "integer",
        Class::Bool => "bool",
    }
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// One line of a Markdown table; a bar inside a cell would end it.
fn line(page: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    push(page, format_args!("| {} |\n", cells.join(" | ")));
}
