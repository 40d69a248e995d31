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

// A Value names the result of a node: its index in [Program.Shapes].
type Value int

// NoState marks a node that has no state.
const NoState = -1

// NoLayer marks a node that belongs to no layer: the embedding and the head.
const NoLayer = -1

// A Node is one operation of a program.
type Node struct {
	Op     *Op
	In     []Value
	Weight *tensor.Tensor // nil for operations without one
	Bias   *tensor.Tensor // [out], or nil; of [Experts], what is added to scores to choose by
	State  int            // index into Program.States, or NoState
	Attr   any            // the operation's own parameters, or nil
	Layer  int            // counted from 0, or NoLayer
	Out    Value
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
		n := &p.Nodes[i]
		s := p.Shapes[n.Out]
		fmt.Fprintf(&b, "%%%d [%v %v] = %v\n", n.Out, s[0], s[1], n)
	}
	fmt.Fprintf(&b, "hidden %%%d, logits %%%d\n", p.Hidden, p.Logits)
	return b.String()
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

// Kept are the program's outputs and its residual, which are read when all stages are done.
func (p *Program) Kept() []Value {
	var all []Value
	for _, v := range []Value{p.Residual, p.Hidden, p.Logits} {
		if v >= 0 {
			all = append(all, v)
		}
	}
	return all
}
