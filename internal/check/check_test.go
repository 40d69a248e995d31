package check_test

import (
	"testing"

	"github.com/realizar/realizar/internal/check"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
)

// options returns both checks, that of operations for the first steps.
func options(steps int) check.Options {
	return check.Options{Argmax: true, Reference: steps, NewReference: func(p *plan.Program, l plan.Limits) (check.Reference, error) {
		return cpu.NewReplay(p, l, 2)
	}}
}

// A wrapped backend passes the tests of all backends.
// The states of Prefixes, Several and OnlyStates are restored from memory that no step has written, of
// which the reference knows nothing.
func TestWrapped(t *testing.T) {
	longtest.Short(t) // package cpu runs the long form
	plantest.Except(t, check.Wrap(cpu.New(2), options(2)), "Prefixes", "Several", "OnlyStates")
}

func TestNothingToCheck(t *testing.T) {
	b := cpu.Reference()
	if got := check.Wrap(b, check.Options{}); got != plan.Backend(b) {
		t.Errorf("without checks %v is wrapped", got)
	}
}
