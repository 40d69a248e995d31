package openai

import (
	"encoding/json"
	"math"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// chatRequest is what POST /v1/chat/completions takes.
type chatRequest struct {
	settings
	chat          realizar.ChatRequest
	hasMessages   bool
	noTools       bool // tool_choice none
	maxTokens     *int
	maxCompletion *int
	logProbs      bool
	top           *int
}

var chatFields = append(fields.Within(func(r *chatRequest) *settings { return &r.settings }, settingsFields), fields.List[chatRequest]{
	fields.New("messages", "a list of messages", "", func(r *chatRequest, v json.RawMessage) (err error) {
		r.hasMessages = true
		r.chat.Messages, err = ReadMessages(v)
		return err
	}),
	fields.New("tools", "a list of tools of type function", "none", func(r *chatRequest, v json.RawMessage) (err error) {
		r.chat.Tools, err = ReadTools(v)
		return err
	}),
	fields.New("tool_choice", `"auto" or "none"`, `"auto"`, func(r *chatRequest, v json.RawMessage) (err error) {
		r.noTools, err = readToolChoice(v)
		return err
	}),
	fields.Only[chatRequest]("parallel_tool_calls", "true", "the number of calls cannot be bounded yet", "true"),
	fields.Optional("max_completion_tokens", "until the context is full", 1, math.MaxInt32, func(r *chatRequest) **int { return &r.maxCompletion }),
	fields.Optional("max_tokens", "until the context is full", 1, math.MaxInt32, func(r *chatRequest) **int { return &r.maxTokens }),
	fields.Flag("logprobs", "false", func(r *chatRequest) *bool { return &r.logProbs }),
	fields.Optional("top_logprobs", "0", 0, maxTop, func(r *chatRequest) **int { return &r.top }),
	fields.New("chat_template_kwargs", "an object of values for the chat template", "none", func(r *chatRequest, v json.RawMessage) error {
		return ReadVars(&r.chat, v)
	}),
	fields.New("documents", "a list of objects for the chat template", "none", func(r *chatRequest, v json.RawMessage) (err error) {
		r.chat.Documents, err = fields.Elements(v)
		return err
	}),
	fields.Only[chatRequest]("response_format", `{"type":"text"}`, "answers are free text", `{"type":"text"}`),
	fields.Only[chatRequest]("modalities", `["text"]`, "answers are text", `["text"]`),
	fields.Only[chatRequest]("verbosity", `"medium"`, "ask for it in a message", `"medium"`),
	fields.Refused[chatRequest]("reasoning_effort", "a chat template that knows it takes it in chat_template_kwargs"),
	fields.Refused[chatRequest]("audio", "answers are text"),
	fields.Refused[chatRequest]("web_search_options", "the model sees its messages alone"),
	fields.Refused[chatRequest]("functions", "it is older than tools, which stands for it"),
	fields.Refused[chatRequest]("function_call", "it is older than tool_choice, which stands for it"),
}...)

// readToolChoice reports whether no tool may be called.
func readToolChoice(v json.RawMessage) (none bool, err error) {
	if s := string(v); s != `"none"` && s != `"auto"` {
		return false, fields.Unsupported("tool_choice %s is not supported: an answer cannot be held to call a tool yet; want auto or none", fields.Short(v))
	}
	return string(v) == `"none"`, nil
}

// ReadVars reads values for the chat template.
func ReadVars(r *realizar.ChatRequest, v json.RawMessage) error {
	if v[0] != '{' {
		return fields.ErrWrong
	}
	r.Vars = map[string]json.RawMessage{}
	return fields.Members(v, "chat_template_kwargs", func(name string, v json.RawMessage) error {
		r.Vars[name] = v
		return nil
	})
}

// ReadChat reads the conversation of a chat request, and what else it asks for.
func ReadChat(x *server.Exchange) (*realizar.ChatRequest, error) {
	r, err := readChat(x)
	if err != nil {
		return nil, err
	}
	return &r.chat, nil
}

func readChat(x *server.Exchange) (*chatRequest, error) {
	r := &chatRequest{settings: newSettings(x)}
	if err := server.Read(x, chatFields, r); err != nil {
		return nil, err
	}
	switch {
	case !r.hasMessages:
		return nil, fields.Missing("messages")
	case len(r.chat.Messages) == 0:
		return nil, fields.Invalid("messages", "messages is empty; want one at least")
	case r.top != nil && !r.logProbs:
		return nil, fields.Invalid("top_logprobs", "top_logprobs is for logprobs; add logprobs, or leave it out")
	case r.maxTokens != nil && r.maxCompletion != nil && *r.maxTokens != *r.maxCompletion:
		return nil, fields.Invalid("max_tokens", "max_tokens is %d and max_completion_tokens %d; they are one thing, leave one out", *r.maxTokens, *r.maxCompletion)
	}
	if r.noTools {
		r.chat.Tools = nil
	}
	r.generation.MaxTokens = r.maxTokens
	if r.maxCompletion != nil {
		r.generation.MaxTokens = r.maxCompletion
	}
	if r.logProbs {
		if r.top == nil {
			r.top = new(0)
		}
		r.generation.LogProbs = r.top
	}
	if err := r.settle(x.Server); err != nil {
		return nil, err
	}
	r.chat.Generation = r.generation
	return r, nil
}

// chatCompletions is POST /v1/chat/completions.
func chatCompletions(x *server.Exchange) error {
	r, err := readChat(x)
	if err != nil {
		return err
	}
	w := &chatWriter{writer: newWriter(x, &r.settings, "chatcmpl-", "chat.completion.chunk"), request: r}
	return x.Answer(&server.Request{Chat: &r.chat, Seeded: r.seeded, Param: "messages"}, w)
}
