package realizar

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/sample"
)

// Sampling says how the next token is chosen. The zero Sampling is greedy: the
// likeliest token, always. The parameters apply in the order of the fields, the
// penalties and [Generation.LogitBias] before them to greedy choices too.
type Sampling struct {
	// RepetitionPenalty divides the positive logits of tokens that are in the prompt
	// or the answer, and multiplies their negative ones; 0 and 1: none.
	RepetitionPenalty float32
	// FrequencyPenalty is subtracted from a token's logit as often as the answer has
	// the token, PresencePenalty once where it has it at all.
	FrequencyPenalty, PresencePenalty float32

	Temperature float32 // divides the logits; 0: greedy
	TopK        int     // keeps the k likeliest tokens; 0: all
	Typical     float32 // keeps the fewest tokens, of about the information to be expected, whose probabilities add up to this; 0: all
	TopP        float32 // keeps the fewest likeliest tokens whose probabilities add up to this; 0: all
	MinP        float32 // keeps tokens at least this many times as likely as the likeliest; 0: all
	Seed        uint64  // the same seed chooses the same tokens
}

func (s *Sampling) params() sample.Params {
	return sample.Params{
		Repetition: s.RepetitionPenalty, Frequency: s.FrequencyPenalty, Presence: s.PresencePenalty,
		Temperature: s.Temperature, TopK: s.TopK, Typical: s.Typical, TopP: s.TopP, MinP: s.MinP, Seed: s.Seed,
	}
}

// Generation are the settings that both kinds of request share.
type Generation struct {
	Sampling
	// MaxTokens ends the answer after so many tokens, an end token included.
	// nil: when the context is full. new(100) makes one.
	MaxTokens *int
	// MaxTime, where not 0, ends the answer as MaxTokens does, with the first token that
	// comes so long after its first one, once its text has a line break.
	MaxTime time.Duration
	// MinTokens keeps the model from ending its answer before so many tokens: neither
	// its end tokens nor StopTokens are chosen before. A stop string ends it all the
	// same.
	MinTokens int
	// Stop are texts that end the answer; they are not part of it.
	Stop []string
	// StopTokens are ids that end the answer beside the model's own end tokens.
	StopTokens []int32
	// IgnoreEnd goes on past the model's own end tokens.
	IgnoreEnd bool
	// LogitBias is added to the logits of tokens, by id. -Inf forbids one.
	LogitBias map[int32]float32
	// Grammar, where not nil, is what the answer must be. In a conversation it binds what
	// the model says, and neither its thought nor its calls of tools. An answer that ends
	// for its length is the beginning of a text of the grammar.
	Grammar *Grammar
	// Mask, where not nil, is called before each token is chosen, while the model reads
	// the token before, with the number of the answer and the tokens that it has so far. It
	// sets bit id%32 of mask[id/32] for every id that may come next; all are zero before.
	// Its error ends the request. It is called on a goroutine of its own, once at a time,
	// and not after the loop over the events has ended.
	Mask func(choice int, chosen []int32, mask []uint32) error
	// Choices is how many answers to choose, each as [Event.Choice] numbers them. They
	// share the prompt. The first is the one that a request for one answer has, and
	// each of them depends on the request, the seed and its number alone. 0: 1.
	Choices int
	// LogProbs, where not nil, asks for the log-probability of each token of the
	// answer, and of so many of the likeliest in its place: [Event.LogProbs].
	LogProbs *int
	// PromptLogProbs asks for the same of the prompt's tokens:
	// [Event.PromptLogProbs]. With MaxTokens of 0 they are all that comes.
	PromptLogProbs *int
	// LayerTimes asks for the time that the model's layers take: [Event.LayerTimes].
	// Measuring it makes steps longer, also for the requests that share them.
	LayerTimes bool
	// Priority lets requests of higher ones go first, and keep their place in memory
	// where there is not enough of it for all.
	Priority int
	// Salt keeps what the cache holds apart: a request finds again only what those of
	// an equal Salt left there. Those of unlike ones are served in turn.
	Salt string
}

// A Request asks for the continuation of a text.
type Request struct {
	// Prompt is the text. The tokenizer adds what it adds to every text, such
	// as a token for the beginning.
	Prompt string
	// Special lets special tokens match in Prompt. Leave it false for text that
	// users typed: what looks like a special token is plain text then.
	Special bool
	// Plain leaves out what the tokenizer adds to every text.
	Plain bool
	// PromptTokens are ids to continue as they are, instead of Prompt.
	PromptTokens []int32
	// Infill is a text with a gap to fill, instead of Prompt.
	Infill *Infill
	// Prepared is what [Model.Prompt] or [Model.ChatPrompt] made, instead of the fields
	// above.
	Prepared *Prompt

	Generation
}

// A ChatRequest asks for the next message of a conversation, in the form of the
// model's own chat template.
type ChatRequest struct {
	Messages []chat.Message
	Tools    []chat.Tool
	// Continue has the answer go on with the last message, an assistant's without calls of
	// tools, in place of being one of its own. Its thought is past then, so that none can be
	// asked for, nor can a call be required.
	Continue bool
	// ToolChoice says whether Tools are called. Calls are held to the schemas of the tools.
	ToolChoice ToolChoice
	SingleCall bool // at most one call
	// Effort is how much thought the answer is worth: "none", "minimal", "low", "medium",
	// "high" or "xhigh"; "": what the chat template does by itself. A template that knows
	// degrees of thought is told it, one that can switch thought on or off does so. What the
	// template cannot do is an error.
	Effort string
	// ThinkingTokens, where not nil, bounds the thought before the answer: after so many
	// tokens it is ended by the mark that the model ends it with.
	ThinkingTokens *int
	// Documents and Vars are given to templates that know them, as JSON; Vars
	// are by name, "enable_thinking" for example.
	Documents []json.RawMessage
	Vars      map[string]json.RawMessage
	// Now is what the template takes for the present; zero: the present.
	Now time.Time

	Generation
}

// The most that a request may ask for.
const (
	maxChoices  = 1024
	maxLogProbs = 256
)

func (g *Generation) validate(vocab int) error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("realizar: %w: %w", ErrRequest, fmt.Errorf(format, a...))
	}
	p := g.params()
	if err := p.Validate(); err != nil {
		return bad("%w", err)
	}
	switch {
	case g.MaxTokens != nil && *g.MaxTokens < 0:
		return bad("at most %d tokens; want 0 or more", *g.MaxTokens)
	case g.MaxTime < 0:
		return bad("a time of %v; want 0 or more", g.MaxTime)
	case g.MinTokens < 0:
		return bad("at least %d tokens; want 0 or more", g.MinTokens)
	case g.MaxTokens != nil && g.MinTokens > *g.MaxTokens:
		return bad("at least %d tokens, but at most %d; raise MaxTokens or lower MinTokens", g.MinTokens, *g.MaxTokens)
	case g.Choices < 0 || g.Choices > maxChoices:
		return bad("%d choices; want 1 to %d, or 0 for 1", g.Choices, maxChoices)
	}
	for _, n := range []*int{g.LogProbs, g.PromptLogProbs} {
		if n != nil && (*n < 0 || *n > maxLogProbs) {
			return bad("log-probabilities of the %d likeliest tokens; want 0 to %d", *n, maxLogProbs)
		}
	}
	for i, s := range g.Stop {
		if s == "" {
			return bad("stop string %d is empty", i)
		}
	}
	for _, a := range g.bias() {
		switch {
		case a.Token < 0 || int(a.Token) >= vocab:
			return bad("a bias for token %d, which is outside the vocabulary of %d", a.Token, vocab)
		case !(a.Bias <= math.MaxFloat32):
			return bad("a bias of %v for token %d; want a finite number, or -Inf to forbid the token", a.Bias, a.Token)
		}
	}
	return checkTokens("stop token", g.StopTokens, vocab)
}

// bias is LogitBias as a choice takes it.
func (g *Generation) bias() []sample.Adjustment {
	list := make([]sample.Adjustment, 0, len(g.LogitBias))
	for _, id := range slices.Sorted(maps.Keys(g.LogitBias)) {
		list = append(list, sample.Adjustment{Token: id, Bias: g.LogitBias[id]})
	}
	return list
}
