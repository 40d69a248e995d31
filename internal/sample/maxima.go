package sample

import (
	"fmt"
	"math"
	"math/bits"
)

// Block is the number of logits that share a maximum.
const Block = 64

// Maxima writes the maximum of each block of logits to dst and reports whether all logits are
// finite. Block b begins at b*Block; the last block may be shorter. len(dst) is the number of
// blocks. If a logit is not finite, dst is undefined.
type Maxima func(dst, logits []float32) bool

// MaximaOf is the [Maxima] in plain Go, which defines the result.
func MaximaOf(dst, logits []float32) bool {
	for b := range dst {
		block := logits[b*Block : min(len(logits), (b+1)*Block)]
		top := block[0]
		for _, v := range block {
			if v-v != 0 {
				return false
			}
			if v > top {
				top = v
			}
		}
		dst[b] = top
	}
	return true
}

// findMaxima sets s.maxima to the largest logit of each block, or -Inf. It checks all logits.
func (s *Sampler) findMaxima(logits []float32) error {
	blocks := (len(logits) + Block - 1) / Block
	if cap(s.maxima) < blocks {
		s.maxima = make([]float32, blocks)
	}
	s.maxima = s.maxima[:blocks]
	find := s.Maxima
	if find == nil {
		find = MaximaOf
	}
	if find(s.maxima, logits) {
		return nil
	}
	for b := range s.maxima {
		s.maxima[b] = float32(math.Inf(-1))
	}
	for i, v := range logits {
		if v != v || v > math.MaxFloat32 {
			return fmt.Errorf("sample: the logit of token %d of %d is %v: %w: the model's arithmetic failed before sampling", i, len(logits), v, ErrNotFinite)
		}
		if v > s.maxima[i/Block] {
			s.maxima[i/Block] = v
		}
	}
	return nil
}

// allowedMaximum returns the largest allowed logit of block b, or -Inf. top is the largest of all
// its logits.
func allowedMaximum(logits []float32, mask []uint32, b int, top float32) float32 {
	block := logits[b*Block : min(len(logits), (b+1)*Block)]
	open := uint64(mask[2*b])
	if len(block) > 32 {
		open |= uint64(mask[2*b+1]) << 32
	}
	all := ^uint64(0) >> (Block - len(block))
	if open &= all; open == all {
		return top
	}
	if bits.OnesCount64(open) > Block/4 {
		// Probably the block's largest logit is allowed, and to find its place is faster.
		for i, v := range block {
			if v == top && open>>i&1 != 0 {
				return top
			}
		}
	}
	top = float32(math.Inf(-1))
	for ; open != 0; open &= open - 1 {
		if v := block[bits.TrailingZeros64(open)]; v > top {
			top = v
		}
	}
	return top
}
