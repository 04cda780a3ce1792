//! The analysis of a function: what each instruction makes of the state.
//!
//! A register that is read is set; a pointer that is used points to memory that is there, of a type that fits. Memory is
//! in `regions`, branches and loops are in `loops`.

use super::Callee;
use super::alarm::{Alarm, Rule, line, name, operand};
use super::cells::{Cells, MAYBE, SET, UNSET, is_when, when};
use super::layout::{CALLER, Layout, Makes, NOBODY, NULL, has_point};
use super::loops::Head;
use super::sets::{EMPTY, Set, Sets};
use super::values::Layer;
use crate::ir::{Block, Function, Ins, Operand, Reg, Ty};
use pullback_base::index::{Index, IndexVec};
use pullback_base::table::Table;
use std::collections::BTreeMap;

/// A face of a site: what it made last, what it made before, what was given back.
pub(super) type Face = u32;

pub(super) fn recent(site: u32) -> Face {
    3 * site
}
pub(super) fn old(site: u32) -> Face {
    3 * site + 1
}
pub(super) fn dead(site: u32) -> Face {
    3 * site + 2
}
pub(super) fn is_dead(face: Face) -> bool {
    face % 3 == 2
}
pub(super) fn site_of(face: Face) -> u32 {
    face / 3
}

fn otherwise(second: bool) -> &'static str {
    if second { " otherwise" } else { "" }
}

pub(super) struct Flow<'a> {
    pub(super) f: &'a Function,
    pub(super) callees: &'a [Callee],
    pub(super) layout: Layout,
    pub(super) sets: Sets,
    pub(super) cells: Cells,
    /// What is known of loops from visits before.
    pub(super) heads: Vec<Option<Head>>,
    /// For each site, the cells that have held a face of it.
    pub(super) watchers: Vec<Vec<u32>>,
    /// Cells with the sites of `watchers` that they are in.
    pub(super) watched: Table<(u32, u32), ()>,
    /// Cells with the sets that they have held.
    pub(super) held_sets: Table<(u32, Set), ()>,
    /// For each level, the faces that have had it.
    pub(super) levels: Vec<Vec<Face>>,
    pub(super) leveled: Table<(u32, Face), ()>,
    /// For each condition, the registers that have been set under it.
    pub(super) conditional: IndexVec<Reg, Vec<Reg>>,
    pub(super) noted: Table<(Reg, Reg), ()>,
    /// How often a condition has been set.
    pub(super) versions: IndexVec<Reg, u32>,
    /// Whether the program has stopped on this way.
    pub(super) ended: bool,
    /// Whether alarms are noted: once loops are known.
    pub(super) reports: bool,
    pub(super) alarms: Vec<Alarm>,
    /// The instructions around, and the present one; whether the second arm is meant.
    pub(super) path: Vec<(&'a Ins, bool)>,
    /// Faces that are being given back.
    pub(super) gone: Vec<bool>,
    /// The last search that came to each face, and how many there were.
    pub(super) seen: Vec<u32>,
    pub(super) searches: u32,
    /// Instructions that were gone through.
    pub(super) visits: u64,
    /// What uses of memory may reach, if that is to be noted.
    pub(super) met: Option<Met>,
    /// What is known of values, if that is looked at.
    pub(super) values: Option<Layer<'a>>,
}

/// What uses of memory may reach: for an instruction and one of its pointers.
#[derive(Default)]
pub(super) struct Met {
    direct: BTreeMap<(*const Ins, Reg), Set>,
    /// With what is held there.
    reached: BTreeMap<(*const Ins, Reg), Set>,
}

impl<'a> Flow<'a> {
    pub(super) fn new(f: &'a Function, callees: &'a [Callee]) -> Flow<'a> {
        Flow::with(f, callees, None)
    }
    /// The same, for code with events.
    pub(super) fn with(f: &'a Function, callees: &'a [Callee], values: Option<Layer<'a>>) -> Flow<'a> {
        let layout = Layout::of(f, values.as_ref().map(|values| values.events));
        let cells = Cells::new(f, &layout, values.as_ref().map(Layer::bindings));
        let sites = layout.sites.len();
        Flow {
            f,
            callees,
            heads: layout.loops.iter().map(|_| None).collect(),
            watchers: vec![Vec::new(); sites],
            watched: Table::new(),
            held_sets: Table::new(),
            levels: vec![Vec::new(); layout.marks.len() + 1],
            leveled: Table::new(),
            conditional: f.regs.iter().map(|_| Vec::new()).collect(),
            noted: Table::new(),
            versions: f.regs.iter().map(|_| 0).collect(),
            ended: false,
            reports: false,
            alarms: Vec::new(),
            path: Vec::new(),
            gone: vec![false; 3 * sites],
            seen: vec![0; 3 * sites],
            searches: 0,
            visits: 0,
            met: None,
            values,
            sets: Sets::new(),
            layout,
            cells,
        }
    }
    /// Goes through a function and notes what uses of memory may reach.
    pub(super) fn noting(f: &'a Function, callees: &'a [Callee]) -> Flow<'a> {
        let mut flow = Flow::new(f, callees);
        flow.pass();
        flow.reports = true;
        flow.met = Some(Met::default());
        flow.pass();
        flow
    }
    /// The faces that an instruction may use through a pointer.
    pub(super) fn met(&self, ins: &Ins, pointer: Reg) -> &[Face] {
        let set = self.met.as_ref().and_then(|met| met.direct.get(&(std::ptr::from_ref(ins), pointer)));
        self.sets.items(set.copied().unwrap_or(EMPTY))
    }
    /// Those that can be reached from there.
    pub(super) fn reached(&self, ins: &Ins, pointer: Reg) -> &[Face] {
        let set = self.met.as_ref().and_then(|met| met.reached.get(&(std::ptr::from_ref(ins), pointer)));
        self.sets.items(set.copied().unwrap_or(EMPTY))
    }
    pub(super) fn note_met(&mut self, pointer: Operand, set: Set) {
        let (Some((ins, _)), Operand::Reg(r), Some(met)) = (self.path.last(), pointer, &mut self.met) else {
            return;
        };
        let all = met.direct.entry((std::ptr::from_ref(*ins), r)).or_insert(EMPTY);
        *all = self.sets.union(*all, set);
    }
    pub(super) fn note_reached(&mut self, pointer: Operand, faces: Vec<Face>) {
        let (Some((ins, _)), Operand::Reg(r), Some(met)) = (self.path.last(), pointer, &mut self.met) else {
            return;
        };
        let set = self.sets.of(faces);
        let all = met.reached.entry((std::ptr::from_ref(*ins), r)).or_insert(EMPTY);
        *all = self.sets.union(*all, set);
    }
    /// What it has cost so far.
    pub(super) fn work(&self) -> u64 {
        self.visits + self.cells.work + self.sets.work
    }
    /// Goes through the function once.
    pub(super) fn pass(&mut self) {
        let f = self.f;
        self.cells.clear();
        self.ended = false;
        self.put(self.cells.holds(recent(CALLER)), |sets| sets.of(vec![recent(CALLER), recent(NULL)]));
        for p in &f.params {
            let points = if f.regs[*p].ty == Ty::Pointer { self.sets.one(recent(CALLER)) } else { EMPTY };
            self.set(*p, points);
        }
        self.begin_values();
        self.block(&f.body, 0);
        if !self.ended {
            self.results();
        }
    }
    fn put(&mut self, cell: u32, set: impl FnOnce(&mut Sets) -> Set) {
        let set = set(&mut self.sets);
        self.cells.put(cell, set);
    }
    /// The end of the function.
    fn results(&mut self) {
        for r in &self.f.results {
            self.read((*r).into());
            let points = self.cells.points(*r);
            self.used_wholly((*r).into(), points, "is a result, and was written over");
            if self.reports
                && let Some(face) = self.reachable(points).into_iter().find(|face| is_dead(*face))
            {
                let text = format!("the result {} reaches {}", self.name(*r), self.face(face));
                self.alarm(Rule::Escape, Some(*r), text);
            }
        }
        self.end_values();
        let held = self.cells.get(self.cells.holds(recent(CALLER)));
        if self.reports
            && let Some(face) = self.reachable(held).into_iter().find(|face| is_dead(*face))
        {
            let text = format!("memory of the caller reaches {}", self.face(face));
            self.alarm(Rule::Escape, None, text);
        }
    }

    // --- names and alarms ---

    pub(super) fn name(&self, r: Reg) -> String {
        name(self.f, r)
    }
    pub(super) fn operand(&self, a: Operand) -> String {
        operand(self.f, a)
    }
    pub(super) fn face(&self, face: Face) -> String {
        let site = &self.layout.sites[site_of(face) as usize];
        let what = match (site.makes, site.to) {
            (Makes::Null, _) => "nothing".to_string(),
            (Makes::Caller, None) => "memory of the caller".to_string(),
            (Makes::Mark(_), Some(r)) => format!("the mark {}", self.name(r)),
            (_, Some(r)) => format!("memory of {}", self.name(r)),
            (_, None) => "memory of a part".to_string(),
        };
        let which = ["", " of an earlier iteration", ", which was given back"][(face % 3) as usize];
        format!("{what}{which}")
    }
    pub(super) fn alarm(&mut self, rule: Rule, register: Option<Reg>, text: String) {
        if !self.reports {
            return;
        }
        let register = register.map(|r| self.name(r));
        let alarm = Alarm { rule, function: self.f.name.clone(), path: self.lines(), register, text };
        if !self.alarms.contains(&alarm) {
            self.alarms.push(alarm);
        }
    }
    /// The instructions around, the outermost first, and the instruction itself.
    pub(super) fn lines(&self) -> Vec<String> {
        let text = |(ins, second): &(&Ins, bool)| line(self.f, ins, self.callees) + otherwise(*second);
        self.path.iter().map(text).collect()
    }

    // --- registers ---

    /// A register is read.
    pub(super) fn read(&mut self, a: Operand) {
        let Operand::Reg(r) = a else { return };
        match self.cells.known(r) {
            SET => {}
            UNSET => self.alarm(Rule::Unset, Some(r), format!("{} is not set", self.name(r))),
            _ => self.alarm(Rule::Unset, Some(r), format!("{} is set on some ways only", self.name(r))),
        }
    }
    pub(super) fn points(&mut self, a: Operand) -> Set {
        match a {
            Operand::Reg(r) => self.cells.points(r),
            Operand::Null => self.sets.one(recent(NULL)),
            Operand::Const(_) => EMPTY,
        }
    }
    /// A register is set.
    pub(super) fn set(&mut self, to: Reg, points: Set) {
        if self.layout.chooses[to] {
            self.chooses_anew(to);
        }
        self.cells.set_known(to, SET);
        if self.f.regs[to].ty == Ty::Pointer {
            let cell = self.cells.pointers[to];
            self.cells.put(cell, points);
            self.watch(cell, points);
            self.moves(to);
        }
    }
    /// What was set where a condition held is set on some ways, once the condition is another.
    fn chooses_anew(&mut self, c: Reg) {
        self.versions[c] += 1;
        self.cells.note_list(self.list_of_condition(c));
        for k in 0..self.conditional[c].len() {
            let r = self.conditional[c][k];
            if is_when(self.cells.known(r), c) {
                self.cells.set_known(r, MAYBE);
            }
        }
    }
    /// The condition has this value from here on.
    pub(super) fn assume(&mut self, c: Reg, holds: bool) {
        self.cells.note_list(self.list_of_condition(c));
        for k in 0..self.conditional[c].len() {
            let r = self.conditional[c][k];
            if self.cells.known(r) == when(c, holds) {
                self.cells.set_known(r, SET);
            }
        }
    }
    fn list_of_condition(&self, c: Reg) -> u32 {
        (self.watchers.len() + self.levels.len() + c.index()) as u32
    }
    /// How long a list is that was gone through: watchers of sites, faces of levels, registers of conditions.
    pub(super) fn length(&self, list: u32) -> u32 {
        let (list, sites, levels) = (list as usize, self.watchers.len(), self.levels.len());
        let found = if list < sites {
            self.watchers[list].len()
        } else if list < sites + levels {
            self.levels[list - sites].len()
        } else {
            self.conditional[Reg::new(list - sites - levels)].len()
        };
        found as u32
    }

    // --- instructions ---

    pub(super) fn block(&mut self, block: &'a Block, id: u32) {
        let mut at = self.layout.blocks[id as usize].first;
        for ins in block {
            if self.ended {
                return;
            }
            self.path.push((ins, false));
            self.visits += 1;
            let inside = has_point(ins);
            if inside {
                self.with_point(ins, at);
            } else {
                self.plain(ins);
            }
            at += usize::from(inside);
            self.path.pop();
        }
    }
    fn reads(&mut self, ins: &Ins) {
        ins.reads(&mut |a| self.read(a));
    }
    /// An instruction that makes no memory and has no blocks inside.
    fn plain(&mut self, ins: &Ins) {
        self.reads(ins);
        match ins {
            Ins::Set { to, value } if self.event(*to, *value) => {}
            Ins::Set { to, value } => {
                let points = self.points(*value);
                self.set(*to, points);
            }
            Ins::Offset { to, pointer, .. } => {
                let points = self.points(*pointer);
                self.set(*to, points);
            }
            Ins::Load { to, pointer, .. } => {
                let ty = self.f.regs[*to].ty;
                let from = self.used(*pointer, ty);
                self.loaded(*pointer, from);
                let points = if ty == Ty::Pointer { self.held(from) } else { EMPTY };
                self.set(*to, points);
            }
            Ins::LoadLanes { to, pointer, .. } => {
                let ty = self.f.regs[*to].ty.scalar().map_or(Ty::Pointer, Ty::Scalar);
                let from = self.used(*pointer, ty);
                self.loaded(*pointer, from);
                self.set(*to, EMPTY);
            }
            Ins::Store { pointer, value, ty, .. } | Ins::Fill { pointer, value, ty, .. } => {
                let into = self.used(*pointer, *ty);
                self.written(*pointer, into);
                if *ty == Ty::Pointer {
                    let points = self.points(*value);
                    self.hold(into, points);
                }
            }
            Ins::Copy { to, from, ty, .. } => {
                let (source, target) = (self.used(*from, *ty), self.used(*to, *ty));
                self.loaded(*from, source);
                self.written(*to, target);
                if *ty == Ty::Pointer {
                    let held = self.held(source);
                    self.hold(target, held);
                }
            }
            Ins::Accumulate { pointer, ty, .. }
            | Ins::AccumulateLanes { pointer, ty, .. }
            | Ins::StoreLanes { pointer, ty, .. } => {
                let into = self.used(*pointer, *ty);
                self.written(*pointer, into);
            }
            Ins::Release { mark } => self.release(*mark),
            Ins::Fail { .. } => self.ended = ins.always_stops(),
            _ => ins.sets().iter().for_each(|to| self.set(*to, EMPTY)),
        }
    }
    fn with_point(&mut self, ins: &'a Ins, at: usize) {
        let point = self.layout.points[at];
        match ins {
            Ins::Alloc { to, .. } => {
                self.reads(ins);
                self.make(point.number);
                let mut points = vec![recent(point.number)];
                points.extend(self.values.is_some().then_some(recent(NOBODY)));
                let points = self.sets.of(points);
                self.set(*to, points);
            }
            Ins::Mark { to } => self.mark(*to, point.number),
            Ins::Call { to, function, args } => {
                self.reads(ins);
                self.call(point.number, to, *function, args);
            }
            Ins::Chunks { function, args, .. } => {
                self.reads(ins);
                self.chunks(point.number, *function, args);
            }
            Ins::If { condition, then, otherwise }
                if let Some(k) = self.only(*condition, [then, otherwise]) =>
            {
                self.block([then, otherwise][k], point.blocks[k]);
            }
            Ins::If { condition, then, otherwise } => {
                self.read(*condition);
                self.branch(condition.as_reg(), [then, otherwise], point.blocks);
            }
            _ => self.repeat(ins, point),
        }
    }
    /// The only arm that runs come into, where values are looked at. (Registers and memory keep their rules in both.)
    fn only(&self, condition: Operand, arms: [&Block; 2]) -> Option<usize> {
        let values = self.values.as_ref()?;
        match condition {
            Operand::Const(c) => Some(usize::from(!c.is_true())),
            _ => arms.iter().position(|arm| values.is_dead(arm)).map(|dead| 1 - dead),
        }
    }
}
