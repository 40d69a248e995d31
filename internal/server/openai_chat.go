package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
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

var chatFields = append(within(func(r *chatRequest) *settings { return &r.settings }, settingsFields), fields[chatRequest]{
	{"messages", "a list of messages", "", func(r *chatRequest, v json.RawMessage) (err error) {
		r.hasMessages = true
		r.chat.Messages, err = readMessages(v)
		return err
	}},
	{"tools", "a list of tools of type function", "none", func(r *chatRequest, v json.RawMessage) (err error) {
		r.chat.Tools, err = readTools(v)
		return err
	}},
	{"tool_choice", `"auto" or "none"`, `"auto"`, func(r *chatRequest, v json.RawMessage) (err error) {
		r.noTools, err = readToolChoice(v)
		return err
	}},
	only[chatRequest]("parallel_tool_calls", "true", "the number of calls cannot be bounded yet", "true"),
	optional("max_completion_tokens", "until the context is full", 1, math.MaxInt32, func(r *chatRequest) **int { return &r.maxCompletion }),
	optional("max_tokens", "until the context is full", 1, math.MaxInt32, func(r *chatRequest) **int { return &r.maxTokens }),
	flag("logprobs", "false", func(r *chatRequest) *bool { return &r.logProbs }),
	optional("top_logprobs", "0", 0, maxTop, func(r *chatRequest) **int { return &r.top }),
	{"chat_template_kwargs", "an object of values for the chat template", "none", func(r *chatRequest, v json.RawMessage) error {
		return readVars(&r.chat, v)
	}},
	{"documents", "a list of objects for the chat template", "none", func(r *chatRequest, v json.RawMessage) (err error) {
		r.chat.Documents, err = elements(v)
		return err
	}},
	only[chatRequest]("response_format", `{"type":"text"}`, "answers are free text", `{"type":"text"}`),
	only[chatRequest]("modalities", `["text"]`, "answers are text", `["text"]`),
	only[chatRequest]("verbosity", `"medium"`, "ask for it in a message", `"medium"`),
	refused[chatRequest]("reasoning_effort", "a chat template that knows it takes it in chat_template_kwargs"),
	refused[chatRequest]("audio", "answers are text"),
	refused[chatRequest]("web_search_options", "the model sees its messages alone"),
	refused[chatRequest]("functions", "it is older than tools, which stands for it"),
	refused[chatRequest]("function_call", "it is older than tool_choice, which stands for it"),
}...)

// readToolChoice reports whether no tool may be called.
func readToolChoice(v json.RawMessage) (none bool, err error) {
	if s := string(v); s != `"none"` && s != `"auto"` {
		return false, unsupported("tool_choice %s is not supported: an answer cannot be held to call a tool yet; want auto or none", short(v))
	}
	return string(v) == `"none"`, nil
}

// readVars reads values for the chat template.
func readVars(r *realizar.ChatRequest, v json.RawMessage) error {
	if v[0] != '{' {
		return errWrong
	}
	r.Vars = map[string]json.RawMessage{}
	return members(v, "chat_template_kwargs", func(name string, v json.RawMessage) error {
		r.Vars[name] = v
		return nil
	})
}

// readChat reads a chat request.
func (s *Server) readChat(x *exchange) (*chatRequest, error) {
	data, err := s.body(x)
	if err != nil {
		return nil, err
	}
	s.notePrompt(x, data)
	r := &chatRequest{settings: s.newSettings()}
	if err := chatFields.decode(r, data, ""); err != nil {
		return nil, err
	}
	switch {
	case !r.hasMessages:
		return nil, missing("messages")
	case len(r.chat.Messages) == 0:
		return nil, invalid("messages", "messages is empty; want one at least")
	case r.top != nil && !r.logProbs:
		return nil, invalid("top_logprobs", "top_logprobs is for logprobs; add logprobs, or leave it out")
	case r.maxTokens != nil && r.maxCompletion != nil && *r.maxTokens != *r.maxCompletion:
		return nil, invalid("max_tokens", "max_tokens is %d and max_completion_tokens %d; they are one thing, leave one out", *r.maxTokens, *r.maxCompletion)
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
	return r, s.settle(&r.settings)
}

// promptNote is what the log calls that which was asked.
const promptNote = "body"

// notePrompt has the request's line in the log say what was asked, where that is
// wanted.
func (s *Server) notePrompt(x *exchange, body []byte) {
	if s.config.LogPrompts {
		x.note(slog.String(promptNote, string(body)))
	}
}

// chatPrompt is the prompt of a conversation.
func (s *Server) chatPrompt(ctx context.Context, watch *stopwatch, r *realizar.ChatRequest) (realizar.Prompt, error) {
	p, err := s.model.ChatPrompt(ctx, r)
	if err != nil && p.Text == nil && len(r.Tools) > 0 && errors.Is(err, realizar.ErrRequest) && !errors.Is(err, chat.ErrRequest) {
		return p, ofField("tools", err)
	}
	watch.prepared(p.Render, p.Tokenize)
	return p, ofField("messages", err)
}

// chatCompletions is POST /v1/chat/completions.
func (s *Server) chatCompletions(x *exchange) error {
	r, err := s.readChat(x)
	if err != nil {
		return err
	}
	if err := x.watchFor(r.generation.Choices, &r.generation); err != nil {
		return err
	}
	ctx, done, err := s.begin(x, r.generation.Choices)
	if err != nil {
		return err
	}
	defer done()
	p, err := s.chatPrompt(ctx, x.watch, &r.chat)
	if err != nil {
		return err
	}
	a := &chatAnswer{server: s, request: r, watch: x.watch, id: newID("chatcmpl-"), created: time.Now().Unix()}
	if r.stream {
		a.stream = s.stream(x)
		a.prepare()
	} else {
		a.choices = make([]chatChoice, r.generation.Choices)
		if r.promptScores != nil {
			a.promptScores = []byte("[null]") // a prompt of one token has no others
		}
	}
	if err := s.answers(ctx, []job{{p.Tokens, r.generation}}, func(_ int, e *realizar.Event) error { return a.take(e) }); err != nil {
		return ofField("messages", err)
	}
	x.noteUsage(&a.usage)
	if r.stream {
		return a.finish()
	}
	writeJSON(x.w, 200, a.body())
	return nil
}
