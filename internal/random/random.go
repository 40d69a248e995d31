// Package random generates the bytes of random weights in every format: values of a given standard
// deviation about zero. They are the same for the same seed on every machine, and any part of a
// tensor can be generated without the parts before it.
//
// The package knows formats, and neither models nor files. Its weights are for measuring speed and
// for tests: values of quantized formats come directly from random blocks, so that their
// distribution is that of the format's codes and not normal.
package random

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"

	"github.com/realizar/realizar/tensor"
)

// A Filler generates the data of one tensor. It has no state: goroutines may fill different parts
// of a tensor concurrently.
type Filler struct {
	dtype tensor.DType
	codes stream // one number per value of an unquantized format, or per 8 bytes of blocks
	heads stream // one number per block

	// For unquantized formats, the factor for the sum of a number's four parts, and the addend. For
	// F32Scale, scale is the scale that blocks multiply by their own factor.
	scale, mean float32

	// For blocks: the form of their scales, the offsets of scale and minimum, the 256 possible
	// values of each, and a function that repairs a block.
	form   tensor.ScaleForm
	at     []int
	values [2][256]uint16
	repair func(block []byte)

	// For E8M0Scale: a block's exponent is exponent+1 if the upper half of its random number is
	// below next, otherwise exponent.
	exponent byte
	next     uint64
}

// Step is the granularity of [Filler.Fill] in blocks: it must begin at a multiple of Step. A block
// of an unquantized format is one value.
const Step = 8

// NewFiller returns a Filler for a tensor of format d with values of the standard deviation std
// about mean. Equal arguments give equal data; different seeds give independent data ([Seed] makes
// seeds from names). The mean must be 0 for quantized formats.
//
// The error wraps [tensor.ErrDType] for a format that weights cannot have. A std that is negative,
// not finite or out of the format's range is an error too.
func NewFiller(seed uint64, d tensor.DType, mean, std float64) (*Filler, error) {
	f, format := &Filler{dtype: d, codes: stream(mix(seed)), heads: stream(mix(^seed))}, d.Format()
	switch {
	case !d.Weight():
		return nil, fmt.Errorf("random: %w: weights cannot be %v", tensor.ErrDType, d)
	case !(std >= 0 && std < math.MaxFloat32) || !(math.Abs(mean) < math.MaxFloat32):
		return nil, fmt.Errorf("random: mean %v, standard deviation %v: want finite numbers, and a standard deviation of at least 0", mean, std)
	case math.Abs(mean)+4*std > format.Largest(), d == tensor.F8_E4M3 && std > 0 && std < 0x1p-7:
		return nil, fmt.Errorf("random: mean %v, standard deviation %v: out of the range of %v", mean, std, d)
	case !d.Quantized():
		f.scale, f.mean = float32(std/sumDeviation), float32(mean)
		return f, nil
	case mean != 0:
		return nil, fmt.Errorf("random: mean %v: values of %v must have the mean 0", mean, d)
	}
	if err := f.prepareBlocks(std); err != nil {
		return nil, fmt.Errorf("random: standard deviation %v: %w", std, err)
	}
	return f, nil
}

// Fill fills dst with whole blocks of the tensor, from block first on. It panics unless first is a
// multiple of [Step] and dst holds a whole number of blocks.
func (f *Filler) Fill(dst []byte, first int) {
	size := f.dtype.BlockBytes()
	if first < 0 || first%Step != 0 || len(dst)%size != 0 {
		panic(fmt.Sprintf("random: %d bytes of %v from block %d on", len(dst), f.dtype, first))
	}
	if f.dtype.Quantized() {
		f.fillCodes(dst, uint64(first)*uint64(size)/8)
		f.fillHeads(dst, uint64(first))
		return
	}
	f.fillPlain(dst, uint64(first))
}

// sumDeviation is the standard deviation of the sum of four random numbers from 0 to 65535: the
// square root of 4(65536²-1)/12.
var sumDeviation = math.Sqrt((1<<32 - 1) / 3.0)

// fillPlain generates values that are almost normal: sums of four 16-bit integers times one factor,
// the same on every machine. None is further than 3.5 standard deviations from the mean.
func (f *Filler) fillPlain(dst []byte, at uint64) {
	le := binary.LittleEndian
	switch f.dtype {
	case tensor.F32:
		for i := range len(dst) / 4 {
			le.PutUint32(dst[4*i:], math.Float32bits(f.value(at+uint64(i))))
		}
	case tensor.F16:
		for i := range len(dst) / 2 {
			le.PutUint16(dst[2*i:], tensor.F32ToF16(f.value(at+uint64(i))))
		}
	case tensor.F64:
		for i := range len(dst) / 8 {
			le.PutUint64(dst[8*i:], math.Float64bits(float64(f.value(at+uint64(i)))))
		}
	case tensor.F8_E4M3:
		for i := range dst {
			dst[i] = f8E4M3(f.value(at + uint64(i)))
		}
	case tensor.F8_E5M2:
		for i := range dst {
			dst[i] = byte((tensor.F32ToF16(f.value(at+uint64(i))) + 0x80) >> 8)
		}
	default: // BF16
		for i := range len(dst) / 2 {
			le.PutUint16(dst[2*i:], tensor.F32ToBF16(f.value(at+uint64(i))))
		}
	}
}

// f8E4M3 returns the E4M3 number next to v. v must be within the format's range: a multiple of
// 2^-9, or a number with three bits after the first.
func f8E4M3(v float32) byte {
	b := math.Float32bits(v)
	sign, b := byte(b>>24)&0x80, b&0x7fffffff
	if b < 0x3c800000 { // 2^-6
		return sign | byte(math.Float32frombits(b)*0x1p9+0.5)
	}
	return sign | byte((b-(127-7)<<23+0x80000)>>20)
}

func (f *Filler) value(i uint64) float32 {
	const even = 0x0000ffff0000ffff // the first and the third part
	w := f.codes.at(i)
	w = w&even + w>>16&even
	sum := int32(w+w>>32) - 2*0xffff
	return float32(float32(sum)*f.scale) + f.mean // never fused
}

// fillCodes fills all bytes of blocks with random bits.
func (f *Filler) fillCodes(dst []byte, at uint64) {
	for ; len(dst) >= 8; dst = dst[8:] {
		binary.LittleEndian.PutUint64(dst, f.codes.at(at))
		at++
	}
	if len(dst) > 0 {
		var last [8]byte
		binary.LittleEndian.PutUint64(last[:], f.codes.at(at))
		copy(dst, last[:])
	}
}

// One of unpaired blocks has a scale and a minimum that are independent.
const unpaired = 16

// fillHeads sets the scales of blocks. float16 scales have one random sign per block, so that codes
// that are not symmetric about zero still give symmetric values.
//
// Most blocks subtract the mean of their codes, as in real weights. Otherwise all values of a group
// would lie on one side of zero, and so would sums over similar inputs. One block of every few is
// nevertheless fully random, so that tests can tell the two kinds of scales apart.
func (f *Filler) fillHeads(dst []byte, block uint64) {
	size, le := f.dtype.BlockBytes(), binary.LittleEndian
	for ; len(dst) > 0; dst = dst[size:] {
		w := f.heads.at(block)
		block++
		sign := uint16(w>>48) & 0x8000
		switch f.form {
		case tensor.E8M0Scale:
			dst[f.at[0]] = f.exponent
			if w>>32 < f.next {
				dst[f.at[0]]++
			}
		case tensor.F32Scale:
			le.PutUint32(dst[f.at[0]:], math.Float32bits(f.scale*float32(128+int(byte(w)))/256))
		case tensor.NibbleScale:
			scatter(dst[f.at[0]:], f.values[0][byte(w)]^sign)
		default:
			le.PutUint16(dst[f.at[0]:], f.values[0][byte(w)]^sign)
		}
		if len(f.at) == 2 {
			if w>>16%unpaired == 0 {
				le.PutUint16(dst[f.at[1]:], f.values[1][byte(w>>8)]^sign)
				continue
			}
			le.PutUint16(dst[f.at[1]:], f.values[1][byte(w)]^sign)
		}
		if f.repair != nil {
			f.repair(dst[:size])
		}
	}
}

// Seed returns a seed for the tensor called name of a model with this seed.
func Seed(seed uint64, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name)) //nolint:errcheck // a hash takes everything
	return mix(seed) ^ h.Sum64()
}

// A stream is a sequence of random numbers with random access: SplitMix64 of Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators", OOPSLA 2014, which mixes a counter.
type stream uint64

func (s stream) at(i uint64) uint64 { return mix(uint64(s) + i*0x9E3779B97F4A7C15) }

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
