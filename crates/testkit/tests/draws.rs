//! How many seeds are drawn, and which.

use pullback_testkit::draws::{Draws, day_of};
use std::time::{Duration, UNIX_EPOCH};

fn draws(least: u64, most: u64, time: Duration) -> Draws {
    Draws::from("test", 7, (least, most), time)
}

#[test]
fn at_least_what_is_needed_and_at_most_the_full_count() {
    assert!(draws(3, 5, Duration::ZERO).eq([7, 8, 9]), "no time is left");
    assert!(draws(3, 5, Duration::from_secs(3600)).eq(7..12), "time enough");
}

#[test]
fn days_have_other_seeds() {
    let at = |hours: u64| day_of(UNIX_EPOCH + Duration::from_secs(hours * 3600));
    assert_eq!([at(0), at(23), at(24), at(49)], [0, 0, 1, 2]);
}
