//! Every path against the definition, and every loss that parity can give back.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "test code outside #[test]")]

use parity::{Codec, Column, DATA_COLUMNS_MAX, Error, Path};
use proptest::collection::vec;
use proptest::prelude::*;

/// The codecs of this processor; says which path it cannot test.
#[expect(clippy::print_stdout, reason = "a test that does not run says so")]
fn codecs() -> Vec<Codec> {
    let codecs = Path::ALL.iter().filter_map(|&path| match Codec::on(path) {
        Err(error @ Error::Unavailable { .. }) => {
            println!("not run: {error}");
            None
        }
        result => Some(result.unwrap()),
    });
    codecs.collect()
}

/// Carry-less product, then what is left after division by 0x11d.
fn multiply(a: u8, b: u8) -> u8 {
    let mut product: u16 = 0;
    for bit in (0..8).filter(|bit| (b >> bit) & 1 != 0) {
        product ^= u16::from(a) << bit;
    }
    for bit in (8..16).rev() {
        if (product >> bit) & 1 != 0 {
            product ^= 0x11d << (bit - 8);
        }
    }
    u8::try_from(product).unwrap()
}

/// P and Q as defined: the sums of `D[i]` and of `2^i D[i]`.
fn by_definition(data: &[&[u8]]) -> [Vec<u8>; 2] {
    let mut parity = [vec![0; data[0].len()], vec![0; data[0].len()]];
    let mut factor = 1;
    for column in data {
        for (place, &byte) in column.iter().enumerate() {
            parity[0][place] ^= byte;
            parity[1][place] ^= multiply(factor, byte);
        }
        factor = multiply(factor, 2);
    }
    parity
}

/// The bytes of the self-test's example, for any number of columns.
fn example(count: usize, len: usize) -> Vec<Vec<u8>> {
    let byte = |column: usize, place: usize| {
        let (column, place) = (u32::try_from(column).unwrap(), u32::try_from(place).unwrap());
        let mut mixed = column.wrapping_mul(0x9e37_79b1);
        mixed = mixed.wrapping_add(place.wrapping_mul(0x85eb_ca6b)).wrapping_add(0x27d4_eb2f);
        mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x2c1b_3c6d);
        (mixed ^ (mixed >> 13)).to_le_bytes()[0]
    };
    (0..count).map(|column| (0..len).map(|place| byte(column, place)).collect()).collect()
}

fn views(columns: &[Vec<u8>]) -> Vec<&[u8]> {
    columns.iter().map(Vec::as_slice).collect()
}

fn encode(codec: Codec, data: &[&[u8]]) -> [Vec<u8>; 2] {
    let mut parity = [vec![0xaa; data[0].len()], vec![0xaa; data[0].len()]];
    let [p, q] = &mut parity;
    codec.encode(data, Some(p), Some(q));
    parity
}

/// Data columns, and the last 16 bytes of 576 of P and Q: from a program of another language, which
/// divides polynomials of any degree by 0x11d.
const KNOWN: [(usize, u128, u128); 6] = [
    (1, 0x1253_5863_afab_f704_379b_ff9c_5dc6_865b, 0x1253_5863_afab_f704_379b_ff9c_5dc6_865b),
    (2, 0x9a1e_5efb_a1c8_d95e_2a3e_4e22_2a61_a321, 0x1fc9_544e_b36d_abb0_0dcc_80fd_b395_ccaf),
    (3, 0x9233_6dab_153e_1738_acf8_c82f_9726_ab00, 0x3f7d_9813_5992_b435_2ff3_a2c9_7d94_ec2b),
    (6, 0x6395_686c_a521_18c8_eeb6_1ef6_7058_5bca, 0x82d3_e231_3602_608e_906a_cf0e_0e8c_2abe),
    (10, 0x6d19_5343_cf05_5ede_9c57_858b_09bf_8579, 0xe791_424e_9947_9aae_2af6_d895_872e_26b3),
    (24, 0x6a85_cc98_6cc0_6ccd_50c9_45ab_047c_a9c0, 0xad53_9d46_a9d0_b3df_cb1e_4ab9_9ccc_7f5f),
];

#[test]
fn parity_is_that_of_an_independent_program() {
    for codec in codecs() {
        for (count, p, q) in KNOWN {
            let data = example(count, 576);
            let ends = encode(codec, &views(&data)).map(|column| *column.last_chunk().unwrap());
            assert_eq!(ends, [p.to_be_bytes(), q.to_be_bytes()], "{codec:?}, {count} columns");
        }
    }
}

#[test]
fn the_fastest_path_is_the_one_chosen() {
    let chosen = Codec::new().unwrap();
    assert_eq!(chosen.path(), codecs()[0].path());
    assert_eq!(Codec::on(Path::Portable).unwrap().path(), Path::Portable);
}

/// Loses `lost` of the columns (data, P, Q), wants those of them that `wanted` says, and compares.
fn check_loss(codec: Codec, all: &[Vec<u8>], lost: &[usize], wanted: impl Fn(usize) -> bool) {
    let mut found = vec![vec![0x55; all[0].len()]; all.len()];
    let mut columns: Vec<Column<'_>> = Vec::new();
    for (place, into) in found.iter_mut().enumerate() {
        columns.push(match lost.contains(&place) {
            false => Column::Known(&all[place]),
            true if wanted(place) => Column::Wanted(into),
            true => Column::Missing,
        });
    }
    codec.reconstruct(&mut columns).unwrap();
    for &place in lost {
        if wanted(place) {
            assert_eq!(found[place], all[place], "{codec:?}, column {place}, lost {lost:?}");
        }
    }
}

#[test]
fn any_one_or_two_columns_come_back_in_every_geometry() {
    for codec in codecs() {
        for count in 1..=DATA_COLUMNS_MAX {
            let mut all = example(count, 64);
            all.extend(by_definition(&views(&all)));
            for first in 0..all.len() {
                check_loss(codec, &all, &[first], |_| true);
                for second in 0..first {
                    let lost = [first, second];
                    check_loss(codec, &all, &lost, |_| true);
                    check_loss(codec, &all, &lost, |place| place == first);
                    check_loss(codec, &all, &lost, |place| place == second);
                }
            }
        }
    }
}

#[test]
fn without_q_one_column_comes_back_from_p() {
    for codec in codecs() {
        for count in 1..=DATA_COLUMNS_MAX {
            let mut all = example(count, 128);
            all.extend(by_definition(&views(&all)));
            for lost in 0..=count {
                check_loss(codec, &all, &[lost, count + 1], |place| place == lost);
            }
        }
    }
}

#[test]
fn three_missing_columns_are_refused_and_nothing_is_written() {
    let data = example(4, 64);
    let mut into = vec![0x55; 64];
    let mut columns = [
        Column::Wanted(&mut into),
        Column::Known(&data[1]),
        Column::Known(&data[2]),
        Column::Known(&data[3]),
        Column::Missing,
        Column::Missing,
    ];
    let refused = Codec::new().unwrap().reconstruct(&mut columns);
    assert_eq!(refused, Err(Error::TooManyMissing { missing: 3 }));
    assert_eq!(into, [0x55; 64]);
}

#[test]
fn nothing_wanted_is_nothing_done() {
    let mut columns = [Column::Missing, Column::Missing, Column::Missing];
    assert_eq!(Codec::new().unwrap().reconstruct(&mut columns), Ok(()));
}

#[test]
fn rows_that_miss_different_columns_are_repaired_one_by_one() {
    const ROW: usize = 4096;
    let mut all = example(5, 8 * ROW);
    all.extend(by_definition(&views(&all)));
    for codec in codecs() {
        for row in 0..8 {
            let rows: Vec<Vec<u8>> =
                all.iter().map(|column| column[row * ROW..][..ROW].to_vec()).collect();
            check_loss(codec, &rows, &[row % 7, (row + 3) % 7], |_| true);
        }
    }
}

fn panics<T>(act: impl FnOnce() -> T + std::panic::UnwindSafe) -> bool {
    std::panic::catch_unwind(act).is_err()
}

#[test]
fn wrong_shapes_panic() {
    let codec = Codec::new().unwrap();
    let (row, short) = ([1; 128].as_slice(), [1; 64].as_slice());
    assert!(panics(|| codec.encode(&[], None, None)), "no data");
    assert!(panics(|| codec.encode(&[row; 25], None, None)), "too many columns");
    assert!(panics(|| codec.encode(&[row, short], None, None)), "data of two lengths");
    assert!(panics(|| codec.encode(&[row], Some(&mut [0; 64]), None)), "P too short");
    assert!(panics(|| codec.encode(&[&row[..65]], None, None)), "no whole block");
    assert!(
        panics(|| codec.reconstruct(&mut [Column::Missing]).unwrap_err()),
        "no place for parity"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_path_is_the_definition_at_any_length_and_alignment(
        seed in vec(any::<u8>(), 4096),
        starts in vec((0_usize..64, 0_usize..1500), 1..=DATA_COLUMNS_MAX),
        blocks in 0_usize..38,
        parity_starts in [0_usize..64, 0_usize..64],
    ) {
        let len = blocks * 64;
        // Columns anywhere in the same bytes, rotated so that they differ.
        let column = |(align, at): &(usize, usize)| &seed[align + at..][..len];
        let data: Vec<&[u8]> = starts.iter().map(column).collect();
        let right = by_definition(&data);
        for codec in codecs() {
            let mut buffers = [vec![0xaa; len + 64], vec![0xaa; len + 64]];
            let [p, q] = &mut buffers;
            let (p, q) = (&mut p[parity_starts[0]..][..len], &mut q[parity_starts[1]..][..len]);
            codec.encode(&data, Some(p), Some(q));
            prop_assert_eq!([&*p, &*q], [&right[0], &right[1]]);
            p.fill(0xaa);
            q.fill(0xaa);
            codec.encode(&data, Some(p), None);
            codec.encode(&data, None, Some(q));
            prop_assert_eq!([&*p, &*q], [&right[0], &right[1]]);
        }
    }

    #[test]
    fn two_columns_come_back_at_any_length(
        count in 1..=DATA_COLUMNS_MAX,
        blocks in 0_usize..20,
        lost in any::<[prop::sample::Index; 2]>(),
    ) {
        let mut all = example(count, blocks * 64);
        all.extend(by_definition(&views(&all)));
        let lost = lost.map(|index| index.index(all.len()));
        for codec in codecs() {
            check_loss(codec, &all, &lost, |_| true);
        }
    }
}
