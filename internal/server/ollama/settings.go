package ollama

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// maxTop are the most of the likeliest tokens that a request may ask for.
const maxTop = 20

// settings are what requests for chats and for completions have in common.
type settings struct {
	model    string
	stream   bool
	options  options
	keep     keepAlive
	effort   string
	form     *server.Grammar // that the answer must have
	truncate bool
	logProbs bool
	top      int
}

// newSettings are those of a request that says nothing.
func newSettings(x *server.Exchange) settings {
	return settings{stream: true, options: newOptions(x)}
}

var settingsFields = fields.List[settings]{
	fields.Text("model", "the only model", func(s *settings) *string { return &s.model }),
	fields.Flag("stream", "true", func(s *settings) *bool { return &s.stream }),
	optionsField(func(s *settings) *options { return &s.options }),
	fields.New("format", `"json" for any object, or a JSON schema`, "free text", readFormat),
	fields.New("think", `true, false, "low", "medium" or "high", as far as the chat template knows it`, "as much thought as the chat template has by itself", readThink),
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

// settle says what is wrong with settings as a whole, and fills in the rest.
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

// names are those of the fields of a conversation, for errors about them.
var names = server.ChatFields{Messages: "messages", Tools: "tools", ToolChoice: "tools", Effort: "think", Thinking: "think"}

// explain says of a prompt that does not fit that truncate does not make it fit.
func (t *settings) explain(err error) error {
	if !t.truncate || !errors.Is(err, realizar.ErrContext) {
		return err
	}
	return &server.Error{Status: http.StatusBadRequest, Param: "truncate", Code: "context_length_exceeded",
		Message: server.Plain(err) + "; truncate is not supported: nothing is dropped, send less"}
}
