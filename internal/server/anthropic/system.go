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

// readSystem reads what the system says before the conversation.
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

// attribution begins a line of the system's words that is none: a client says there for
// whom it asks, and it is another one with every request. No prompt would begin as the one
// before did, and nothing of it would be found in the cache.
const attribution = "x-anthropic-billing-header:"

// withoutAttribution is the beginning of the system's words without such a line.
func withoutAttribution(text string) string {
	if !strings.HasPrefix(text, attribution) {
		return text
	}
	_, rest, _ := strings.Cut(text, "\n")
	return rest
}

// without is messages without those that are gone, by their places.
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

// settleMessages settles the conversation that the chat template is given. A message of the
// system amid it is the user's where the template refuses such.
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

// takesSystemAmid reports whether the chat template takes a message of the system that is
// not the first.
func (r *request) takesSystemAmid(x *server.Exchange) bool {
	probe := realizar.ChatRequest{Messages: []chat.Message{
		{Role: "user", Content: "."}, {Role: "assistant", Content: "."}, {Role: "system", Content: "."}, {Role: "user", Content: "."},
	}, Tools: r.someTool()}
	_, err := x.ChatPrompt(&probe, r.names)
	return !errors.Is(err, chat.ErrRefused)
}

// someTool stands for the tools of a request where its chat template is asked what it takes.
func (r *request) someTool() []chat.Tool {
	if len(r.chat.Tools) == 0 {
		return nil
	}
	return []chat.Tool{{Name: "f", Parameters: json.RawMessage(`{"type":"object"}`)}}
}

// A conversation is one as chat templates take it.
type conversation []chat.Message

// add adds a message. One of the same speaker as the one before goes on with it; those of
// tools each answer a call of their own.
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

// joined are two pieces of a text.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
