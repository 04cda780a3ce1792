use crate::common::*;
#[test]
fn debugging() {
    let text = std::fs::read_to_string("/tmp/dbg.core").unwrap();
    let mut program = parse(&text);
    let f = program.funs.ids().next().unwrap();
    let fun = program.funs[f].clone();
    let lam = pullback_core::Lam { params: fun.params, body: fun.body };
    let t = pullback_ad::accelerate::from_core::translate(&program, &lam, &lam.params).unwrap();
    println!("{}", t.source);
    let wanted = vec![true; lam.params.len()];
    let derived =
        (pullback_ad::accelerate::from_core::ALGORITHM.transform)(&mut program, &lam, &wanted).unwrap();
    let _ = add_function(&mut program, "derived", derived);
    println!("{}", pullback_core::print::print(&program));
}
