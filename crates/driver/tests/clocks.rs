//! Programs with clocks, on the vm and as machine code. What took how long is never asked.

use pullback_core::Value;
use pullback_driver::profile::{Made, Profile, Row, profile};
use pullback_driver::{Backend, Executor, Kind, Ready, Session, Settings, Wrt};
use pullback_interp::core::Options;
use pullback_kernel::profile::Slot;
use pullback_kernel::{Site, Sweep};
use pullback_llvm::Llvm;
use std::collections::BTreeSet;

const TEXT: &str = "entry main [n] (x: [n]f64) (k: i64) : f64 =
  let y = loop y = x for i < k do
    map (\\a -> f64.tanh a) (rotate 1 y)
  in f64.sum (map (\\a -> a * a) y)
";

fn ready(backend: Backend, gradient: bool) -> Ready {
    let settings = Settings { backend, ..Settings::default() };
    let session = Session::compile("test.fut", TEXT, settings).expect("it compiles");
    let entry = session.entry(None).expect("the entry point");
    if !gradient {
        return session.primal(&entry).expect("it is ready");
    }
    let selected = session.select(&entry, &Wrt::parse("x")).expect("x");
    session.derivative(&entry, Kind::Vjp, &selected, &mut |_, _| {}).expect("a gradient")
}

fn args(gradient: bool) -> Vec<Value> {
    let xs: Vec<f64> = (0..5000).map(|i| f64::from(i % 17) / 8.0 - 1.0).collect();
    let seed = gradient.then(|| Value::f64(1.0));
    [Value::f64s(&xs), Value::i64(6)].into_iter().chain(seed).collect()
}

fn executors() -> Vec<(Backend, Executor)> {
    let mut all = vec![(Backend::Vm, Executor::Vm)];
    if Llvm::find().is_ok() {
        all.push((Backend::Llvm, Executor::Llvm));
    } else {
        eprintln!("skipped: no LLVM is found");
    }
    all
}

#[test]
fn clocks_change_no_result() {
    for (backend, executor) in executors() {
        for gradient in [false, true] {
            let (ready, args) = (ready(backend, gradient), args(gradient));
            let made = Made::new(&ready, &args, executor).expect("native");
            let expected = ready.run(&args, &Options::default()).expect("it runs").results;
            let (found, _) = made.look(&ready, &args, &Options::default()).expect("it runs");
            let plain = made.plain(&ready, &args, &Options::default()).expect("it runs").results;
            assert_eq!(expected, plain, "{executor:?}, gradient: {gradient}");
            assert_eq!(expected, found, "{executor:?}, gradient: {gradient}");
        }
    }
}

#[test]
fn the_body_of_a_loop_is_counted_in_both_sweeps() {
    for (backend, executor) in executors() {
        let (ready, args) = (ready(backend, true), args(true));
        let profile = profile(&ready, &args, &Options::default(), 2).expect("native");
        assert_eq!((profile.executor, profile.runs, profile.rows[0].count), (executor, 2, 1));
        let is_loop = |r: &Row| r.slot.site.is_some_and(|s| s.construct == "loop");
        // Six iterations in each sweep, and one loop that runs them.
        let loops: Vec<&Row> =
            profile.rows.iter().filter(|r| is_loop(r) && r.slot.parent == Some(0)).collect();
        assert!(loops.iter().all(|r| r.count == 1), "{loops:?}");
        let inside = |s: Sweep| {
            let in_loop = |r: &&Row| r.slot.parent.is_some_and(|p| is_loop(&profile.rows[p]));
            let rows = profile.rows.iter().filter(in_loop);
            rows.filter(|r| r.count > 0 && r.slot.site.is_some_and(|x| x.sweep == s))
                .map(|r| r.count)
                .collect::<BTreeSet<u64>>()
        };
        for s in [Sweep::Primal, Sweep::Reverse] {
            assert_eq!(inside(s), BTreeSet::from([6]), "{executor:?} {s:?} {:?}", profile.rows);
        }
        let tapes: u64 = profile.rows.iter().map(|r| r.tape_bytes).sum();
        // At least one array of 5000 doubles for each iteration.
        assert!(tapes >= 6 * 5000 * 8, "{tapes}");
    }
}

/// A profile with one row below the whole call, which it is all of.
fn one_row(construct: &'static str, form: pullback_kernel::profile::Form, tape_bytes: u64) -> Profile {
    let site = Site { span: None, construct, sweep: Sweep::Primal };
    let row = |parent: Option<usize>, own_seconds: f64| Row {
        slot: Slot {
            parent,
            site: parent.map(|_| site),
            sweep: Sweep::Primal,
            others: BTreeSet::new(),
            form,
        },
        seconds: 1.0,
        own_seconds,
        count: 1,
        bytes: tape_bytes,
        tape_bytes,
    };
    let rows = vec![row(None, 0.0), row(Some(0), 1.0)];
    Profile {
        executor: Executor::Llvm,
        runs: 1,
        threads: 1,
        plain_seconds: 1.0,
        clocked_seconds: 1.0,
        peak_bytes: 0,
        rows,
    }
}

#[test]
fn advice_is_given_where_there_is_something_to_say() {
    use pullback_kernel::profile::Form;
    let good = Form { has_loops: true, in_lanes: true, in_parts: true, ..Form::default() };
    let found = |p: &Profile, cache| p.advice(cache).into_iter().map(|a| a.found).collect::<Vec<_>>();
    assert!(found(&one_row("map", good, 100), Some(1000)).is_empty());
    assert!(
        found(&one_row("map", good, 3 << 20), Some(2 << 20))[0].contains("3.0 MiB, the last cache 2.0 MiB")
    );
    assert!(found(&one_row("map", good, 1001), None).is_empty(), "what a cache holds is not known");
    let slow = Form { in_lanes: false, in_order: true, ..good };
    assert!(found(&one_row("loop", slow, 0), None)[0].contains("follow each other"));
    // A map around a loop: what is in order is inside of iterations in any order.
    let remedy = |form| one_row("map", form, 0).advice(None).remove(0).remedy;
    let around = Form { in_lanes: false, in_order: true, in_any_order: true, ..good };
    assert!(found(&one_row("map", around, 0), None)[0].contains("cost more"));
    assert!(!remedy(around).contains("`map`"));
    let varies = Form { varies: true, ..around };
    assert!(found(&one_row("map", varies, 0), None)[0].contains("another number of iterations"));
    assert_eq!(remedy(varies), remedy(Form { has_whiles: true, ..around }));
    assert!(found(&one_row("sum of copies", slow, 0), None)[0].contains("copies"));
    let atomic = Form { is_atomic: true, ..good };
    assert!(found(&one_row("map", atomic, 0), None)[0].contains("--relaxed"));
    let short = Profile { threads: 4, plain_seconds: 1e-5, ..one_row("map", good, 0) };
    assert!(found(&short, None)[0].contains("4 threads"));
    let alone = Profile { threads: 4, ..one_row("map", Form { in_parts: false, ..good }, 0) };
    assert!(found(&alone, None)[0].contains("no loop is shared"));
}
