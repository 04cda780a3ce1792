//! Lanes for the functions of `pullback-maths`: plain numbers, and the registers of x86.
//!
//! The types of x86 are only used in code that is compiled for their instruction set and chosen after it was found; that is
//! why their intrinsics may be called.

use pullback_maths::SingleLanes;
use pullback_maths::portable::One;

/// Lanes that are read from memory and written to it.
pub(super) trait Wide: SingleLanes {
    /// How many.
    const COUNT: usize;
    /// # Safety
    /// As many floats as lanes are there. So for all four.
    unsafe fn read(&self, from: *const f64) -> Self::F;
    unsafe fn write(&self, to: *mut f64, x: Self::F);
    unsafe fn read_single(&self, from: *const f32) -> Self::S;
    unsafe fn write_single(&self, to: *mut f32, x: Self::S);
}

impl Wide for One {
    const COUNT: usize = 1;
    #[inline(always)]
    unsafe fn read(&self, from: *const f64) -> f64 {
        from.read()
    }
    #[inline(always)]
    unsafe fn write(&self, to: *mut f64, x: f64) {
        to.write(x);
    }
    #[inline(always)]
    unsafe fn read_single(&self, from: *const f32) -> f32 {
        from.read()
    }
    #[inline(always)]
    unsafe fn write_single(&self, to: *mut f32, x: f32) {
        to.write(x);
    }
}

/// Methods that are one intrinsic each.
#[cfg(all(target_arch = "x86_64", not(miri)))]
macro_rules! intrinsics {
    ($($name:ident($($x:ident: $from:ty),*) -> $to:ty = $value:expr;)*) => { $(
        #[inline(always)]
        fn $name(&self, $($x: $from),*) -> $to {
            // SAFETY: by the header.
            unsafe { $value }
        }
    )* };
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
macro_rules! memory {
    ($count:literal, $f:ty, $s:ty, $read:ident, $write:ident, $read_single:ident, $write_single:ident) => {
        const COUNT: usize = $count;
        #[inline(always)]
        unsafe fn read(&self, from: *const f64) -> $f {
            $read(from)
        }
        #[inline(always)]
        unsafe fn write(&self, to: *mut f64, x: $f) {
            $write(to, x);
        }
        #[inline(always)]
        unsafe fn read_single(&self, from: *const f32) -> $s {
            $read_single(from)
        }
        #[inline(always)]
        unsafe fn write_single(&self, to: *mut f32, x: $s) {
            $write_single(to, x);
        }
    };
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) mod x86 {
    use super::Wide;
    use pullback_maths::{Lanes, SingleLanes, scale_in_two_steps};
    use std::arch::x86_64::*;

    /// Eight lanes of AVX-512.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512;
    /// Four lanes of AVX2 with fused multiply-add.
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2;

    /// To the nearest, ties to even, without exceptions.
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

    impl Lanes for Avx512 {
        type F = __m512d;
        type I = __m512i;
        type M = __mmask8;

        intrinsics! {
            float(x: f64) -> __m512d = _mm512_set1_pd(x);
            int(x: i64) -> __m512i = _mm512_set1_epi64(x);
            add(x: __m512d, y: __m512d) -> __m512d = _mm512_add_pd(x, y);
            sub(x: __m512d, y: __m512d) -> __m512d = _mm512_sub_pd(x, y);
            mul(x: __m512d, y: __m512d) -> __m512d = _mm512_mul_pd(x, y);
            div(x: __m512d, y: __m512d) -> __m512d = _mm512_div_pd(x, y);
            fma(x: __m512d, y: __m512d, z: __m512d) -> __m512d = _mm512_fmadd_pd(x, y, z);
            fnma(x: __m512d, y: __m512d, z: __m512d) -> __m512d = _mm512_fnmadd_pd(x, y, z);
            fms(x: __m512d, y: __m512d, z: __m512d) -> __m512d = _mm512_fmsub_pd(x, y, z);
            sqrt(x: __m512d) -> __m512d = _mm512_sqrt_pd(x);
            round(x: __m512d) -> __m512d = _mm512_roundscale_pd::<NEAREST>(x);
            neg(x: __m512d) -> __m512d = _mm512_xor_pd(x, _mm512_set1_pd(-0.0));
            abs(x: __m512d) -> __m512d = _mm512_abs_pd(x);
            lt(x: __m512d, y: __m512d) -> __mmask8 = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(x, y);
            le(x: __m512d, y: __m512d) -> __mmask8 = _mm512_cmp_pd_mask::<_CMP_LE_OQ>(x, y);
            eq(x: __m512d, y: __m512d) -> __mmask8 = _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(x, y);
            any_bit(x: __m512i, mask: i64) -> __mmask8 = _mm512_test_epi64_mask(x, _mm512_set1_epi64(mask));
            select(m: __mmask8, x: __m512d, y: __m512d) -> __m512d = _mm512_mask_blend_pd(m, y, x);
            // Both give the second argument if one is not a number, and at equal zeros.
            min(x: __m512d, y: __m512d) -> __m512d = _mm512_min_pd(x, y);
            max(x: __m512d, y: __m512d) -> __m512d = _mm512_max_pd(x, y);
            bits(x: __m512d) -> __m512i = _mm512_castpd_si512(x);
            float_of_bits(x: __m512i) -> __m512d = _mm512_castsi512_pd(x);
            int_add(x: __m512i, y: __m512i) -> __m512i = _mm512_add_epi64(x, y);
            int_sub(x: __m512i, y: __m512i) -> __m512i = _mm512_sub_epi64(x, y);
            int_and(x: __m512i, y: __m512i) -> __m512i = _mm512_and_si512(x, y);
            int_xor(x: __m512i, y: __m512i) -> __m512i = _mm512_xor_si512(x, y);
            shift_left(x: __m512i, by: u32) -> __m512i = _mm512_sllv_epi64(x, _mm512_set1_epi64(i64::from(by)));
            shift_right(x: __m512i, by: u32) -> __m512i = _mm512_srlv_epi64(x, _mm512_set1_epi64(i64::from(by)));
            // One rounding, as in two steps within the range that is promised.
            scale(x: __m512d, n: __m512i) -> __m512d = _mm512_scalef_pd(x, _mm512_cvtepi64_pd(n));
        }
        #[inline(always)]
        fn both(&self, a: __mmask8, b: __mmask8) -> __mmask8 {
            a & b
        }
        #[inline(always)]
        fn either(&self, a: __mmask8, b: __mmask8) -> __mmask8 {
            a | b
        }
        #[inline(always)]
        fn not(&self, a: __mmask8) -> __mmask8 {
            !a
        }
        #[inline(always)]
        fn table(&self, table: &'static [f64], index: __m512i) -> __m512d {
            // SAFETY: by the header; sixteen elements are two registers, and of an index only the low four bits count there.
            // Elsewhere the index is made smaller than the length, which is a power of two.
            unsafe {
                if table.len() == 16 {
                    let low = _mm512_loadu_pd(table.as_ptr());
                    let high = _mm512_loadu_pd(table.as_ptr().add(8));
                    return _mm512_permutex2var_pd(low, index, high);
                }
                let index = _mm512_and_si512(index, _mm512_set1_epi64(table.len() as i64 - 1));
                _mm512_i64gather_pd::<8>(index, table.as_ptr())
            }
        }
        #[inline(always)]
        fn rarely<const N: usize>(
            &self,
            m: __mmask8,
            usual: [__m512d; N],
            unusual: impl FnOnce() -> [__m512d; N],
        ) -> [__m512d; N] {
            if m == 0 {
                return usual;
            }
            let others = unusual();
            std::array::from_fn(|i| self.select(m, others[i], usual[i]))
        }
    }

    impl SingleLanes for Avx512 {
        type S = __m256;
        intrinsics! {
            widen(x: __m256) -> __m512d = _mm512_cvtps_pd(x);
            narrow(x: __m512d) -> __m256 = _mm512_cvtpd_ps(x);
        }
    }

    impl Wide for Avx512 {
        memory!(8, __m512d, __m256, _mm512_loadu_pd, _mm512_storeu_pd, _mm256_loadu_ps, _mm256_storeu_ps);
    }

    impl Lanes for Avx2 {
        type F = __m256d;
        type I = __m256i;
        type M = __m256d;

        intrinsics! {
            float(x: f64) -> __m256d = _mm256_set1_pd(x);
            int(x: i64) -> __m256i = _mm256_set1_epi64x(x);
            add(x: __m256d, y: __m256d) -> __m256d = _mm256_add_pd(x, y);
            sub(x: __m256d, y: __m256d) -> __m256d = _mm256_sub_pd(x, y);
            mul(x: __m256d, y: __m256d) -> __m256d = _mm256_mul_pd(x, y);
            div(x: __m256d, y: __m256d) -> __m256d = _mm256_div_pd(x, y);
            fma(x: __m256d, y: __m256d, z: __m256d) -> __m256d = _mm256_fmadd_pd(x, y, z);
            fnma(x: __m256d, y: __m256d, z: __m256d) -> __m256d = _mm256_fnmadd_pd(x, y, z);
            fms(x: __m256d, y: __m256d, z: __m256d) -> __m256d = _mm256_fmsub_pd(x, y, z);
            sqrt(x: __m256d) -> __m256d = _mm256_sqrt_pd(x);
            round(x: __m256d) -> __m256d = _mm256_round_pd::<NEAREST>(x);
            neg(x: __m256d) -> __m256d = _mm256_xor_pd(x, _mm256_set1_pd(-0.0));
            abs(x: __m256d) -> __m256d = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
            lt(x: __m256d, y: __m256d) -> __m256d = _mm256_cmp_pd::<_CMP_LT_OQ>(x, y);
            le(x: __m256d, y: __m256d) -> __m256d = _mm256_cmp_pd::<_CMP_LE_OQ>(x, y);
            eq(x: __m256d, y: __m256d) -> __m256d = _mm256_cmp_pd::<_CMP_EQ_OQ>(x, y);
            both(a: __m256d, b: __m256d) -> __m256d = _mm256_and_pd(a, b);
            either(a: __m256d, b: __m256d) -> __m256d = _mm256_or_pd(a, b);
            not(a: __m256d) -> __m256d = _mm256_xor_pd(a, _mm256_castsi256_pd(_mm256_set1_epi64x(-1)));
            select(m: __m256d, x: __m256d, y: __m256d) -> __m256d = _mm256_blendv_pd(y, x, m);
            min(x: __m256d, y: __m256d) -> __m256d = _mm256_min_pd(x, y);
            max(x: __m256d, y: __m256d) -> __m256d = _mm256_max_pd(x, y);
            bits(x: __m256d) -> __m256i = _mm256_castpd_si256(x);
            float_of_bits(x: __m256i) -> __m256d = _mm256_castsi256_pd(x);
            int_add(x: __m256i, y: __m256i) -> __m256i = _mm256_add_epi64(x, y);
            int_sub(x: __m256i, y: __m256i) -> __m256i = _mm256_sub_epi64(x, y);
            int_and(x: __m256i, y: __m256i) -> __m256i = _mm256_and_si256(x, y);
            int_xor(x: __m256i, y: __m256i) -> __m256i = _mm256_xor_si256(x, y);
            shift_left(x: __m256i, by: u32) -> __m256i = _mm256_sll_epi64(x, _mm_cvtsi64_si128(i64::from(by)));
            shift_right(x: __m256i, by: u32) -> __m256i = _mm256_srl_epi64(x, _mm_cvtsi64_si128(i64::from(by)));
        }
        #[inline(always)]
        fn any_bit(&self, x: __m256i, mask: i64) -> __m256d {
            // SAFETY: by the header.
            unsafe {
                let none =
                    _mm256_cmpeq_epi64(_mm256_and_si256(x, _mm256_set1_epi64x(mask)), _mm256_setzero_si256());
                self.not(_mm256_castsi256_pd(none))
            }
        }
        #[inline(always)]
        fn table(&self, table: &'static [f64], index: __m256i) -> __m256d {
            // SAFETY: by the header; the index is made smaller than the length, which is a power of two.
            unsafe {
                let index = _mm256_and_si256(index, _mm256_set1_epi64x(table.len() as i64 - 1));
                _mm256_i64gather_pd::<8>(table.as_ptr(), index)
            }
        }
        #[inline(always)]
        fn scale(&self, x: __m256d, n: __m256i) -> __m256d {
            scale_in_two_steps(self, x, n)
        }
        #[inline(always)]
        fn rarely<const N: usize>(
            &self,
            m: __m256d,
            usual: [__m256d; N],
            unusual: impl FnOnce() -> [__m256d; N],
        ) -> [__m256d; N] {
            // SAFETY: by the header.
            if unsafe { _mm256_movemask_pd(m) } == 0 {
                return usual;
            }
            let others = unusual();
            std::array::from_fn(|i| self.select(m, others[i], usual[i]))
        }
    }

    impl SingleLanes for Avx2 {
        type S = __m128;
        intrinsics! {
            widen(x: __m128) -> __m256d = _mm256_cvtps_pd(x);
            narrow(x: __m256d) -> __m128 = _mm256_cvtpd_ps(x);
        }
    }

    impl Wide for Avx2 {
        memory!(4, __m256d, __m128, _mm256_loadu_pd, _mm256_storeu_pd, _mm_loadu_ps, _mm_storeu_ps);
    }
}
