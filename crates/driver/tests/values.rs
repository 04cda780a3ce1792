//! Sizes of arrays without rows, as other arguments say them.

use pullback_base::Symbol;
use pullback_core::{EntryType, Value};
use pullback_driver::values::{Data, Sizes, encode, encode_all, text};
use pullback_prim::Scalar;

/// The shape of an array of numbers read from text.
fn shape(ty: &EntryType, text: &str, sizes: &mut Sizes) -> Vec<usize> {
    let data = text::read(text).expect("a value");
    match encode(ty, &data, sizes, "x").expect("it fits").as_slice() {
        [Value::Array(a)] => a.shape.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_array_without_rows_has_the_sizes_that_are_known() {
    let array = |n: &str, t| EntryType::Array(Some(Symbol::new(n)), Box::new(t));
    let matrix = |n, m| array(n, array(m, EntryType::Scalar(Scalar::F64)));
    let mut sizes = Sizes::new();
    assert_eq!(shape(&matrix("n", "2"), "[]", &mut sizes), [0, 2]);
    assert_eq!(shape(&matrix("k", "m"), "[]", &mut sizes), [0, 0]);
    assert_eq!(shape(&matrix("p", "m"), "[[1.0, 2.0, 3.0]]", &mut sizes), [1, 3]);
    assert_eq!(shape(&matrix("q", "m"), "[]", &mut sizes), [0, 3]);
}

#[test]
fn any_argument_says_the_sizes_of_an_array_without_rows() {
    let float = || EntryType::Scalar(Scalar::F64);
    let array = |n: &str, t| EntryType::Array(Some(Symbol::new(n)), Box::new(t));
    let shapes = |types: Vec<EntryType>, texts: &[&str]| -> Result<Vec<Vec<usize>>, String> {
        let names = ["a", "b", "c"].map(Symbol::new);
        let params: Vec<(Symbol, EntryType)> = names.into_iter().zip(types).collect();
        let data: Vec<Data> = texts.iter().map(|t| text::read(t).expect("a value")).collect();
        let given: Vec<&Data> = data.iter().collect();
        let all = encode_all(&params, &given).map_err(|(name, e)| format!("{name}: {e}"))?;
        let shape = |v| if let Value::Array(a) = v { a.shape } else { Vec::new() };
        Ok(all.into_iter().map(shape).collect())
    };
    let (matrix, vector) = (array("n", array("m", float())), array("m", float()));
    let found = shapes(vec![matrix.clone(), vector.clone()], &["[]", "[1, 2]"]);
    assert_eq!(found, Ok(vec![vec![0, 2], vec![2]]));
    let found = shapes(vec![vector.clone(), matrix.clone()], &["[1, 2]", "[]"]);
    assert_eq!(found, Ok(vec![vec![2], vec![0, 2]]));
    // In a product, in an array of products, in a sum.
    let pair = EntryType::Tuple(vec![matrix.clone(), vector.clone()]);
    assert_eq!(shapes(vec![pair], &["([], [1, 2])"]), Ok(vec![vec![0, 2], vec![2]]));
    let rows = array("k", EntryType::Tuple(vec![vector.clone(), float()]));
    let found = shapes(vec![rows, vector.clone()], &["[]", "[1, 2]"]);
    assert_eq!(found, Ok(vec![vec![0, 2], vec![0], vec![2]]));
    let maybe = EntryType::Sum(vec![(Symbol::new("some"), vec![matrix.clone()])]);
    let data = [Data::Tagged("some".into(), vec![Data::List(Vec::new())]), Data::List(vec![Data::Null])];
    let params = [(Symbol::new("a"), maybe), (Symbol::new("b"), vector.clone())];
    let all = encode_all(&params, &[&data[0], &data[1]]).expect("it fits");
    let Value::Sum(0, payload) = &all[0] else { panic!("{all:?}") };
    assert!(matches!(&payload[0], Value::Array(a) if a.shape == [0, 1]), "{payload:?}");
    // Rows that are there still decide.
    let found = shapes(vec![matrix, vector], &["[[1], [2]]", "[1, 2]"]);
    assert_eq!(found, Err("b: size m is 2 here but 1 in `a`".into()));
}
