//! The header of a library.

use super::shared::{DEFAULT_BYTES, DEFAULT_STACK};
use super::{Dim, Item, STATUSES, Signature, c_type};
use std::fmt::Write;

/// The header of the library `prefix`. `made_by` says what the code was made for, and by what.
pub fn header(prefix: &str, signatures: &[Signature], made_by: &str) -> String {
    let upper = prefix.to_uppercase();
    let mut out = format!(
        "/* {prefix}: made by pullback; {made_by}.

   Every function takes a handle, which holds a workspace and the message of the last error, and gives a status:
   {upper}_OK, or what went wrong. Arrays are in row-major order. What a function is given it does not change, and results
   go into buffers of the caller: for an array the buffer, the number of elements it has room for, and where its sizes go
   (or NULL). Nothing is allocated by a call but in the workspace, which is kept between calls. A buffer of a result must not
   overlap arguments or other results.

   Threads: one handle serves one call at a time. Calls with different handles may run at the same time.

   Link with -l{prefix} -lm. */

#ifndef {upper}_H
#define {upper}_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {{
#endif

/* What a function gives. */
enum {{
"
    );
    for status in STATUSES {
        let _ = writeln!(out, "  {upper}_{} = {}, /* {} */", status.name, status.code, status.about);
    }
    let _ = write!(
        out,
        "}};

/* A workspace and the message of the last error. */
typedef struct {prefix}_handle {prefix}_handle;

/* A new handle; NULL if the system refuses. A call fails with {upper}_LIMIT before its workspace holds more bytes than
   memory_limit (0: {DEFAULT_BYTES}). The system gives memory where it is first used. */
{prefix}_handle *{prefix}_new(int64_t memory_limit);

/* Gives the handle and its workspace back. NULL is allowed. */
void {prefix}_free({prefix}_handle *handle);

/* What went wrong in the last call, with the position in the source program; empty if nothing. Until the next call. */
const char *{prefix}_last_error(const {prefix}_handle *handle);

/* Stops the running call, or the next one, with {upper}_CANCELLED. For other threads and handlers of signals. */
void {prefix}_cancel({prefix}_handle *handle);

/* How many bytes of the caller's stack recursive functions may use; {DEFAULT_STACK} if nothing is said. */
void {prefix}_set_stack({prefix}_handle *handle, int64_t bytes);

/* The most bytes of the workspace that the last call had in use. */
int64_t {prefix}_peak_bytes(const {prefix}_handle *handle);
"
    );
    for signature in signatures {
        let _ = writeln!(out, "\n{}", prototype(prefix, signature));
    }
    let _ = write!(out, "\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n");
    out
}

fn prototype(prefix: &str, signature: &Signature) -> String {
    let mut lines: Vec<(String, String)> = vec![(format!("{prefix}_handle *handle"), String::new())];
    for size in &signature.sizes {
        lines.push((format!("int64_t {size}"), String::new()));
    }
    for item in &signature.params {
        let ty = c_type(item.scalar);
        if item.dims.is_empty() {
            lines.push((format!("{ty} {}", item.name), String::new()));
            continue;
        }
        lines.push((format!("const {ty} *{}", item.name), shape(signature, item)));
        let own = item.dims.iter().enumerate().filter(|(_, d)| **d == Dim::Own);
        lines.extend(own.map(|(d, _)| (format!("int64_t {}_dim{d}", item.name), String::new())));
    }
    for item in &signature.results {
        let (ty, name) = (c_type(item.scalar), &item.name);
        if item.dims.is_empty() {
            lines.push((format!("{ty} *{name}"), "result".to_string()));
            continue;
        }
        let rank = item.dims.len();
        lines.push((
            format!("{ty} *{name}"),
            format!("result, {rank} dimension{}", if rank == 1 { "" } else { "s" }),
        ));
        lines.push((format!("int64_t {name}_capacity"), String::new()));
        lines.push((format!("int64_t *{name}_shape"), format!("{rank} numbers, or NULL")));
    }
    let last = lines.len() - 1;
    let text: String = lines
        .into_iter()
        .enumerate()
        .map(|(k, (line, comment))| {
            let end = if k == last { ");" } else { "," };
            let comment = if comment.is_empty() { comment } else { format!(" /* {comment} */") };
            format!("    {line}{end}{comment}\n")
        })
        .collect();
    // What is said comes from the program, and must not end the comment.
    let about: Vec<String> = signature.about.iter().map(|l| l.replace("*/", "* /")).collect();
    format!("/* {} */\nint32_t {}(\n{}", about.join("\n   "), signature.symbol, text.trim_end())
}

/// The shape of a parameter, as `[n][3]`.
fn shape(signature: &Signature, item: &Item) -> String {
    let name = |(d, dim): (usize, &Dim)| match dim {
        Dim::Shared(k) => format!("[{}]", signature.sizes[*k]),
        Dim::Parameter(k) => format!("[{}]", signature.params[*k].name),
        Dim::Constant(n) => format!("[{n}]"),
        Dim::Own => format!("[{}_dim{d}]", item.name),
    };
    item.dims.iter().enumerate().map(name).collect()
}
