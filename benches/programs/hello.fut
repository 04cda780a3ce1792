-- GradBench's first problem: a square and its derivative.
entry square (x: f64) : f64 = x * x

entry double (x: f64) : f64 = vjp square x 1
