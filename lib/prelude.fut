-- The prelude: functions that every program may use, written in the language itself over the built-in ones
-- (map, reduce, scan, zip, iota, replicate, transpose, ...). A definition of the same name in a program hides it.

-- Functions of functions.

def id '^t (x: t) : t = x
def const '^a '^b (x: a) (_: b) : a = x
def flip '^a '^b '^c (f: a -> b -> c) (y: b) (x: a) : c = f x y
def curry '^a '^b '^c (f: (a, b) -> c) (x: a) (y: b) : c = f (x, y)
def uncurry '^a '^b '^c (f: a -> b -> c) (p: (a, b)) : c = f p.0 p.1
def (|>) '^a '^b (x: a) (f: a -> b) : b = f x
def (<|) '^a '^b (f: a -> b) (x: a) : b = f x
def (>->) '^a '^b '^c (f: a -> b) (g: b -> c) (x: a) : c = g (f x)
def (<-<) '^a '^b '^c (g: b -> c) (f: a -> b) (x: a) : c = g (f x)
def swap 'a 'b (p: (a, b)) : (b, a) = (p.1, p.0)
def not (b: bool) : bool = !b

-- Values that pass unchanged: Futhark uses these to steer its compiler; here they have no effect.

def copy 't (x: t) : t = x
def manifest 't (x: t) : t = x
def opaque 't (x: t) : t = x
def trace 't (x: t) : t = x
def break 't (x: t) : t = x

-- The same array with another (equal) size in its type; tested when the program runs.

def sized [m] 't (n: i64) (xs: [m]t) : [n]t = xs :> [n]t

-- Maps over several arrays.

def map2 [n] 'a 'b 'x (f: a -> b -> x) (xs: [n]a) (ys: [n]b) : [n]x =
  map (\(x, y) -> f x y) (zip xs ys)
def map3 [n] 'a 'b 'c 'x (f: a -> b -> c -> x) (xs: [n]a) (ys: [n]b) (zs: [n]c) : [n]x =
  map (\(x, y, z) -> f x y z) (zip3 xs ys zs)
def map4 [n] 'a 'b 'c 'd 'x (f: a -> b -> c -> d -> x) (xs: [n]a) (ys: [n]b) (zs: [n]c) (us: [n]d) : [n]x =
  map (\(x, y, z, u) -> f x y z u) (zip4 xs ys zs us)
def map5 [n] 'a 'b 'c 'd 'e 'x (f: a -> b -> c -> d -> e -> x)
         (xs: [n]a) (ys: [n]b) (zs: [n]c) (us: [n]d) (vs: [n]e) : [n]x =
  map (\(x, y, z, u, v) -> f x y z u v) (zip5 xs ys zs us vs)

-- Arrays from functions of the position.

def tabulate 'a (n: i64) (f: i64 -> a) : [n]a = map f (iota n)
def tabulate_2d 'a (n: i64) (m: i64) (f: i64 -> i64 -> a) : [n][m]a =
  map (\i -> map (\j -> f i j) (iota m)) (iota n)
def tabulate_3d 'a (n: i64) (m: i64) (k: i64) (f: i64 -> i64 -> i64 -> a) : [n][m][k]a =
  map (\i -> map (\j -> map (\l -> f i j l) (iota k)) (iota m)) (iota n)
def indices [n] 'a (_: [n]a) : [n]i64 = iota n

-- Parts.

def head [n] 'a (xs: [n]a) : a = xs[0]
def last [n] 'a (xs: [n]a) : a = xs[n - 1]
def tail [n] 'a (xs: [n]a) : [n - 1]a = xs[1:]
def init [n] 'a (xs: [n]a) : [n - 1]a = xs[0:n - 1]
def take [n] 'a (i: i64) (xs: [n]a) : [i]a = xs[0:i]
def drop [n] 'a (i: i64) (xs: [n]a) : [n - i]a = xs[i:]
def null [n] 'a (_: [n]a) : bool = n == 0

def split [n] 'a (i: i64) (xs: [n]a) : ([i]a, [n - i]a) = (xs[0:i], xs[i:])

-- Shapes of three and four dimensions.

def flatten_3d [n] [m] [k] 'a (xs: [n][m][k]a) : []a = flatten (flatten xs)
def flatten_4d [n] [m] [k] [l] 'a (xs: [n][m][k][l]a) : []a = flatten (flatten_3d xs)

-- Reductions.

def and [n] (xs: [n]bool) : bool = reduce (&&) true xs
def or [n] (xs: [n]bool) : bool = reduce (||) false xs
def all [n] 'a (p: a -> bool) (xs: [n]a) : bool = and (map p xs)
def any [n] 'a (p: a -> bool) (xs: [n]a) : bool = or (map p xs)
def foldl [n] 'a 'b (f: a -> b -> a) (start: a) (xs: [n]b) : a =
  loop acc = start for x in xs do f acc x
def foldr [n] 'a 'b (f: b -> a -> a) (start: a) (xs: [n]b) : a =
  loop acc = start for i < n do f xs[n - 1 - i] acc

-- Selections.

def filter [n] 'a (p: a -> bool) (xs: [n]a) : []a =
  let kept = map (\x -> if p x then 1i64 else 0) xs
  let places = scan (+) 0 kept
  let count = if n == 0 then 0 else places[n - 1]
  let targets = map2 (\k at -> if k == 1 then at - 1 else -1) kept places
  in map (\i -> xs[i]) (scatter (replicate count 0i64) targets (iota n))
def partition [n] 'a (p: a -> bool) (xs: [n]a) : ([]a, []a) =
  (filter p xs, filter (\x -> !(p x)) xs)
def spread 't [k] (n: i64) (x: t) (is: [k]i64) (vs: [k]t) : [n]t =
  scatter (replicate n x) is vs

-- Sorting: stable, by merging runs of 1, 2, 4, .. elements. Every element finds its place in the other run by bisection:
-- work n log^2 n, depth log^2 n. `leq x y` says that x may stand before y; it must be true of equal elements, and be an order
-- of all elements. Derivatives see the positions only, so the cotangent of an element is that of its place in the result.

-- The positions of the elements in sorted order.
def argsort [n] 't (leq: t -> t -> bool) (xs: [n]t) : [n]i64 =
  let (order, _) =
    loop (order, width) = (iota n, 1i64) while width < n do
      let place (k: i64) : i64 =
        let left = k / (2 * width) * (2 * width)
        let middle = i64.min n (left + width)
        let right = i64.min n (left + 2 * width)
        let x = xs[order[k]]
        let from_left = k < middle
        let (place, _) =
          loop (low, high) = if from_left then (middle, right) else (left, middle) while low < high do
            let mid = (low + high) / 2
            let y = xs[order[mid]]
            in if (if from_left then !(leq x y) else leq y x) then (mid + 1, high) else (low, mid)
        in k + place - middle
      in (scatter (replicate n 0i64) (map place (iota n)) order, 2 * width)
  in order
def sort [n] 't (leq: t -> t -> bool) (xs: [n]t) : [n]t =
  map (\i -> xs[i]) (argsort leq xs)
def sort_by_key [n] 't 'k (key: t -> k) (leq: k -> k -> bool) (xs: [n]t) : [n]t =
  map (\i -> xs[i]) (argsort leq (map key xs))

-- For scalars, smallest first. NaNs stand after everything else, in the order in which they came; 0 and -0 are equal.

def f32_argsort [n] (xs: [n]f32) : [n]i64 = argsort (\x y -> x <= y || f32.isnan y) xs
def f64_argsort [n] (xs: [n]f64) : [n]i64 = argsort (\x y -> x <= y || f64.isnan y) xs
def i32_argsort [n] (xs: [n]i32) : [n]i64 = argsort (<=) xs
def i64_argsort [n] (xs: [n]i64) : [n]i64 = argsort (<=) xs
def f32_sort [n] (xs: [n]f32) : [n]f32 = map (\i -> xs[i]) (f32_argsort xs)
def f64_sort [n] (xs: [n]f64) : [n]f64 = map (\i -> xs[i]) (f64_argsort xs)
def i32_sort [n] (xs: [n]i32) : [n]i32 = map (\i -> xs[i]) (i32_argsort xs)
def i64_sort [n] (xs: [n]i64) : [n]i64 = map (\i -> xs[i]) (i64_argsort xs)

-- Members of the scalar modules that need no primitive of their own.

def f32_mad (a: f32) (b: f32) (c: f32) : f32 = a * b + c
def f64_mad (a: f64) (b: f64) (c: f64) : f64 = a * b + c
def f32_lerp (a: f32) (b: f32) (t: f32) : f32 = a + (b - a) * t
def f64_lerp (a: f64) (b: f64) (t: f64) : f64 = a + (b - a) * t
def f32_from_fraction (a: i64) (b: i64) : f32 = f32.i64 a / f32.i64 b
def f64_from_fraction (a: i64) (b: i64) : f64 = f64.i64 a / f64.i64 b
def f32_bool (b: bool) : f32 = if b then 1 else 0
def f64_bool (b: bool) : f64 = if b then 1 else 0

-- Functions of statistics and machine learning, with right derivatives of any order wherever these exist, at arguments of any
-- size. What is chosen by a condition is a formula of one and the same function, so that no derivative sees the choice; shifts and
-- scales that do not change the value are `stop_gradient`. Where there is no derivative, `docs/book/kinks.md` says what is given.

-- 1 / (1 + exp (-x)).
def f64_sigmoid (x: f64) : f64 =
  let e = f64.exp (if x > 0 then -x else x)
  in (if x > 0 then 1 else e) / (1 + e)
-- log (1 + exp x).
def f64_softplus (x: f64) : f64 =
  (if x > 0 then x else 0) + f64.log1p (f64.exp (if x > 0 then -x else x))
-- log (1 - exp x), for x <= 0. A difference from zero, so that the slope at 0 has its sign.
def f64_log1mexp (x: f64) : f64 =
  if x > -0.6931471805599453 then f64.log (0 - f64.expm1 x) else f64.log1p (-(f64.exp x))
-- log (exp x + exp y).
def f64_logaddexp (x: f64) (y: f64) : f64 =
  let (low, high) = if x > y then (y, x) else (x, y)
  in if f64.isnan low || !(f64.isinf high) then high + f64.log1p (f64.exp (low - high))
     else if high > 0 then f64.max low high else stop_gradient high
-- x log y and x log (1 + y); 0 where x is 0, whatever y is.
def f64_xlogy (x: f64) (y: f64) : f64 = f64.strong_mul x (f64.log y)
def f64_xlog1py (x: f64) (y: f64) : f64 = f64.strong_mul x (f64.log1p y)
-- The largest number, or 0 if that is infinite: exponentials of differences from it do not overflow.
def f64_log_shift [n] (xs: [n]f64) : f64 =
  let m = f64.maximum xs in stop_gradient (if f64.isinf m then 0 else m)
-- log (sum (map exp xs)); minus infinity of nothing, and of numbers that all are.
def f64_logsumexp [n] (xs: [n]f64) : f64 =
  let m = f64_log_shift xs
  let s = f64.sum (map (\x -> f64.exp (x - m)) xs)
  in if s == 0 then -f64.inf else if f64.isinf s then f64.maximum xs else m + f64.log s
-- map exp xs / sum (map exp xs), and its logarithm.
def f64_softmax [n] (xs: [n]f64) : [n]f64 =
  let m = f64_log_shift xs
  let es = map (\x -> f64.exp (x - m)) xs
  let s = f64.sum es
  in map (\e -> e / s) es
def f64_log_softmax [n] (xs: [n]f64) : [n]f64 =
  let m = f64_log_shift xs
  let s = f64.log (f64.sum (map (\x -> f64.exp (x - m)) xs))
  in map (\x -> x - m - s) xs
-- The length of a vector. If it is far from 1, numbers are scaled by a power of 2, which is exact. Between 1e-204 and 1e204 the
-- scale is so near to 1 that second derivatives neither overflow nor underflow.
def f64_norm_scale (m: f64) : (f64, f64) =
  if m > 5.016456510113119e204 then (1.90109156629516e-211, 5.260135901548374e210)
  else if m > 2.5822498780869086e120 then (4.464794497196387e-103, 2.2397447421778042e102)
  else if m < 1.9934389902195135e-205 then (5.260135901548374e210, 1.90109156629516e-211)
  else if m < 3.8725919148493183e-121 then (2.2397447421778042e102, 4.464794497196387e-103)
  else (1, 1)
def f64_norm [n] (xs: [n]f64) : f64 =
  let m = stop_gradient (reduce f64.max 0 (map f64.abs xs))
  let (up, down) = f64_norm_scale m
  in if 0 < m && m < f64.inf
     then down * f64.sqrt (f64.sum (map (\x -> let y = x * up in y * y) xs))
     else stop_gradient (f64.sum (map f64.abs xs))

-- 1 / (1 + exp (-x)).
def f32_sigmoid (x: f32) : f32 =
  let e = f32.exp (if x > 0 then -x else x)
  in (if x > 0 then 1 else e) / (1 + e)
-- log (1 + exp x).
def f32_softplus (x: f32) : f32 =
  (if x > 0 then x else 0) + f32.log1p (f32.exp (if x > 0 then -x else x))
-- log (1 - exp x), for x <= 0. A difference from zero, so that the slope at 0 has its sign.
def f32_log1mexp (x: f32) : f32 =
  if x > -0.6931472 then f32.log (0 - f32.expm1 x) else f32.log1p (-(f32.exp x))
-- log (exp x + exp y).
def f32_logaddexp (x: f32) (y: f32) : f32 =
  let (low, high) = if x > y then (y, x) else (x, y)
  in if f32.isnan low || !(f32.isinf high) then high + f32.log1p (f32.exp (low - high))
     else if high > 0 then f32.max low high else stop_gradient high
-- x log y and x log (1 + y); 0 where x is 0, whatever y is.
def f32_xlogy (x: f32) (y: f32) : f32 = f32.strong_mul x (f32.log y)
def f32_xlog1py (x: f32) (y: f32) : f32 = f32.strong_mul x (f32.log1p y)
-- The largest number, or 0 if that is infinite: exponentials of differences from it do not overflow.
def f32_log_shift [n] (xs: [n]f32) : f32 =
  let m = f32.maximum xs in stop_gradient (if f32.isinf m then 0 else m)
-- log (sum (map exp xs)); minus infinity of nothing, and of numbers that all are.
def f32_logsumexp [n] (xs: [n]f32) : f32 =
  let m = f32_log_shift xs
  let s = f32.sum (map (\x -> f32.exp (x - m)) xs)
  in if s == 0 then -f32.inf else if f32.isinf s then f32.maximum xs else m + f32.log s
-- map exp xs / sum (map exp xs), and its logarithm.
def f32_softmax [n] (xs: [n]f32) : [n]f32 =
  let m = f32_log_shift xs
  let es = map (\x -> f32.exp (x - m)) xs
  let s = f32.sum es
  in map (\e -> e / s) es
def f32_log_softmax [n] (xs: [n]f32) : [n]f32 =
  let m = f32_log_shift xs
  let s = f32.log (f32.sum (map (\x -> f32.exp (x - m)) xs))
  in map (\x -> x - m - s) xs
-- The length of a vector. If it is far from 1, numbers are scaled by a power of 2, which is exact. Between 1e-25 and 1e25 the
-- scale is so near to 1 that second derivatives neither overflow nor underflow.
def f32_norm_scale (m: f32) : (f32, f32) =
  if m > 1.9342813113834067e25 then (7.888609052210118e-31, 1.2676506002282294e30)
  else if m > 1099511627776.0 then (2.2737367544323206e-13, 4398046511104.0)
  else if m < 5.169878828456423e-26 then (1.2676506002282294e30, 7.888609052210118e-31)
  else if m < 9.094947017729282e-13 then (4398046511104.0, 2.2737367544323206e-13)
  else (1, 1)
def f32_norm [n] (xs: [n]f32) : f32 =
  let m = stop_gradient (reduce f32.max 0 (map f32.abs xs))
  let (up, down) = f32_norm_scale m
  in if 0 < m && m < f32.inf
     then down * f32.sqrt (f32.sum (map (\x -> let y = x * up in y * y) xs))
     else stop_gradient (f32.sum (map f32.abs xs))
