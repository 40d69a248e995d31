package realizar

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/grammar/jsonschema"
	"github.com/realizar/realizar/internal/turn"
	"github.com/realizar/realizar/tokenizer"
)

// A ToolChoice says whether an answer may or must call tools.
type ToolChoice struct {
	Mode ToolMode
	Name string // name of the tool, for ToolNamed
}

// A ToolMode is the kind of a [ToolChoice].
type ToolMode uint8

// The modes.
const (
	ToolAuto     ToolMode = iota // the model decides
	ToolNone                     // no calls; the template does not see the tools
	ToolRequired                 // at least one call, and no text
	ToolNamed                    // at least one call, all of the tool Name, and no text
)

// A conversation says how the model's turn in a conversation is written and what the request allows
// in it. A nil conversation is plain text.
type conversation struct {
	model   *Model
	form    *shownForm
	request *ChatRequest
	tail    string // end of the prompt that is part of the model's turn
	calls   bool   // the turn may have tool calls
}

// A shownForm is the form of turns that a chat template shows.
type shownForm struct {
	turn.Form
	specials map[int32]string // special tokens that the parser reads as text
}

// special reports whether text is a special token of the model.
func (m *Model) special(text string) bool {
	id, ok := m.tok.ID(text)
	return ok && m.tok.IsSpecial(id)
}

// form returns the form of turns of the chat template for requests with or without tools. It is nil
// if the template does not show the form.
func (m *Model) form(tools bool) (*shownForm, error) {
	t, err := m.template(tools)
	if err != nil {
		return nil, wrap(err)
	}
	m.formsMutex.Lock()
	defer m.formsMutex.Unlock()
	f, ok := m.forms[t]
	if !ok {
		if found, err := turn.Find(t, m.specialNames); err == nil && m.tok != nil {
			f = &shownForm{found, map[int32]string{}}
			for _, text := range f.Specials(m.special) {
				if id, ok := m.tok.ID(text); ok {
					f.specials[id] = text
				}
			}
		}
		if m.forms == nil {
			m.forms = map[*chat.Template]*shownForm{}
		}
		m.forms[t] = f
	}
	return f, nil
}

// converse returns the conversation of r, whose prompt is text.
func (m *Model) converse(r *ChatRequest, text chat.Text) (*conversation, error) {
	f, err := m.form(len(r.Tools) > 0)
	if err != nil {
		return nil, err
	}
	c := &conversation{model: m, form: f, request: r, calls: len(r.Tools) > 0 && r.ToolChoice.Mode != ToolNone}
	must := r.ToolChoice.Mode == ToolRequired || r.ToolChoice.Mode == ToolNamed
	switch {
	case must && len(r.Tools) == 0:
		return nil, fmt.Errorf("realizar: %w: a tool call is required, but there are no tools", ErrRequest)
	case must && (f == nil || !f.HasCalls()):
		return nil, fmt.Errorf("realizar: %w: a tool call cannot be required: the model's chat template does not show how calls are written", ErrRequest)
	case r.ThinkingTokens != nil && (f == nil || !f.HasReasoning()):
		return nil, fmt.Errorf("realizar: %w: reasoning cannot be limited: the model's chat template does not show how reasoning is marked", ErrRequest)
	case f == nil:
		return nil, nil
	}
	if r.ToolChoice.Mode == ToolNamed {
		known := false
		for _, t := range r.Tools {
			known = known || t.Name == r.ToolChoice.Name
		}
		if !known {
			return nil, fmt.Errorf("realizar: %w: a call of %q is required, which is not in the tools", ErrRequest, r.ToolChoice.Name)
		}
	}
	if !r.Continue {
		c.tail = f.Tail(text.String())
	}
	return c, nil
}

// parser returns a parser of an answer.
func (c *conversation) parser() *turn.Parser {
	return c.form.NewParser(turn.ParserOptions{Tools: c.request.Tools, Calls: c.calls, Tail: c.tail, Continues: c.request.Continue, Special: c.model.special})
}

// grammar returns the grammar that constrains the turn, or nil.
func (c *conversation) grammar(g *Generation) (*compiledGrammar, error) {
	calls := c.calls && c.form.HasCalls()
	if !calls && g.Grammar == nil {
		return nil, nil
	}
	return c.model.turns.get(c.key(g.Grammar), g.Grammar, func() (*compiledGrammar, error) {
		content, err := g.Grammar.compiled()
		if err != nil {
			return nil, err
		}
		return newCompiled(func(b *grammar.Builder) (grammar.Symbol, error) { return c.symbol(b, content, calls) }, content)
	})
}

// symbol returns the symbol of the turns that the request allows.
func (c *conversation) symbol(b *grammar.Builder, content *compiledGrammar, calls bool) (grammar.Symbol, error) {
	r := turn.GrammarRequest{Tail: c.tail, Continues: c.request.Continue, Special: c.model.special, Choice: turn.ChoiceNone, Schema: schemaSymbol}
	if content != nil {
		r.Content = content.symbol
	}
	if calls {
		r.Choice, r.Parallel = turn.ChoiceAuto, !c.request.SingleCall
		for _, t := range c.request.Tools {
			r.Tools = append(r.Tools, turn.Tool{Tool: t, Strict: t.Strict})
		}
		switch c.request.ToolChoice.Mode {
		case ToolRequired:
			r.Choice = turn.ChoiceRequired
		case ToolNamed:
			r.Choice, r.Name = turn.ChoiceRequired, c.request.ToolChoice.Name
		}
	}
	return c.form.Grammar(b, r)
}

// schemaSymbol returns the symbol of a schema's JSON texts in a turn.
func schemaSymbol(b *grammar.Builder, schema json.RawMessage) (grammar.Symbol, error) {
	return jsonschema.Compile(b, schema, jsonschema.Options{})
}

// bounded reports whether the turn's reasoning is limited.
func (c *conversation) bounded() bool { return c != nil && c.request.ThinkingTokens != nil }

// thought returns the limit of one answer's reasoning, or nil.
func (c *conversation) thought() *thought {
	if !c.bounded() {
		return nil
	}
	end := c.model.tok.EncodeSpans([]tokenizer.Span{{Text: c.form.Reasoning.End, Special: true}}, false)
	return &thought{reader: newReader(c), left: *c.request.ThinkingTokens, end: end}
}

// A thought limits the tokens of an answer's reasoning. A nil thought is no limit.
type thought struct {
	reader *reader
	left   int     // tokens left
	end    []int32 // tokens that end the reasoning
	ended  bool
}

// take counts a token of the answer.
func (t *thought) take(id int32) {
	if t == nil || t.ended {
		return
	}
	t.reader.push(id)
	switch {
	case t.reader.parser.InReasoning():
		t.left--
	case t.reader.spoke:
		t.ended = true
	}
}

// limit returns how many tokens of reasoning are left, unless there is no limit or the reasoning is
// over.
func (t *thought) limit() (left int, limited bool) {
	if t == nil || t.ended {
		return 0, false
	}
	return t.left, true
}

// over returns the tokens that end the reasoning if it has no tokens left.
func (t *thought) over() []int32 {
	if t == nil || t.ended || t.left > 0 || !t.reader.parser.InReasoning() {
		return nil
	}
	t.ended = true
	return append([]int32(nil), t.end...)
}

// newCallID returns a random id of a tool call. It has 9 letters and digits, as Mistral's templates
// require.
func newCallID() string { return rand.Text()[:9] }

// A reader turns the tokens of an answer into the events of its turn.
type reader struct {
	text    *tokenizer.Stream
	parser  *turn.Parser
	special map[int32]string // special tokens that the parser reads as text
	spoke   bool             // there was text or a call
}

func newReader(c *conversation) *reader {
	return &reader{text: c.model.tok.NewStream(true), parser: c.parser(), special: c.form.specials}
}

// push returns the events of a token.
func (r *reader) push(id int32) []turn.Event {
	text, ok := r.special[id]
	if !ok {
		return r.saw(r.parser.Write(r.text.Push(id), false))
	}
	events := r.parser.Write(r.text.Flush(), false)
	return r.saw(append(events, r.parser.Write(text, true)...))
}

// last returns the events of the token that ends the answer.
func (r *reader) last(id int32) []turn.Event {
	if _, ok := r.special[id]; ok {
		return r.push(id)
	}
	return nil
}

// end returns the events that were held back. cut says that the turn is incomplete.
func (r *reader) end(cut bool) []turn.Event {
	events := r.parser.Write(r.text.Flush(), false)
	if cut {
		return r.saw(append(events, r.parser.Cut()...))
	}
	return r.saw(append(events, r.parser.Close()...))
}

func (r *reader) saw(events []turn.Event) []turn.Event {
	for i := range events {
		r.spoke = r.spoke || events[i].Kind != turn.Reasoning && strings.TrimSpace(events[i].Text) != ""
	}
	return events
}
