package backendstest

import "github.com/realizar/realizar/internal/plan"

// Failing returns an executable that refuses steps while lost returns an error.
func Failing(x plan.Executable, lost func() error) plan.Executable { return &failing{x, lost} }

type failing struct {
	plan.Executable
	lost func() error
}

func (f *failing) Submit(b *plan.Batch) (plan.Step, error) {
	if err := f.lost(); err != nil {
		return nil, err
	}
	return f.Executable.Submit(b)
}
