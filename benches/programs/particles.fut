-- Independent damped particles in the plane; the sum of the products of their final coordinates.
type state = {px: f64, py: f64, vx: f64, vy: f64}

def step (s: state) : state =
  let dt = 0.05
  let ax = -0.5 * s.px - 0.2 * s.vx
  let ay = -0.5 * s.py - 0.2 * s.vy
  in {px = s.px + dt * s.vx, py = s.py + dt * s.vy, vx = s.vx + dt * ax, vy = s.vy + dt * ay}

entry product [n] (particles: [n]state) (steps: i64) : f64 =
  let run (s: state) : f64 =
    let final = loop s for _t < steps do step s
    in final.px * final.py
  in f64.sum (map run particles)

entry gradient [n] (particles: [n]state) (steps: i64) : (f64, [n]state) =
  vjp2 (\particles -> product particles steps) particles 1
