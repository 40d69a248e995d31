package plan

import (
	"fmt"
	"math"
)

// Rope applies rotary positions (Su et al., "RoFormer", 2021), see [RopeAttr].
var Rope = &Op{Name: "rope", Scope: ByToken}

// RopeAttr holds the parameters of [Rope]. Pair i of the Dims elements from First on of each head
// is rotated by position * Freqs[i] radians and multiplied by Scale.
type RopeAttr struct {
	HeadDim     int
	First       int  // first element rotated
	Dims        int  // elements rotated, even; the rest of a head is copied
	Interleaved bool // pairs are (2i, 2i+1), called NORM in GGUF; otherwise (i, i+Dims/2), called NEOX

	Freqs []float64 // [Dims/2] radians per position
	Scale float64   // multiplies the rotated pair; 1 for most models
	Shift int       // added to positions

	// Some models rotate long sequences by other frequencies. A sequence is long if its length (see
	// [Batch.Lengths]) exceeds LongFrom.
	LongFrom  int
	LongFreqs []float64 // [Dims/2] for long sequences, or nil
	Dynamic   *DynamicNTK
}

// DynamicNTK raises the base of the frequencies with the sequence's length, for
// sequences longer than [RopeAttr.LongFrom]:
// base * (factor*length/LongFrom - (factor-1))^(dims/(dims-2)), as transformers
// defines its "dynamic" type.
type DynamicNTK struct{ Base, Factor float64 }

func (a RopeAttr) String() string {
	kind := "neox"
	if a.Interleaved {
		kind = "norm"
	}
	s := fmt.Sprintf("{%s, dim %d", kind, a.HeadDim)
	if a.Dims != a.HeadDim {
		s += fmt.Sprintf(", turned %d", a.Dims)
	}
	if a.First > 0 {
		s += fmt.Sprintf(" from %d", a.First)
	}
	if n := len(a.Freqs); n > 0 {
		s += fmt.Sprintf(", freqs %.6g to %.6g", a.Freqs[0], a.Freqs[n-1])
	}
	if n := len(a.LongFreqs); n > 0 {
		s += fmt.Sprintf(", beyond %d %.6g to %.6g", a.LongFrom, a.LongFreqs[0], a.LongFreqs[n-1])
	}
	if d := a.Dynamic; d != nil {
		s += fmt.Sprintf(", beyond %d dynamic base %g factor %g", a.LongFrom, d.Base, d.Factor)
	}
	if a.Shift != 0 {
		s += fmt.Sprintf(", shifted %d", a.Shift)
	}
	if a.Scale != 1 {
		s += fmt.Sprintf(", scale %.6g", a.Scale)
	}
	return s + "}"
}

// ByLength reports whether the frequencies depend on the sequence's length.
func (a *RopeAttr) ByLength() bool { return a.LongFreqs != nil || a.Dynamic != nil }

// Frequencies returns the radians per position, [Dims/2], for a token of a sequence of that length.
// If they must be computed, the result is in dst. The caller must not change it.
func (a *RopeAttr) Frequencies(dst []float64, length int) []float64 {
	switch {
	case length <= a.LongFrom || !a.ByLength():
		return a.Freqs
	case a.LongFreqs != nil:
		return a.LongFreqs
	}
	dims := float64(a.Dims)
	stretch := a.Dynamic.Factor*float64(length)/float64(a.LongFrom) - (a.Dynamic.Factor - 1)
	base := a.Dynamic.Base * math.Pow(stretch, dims/(dims-2))
	dst = dst[:0]
	for i := range a.Dims / 2 {
		dst = append(dst, math.Pow(base, -2*float64(i)/dims))
	}
	return dst
}

// LengthClass implements the interface that [Program.LengthClass] looks for.
func (a RopeAttr) LengthClass(length int) int {
	switch {
	case !a.ByLength() || length <= a.LongFrom:
		return 0
	case a.Dynamic != nil:
		return length
	}
	return a.LongFrom + 1 // any two long sequences have the same frequencies
}

// Rope adds the rotation of the heads of x by the positions of the step's tokens.
func (b *Builder) Rope(x Value, a RopeAttr) Value {
	half := a.Dims / 2
	switch {
	case a.HeadDim <= 0 || b.Cols(x)%a.HeadDim != 0:
		b.Failf("rope: heads of %d do not divide %d", a.HeadDim, b.Cols(x))
	case a.Dims <= 0 || a.Dims%2 != 0 || a.First < 0 || a.First+a.Dims > a.HeadDim:
		b.Failf("rope: cannot rotate %d of the %d elements of a head from element %d on", a.Dims, a.HeadDim, a.First)
	case len(a.Freqs) != half || (a.LongFreqs != nil && len(a.LongFreqs) != half):
		b.Failf("rope: rotating %d elements takes %d frequencies, have %d and %d", a.Dims, half, len(a.Freqs), len(a.LongFreqs))
	case a.Dynamic != nil && (a.LongFrom <= 0 || a.Dims <= 2):
		b.Failf("rope: dynamic frequencies need a length to start from and more than 2 rotated elements, have %d and %d", a.LongFrom, a.Dims)
	}
	return b.add(Node{Op: Rope, In: []Value{x}, State: NoState, Attr: a}, Tokens, Dim(b.Cols(x)))
}
