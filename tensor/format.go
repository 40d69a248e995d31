package tensor

import "math"

// A Format describes a number format. All code that treats formats differently reads it: a new
// format is a row of the table in this file. Its slices must not be changed.
//
// A value of a block is
//
//	scale·factor·code  or  scale·factor·code ± minimum·factor'
//
// Each value has a code, each group has factors, and each block has a scale and may have a minimum.
type Format struct {
	DType      DType
	Name       string // as in GGUF and safetensors
	BlockLen   int    // elements per block; 1 for unquantized numbers
	BlockBytes int
	GGML       int // number in GGUF (enum ggml_type of ggml.h), -1 if none

	// NotFinite is, for unquantized floats, the lowest bit pattern without the sign whose value is
	// not a finite float32. It is 0 for integers and blocks.
	NotFinite uint64

	// For blocks:
	Group   int       // elements that share a factor
	Bits    int       // bits per code; 0 for formats whose codes index a grid
	Planes  []Plane   // places of the codes' bits, lowest first; nil if codes have no bits of their own. A GPU has kernels for blocks with planes
	Offset  int       // subtracted from unsigned codes
	Signed  bool      // codes are in two's complement
	Table   []int8    // values of codes; nil: the codes minus Offset
	E4M3    bool      // codes are numbers in E4M3, as those of F8_E4M3
	Scale   ScaleForm // form of the block's scale
	Scales  []int     // byte offsets of the scale and, if there is one, of the minimum
	Minimum Minimum
	Factor  Factor
	Packing Packing // layout of the groups' factors, for formats with Planes

	// InBytes says that the CPU's products can read activations in 8 bits, where each group's sum
	// is an exact integer. Products with other formats read floats.
	InBytes bool

	Narrow DType // llama.cpp's fallback format for rows that are not a whole number of blocks; F16 if none

	decode func(dst []float32, src []byte) // decodes whole blocks; nil: by codes, if the block is one group
	levels func() []float32                // see [Format.Levels]; nil: the levels of Bits
}

// A Plane is the place of some bits of a block's codes. Each Run·8/Bits consecutive codes take Run
// bytes, from byte At of the block on. Byte j has the bits of code j lowest, then those of code
// j+Run, and so on.
type Plane struct{ Bits, At, Run int }

// Place returns the byte of a block with the plane's bits of code i, and their shift in it.
func (p Plane) Place(i int) (at, shift int) {
	codes := p.Run * 8 / p.Bits
	return p.At + i/codes*p.Run + i%p.Run, i % codes / p.Run * p.Bits
}

// A ScaleForm is the form of a block's scale.
type ScaleForm uint8

// The forms of scales.
const (
	NoScale     ScaleForm = iota // unquantized numbers
	F16Scale                     // float16
	E8M0Scale                    // a byte e, for 2^(e-127); 255 is NaN
	F32Scale                     // float32
	NibbleScale                  // float16, split into the upper nibbles of four 16-bit words
)

// A Minimum says what a block adds to its scaled codes.
type Minimum int8

// Uses of a block's minimum.
const (
	NoMinimum  Minimum = 0
	Added      Minimum = 1
	Subtracted Minimum = -1
)

// A Factor is the factor by which a group multiplies the scale: First + n·Step, where n is the
// group's number of Bits bits. Minima have factors of the same kind.
type Factor struct {
	Bits        int
	First, Step float64
}

// A Packing is the layout of the groups' numbers in a block.
type Packing uint8

// The packings, by the formats that use them; their decoders document them.
const (
	Unpacked          Packing = iota // groups have no numbers, or the format has no planes
	PackedNibblePairs                // Q2_K
	PackedSixBitsQ3                  // Q3_K
	PackedSixBitsK4                  // Q4_K and Q5_K
	PackedSignedBytes                // Q6_K
	PackedSixBitsIQ4                 // IQ4_XS
)

// whole is the factor of formats whose blocks are one group.
var whole = Factor{First: 1}

// iq4Table has the 16 levels of IQ4_NL and IQ4_XS, which are denser around zero.
var iq4Table = []int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// e2m1Table has twice the 16 values of the OCP FP4 format: sign, two bits of exponent, one of
// mantissa.
var e2m1Table = []int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// formats is the table of all formats, by DType.
var formats = [...]Format{
	F32:  {Name: "F32", BlockLen: 1, BlockBytes: 4, GGML: 0, NotFinite: 0x7f800000, decode: decodeF32},
	F16:  {Name: "F16", BlockLen: 1, BlockBytes: 2, GGML: 1, NotFinite: 0x7c00, decode: decodeF16},
	BF16: {Name: "BF16", BlockLen: 1, BlockBytes: 2, GGML: 30, NotFinite: 0x7f80, decode: decodeBF16},

	Q4_0: {Name: "Q4_0", BlockLen: 32, BlockBytes: 18, GGML: 2, Group: 32, Bits: 4, Planes: []Plane{{4, 2, 16}}, Offset: 8,
		Scale: F16Scale, Scales: []int{0}, Factor: whole, InBytes: true, decode: dequantizeQ4_0},
	Q4_1: {Name: "Q4_1", BlockLen: 32, BlockBytes: 20, GGML: 3, Group: 32, Bits: 4, Planes: []Plane{{4, 4, 16}},
		Scale: F16Scale, Scales: []int{0, 2}, Minimum: Added, Factor: whole, InBytes: true, decode: dequantizeQ4_1},
	Q5_0: {Name: "Q5_0", BlockLen: 32, BlockBytes: 22, GGML: 6, Group: 32, Bits: 5, Planes: []Plane{{4, 6, 16}, {1, 2, 1}}, Offset: 16,
		Scale: F16Scale, Scales: []int{0}, Factor: whole, InBytes: true, decode: dequantizeQ5_0},
	Q5_1: {Name: "Q5_1", BlockLen: 32, BlockBytes: 24, GGML: 7, Group: 32, Bits: 5, Planes: []Plane{{4, 8, 16}, {1, 4, 1}},
		Scale: F16Scale, Scales: []int{0, 2}, Minimum: Added, Factor: whole, InBytes: true, decode: dequantizeQ5_1},
	Q8_0: {Name: "Q8_0", BlockLen: 32, BlockBytes: 34, GGML: 8, Group: 32, Bits: 8, Planes: []Plane{{8, 2, 32}}, Signed: true,
		Scale: F16Scale, Scales: []int{0}, Factor: whole, InBytes: true, decode: dequantizeQ8_0},
	Q2_K: {Name: "Q2_K", BlockLen: 256, BlockBytes: 84, GGML: 10, Group: 16, Bits: 2, Planes: []Plane{{2, 16, 32}},
		Scale: F16Scale, Scales: []int{80, 82}, Minimum: Subtracted, Factor: Factor{4, 0, 1}, InBytes: true, Narrow: Q4_0, decode: dequantizeQ2_K, Packing: PackedNibblePairs},
	Q3_K: {Name: "Q3_K", BlockLen: 256, BlockBytes: 110, GGML: 11, Group: 16, Bits: 3, Planes: []Plane{{2, 32, 32}, {1, 0, 32}}, Offset: 4,
		Scale: F16Scale, Scales: []int{108}, Factor: Factor{6, -32, 1}, InBytes: true, Narrow: Q4_0, decode: dequantizeQ3_K, Packing: PackedSixBitsQ3},
	Q4_K: {Name: "Q4_K", BlockLen: 256, BlockBytes: 144, GGML: 12, Group: 32, Bits: 4, Planes: []Plane{{4, 16, 32}},
		Scale: F16Scale, Scales: []int{0, 2}, Minimum: Subtracted, Factor: Factor{6, 0, 1}, InBytes: true, Narrow: Q5_0, decode: dequantizeQ4_K, Packing: PackedSixBitsK4},
	Q5_K: {Name: "Q5_K", BlockLen: 256, BlockBytes: 176, GGML: 13, Group: 32, Bits: 5, Planes: []Plane{{4, 48, 32}, {1, 16, 32}},
		Scale: F16Scale, Scales: []int{0, 2}, Minimum: Subtracted, Factor: Factor{6, 0, 1}, InBytes: true, Narrow: Q5_1, decode: dequantizeQ5_K, Packing: PackedSixBitsK4},
	Q6_K: {Name: "Q6_K", BlockLen: 256, BlockBytes: 210, GGML: 14, Group: 16, Bits: 6, Planes: []Plane{{4, 0, 64}, {2, 128, 32}}, Offset: 32,
		Scale: F16Scale, Scales: []int{208}, Factor: Factor{8, -128, 1}, InBytes: true, Narrow: Q8_0, decode: dequantizeQ6_K, Packing: PackedSignedBytes},
	IQ4_NL: {Name: "IQ4_NL", BlockLen: 32, BlockBytes: 18, GGML: 20, Group: 32, Bits: 4, Planes: []Plane{{4, 2, 16}}, Table: iq4Table,
		Scale: F16Scale, Scales: []int{0}, Factor: whole, InBytes: true, decode: dequantizeIQ4_NL},
	IQ4_XS: {Name: "IQ4_XS", BlockLen: 256, BlockBytes: 136, GGML: 23, Group: 32, Bits: 4, Planes: []Plane{{4, 8, 16}}, Table: iq4Table,
		Scale: F16Scale, Scales: []int{0}, Factor: Factor{6, -32, 1}, InBytes: true, Narrow: IQ4_NL, decode: dequantizeIQ4_XS, Packing: PackedSixBitsIQ4},
	MXFP4: {Name: "MXFP4", BlockLen: 32, BlockBytes: 17, GGML: 39, Group: 32, Bits: 4, Planes: []Plane{{4, 1, 16}}, Table: e2m1Table,
		Scale: E8M0Scale, Scales: []int{0}, Factor: Factor{First: 0.5}, InBytes: true, decode: dequantizeMXFP4},

	IQ1_S: {Name: "IQ1_S", BlockLen: 256, BlockBytes: 50, GGML: 19, Group: 32,
		Scale: F16Scale, Scales: []int{0}, Factor: Factor{3, 1, 2}, decode: dequantizeIQ1_S, levels: levelsIQ1},
	IQ1_M: {Name: "IQ1_M", BlockLen: 256, BlockBytes: 56, GGML: 29, Group: 16,
		Scale: NibbleScale, Scales: []int{48}, Factor: Factor{3, 1, 2}, decode: dequantizeIQ1_M, levels: levelsIQ1},
	IQ2_XXS: {Name: "IQ2_XXS", BlockLen: 256, BlockBytes: 66, GGML: 16, Group: 32,
		Scale: F16Scale, Scales: []int{0}, Factor: Factor{4, 1. / 8, 1. / 4}, decode: dequantizeIQ2_XXS, levels: func() []float32 { return signedLevels(iq2xxsGrid()[:]) }},
	IQ2_XS: {Name: "IQ2_XS", BlockLen: 256, BlockBytes: 74, GGML: 17, Group: 16,
		Scale: F16Scale, Scales: []int{0}, Factor: Factor{4, 1. / 8, 1. / 4}, decode: dequantizeIQ2_XS, levels: func() []float32 { return signedLevels(iq2xsGrid()[:]) }},
	IQ2_S: {Name: "IQ2_S", BlockLen: 256, BlockBytes: 82, GGML: 22, Group: 16,
		Scale: F16Scale, Scales: []int{0}, Factor: Factor{4, 1. / 8, 1. / 4}, decode: dequantizeIQ2_S, levels: func() []float32 { return signedLevels(iq2sGrid()[:]) }},
	IQ3_XXS: {Name: "IQ3_XXS", BlockLen: 256, BlockBytes: 98, GGML: 18, Group: 32,
		Scale: F16Scale, Scales: []int{0}, Factor: Factor{4, 1. / 4, 1. / 2}, decode: dequantizeIQ3_XXS, levels: func() []float32 { return signedLevels(iq3xxsGrid()[:]) }},
	IQ3_S: {Name: "IQ3_S", BlockLen: 256, BlockBytes: 110, GGML: 21, Group: 32,
		Scale: F16Scale, Scales: []int{0}, Factor: Factor{4, 1, 2}, decode: dequantizeIQ3_S, levels: func() []float32 { return signedLevels(iq3sGrid()[:]) }},
	TQ1_0: {Name: "TQ1_0", BlockLen: 256, BlockBytes: 54, GGML: 34, Group: 256,
		Scale: F16Scale, Scales: []int{52}, Factor: whole, Narrow: Q4_0, decode: dequantizeTQ1_0, levels: levelsTQ1_0},
	TQ2_0: {Name: "TQ2_0", BlockLen: 256, BlockBytes: 66, GGML: 35, Group: 256, Bits: 2, Planes: []Plane{{2, 0, 32}}, Offset: 1,
		Scale: F16Scale, Scales: []int{64}, Factor: whole, InBytes: true, Narrow: Q4_0},

	F8_E4M3: {Name: "F8_E4M3", BlockLen: 1, BlockBytes: 1, GGML: -1, NotFinite: 0x7f, decode: decodeF8_E4M3},
	F8_E5M2: {Name: "F8_E5M2", BlockLen: 1, BlockBytes: 1, GGML: -1, NotFinite: 0x7c, decode: decodeF8_E5M2},
	// A float64 from this on is nearer to 2^128 than to the largest float32.
	F64: {Name: "F64", BlockLen: 1, BlockBytes: 8, GGML: 28, NotFinite: 0x47effffff0000000, decode: decodeF64},
	F8_E4M3_32: {Name: "F8_E4M3_32", BlockLen: 32, BlockBytes: 36, GGML: -1, Group: 32, Bits: 8, Planes: []Plane{{8, 4, 32}}, E4M3: true,
		Scale: F32Scale, Scales: []int{0}, Factor: whole, decode: dequantizeF8E4M3, levels: func() []float32 { return f8E4M3Values[:] }},

	I8:   {Name: "I8", BlockLen: 1, BlockBytes: 1, GGML: 24, decode: decodeI8},
	I16:  {Name: "I16", BlockLen: 1, BlockBytes: 2, GGML: 25, decode: decodeI16},
	I32:  {Name: "I32", BlockLen: 1, BlockBytes: 4, GGML: 26, decode: decodeI32},
	I64:  {Name: "I64", BlockLen: 1, BlockBytes: 8, GGML: 27, decode: decodeI64},
	U8:   {Name: "U8", BlockLen: 1, BlockBytes: 1, GGML: -1, decode: decodeU8},
	U16:  {Name: "U16", BlockLen: 1, BlockBytes: 2, GGML: -1, decode: decodeU16},
	U32:  {Name: "U32", BlockLen: 1, BlockBytes: 4, GGML: -1, decode: decodeU32},
	U64:  {Name: "U64", BlockLen: 1, BlockBytes: 8, GGML: -1, decode: decodeU64},
	BOOL: {Name: "BOOL", BlockLen: 1, BlockBytes: 1, GGML: -1, decode: decodeBool},

	F8_E8M0: {Name: "F8_E8M0", BlockLen: 1, BlockBytes: 1, GGML: -1, decode: decodeF8_E8M0},
}

func init() {
	for d := range formats {
		f := &formats[d]
		f.DType = DType(d)
		if f.BlockLen > 1 && f.Narrow == F32 {
			f.Narrow = F16
		}
		if f.decode == nil {
			f.decode = f.decodeCodes
		}
	}
}

// decodeCodes writes the values of blocks that are one group each.
func (f *Format) decodeCodes(dst []float32, src []byte) {
	var room [256]int8
	q := room[:f.BlockLen]
	for ; len(dst) > 0; dst, src = dst[f.BlockLen:], src[f.BlockBytes:] {
		f.Codes(q, src)
		scale, low := f.heads(src)
		for i, code := range q {
			dst[i] = scale * float32(code)
		}
		if f.Minimum == NoMinimum {
			continue
		}
		for i := range q {
			dst[i] += low
		}
	}
}

// Formats returns all formats in the order of their DTypes.
func Formats() []Format { return append([]Format(nil), formats[:]...) }

// Format returns the format of d, or the zero Format if d is not a known format.
func (d DType) Format() Format {
	if !d.known() {
		return Format{DType: d, GGML: -1}
	}
	return formats[d]
}

// Codes sets q [BlockLen] to the values of the block's codes. The format must have Planes and
// integers as codes, not E4M3.
func (f *Format) Codes(q []int8, block []byte) {
	clear(q)
	up := 0
	for _, p := range f.Planes {
		to := q
		for from := block[p.At:]; len(to) > 0; from = from[p.Run:] {
			for shift := 0; shift < 8 && len(to) > 0; shift += p.Bits {
				for j, v := range from[:p.Run] {
					to[j] |= int8(v >> shift & (1<<p.Bits - 1) << up)
				}
				to = to[p.Run:]
			}
		}
		up += p.Bits
	}
	if f.Table != nil {
		for i, code := range q {
			q[i] = f.Table[code]
		}
	} else if f.Offset > 0 {
		for i := range q {
			q[i] -= int8(f.Offset)
		}
	}
}

// Groups sets scale and low, for each group of a block, to the factor of its codes and the number
// added to the products. The format must have Planes, and a scale that is not F32Scale.
func (f *Format) Groups(scale, low *[16]float32, block []byte) {
	switch f.Packing { // not a function in the table, because its arguments would escape to the heap
	case PackedNibblePairs:
		groupsQ2_K(scale, low, block)
	case PackedSixBitsQ3:
		groupsQ3_K(scale, block)
	case PackedSixBitsK4:
		groupsK4(scale, low, block)
	case PackedSignedBytes:
		groupsQ6_K(scale, block)
	case PackedSixBitsIQ4:
		groupsIQ4_XS(scale, block)
	default:
		scale[0], low[0] = f.heads(block)
	}
}

// heads returns the scale of a block and the number added to its values, for formats whose groups
// have no factors.
func (f *Format) heads(block []byte) (scale, low float32) {
	if f.Scale == E8M0Scale {
		scale = E8M0ToF32(block[f.Scales[0]])
	} else {
		scale = f16At(block[f.Scales[0]:])
	}
	if f.Minimum != NoMinimum {
		low = f16At(block[f.Scales[1]:]) * float32(f.Minimum)
	}
	return scale * float32(f.Factor.First), low
}

// Levels returns the values of random codes, each as often as it occurs.
func (f *Format) Levels() []float32 {
	if f.levels != nil {
		return f.levels()
	}
	all := make([]float32, 1<<f.Bits)
	for code := range all {
		switch {
		case f.Table != nil:
			all[code] = float32(f.Table[code])
		case f.Signed:
			all[code] = float32(code - 1<<(f.Bits-1))
		default:
			all[code] = float32(code - f.Offset)
		}
	}
	return all
}

// Largest returns the largest finite number of an unquantized float format.
func (f *Format) Largest() float64 {
	if f.NotFinite == 0 {
		return math.Inf(1)
	}
	var bits [8]byte
	for i := range f.BlockBytes {
		bits[i] = byte((f.NotFinite - 1) >> (8 * i))
	}
	var v [1]float32
	f.decode(v[:], bits[:f.BlockBytes])
	return float64(v[0])
}
