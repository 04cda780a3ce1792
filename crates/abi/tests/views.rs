//! Results are read where they are; arrays in another order are copied.

#![allow(unsafe_code, reason = "words are those of values that are alive")]

use pullback_abi::{Argument, Copies, Kept, Room, Slot, Views, set_words};
use pullback_base::RuntimeErrorKind;
use pullback_core::Type;
use pullback_prim::Scalar;

const ROOM: Room = Room { in_use: 0, limit: 1 << 20 };

fn slots(types: &[Type]) -> Vec<Slot> {
    types.iter().map(|t| Slot::of(t).expect("a slot")).collect()
}

#[test]
fn results_are_read_where_they_are() {
    let numbers: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let truths = [true, false];
    let slots = slots(&[Type::F32, Type::array_of_rank(Type::F64, 2), Type::array(Type::BOOL), Type::I64]);
    let args = [
        Argument::scalar(1.5f32),
        Argument::array(&numbers, &[2, 3]),
        Argument::array(&truths, &[2]),
        Argument::scalar(-7i64),
    ];
    let mut words = [0; 10];
    set_words(&slots, &args, &mut words, (&mut Copies::default(), 0)).expect("right");
    let mut kept = Kept::default();
    // SAFETY: the words are those of values that are alive.
    let views = unsafe { Views::new(&slots, &mut words, &mut kept, ROOM) }.expect("views");
    let all: Vec<_> = views.clone().collect();
    assert_eq!((views.len(), all.len()), (4, 4));
    assert_eq!((all[0].scalar::<f32>(), all[3].scalar::<i64>()), (Some(1.5), Some(-7)));
    let (elements, sizes) = all[1].array::<f64>().expect("an array");
    assert_eq!((elements, sizes), (&numbers[..], &[2, 3][..]));
    assert!(std::ptr::eq(elements.as_ptr(), numbers.as_ptr()), "not copied");
    assert_eq!(all[2].array::<bool>(), Some((&truths[..], &[2][..])));
    // Others than they are.
    assert_eq!((all[0].scalar::<f64>(), all[0].array::<f32>()), (None, None));
    assert_eq!((all[1].scalar::<f64>(), all[1].array::<i64>(), all[2].array::<u8>()), (None, None, None));
    assert_eq!((all[1].element(), all[1].sizes()), (Scalar::F64, &[2, 3][..]));
}

/// The transposition, a replicated number, every second element backwards, a row of one element, nothing.
#[test]
fn arrays_in_another_order_are_copied() {
    let numbers: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let start = numbers.as_ptr().expose_provenance() as u64;
    let matrix = Type::array_of_rank(Type::F32, 2);
    let slots =
        slots(&[matrix.clone(), Type::array(Type::F32), Type::array(Type::F32), matrix.clone(), matrix]);
    let words = |n: u64| {
        let backwards = (-2i64) as u64;
        let last = start + 20;
        [start, 3, 2, 1, 3, start, n, 0, last, 3, backwards, start + 4, 1, 1, 9, 9, start, n, 0, 0, 0]
    };
    let mut kept = Kept::default();
    for n in [5, 3] {
        let mut words = words(n);
        // SAFETY: all elements are among the numbers above.
        let views = unsafe { Views::new(&slots, &mut words, &mut kept, ROOM) }.expect("views");
        let all: Vec<_> = views.map(|v| v.array::<f32>().expect("an array")).collect();
        assert_eq!(all[0], (&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0][..], &[3, 2][..]));
        assert_eq!(all[1], (&[1.0; 5][..n as usize], &[n as usize][..]));
        assert_eq!(all[2], (&[6.0, 4.0, 2.0][..], &[3][..]));
        assert_eq!(all[3], (&[2.0][..], &[1, 1][..]));
        assert_eq!(all[4], (&[][..], &[n as usize, 0][..]));
    }
    let refused = |n: u64| {
        let (mut words, mut kept) = (words(n), Kept::default());
        // SAFETY: as above.
        let views = unsafe { Views::new(&slots, &mut words, &mut kept, ROOM) };
        views.map(|_| ()).expect_err("too many")
    };
    let text = "out of memory: 4194304 more bytes are needed, 24 are in use, the limit is 1048576";
    assert_eq!((refused(1 << 20).kind, refused(1 << 20).message.as_str()), (RuntimeErrorKind::Limit, text));
    assert_eq!(refused(1 << 62).kind, RuntimeErrorKind::Limit);
}
