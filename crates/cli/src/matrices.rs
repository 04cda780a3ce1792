//! The commands for matrices of derivatives and their products.

use crate::Failure;
use crate::args::{
    GaussNewtonArgs, InputArgs, JacobianArgs, JacobianMode, MatrixArgs, ProductArgs, ProgramArgs, WrtArgs,
};
use crate::commands::{can_run, failed, load_program, print_json};
use crate::inputs::{arguments, read_value, split};
use crate::output::{norm, note_lost, say, summary, write_file, write_value};
use crate::progress::with_progress;
use pullback_core::Value;
use pullback_driver::gradcheck::filled;
use pullback_driver::leaves::cotangent_type;
use pullback_driver::values::{Data, Sizes, as_large_as, decode, encode, json};
use pullback_driver::{Block, EntryPoint, Leaf, Matrix, Product, Session, Sweep};
use serde_json::{Map, Value as Json, json};
use std::path::Path;

/// Everything a derivative needs, read from the command line.
struct Problem {
    session: Session,
    entry: EntryPoint,
    selected: Vec<bool>,
    values: Vec<Value>,
}

impl Problem {
    fn new(program: &ProgramArgs, inputs: &InputArgs, wrt: &WrtArgs) -> Result<Problem, Failure> {
        let (session, entry) = load_program(program)?;
        can_run(&session, inputs)?;
        let selected = session.select(&entry, &wrt.parse()).map_err(|d| failed(&session, &d))?;
        let values = arguments(&entry, inputs)?;
        Ok(Problem { session, entry, selected, values })
    }
    /// The selected leaves, with the types of their cotangents.
    fn leaves(&self) -> Vec<Leaf> {
        let chosen = self.entry.parameters.iter().zip(&self.selected).filter(|(_, s)| **s);
        chosen.map(|(l, _)| Leaf { path: l.path.clone(), ty: cotangent_type(&l.ty) }).collect()
    }
    /// A direction for every selected argument: what is given, zero where nothing is.
    fn direction(&self, given: &[String]) -> Result<Vec<Value>, Failure> {
        let leaves = self.leaves();
        let chosen: Vec<&Value> =
            self.values.iter().zip(&self.selected).filter(|(_, s)| **s).map(|(v, _)| v).collect();
        let mut out: Vec<Option<Value>> = vec![None; leaves.len()];
        for text in given {
            let (name, written) = split(text)?;
            let Some(at) = leaves.iter().position(|l| l.path == name) else {
                let known: Vec<&str> = leaves.iter().map(|l| l.path.as_str()).collect();
                return Err(Failure::input(format!(
                    "no argument or field `{name}` among those to differentiate with respect to; there are {}",
                    known.join(", ")
                )));
            };
            let data = read_value(&leaves[at].ty, written, name)?;
            let encoded = encode(&leaves[at].ty, &data, &mut Sizes::new(), name);
            let mut encoded = encoded.map_err(|e| Failure::input(format!("direction `{name}`: {e}")))?;
            let direction = as_large_as(encoded.remove(0), chosen[at]);
            if out[at].replace(direction).is_some() {
                return Err(Failure::input(format!("--direction gives `{name}` twice")));
            }
        }
        let all = out.into_iter().zip(chosen).map(|(d, v)| d.or_else(|| filled(v, 0.0)));
        let all: Option<Vec<Value>> = all.collect();
        all.ok_or_else(|| Failure::input("a direction for an argument of sum type must be given whole"))
    }
}

/// `pullback jacobian`
pub(crate) fn jacobian(args: &JacobianArgs) -> Result<(), Failure> {
    let p = Problem::new(&args.program, &args.inputs, &args.wrt)?;
    let sweep = match args.mode {
        JacobianMode::Auto => Sweep::Auto,
        JacobianMode::Forward => Sweep::Forward,
        JacobianMode::Reverse => Sweep::Reverse,
    };
    let matrix = with_progress(&args.inputs, "jacobian", |o| {
        p.session.jacobian(&p.entry, &p.selected, &p.values, sweep, o)
    });
    let matrix = matrix.map_err(|d| failed(&p.session, &d))?;
    show_matrix("jacobian", &matrix, args.program.json, args.output.as_deref())
}

/// `pullback hessian`
pub(crate) fn hessian(args: &MatrixArgs) -> Result<(), Failure> {
    let p = Problem::new(&args.program, &args.inputs, &args.wrt)?;
    let matrix =
        with_progress(&args.inputs, "hessian", |o| p.session.hessian(&p.entry, &p.selected, &p.values, o));
    let matrix = matrix.map_err(|d| failed(&p.session, &d))?;
    show_matrix("hessian", &matrix, args.program.json, args.output.as_deref())
}

/// `pullback hvp`
pub(crate) fn hvp(args: &ProductArgs) -> Result<(), Failure> {
    let p = Problem::new(&args.program, &args.inputs, &args.wrt)?;
    let direction = p.direction(&args.directions)?;
    let product = with_progress(&args.inputs, "hvp", |o| {
        p.session.hvp(&p.entry, &p.selected, &p.values, &direction, o)
    });
    let product = product.map_err(|d| failed(&p.session, &d))?;
    let leaves = p.leaves();
    show_product(
        &p,
        &product,
        [("gradient", &leaves), ("hvp", &leaves)],
        args.program.json,
        args.output.as_deref(),
    )
}

/// `pullback gauss-newton`
pub(crate) fn gauss_newton(args: &GaussNewtonArgs) -> Result<(), Failure> {
    let p = Problem::new(&args.program, &args.inputs, &args.wrt)?;
    if args.directions.is_empty() {
        let matrix = with_progress(&args.inputs, "gauss-newton", |o| {
            p.session.gauss_newton_matrix(&p.entry, &p.selected, &p.values, o)
        });
        let matrix = matrix.map_err(|d| failed(&p.session, &d))?;
        return show_matrix("gauss_newton", &matrix, args.program.json, args.output.as_deref());
    }
    let direction = p.direction(&args.directions)?;
    let product = with_progress(&args.inputs, "gauss-newton", |o| {
        p.session.gauss_newton(&p.entry, &p.selected, &p.values, &direction, o)
    });
    let product = product.map_err(|d| failed(&p.session, &d))?;
    let results = p.entry.results.iter().zip(&p.entry.result_types);
    let active = results.filter(|(_, t)| p.session.lowered().is_active(t)).map(|(l, _)| Leaf {
        path: if l.path.is_empty() { "result".into() } else { l.path.clone() },
        ty: cotangent_type(&l.ty),
    });
    let tangents: Vec<Leaf> = active.collect();
    let parts = [("tangent", &tangents), ("gauss_newton", &p.leaves())];
    show_product(&p, &product, parts, args.program.json, args.output.as_deref())
}

/// Prints a matrix, or writes it to a file.
fn show_matrix(name: &str, matrix: &Matrix, json: bool, output: Option<&Path>) -> Result<(), Failure> {
    let dense = matrix.dense();
    let (rows, columns) = matrix.shape();
    let data = Data::Dense(dense.clone());
    if let Some(path) = output {
        write_value(path, &data)?;
    }
    if json {
        let (value, lost) = json::write(&data);
        note_lost(lost);
        let names = |blocks: &[Block]| -> Vec<Json> {
            blocks.iter().map(|b| json!({"name": b.path, "shape": b.shape})).collect()
        };
        print_json(&json!({"rows": rows, "columns": columns, "row_blocks": names(&matrix.rows),
                           "column_blocks": names(&matrix.columns), name: value}));
    } else if output.is_none() {
        say(&format!(
            "{rows} rows ({}), {columns} columns ({})",
            blocks(&matrix.rows),
            blocks(&matrix.columns)
        ));
        let floats = Value::Array(dense).floats();
        if rows * columns <= 2000 {
            for row in floats.chunks(columns.max(1)) {
                say(&row.iter().map(|x| format!("{x:>13.6e}")).collect::<Vec<_>>().join(" "));
            }
        } else {
            say(&format!("norm {:.15e}; write it whole with --output FILE.npy", norm(&floats)));
        }
    }
    Ok(())
}

/// `x[3], params.alpha`, in order.
fn blocks(blocks: &[Block]) -> String {
    let text = |b: &Block| {
        let name = if b.path.is_empty() { "result" } else { &b.path };
        let shape: String = b.shape.iter().map(|n| format!("[{n}]")).collect();
        format!("{name}{shape}")
    };
    blocks.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Prints a product and what was computed on the way; writes both to a file.
fn show_product(
    p: &Problem,
    product: &Product,
    [first, second]: [(&str, &Vec<Leaf>); 2],
    json: bool,
    output: Option<&Path>,
) -> Result<(), Failure> {
    let result = decode(&p.entry.entry.result, &product.results);
    let mut lines = vec![format!("result {}", summary(&result))];
    let mut whole = Map::new();
    let (value, mut lost) = json::write(&result);
    whole.insert("result".into(), value);
    for ((name, leaves), values) in [(first, &product.first), (second, &product.product)] {
        let mut part = Map::new();
        for (leaf, value) in leaves.iter().zip(values) {
            let data = decode(&leaf.ty, std::slice::from_ref(value));
            let (value, more) = json::write(&data);
            lost += more;
            lines.push(format!("{name} {} {}", leaf.path, summary(&data)));
            part.insert(leaf.path.clone(), value);
        }
        whole.insert(name.to_string(), Json::Object(part));
    }
    let whole = Json::Object(whole);
    if json || output.is_some() {
        note_lost(lost);
    }
    if let Some(path) = output {
        write_file(path, format!("{whole:#}\n").as_bytes())?;
    }
    if json {
        print_json(&whole);
    } else {
        lines.iter().for_each(|l| say(l));
    }
    Ok(())
}
