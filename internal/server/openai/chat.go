package openai

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// A chatRequest is the body of POST /v1/chat/completions.
type chatRequest struct {
	settings
	chat          realizar.ChatRequest
	hasMessages   bool
	choice        toolChoice
	functions     bool // functions or function_call are present
	hasTools      bool // tools or tool_choice are present
	names         server.ChatFields
	given         Tools
	continuation  Continuation
	maxTokens     *int
	maxCompletion *int
	logProbs      bool
	top           *int
}

var chatFields = slices.Concat(fields.Within(func(r *chatRequest) *settings { return &r.settings }, slices.Concat(settingsFields, formFields)), fields.List[chatRequest]{
	fields.New("messages", "a list of messages", "", func(r *chatRequest, v json.RawMessage) (err error) {
		r.hasMessages = true
		r.chat.Messages, err = ReadMessages(v)
		return err
	}),
	fields.New("tools", toolsTake, "none", func(r *chatRequest, v json.RawMessage) (err error) {
		r.hasTools = true
		r.given, err = ReadTools(v)
		r.chat.Tools = r.given.Functions
		return err
	}),
	fields.New("tool_choice", toolChoiceTakes, `"auto"`, func(r *chatRequest, v json.RawMessage) (err error) {
		r.hasTools = true
		r.choice, err = readToolChoice(v)
		return err
	}),
	parallelCalls(func(r *chatRequest) *realizar.ChatRequest { return &r.chat }),
	fields.New("functions", "a list of functions, in place of tools", "none", func(r *chatRequest, v json.RawMessage) (err error) {
		r.functions = true
		r.chat.Tools, err = readFunctions(v)
		return err
	}),
	fields.New("function_call", `"auto", "none", or an object with name; with functions`, `"auto"`, func(r *chatRequest, v json.RawMessage) (err error) {
		r.functions = true
		r.choice, err = readFunctionCall(v)
		return err
	}),
	fields.New("reasoning_effort", effortTakes, "the chat template's default", func(r *chatRequest, v json.RawMessage) error {
		return readEffort(v, &r.chat.Effort)
	}),
	fields.Optional("thinking_token_budget", "no bound", 0, math.MaxInt32, func(r *chatRequest) **int { return &r.chat.ThinkingTokens }),
	fields.Only[chatRequest]("include_reasoning", "true", "leave reasoning_content of the answer out of what you read", "true"),
	fields.Limit("max_completion_tokens", "until the context is full", 1, func(r *chatRequest) **int { return &r.maxCompletion }),
	fields.Limit("max_tokens", "until the context is full", 1, func(r *chatRequest) **int { return &r.maxTokens }),
	fields.Flag("logprobs", "false", func(r *chatRequest) *bool { return &r.logProbs }),
	fields.Optional("top_logprobs", "0", 0, maxTop, func(r *chatRequest) **int { return &r.top }),
	fields.New("chat_template_kwargs", "an object of values for the chat template", "none", func(r *chatRequest, v json.RawMessage) error {
		return ReadVars(&r.chat, v)
	}),
	fields.New("documents", "a list of objects for the chat template", "none", func(r *chatRequest, v json.RawMessage) (err error) {
		r.chat.Documents, err = fields.Elements(v)
		return err
	}),
	fields.Only[chatRequest]("modalities", `["text"]`, "answers are text", `["text"]`),
	fields.Only[chatRequest]("verbosity", `"medium"`, "ask for it in a message", `"medium"`),
	fields.Refused[chatRequest]("audio", "answers are text"),
	fields.Refused[chatRequest]("web_search_options", "the model sees its messages alone"),
}, fields.Within(func(r *chatRequest) *Continuation { return &r.continuation }, ContinuationFields))

const effortTakes = `"none", "minimal", "low", "medium", "high" or "xhigh", if the chat template supports it`

// readEffort reads a reasoning effort.
func readEffort(v json.RawMessage, to *string) error {
	switch string(v) {
	case `"none"`, `"minimal"`, `"low"`, `"medium"`, `"high"`, `"xhigh"`:
		return fields.ReadText(v, to)
	}
	return fields.ErrWrong
}

// parallelCalls returns the field that says whether an answer may have several calls.
func parallelCalls[R any](of func(*R) *realizar.ChatRequest) fields.Field[R] {
	return fields.New("parallel_tool_calls", "true or false", "true", func(r *R, v json.RawMessage) error {
		several := false
		err := fields.ReadFlag(v, &several)
		of(r).SingleCall = !several
		return err
	})
}

// ReadVars reads the variables of the chat template.
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

// ReadChat reads a chat request. It returns the conversation with its options, and the names of the
// request's fields for errors.
func ReadChat(x *server.Exchange) (*realizar.ChatRequest, server.ChatFields, error) {
	r, err := readChat(x)
	if err != nil {
		return nil, server.ChatFields{}, err
	}
	return &r.chat, r.names, nil
}

func readChat(x *server.Exchange) (*chatRequest, error) {
	r, err := server.ReadFor(x, chatFields, func() *chatRequest { return &chatRequest{settings: newSettings(x)} })
	if err != nil {
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
	if r.chat.Continue, err = r.continuation.Settle(); err != nil {
		return nil, err
	}
	if err := r.settleTools(); err != nil {
		return nil, err
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
	if err := r.settle(x); err != nil {
		return nil, err
	}
	r.chat.Generation = r.generation
	x.LeftOut(r.given.LeftOut...)
	return r, nil
}

// settleTools checks functions and tools and applies the tool choice.
func (r *chatRequest) settleTools() error {
	r.names = server.ChatFields{Messages: "messages", Tools: "tools", ToolChoice: "tool_choice", Effort: "reasoning_effort", Thinking: "thinking_token_budget"}
	parameters, numbers := "tools[%d].function.parameters", r.given.numbers
	if r.functions {
		if r.hasTools {
			return fields.Invalid("functions", "functions and function_call are older names of tools and tool_choice; leave one pair out")
		}
		r.names.Tools, r.names.ToolChoice, parameters, numbers = "functions", "function_call", "functions[%d].parameters", nil
		r.chat.SingleCall = true
	}
	return r.choice.apply(&r.chat, &r.names, parameters, numbers)
}

// chatCompletions handles POST /v1/chat/completions.
func chatCompletions(x *server.Exchange) error {
	r, err := readChat(x)
	if err != nil {
		return err
	}
	g, err := r.grammar()
	if err != nil {
		return err
	}
	if err := r.settleTransfer(x, 1); err != nil {
		return err
	}
	w := &chatWriter{writer: newWriter(x, &r.settings, "chatcmpl-", "chat.completion.chunk", appendChatUsage), request: r}
	return x.Answer(&server.Request{Chat: &r.chat, Seeded: r.seeded, Fields: r.names, Grammar: g, Transfer: r.transfer}, w)
}
