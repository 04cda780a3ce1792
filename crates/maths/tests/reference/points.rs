//! Where functions are compared: arguments of every size, and next to the places where something changes.

use pullback_maths::Function;

/// SplitMix64, so that the points are the same for ever.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Any finite number, all exponents alike.
    fn any(&mut self) -> f64 {
        loop {
            let x = f64::from_bits(self.bits());
            if x.is_finite() {
                return x;
            }
        }
    }

    /// A number of a size between `2^low` and `2^high`.
    fn sized(&mut self, low: i32, high: i32) -> f64 {
        let exponent = low + self.below((high - low) as u64) as i32;
        let size = (1.0 + self.unit()) * 2f64.powi(exponent);
        if self.bits() & 1 == 1 { -size } else { size }
    }

    /// `x`, or one of its neighbours.
    fn near(&mut self, x: f64) -> f64 {
        let away = self.below(2001) as i64 - 1000;
        let away = if self.bits() & 1 == 0 { away / 100 } else { away };
        f64::from_bits(x.to_bits().wrapping_add_signed(away))
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// Intervals where the function has most to do, and the largest exponent of its arguments.
fn interesting(function: Function) -> (&'static [(f64, f64)], i32) {
    match function {
        Function::Exp | Function::Expm1 => {
            (&[(-745.2, 709.8), (-745.2, -708.0), (-1.0, 1.0), (-40.0, 40.0)], 10)
        }
        Function::Exp2 => (&[(-1075.0, 1024.0), (-1075.0, -1020.0), (-1.0, 1.0)], 10),
        Function::Sigmoid => (&[(-746.0, 40.0), (-1.0, 1.0)], 10),
        Function::Log | Function::Log2 | Function::Log10 => (&[(0.5, 2.0), (0.9, 1.1), (0.0, 100.0)], 1023),
        Function::Log1p => (&[(-0.999, 2.0), (-0.1, 0.1), (0.0, 100.0)], 1023),
        Function::Sin | Function::Cos | Function::Tan => {
            (&[(-0.8, 0.8), (-10.0, 10.0), (-1e6, 1e6), (1e6, 1.2e6), (0.0, 1e18)], 1023)
        }
        Function::Asin | Function::Acos | Function::Atanh => {
            (&[(-1.0, 1.0), (0.4, 0.6), (0.9, 1.0), (-0.6, -0.4)], 0)
        }
        Function::Atan => (&[(-1.0, 1.0), (-5.0, 5.0), (0.0, 0.5)], 70),
        Function::Sinh | Function::Cosh => (&[(-1.0, 1.0), (-0.1, 0.1), (-711.0, 711.0), (-42.0, 42.0)], 10),
        Function::Tanh => (&[(-1.0, 1.0), (-0.1, 0.1), (-23.0, 23.0)], 6),
        Function::Asinh => (&[(-1.0, 1.0), (-0.1, 0.1), (-50.0, 50.0)], 1023),
        Function::Acosh => (&[(1.0, 2.0), (1.0, 1.001), (1.0, 50.0)], 1023),
        Function::Cbrt => (&[(-8.0, 8.0), (1.0, 8.0)], 1023),
        Function::Erf => (&[(-1.1, 1.1), (-6.6, 6.6), (0.9, 1.1)], 3),
        Function::Erfc => (&[(-6.0, 6.0), (0.0, 28.0), (0.4, 0.6), (26.0, 27.3)], 5),
        Function::Lgamma => {
            (&[(0.0, 9.0), (0.4, 2.6), (0.99, 1.01), (1.99, 2.01), (7.5, 30.0), (9.0, 500.0)], 1018)
        }
        Function::Pow | Function::Atan2 | Function::Hypot => (&[(-3.0, 3.0), (0.5, 2.0), (0.0, 1000.0)], 30),
    }
}

/// Numbers at which some formula changes or a result is special.
const LANDMARKS: &[f64] = &[
    0.25,
    0.41421356237309503,
    0.5,
    0.703125,
    std::f64::consts::FRAC_1_SQRT_2,
    0.984375,
    1.0,
    1.03125,
    1.40625,
    1.5,
    2.0,
    2.5,
    3.5,
    4.0,
    7.5,
    8.0,
    10.0,
    22.0,
    28.0,
    40.0,
    100.0,
    1000.0,
    1e-8,
    1e-9,
    1e-17,
    1e9,
    1048576.0,
    1e15,
    4503599627370496.0,
    9007199254740992.0,
    2.2250738585072014e-308,
    5e-321,
    2.5599833278516383e305,
    1.79769313486231e308,
];

/// Whether the reference has a value there.
pub(crate) fn is_inside(function: Function, args: &[f64]) -> bool {
    let x = args[0];
    let is_finite = args.iter().all(|x| x.is_finite());
    is_finite
        && match function {
            Function::Log | Function::Log2 | Function::Log10 => x > 0.0,
            Function::Log1p => x > -1.0,
            Function::Asin | Function::Acos => x.abs() <= 1.0,
            Function::Atanh => x.abs() < 1.0,
            Function::Acosh => x >= 1.0,
            // Arguments for which the reference would need more digits than it has.
            Function::Exp
            | Function::Expm1
            | Function::Sinh
            | Function::Cosh
            | Function::Tanh
            | Function::Sigmoid => x.abs() < 1e4,
            Function::Exp2 => x.abs() < 2e3,
            Function::Erf | Function::Erfc => x.abs() < 30.0,
            Function::Lgamma => x > 0.0,
            Function::Pow => {
                x != 0.0
                    && (x > 0.0 || args[1].round_ties_even() == args[1])
                    && (args[1] * x.abs().ln()).abs() < 1e4
            }
            Function::Atan2 => x != 0.0 || args[1] != 0.0,
            _ => true,
        }
}

/// The next argument, or pair of arguments.
pub(crate) fn point(function: Function, random: &mut Random) -> Vec<f64> {
    loop {
        let args = candidate(function, random);
        if is_inside(function, &args) {
            return args;
        }
    }
}

fn candidate(function: Function, random: &mut Random) -> Vec<f64> {
    let x = one_argument(function, random);
    if function.facts().arity == 1 {
        return vec![x];
    }
    if function == Function::Pow && random.below(4) > 0 {
        // An exponent for which the result is a number of any size.
        let y = random.between(-745.0, 709.0) / x.abs().ln();
        let y = if x < 0.0 { y.round_ties_even() } else { y };
        return vec![x, y];
    }
    let y = match random.below(3) {
        0 => x * random.sized(-3, 3),
        1 => one_argument(function, random),
        _ => x * random.sized(-70, 70),
    };
    vec![x, y]
}

fn one_argument(function: Function, random: &mut Random) -> f64 {
    let (intervals, largest) = interesting(function);
    match random.below(8) {
        0 => random.any(),
        1 | 2 => random.sized(-40, largest.min(70)),
        3 => {
            let landmark = *random.pick(LANDMARKS);
            let x = random.near(landmark);
            if random.bits() & 1 == 1 { -x } else { x }
        }
        4 => {
            // Next to a multiple of the step of the function's reduction.
            let step = match function {
                Function::Sin | Function::Cos | Function::Tan => std::f64::consts::FRAC_PI_4,
                Function::Lgamma | Function::Exp2 => 0.03125,
                _ => std::f64::consts::LN_2 / 32.0,
            };
            let multiple = random.sized(0, 20).trunc();
            let x = random.near(step * multiple);
            if random.bits() & 1 == 1 { -x } else { x }
        }
        _ => {
            let (low, high) = *random.pick(intervals);
            random.between(low, high)
        }
    }
}
