//! The memory of running calls: a range of addresses that grows like a stack and is kept between calls.

use memmap2::{MmapMut, MmapOptions};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Allocations start at multiples of this.
pub const ALIGNMENT: usize = 64;

/// A range of addresses. The system gives memory where it is first used.
#[derive(Debug)]
pub struct Workspace {
    map: Option<MmapMut>,
    asked: u64,
    /// The most bytes that were ever in use.
    touched: u64,
}

impl Workspace {
    /// Reserves `limit` bytes, or as many as the system gives: half as many as long as it refuses.
    pub fn new(limit: u64) -> Workspace {
        let mut bytes = limit;
        while bytes > 0 {
            if let Some(map) = reserved(bytes) {
                return Workspace { map: Some(map), asked: limit, touched: 0 };
            }
            bytes /= 2;
        }
        Workspace { map: None, asked: limit, touched: 0 }
    }
    /// The same for calls that may take `limit` bytes, with addresses to spare, so that the next limit need not be the same: `roomy` bytes if
    /// the system gives so many.
    pub fn with_room(limit: u64, roomy: u64) -> Workspace {
        match reserved(roomy.max(limit)) {
            Some(map) => Workspace { map: Some(map), asked: roomy.max(limit), touched: 0 },
            None => Workspace::new(limit),
        }
    }
    /// The number of bytes that were asked for.
    pub fn asked(&self) -> u64 {
        self.asked
    }
    /// The number of bytes that the system has given.
    pub fn touched(&self) -> u64 {
        self.touched
    }
    /// So many bytes have been in use.
    pub fn touch(&mut self, bytes: u64) {
        self.touched = self.touched.max(bytes);
    }
    /// The first byte, aligned for allocations.
    pub fn start(&mut self) -> *mut u8 {
        // A place that is not null, for a workspace of no bytes.
        self.map.as_mut().map_or(std::ptr::without_provenance_mut(ALIGNMENT), |map| map.as_mut_ptr())
    }
    /// The number of bytes.
    pub fn bytes(&self) -> usize {
        self.map.as_ref().map_or(0, |map| map.len())
    }
    /// The end of the first `limit` bytes, or of all if there are fewer.
    pub fn end_within(&mut self, limit: u64) -> *mut u8 {
        let bytes = usize::try_from(limit).unwrap_or(usize::MAX).min(self.bytes()) / ALIGNMENT * ALIGNMENT;
        self.start().wrapping_add(bytes)
    }
}

/// Addresses of so many bytes, or a few less; `None`: the system does not give them.
fn reserved(bytes: u64) -> Option<MmapMut> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX) / ALIGNMENT * ALIGNMENT;
    let map = MmapOptions::new().len(bytes).no_reserve_swap().map_anon().ok().filter(|_| bytes > 0)?;
    #[cfg(target_os = "linux")]
    // Fewer faults at first use. A system without large pages is as right.
    let _ = map.advise(memmap2::Advice::HugePage);
    Some(map)
}

/// Workspaces that no call uses. Clones are the same store: pages that the system has given for one function serve others.
#[derive(Clone, Debug, Default)]
pub struct Workspaces(Arc<Mutex<Vec<Workspace>>>);

impl Workspaces {
    fn all(&self) -> MutexGuard<'_, Vec<Workspace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The one for which the system has given most, of at least `limit` bytes; it is not in the store any more. Those of fewer bytes
    /// go back to the system: a larger one is about to take their place.
    pub fn take(&self, limit: u64) -> Option<Workspace> {
        let mut all = self.all();
        all.retain(|w| w.asked() >= limit);
        let most = (0..all.len()).max_by_key(|k| all[*k].touched())?;
        Some(all.swap_remove(most))
    }
    /// Keeps a workspace for later calls.
    pub fn give(&self, workspace: Workspace) {
        self.all().push(workspace);
    }
    /// Bytes that the system has given for one that could be taken.
    pub fn touched(&self) -> u64 {
        self.all().iter().map(Workspace::touched).max().unwrap_or(0)
    }
}
