-- The particle problem of GradBench: where to put a charge so that a particle, pushed by the forces of two charges,
-- lands as near to the origin as possible. A gradient inside a while loop inside a gradient inside an optimiser.
--
-- The letters of an entry point say how the outer derivative (of the landing place by the charge's place) and the
-- inner one (the force: minus the gradient of the potential) are computed: r reverse, f forward.

type vec2 = (f64, f64)

def minus (a: vec2) (b: vec2) : vec2 = (a.0 - b.0, a.1 - b.1)
def along (a: vec2) (t: f64) (b: vec2) : vec2 = (a.0 + t * b.0, a.1 + t * b.1)
def norm (a: vec2) : f64 = f64.sqrt (a.0 * a.0 + a.1 * a.1)

def gradient_r (f: vec2 -> f64) (x: vec2) : vec2 = vjp f x 1
def gradient_f (f: vec2 -> f64) (x: vec2) : vec2 = (jvp f x (1, 0), jvp f x (0, 1))
def derivative_r (f: f64 -> f64) (x: f64) : f64 = vjp f x 1
def derivative_f (f: f64 -> f64) (x: f64) : f64 = jvp f x 1

-- Gradient descent with a step that grows after ten successes and shrinks after a failure.
def argmin (f: f64 -> f64) (df: f64 -> f64) (start: f64) : f64 =
  let state = {x = start, fx = f start, g = df start, rate = 1e-5, successes = 0i32, done = false}
  let last =
    loop s = state while !s.done do
      if f64.abs s.g <= 1e-5 then s with done = true
      else if s.successes == 10 then s with rate = 2 * s.rate with successes = 0
      else
        let x = s.x - s.rate * s.g
        in if f64.abs (s.x - x) <= 1e-5 then s with done = true
           else
             let fx = f x
             in if fx < s.fx then s with x = x with fx = fx with g = df x with successes = s.successes + 1
                else s with rate = s.rate / 2 with successes = 0
  in last.x

-- The square of the place where the particle crosses the axis, as a function of the place of one charge.
def landing (gradient: (vec2 -> f64) -> vec2 -> vec2) (w: f64) : f64 =
  let charges: [2]vec2 = [(10, 10 - w), (10, 0)]
  let potential (x: vec2) : f64 = f64.sum (map (\c -> 1 / norm (minus x c)) charges)
  let dt = 0.1
  let state = {x = (0, 8), v = (0.75, 0), done = false}
  let last =
    loop s = state while !s.done do
      let slope = gradient potential s.x
      let x = along s.x dt s.v
      in if x.1 <= 0 then s with x = x with done = true
         else s with x = x with v = along s.v (-dt) slope
  let time = -last.x.1 / last.v.1
  let place = last.x.0 + time * last.v.0
  in place * place

-- The landing place alone.
entry path (w: f64) : f64 = landing gradient_r w

entry rr (w: f64) : f64 = argmin (landing gradient_r) (derivative_r (landing gradient_r)) w
entry ff (w: f64) : f64 = argmin (landing gradient_f) (derivative_f (landing gradient_f)) w
entry fr (w: f64) : f64 = argmin (landing gradient_r) (derivative_f (landing gradient_r)) w
entry rf (w: f64) : f64 = argmin (landing gradient_f) (derivative_r (landing gradient_f)) w
