//! Few items come out in their order, from both ends.

use pullback_base::Few;

#[test]
fn items_come_out_in_their_order_from_both_ends() {
    for count in 0..5 {
        let wanted: Vec<usize> = (0..count).collect();
        let few: Few<usize> = (0..count).collect();
        assert_eq!(few[..], wanted[..]);
        assert_eq!(few.clone().into_iter().len(), count);
        assert_eq!(few.clone().into_iter().collect::<Vec<_>>(), wanted);
        assert!(few.into_iter().rev().eq(wanted.into_iter().rev()));
    }
}
