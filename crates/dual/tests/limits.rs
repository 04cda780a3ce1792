//! Limits of tapes: they hold for the tape, for what checkpoints run again, and for all tasks together.

use crate::common::{Random, close, count};
use pullback_dual::{Error, Function, Scalar, Settings, grad, vjp};
use std::sync::Arc;

/// A program of checkpoints in checkpoints: steps, each a row, with parts between them.
#[derive(Clone)]
struct Part(Arc<Vec<Step>>);

enum Step {
    /// So many rows.
    Rows(usize),
    /// A part in a checkpoint, or the same without.
    Again(Part),
    Plain(Part),
}

impl Part {
    fn random(random: &mut Random, depth: usize) -> Part {
        let steps = (0..1 + random.below(4)).map(|_| match random.below(3) {
            0 if depth > 0 => Step::Again(Part::random(random, depth - 1)),
            1 if depth > 0 => Step::Plain(Part::random(random, depth - 1)),
            _ => Step::Rows(random.below(3000)),
        });
        Part(Arc::new(steps.collect()))
    }
    /// The rows on the tape that a run of it is recorded on.
    fn rows(&self) -> usize {
        let rows = |step: &Step| match step {
            Step::Rows(n) => *n,
            // Its outputs.
            Step::Again(_) => 2,
            Step::Plain(part) => part.rows(),
        };
        self.0.iter().map(rows).sum()
    }
    /// The rows of the tapes that are there at the same time, at most: its own, and those of one checkpoint in it.
    fn peak(&self) -> usize {
        self.rows() + self.below()
    }
    fn below(&self) -> usize {
        let below = |step: &Step| match step {
            Step::Rows(_) => 0,
            Step::Again(part) => part.peak(),
            Step::Plain(part) => part.below(),
        };
        self.0.iter().map(below).max().unwrap_or(0)
    }
    /// How many checkpoints may run in each other.
    fn depth(&self) -> usize {
        let depth = |step: &Step| match step {
            Step::Rows(_) => 0,
            Step::Again(part) => 1 + part.depth(),
            Step::Plain(part) => part.depth(),
        };
        self.0.iter().map(depth).max().unwrap_or(0)
    }
    /// All rows, checkpoints or not.
    fn steps(&self) -> usize {
        let steps = |step: &Step| match step {
            Step::Rows(n) => *n,
            Step::Again(part) | Step::Plain(part) => part.steps(),
        };
        self.0.iter().map(steps).sum()
    }
}

impl Function for Part {
    fn call<S: Scalar>(&self, x: &[S]) -> Vec<S> {
        let mut x = x.to_vec();
        for step in &*self.0 {
            match step {
                Step::Rows(n) => x[0] = (0..*n).fold(x[0], |y, _| y + x[1]),
                Step::Again(part) => x = S::checkpoint(part, &x),
                Step::Plain(part) => x = part.call(&x),
            }
        }
        x
    }
}

/// A tape of so many rows takes at most so many bytes: the first blocks are 16 and 256 KiB large, then 4 MiB. `first` is that of the smallest.
fn most_bytes(rows: usize, first: &[usize]) -> usize {
    let (mut room, mut bytes) = (0, 0);
    for block in first.iter().copied().chain(std::iter::repeat(4 << 20)) {
        if room >= 24 * rows {
            break;
        }
        room += block - 64 - 24;
        bytes += block;
    }
    bytes
}

const ROW: usize = 24;

#[test]
fn tapes_and_what_checkpoints_run_again_stay_within_the_limit() {
    let (mut held, mut ended) = (0, 0);
    for seed in 0..count(300) {
        let mut random = Random(seed);
        let part = Part::random(&mut random, 4);
        let limit = (16 << 10) + random.below(2 << 20);
        let x = [0.0, 1e-3];
        let outcome = Settings::new().tape_limit(limit).value_and_grad(|x| part.call(x)[0], &x);
        let needed = ROW * part.peak();
        // Each tape has its own last block, in part empty.
        let enough = (part.depth() + 1) * most_bytes(part.peak(), &[16 << 10, 256 << 10]);
        match &outcome {
            Ok(outcome) => {
                assert!(needed <= limit, "seed {seed}: {needed} bytes of rows with a limit of {limit}");
                // Each step adds x[1].
                assert_eq!(outcome.gradient[0], 1.0);
                close(outcome.gradient[1], part.steps() as f64);
                held += 1;
            }
            Err(error) => {
                let Error::TapeLimit { limit: told, .. } = error else { panic!("seed {seed}: {error:?}") };
                assert_eq!(*told, limit, "seed {seed}");
                assert!(enough > limit, "seed {seed}: {enough} bytes are enough, with a limit of {limit}");
                ended += 1;
            }
        }
        let pullback = Settings::new().tape_limit(limit).vjp::<f64, _, Vec<f64>, _>(|x| part.call(x), &x);
        let called = pullback.and_then(|(_, pullback)| {
            // Nothing is spent for ever.
            pullback.call(&vec![1.0, 0.0]).and(pullback.call(&vec![1.0, 0.0]))
        });
        assert_eq!(called.is_ok(), outcome.is_ok(), "seed {seed}");
    }
    assert!(
        held as u64 > count(300) / 5 && ended as u64 > count(300) / 5,
        "{held} within, {ended} over the limit"
    );
}

#[cfg(feature = "parallel")]
#[test]
fn tapes_of_tasks_and_what_their_checkpoints_run_again_stay_within_the_limit() {
    use pullback_dual::parallel::{self, Parallel};
    let (mut held, mut ended) = (0, 0);
    for seed in 0..count(100) {
        let mut random = Random(seed);
        let parts: Vec<Part> = (0..4).map(|_| Part::random(&mut random, 2)).collect();
        let limit = (16 << 10) + random.below(8 << 20);
        let settings = parallel::Settings::new().tape_limit(limit);
        let outcome = settings.value_and_grad(
            |&x| {
                Parallel::sum(&parts, 1, |part| Scalar::checkpoint(part, &[x[0], x[1]])[0] + part.call(&x)[0])
            },
            &[0.0, 1e-3],
        );
        // The tapes of all branches are there until the end; of checkpoints one at least.
        let rows: usize = parts.iter().map(Part::rows).sum();
        let needed = ROW * (rows + parts.iter().map(Part::peak).max().unwrap_or(0));
        let each = |part: &Part| {
            (part.depth() + 2) * most_bytes(part.peak(), &[1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 18])
        };
        let enough = parts.iter().map(each).sum::<usize>() + 64 * 256;
        match outcome {
            Ok(outcome) => {
                assert!(needed <= limit, "seed {seed}: {needed} bytes of rows with a limit of {limit}");
                close(outcome.gradient[1], 2.0 * parts.iter().map(Part::steps).sum::<usize>() as f64);
                held += 1;
            }
            Err(error) => {
                assert!(
                    matches!(error, Error::TapeLimit { limit: told, .. } if told == limit),
                    "seed {seed}: {error:?}"
                );
                assert!(enough > limit, "seed {seed}: {enough} bytes are enough, with a limit of {limit}");
                ended += 1;
            }
        }
    }
    assert!(
        held as u64 > count(100) / 5 && ended as u64 > count(100) / 5,
        "{held} within, {ended} over the limit"
    );
}

/// A checkpoint of a hundred thousand rows does not fit where its outputs do: the forms in which it may stand.
#[test]
fn a_checkpoint_that_does_not_fit_is_an_error() {
    #[derive(Clone)]
    struct Long;
    impl Function for Long {
        fn call<S: Scalar>(&self, x: &[S]) -> Vec<S> {
            vec![(0..100_000).fold(x[0], |y, _| y + x[1])]
        }
    }
    #[derive(Clone)]
    struct Outer;
    impl Function for Outer {
        fn call<S: Scalar>(&self, x: &[S]) -> Vec<S> {
            S::checkpoint(&Long, x)
        }
    }
    let small = Settings::new().tape_limit(1 << 20);
    let over =
        |error: &Error| matches!(error, Error::TapeLimit { limit: 0x0010_0000, rows } if *rows < 100_000);
    let x = [1.0, 2.0];
    let error = small.value_and_grad(|x| Scalar::checkpoint(&Long, x)[0], &x).expect_err("too long");
    assert!(over(&error), "{error:?}");
    let error = small.value_and_grad(|x| Scalar::checkpoint(&Outer, x)[0], &x).expect_err("too long");
    assert!(over(&error), "{error:?}");
    // What the function computes around it counts too.
    let fits = Settings::new().tape_limit(9 << 20);
    assert!(fits.value_and_grad(|x| Scalar::checkpoint(&Long, x)[0], &x).is_ok());
    let error = fits
        .value_and_grad(|x| (0..250_000).fold(Scalar::checkpoint(&Long, x)[0], |y, _| y + x[1]), &x)
        .expect_err("too long together");
    assert!(matches!(error, Error::TapeLimit { limit: 0x0090_0000, .. }), "{error:?}");
    let (_, pullback) =
        small.vjp::<f64, _, Vec<f64>, _>(|x| Scalar::checkpoint(&Long, x), &x).expect("two rows");
    assert!(over(&pullback.call(&vec![1.0]).expect_err("too long")));
    // What does not count is not run.
    assert_eq!(pullback.call(&vec![0.0]), Ok([0.0, 0.0]));
    // Without a limit there is none.
    assert_eq!(grad(|x| Scalar::checkpoint(&Long, x)[0], &x), [1.0, 100_000.0]);
    let (_, free) = vjp::<f64, _, Vec<f64>, _>(|x| Scalar::checkpoint(&Outer, x), &x);
    assert_eq!(free.call(&vec![1.0]), Ok([1.0, 100_000.0]));
    #[cfg(feature = "parallel")]
    {
        use pullback_dual::parallel::{self, Parallel};
        let error = parallel::Settings::new()
            .tape_limit(1 << 20)
            .value_and_grad(|&x| Parallel::sum(&[1, 2], 1, |_| Scalar::checkpoint(&Long, &x)[0]), &x)
            .expect_err("too long");
        assert!(over(&error), "{error:?}");
    }
}
