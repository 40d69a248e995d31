package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// agentTools are tools like a coding agent's.
const agentTools = `[
	{"name": "Read", "description": "Reads a file. Give the path, and where to begin if it is long.", "input_schema": {"type": "object", "properties": {"path": {"enum": ["main.go", "go.mod", "README.md"]}, "offset": {"type": "integer", "minimum": 0, "maximum": 99}}, "required": ["path"], "additionalProperties": false}},
	{"name": "Edit", "description": "Replaces a text in a file.", "input_schema": {"type": "object", "properties": {"path": {"enum": ["main.go", "go.mod", "README.md"]}, "all": {"type": "boolean"}}, "required": ["path"], "additionalProperties": false}},
	{"name": "Bash", "description": "Runs a command and gives what it writes.", "input_schema": {"type": "object", "properties": {"command": {"enum": ["go build ./...", "go test ./...", "git diff"]}}, "required": ["command"], "additionalProperties": false}, "cache_control": {"type": "ephemeral"}}
]`

// TestAgentSession runs an agent's session of twenty turns. In each the model calls a tool and gets
// its result. From the second turn on, at least nine tenths of each prompt must come from the
// cache, although the first system block differs in every turn.
func TestAgentSession(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(plainTemplate), modeltest.Context(16384))
	var messages []string
	say := func(role string, content any) {
		messages = append(messages, fmt.Sprintf(`{"role": %q, "content": %s}`, role, encoded(t, content)))
	}
	words := strings.Repeat("You help with the code of a program in Go. Change what you are asked to, and nothing else. Look before you write, and test what you wrote. ", 12)
	say("user", []map[string]any{{"type": "text", "text": "<system-reminder>The folder is /work.</system-reminder>"}, {"type": "text", "text": "The test of main.go fails. Mend it.", "cache_control": map[string]string{"type": "ephemeral"}}})
	for turn := range 20 {
		system := encoded(t, []map[string]any{
			{"type": "text", "text": fmt.Sprintf("x-anthropic-billing-header: cc_version=2.%d.%03x; cc_entrypoint=cli; cch=%05x;", turn, turn*71%4096, turn*7919)},
			{"type": "text", "text": "You are an agent.", "cache_control": map[string]string{"type": "ephemeral"}},
			{"type": "text", "text": words, "cache_control": map[string]string{"type": "ephemeral"}},
		})
		request := body(`"max_tokens": 300, "temperature": 0, "stream": true, "metadata": {"user_id": "u"}, "thinking": {"type": "adaptive"},
			"output_config": {"effort": "high"}, "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
			"tools": ` + agentTools + `, "tool_choice": {"type": "any", "disable_parallel_tool_use": true}, "system": ` + system + `, "messages": [` + strings.Join(messages, ", ") + `]`)
		m, _ := s.stream(request)
		if value(m.StopReason) != "tool_use" || len(m.Content) != 1 || m.Content[0].Type != "tool_use" {
			t.Fatalf("turn %d: %+v", turn, m)
		}
		if share := float64(m.Usage.Cached) / float64(m.Usage.prompt()); turn > 0 && share < 0.9 {
			t.Errorf("turn %d: %+v, %.3f of the prompt were in the cache", turn, m.Usage, share)
		}
		call := m.Content[0]
		var input map[string]any
		if err := json.Unmarshal(call.Input, &input); err != nil {
			t.Fatalf("turn %d: %s: %v", turn, call.Input, err)
		}
		say("assistant", m.Content)
		say("user", []map[string]any{{"type": "tool_result", "tool_use_id": call.ID, "is_error": turn%5 == 4,
			"content": []map[string]any{{"type": "text", "text": fmt.Sprintf("%s %s gave line %d", call.Name, call.Input, turn)}}}})
	}
}
