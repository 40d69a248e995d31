package cpu

import (
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/plan"
)

// check marks the sequences whose residual stream is not finite. A value that is not finite stays
// in the residual stream of its token, so one check per step finds it in the step where it arose.
func (e *executable) check(f *failures) {
	residual, _, _ := e.p.Outputs(e.batch.Head)
	for t, s := range e.seq {
		if l := e.overflow[s]; l >= 0 {
			f.set(s, fmt.Errorf("cpu: layer %d: keys or values exceed the range of an %v cache; use an F32 cache (activations f32)", l, e.lim.Cache))
		}
		if residual >= 0 && !e.tier.vector.finite(e.row(residual, t)) {
			f.set(s, plan.ErrNotFinite)
		}
	}
}

// diagnose runs the step again with every node as its own stage, and replaces each ErrNotFinite by
// an error with the place where it arose. Running the step again stores the same keys and values in
// the same places. Parts of a program run all nodes together, and then take the first place that
// one of them has found.
func (e *executable) diagnose(f *failures) {
	open := 0
	for _, err := range f.err {
		if errors.Is(err, plan.ErrNotFinite) {
			open++
		}
	}
	if open == 0 {
		return
	}
	fast := e.code
	defer func() { e.code = fast }()
	e.code = e.backend.layout(e.p, &e.lim, true)
	e.code.allocate(e.p, &e.lim)
	if err := e.backend.lower(e); err != nil {
		return // the errors keep no place
	}
	lo, hi := e.code.part(e.batch.Head)
	f.found = fill(f.found, len(f.err), len(e.code.kernels))
	for i := lo; i < hi && (open > 0 || e.port != nil); i++ {
		e.do(e.code.kernels[i])
		n := e.code.stages[i].Node()
		for r := range e.size(n.Out) {
			t := r
			if e.p.Shapes[n.Out][0] == plan.Rows {
				t = int(e.batch.Rows[r].Token)
			}
			s := e.seq[t]
			if f.err[s] != plan.ErrNotFinite { //nolint:errorlint // the bare sentinel marks a sequence still to be explained
				continue
			}
			for _, v := range e.row(n.Out, r) {
				if v-v != 0 {
					f.err[s] = &plan.NotFiniteError{Where: n.Where(), Layer: n.Layer, Position: int(e.batch.Positions[t]), Value: v}
					f.found[s] = i
					open--
					break
				}
			}
		}
	}
	if e.port != nil {
		e.port.first(f)
	}
}
