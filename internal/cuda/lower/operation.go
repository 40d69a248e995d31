// Package lower makes launches of kernels of the stages of a program, each operation in a
// file of its own. It says where values, states and what a step is told lie in the
// device's memory; it runs nothing.
package lower

import (
	"fmt"

	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// An operation is how the GPU does the stages of one operation of plans. Each has a file
// of its own.
type operation interface {
	// launches are the kernels of a stage, in order. A launch that does not say what it
	// moves is taken to read the stage's inputs and weights and to write its outputs.
	launches(c *Compiler, s *fuse.Stage) ([]Launch, error)
	// reads are the forms in which a stage reads input i of [fuse.Stage.Inputs].
	reads(s *fuse.Stage, i int, lim *plan.Limits) []kind
	// writes reports whether the kernels write every form of the outputs. Otherwise they
	// write float32, which is converted after them.
	writes(s *fuse.Stage) bool
	// norms reports whether the kernels can normalise input i themselves if it is a single row.
	norms(s *fuse.Stage, i int, lim *plan.Limits) bool
	// scratch are the sizes in bytes of the memory that a node works in. All nodes of the
	// operation use the same, one after another: see compiler.scratch.
	scratch(p *plan.Program, lim *plan.Limits, n *plan.Node) []int
	// most is what no value that a node writes is larger than in size; 0: that is not known.
	most(n *plan.Node) float64
	// check says how a node is larger than the kernels can be.
	check(n *plan.Node) error
}

// ordinary is an operation that reads and writes float32 alone, works nowhere else and has
// no limits.
type ordinary struct{}

func (ordinary) reads(*fuse.Stage, int, *plan.Limits) []kind           { return []kind{inFloats} }
func (ordinary) writes(*fuse.Stage) bool                               { return true }
func (ordinary) norms(*fuse.Stage, int, *plan.Limits) bool             { return false }
func (ordinary) scratch(*plan.Program, *plan.Limits, *plan.Node) []int { return nil }
func (ordinary) most(*plan.Node) float64                               { return 0 }
func (ordinary) check(*plan.Node) error                                { return nil }

// operations are all that the GPU can do.
var operations = map[*plan.Op]operation{
	plan.Embed:         embed{},
	plan.Position:      position{},
	plan.Linear:        linear{},
	plan.RMSNorm:       norm{},
	plan.LayerNorm:     norm{centered: 1},
	plan.Rope:          rope{},
	plan.Attention:     attention{},
	plan.Bidirectional: bidirectional{},
	plan.GLU:           glu{},
	plan.Map:           mapped{},
	plan.Experts:       experts{},
	plan.Conv:          conv{},
	plan.Add:           add{},
	plan.Pick:          pick{},
}

// of is how a stage is done.
func operationOf(s *fuse.Stage) operation { return operations[s.Node().Op] }

// Check says which weight or operation of p the kernels cannot take.
func Check(p *plan.Program, lim *plan.Limits) error {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if operations[n.Op] == nil {
			return fmt.Errorf("cuda: %s: there is no kernel for this operation; use --device cpu", n.Where())
		}
		if err := operations[n.Op].check(n); err != nil {
			return fmt.Errorf("cuda: %s: %w; use --device cpu", n.Where(), err)
		}
		for _, w := range n.Matrices() {
			if !weights.Tileable(w, lim) {
				return fmt.Errorf("cuda: %s: no kernel for a weight of shape %v", n.Where(), w.Shape)
			}
		}
	}
	return nil
}
