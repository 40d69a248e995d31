package anthropic

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// readSystem reads the field system.
func readSystem(r *request, v json.RawMessage) error {
	if v[0] == '"' {
		if err := fields.ReadText(v, &r.system); err != nil {
			return err
		}
		r.system = withoutAttribution(r.system)
		return nil
	}
	blocks, err := readBlocks(v, "system", "system")
	if err != nil {
		return err
	}
	if len(blocks) > 0 {
		blocks[0].text = withoutAttribution(blocks[0].text)
		if blocks[0].text == "" {
			blocks = blocks[1:]
		}
	}
	r.system = texts(blocks)
	return nil
}

// attribution begins a line that some clients put before their system prompt. The line differs in
// every request, so with it no prompt would find a prefix in the cache.
const attribution = "x-anthropic-billing-header:"

// withoutAttribution removes an attribution line from the beginning of a system prompt.
func withoutAttribution(text string) string {
	if !strings.HasPrefix(text, attribution) {
		return text
	}
	_, rest, _ := strings.Cut(text, "\n")
	return rest
}

// without returns messages without those at the indexes gone, which ascend.
func without(messages []chat.Message, gone []int) []chat.Message {
	kept := messages[:gone[0]]
	for i := len(kept); i < len(messages); i++ {
		if len(gone) > 0 && gone[0] == i {
			gone = gone[1:]
			continue
		}
		kept = append(kept, messages[i])
	}
	return kept
}

// settleMessages makes the conversation for the chat template. A system message after the first
// message becomes the user's if the template refuses it.
func (r *request) settleMessages(x *server.Exchange) {
	var all conversation
	if r.system != "" {
		all.add(chat.Message{Role: "system", Content: r.system})
	}
	amid := false
	for _, m := range r.messages {
		all.add(m)
		amid = amid || m.Role == "system" && len(all) > 1
	}
	r.chat.Messages = all
	if !amid || r.takesSystemAmid(x) {
		return
	}
	r.chat.Messages = nil
	for i, m := range all {
		if m.Role == "system" && i > 0 {
			m.Role = "user"
		}
		(*conversation)(&r.chat.Messages).add(m)
	}
}

// takesSystemAmid reports whether the chat template accepts a system message after the first
// message.
func (r *request) takesSystemAmid(x *server.Exchange) bool {
	probe := realizar.ChatRequest{Messages: []chat.Message{
		{Role: "user", Content: "."}, {Role: "assistant", Content: "."}, {Role: "system", Content: "."}, {Role: "user", Content: "."},
	}, Tools: r.someTool()}
	_, err := x.ChatPrompt(&probe, r.names)
	return !errors.Is(err, chat.ErrRefused)
}

// someTool returns a tool for probes of the chat template, if the request has tools.
func (r *request) someTool() []chat.Tool {
	if len(r.chat.Tools) == 0 {
		return nil
	}
	return []chat.Tool{{Name: "f", Parameters: json.RawMessage(`{"type":"object"}`)}}
}

// A conversation is a list of messages for chat templates.
type conversation []chat.Message

// add appends a message, or joins it to the last one if both have the same role. Messages of tools
// are not joined: each answers a call of its own.
func (c *conversation) add(m chat.Message) {
	last := len(*c) - 1
	if last < 0 || m.Role == "tool" || (*c)[last].Role != m.Role {
		*c = append(*c, m)
		return
	}
	before := &(*c)[last]
	before.Content = joined(before.Content, m.Content)
	before.Reasoning = joined(before.Reasoning, m.Reasoning)
	before.ToolCalls = append(before.ToolCalls, m.ToolCalls...)
}

// joined returns the two texts, on separate lines if neither is empty.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
