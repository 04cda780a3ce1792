-- k-means: the cost of centroids, and the Newton step that moves each centroid to the mean of its cluster.

def squared_distance [d] (a: [d]f64) (b: [d]f64) : f64 =
  f64.sum (map2 (\x y -> (x - y) * (x - y)) a b)

entry cost [n] [k] [d] (points: [n][d]f64) (centroids: [k][d]f64) : f64 =
  f64.sum (map (\p -> f64.minimum (map (squared_distance p) centroids)) points)

-- Gradient divided by the diagonal of the Hessian. The Hessian is diagonal, so its diagonal is its product with ones:
-- one forward pass over the gradient gives both.
entry direction [n] [k] [d] (points: [n][d]f64) (centroids: [k][d]f64) : [k][d]f64 =
  let gradient (c: [k][d]f64) : [k][d]f64 = vjp (cost points) c 1
  let ones = replicate k (replicate d 1f64)
  let (g, h) = jvp2 gradient centroids ones
  in map2 (map2 (/)) g h

entry fit [n] [k] [d] (points: [n][d]f64) (centroids: [k][d]f64) (steps: i64) : (f64, [k][d]f64) =
  let c = loop c = centroids for _i < steps do map2 (map2 (-)) c (direction points c)
  in (cost points c, c)
