package anthropic

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// A request is a conversation with its options, the body of both endpoints.
type request struct {
	model       string
	system      string
	messages    []chat.Message
	hasMessages bool
	choice      toolChoice
	thinking    thinking
	effort      string
	forms       []server.Grammar // constraints on the answer; more than one is an error

	chat  realizar.ChatRequest // what the model gets
	names server.ChatFields    // of the fields of chat

	maxTokens *int
	stream    bool
}

// askFields are the fields of both endpoints.
var askFields = fields.List[request]{
	fields.Text("model", "the only model", func(r *request) *string { return &r.model }),
	fields.New("messages", "a list of messages", "", func(r *request, v json.RawMessage) (err error) {
		r.hasMessages = true
		r.messages, err = readMessages(v)
		return err
	}),
	fields.New("system", "a string, or a list of blocks of type text", "none", readSystem),
	fields.New("tools", "a list of tools of type custom", "none", func(r *request, v json.RawMessage) (err error) {
		r.chat.Tools, err = readTools(v)
		return err
	}),
	fields.New("tool_choice", "an object", `{"type": "auto"}`, func(r *request, v json.RawMessage) error {
		return choiceFields.Decode(&r.choice, v, "tool_choice")
	}),
	fields.New("thinking", "an object", "the chat template's default", func(r *request, v json.RawMessage) error {
		return thinkingFields.Decode(&r.thinking, v, "thinking")
	}),
	fields.New("output_config", "an object", "free text", func(r *request, v json.RawMessage) error {
		return outputFields.Decode(r, v, "output_config")
	}),
	fields.New("output_format", "an object, in place of output_config.format", "free text", readFormat("output_format")),
	fields.New("context_management", "an object", "nothing is left out", func(r *request, v json.RawMessage) error {
		return managementFields.Decode(r, v, "context_management")
	}),
	fields.Only[request]("mcp_servers", "an empty list", "the server calls no others; send tools, and call them", "[]"),
	fields.Only[request]("speed", `"standard"`, "there is one speed", `"standard"`),
	fields.Ignored[request]("cache_control"),
	fields.Ignored[request]("user_profile_id"),
	fields.Ignored[request]("workspace_id"),
	fields.Ignored[request]("billing_policy"),
	fields.Refused[request]("compaction", "nothing is cut or summed up; shorten the messages"),
}

var messagesFields = slices.Concat(askFields, fields.List[request]{
	fields.Optional("max_tokens", "", 0, math.MaxInt32, func(r *request) **int { return &r.maxTokens }),
	fields.Flag("stream", "false", func(r *request) *bool { return &r.stream }),
	fields.Number("temperature", "what the model's makers recommend, or 1", 0, 2, func(r *request) *float32 { return &r.chat.Temperature }),
	fields.New("top_p", "a number above 0, to 1", "what the model's makers recommend, or 1", func(r *request, v json.RawMessage) (err error) {
		r.chat.TopP, err = fields.ReadShare(v)
		return err
	}),
	fields.Whole("top_k", "what the model's makers recommend, or 0, which is all tokens", 0, math.MaxInt32, func(r *request) *int { return &r.chat.TopK }),
	fields.New("stop_sequences", "a list of up to 64 strings", "none", readStops),
	fields.Text("cache_salt", "the cache is shared", func(r *request) *string { return &r.chat.Salt }),
	fields.Only[request]("service_tier", `"auto" or "standard_only"`, "there is one tier", `"auto"`, `"standard_only"`),
	fields.Ignored[request]("metadata"),
	fields.Ignored[request]("inference_geo"),
	fields.Ignored[request]("diagnostics"),
	fields.Ignored[request]("fallbacks"),
	fields.Ignored[request]("fallback_credit_token"),
	fields.Refused[request]("container", "the server runs no code"),
	fields.New("thread", "nothing: "+noThreads, "", func(*request, json.RawMessage) error {
		return &fields.Error{Code: "thread_unsupported_request", Message: "thread is not supported: " + noThreads}
	}),
})

// noThreads says what to do instead of using a conversation that the server keeps. Clients know the
// error's code and do so.
const noThreads = "conversations are not kept; send the one so far as messages"

func readStops(r *request, v json.RawMessage) (err error) {
	if v[0] != '[' {
		return fields.ErrWrong
	}
	r.chat.Stop, err = fields.ReadStops("stop_sequences", v)
	return err
}

// read reads a request with the fields of list and checks it.
func read(x *server.Exchange, list fields.List[request]) (*request, error) {
	r, err := server.ReadFor(x, list, func() *request { return &request{chat: realizar.ChatRequest{Generation: x.Defaults()}} })
	if err != nil {
		return nil, err
	}
	switch {
	case !r.hasMessages:
		return nil, fields.Missing("messages")
	case len(r.messages) == 0:
		return nil, fields.Invalid("messages", "messages is empty; want one at least")
	case len(r.forms) > 1:
		a, b := r.forms[0].Param, r.forms[1].Param
		return nil, fields.Invalid(b, "%s and %s both say what the answer must be; leave one out", a, b)
	}
	r.chat.MaxTokens = r.maxTokens
	r.names = server.ChatFields{Messages: "messages", Tools: "tools", ToolChoice: "tool_choice", Effort: "thinking", Thinking: "thinking", Parameters: schemaOf}
	if err := r.choice.apply(&r.chat); err != nil {
		return nil, err
	}
	r.settleMessages(x)
	r.chat.Continue = server.Continues(r.chat.Messages)
	if err := r.settleThinking(x); err != nil {
		return nil, err
	}
	return r, nil
}

// messages handles POST /v1/messages.
func messages(x *server.Exchange) error {
	r, err := read(x, messagesFields)
	switch {
	case err != nil:
		return err
	case r.maxTokens == nil:
		return fields.Missing("max_tokens")
	}
	last := r.chat.Messages[len(r.chat.Messages)-1]
	switch {
	case r.chat.Continue && r.thinking.kind == "enabled":
		return fields.Invalid("thinking", "thinking comes before an answer, but the last message has begun one; leave it out, or end with a message of role user")
	case last.Role == "assistant" && !r.chat.Continue:
		return fields.Invalid("messages", "the last message is the assistant's and has no text to continue; end with a message of role user")
	}
	asked := server.Request{Chat: &r.chat, Fields: r.names}
	if len(r.forms) > 0 {
		if param := r.forms[0].Param; r.chat.Continue {
			return fields.Invalid(param, "%s describes a whole answer, but the last message has begun one; leave one out", param)
		}
		asked.Grammar = &r.forms[0]
	}
	return x.Answer(&asked, newWriter(x, r))
}

// countTokens handles POST /v1/messages/count_tokens, which returns the length of a request's
// prompt.
func countTokens(x *server.Exchange) error {
	if err := x.NoTimings(); err != nil {
		return err
	}
	r, err := read(x, askFields)
	if err != nil {
		return err
	}
	p, err := x.ChatPrompt(&r.chat, r.names)
	if err != nil {
		return err
	}
	return x.JSON(map[string]int{"input_tokens": len(p.Tokens)})
}

// unsupported returns the error of a field that asks for something unsupported.
func unsupported(param, format string, a ...any) *fields.Error {
	e := fields.Unsupported(format, a...)
	e.Param = param
	return e
}
