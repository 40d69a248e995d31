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

// A ToolChoice says whether an answer calls tools.
type ToolChoice struct {
	Mode ToolMode
	Name string // of the tool, for ToolNamed
}

// A ToolMode is a kind of [ToolChoice].
type ToolMode uint8

// The modes.
const (
	ToolAuto     ToolMode = iota // as the model likes
	ToolNone                     // no calls
	ToolRequired                 // a call at least, and no text
	ToolNamed                    // calls of one tool, and no text
)

// A conversation is how the model's turn in a conversation is written, and what the
// request wants of it. A nil one is text alone.
type conversation struct {
	model   *Model
	form    *shownForm
	request *ChatRequest
	tail    string // of the prompt, which belongs to the turn
	calls   bool   // are looked for
}

// A shownForm is how the turns of a template are written.
type shownForm struct {
	turn.Form
	specials map[int32]string // tokens that a parser reads by their text
}

// special reports whether the model has a special token of this text.
func (m *Model) special(text string) bool {
	id, ok := m.tok.ID(text)
	return ok && m.tok.IsSpecial(id)
}

// form is how the turns of the template are written that a request with tools, or without,
// is rendered by; nil where the template does not show it.
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

// converse is the conversation of r, whose prompt is text.
func (m *Model) converse(r *ChatRequest, text chat.Text) (*conversation, error) {
	f, err := m.form(len(r.Tools) > 0)
	if err != nil {
		return nil, err
	}
	c := &conversation{model: m, form: f, request: r, calls: len(r.Tools) > 0 && r.ToolChoice.Mode != ToolNone}
	must := r.ToolChoice.Mode == ToolRequired || r.ToolChoice.Mode == ToolNamed
	switch {
	case must && len(r.Tools) == 0:
		return nil, fmt.Errorf("realizar: %w: a call of a tool is required, and there are no tools", ErrRequest)
	case must && (f == nil || !f.HasCalls()):
		return nil, fmt.Errorf("realizar: %w: a call of a tool cannot be required: the model's chat template does not show how calls are written", ErrRequest)
	case r.ThinkingTokens != nil && (f == nil || !f.HasReasoning()):
		return nil, fmt.Errorf("realizar: %w: a thought cannot be bounded: the model's chat template does not show how thoughts are written", ErrRequest)
	case f == nil:
		return nil, nil
	}
	if r.ToolChoice.Mode == ToolNamed {
		known := false
		for _, t := range r.Tools {
			known = known || t.Name == r.ToolChoice.Name
		}
		if !known {
			return nil, fmt.Errorf("realizar: %w: a call of %q is required, which is none of the tools", ErrRequest, r.ToolChoice.Name)
		}
	}
	if !r.Continue {
		c.tail = f.Tail(text.String())
	}
	return c, nil
}

// parser reads an answer.
func (c *conversation) parser() *turn.Parser {
	return c.form.NewParser(turn.ParserOptions{Tools: c.request.Tools, Calls: c.calls, Tail: c.tail, Continues: c.request.Continue, Special: c.model.special})
}

// grammar is what binds the turn, or nil.
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

// symbol is that of the turns that the request allows.
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

// schemaSymbol is the JSON texts of a schema as a model's turn has them.
func schemaSymbol(b *grammar.Builder, schema json.RawMessage) (grammar.Symbol, error) {
	return jsonschema.Compile(b, schema, jsonschema.Options{})
}

// bounded reports whether the turn's thought is.
func (c *conversation) bounded() bool { return c != nil && c.request.ThinkingTokens != nil }

// thought is the bound of one answer's thought, or nil.
func (c *conversation) thought() *thought {
	if !c.bounded() {
		return nil
	}
	end := c.model.tok.EncodeSpans([]tokenizer.Span{{Text: c.form.Reasoning.End, Special: true}}, false)
	return &thought{reader: newReader(c), left: *c.request.ThinkingTokens, end: end}
}

// A thought counts the tokens of one. A nil one has no bound.
type thought struct {
	reader *reader
	left   int
	end    []int32 // what ends it
	ended  bool
}

// take goes on with a token of the answer.
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

// over is the tokens that end the thought, if it has none left.
func (t *thought) over() []int32 {
	if t == nil || t.ended || t.left > 0 || !t.reader.parser.InReasoning() {
		return nil
	}
	t.ended = true
	return append([]int32(nil), t.end...)
}

// newCallID makes the id of a call. It has the form that Mistral's templates insist on.
func newCallID() string { return rand.Text()[:9] }

// A reader turns the tokens of an answer into the events of its turn.
type reader struct {
	text    *tokenizer.Stream
	parser  *turn.Parser
	special map[int32]string // tokens that the parser reads
	spoke   bool             // there was text, or a call
}

func newReader(c *conversation) *reader {
	return &reader{text: c.model.tok.NewStream(true), parser: c.parser(), special: c.form.specials}
}

// push is what a token brings.
func (r *reader) push(id int32) []turn.Event {
	text, ok := r.special[id]
	if !ok {
		return r.saw(r.parser.Write(r.text.Push(id), false))
	}
	events := r.parser.Write(r.text.Flush(), false)
	return r.saw(append(events, r.parser.Write(text, true)...))
}

// last is what the token brings that ends the answer.
func (r *reader) last(id int32) []turn.Event {
	if _, ok := r.special[id]; ok {
		return r.push(id)
	}
	return nil
}

// end is what was held back of a turn that has ended, or was cut off.
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
