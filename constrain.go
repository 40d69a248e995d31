package realizar

import (
	"fmt"
	"math/bits"
	"sync"

	"github.com/realizar/realizar/internal/budget"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/tokenizer"
)

// A masker is the constraint of an answer that calls [Generation.Mask].
type masker struct {
	calls  *sync.Mutex // shared by a request's answers, held during each call
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

// constrain returns a function that makes the constraint of each answer, or nil if answers have
// none.
func (m *Model) constrain(g *Generation, p *Prompt, account *budget.Account) (func(choice int) engine.Constraint, error) {
	bind := g.Grammar.compiled
	if p.turn != nil {
		bind = func() (*compiledGrammar, error) { return p.turn.grammar(g) }
	}
	whole, err := bind()
	if err != nil {
		return nil, err
	}
	switch {
	case g.Mask != nil && (whole != nil || p.turn.bounded()):
		return nil, fmt.Errorf("realizar: %w: a mask together with a grammar, tools or a limit of reasoning; want one of these", ErrRequest)
	case g.Mask != nil:
		calls := new(sync.Mutex)
		return func(choice int) engine.Constraint { return &masker{calls: calls, mask: g.Mask, choice: choice} }, nil
	case whole == nil && !p.turn.bounded():
		return nil, nil
	case m.tok == nil:
		return nil, wrap(m.tokErr)
	case g.IgnoreEnd && whole != nil:
		return nil, fmt.Errorf("realizar: %w: IgnoreEnd together with a grammar or tools; want one of these", ErrRequest)
	}
	v := m.vocabulary()
	if whole != nil {
		keptGrammars.use(whole)
	}
	return func(int) engine.Constraint {
		c := &constraint{model: m, vocabulary: v, account: account}
		if c.bound = whole != nil; c.bound {
			c.grammar, c.state = whole, whole.whole.Start()
		}
		c.thought = p.turn.thought()
		return c
	}, nil
}

// A constraint constrains an answer to a grammar, and its reasoning to a number of tokens.
type constraint struct {
	model      *Model
	vocabulary *grammar.Vocabulary
	bound      bool             // there is a grammar
	grammar    *compiledGrammar // nil if not bound
	state      grammar.State    // after the tokens so far
	thought    *thought
	next       []int32 // tokens that must follow and that the engine could not be told to force
	account    *budget.Account
}

// Next implements [engine.Constraint]. Memory by which the grammar grows is charged to the request
// that makes it grow.
func (c *constraint) Next(chosen []int32, force bool, mask []uint32) (forced []int32, err error) {
	before := c.grammar.size()
	if forced, err = c.allow(chosen, force, mask); err == nil {
		err = c.account.Reserve(max(0, c.grammar.size()-before))
	}
	if c.bound {
		keptGrammars.grew(c.grammar)
	}
	return forced, err
}

// allow implements Next without accounting for memory.
func (c *constraint) allow(chosen []int32, force bool, mask []uint32) (forced []int32, err error) {
	for _, id := range chosen {
		if err := c.take(id); err != nil {
			return nil, err
		}
	}
	if len(c.next) == 0 {
		c.next = c.thought.over()
	}
	if len(c.next) == 0 && force && c.bound {
		c.next = c.certain(c.state)
	}
	if force && len(c.next) > 0 {
		forced, c.next = c.next, nil
		for _, id := range forced {
			if err := c.take(id); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case len(c.next) > 0:
		mask[c.next[0]/32] |= 1 << (c.next[0] % 32)
	case c.bound:
		err := c.state.Mask(c.vocabulary, mask)
		return forced, c.grammar.failed(err)
	default:
		for i := range mask {
			mask[i] = ^uint32(0)
		}
	}
	return forced, nil
}

// take advances the state by a token of the answer.
func (c *constraint) take(id int32) error {
	if len(c.next) > 0 {
		c.next = c.next[1:]
	}
	c.thought.take(id)
	if !c.bound || c.model.ends[id] && c.state.Ends() {
		return nil
	}
	next, ok := c.state.Token(c.vocabulary, id)
	if !ok {
		if err := next.Err(); err != nil {
			return c.grammar.failed(err)
		}
		return fmt.Errorf("realizar: token %d does not match the grammar", id)
	}
	c.state = next
	return nil
}

const (
	certainBytes = 512 // how far certain looks ahead
	openTokens   = 2   // how many of a text's last tokens may depend on the text after it
)

// certain returns the tokens that must follow s if there are at least two, and nil otherwise. It
// leaves out the last tokens if a longer token could replace them.
func (c *constraint) certain(s grammar.State) []int32 {
	text := s.Forced(certainBytes)
	if len(text) < 2 {
		return nil
	}
	ids := c.model.tok.EncodeSpans([]tokenizer.Span{{Text: string(text)}}, false)
	states, offsets := []grammar.State{s}, []int{0}
	for i, id := range ids {
		piece, rest := c.model.tok.Piece(id), text[offsets[i]:]
		next, ok := states[i].Token(c.vocabulary, id)
		if !ok || len(piece) > len(rest) || string(piece) != string(rest[:len(piece)]) {
			return nil // the tokenizer changes a text that stands alone, for example by a leading space
		}
		states, offsets = append(states, next), append(offsets, offsets[i]+len(piece))
	}
	n := len(ids)
	for k := max(0, n-openTokens); k < n; k++ {
		if c.longer(states[k], len(text)-offsets[k]) {
			n = k
		}
	}
	if n < 2 {
		return nil // forcing one token saves no step
	}
	return ids[:n]
}

// longer reports whether a token of more than bytes bytes may follow s.
func (c *constraint) longer(s grammar.State, bytes int) bool {
	mask := make([]uint32, c.vocabulary.Words())
	if s.Mask(c.vocabulary, mask) != nil {
		return true
	}
	for i, word := range mask {
		for ; word != 0; word &= word - 1 {
			if id := int32(32*i + bits.TrailingZeros32(word)); len(c.model.tok.Piece(id)) > bytes {
				return true
			}
		}
	}
	return false
}
