//! Reverse AD for Accelerate (MSc thesis of Smeding): a second-order array language, differentiated from its outside in.
//!
//! | file | what | section |
//! |---|---|---|
//! | [`language`] | Idealised Accelerate: array combinators with scalar functions | 3.1 |

pub mod language;
