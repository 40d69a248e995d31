package realizar

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/sample"
)

// Sampling says how the next token is chosen. The zero Sampling is greedy: the
// likeliest token, always. The parameters apply in the order of the fields.
type Sampling struct {
	Temperature float32 // divides the logits; 0: greedy
	TopK        int     // keeps the k likeliest tokens; 0: all
	TopP        float32 // keeps the fewest likeliest tokens whose probabilities add up to this; 0: all
	MinP        float32 // keeps tokens at least this many times as likely as the likeliest; 0: all
	Seed        uint64  // the same seed chooses the same tokens
}

func (s *Sampling) params() sample.Params {
	return sample.Params{Temperature: s.Temperature, TopK: s.TopK, TopP: s.TopP, MinP: s.MinP, Seed: s.Seed}
}

// Generation are the settings that both kinds of request share.
type Generation struct {
	Sampling
	// MaxTokens ends the answer after so many tokens, an end token included.
	// nil: when the context is full. new(100) makes one.
	MaxTokens *int
	// Stop are texts that end the answer; they are not part of it.
	Stop []string
	// StopTokens are ids that end the answer beside the model's own end tokens.
	StopTokens []int32
	// IgnoreEnd goes on past the model's own end tokens.
	IgnoreEnd bool
}

// A Request asks for the continuation of a text.
type Request struct {
	// Prompt is the text. The tokenizer adds what it adds to every text, such
	// as a token for the beginning.
	Prompt string
	// Special lets special tokens match in Prompt. Leave it false for text that
	// users typed: what looks like a special token is plain text then.
	Special bool
	// PromptTokens are ids to continue as they are, instead of Prompt.
	PromptTokens []int32

	Generation
}

// A ChatRequest asks for the next message of a conversation, in the form of the
// model's own chat template.
type ChatRequest struct {
	Messages []chat.Message
	Tools    []chat.Tool
	// Documents and Vars are given to templates that know them, as JSON; Vars
	// are by name, "enable_thinking" for example.
	Documents []json.RawMessage
	Vars      map[string]json.RawMessage
	// Now is what the template takes for the present; zero: the present.
	Now time.Time

	Generation
}

func (g *Generation) validate(vocab int) error {
	p := g.params()
	if err := p.Validate(); err != nil {
		return fmt.Errorf("realizar: %w: %w", ErrRequest, err)
	}
	if g.MaxTokens != nil && *g.MaxTokens < 0 {
		return fmt.Errorf("realizar: %w: at most %d tokens; want 0 or more", ErrRequest, *g.MaxTokens)
	}
	for i, s := range g.Stop {
		if s == "" {
			return fmt.Errorf("realizar: %w: stop string %d is empty", ErrRequest, i)
		}
	}
	return checkTokens("stop token", g.StopTokens, vocab)
}

func checkTokens(what string, ids []int32, vocab int) error {
	for i, id := range ids {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("realizar: %w: %s %d at index %d is outside the vocabulary of %d", ErrRequest, what, id, i, vocab)
		}
	}
	return nil
}
