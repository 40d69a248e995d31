package synth

import (
	"slices"
	"strings"

	"github.com/realizar/realizar/tensor"
)

// A role is the function of a tensor in a model.
type role int

// The roles of tensors. Vectors are norms, biases and factors; the others are matrices. Vectors and
// routers are float32 in every mix.
const (
	vector role = iota
	embedding
	head
	attnQ
	attnK
	attnV
	attnOutput
	ffnGate
	ffnUp
	ffnDown
	router
	other // matrices without a rule
)

// A Mix says which format each tensor of a model has. The mixes are llama.cpp's
// (src/llama-quant.cpp, without an importance matrix): a format that names the mix, and other
// formats for the tensors that lose most from few bits.
//
// MXFP4 differs from llama.cpp's, which gives that format to experts only. Most of these models
// have no experts, so here it is the format of all matrices of the layers. The embedding and the
// head are Q8_0 in both.
type Mix struct {
	Name string
	file uint32 // general.file_type of GGUF: llama.h's enum llama_ftype
	base tensor.DType
	head tensor.DType // format of the head, and of an embedding table that is also the head
	// rules give some tensors another format than base. The first rule that applies is used.
	rules []rule
}

// A rule gives the tensors of a role a format in some layers.
type rule struct {
	role  role
	dtype tensor.DType
	where func(s *Shape, n, of int) bool // for tensor n of that many of the role; nil: for all
}

// Mixes are all mixes, in ascending order of the bits in their names.
var Mixes = []Mix{
	{"TQ2_0", 37, tensor.TQ2_0, tensor.Q6_K, []rule{{embedding, tensor.Q4_K, nil}}},
	{"Q2_K", 10, tensor.Q2_K, tensor.Q6_K, []rule{
		{attnV, tensor.Q4_K, sharedHeads}, {attnV, tensor.Q3_K, nil},
		{attnOutput, tensor.Q3_K, nil},
		{ffnDown, tensor.Q3_K, nil},
	}},
	{"Q3_K_S", 11, tensor.Q3_K, tensor.Q6_K, nil},
	{"Q3_K_M", 12, tensor.Q3_K, tensor.Q6_K, []rule{
		{attnV, tensor.Q5_K, firstLayers(2)}, {attnV, tensor.Q4_K, nil},
		{attnOutput, tensor.Q4_K, nil},
		{ffnDown, tensor.Q5_K, firstPart(16)}, {ffnDown, tensor.Q4_K, nil},
	}},
	{"Q3_K_L", 13, tensor.Q3_K, tensor.Q6_K, []rule{
		{attnV, tensor.Q5_K, nil}, {attnOutput, tensor.Q5_K, nil}, {ffnDown, tensor.Q5_K, nil},
	}},
	{"MXFP4", 38, tensor.MXFP4, tensor.Q8_0, []rule{{embedding, tensor.Q8_0, nil}}},
	{"IQ4_XS", 30, tensor.IQ4_XS, tensor.Q6_K, []rule{{attnV, tensor.Q5_K, sharedHeads}, {ffnDown, tensor.Q5_K, firstPart(8)}}},
	{"IQ4_NL", 25, tensor.IQ4_NL, tensor.Q6_K, []rule{{attnV, tensor.Q5_K, sharedHeads}, {ffnDown, tensor.Q5_K, firstPart(8)}}},
	{"Q4_0", 2, tensor.Q4_0, tensor.Q6_K, nil},
	{"Q4_1", 3, tensor.Q4_1, tensor.Q6_K, nil},
	{"Q4_K_S", 14, tensor.Q4_K, tensor.Q6_K, []rule{{attnV, tensor.Q5_K, firstLayers(4)}, {ffnDown, tensor.Q5_K, firstPart(8)}}},
	{"Q4_K_M", 15, tensor.Q4_K, tensor.Q6_K, []rule{{attnV, tensor.Q6_K, moreBits}, {ffnDown, tensor.Q6_K, moreBits}}},
	{"Q5_0", 8, tensor.Q5_0, tensor.Q6_K, nil},
	{"Q5_1", 9, tensor.Q5_1, tensor.Q6_K, nil},
	{"Q5_K_S", 16, tensor.Q5_K, tensor.Q6_K, nil},
	{"Q5_K_M", 17, tensor.Q5_K, tensor.Q6_K, []rule{{attnV, tensor.Q6_K, moreBits}, {ffnDown, tensor.Q6_K, moreBits}}},
	{"Q6_K", 18, tensor.Q6_K, tensor.Q6_K, nil},
	{"Q8_0", 7, tensor.Q8_0, tensor.Q8_0, nil},
	{"F16", 1, tensor.F16, tensor.F16, nil},
	{"BF16", 32, tensor.BF16, tensor.BF16, nil},
	{"F32", 0, tensor.F32, tensor.F32, nil},
}

// FindMix returns the mix with the given name, ignoring case, and reports whether there is one.
func FindMix(name string) (*Mix, bool) {
	for i := range Mixes {
		if strings.EqualFold(Mixes[i].Name, name) {
			return &Mixes[i], true
		}
	}
	return nil, false
}

// firstLayers selects the first tensors.
func firstLayers(first int) func(*Shape, int, int) bool {
	return func(_ *Shape, n, _ int) bool { return n < first }
}

// firstPart selects the first one of some equal parts of the tensors.
func firstPart(parts int) func(*Shape, int, int) bool {
	return func(_ *Shape, n, of int) bool { return n < of/parts }
}

// moreBits selects the first eighth of the tensors, the last eighth, and every third one between them.
func moreBits(_ *Shape, n, of int) bool {
	eighth := of / 8
	return n < eighth || n >= 7*of/8 || (n-eighth)%3 == 2
}

// sharedHeads reports whether four or more query heads share a value head. The value projection is
// then small and matters more.
func sharedHeads(s *Shape, _, _ int) bool { return s.Heads/s.KVHeads >= 4 }

// valuesBefore returns how many layers before one have a projection to values, and how many have one:
// those with attention, and delta nets.
func (s *Shape) valuesBefore(layer int) (n, of int) {
	if s.Attending == nil || s.Delta.Values > 0 {
		return layer, s.Layers
	}
	n, _ = slices.BinarySearch(s.Attending, layer)
	return n, len(s.Attending)
}

// dtype returns the format of a tensor with rows of cols values.
func (m *Mix) dtype(s *Shape, r role, layer, cols int) tensor.DType {
	switch {
	case r == vector || r == router:
		return tensor.F32
	case !m.base.Quantized():
		return m.base
	case r == head || r == embedding && s.Tied:
		if cols%m.base.BlockLen() != 0 {
			return fitting(tensor.Q8_0, cols)
		}
		return fitting(m.head, cols)
	}
	n, of := layer, s.Layers
	if r == attnV {
		n, of = s.valuesBefore(layer)
	}
	for _, rule := range m.rules {
		if rule.role == r && (rule.where == nil || rule.where(s, n, of)) {
			return fitting(rule.dtype, cols)
		}
	}
	return fitting(m.base, cols)
}

// fitting returns d, or the format that replaces it if cols is not a multiple of its block length.
func fitting(d tensor.DType, cols int) tensor.DType {
	if cols%d.BlockLen() != 0 {
		d = d.Format().Narrow
	}
	if cols%d.BlockLen() != 0 {
		return tensor.F16
	}
	return d
}
