// Package plan is the language between model architectures and backends: a
// straight-line program of a few large operations, written once when a model
// loads and run once per step.
//
// A program has no branches and no loops. Three sizes alone change from step
// to step: [Tokens], [Seqs] and [Rows]; all other sizes are numbers. Prefill, a
// chunk of a prefill, decoding and any mixture of them are the same program
// with other sizes. What lives longer than a step, such as a key/value cache,
// is declared as a [State], so that the engine can make room for it without
// knowing the architecture.
//
// The package knows what each operation means and which shapes it takes. It
// knows no file format, no architecture and no hardware.
package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/tensor"
)

// A Dim is a length: a number, or one of the three that change per step.
type Dim int

// The lengths that change from step to step.
const (
	Tokens Dim = -1 // T: tokens in the step, over all sequences
	Seqs   Dim = -2 // S: sequences in the step
	Rows   Dim = -3 // R: tokens whose logits or hidden states are wanted
)

// String is T, S, R or the number.
func (d Dim) String() string {
	switch d {
	case Tokens:
		return "T"
	case Seqs:
		return "S"
	case Rows:
		return "R"
	}
	return fmt.Sprint(int(d))
}

// An Op is one kind of operation, as large as a kernel's author would want to
// own: attention is one operation, not seven.
type Op uint8

// The operations. x is [rows, cols] in float32 everywhere; T, S and R are as in
// [Dim].
const (
	// Embed: rows of a table [vocab, d] by the step's token ids -> [T, d].
	Embed Op = iota
	// Position: rows of a table [positions, d] by the positions of the step's tokens
	// -> [T, d], see [PositionAttr].
	Position
	// Linear: x·Wᵀ + b with W [out, in] of any weight dtype and an optional b [out].
	Linear
	// RMSNorm: x / sqrt(mean(x²) + eps) * w over groups of the last dimension
	// (Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019).
	RMSNorm
	// LayerNorm: (x - mean(x)) / sqrt(var(x) + eps) * w + b over groups of the last
	// dimension, with an optional b and the variance that divides by the group's
	// length (Ba, Kiros and Hinton, "Layer Normalization", 2016). w and b have the
	// length of a group, or of the row where each group has its own.
	LayerNorm
	// Rope: rotary positions (Su et al., "RoFormer", 2021), see [RopeAttr].
	Rope
	// Attention: stores the step's k and v in a state, then lets every token
	// attend to its own sequence's past and itself, see [AttentionAttr]. An
	// optional weight holds sinks, see [Builder.AttentionSinks].
	Attention
	// Bidirectional: every token attends to all tokens of its sequence, or to those
	// near it, see [AttentionAttr]. There is no state: a sequence is in the step as a
	// whole, see [Program.Whole].
	Bidirectional
	// GLU: act(gate) * up (Shazeer, "GLU Variants Improve Transformer", 2020), see
	// [GLUAttr].
	GLU
	// Map: f(x), element by element, see [MapAttr].
	Map
	// Experts: a mixture of experts (Shazeer et al., "Outrageously Large Neural
	// Networks", 2017), see [ExpertsAttr].
	Experts
	// Add: x + y.
	Add
	// Pick: the rows of x that the step wants, [T, d] -> [R, d], see [PickAttr].
	Pick

	numOps
)

var opNames = [numOps]string{"embed", "position", "linear", "rmsnorm", "layernorm", "rope", "attention", "bidirectional", "glu", "map", "experts", "add", "pick"}

// String is the operation's name as a program prints it.
func (o Op) String() string {
	if o < numOps {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// A Value names the result of a node: its index in [Program.Shapes].
type Value int

// NoState marks a node that has no state.
const NoState = -1

// NoLayer marks a node that belongs to no layer: the embedding and the head.
const NoLayer = -1

// A Node is one operation of a program.
type Node struct {
	Op     Op
	In     []Value
	Weight *tensor.Tensor // nil for operations without one
	Bias   *tensor.Tensor // [out], or nil; of [Experts], what is added to scores to choose by
	State  int            // index into Program.States, or NoState
	Attr   any            // the operation's own parameters, or nil
	Layer  int            // counted from 0, or NoLayer
	Out    Value
}

// Where says in words where in the model the node is, for errors.
func (n *Node) Where() string { return Where(n) }

// Where says in words where in the model nodes are that a backend does as one.
func Where(nodes ...*Node) string {
	var s strings.Builder
	for i, n := range nodes {
		switch {
		case i == 0:
			s.WriteString(n.Op.String())
		case n.Op == nodes[i-1].Op && n.Weight != nil:
			s.WriteString(",")
		default:
			s.WriteString("; " + n.Op.String())
		}
		if n.Weight != nil {
			s.WriteString(" " + n.Weight.Name)
		}
	}
	if nodes[0].Layer == NoLayer {
		return s.String()
	}
	return fmt.Sprintf("layer %d (%s)", nodes[0].Layer, s.String())
}

// A Program is a finished plan.
type Program struct {
	Nodes  []Node
	Shapes [][2]Dim // by Value: rows, columns
	States []State
	Groups []Group

	Residual Value // [T, d]: the last hidden state of every token, before Pick
	Hidden   Value // [R, d]: what the head reads
	Logits   Value // [R, vocab]

	Vocab     int  // token ids accepted: rows of the embedding table
	Positions int  // positions accepted are below this, 0: all
	Whole     bool // the tokens of a sequence are in one step, all of them

	// Axes are the second and third positions that a token can have, which are below
	// these; 0: the program does not go by them.
	Axes [2]int
}

// String lists the program, one state or node a line. Golden tests compare it.
func (p *Program) String() string {
	var b strings.Builder
	for i, s := range p.States {
		fmt.Fprintf(&b, "@%d %v\n", i, s)
	}
	for i := range p.Nodes {
		p.print(&b, &p.Nodes[i])
	}
	fmt.Fprintf(&b, "hidden %%%d, logits %%%d\n", p.Hidden, p.Logits)
	return b.String()
}

func (p *Program) print(b *strings.Builder, n *Node) {
	s := p.Shapes[n.Out]
	fmt.Fprintf(b, "%%%d [%v %v] = %v", n.Out, s[0], s[1], n.Op)
	for _, v := range n.In {
		fmt.Fprintf(b, " %%%d", v)
	}
	for _, w := range []*tensor.Tensor{n.Weight, n.Bias} {
		if w != nil {
			fmt.Fprintf(b, " %s:%v", w.Name, w.DType)
		}
	}
	if a, ok := n.Attr.(ExpertsAttr); ok {
		for _, w := range a.first() {
			fmt.Fprintf(b, " %s:%v", w.Name, w.DType)
		}
	}
	if n.Attr != nil {
		fmt.Fprintf(b, " %v", n.Attr)
	}
	if n.State != NoState {
		fmt.Fprintf(b, " @%d", n.State)
	}
	b.WriteByte('\n')
}

// Layers is how many layers the program has.
func (p *Program) Layers() int {
	n := 0
	for i := range p.Nodes {
		n = max(n, p.Nodes[i].Layer+1)
	}
	return n
}

// Weights are the program's distinct weights and biases in the order of use.
// A tensor used twice (a tied head) is listed once.
func (p *Program) Weights() []*tensor.Tensor {
	var ws []*tensor.Tensor
	seen := map[*tensor.Tensor]bool{}
	for i := range p.Nodes {
		for _, w := range p.Nodes[i].Tensors() {
			if !seen[w] {
				seen[w] = true
				ws = append(ws, w)
			}
		}
	}
	return ws
}

// Tensors are the node's weights and biases: its own, then those of experts, the
// gates of all, what they gate, the products back, and their biases likewise.
func (n *Node) Tensors() []*tensor.Tensor {
	var ws []*tensor.Tensor
	for _, w := range []*tensor.Tensor{n.Weight, n.Bias} {
		if w != nil {
			ws = append(ws, w)
		}
	}
	if a, ok := n.Attr.(ExpertsAttr); ok {
		for _, list := range a.lists() {
			ws = append(ws, *list...)
		}
	}
	return ws
}

// Replace puts what f gives for them in the place of the node's weights and biases.
func (n *Node) Replace(f func(*tensor.Tensor) *tensor.Tensor) {
	for _, w := range []**tensor.Tensor{&n.Weight, &n.Bias} {
		if *w != nil {
			*w = f(*w)
		}
	}
	if a, ok := n.Attr.(ExpertsAttr); ok {
		for _, list := range a.lists() {
			*list = slices.Clone(*list)
			for i, w := range *list {
				(*list)[i] = f(w)
			}
		}
		n.Attr = a
	}
}
