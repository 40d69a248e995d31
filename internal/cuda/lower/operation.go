// Package lower builds kernel launches for the stages of a program, with a file for each operation.
// It decides where values, states and step inputs are in device memory. It runs nothing.
package lower

import (
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// An operation implements the stages of one plan operation on the GPU. Each has its own file.
type operation interface {
	// launches returns the kernels of a stage, in order. A launch without Moves counts as reading
	// the stage's inputs and weights and writing its outputs.
	launches(c *Compiler, s *fuse.Stage) ([]Launch, error)
	// reads returns the forms in which a stage reads input i of [fuse.Stage.Inputs].
	reads(s *fuse.Stage, i int, lim *plan.Limits) []kind
	// writes reports whether the kernels write every form of the outputs. Otherwise they
	// write float32, which is converted after them.
	writes(s *fuse.Stage) bool
	// norms reports whether the kernels can normalize input i themselves if it is a single row.
	norms(s *fuse.Stage, i int, lim *plan.Limits) bool
	// scratch returns the sizes in bytes of a node's scratch memory. All nodes of the operation
	// share it, one after another; see Compiler.scratch.
	scratch(p *plan.Program, lim *plan.Limits, n *plan.Node) []int
	// most returns an upper bound for the magnitude of the values that a node writes, or 0 if it is
	// unknown.
	most(n *plan.Node) float64
	// check returns an error if a node exceeds the limits of the kernels.
	check(n *plan.Node) error
}

// ordinary is embedded by operations. Its methods describe an operation that reads and writes only
// float32, needs no scratch memory and has no limits.
type ordinary struct{}

func (ordinary) reads(*fuse.Stage, int, *plan.Limits) []kind           { return []kind{inFloats} }
func (ordinary) writes(*fuse.Stage) bool                               { return true }
func (ordinary) norms(*fuse.Stage, int, *plan.Limits) bool             { return false }
func (ordinary) scratch(*plan.Program, *plan.Limits, *plan.Node) []int { return nil }
func (ordinary) most(*plan.Node) float64                               { return 0 }
func (ordinary) check(*plan.Node) error                                { return nil }

// operations are all operations.
var operations = map[*plan.Op]operation{
	plan.Input:         input{},
	plan.Embed:         embed{},
	plan.Position:      position{},
	plan.Linear:        linear{},
	plan.RMSNorm:       norm{},
	plan.LayerNorm:     norm{centered: 1},
	plan.Rope:          rope{},
	plan.Attention:     attention{},
	plan.Bidirectional: bidirectional{},
	plan.GLU:           elementwise{},
	plan.Map:           elementwise{},
	plan.Experts:       experts{},
	plan.Select:        selection{},
	plan.Conv:          conv{},
	plan.Compress:      compress{},
	plan.Connect:       connect{},
	plan.Add:           elementwise{},
	plan.Scan:          scan{},
	plan.LRU:           lru{},
	plan.StateSpace:    stateSpace{},
	plan.Delta:         delta{},
	plan.Concat:        concat{},
	plan.HeadLinear:    headLinear{},
	plan.Mul:           mul{},
	plan.Mix:           mix{},
	plan.Temper:        temper{},
	plan.Rescale:       rescale{},
	plan.Sparsify:      sparsify{},
	plan.Spread:        spread{},
	plan.Store:         store{},
	plan.Recall:        recall{},
	plan.Pick:          pick{},
	plan.Gather:        gather{},
}

// operationOf returns the operation of a stage.
func operationOf(s *fuse.Stage) operation { return operations[s.Node().Op] }

// Check returns an error about the first weight or operation of p that the kernels do not support.
func Check(p *plan.Program, lim *plan.Limits) error {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if operations[n.Op] == nil {
			return fmt.Errorf("cuda: %s: %w: there is no kernel for it; use --device cpu", n.Where(), errors.ErrUnsupported)
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
