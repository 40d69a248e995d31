// Weights as operands in float8 (E4M3), for products with input rows in float8.
//
// An operand of float16 or bfloat16 is multiplied by a power of two, the largest with which E4M3
// holds the largest weight of its row, and rounded. Weights that are E4M3 in a file with one scale
// for a row are exact. The input is rounded likewise, see quantize.cuh. Sums are then divided by
// both factors.
//
// A step of 32 columns has the operands of two steps of 16. The four elements of a word are a
// lane's two pairs of columns of one of these: so quantize.cuh makes columns 2t, 2t+1, 2t+8 and
// 2t+9 of each 16 adjacent.
#pragma once
#include "linear.cuh"

constexpr float mostFloat8 = 448;

// A Fit has the factor of a row's operands, by, and that of its sums, undo.
struct Fit {
  float by, undo;
};

// fitOf is the fit of a row of a product whose powers are fits.
INLINE Fit fitOf(const Product &p, int row) { return reinterpret_cast<const Fit *>(p.powers)[row]; }

// float8OfHalves rounds two numbers; the upper half becomes the upper byte. Numbers that are too
// large become the largest number, and NaN stays NaN.
INLINE u32 float8OfHalves(u32 v) {
  u16 r;
  asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(r) : "r"(v));
  return r;
}
INLINE u32 float8OfFloats(float low, float high) {
  u16 r;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(high), "f"(low));
  return r;
}

// Fitted converts words of operands of rows g and g+8 to float8.
template <class F> struct Fitted {
  u32 by; // of row g in the lower half
  METHOD void load(const Product &p, int tile, int lane) {
    const int row = tile * tileRows + lane / 4;
    by = wordOf(floatToHalf(fitOf(p, row).by), floatToHalf(fitOf(p, row + 8).by));
  }
  METHOD u32 word(u32 low, u32 high, int r) const {
    const u32 f = r ? highTwice(by) : lowTwice(by);
    return float8OfHalves(multiplyHalves(low, f)) | float8OfHalves(multiplyHalves(high, f)) << 16;
  }
};
template <> struct Fitted<BF16> {
  float by[2];
  METHOD void load(const Product &p, int tile, int lane) {
    const int row = tile * tileRows + lane / 4;
    by[0] = fitOf(p, row).by, by[1] = fitOf(p, row + 8).by;
  }
  METHOD u32 two(u32 v, float f) const { return float8OfFloats(asFloat(v << 16) * f, asFloat(v & 0xffff0000u) * f); }
  METHOD u32 word(u32 low, u32 high, int r) const { return two(low, by[r]) | two(high, by[r]) << 16; }
};

// Float8 is a format whose operands become float8. tileK counts pairs of columns.
template <class F> struct Float8 : F {
  static constexpr int tileK = F::tileK / 2;
  static constexpr bool scaled = true;
  Fitted<F> fitted;
  template <class From> METHOD void loadQuarter(const u8 *tile, int lane, int q) {
    F::template loadQuarter<From>(tile, lane, 2 * q);
    F::template loadQuarter<From>(tile, lane, 2 * q + 1);
  }
  METHOD uint4 operand(int step) const {
    const uint4 a = F::operand(2 * step), b = F::operand(2 * step + 1);
    return uint4{fitted.word(a.x, a.z, 0), fitted.word(a.y, a.w, 1), fitted.word(b.x, b.z, 0), fitted.word(b.y, b.w, 1)};
  }
};
template <class F> struct Fitted<Float8<F>> : Fitted<F> {};
template <class F> constexpr bool isFloat8 = false;
template <class F> constexpr bool isFloat8<Float8<F>> = true;

struct FitArgs {
  const u8 *w;         // tiles
  const float *powers; // [rows of tiles] or 0: see Product
  Fit *fits;           // [rows of tiles]
  s32 colTiles;
  s32 pad;
};

// fit computes the fits of a row of tiles.
template <class F> INLINE void fit(const FitArgs &a) {
  const int lane = tidX() % 32, warp = tidX() / 32;
  const u8 *tile = a.w + s64(blockX()) * a.colTiles * F::tileBytes;
  int most[2] = {0, 0}; // largest bits without the sign, which order magnitudes
  for (int kt = warp; kt < a.colTiles; kt += 8) {
    F w;
    loadTile(w, tile + s64(kt) * F::tileBytes, lane);
    w.prepare();
    UNROLL for (int step = 0; step < F::tileK / 16; step++) {
      const uint4 v = w.operand(step);
      UNROLL for (int r = 0; r < 2; r++) {
        const u32 low = r ? v.y : v.x, high = r ? v.w : v.z;
        most[r] = maxOf(most[r], maxOf(maxOf(int(low & 0x7fff), int(low >> 16 & 0x7fff)), maxOf(int(high & 0x7fff), int(high >> 16 & 0x7fff))));
      }
    }
  }
  __shared__ int all[8][tileRows];
  UNROLL for (int r = 0; r < 2; r++) {
    UNROLL for (int m = 1; m < 4; m *= 2) most[r] = maxOf(most[r], shuffleXor(most[r], m));
    if (lane % 4 == 0) all[warp][lane / 4 + 8 * r] = most[r];
  }
  syncBlock();
  if (tidX() >= tileRows) return;
  int bits = 0;
  for (int i = 0; i < 8; i++) bits = maxOf(bits, all[i][tidX()]);
  const float largest = sameFormat<F, BF16>() ? bfloatToFloat(u16(bits)) : halfToFloat(u16(bits));
  // The factor must fit float16. Weights that need a larger one lose bits.
  float by = largest > 0 ? minOf(twoTo(9 - exponentAbove(largest)), 32768.0f) : 1;
  if (largest * by > mostFloat8) by *= 0.5f;
  const int row = blockX() * tileRows + tidX();
  a.fits[row] = Fit{by, divide(a.powers ? a.powers[row] : 1, by)};
}
