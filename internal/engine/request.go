package engine

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// A Request is what [Engine.Run] is asked for. It must not be changed until Run
// returns.
type Request struct {
	Prompt  []int32
	Types   []int32  // of the prompt's tokens, or nil: their second positions, see [plan.Program.Axes]
	Outputs []Output // wanted of the prompt's tokens, in ascending order of Token

	Tokens    int       // to choose after the prompt, at most; 0: none
	MinTokens int       // no id of Stop is chosen before so many others are
	Stop      []int32   // ids that end an answer, as its last token
	Ends      bool      // yield may end an answer by what its tokens are, so that steps are not made ahead of it
	Want      plan.Want // of each token chosen: logits, hidden state, log-probability
	Trace     bool      // the time by layer of the tokens chosen, see [Trace]; the steps may take longer, also for who else is in them
	Sampling  sample.Params
	Bias      []sample.Adjustment // of tokens in ascending order; only Token and Bias count

	// Choices are the answers to choose; 0: 1. They share the pages of the prompt.
	// Sampling.Choice is that of the first answer, the next one's is one more.
	Choices int

	Priority int    // higher ones go first, and keep their pages
	Salt     string // requests of unlike salts share no pages, and take turns
	Client   string // requests of unlike clients take turns

	// Allowed is what every token of every answer is chosen of; nil: all.
	Allowed *Mask

	// Constrain, where not nil, is called once for each answer, by its number, and says
	// what constrains it.
	Constrain func(choice int) Constraint
}

// An Output is what a token of a prompt is wanted for: logits, hidden state. Where
// tokens are chosen after the prompt, the last of its tokens has no output.
type Output struct {
	Token int32 // index into the prompt
	Want  plan.Want
}

// A Result is an output of the prompt, or a token that was chosen. It and its
// slices are the caller's until yield returns.
type Result struct {
	Choice  int  // the answer's number, from 0
	Index   int  // of the token in the prompt, or among those chosen
	Chosen  bool // Token was chosen
	Final   bool // nothing of its answer follows
	Stopped bool // Token is one of Stop and ended the answer
	Token   int32
	Forced  []int32 // tokens before Token, from Index on, that had to follow those chosen before

	LogProbability float32   // of Token, where wanted
	Logits         []float32 // [vocab], where wanted
	Hidden         []float32 // [d], where wanted
	Stats          Stats     // of the request so far
	Trace          *Trace    // where the request is traced and Token was chosen
}

// A Trace says what an answer's steps took since its token before: for the first
// token, those that read the prompt, as far as this answer did, and the one that chose
// it. The times are [plan.Result.Layers] of whole steps, which others may have been in
// too.
type Trace struct {
	Layers []time.Duration // [layers+1]
}

// Stats say how a request was served.
type Stats struct {
	Queue       time.Duration // until the first step with a token of it
	Cached      int           // tokens of the prompt that the first answer found the states of
	Preemptions int
}

// answers is how many are wanted. Where nothing is chosen, the prompt is run once.
func (r *Request) answers() int {
	if r.Tokens == 0 {
		return 1
	}
	return max(1, r.Choices)
}

// total is how many tokens an answer runs.
func (r *Request) total() int { return len(r.Prompt) + max(0, r.Tokens-1) }

// wide says that results hold on to the memory of their step.
func (r *Request) wide() bool { return r.Want&(plan.WantLogits|plan.WantHidden) != 0 }

// check refuses what cannot be run, or what would make a whole step fail, and with
// it other requests.
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

// adjustments are what the sampling of r's answers begins with: biases that are numbers,
// and what it needs to know of the prompt.
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
