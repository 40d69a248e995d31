package engine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// A Request is the argument of [Engine.Run]. It must not change until Run returns.
type Request struct {
	Prompt  []int32
	Types   []int32  // second positions of the prompt's tokens, see [plan.Program.Axes], or nil
	Outputs []Output // wanted for the prompt's tokens, in ascending order of Token

	Tokens    int       // to sample after the prompt, at most; 0 for none
	MinTokens int       // no id of Stop is sampled before that many tokens are
	Stop      []int32   // ids that end an answer, as its last token
	Ends      bool      // yield may end an answer because of its tokens, so steps are not made ahead of it
	Want      plan.Want // for each sampled token: logits, hidden state, log-probability
	Trace     bool      // times by layer for sampled tokens, see [Trace]; steps may take longer, also for other requests
	Sampling  sample.Params
	Bias      []sample.Adjustment // by token in ascending order; only Token and Bias count

	// Choices is the number of answers; 0 means 1. They share the pages of the prompt.
	// Sampling.Choice is the number of the first answer; each further answer has the next number.
	Choices int

	Drafts int // the most tokens of a draft; 0 leaves it to [Drafts], and a negative number means none, as does Trace

	Priority int    // higher ones go first, and keep their pages
	Salt     string // requests of different salts share no pages, and take turns
	Client   string // requests of different clients take turns

	// Allowed is the set of tokens that may be sampled; nil allows all.
	Allowed *Mask

	// Constrain, if not nil, is called once for each answer, with its number, and returns the
	// answer's constraint.
	Constrain func(choice int) Constraint

	arrived time.Time // in a group; zero for now
}

// An Output asks for the logits or hidden state of a prompt token. If tokens are sampled after the
// prompt, its last token has no output.
type Output struct {
	Token int32 // index into the prompt
	Want  plan.Want
}

// A Result is an output of the prompt, or a sampled token. It and its slices are valid until yield
// returns.
type Result struct {
	Choice  int  // the answer's number, from 0
	Index   int  // of the token in the prompt, or in the answer
	Chosen  bool // Token was sampled
	Final   bool // the last result of its answer
	Stopped bool // Token is in Stop and ended the answer
	Token   int32
	Forced  []int32 // forced tokens before Token, from Index on

	LogProbability float32   // of Token, if wanted
	Logits         []float32 // [vocab], if wanted
	Hidden         []float32 // [d], if wanted
	Stats          Stats     // of the request so far
	Trace          *Trace    // if the request is traced and Token was sampled
}

// A Trace holds the time of an answer's steps since its previous token. For the first token, these
// are the steps of the prompt, as far as this answer ran it, and the step that sampled the token.
// The times are [plan.Result.Layers] of whole steps, which may include other requests.
type Trace struct {
	Layers []time.Duration // [layers+1]
}

// Stats say how a request was served.
type Stats struct {
	Queue       time.Duration // until the first step with one of its tokens
	Cached      int           // tokens of the prompt that were cached for the answer that began first
	Preemptions int
}

// answers returns the number of answers. If no token is sampled, the prompt runs once.
func (r *Request) answers() int {
	if r.Tokens == 0 {
		return 1
	}
	return max(1, r.Choices)
}

// total returns how many tokens an answer runs at most.
func (r *Request) total() int { return len(r.Prompt) + max(0, r.Tokens-1) }

// wide reports whether results hold the memory of their step.
func (r *Request) wide() bool { return r.Want&(plan.WantLogits|plan.WantHidden) != 0 }

// check returns an error for a request that cannot run, or that would make a whole step fail, and
// other requests with it.
func (r *Request) check(c Config, p *plan.Program) error {
	vocab := int(p.Shapes[p.Logits][1])
	switch {
	case len(r.Prompt) == 0:
		return fmt.Errorf("engine: a prompt of no tokens cannot be run; want at least 1")
	case r.Tokens < 0 || r.MinTokens < 0 || r.Choices < 0:
		return fmt.Errorf("engine: %d tokens, at least %d, in %d answers do not exist", r.Tokens, r.MinTokens, r.Choices)
	case r.total() > c.Context:
		return fmt.Errorf("engine: %d tokens exceed the context of %d", r.total(), c.Context)
	case p.Whole && r.Tokens > 0:
		return fmt.Errorf("engine: %d tokens cannot be chosen: the program reads a text as a whole, and writes none", r.Tokens)
	case r.Types != nil && !p.Whole:
		return fmt.Errorf("engine: the program knows no types of tokens")
	case r.Types != nil && len(r.Types) != len(r.Prompt):
		return fmt.Errorf("engine: %d tokens have %d types", len(r.Prompt), len(r.Types))
	case r.answers() > math.MaxInt32-int(min(r.Sampling.Choice, math.MaxInt32)):
		return fmt.Errorf("engine: %d answers from the number %d on do not exist", r.Choices, r.Sampling.Choice)
	}
	for i, id := range r.Prompt {
		if id < 0 || int(id) >= p.Vocab {
			return fmt.Errorf("engine: token id %d at %d is outside the vocabulary of %d", id, i, p.Vocab)
		}
	}
	for i, v := range r.Types {
		if v < 0 || int(v) >= max(1, p.Axes[0]) {
			return fmt.Errorf("engine: token type %d at %d; the program has %d", v, i, max(1, p.Axes[0]))
		}
	}
	last, outputs := int32(-1), len(r.Prompt)
	if r.Tokens > 0 {
		outputs--
	}
	for i, o := range r.Outputs {
		if o.Token <= last || int(o.Token) >= outputs {
			return fmt.Errorf("engine: output %d is of token %d after %d, of %d; want them in ascending order", i, o.Token, last, outputs)
		}
		if o.Want&^(plan.WantLogits|plan.WantHidden) != 0 {
			return fmt.Errorf("engine: output %d is wanted for %#x; want logits or the hidden state", i, o.Want)
		}
		last = o.Token
	}
	if r.Allowed != nil && len(r.Allowed.Words) != p.MaskWords() {
		return fmt.Errorf("engine: a mask of %d words; want %d for a vocabulary of %d", len(r.Allowed.Words), p.MaskWords(), vocab)
	}
	if err := r.Sampling.Validate(); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	last = -1
	for _, b := range r.Bias {
		if b.Token <= last || int(b.Token) >= vocab {
			return fmt.Errorf("engine: a bias of token %d after %d, of %d; want them in ascending order", b.Token, last, vocab)
		}
		if b.Bias != b.Bias || b.Bias > math.MaxFloat32 {
			return fmt.Errorf("engine: a bias of %v for token %d; want a number, or -Inf", b.Bias, b.Token)
		}
		last = b.Token
	}
	return nil
}

// adjustments returns the adjustments that sampling starts with: the finite biases, and the
// prompt's tokens if the sampling parameters need them.
func (r *Request) adjustments(vocab int) []sample.Adjustment {
	var all []sample.Adjustment
	for _, b := range r.Bias {
		if !bans(b.Bias) {
			all = append(all, sample.Adjustment{Token: b.Token, Bias: b.Bias})
		}
	}
	if r.Sampling.Repeats() {
		for _, id := range r.Prompt {
			if int(id) < vocab {
				all = append(all, sample.Adjustment{Token: id, Prompt: true})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b sample.Adjustment) int { return int(a.Token) - int(b.Token) })
	kept := all[:0]
	for _, a := range all {
		if last := len(kept) - 1; last >= 0 && kept[last].Token == a.Token {
			kept[last].Prompt = kept[last].Prompt || a.Prompt
			continue
		}
		kept = append(kept, a)
	}
	return kept
}
