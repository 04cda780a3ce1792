//! The reverse pass over tasks: forks where the function joined, joins where it forked.

#![allow(unsafe_code, reason = "tasks are reached by pointers")]

use super::task::{Event, Outward, Session, Task, join};
use crate::Float;
use crate::cell::Cell as _;
use crate::tape::{PART, Row};

/// Runs the reverse pass from the number at `place`. Then the cotangents of the inputs are those of the whole function's task.
pub(super) fn reverse<F: Float>(
    session: &Session<F>,
    place: Option<(*const Task<F>, u32, F)>,
    relaxed: bool,
) {
    let count = number(session.root());
    if let Some((task, index, factor)) = place {
        // SAFETY: the session owns its tasks, and no other thread works on them now.
        unsafe { (*task).cotangents()[index as usize].set(factor) };
    }
    let pass = Pass { relaxed };
    let root = Shared(session.root());
    if count > 1 {
        // Into the pool once, not at every fork.
        rayon::scope(|_| pass.task(root));
    } else {
        pass.task(root);
    }
}

/// Numbers the tasks so that those inside of one follow it. How many there are.
fn number<F: Float>(root: &Task<F>) -> u32 {
    enum Step<'a, F: Float> {
        Enter(&'a Task<F>),
        Leave(&'a Task<F>),
    }
    let mut next = 0;
    let mut steps = vec![Step::Enter(root)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Leave(task) => task.order.set((task.order.get().0, next)),
            Step::Enter(task) => {
                task.order.set((next, next));
                next += 1;
                steps.push(Step::Leave(task));
                for (_, event) in task.tape.events().iter() {
                    if let Event::Fork(branches) = event {
                        // SAFETY: the session owns its tasks, and no other thread works on them now.
                        steps.extend(branches.iter().map(|b| Step::Enter(unsafe { &**b })));
                    }
                }
            }
        }
    }
    next
}

/// A task that one thread at a time works on.
struct Shared<F: Float>(*const Task<F>);

// SAFETY: the reverse pass hands each task to one thread.
unsafe impl<F: Float> Send for Shared<F> {}

#[derive(Clone, Copy)]
struct Pass {
    relaxed: bool,
}

impl Pass {
    /// The reverse of a task and of all tasks inside of it.
    fn task<F: Float>(self, task: Shared<F>) {
        // SAFETY: the session owns its tasks, and this thread has this one.
        let task = unsafe { &*task.0 };
        let own = task.cotangents();
        let imports = task.imports.borrow();
        let mut imports = imports.iter().rev().peekable();
        // Hands over what the imports from this index on have got.
        let mut hand_over = |from: u32| {
            while let Some(import) = imports.next_if(|i| i.local >= from) {
                let d = own[import.local as usize].get();
                if !d.is_inert() {
                    self.hand_over(task, import.task, import.index, d);
                }
            }
        };
        let mut walk = task.tape.walk();
        let mut carried = F::zero();
        for (position, event) in task.tape.events().iter().rev() {
            while let Some((first, rows)) = walk.piece(*position) {
                sweep_rows::<F>(first, rows, own, &mut carried);
            }
            hand_over(*position);
            match event {
                Event::Call(call) => {
                    let add = |i: usize, d| own[i].set(own[i].get() + d);
                    call.run(&task.tape.rest(), |i| own[i].get(), add);
                }
                Event::Fork([left, right]) => {
                    let (a, b) = (Shared(*left), Shared(*right));
                    join(|| self.task(a), || self.task(b));
                    for branch in [left, right] {
                        // SAFETY: the session owns its tasks, and the fork has ended.
                        self.hand_on(task, unsafe { &**branch });
                    }
                }
            }
        }
        while let Some((first, rows)) = walk.piece(0) {
            sweep_rows::<F>(first, rows, own, &mut carried);
        }
        hand_over(0);
    }
    /// A contribution of `task` to a number of another one.
    fn hand_over<F: Float>(self, task: &Task<F>, target: *const Task<F>, index: u32, cotangent: F) {
        let outward = Outward { task: target, index, cotangent };
        if self.add_inside(task, &outward) {
        } else if self.relaxed {
            outward.cell().add(cotangent);
        } else {
            task.outward.borrow_mut().push(outward);
        }
    }
    /// What a branch has for numbers outside of it: added here or kept for further outside, in the order in which it came.
    fn hand_on<F: Float>(self, task: &Task<F>, branch: &Task<F>) {
        let contributions = std::mem::take(&mut *branch.outward.borrow_mut());
        for outward in contributions {
            if !self.add_inside(task, &outward) {
                task.outward.borrow_mut().push(outward);
            }
        }
    }
    /// Adds to a number of this task or of one inside of it, where no other thread is at work. Whether it was one.
    fn add_inside<F: Float>(self, task: &Task<F>, outward: &Outward<F>) -> bool {
        let (first, end) = task.order.get();
        // SAFETY: the session owns its tasks; orders are not changed during the pass.
        let inside = (first..end).contains(&unsafe { (*outward.task).order.get().0 });
        if inside {
            let cell = outward.cell();
            cell.set(cell.get() + outward.cotangent);
        }
        inside
    }
}

impl<F: Float> Outward<F> {
    /// The cotangent of the number.
    fn cell(&self) -> &F::Bits {
        // SAFETY: the session owns its tasks, and cotangents are made before the pass.
        unsafe { &(*self.task).cotangents()[self.index as usize] }
    }
}

#[inline]
fn sweep_rows<F: Float>(first: usize, rows: &[Row<F>], own: &[F::Bits], carried: &mut F) {
    let mut d = *carried;
    for (offset, row) in rows.iter().enumerate().rev() {
        let [a, b] = row.parents;
        if a & PART == 0 {
            d = own[first + offset].get();
        }
        if d.is_inert() {
            continue;
        }
        let (a, b) = (&own[(a & !PART) as usize], &own[b as usize]);
        a.set(a.get() + row.partials[0] * d);
        b.set(b.get() + row.partials[1] * d);
    }
    *carried = d;
}
