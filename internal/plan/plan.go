// Package plan is the language between model architectures and backends: a straight-line program of
// a few large operations, written once when a model loads and run once per step.
//
// A program has no branches and no loops. Only three sizes change from step to step: [Tokens],
// [Seqs] and [Rows]; all other sizes are numbers. Prefill, a chunk of a prefill, decode and any
// mixture of them are the same program with other sizes. Memory that outlives a step, such as a KV
// cache, is declared as a [State], so that the engine can allocate it without knowing the
// architecture.
//
// The package defines each operation and the shapes that it takes. It knows no file format, no
// architecture and no hardware.
package plan

import (
	"fmt"
	"strings"

	"github.com/realizar/realizar/tensor"
)

// A Dim is a length: a number, or one of the three that change from step to step.
type Dim int

// The lengths that change from step to step.
const (
	Tokens Dim = -1 // T: tokens in the step, over all sequences
	Seqs   Dim = -2 // S: sequences in the step
	Rows   Dim = -3 // R: tokens whose logits or hidden states are wanted
)

// String returns T, S, R or the number.
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
	Bias   *tensor.Tensor // [out], or nil; for [Experts], the bias added to scores to choose experts
	State  int            // index into Program.States, or NoState
	Attr   any            // the operation's own parameters, or nil
	Layer  int            // counted from 0, or NoLayer
	Out    Value
}

// A Program is a complete plan.
type Program struct {
	Nodes  []Node
	Shapes [][2]Dim // by Value: [rows, columns]
	States []State
	Groups []Group

	Residual Value // [T, d]: the last hidden state of every token, before Pick
	Hidden   Value // [R, d]: the input of the head
	Logits   Value // [R, vocab]
	Head     *Head // nil: none

	Inputs    int  // columns of [Batch.Input]
	Vocab     int  // token ids are below this: the rows of the embedding table
	Positions int  // positions are below this; 0: no limit
	Whole     bool // a step has all tokens of each of its sequences

	// Axes are the limits of a token's second and third position; 0 if the program does not use it.
	Axes [2]int
}

// String lists the program, one state or node per line. Golden tests compare it.
func (p *Program) String() string {
	var b strings.Builder
	for i, s := range p.States {
		fmt.Fprintf(&b, "@%d %v\n", i, s)
	}
	for i := range p.Nodes {
		if p.Head != nil && i == p.Head.First {
			fmt.Fprintf(&b, "hidden %%%d, logits %%%d; head\n", p.Hidden, p.Logits)
		}
		n := &p.Nodes[i]
		s := p.Shapes[n.Out]
		fmt.Fprintf(&b, "%%%d [%v %v] = %v\n", n.Out, s[0], s[1], n)
	}
	_, hidden, logits := p.Outputs(p.Head != nil)
	fmt.Fprintf(&b, "hidden %%%d, logits %%%d\n", hidden, logits)
	return b.String()
}

// Layers returns the number of layers.
func (p *Program) Layers() int {
	n := 0
	for i := range p.Nodes {
		n = max(n, p.Nodes[i].Layer+1)
	}
	return n
}

// Weights returns the program's distinct weights and biases in the order of use. A tensor used
// twice (a tied head) is listed once.
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

// Kept returns the outputs and residuals of the program and its head, which are read after the last
// stage of each.
func (p *Program) Kept() []Value {
	var all []Value
	outputs := []Value{p.Residual, p.Hidden, p.Logits}
	if h := p.Head; h != nil {
		outputs = append(outputs, h.Residual, h.Hidden, h.Logits)
	}
	for _, v := range outputs {
		if v >= 0 {
			all = append(all, v)
		}
	}
	return all
}
