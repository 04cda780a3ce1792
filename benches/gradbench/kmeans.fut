-- GradBench's kmeans: the cost of centroids, and the Newton step to their best places.
import "../../examples/kmeans"

def cost_of [n] [k] [d] (points: [n][d]f64) (centroids: [k][d]f64) : f64 = cost points centroids

entry cost [n] [k] [d] (points: [n][d]f64) (centroids: [k][d]f64) : f64 = cost_of points centroids

entry dir [n] [k] [d] (points: [n][d]f64) (centroids: [k][d]f64) : [k][d]f64 = direction points centroids
