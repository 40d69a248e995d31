package draft

import (
	"sync"

	"github.com/realizar/realizar/internal/engine"
)

// A Model proposes what a second model of the same vocabulary, which is faster, samples after the
// same tokens with the same parameters and seed (Leviathan et al., "Fast Inference from Transformers
// via Speculative Decoding", 2023). The same random numbers decide in both models, so that they
// agree more often than their likeliest tokens do.
type Model struct {
	engine *engine.Engine
	vocab  int
	aheads []engine.Ahead // of one call of Prepare
	of     []*follower
}

// NewModel returns a proposer that runs on e, for answers of a model with that many tokens.
func NewModel(e *engine.Engine, vocab int) *Model { return &Model{engine: e, vocab: vocab} }

// A follower proposes for one answer. It implements [engine.Proposer].
type follower struct {
	model   *Model
	request *engine.Request
	choice  int
	ready   int // tokens after which draft comes
	draft   []int32

	mu     sync.Mutex
	engine *engine.Follower // nil before it is first needed
	ended  bool             // or it cannot follow the answer
}

// New returns the proposer of an answer to r, which has the number choice.
func (m *Model) New(r *engine.Request, choice int) engine.Proposer {
	return &follower{model: m, request: r, choice: choice}
}

// Prepare gets ready what followers propose, see [engine.Drafts].
func (m *Model) Prepare(asks []engine.Ask) {
	m.aheads, m.of = m.aheads[:0], m.of[:0]
	for _, a := range asks {
		f := a.Proposer.(*follower)
		f.draft, f.ready = f.draft[:0], 0
		if own := f.begin(); own != nil {
			m.aheads = append(m.aheads, engine.Ahead{Follower: own, Tokens: a.Tokens, N: a.N, Draft: f.draft})
			m.of = append(m.of, f)
		}
	}
	m.engine.Draft(m.aheads)
	for i, a := range m.aheads {
		f := m.of[i]
		f.draft, f.ready = a.Draft, len(a.Tokens)
		for k, id := range f.draft {
			if int(id) >= m.vocab {
				f.draft = f.draft[:k]
				break
			}
		}
	}
	clear(m.aheads)
	clear(m.of)
}

// begin returns the follower of the answer on the model's engine, or nil if there is none.
func (f *follower) begin() *engine.Follower {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.engine == nil && !f.ended {
		var err error
		if f.engine, err = f.model.engine.Follow(f.request, f.choice); err != nil {
			f.ended = true // the prompt is too long for it, or has tokens that it lacks
		}
	}
	if f.ended {
		return nil
	}
	return f.engine
}

// Propose implements [engine.Proposer].
func (f *follower) Propose(tokens []int32, n int) (draft []int32, evidence int) {
	if f.ready != len(tokens) {
		return nil, 0
	}
	return f.draft[:min(n, len(f.draft))], 0
}

// End implements [engine.Proposer].
func (f *follower) End([]int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended = true; f.engine != nil {
		f.engine.End()
	}
}
