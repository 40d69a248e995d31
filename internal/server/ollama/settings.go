package ollama

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// maxTop bounds top_logprobs.
const maxTop = 20

// settings are the fields that requests for chats and completions share.
type settings struct {
	model    string
	stream   bool
	options  options
	keep     keepAlive
	effort   string
	form     *server.Grammar // constrains the answer
	truncate bool
	logProbs bool
	top      int
}

// newSettings returns the settings of a request without fields.
func newSettings(x *server.Exchange) settings {
	return settings{stream: true, options: newOptions(x)}
}

var settingsFields = fields.List[settings]{
	fields.Text("model", "the only model", func(s *settings) *string { return &s.model }),
	fields.Flag("stream", "true", func(s *settings) *bool { return &s.stream }),
	optionsField(func(s *settings) *options { return &s.options }),
	fields.New("format", `"json" for any object, or a JSON schema`, "free text", readFormat),
	fields.New("think", `true, false, "low", "medium" or "high", if the chat template supports it`, "the chat template's default", readThink),
	keepAliveField(func(s *settings) *keepAlive { return &s.keep }),
	fields.Flag("truncate", "false: a prompt that does not fit is an error, and with true as well", func(s *settings) *bool { return &s.truncate }),
	fields.Only[settings]("shift", "false", "the answer ends when the context is full, and nothing is dropped from it; leave it out", "false"),
	fields.Flag("logprobs", "false", func(s *settings) *bool { return &s.logProbs }),
	fields.Whole("top_logprobs", "0", 0, maxTop, func(s *settings) *int { return &s.top }),
	fields.Only[settings]("_debug_render_only", "false", "POST /v1/chat/completions/render shows what a conversation becomes", "false"),
}

func readFormat(s *settings, v json.RawMessage) error {
	switch {
	case string(v) == `""`:
		s.form = nil
	case string(v) == `"json"`:
		s.form = &server.Grammar{Kind: server.JSONObject, Param: "format"}
	case v[0] == '{':
		s.form = &server.Grammar{Kind: server.JSONSchema, Text: v, Param: "format"}
	default:
		return fields.ErrWrong
	}
	return nil
}

func readThink(s *settings, v json.RawMessage) error {
	switch string(v) {
	case "true":
		s.effort = "medium"
	case "false":
		s.effort = "none"
	case `"low"`, `"medium"`, `"high"`:
		return fields.ReadText(v, &s.effort)
	default:
		return fields.ErrWrong
	}
	return nil
}

// settle checks the settings against each other and applies keep_alive.
func (t *settings) settle(x *server.Exchange) error {
	t.keep.apply(x)
	if t.top > 0 && !t.logProbs {
		return fields.Invalid("top_logprobs", "top_logprobs is for logprobs; add logprobs, or leave it out")
	}
	if t.logProbs {
		t.options.generation.LogProbs = &t.top
	}
	return t.options.settle(x)
}

// names are the names of a conversation's fields, for errors.
var names = server.ChatFields{Messages: "messages", Tools: "tools", ToolChoice: "tools", Effort: "think", Thinking: "think"}

// explain adds to the error of a prompt that does not fit that truncate is not supported.
func (t *settings) explain(err error) error {
	if !t.truncate || !errors.Is(err, realizar.ErrContext) {
		return err
	}
	return &server.Error{Status: http.StatusBadRequest, Param: "truncate", Code: "context_length_exceeded",
		Message: server.Plain(err) + "; truncate is not supported: nothing is dropped, send less"}
}
