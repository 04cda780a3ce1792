//! Programs of a shape, as long as one likes.

/// A program of this shape with so many parts.
pub(crate) type Family = (&'static str, fn(usize) -> String);

fn function(lines: &[String], result: &str) -> String {
    format!("fun f(a: []f64, k: i64): f64 {{ let n: i64 = size(a, 0)\n{}\nin {result} }}", lines.join("\n"))
}

/// Arrays made one from the other, all there to the end; each is summed.
fn arrays(count: usize) -> String {
    let mut lines = vec!["let s_0: f64 = a[0i64]".to_string()];
    for k in 1..=count {
        let from = if k == 1 { "a".to_string() } else { format!("b_{}", k - 1) };
        lines.push(format!(
            "let b_{k}: []f64 = scan n [0.0f64] [{from}] (x_{k}: f64, y_{k}: f64) {{
                let z_{k}: f64 = add.f64(x_{k}, y_{k}) in z_{k} }}
            let e_{k}: f64 = b_{k}[0i64]
            let s_{k}: f64 = add.f64(s_{}, e_{k})",
            k - 1
        ));
    }
    function(&lines, &format!("s_{count}"))
}

/// Branches one after the other, each with an array in either arm.
fn branches(count: usize) -> String {
    let mut lines = vec!["let s_0: f64 = a[0i64]".to_string()];
    let arm = |k: usize, t: &str, op: &str| {
        format!(
            "let b_{k}{t}: []f64 = scan n [0.0f64] [a] (x_{k}{t}: f64, y_{k}{t}: f64) {{
                let z_{k}{t}: f64 = {op}.f64(x_{k}{t}, y_{k}{t}) in z_{k}{t} }}
            let e_{k}{t}: f64 = b_{k}{t}[0i64]
            in e_{k}{t}"
        )
    };
    for k in 1..=count {
        lines.push(format!(
            "let q_{k}: bool = eq.i64(k, {k}i64)
            let r_{k}: f64 = if q_{k} {{ {} }} else {{ {} }}
            let s_{k}: f64 = add.f64(s_{}, r_{k})",
            arm(k, "_t", "add"),
            arm(k, "_f", "max"),
            k - 1
        ));
    }
    function(&lines, &format!("s_{count}"))
}

/// Loops one after the other, from these values on; each has two arrays as its state, and makes a new one in each iteration.
fn loops_from(count: usize, (sum, array): (&str, &str)) -> Vec<String> {
    let mut lines = vec![format!("let s_0: f64 = {sum}"), format!("let k_0: []f64 = {array}")];
    for k in 1..=count {
        let from = k - 1;
        lines.push(format!(
            "let k_{k}: []f64, l_{k}: []f64 = loop (u_{k}: []f64 = k_{from}, v_{k}: []f64 = k_{from}) for i_{k}: i64 < k {{
                let w_{k}: []f64 = map n [u_{k}, v_{k}] (x_{k}: f64, y_{k}: f64) {{
                    let z_{k}: f64 = add.f64(x_{k}, y_{k}) in z_{k} }}
                in w_{k}, u_{k} }}
            let e_{k}: f64 = l_{k}[0i64]
            let s_{k}: f64 = add.f64(s_{from}, e_{k})"
        ));
    }
    lines
}

fn loops(count: usize) -> String {
    function(&loops_from(count, ("a[0i64]", "a")), &format!("s_{count}"))
}

/// The same inside of two loops.
fn nests(count: usize) -> String {
    let inside = loops_from(count, ("s_v", "a_v")).join("\n");
    let lines = format!(
        "let r: f64, q: []f64 = loop (s_u: f64 = 0.5f64, a_u: []f64 = a) for i_u: i64 < k {{
            let r_v: f64, q_v: []f64 = loop (s_v: f64 = s_u, a_v: []f64 = a_u) for i_v: i64 < k {{
                {inside}
                in s_{count}, k_{count} }}
            in r_v, q_v }}"
    );
    function(&[lines], "r")
}

/// All of them, with their names.
pub(crate) const FAMILIES: [Family; 4] =
    [("arrays", arrays), ("branches", branches), ("loops", loops), ("nests", nests)];
