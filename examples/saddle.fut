-- The saddle problem of GradBench: the least value, over p1, of the greatest value, over p2, of a quadratic form.
-- An optimiser whose objective contains an optimiser: the outer gradient goes through the inner loop.
--
-- The letters of an entry point say how the outer and the inner gradient are computed: r reverse, f forward.

type vec2 = (f64, f64)

def norm (a: vec2) : f64 = f64.sqrt (a.0 * a.0 + a.1 * a.1)
def gradient_r (f: vec2 -> f64) (x: vec2) : vec2 = vjp f x 1
def gradient_f (f: vec2 -> f64) (x: vec2) : vec2 = (jvp f x (1, 0), jvp f x (0, 1))

-- Gradient descent with a step that grows after ten successes and shrinks after a failure.
def argmin (gradient: (vec2 -> f64) -> vec2 -> vec2) (f: vec2 -> f64) (start: vec2) : vec2 =
  let state = {x = start, fx = f start, g = gradient f start, rate = 1e-5, successes = 0i32, done = false}
  let last =
    loop s = state while !s.done do
      if norm s.g <= 1e-5 then s with done = true
      else if s.successes == 10 then s with rate = 2 * s.rate with successes = 0
      else
        let x = (s.x.0 - s.rate * s.g.0, s.x.1 - s.rate * s.g.1)
        in if norm (s.x.0 - x.0, s.x.1 - x.1) <= 1e-5 then s with done = true
           else
             let fx = f x
             in if fx < s.fx
                then s with x = x with fx = fx with g = gradient f x with successes = s.successes + 1
                else s with rate = s.rate / 2 with successes = 0
  in last.x

def argmax (gradient: (vec2 -> f64) -> vec2 -> vec2) (f: vec2 -> f64) (start: vec2) : vec2 =
  argmin gradient (\x -> -(f x)) start

def value (p1: vec2) (p2: vec2) : f64 = p1.0 * p1.0 + p1.1 * p1.1 - (p2.0 * p2.0 + p2.1 * p2.1)

-- The greatest value over p2: the inner problem.
def best (inner: (vec2 -> f64) -> vec2 -> vec2) (start: vec2) (p1: vec2) : f64 =
  value p1 (argmax inner (value p1) start)

def saddle (outer: (vec2 -> f64) -> vec2 -> vec2) (inner: (vec2 -> f64) -> vec2 -> vec2)
           (start: [2]f64) : [4]f64 =
  let start = (start[0], start[1])
  let p1 = argmin outer (best inner start) start
  let p2 = argmax inner (value p1) start
  in [p1.0, p1.1, p2.0, p2.1]

-- The inner problem alone.
entry inner_value (start: [2]f64) (p1: [2]f64) : f64 = best gradient_r (start[0], start[1]) (p1[0], p1[1])

entry rr (start: [2]f64) : [4]f64 = saddle gradient_r gradient_r start
entry ff (start: [2]f64) : [4]f64 = saddle gradient_f gradient_f start
entry fr (start: [2]f64) : [4]f64 = saddle gradient_f gradient_r start
entry rf (start: [2]f64) : [4]f64 = saddle gradient_r gradient_f start
