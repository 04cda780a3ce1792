//! The cotangent type of a recursive sum is a recursive sum.

use pullback_core::{Program, Type, TypeDef, Variant};

#[test]
fn recursive_sums_have_recursive_cotangents() {
    let mut p = Program::default();
    let id = p.types.push(TypeDef { name: "list".into(), variants: Vec::new() });
    let list = Type::Named(id);
    let variant = |name: &str, fields| Variant { name: name.into(), fields };
    p.types[id].variants =
        vec![variant("nil", vec![]), variant("cons", vec![Type::F64, Type::I64, list.clone()])];
    // Something else of that name.
    p.types.push(TypeDef { name: "list_bar".into(), variants: vec![variant("none", vec![])] });
    assert_eq!(p.cotangent(&list), Err(id));
    p.add_cotangent_types(&Type::array(list.clone()));
    let Ok(Some(Type::Named(bar))) = p.cotangent(&list) else { panic!("a recursive type") };
    assert_eq!(p.types[bar].name.as_str(), "list_bar_1");
    let expected = [
        variant("none", vec![]),
        variant("nil", vec![]),
        variant("cons", vec![Type::F64, Type::unit(), Type::Named(bar)]),
    ];
    assert_eq!(p.types[bar].variants, expected);
    let count = p.types.len();
    p.add_cotangent_types(&list);
    assert_eq!(p.types.len(), count, "only once");
}
