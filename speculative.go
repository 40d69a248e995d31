package realizar

import (
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/describe"
	"github.com/realizar/realizar/internal/draft"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
)

// Speculative says who proposes the next tokens of an answer. A step then checks several tokens of
// an answer and keeps those that the model would have sampled one by one, so an answer has the same
// tokens, log-probabilities and end with proposals and without; only its time differs.
type Speculative uint8

const (
	// SpeculativeAuto is SpeculativeSuffix on the CPU. On a GPU it is SpeculativeOff, where the time
	// of such steps has not been measured.
	SpeculativeAuto Speculative = iota
	// SpeculativeOff checks no proposals.
	SpeculativeOff
	// SpeculativeSuffix proposes what followed the last tokens of an answer before, in its prompt,
	// in itself, or in recent answers with the same [Generation.Salt]: it pays where answers repeat
	// what they were given, as edits of text and code do.
	SpeculativeSuffix
	// SpeculativeDraft proposes what the model of [Options.Draft] samples after the same tokens.
	SpeculativeDraft
	// SpeculativeMTP proposes what the layer that some checkpoints have for multi-token prediction
	// predicts from the model's hidden states.
	SpeculativeMTP
	// SpeculativeEAGLE proposes what the EAGLE-3 head of [Options.Draft] predicts from the model's
	// hidden states, or the head that the model brings.
	SpeculativeEAGLE
)

var speculativeNames = []string{"auto", "off", "suffix", "draft", "mtp", "eagle"}

// String returns "auto", "off", "suffix", "draft", "mtp" or "eagle".
func (s Speculative) String() string { return nameOf("speculative", s, speculativeNames) }

// ParseSpeculative parses "auto", "off", "suffix", "draft", "mtp" or "eagle"; "" is "auto". The error
// wraps [ErrOptions].
func ParseSpeculative(s string) (Speculative, error) {
	return parseName[Speculative]("speculative", s, speculativeNames)
}

// MaxSpeculativeTokens is the most tokens that are proposed for an answer in one step.
const MaxSpeculativeTokens = engine.MostDraft

// validateSpeculative checks Speculative and SpeculativeTokens.
func (o *Options) validateSpeculative() error {
	switch {
	case o.Speculative > SpeculativeEAGLE:
		return fmt.Errorf("realizar: %w: speculative %d", ErrOptions, o.Speculative)
	case o.Speculative == SpeculativeDraft && o.Draft == "", o.Draft != "" && o.Speculative != SpeculativeDraft && o.Speculative != SpeculativeEAGLE:
		return fmt.Errorf("realizar: %w: speculative %v with the draft model %q; want SpeculativeDraft and its path, SpeculativeEAGLE and that of a head, or neither", ErrOptions, o.Speculative, o.Draft)
	case o.SpeculativeTokens < 0 || o.SpeculativeTokens > MaxSpeculativeTokens:
		return fmt.Errorf("realizar: %w: %d proposed tokens; want 1 to %d, or 0 for as many as pay off", ErrOptions, o.SpeculativeTokens, MaxSpeculativeTokens)
	}
	return nil
}

// drafts returns how an engine on a device of that kind makes drafts. second is the draft model, if
// there is one.
func (o *Options) drafts(kind backends.Kind, second *draftModel) engine.Drafts {
	if o.Speculative == SpeculativeOff || o.Speculative == SpeculativeAuto && !kind.Host {
		return engine.Drafts{}
	}
	d := engine.Drafts{Tokens: o.SpeculativeTokens, Always: o.SpeculativeTokens > 0}
	if o.heads() {
		d.Head = true
		return d
	}
	if second != nil {
		d.New = func(r *engine.Request, choice int) engine.Proposer { return second.model.New(r, choice) }
		d.Prepare = func(asks []engine.Ask) { second.model.Prepare(asks) }
		return d
	}
	var recent draft.Recent
	d.New = func(r *engine.Request, _ int) engine.Proposer { return recent.New(r.Salt, len(r.Prompt)) }
	return d
}

// heads reports whether o asks for a program with a head.
func (o *Options) heads() bool {
	return o.Speculative == SpeculativeMTP || o.Speculative == SpeculativeEAGLE
}

// build returns the program for the model of f with the head that o asks for, and the head's file if
// it has one of its own.
func (o *Options) build(f *modelfile.File) (m *arch.Model, head weightFiles, err error) {
	switch o.Speculative {
	case SpeculativeMTP:
		m, err = arch.BuildPredicting(f)
	case SpeculativeEAGLE:
		m, own, err := arch.OpenEagle(f, o.Draft)
		if err != nil {
			return nil, nil, err
		}
		return m, weightFiles{own}, nil
	default:
		m, err = arch.Build(f)
	}
	return m, nil, err
}

// programWith returns the program of d's model with the head that o asks for.
func (d *Description) programWith(o *Options) (*plan.Program, error) {
	if !o.heads() {
		return d.program.Program, nil
	}
	f, err := modelfile.Open(d.Path)
	if err != nil {
		return nil, err
	}
	m, head, err := o.build(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return describe.NewProgram(m.Program).Program, errors.Join(f.Close(), head.Close())
}

// Ahead implements [engine.Foresight].
func (c *constraint) Ahead(draft []int32, force bool, masks [][]uint32) (n int, err error) {
	if len(c.next) > 0 {
		return 0, nil
	}
	if left, limited := c.thought.limit(); limited {
		draft = draft[:max(0, min(left-1, len(draft)))]
	}
	before := c.grammar.size()
	n = c.foresee(draft, force, masks)
	err = c.account.Reserve(max(0, c.grammar.size()-before))
	if c.bound {
		keptGrammars.grew(c.grammar)
	}
	return n, err
}

// foresee implements Ahead without accounting for memory.
func (c *constraint) foresee(draft []int32, force bool, masks [][]uint32) (n int) {
	state := c.state
	for i, id := range draft {
		if !c.bound {
			for j := range masks[i] {
				masks[i][j] = ^uint32(0)
			}
			continue
		}
		next, ok := state.Token(c.vocabulary, id)
		if !ok { // also for the answer's end, after which nothing follows
			return i
		}
		if state = next; force && len(c.certain(state)) > 0 || state.Mask(c.vocabulary, masks[i]) != nil {
			return i
		}
	}
	return len(draft)
}
