//! What can go wrong, apart from mistakes in the calling code.

use std::fmt;

/// Why there is no derivative.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The tape would have grown over the limit of [`Settings::tape_limit`](crate::Settings::tape_limit).
    TapeLimit {
        /// The limit, in bytes.
        limit: usize,
        /// The rows that fitted.
        rows: usize,
    },
    /// The system has no memory left for the tape or the cotangents.
    OutOfMemory {
        /// The rows recorded so far.
        rows: usize,
    },
    /// More rows than a tape can number (2^31 - 1).
    TooManyRows,
    /// A cotangent has another shape than the value: another length, key or variant.
    Mismatch {
        /// Which shape was expected and which was found.
        what: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TapeLimit { limit, rows } => write!(
                f,
                "the tape reached its limit of {limit} bytes after {rows} rows: raise the limit, or run parts of the \
                 program in `checkpoint`"
            ),
            Error::OutOfMemory { rows } => write!(
                f,
                "no memory is left for a tape of {rows} rows: run parts of the program in `checkpoint`, or set a tape limit"
            ),
            Error::TooManyRows => {
                f.write_str("a tape has at most 2^31 - 1 rows: run parts of the program in `checkpoint`")
            }
            Error::Mismatch { what } => {
                write!(f, "a cotangent has another shape than the value it belongs to: {what}")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Stops the program that is recorded; [`caught`] turns it into an error again. Not a panic: no message is printed.
#[cold]
pub(crate) fn stop(error: Error) -> ! {
    std::panic::resume_unwind(Box::new(Stopped(error)))
}

struct Stopped(Error);

/// Runs a program that may be stopped. Panics of the program itself go on.
pub(crate) fn caught<R>(run: impl FnOnce() -> R) -> Result<R, Error> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
        Ok(result) => Ok(result),
        Err(payload) => match payload.downcast::<Stopped>() {
            Ok(stopped) => Err(stopped.0),
            Err(payload) => std::panic::resume_unwind(payload),
        },
    }
}

/// The result, or a panic with the error's text: for functions that promise a value.
#[track_caller]
pub(crate) fn expect<R>(result: Result<R, Error>) -> R {
    match result {
        Ok(result) => result,
        Err(error) => panic!("{error}"),
    }
}
