//! Known answers, asked of a path before it is used.
//!
//! Six data columns of 576 bytes: two of the widest blocks and one of the smallest. P and Q must be
//! the sums of the definition byte for byte, their ends must be the answers written down here, and
//! any two columns must come back from the other six.

use std::sync::OnceLock;

use crate::codec::{Codec, Column, Engine, Error, Path};
use crate::field::{multiply, power};

const DATA_COUNT: usize = 6;
const LEN: usize = 576;

type Bytes = [u8; LEN];

/// First and last 16 bytes of P and of Q, from a program of another language that divides
/// polynomials by 0x11d.
const ENDS_OF_PARITY: [[u128; 2]; 2] = [
    [0x24b2_59ed_2e47_a76d_13aa_66f4_e63e_3975, 0x6395_686c_a521_18c8_eeb6_1ef6_7058_5bca],
    [0x4f60_b5b6_1e9d_cc57_962e_3b58_11c6_08e5, 0x82d3_e231_3602_608e_906a_cf0e_0e8c_2abe],
];

impl Codec {
    /// The fastest path of this processor, tested with known answers once in the life of the
    /// process.
    ///
    /// # Errors
    /// [`Error::WrongAnswer`]. There is no other path to fall back to: a processor that is wrong
    /// once is not trusted with the next one.
    pub fn new() -> Result<Self, Error> {
        static TESTED: OnceLock<Result<Codec, Error>> = OnceLock::new();
        *TESTED.get_or_init(|| {
            let engine = Path::ALL.iter().copied().find_map(Engine::detect);
            Self::tested(engine.expect("every processor has the portable path"))
        })
    }

    /// A path of one's own choice, for tests and comparisons; else as [`Codec::new`].
    pub fn on(path: Path) -> Result<Self, Error> {
        Self::tested(Engine::detect(path).ok_or(Error::Unavailable { path })?)
    }

    fn tested(engine: Engine) -> Result<Self, Error> {
        let codec = Self { engine };
        let path = codec.path();
        if passes(codec) { Ok(codec) } else { Err(Error::WrongAnswer { path }) }
    }
}

/// Whether every answer is right.
fn passes(codec: Codec) -> bool {
    let data = example();
    let mut parity = [[0; LEN]; 2];
    let [p, q] = &mut parity;
    codec.encode(&data.each_ref().map(<[u8; LEN]>::as_slice), Some(p), Some(q));
    let ends = |bytes: &Bytes| {
        let ends = [*bytes.first_chunk()?, *bytes.last_chunk()?];
        Some(ends.map(u128::from_be_bytes))
    };
    parity == by_definition(&data)
        && parity.each_ref().map(ends) == ENDS_OF_PARITY.map(Some)
        && every_pair_comes_back(codec, &data, &parity)
}

/// Bytes without a pattern that a path could get right by chance.
fn example() -> [Bytes; DATA_COUNT] {
    let mut columns = [[0; LEN]; DATA_COUNT];
    for (number, column) in (0_u32..).zip(&mut columns) {
        for (place, byte) in (0_u32..).zip(column) {
            let mut mixed = number.wrapping_mul(0x9e37_79b1);
            mixed = mixed.wrapping_add(place.wrapping_mul(0x85eb_ca6b)).wrapping_add(0x27d4_eb2f);
            mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x2c1b_3c6d);
            *byte = (mixed ^ (mixed >> 13)).to_le_bytes()[0];
        }
    }
    columns
}

fn by_definition(data: &[Bytes; DATA_COUNT]) -> [Bytes; 2] {
    let mut parity = [[0; LEN]; 2];
    let [p, q] = &mut parity;
    for (number, column) in (0..).zip(data) {
        let factor = power(2, number);
        for ((p, q), byte) in p.iter_mut().zip(q.iter_mut()).zip(column) {
            *p ^= byte;
            *q ^= multiply(factor, *byte);
        }
    }
    parity
}

fn every_pair_comes_back(codec: Codec, data: &[Bytes; DATA_COUNT], parity: &[Bytes; 2]) -> bool {
    let all = || data.iter().chain(parity).enumerate();
    all().all(|(first, right_first)| {
        all().skip(first + 1).all(|(second, right_second)| {
            let (mut one, mut other) = ([0; LEN], [0; LEN]);
            let mut columns = [const { Column::Missing }; DATA_COUNT + 2];
            for ((place, bytes), column) in all().zip(&mut columns) {
                if place != first && place != second {
                    *column = Column::Known(bytes);
                }
            }
            for (place, bytes) in [(first, &mut one), (second, &mut other)] {
                *columns.get_mut(place).expect("one of all") = Column::Wanted(bytes);
            }
            let result = codec.reconstruct(&mut columns);
            result.is_ok() && one == *right_first && other == *right_second
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes;

    #[test]
    fn a_path_that_doubles_one_byte_wrongly_gives_no_codec() {
        let wrong = Codec::tested(Engine::Wrong(lanes::Wrong { doubled: 0xd5 }));
        assert_eq!(wrong.unwrap_err(), Error::WrongAnswer { path: Path::Portable });
    }
}
