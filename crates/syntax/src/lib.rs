//! Placeholder, replaced by the crate's own front page.
