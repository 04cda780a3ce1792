//! Digamma and polygamma against values computed with 50 to 80 digits (mpmath 1.3; large orders by summation).

use pullback_prim::special::{acosh, acosh_single, digamma, polygamma};

fn assert_close(name: &str, got: f64, want: f64) {
    assert!((got - want).abs() <= 1e-14 * want.abs(), "{name} = {got:e}, want {want:e}");
}

#[test]
fn digamma_has_fourteen_digits() {
    let values = [
        (1.0, -0.5772156649015329),
        (0.5, -1.9635100260214235),
        (0.25, -4.2274535333762655),
        (1.4, -0.06138454458511624),
        (1.5, 0.03648997397857652),
        (2.0, 0.42278433509846713),
        (3.75, 1.1825373886117962),
        (9.999, 2.2516474172057355),
        (10.0, 2.251752589066721),
        (100.0, 4.600161852738087),
        (1e10, 23.025850929890456),
        (1e-10, -10000000000.577215),
        (1e-300, -1e300),
        (1e300, 690.7755278982137),
        (-1.5, 0.7031566406452432),
        (-2.25, 4.158583564657972),
        (-0.001, 999.4211381978913),
        (-100.5, 4.6151246013380645),
        (-1000.125, 14.492855717113763),
        (-1e-10, 9999999999.422785),
    ];
    for (x, want) in values {
        assert_close(&format!("digamma({x})"), digamma(x), want);
    }
    // Next to its roots: the positive one in relative accuracy, the negative ones in absolute.
    assert!((digamma(1.4616321449683622) - -9.241265521729427e-17).abs() < 1e-30);
    assert!((digamma(-0.5) - 0.03648997397857652).abs() < 2e-15);
}

#[test]
fn digamma_is_smooth_where_the_methods_meet() {
    // The recurrence digamma(x + 1) = digamma(x) + 1 / x, from one method to another.
    for i in 0..2000 {
        let x = 0.05 + 0.007 * f64::from(i);
        let (left, right) = (digamma(x + 1.0), digamma(x) + 1.0 / x);
        assert!((left - right).abs() < 4e-15 * (1.0 + 1.0 / x), "{x}: {left} {right}");
    }
}

#[test]
fn polygamma_has_fourteen_digits() {
    let zeta_3 = 1.202056903159594;
    let pi = std::f64::consts::PI;
    let values = [
        (0.0, 1.0, -0.5772156649015329),
        (1.0, 1.0, pi * pi / 6.0),
        (1.0, 0.5, pi * pi / 2.0),
        (2.0, 1.0, -2.0 * zeta_3),
        (3.0, 1.0, pi.powi(4) / 15.0),
        (1.0, 10.0, 0.10516633568168575),
        (1.0, 1e10, 1.00000000005e-10),
        (1.0, 1e-10, 1e20),
        (1.0, -0.5, 8.934802200544679),
        (1.0, -0.25, 18.541879647671607),
        (1.0, -7.125, 67.26291371998705),
        (2.0, 0.3, -75.27253658872604),
        (2.0, -1.25, 123.72136678366236),
        (2.0, -1e-5, 1999999999999997.0),
        (3.0, 2.5, 0.22390584881725206),
        (3.0, -2.75, 1558.4897512832936),
        (4.0, 1.0, -24.88626612344088),
        (4.0, 8.0, -0.0018687951506376134),
        (5.0, 0.7, 1025.3283541434719),
        (10.0, 3.3, -7.616805535818377),
        (10.0, 40.0, -3.9130747998980846e-11),
        (11.0, -0.4, 2397564351578.0444),
        (20.0, 1.0, -2.4329031685078615e18),
        (50.0, 7.5, -7.172756658718659e19),
        (100.0, 30.0, -626546063.6686132),
        (150.0, 200.0, -3.7942152199759047e-85),
    ];
    for (n, x, want) in values {
        assert_close(&format!("polygamma({n}, {x})"), polygamma(n, x), want);
    }
    // Orders whose factorial overflows go through logarithms and lose three digits.
    for (n, x, want) in [(171.0, 1000.0, 7.895703658426907e-207), (200.0, 90.0, -1.393739031798544e-18)] {
        assert!((polygamma(n, x) / want - 1.0).abs() < 1e-12, "polygamma({n}, {x}) = {:e}", polygamma(n, x));
    }
}

#[test]
fn poles_and_limits() {
    let inf = f64::INFINITY;
    assert_eq!(digamma(0.0), -inf);
    assert_eq!(digamma(-0.0), inf);
    assert!(digamma(-3.0).is_nan());
    assert_eq!(digamma(inf), inf);
    assert!(digamma(-inf).is_nan());
    assert!(digamma(f64::NAN).is_nan());
    assert_eq!(polygamma(1.0, 0.0), inf);
    assert_eq!(polygamma(1.0, -2.0), inf);
    assert!(polygamma(2.0, -2.0).is_nan());
    assert_eq!(polygamma(3.0, inf), 0.0);
    assert!(polygamma(3.0, -inf).is_nan());
    assert!(polygamma(0.5, 1.0).is_nan());
    assert!(polygamma(-1.0, 1.0).is_nan());
    assert!(polygamma(f64::NAN, 1.0).is_nan());
    assert!(polygamma(inf, 1.0).is_nan());
}

#[test]
fn extreme_arguments_terminate() {
    let extremes = [f64::MIN, -1e17, -1e6, -5e-324, 5e-324, 1e-8, 1.0, 1e5, 1e6, 1e17, f64::MAX];
    for n in [0.0, 1.0, 2.0, 169.0, 170.0, 171.0, 1e5, 1e6, 1e300] {
        for x in extremes {
            let _ = polygamma(n, x);
        }
    }
}

/// The inverse of the hyperbolic cosine is defined from 1 on, where it is 0.
#[test]
fn acosh_has_no_value_below_1() {
    for x in [0.999_999, 0.0, -1.0, -2.5, -1000.0, -6527.8564, -1e10, f64::NEG_INFINITY, f64::NAN] {
        assert!(acosh(x).is_nan(), "{x}");
        assert!(acosh_single(x as f32).is_nan(), "{x}");
    }
    assert_eq!(acosh(1.0), 0.0);
    assert_eq!(acosh_single(1.0), 0.0);
}
