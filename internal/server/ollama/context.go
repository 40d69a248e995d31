package ollama

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/budget"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
	"github.com/realizar/realizar/internal/server/jsontext"
	"github.com/realizar/realizar/tokenizer"
)

// A context is a conversation as tokens: the text of the chat template up to the end of the last
// answer. What the template writes after an answer is found by rendering a conversation with a
// random answer and cutting the text behind it. So prompts made from contexts equal those made from
// messages.

// A memory collects what the context of an answer consists of.
type memory struct {
	prompt       []int32               // of the answer
	text         []byte                // of the answer
	conversation *realizar.ChatRequest // nil if no template is used
	before       []int32               // the context in the request
}

// add adds a piece of the answer's text.
func (m *memory) add(x *server.Exchange, text string) error {
	if err := x.Reserve(2 * len(text)); err != nil {
		return err
	}
	m.text = append(m.text, text...)
	return nil
}

// tokens returns the context, or nil if the chat template cannot continue the conversation.
func (m *memory) tokens(x *server.Exchange) ([]int32, error) {
	head := m.prompt
	if c := m.conversation; c != nil {
		mine, next, other := rand.Text(), rand.Text(), chat.Message{Role: "user", Content: "a"}
		r := realizar.ChatRequest{Effort: c.Effort}
		if len(m.before) > 0 {
			r.Messages = answered(mine)
		} else {
			mine = ""
		}
		r.Messages = slices.Concat(r.Messages, c.Messages, []chat.Message{{Role: "assistant", Content: next}, other})
		p, err := x.ChatPrompt(&r, promptNames)
		text, ok := cut(p.Text, mine, next)
		switch {
		case templateFails(err), err == nil && !ok:
			return nil, nil
		case err != nil:
			return nil, err
		}
		if head, err = encode(x, text); err != nil {
			return nil, err
		}
		if head = slices.Concat(m.before, head); mine == "" {
			head = begun(x.Model().Model, head)
		}
	}
	ids, err := encode(x, chat.Text{{Text: string(m.text), Caller: true}})
	return slices.Concat(head, ids), err
}

// answered returns a conversation whose answer is text.
func answered(text string) []chat.Message {
	return []chat.Message{{Role: "user", Content: "a"}, {Role: "assistant", Content: text}}
}

// resume returns the prompt of c after the context before.
func resume(x *server.Exchange, c *realizar.ChatRequest, before []int32) (*realizar.Prompt, error) {
	mark := rand.Text()
	r := *c
	r.Messages = slices.Concat(answered(mark), c.Messages)
	p, err := x.ChatPrompt(&r, promptNames)
	if err != nil {
		return nil, err
	}
	text, ok := cut(p.Text, mark, "")
	if !ok {
		return nil, fields.Invalid("context", "context cannot be continued: the model's chat template rewrites answers; send the messages to /api/chat")
	}
	ids, err := encode(x, text)
	if err != nil {
		return nil, server.OfField("prompt", err)
	}
	if err := x.Reserve(4 * (len(before) + len(ids))); err != nil {
		return nil, err
	}
	p.Text, p.Tokens = text, slices.Concat(before, ids)
	return &p, nil
}

// templateFails reports whether err says that the chat template cannot render a conversation.
func templateFails(err error) bool {
	return errors.Is(err, chat.ErrRefused) || errors.Is(err, chat.ErrRender) || errors.Is(err, chat.ErrLimit)
}

// cut returns the part of text between the caller's texts after and before. An empty after means
// the beginning, an empty before the end.
func cut(text chat.Text, after, before string) (chat.Text, bool) {
	var out chat.Text
	inside := after == ""
	for _, s := range text {
		if !inside && s.Caller {
			if _, rest, ok := strings.Cut(s.Text, after); ok {
				inside, s.Text = true, rest
			}
		}
		if !inside {
			continue
		}
		if before != "" && s.Caller {
			if first, _, ok := strings.Cut(s.Text, before); ok {
				return append(out, chat.Span{Text: first, Caller: true}), true
			}
		}
		out = append(out, s)
	}
	return out, inside && before == ""
}

// encode returns the tokens of a text, without those that the tokenizer adds to every text.
func encode(x *server.Exchange, text chat.Text) ([]int32, error) {
	tok, err := x.Model().Tokenizer()
	if err != nil {
		return nil, err
	}
	spans := make([]tokenizer.Span, len(text))
	for i, s := range text {
		spans[i] = tokenizer.Span{Text: s.Text, Special: !s.Caller}
	}
	return tok.EncodeWithin(x.Work(), limits(x.Work()), spans, false)
}

func limits(ctx context.Context) (l tokenizer.Limits) {
	if account := budget.Of(ctx); account != nil {
		l.Reserve = account.ReserveInt
	}
	return l
}

// begun returns ids with the BOS token in front, if the model adds one and ids lack it.
func begun(m *realizar.Model, ids []int32) []int32 {
	tok, err := m.Tokenizer()
	if err != nil {
		return ids
	}
	if bos, ok := tok.BOS(); ok && tok.AddsBOS() && (len(ids) == 0 || ids[0] != bos) {
		return slices.Insert(ids, 0, bos)
	}
	return ids
}

// appendIDs appends the context if there is one.
func appendIDs(b []byte, ids []int32) []byte {
	if len(ids) == 0 {
		return b
	}
	b = append(b, `,"context":[`...)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendInt(b, int(id))
	}
	return append(b, ']')
}
