package realizar

import (
	"sync"

	"github.com/realizar/realizar/internal/engine"
)

// A masker is the constraint that a caller's function is.
type masker struct {
	calls  *sync.Mutex // held during each, of all answers
	mask   func(choice int, chosen []int32, mask []uint32) error
	choice int
	chosen []int32
}

// Next implements [engine.Constraint].
func (m *masker) Next(chosen []int32, _ bool, mask []uint32) (forced []int32, err error) {
	m.calls.Lock()
	defer m.calls.Unlock()
	m.chosen = append(m.chosen, chosen...)
	return nil, m.mask(m.choice, m.chosen, mask)
}

// constrain is what makes the constraints of the answers, or nil.
func (g *Generation) constrain() func(choice int) engine.Constraint {
	if g.Mask == nil {
		return nil
	}
	calls := new(sync.Mutex)
	return func(choice int) engine.Constraint { return &masker{calls: calls, mask: g.Mask, choice: choice} }
}
