//! Delta terms (Krawiec et al., "Provably correct, asymptotically efficient, higher-order reverse-mode automatic differentiation", POPL 2022; thesis of Smeding,
//! 4.1), from lambda to lambda.
//!
//! Forward mode whose tangents are terms (`terms`): a number becomes the number with a term that says what its tangent would be. The reverse pass is an evaluator of
//! such terms. The text derives the one that costs what it should; each step has its place:
//!
//! | file | evaluator | section | cost of a gradient |
//! |---|---|---|---|
//! | [`a_unshared`] | `eval_0`: one run per number of the arguments | 4.1.3 | exponential in the depth of shared values |
//! | | `eval_1`: whole cotangents; `eval_2`: changes of them; `eval_3`: with the cotangent on the way down | 4.1.4 | exponential as well |
//! | [`b_shared`] | `eval_4`: identities make sharing visible; the highest one first | 4.1.5 | a logarithm too much |
//! | [`c_let`] | terms named by `let`, evaluated from the last one on | 4.1.5, the form of the authors' slides | a logarithm too much |
//!
//! All but the last one evaluate the same terms. The forward pass is that of the dual numbers' later stages ([`crate::dual_numbers`]).

pub mod a_unshared;
pub mod b_shared;
pub mod c_let;

mod terms;

use crate::contract::{Bound, Status};
use crate::on_lambda::OnLambda;

/// The algorithms of this chapter, in its order.
pub const ON_LAMBDA: &[OnLambda] = &[
    OnLambda {
        id: a_unshared::DIRECT,
        title: "Delta terms, one direction after the other",
        citation: "Krawiec et al., POPL 2022; Smeding, thesis, 4.1.3",
        bound: Bound::None,
        status: Status::Didactic,
        recursion: false,
        vjp: a_unshared::direct,
    },
    OnLambda {
        id: a_unshared::VECTORS,
        title: "Delta terms, with whole cotangents",
        citation: "Smeding, thesis, 4.1.4",
        bound: Bound::None,
        status: Status::Didactic,
        recursion: false,
        vjp: a_unshared::vectors,
    },
    OnLambda {
        id: a_unshared::CHANGES,
        title: "Delta terms, with changes of cotangents",
        citation: "Smeding, thesis, 4.1.4",
        bound: Bound::None,
        status: Status::Didactic,
        recursion: false,
        vjp: a_unshared::changes,
    },
    OnLambda {
        id: a_unshared::INWARDS,
        title: "Delta terms, with the cotangent on the way down",
        citation: "Smeding, thesis, 4.1.4",
        bound: Bound::None,
        status: Status::Didactic,
        recursion: false,
        vjp: a_unshared::inwards,
    },
    OnLambda {
        id: b_shared::ID,
        title: "Delta terms, with sharing",
        citation: "Krawiec et al., POPL 2022; Smeding, thesis, 4.1.5",
        bound: Bound::None,
        status: Status::Didactic,
        recursion: false,
        vjp: b_shared::vjp,
    },
    OnLambda {
        id: c_let::ID,
        title: "Delta terms, with names",
        citation: "Krawiec et al., POPL 2022 (slides)",
        bound: Bound::None,
        status: Status::Didactic,
        recursion: false,
        vjp: c_let::vjp,
    },
];
