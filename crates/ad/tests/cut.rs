//! What is stored and what is computed again, against all choices.

use pullback_ad::internals::{NEVER, Step, cheapest};

/// What a choice costs; `None` if a statement that may not run would run.
fn price(steps: &[Step], store: &[u64], wanted: &[usize], again: &[bool]) -> u64 {
    let mut need = vec![false; store.len()];
    wanted.iter().for_each(|&v| need[v] = true);
    let mut total = 0;
    for (step, _) in steps.iter().zip(again).rev().filter(|(_, again)| **again) {
        if step.results.iter().any(|&v| need[v]) {
            total += step.cost;
            step.results.iter().for_each(|&v| need[v] = false);
            step.operands.iter().for_each(|&v| need[v] = true);
        }
    }
    total + need.iter().zip(store).filter(|(need, _)| **need).map(|(_, s)| s).sum::<u64>()
}

fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

/// A random body: two values of state, then statements of one or two results on earlier values.
fn random_body(seed: u64) -> (Vec<Step>, Vec<u64>, Vec<usize>) {
    let mut below = numbers(seed);
    let mut store = vec![8, 3];
    let mut steps = Vec::new();
    for _ in 0..3 + below(8) {
        let mut operands: Vec<usize> = (0..below(4)).map(|_| below(store.len() as u64) as usize).collect();
        operands.sort_unstable();
        operands.dedup();
        let results: Vec<usize> = (0..1 + below(2) as usize).map(|k| store.len() + k).collect();
        store.extend(results.iter().map(|_| 1 + below(9)));
        let cost = if below(6) == 0 { NEVER } else { below(8) };
        steps.push(Step { cost, operands, results });
    }
    let wanted = (0..store.len()).filter(|_| below(3) == 0).collect();
    (steps, store, wanted)
}

#[test]
fn the_cut_is_as_cheap_as_the_best_of_all_choices() {
    for seed in 0..400 {
        let (steps, store, wanted) = random_body(seed);
        let found = price(&steps, &store, &wanted, &cheapest(&steps, &store, &wanted));
        let choices = (0..1_u32 << steps.len())
            .map(|bits| (0..steps.len()).map(|s| bits >> s & 1 == 1).collect::<Vec<bool>>());
        let best = choices.map(|again| price(&steps, &store, &wanted, &again)).min();
        assert_eq!(Some(found), best, "seed {seed}: {steps:?} {store:?} {wanted:?}");
    }
}

#[test]
fn of_equal_costs_running_again_wins() {
    let steps = [Step { cost: 16, operands: vec![], results: vec![0] }];
    assert_eq!(cheapest(&steps, &[16], &[0]), [true]);
    assert_eq!(cheapest(&steps, &[15], &[0]), [false]);
}
