package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server/jsontext"
	"github.com/realizar/realizar/internal/server/openai"
	"github.com/realizar/realizar/internal/turn"
)

// readTools reads a file of tools in the form of OpenAI's API. It returns none if name is empty.
func readTools(a *app, name string) ([]chat.Tool, error) {
	if name == "" {
		return nil, nil
	}
	data, err := a.read(name)
	if err != nil {
		return nil, fmt.Errorf("--tools: %w", err)
	}
	if !json.Valid(data) {
		return nil, fmt.Errorf("--tools: %s is not JSON; want a list of tools", name)
	}
	tools, err := openai.ReadTools(data)
	if err != nil {
		return nil, fmt.Errorf("--tools: %s: %w", name, err)
	}
	if len(tools.LeftOut) > 0 {
		return nil, fmt.Errorf("--tools: %s: %s has a type that is not supported; want function", name, tools.LeftOut[0])
	}
	return tools.Functions, nil
}

// A parsedMessage is the output of --parse.
type parsedMessage struct {
	Role      string       `json:"role"`
	Content   *string      `json:"content"`
	Reasoning string       `json:"reasoning_content,omitempty"`
	ToolCalls []parsedCall `json:"tool_calls,omitempty"`
}

type parsedCall struct {
	ID       string `json:"id,omitempty"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// parse writes an assistant's text as a message.
func (c *templateCommand) parse(a *app) error {
	tools, err := readTools(a, c.Tools)
	if err != nil {
		return err
	}
	t, special, err := c.open(len(tools) > 0)
	if err != nil {
		return err
	}
	f, err := turn.Find(t, special)
	if err != nil {
		return err
	}
	text := *c.Parse
	if text == "-" {
		data, err := a.read("-")
		if err != nil {
			return err
		}
		text = string(data)
	}
	tail, err := c.tail(a, &f, t, special, text)
	if err != nil {
		return err
	}
	m := f.Parse(text, turn.ParserOptions{Tools: tools, Calls: len(tools) > 0, Tail: tail})
	out := parsedMessage{Role: "assistant", Reasoning: m.Reasoning}
	if m.Content != "" || len(m.Calls) == 0 {
		out.Content = &m.Content
	}
	for _, call := range m.Calls {
		p := parsedCall{ID: call.ID, Type: "function"}
		p.Function.Name, p.Function.Arguments = call.Name, string(call.Arguments)
		out.ToolCalls = append(out.ToolCalls, p)
	}
	data, err := jsontext.Encode(&out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", data)
	return err
}

// tail returns the end of the prompt that text continues: that of the rendered variables, or the
// template's default unless text already has it.
func (c *templateCommand) tail(a *app, f *turn.Form, t *chat.Template, special map[string]string, text string) (string, error) {
	if c.Vars == "" {
		if f.Reasoning.Begin != "" && strings.HasPrefix(strings.TrimSpace(text), strings.TrimSpace(f.Reasoning.Begin)) {
			return "", nil
		}
		return f.Reasoning.Default, nil
	}
	vars, err := c.variables(a)
	if err != nil {
		return "", err
	}
	prompt, err := c.render(a, vars, t, special)
	if err != nil {
		return "", err
	}
	return f.Tail(prompt.String()), nil
}
