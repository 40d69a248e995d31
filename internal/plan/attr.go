package plan

import (
	"fmt"
	"math"
)

// NormAttr are the parameters of [RMSNorm] and [LayerNorm].
type NormAttr struct {
	Group int     // elements normalised together; they divide the weight's length
	Eps   float64 // added to the mean of squares, or to the variance
}

func (a NormAttr) String() string { return fmt.Sprintf("{group %d, eps %.6g}", a.Group, a.Eps) }

// An Activation is the function that a [GLU] applies to its gate, or a [Map] to all.
type Activation uint8

// The activations.
const (
	SiLU        Activation = iota // x / (1 + exp(-x))
	GELU                          // x/2 * (1 + erf(x/sqrt(2))) (Hendrycks and Gimpel, 2016)
	GELUTanh                      // x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715*x^3))), their approximation
	ReLU                          // max(x, 0)
	ReLUSquared                   // max(x, 0)^2 (So et al., "Primer", 2021)
	Sigmoid                       // 1 / (1 + exp(-x))
	QuickGELU                     // x / (1 + exp(-1.702*x)), their other approximation
	Tanh                          // tanh(x)

	numActivations
)

var activationNames = [numActivations]string{"silu", "gelu", "gelu_tanh", "relu", "relu2", "sigmoid", "quick_gelu", "tanh"}

// String is the activation's name as a program prints it.
func (a Activation) String() string {
	if a < numActivations {
		return activationNames[a]
	}
	return fmt.Sprintf("activation(%d)", uint8(a))
}

// Activations are all that there are.
func Activations() []Activation {
	all := make([]Activation, numActivations)
	for i := range all {
		all[i] = Activation(i)
	}
	return all
}

// GLUAttr are the parameters of [GLU]: act(gate) * (up + Shift), where with a Limit the
// gate is at most Limit and up from -Limit to Limit (OpenAI, "gpt-oss-120b &
// gpt-oss-20b Model Card", 2025). A gate of one column is that of the whole row.
type GLUAttr struct {
	Act   Activation
	Limit float64 // 0: none
	Shift float64
}

func (a GLUAttr) String() string {
	s := "{" + a.Act.String()
	if a.Limit > 0 {
		s += fmt.Sprintf(", limit %.6g", a.Limit)
	}
	if a.Shift != 0 {
		s += fmt.Sprintf(", shift %.6g", a.Shift)
	}
	return s + "}"
}

// A Func is what a [Map] does to every element.
type Func uint8

// The functions.
const (
	Activate Func = iota // the activation [MapAttr.Act]
	Scale                // x * By
	Softcap              // By * tanh(x/By) (Gemma team, "Gemma 2", 2024)
)

// MapAttr are the parameters of [Map].
type MapAttr struct {
	Func Func
	Act  Activation // of Activate
	By   float64    // of the others
}

func (a MapAttr) String() string {
	switch a.Func {
	case Scale:
		return fmt.Sprintf("{scale %.8g}", a.By)
	case Softcap:
		return fmt.Sprintf("{softcap %.8g}", a.By)
	}
	return fmt.Sprintf("{%v}", a.Act)
}

// PositionAttr are the parameters of [Position]; a node without them is of axis 0.
type PositionAttr struct {
	Axis int // 0: [Batch.Positions]; 1 or 2: a token's second or third position, of [Batch.Axes]
}

func (a PositionAttr) String() string { return fmt.Sprintf("{axis %d}", a.Axis) }

// PickAttr are the parameters of [Pick].
type PickAttr struct {
	// Mean: instead of a wanted token's row, the mean of the rows of all tokens of its
	// sequence; of programs that are [Program.Whole].
	Mean bool
}

func (a PickAttr) String() string {
	if a.Mean {
		return "{mean}"
	}
	return "{}"
}

// AttentionAttr are the parameters of [Attention] and [Bidirectional]. q is [T, Heads*HeadDim], k
// and v are [T, KVHeads*HeadDim]; query head h reads key/value head
// h / (Heads/KVHeads) (Ainslie et al., "GQA", 2023).
//
// A score is q·k * Scale. With a Softcap c it becomes c * tanh(score/c), which
// stays between -c and c (Gemma team, "Gemma 2", 2024).
type AttentionAttr struct {
	Heads, KVHeads, HeadDim int
	Scale                   float64 // of q·k before the softmax
	Softcap                 float64 // of the scaled scores; 0: none
	Window                  int     // a token sees itself and the Window-1 before it, of Bidirectional also after it; 0: all
}

func (a AttentionAttr) String() string {
	s := fmt.Sprintf("{heads %d/%d, dim %d, scale %.8g", a.Heads, a.KVHeads, a.HeadDim, a.Scale)
	if a.Softcap > 0 {
		s += fmt.Sprintf(", softcap %.6g", a.Softcap)
	}
	if a.Window > 0 {
		s += fmt.Sprintf(", window %d", a.Window)
	}
	return s + "}"
}

// RopeAttr are the parameters of [Rope]: pair i of the first Dims elements of
// each head is turned by position * frequency i and multiplied by Scale.
type RopeAttr struct {
	HeadDim     int
	Dims        int  // elements turned, even; the rest of a head is left alone
	Interleaved bool // pairs are (2i, 2i+1), called NORM in GGUF; otherwise (i, i+Dims/2), called NEOX

	Freqs []float64 // [Dims/2] radians per position
	Scale float64   // magnitude of the turned pair; 1 for most

	// Some models turn long sequences by other frequencies. A sequence is long
	// when its length (see [Batch.Lengths]) exceeds LongFrom.
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
	if n := len(a.Freqs); n > 0 {
		s += fmt.Sprintf(", freqs %.6g to %.6g", a.Freqs[0], a.Freqs[n-1])
	}
	if n := len(a.LongFreqs); n > 0 {
		s += fmt.Sprintf(", beyond %d %.6g to %.6g", a.LongFrom, a.LongFreqs[0], a.LongFreqs[n-1])
	}
	if d := a.Dynamic; d != nil {
		s += fmt.Sprintf(", beyond %d dynamic base %g factor %g", a.LongFrom, d.Base, d.Factor)
	}
	if a.Scale != 1 {
		s += fmt.Sprintf(", scale %.6g", a.Scale)
	}
	return s + "}"
}

// ByLength reports whether the frequencies depend on the sequence's length.
func (a *RopeAttr) ByLength() bool { return a.LongFreqs != nil || a.Dynamic != nil }

// Frequencies are the radians per position, [Dims/2], for a token of a sequence
// of that length. They are written to dst only where they must be computed; the
// result must not be changed.
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
