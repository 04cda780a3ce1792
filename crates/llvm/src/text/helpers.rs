//! Functions of a text for what code does often and not in its inner loops: to say why it stops, and, in large functions, to take
//! memory and give it back; to run the parts of a loop.

use crate::abi::{ALIGNMENT, COUNT, DONE, END, MESSAGE, OUT_OF_MEMORY, PEAK, SHARE, TOP, VALUES};
use std::fmt::Write;

/// Says why the program stops, with so many values.
pub(super) fn fail(values: usize) -> String {
    let names: Vec<String> = (0..values).map(|k| format!("%v{k}")).collect();
    let params: String = names.iter().map(|v| format!(", i64 {v}")).collect();
    let mut fields = vec![(MESSAGE, "%message".to_string()), (COUNT, values.to_string())];
    fields.extend(names.into_iter().enumerate().map(|(k, name)| (VALUES + 8 * k, name)));
    let mut out = format!("define internal void @pb_fail{values}(ptr %cx, i64 %message{params}) #1 {{\n");
    for (k, (offset, value)) in fields.iter().enumerate() {
        let _ = write!(
            out,
            "  %p{k} = getelementptr inbounds i8, ptr %cx, i64 {offset}\n  store i64 {value}, ptr %p{k}\n"
        );
    }
    out + "  ret void\n}\n"
}

/// Takes `%count` elements of two to the power of `%shift` bytes from the top of the workspace: as `Emitter::alloc` does in place. Null, and
/// the message, if it is full. It calls what [`fail`] gives for 4 values.
pub(super) fn alloc() -> String {
    format!(
        "define internal ptr @pb_alloc(ptr %cx, i64 %count, i64 %shift, i64 %function, i64 %register) #5 {{\n\
         \x20 %top.at = getelementptr inbounds i8, ptr %cx, i64 {TOP}\n\
         \x20 %end.at = getelementptr inbounds i8, ptr %cx, i64 {END}\n\
         \x20 %top = load ptr, ptr %top.at\n\
         \x20 %end = load ptr, ptr %end.at\n\
         \x20 %from = ptrtoint ptr %top to i64\n\
         \x20 %to = ptrtoint ptr %end to i64\n\
         \x20 %free = sub i64 %to, %from\n\
         \x20 %room = lshr i64 %free, %shift\n\
         \x20 %is.full = icmp ugt i64 %count, %room\n\
         \x20 br i1 %is.full, label %full, label %fits, !prof !0\n\
         full:\n\
         \x20 %bytes.each = shl i64 1, %shift\n\
         \x20 call void @pb_fail4(ptr %cx, i64 {OUT_OF_MEMORY}, i64 %count, i64 %bytes.each, i64 %function, i64 %register)\n\
         \x20 ret ptr null\n\
         fits:\n\
         \x20 %bytes = shl i64 %count, %shift\n\
         \x20 %padded = add i64 %bytes, {}\n\
         \x20 %rounded = and i64 %padded, -{ALIGNMENT}\n\
         \x20 %after = getelementptr inbounds i8, ptr %top, i64 %rounded\n\
         \x20 store ptr %after, ptr %top.at\n\
         \x20 ret ptr %top\n}}\n",
        ALIGNMENT - 1
    )
}

/// Goes back to a height of the workspace: as `Emitter::release` does in place.
pub(super) fn release() -> String {
    format!(
        "define internal void @pb_release(ptr %cx, ptr %mark) #5 {{\n\
         \x20 %top.at = getelementptr inbounds i8, ptr %cx, i64 {TOP}\n\
         \x20 %peak.at = getelementptr inbounds i8, ptr %cx, i64 {PEAK}\n\
         \x20 %top = load ptr, ptr %top.at\n\
         \x20 %peak = load ptr, ptr %peak.at\n\
         \x20 %is.higher = icmp ugt ptr %top, %peak\n\
         \x20 %highest = select i1 %is.higher, ptr %top, ptr %peak\n\
         \x20 store ptr %highest, ptr %peak.at\n\
         \x20 store ptr %mark, ptr %top.at\n\
         \x20 ret void\n}}\n"
    )
}

/// Calls an entry point with every number below `%count` in the first word: by the function of the context that shares the calls
/// among threads, or one after the other if there is none. Gives the status. It calls [`release`].
pub(super) fn parts() -> String {
    format!(
        "define internal i32 @pb_parts(ptr %cx, ptr %entry, ptr %words, i64 %length, i64 %count) #5 {{\n\
         start:\n\
         \x20 %share.at = getelementptr inbounds i8, ptr %cx, i64 {SHARE}\n\
         \x20 %top.at = getelementptr inbounds i8, ptr %cx, i64 {TOP}\n\
         \x20 %share = load ptr, ptr %share.at\n\
         \x20 %is.alone = icmp eq ptr %share, null\n\
         \x20 %is.single = icmp slt i64 %count, 2\n\
         \x20 %is.here = or i1 %is.alone, %is.single\n\
         \x20 br i1 %is.here, label %head, label %shared\n\
         shared:\n\
         \x20 %given = call i32 %share(ptr %cx, ptr %entry, ptr %words, i64 %length, i64 %count)\n\
         \x20 ret i32 %given\n\
         head:\n\
         \x20 %k = phi i64 [ 0, %start ], [ %next, %went ]\n\
         \x20 %more = icmp slt i64 %k, %count\n\
         \x20 br i1 %more, label %inside, label %done\n\
         inside:\n\
         \x20 %top = load ptr, ptr %top.at\n\
         \x20 store i64 %k, ptr %words\n\
         \x20 %status = call i32 %entry(ptr %cx, ptr %words, ptr %words)\n\
         \x20 call void @pb_release(ptr %cx, ptr %top)\n\
         \x20 %stopped = icmp ne i32 %status, {DONE}\n\
         \x20 br i1 %stopped, label %stop, label %went\n\
         went:\n\
         \x20 %next = add i64 %k, 1\n\
         \x20 br label %head\n\
         stop:\n\
         \x20 ret i32 %status\n\
         done:\n\
         \x20 ret i32 {DONE}\n}}\n"
    )
}
