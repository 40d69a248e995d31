package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strings"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// thinking is what a request says about thoughts.
type thinking struct {
	given   bool
	kind    string
	budget  *int
	display string
}

var thinkingFields = fields.List[thinking]{
	fields.New("type", `"enabled", "adaptive" or "disabled"`, "", func(t *thinking, v json.RawMessage) error {
		switch t.given = true; string(v) {
		case `"enabled"`, `"adaptive"`, `"disabled"`:
			return fields.ReadText(v, &t.kind)
		}
		return fields.ErrWrong
	}),
	fields.New("budget_tokens", "a whole number from 1", "no bound", func(t *thinking, v json.RawMessage) error {
		n, err := fields.ReadWhole(v, 1, math.MaxInt32)
		t.given, t.budget = true, &n
		return err
	}),
	fields.New("display", `"summarized", which is the whole thought, or "omitted"`, `"summarized"`, func(t *thinking, v json.RawMessage) error {
		switch t.given = true; string(v) {
		case `"summarized"`, `"omitted"`:
			return fields.ReadText(v, &t.display)
		}
		return fields.ErrWrong
	}),
	fields.Ignored[thinking]("block_binding"),
}

// What the library is told where a request wants thoughts, or none. The degree is the one
// that templates take by themselves.
const (
	someThought = "medium"
	noThought   = "none"
)

// effortVariable is what chat templates call the degree of thought.
const effortVariable = "reasoning_effort"

// settleThinking settles how much the model thinks. A model that has no thoughts answers
// without one, as any may that is free to.
func (r *request) settleThinking(x *server.Exchange) error {
	t := &r.thinking
	switch {
	case t.given && t.kind == "":
		return fields.Missing("thinking.type")
	case t.kind == "disabled" && t.budget != nil:
		return fields.Invalid("thinking.budget_tokens", "thinking.budget_tokens bounds thoughts, and thinking.type is disabled; leave one out")
	case t.kind == "disabled" && r.chat.Continue: // the thought is past
		return nil
	case t.kind == "disabled":
		if r.chat.Effort = noThought; !r.suits(x, noThought) {
			r.chat.Effort, r.chat.ThinkingTokens = "", new(0) // it is ended where it begins
		}
		return nil
	case t.kind != "" && !r.chat.Continue && r.suits(x, someThought):
		r.chat.Effort, r.chat.ThinkingTokens = someThought, t.budget
	}
	if r.effort != "" {
		degree, _ := json.Marshal(r.effort)
		r.chat.Vars = map[string]json.RawMessage{effortVariable: degree}
	}
	return nil
}

// suits reports whether the chat template can do that effort.
func (r *request) suits(x *server.Exchange, effort string) bool {
	probe := realizar.ChatRequest{
		Messages: []chat.Message{{Role: "user", Content: "."}}, Tools: r.someTool(), Effort: effort,
	}
	_, err := x.ChatPrompt(&probe, r.names)
	return !errors.Is(err, realizar.ErrRequest)
}

// signature is that of a thought, which clients send back with it. It proves nothing:
// who sends a conversation may say what he likes in it. That of a thought which the client
// did not want to see holds the thought.
const signature = "realizar"

// appendSignature appends the signature of a thought, omitted or not.
func appendSignature(b, thought []byte, omitted bool) []byte {
	b = append(b, signature...)
	if !omitted {
		return b
	}
	return base64.RawURLEncoding.AppendEncode(append(b, '.'), thought)
}

// thought is that of a block, which may be in its signature.
func (b *block) thought() string {
	held, ok := strings.CutPrefix(b.signature, signature+".")
	if b.text != "" || !ok {
		return b.text
	}
	thought, err := base64.RawURLEncoding.DecodeString(held)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(thought), "\uFFFD")
}
