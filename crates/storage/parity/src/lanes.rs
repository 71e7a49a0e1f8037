//! The vector instructions behind the sums: load, store, add, double. One type for each
//! instruction set, and [`Portable`], their twin in plain integers.
//!
//! A value of such a type is a proof: it exists only where the processor has the instructions
//! ([`Lanes::detect`]). That makes all methods safe to call, and keeps what is unsafe in this file.
//!
//! Doubling is the same everywhere: shift every byte left, and where the bit shifted out was set
//! add 0x1d. No tables.

#![expect(unsafe_code, reason = "vector instructions, behind a proof that the processor has them")]
#![expect(
    clippy::inline_always,
    reason = "intrinsics become instructions only inside a function with the target feature"
)]

use crate::field::REDUCTION;
use crate::sums::{Lanes, Sums};

/// Eight bytes in a plain integer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

impl Lanes for Portable {
    type Vector = u64;
    const BYTES: usize = 8;

    fn detect() -> Option<Self> {
        Some(Self)
    }

    #[inline(always)]
    fn zero(self) -> u64 {
        0
    }

    #[inline(always)]
    fn load(self, from: &[u8]) -> u64 {
        u64::from_le_bytes(*from.first_chunk().expect("a vector of bytes"))
    }

    #[inline(always)]
    fn store(self, vector: u64, to: &mut [u8]) {
        *to.first_chunk_mut().expect("a vector of bytes") = vector.to_le_bytes();
    }

    #[inline(always)]
    fn add(self, a: u64, b: u64) -> u64 {
        a ^ b
    }

    #[inline(always)]
    fn double_add(self, a: u64, b: u64) -> u64 {
        const TOP: u64 = u64::from_le_bytes([0x80; 8]);
        const ADDEND: u64 = u64::from_le_bytes([REDUCTION; 8]);
        let top = a & TOP;
        // 0xff in the bytes whose top bit was set: 0x100 - 0x01 without a borrow between bytes.
        let overflowed = (top << 1).wrapping_sub(top >> 7);
        ((a ^ top) << 1) ^ (overflowed & ADDEND) ^ b
    }

    fn run(self, sums: Sums<'_>) {
        sums.compute::<Self, 8, 8>(self);
    }
}

/// A broken processor: doubles one value of the last byte wrongly.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrong {
    pub(crate) doubled: u8,
}

#[cfg(test)]
impl Lanes for Wrong {
    type Vector = u64;
    const BYTES: usize = Portable::BYTES;

    fn detect() -> Option<Self> {
        None
    }

    fn zero(self) -> u64 {
        Portable.zero()
    }

    fn load(self, from: &[u8]) -> u64 {
        Portable.load(from)
    }

    fn store(self, vector: u64, to: &mut [u8]) {
        Portable.store(vector, to);
    }

    fn add(self, a: u64, b: u64) -> u64 {
        Portable.add(a, b)
    }

    fn double_add(self, a: u64, b: u64) -> u64 {
        let is_wrong = a.to_le_bytes()[7] == self.doubled;
        Portable.double_add(a, b) ^ u64::from(is_wrong)
    }

    fn run(self, sums: Sums<'_>) {
        sums.compute::<Self, 8, 8>(self);
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use core::arch::x86_64::{
        __m256i, __m512i, _mm256_add_epi8, _mm256_and_si256, _mm256_cmpgt_epi8, _mm256_loadu_si256,
        _mm256_set1_epi8, _mm256_setzero_si256, _mm256_storeu_si256, _mm256_xor_si256,
        _mm512_add_epi8, _mm512_loadu_si512, _mm512_maskz_mov_epi8, _mm512_movepi8_mask,
        _mm512_set1_epi8, _mm512_setzero_si512, _mm512_storeu_si512, _mm512_ternarylogic_epi64,
        _mm512_xor_si512,
    };

    use super::{Lanes, REDUCTION, Sums};

    const ADDEND: i8 = REDUCTION.cast_signed();

    /// AVX-512 with operations on bytes (F and BW).
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Avx512(());

    /// Truth table of a ^ b ^ c.
    const XOR3: i32 = 0x96;

    impl Lanes for Avx512 {
        type Vector = __m512i;
        const BYTES: usize = 64;

        fn detect() -> Option<Self> {
            let is_there =
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
            is_there.then_some(Self(()))
        }

        #[inline(always)]
        fn zero(self) -> __m512i {
            // SAFETY: `self` proves AVX-512.
            unsafe { _mm512_setzero_si512() }
        }

        #[inline(always)]
        fn load(self, from: &[u8]) -> __m512i {
            let from: &[u8; Self::BYTES] = from.first_chunk().expect("a vector of bytes");
            // SAFETY: `self` proves AVX-512; the 64 bytes are borrowed, at any alignment.
            unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
        }

        #[inline(always)]
        fn store(self, vector: __m512i, to: &mut [u8]) {
            let to: &mut [u8; Self::BYTES] = to.first_chunk_mut().expect("a vector of bytes");
            // SAFETY: `self` proves AVX-512; the 64 bytes are borrowed mutably, at any alignment.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) }
        }

        #[inline(always)]
        fn add(self, a: __m512i, b: __m512i) -> __m512i {
            // SAFETY: `self` proves AVX-512.
            unsafe { _mm512_xor_si512(a, b) }
        }

        #[inline(always)]
        #[expect(clippy::multiple_unsafe_ops_per_block, reason = "one proof for all of them")]
        fn double_add(self, a: __m512i, b: __m512i) -> __m512i {
            // SAFETY: `self` proves AVX-512 F and BW.
            unsafe {
                let addend =
                    _mm512_maskz_mov_epi8(_mm512_movepi8_mask(a), _mm512_set1_epi8(ADDEND));
                _mm512_ternarylogic_epi64::<XOR3>(_mm512_add_epi8(a, a), addend, b)
            }
        }

        fn run(self, sums: Sums<'_>) {
            #[target_feature(enable = "avx512f,avx512bw")]
            fn inside(lanes: Avx512, sums: Sums<'_>) {
                sums.compute::<Avx512, 4, 1>(lanes);
            }
            // SAFETY: `self` proves AVX-512 F and BW.
            unsafe { inside(self, sums) }
        }
    }

    /// AVX2.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Avx2(());

    impl Lanes for Avx2 {
        type Vector = __m256i;
        const BYTES: usize = 32;

        fn detect() -> Option<Self> {
            is_x86_feature_detected!("avx2").then_some(Self(()))
        }

        #[inline(always)]
        fn zero(self) -> __m256i {
            // SAFETY: `self` proves AVX2.
            unsafe { _mm256_setzero_si256() }
        }

        #[inline(always)]
        fn load(self, from: &[u8]) -> __m256i {
            let from: &[u8; Self::BYTES] = from.first_chunk().expect("a vector of bytes");
            // SAFETY: `self` proves AVX2; the 32 bytes are borrowed, at any alignment.
            unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
        }

        #[inline(always)]
        fn store(self, vector: __m256i, to: &mut [u8]) {
            let to: &mut [u8; Self::BYTES] = to.first_chunk_mut().expect("a vector of bytes");
            // SAFETY: `self` proves AVX2; the 32 bytes are borrowed mutably, at any alignment.
            unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), vector) }
        }

        #[inline(always)]
        fn add(self, a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: `self` proves AVX2.
            unsafe { _mm256_xor_si256(a, b) }
        }

        #[inline(always)]
        #[expect(clippy::multiple_unsafe_ops_per_block, reason = "one proof for all of them")]
        fn double_add(self, a: __m256i, b: __m256i) -> __m256i {
            // SAFETY: `self` proves AVX2.
            unsafe {
                // As signed numbers, bytes with the top bit set are those below zero.
                let overflowed = _mm256_cmpgt_epi8(_mm256_setzero_si256(), a);
                let addend = _mm256_and_si256(overflowed, _mm256_set1_epi8(ADDEND));
                _mm256_xor_si256(_mm256_xor_si256(_mm256_add_epi8(a, a), addend), b)
            }
        }

        fn run(self, sums: Sums<'_>) {
            #[target_feature(enable = "avx2")]
            fn inside(lanes: Avx2, sums: Sums<'_>) {
                sums.compute::<Avx2, 4, 2>(lanes);
            }
            // SAFETY: `self` proves AVX2.
            unsafe { inside(self, sums) }
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::Neon;

#[cfg(target_arch = "aarch64")]
mod aarch64 {
    use core::arch::aarch64::{
        uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vreinterpretq_s8_u8,
        vreinterpretq_u8_s8, vshlq_n_u8, vshrq_n_s8, vst1q_u8,
    };

    use super::{Lanes, REDUCTION, Sums};

    /// NEON, which every 64-bit Arm that Linux runs on has.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Neon(());

    impl Lanes for Neon {
        type Vector = uint8x16_t;
        const BYTES: usize = 16;

        fn detect() -> Option<Self> {
            std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
        }

        #[inline(always)]
        fn zero(self) -> uint8x16_t {
            // SAFETY: `self` proves NEON.
            unsafe { vdupq_n_u8(0) }
        }

        #[inline(always)]
        fn load(self, from: &[u8]) -> uint8x16_t {
            let from: &[u8; Self::BYTES] = from.first_chunk().expect("a vector of bytes");
            // SAFETY: `self` proves NEON; the 16 bytes are borrowed, at any alignment.
            unsafe { vld1q_u8(from.as_ptr()) }
        }

        #[inline(always)]
        fn store(self, vector: uint8x16_t, to: &mut [u8]) {
            let to: &mut [u8; Self::BYTES] = to.first_chunk_mut().expect("a vector of bytes");
            // SAFETY: `self` proves NEON; the 16 bytes are borrowed mutably, at any alignment.
            unsafe { vst1q_u8(to.as_mut_ptr(), vector) }
        }

        #[inline(always)]
        fn add(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
            // SAFETY: `self` proves NEON.
            unsafe { veorq_u8(a, b) }
        }

        #[inline(always)]
        #[expect(clippy::multiple_unsafe_ops_per_block, reason = "one proof for all of them")]
        fn double_add(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
            // SAFETY: `self` proves NEON.
            unsafe {
                // An arithmetic shift by 7 fills a byte with its top bit.
                let overflowed = vreinterpretq_u8_s8(vshrq_n_s8::<7>(vreinterpretq_s8_u8(a)));
                let addend = vandq_u8(overflowed, vdupq_n_u8(REDUCTION));
                veorq_u8(veorq_u8(vshlq_n_u8::<1>(a), addend), b)
            }
        }

        fn run(self, sums: Sums<'_>) {
            #[target_feature(enable = "neon")]
            fn inside(lanes: Neon, sums: Sums<'_>) {
                sums.compute::<Neon, 8, 4>(lanes);
            }
            // SAFETY: `self` proves NEON.
            unsafe { inside(self, sums) }
        }
    }
}
