//! What a target is: a body, what an input may cost, and how inputs are changed.

use crate::oracles;

/// What an input may cost.
#[derive(Clone, Copy)]
pub struct Cost {
    /// Bytes of memory that any input may ask for, and for each of its bytes: see
    /// [`oracles::within`]. `None` where the body judges for itself.
    pub memory: Option<(usize, usize)>,
    /// What of an input is repeated to see that work is linear; `None` where copies mean nothing.
    pub work: Option<Copies>,
}

/// Which part of an input makes a longer one when it comes again and again.
#[derive(Clone, Copy)]
pub struct Copies {
    /// Bytes in front, which come once.
    pub head: usize,
    /// Where the last record that is whole ends: a cut one would take the beginning of the next
    /// copy for its own end, and say other things.
    pub end: fn(&[u8]) -> usize,
}

impl Copies {
    /// All of it.
    pub const WHOLE: Option<Self> = Some(Self { head: 0, end: <[u8]>::len });
}

/// Runs a body on an input.
///
/// # Panics
/// The body does, or an input takes more than it may.
pub fn judge<Found>(input: &[u8], cost: &Cost, body: impl Fn(&[u8]) -> Found) {
    let body = |input: &[u8]| drop(body(input));
    match cost.memory {
        Some(most) => oracles::within(input, most, body),
        None => body(input),
    }
    if let Some(copies) = cost.work
        && let Some((head, rest)) = input.split_at_checked(copies.head)
    {
        let rest = rest.get(..(copies.end)(rest)).unwrap_or(rest);
        oracles::linear(head, rest, body);
    }
}

/// Where the last record ends of which there is all, by the bytes in front of each and a length
/// in them.
pub fn records<const N: usize>(mut rest: &[u8], len: fn(&[u8; N]) -> usize) -> usize {
    let whole = rest.len();
    while let Some((front, behind)) = rest.split_first_chunk()
        && let Some(behind) = behind.get(len(front)..)
    {
        rest = behind;
    }
    whole - rest.len()
}

/// A target whose inputs are text, or have no numbers.
#[macro_export]
macro_rules! text {
    ($cost:expr, $body:expr) => {
        libfuzzer_sys::fuzz_target!(|input: &[u8]| $crate::target::judge(input, &$cost, $body));
    };
}

/// A target whose inputs have lengths and counters, which are changed, too.
#[macro_export]
macro_rules! binary {
    ($cost:expr, $body:expr) => {
        $crate::text!($cost, $body);
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, size_max: usize, seed: u32| {
            $crate::numbers::mutate(data, size, size_max, seed)
        });
    };
}
