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

// thinking is the field thinking of a request.
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

// The efforts that the library gets to turn thinking on or off. Templates that know degrees default
// to medium.
const (
	someThought = "medium"
	noThought   = "none"
)

// effortVariable is the name of the effort in chat templates.
const effortVariable = "reasoning_effort"

// settleThinking sets how much the model thinks. A model without thinking answers without it.
func (r *request) settleThinking(x *server.Exchange) error {
	t := &r.thinking
	switch {
	case t.given && t.kind == "":
		return fields.Missing("thinking.type")
	case t.kind == "disabled" && t.budget != nil:
		return fields.Invalid("thinking.budget_tokens", "thinking.budget_tokens bounds thoughts, and thinking.type is disabled; leave one out")
	case t.kind == "disabled" && r.chat.Continue: // the answer has begun, so thinking is over
		return nil
	case t.kind == "disabled":
		if r.chat.Effort = noThought; !r.suits(x, noThought) {
			r.chat.Effort, r.chat.ThinkingTokens = "", new(0) // thinking is ended where it begins
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

// suits reports whether the chat template accepts the effort.
func (r *request) suits(x *server.Exchange, effort string) bool {
	probe := realizar.ChatRequest{
		Messages: []chat.Message{{Role: "user", Content: "."}}, Tools: r.someTool(), Effort: effort,
	}
	_, err := x.ChatPrompt(&probe, r.names)
	return !errors.Is(err, realizar.ErrRequest)
}

// signature begins the signature of a thinking block, which clients send back with the block. It
// proves nothing: a client may send any conversation. If the client asked to omit the thinking, the
// signature contains it.
const signature = "realizar"

// appendSignature appends the signature of a thinking block.
func appendSignature(b, thought []byte, omitted bool) []byte {
	b = append(b, signature...)
	if !omitted {
		return b
	}
	return base64.RawURLEncoding.AppendEncode(append(b, '.'), thought)
}

// thought returns a block's thinking, from its text or its signature.
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
