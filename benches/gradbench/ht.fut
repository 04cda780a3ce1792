-- GradBench's ht: hand tracking. Without `us` each point is measured at a vertex ("simple"), else in a triangle ("complicated").
import "../../examples/hand"

type measurements [n] [bones] [verts] [triangles] = {
  correspondences: [n]i64,
  points: [n][3]f64,
  model: {
    parents: [bones]i64,
    base_relatives: [bones]mat4,
    inverse_base_absolutes: [bones]mat4,
    base_positions: [verts][4]f64,
    weights: [verts][bones]f64,
    triangles: [triangles][3]i64,
    is_mirrored: bool
  }
}

def model_of [n] [bones] [verts] [triangles] (data: measurements [n] [bones] [verts] [triangles])
             : model [bones] [verts] =
  let m = data.model
  in {parents = m.parents, base_relatives = m.base_relatives, inverse_base_absolutes = m.inverse_base_absolutes,
      base_positions = m.base_positions, weights = m.weights, is_mirrored = m.is_mirrored}

entry objective [n] [u] [bones] [verts] [triangles] (theta: [26]f64) (us: [u][2]f64)
                (data: measurements [n] [bones] [verts] [triangles]) : [n * 3]f64 =
  let m = model_of data
  in if u == 0 then flatten (simple m data.correspondences data.points theta)
     else flatten (complicated m data.model.triangles data.correspondences data.points (us :> [n][2]f64) theta)

-- A row for each number of the objective. The columns are the parameters, and before them the point's own two `us`.
entry jacobian [n] [u] [bones] [verts] [triangles] (theta: [26]f64) (us: [u][2]f64)
               (data: measurements [n] [bones] [verts] [triangles]) : [n * 3][]f64 =
  let m = model_of data
  in if u == 0 then flatten (simple_rows m data.correspondences data.points theta)
     else
       let us = us :> [n][2]f64
       in flatten (complicated_rows m data.model.triangles data.correspondences data.points us theta)
