//! How fast bodies are encrypted and decrypted on one core, beside copying them.
//!
//! `cargo run --release -p encryption --example rate`

#![expect(clippy::print_stdout, clippy::indexing_slicing, reason = "an example prints")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use std::hint::black_box;
use std::time::Instant;

use encryption::{DataKey, Place, TAIL_BYTES};
use units::{Epoch, Sequence};

/// Body of the largest piece.
const BODY_BYTES: usize = 511 * 4096;
/// Bodies of a round, each in memory of its own: more than caches hold.
const BODIES: usize = 64;
const ROUNDS: usize = 9;

fn main() {
    let plain: Vec<Vec<u8>> =
        (0..BODIES).map(|body| vec![u8::try_from(body).unwrap_or(0); BODY_BYTES]).collect();
    let mut sealed = plain.clone();
    let key = DataKey::new([7; 32]).of_epoch(Epoch(1));
    let place = |sequence: usize| Place {
        volume_id: [1; 16],
        sequence: Sequence(u64::try_from(sequence).unwrap_or(0)),
        sub: 0,
        column: 0,
        len: BODY_BYTES,
    };
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        let copy =
            |(plain, sealed): (&Vec<u8>, &mut Vec<u8>)| sealed.copy_from_slice(black_box(plain));
        rates[0].push(rate(|| plain.iter().zip(&mut sealed).for_each(copy)));
        rates[1].push(rate(|| {
            for (number, (plain, sealed)) in plain.iter().zip(&mut sealed).enumerate() {
                key.seal(&place(number), black_box(plain), sealed, [0; TAIL_BYTES]);
            }
        }));
        rates[2].push(rate(|| {
            for (number, sealed) in sealed.iter_mut().enumerate() {
                assert!(key.open(&place(number), sealed).is_empty(), "it opens");
            }
        }));
    }
    for (name, mut rates) in ["copy", "copy and encrypt", "decrypt"].into_iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        let (low, high) = (rates[0], rates[ROUNDS - 1]);
        println!("{name:17} {:5.2} GB/s ({low:.2} to {high:.2})", rates[ROUNDS / 2]);
    }
}

/// GB/s of a round.
fn rate(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    let bytes = u32::try_from(BODIES * BODY_BYTES).unwrap_or(u32::MAX);
    f64::from(bytes) / begun.elapsed().as_secs_f64() / 1e9
}
