package turn

import (
	"encoding/json"
	"strings"

	"github.com/realizar/realizar/chat"
)

// A Message is a parsed turn.
type Message struct {
	Content   string
	Reasoning string
	Calls     []chat.ToolCall
}

// Parse parses a complete turn. A malformed call is text.
func (f *Form) Parse(text string, o ParserOptions) Message {
	p := f.NewParser(o)
	var c Collector
	c.Add(p.Write(text, false))
	c.Add(p.Close())
	return c.Message()
}

// A Collector collects events into a Message.
type Collector struct {
	content, reasoning strings.Builder
	calls              []chat.ToolCall
	arguments          strings.Builder
}

// Add adds events in the order in which a Parser gave them.
func (c *Collector) Add(events []Event) {
	for _, e := range events {
		switch e.Kind {
		case Text:
			c.content.WriteString(e.Text)
		case Reasoning:
			c.reasoning.WriteString(e.Text)
		case CallBegin:
			c.arguments.Reset()
			c.calls = append(c.calls, chat.ToolCall{ID: e.ID, Name: e.Name})
		case CallArguments:
			c.arguments.WriteString(e.Text)
		case CallEnd:
			last := &c.calls[len(c.calls)-1]
			last.Arguments = json.RawMessage(c.arguments.String())
			if e.ID != "" {
				last.ID = e.ID
			}
		case CallBroken:
			c.calls = c.calls[:len(c.calls)-1]
			c.content.WriteString(e.Text)
		}
	}
}

// Message returns the message of the events so far, without an incomplete call.
func (c *Collector) Message() Message {
	calls := c.calls
	if n := len(calls); n > 0 && calls[n-1].Arguments == nil {
		calls = calls[:n-1]
	}
	if len(calls) == 0 {
		calls = nil
	}
	return Message{Content: c.content.String(), Reasoning: c.reasoning.String(), Calls: calls}
}

// Tail returns the end of a rendered prompt that is part of the model's turn, such as the mark that
// begins the reasoning.
func (f *Form) Tail(prompt string) string {
	if f.Start == "" {
		return ""
	}
	i := strings.LastIndex(prompt, f.Start)
	if i < 0 {
		return ""
	}
	return prompt[i+len(f.Start):]
}
