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

// Sampling are the parameters by which the next token is sampled. The zero Sampling is greedy: it
// selects the most likely token. [Generation.LogitBias] and the penalties come first and apply to
// greedy sampling too. The other parameters apply in the order of the fields.
type Sampling struct {
	// RepetitionPenalty applies to tokens that are in the prompt or the answer. It divides their
	// positive logits and multiplies their negative ones. 0 and 1 disable it.
	RepetitionPenalty float32
	// FrequencyPenalty is subtracted from a token's logit once for each time that the token is in
	// the answer. PresencePenalty is subtracted once if the token is in the answer.
	FrequencyPenalty, PresencePenalty float32

	// Temperature divides the logits. 0 is greedy.
	Temperature float32
	// TopK keeps the k most likely tokens. 0 keeps all.
	TopK int
	// Typical (locally typical sampling) keeps the tokens whose information content is closest to
	// the entropy of the distribution: the fewest whose probabilities add up to Typical. 0 keeps
	// all.
	Typical float32
	// TopP (nucleus sampling) keeps the fewest most likely tokens whose probabilities add up to
	// TopP. 0 keeps all.
	TopP float32
	// MinP keeps tokens whose probability is at least MinP times that of the most likely token. 0
	// keeps all.
	MinP float32
	// Seed seeds the random numbers. The same request and seed give the same tokens.
	Seed uint64
}

func (s *Sampling) params() sample.Params {
	return sample.Params{
		Repetition: s.RepetitionPenalty, Frequency: s.FrequencyPenalty, Presence: s.PresencePenalty,
		Temperature: s.Temperature, TopK: s.TopK, Typical: s.Typical, TopP: s.TopP, MinP: s.MinP, Seed: s.Seed,
	}
}

// Generation has the settings that [Request] and [ChatRequest] share.
type Generation struct {
	Sampling
	// MaxTokens is the largest number of tokens of an answer, including an end token. If nil, the
	// answer may fill the context. The expression new(100) makes a value.
	MaxTokens *int
	// MaxTime, if not 0, limits the time that an answer takes, measured from its first token. The
	// first token after this time ends the answer with [FinishLength], but only once the text has
	// a line break.
	MaxTime time.Duration
	// MinTokens is the number of tokens before which neither the model's end tokens nor StopTokens
	// are sampled. A stop string can still end the answer earlier.
	MinTokens int
	// Stop has texts that end the answer. The text of the answer ends before the stop string.
	Stop []string
	// StopTokens has token ids that end the answer, in addition to the model's end tokens.
	StopTokens []int32
	// IgnoreEnd continues the answer after the model's end tokens.
	IgnoreEnd bool
	// LogitBias is added to the logits of tokens, by token id. -Inf forbids a token.
	LogitBias map[int32]float32
	// Grammar, if not nil, constrains the text of the answer. In a conversation it does not
	// constrain reasoning and tool calls. The text of an answer that ends with [FinishLength] is
	// the beginning of a text of the grammar.
	Grammar *Grammar
	// Mask, if not nil, is called before each token is sampled, while the model computes the
	// logits. choice is the number of the answer and chosen its tokens so far. Mask sets bit id%32
	// of mask[id/32] for every id that may come next; all bits are zero when it is called. An
	// error from Mask ends the request. Mask is called from another goroutine; calls do not
	// overlap, and there are none after the loop over the events has ended.
	Mask func(choice int, chosen []int32, mask []uint32) error
	// Choices is the number of answers, at most 1024; 0 means 1. [Event.Choice] tells them apart.
	// They share the prefill of the prompt. Each answer depends only on the request, the seed and
	// its number, so the first one equals the answer to the same request with one choice.
	Choices int
	// LogProbs, if not nil, asks for [Event.LogProbs]: the log-probability of each token of the
	// answer, and of the *LogProbs most likely tokens at its position, at most 256.
	LogProbs *int
	// PromptLogProbs, if not nil, asks for [Event.PromptLogProbs]: the same for the tokens of the
	// prompt. If *MaxTokens is 0, no token is generated.
	PromptLogProbs *int
	// LayerTimes asks for [Event.LayerTimes]. Measuring makes steps slower, also for the other
	// requests in the same step.
	LayerTimes bool
	// SpeculativeTokens, if not nil, is the most tokens that are proposed for an answer in one
	// step, at most what [Options.SpeculativeTokens] says; 0 proposes none.
	SpeculativeTokens *int
	// Priority orders requests. Requests with a higher priority start first, and keep their memory
	// if there is not enough for all running requests.
	Priority int
	// Salt separates requests in the KV cache. A request reuses only cached pages of requests with
	// the same Salt. Requests with different salts take turns in the queue.
	Salt string
}

// A Request asks for the continuation of a text. At most one of Prompt, PromptTokens, Infill and
// Prepared may be set.
type Request struct {
	// Prompt is the text to continue. The tokenizer adds its usual tokens, such as a token for the
	// beginning of a text.
	Prompt string
	// Special makes special tokens match in Prompt. Leave it false for untrusted text, in which
	// the name of a special token is plain text.
	Special bool
	// Plain leaves out the tokens that the tokenizer adds to every text.
	Plain bool
	// PromptTokens are token ids to continue, exactly as they are.
	PromptTokens []int32
	// Infill is a text with a gap to fill.
	Infill *Infill
	// Prepared is a prompt from [Model.Prompt] or [Model.ChatPrompt].
	Prepared *Prompt

	Generation
}

// A ChatRequest asks for the next message of a conversation. The model's chat template turns the
// conversation into a prompt.
type ChatRequest struct {
	Messages []chat.Message
	Tools    []chat.Tool
	// Continue makes the answer continue the last message, which must be an assistant's message
	// without tool calls, instead of being a new message. It excludes an Effort other than "none",
	// a positive ThinkingTokens and a required tool call.
	Continue bool
	// ToolChoice says whether the answer may or must call Tools. The arguments of a call match the
	// schema of its tool. If a schema cannot be enforced, the request fails if the tool is Strict;
	// otherwise the arguments are any JSON object.
	ToolChoice ToolChoice
	SingleCall bool // allow at most one call
	// Effort is how much the model reasons before it answers: "none", "minimal", "low", "medium",
	// "high" or "xhigh". It sets the template's variable reasoning_effort, if there is one, and
	// the variable that turns reasoning on or off, if there is one. It is an error if the template
	// supports neither. If empty, the template decides.
	Effort string
	// ThinkingTokens, if not nil, limits the tokens of the reasoning before the answer. After that
	// many tokens the template's end of reasoning is inserted.
	ThinkingTokens *int
	// Documents and Vars are JSON values for the template: Documents are its documents, and Vars
	// are further variables by name, for example "enable_thinking".
	Documents []json.RawMessage
	Vars      map[string]json.RawMessage
	// Now is the time that the template sees as the current time. If zero, it is time.Now().
	Now time.Time

	Generation
}

// Limits of a request.
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
		return bad("MaxTokens is %d; want 0 or more", *g.MaxTokens)
	case g.MaxTime < 0:
		return bad("MaxTime is %v; want 0 or more", g.MaxTime)
	case g.MinTokens < 0:
		return bad("MinTokens is %d; want 0 or more", g.MinTokens)
	case g.MaxTokens != nil && g.MinTokens > *g.MaxTokens:
		return bad("MinTokens is %d, above MaxTokens, which is %d; raise MaxTokens or lower MinTokens", g.MinTokens, *g.MaxTokens)
	case g.Choices < 0 || g.Choices > maxChoices:
		return bad("%d choices; want 1 to %d, or 0 for 1", g.Choices, maxChoices)
	}
	for _, n := range []*int{g.LogProbs, g.PromptLogProbs} {
		if n != nil && (*n < 0 || *n > maxLogProbs) {
			return bad("log-probabilities of the %d likeliest tokens; want 0 to %d", *n, maxLogProbs)
		}
	}
	if n := g.SpeculativeTokens; n != nil && (*n < 0 || *n > MaxSpeculativeTokens) {
		return bad("%d proposed tokens; want 0 to %d", *n, MaxSpeculativeTokens)
	}
	for i, s := range g.Stop {
		if s == "" {
			return bad("stop string %d is empty; leave it out", i)
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

// bias returns LogitBias in ascending order of token ids.
func (g *Generation) bias() []sample.Adjustment {
	list := make([]sample.Adjustment, 0, len(g.LogitBias))
	for _, id := range slices.Sorted(maps.Keys(g.LogitBias)) {
		list = append(list, sample.Adjustment{Token: id, Bias: g.LogitBias[id]})
	}
	return list
}
