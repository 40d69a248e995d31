package server

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
)

// responsesRequest is what POST /v1/responses takes.
type responsesRequest struct {
	settings
	chat         realizar.ChatRequest
	hasInput     bool
	instructions *string
	maxOutput    *int
	logProbs     bool
	top          *int
	tools        json.RawMessage // as they came, for the answer
	noTools      bool
	metadata     map[string]string
}

// The most that metadata may hold, as in OpenAI's API.
const (
	maxMetadata      = 16
	maxMetadataKey   = 64
	maxMetadataValue = 512
)

var responsesFields = append(within(func(r *responsesRequest) *settings { return &r.settings },
	settingsFields.without("n", "stream_options", "prompt_logprobs", "metadata", "prediction")), fields[responsesRequest]{
	{"input", "a string, or a list of items", "", func(r *responsesRequest, v json.RawMessage) (err error) {
		r.hasInput = true
		r.chat.Messages, err = readInput(v)
		return err
	}},
	{"instructions", "a string, which becomes the first message, of role system", "none", func(r *responsesRequest, v json.RawMessage) error {
		r.instructions = new("")
		return readText(v, r.instructions)
	}},
	optional("max_output_tokens", "until the context is full", 1, math.MaxInt32, func(r *responsesRequest) **int { return &r.maxOutput }),
	{"tools", "a list of tools of type function", "none", func(r *responsesRequest, v json.RawMessage) (err error) {
		r.tools = v
		r.chat.Tools, err = readResponseTools(v)
		return err
	}},
	{"tool_choice", `"auto" or "none"`, `"auto"`, func(r *responsesRequest, v json.RawMessage) (err error) {
		r.noTools, err = readToolChoice(v)
		return err
	}},
	only[responsesRequest]("parallel_tool_calls", "true", "the number of calls cannot be bounded yet", "true"),
	ignored[responsesRequest]("max_tool_calls"), // of tools that a server has; this one has none
	{"include", `a list of "message.output_text.logprobs" and "reasoning.encrypted_content", of which there is none`, "none", readInclude},
	optional("top_logprobs", "0", 0, maxTop, func(r *responsesRequest) **int { return &r.top }),
	{"metadata", "an object of up to 16 strings, which the answer has too", "none", readMetadata},
	{"text", "an object", "free text", func(_ *responsesRequest, v json.RawMessage) error {
		return responseTextFields.decode(&struct{}{}, v, "text")
	}},
	{"reasoning", "an object whose fields are null", "none", func(_ *responsesRequest, v json.RawMessage) error {
		return reasoningFields.decode(&struct{}{}, v, "reasoning")
	}},
	{"stream_options", "an object", "none", func(_ *responsesRequest, v json.RawMessage) error {
		return responseStreamFields.decode(&struct{}{}, v, "stream_options")
	}},
	{"chat_template_kwargs", "an object of values for the chat template", "none", func(r *responsesRequest, v json.RawMessage) error {
		return readVars(&r.chat, v)
	}},
	only[responsesRequest]("truncation", `"disabled"`, "nothing is cut; shorten the input", `"disabled"`),
	only[responsesRequest]("background", "false", "responses are not kept, so that there would be nothing to ask for later", "false"),
	refused[responsesRequest]("previous_response_id", "responses are not kept; send the conversation so far as input"),
	refused[responsesRequest]("conversation", "conversations are not kept; send the one so far as input"),
	refused[responsesRequest]("prompt", "there are no stored prompts; send it as instructions and input"),
	refused[responsesRequest]("context_management", "nothing is cut or summed up; shorten the input"),
}...)

var (
	responseTextFields = fields[struct{}]{
		only[struct{}]("format", `{"type":"text"}`, "answers are free text", `{"type":"text"}`),
		only[struct{}]("verbosity", `"medium"`, "ask for it in a message", `"medium"`),
	}
	reasoningFields = fields[struct{}]{
		refused[struct{}]("effort", "a chat template that knows it takes it in chat_template_kwargs"),
		refused[struct{}]("summary", "reasoning is not told apart from the answer yet"),
		refused[struct{}]("generate_summary", "reasoning is not told apart from the answer yet"),
	}
	responseStreamFields = fields[struct{}]{ignored[struct{}]("include_obfuscation")}
)

// without are f but those of these names.
func (f fields[R]) without(names ...string) fields[R] {
	return slices.DeleteFunc(slices.Clone(f), func(f field[R]) bool { return slices.Contains(names, f.name) })
}

func readInclude(r *responsesRequest, v json.RawMessage) error {
	list, err := elements(v)
	if err != nil {
		return err
	}
	for _, v := range list {
		switch string(v) {
		case `"message.output_text.logprobs"`:
			r.logProbs = true
		case `"reasoning.encrypted_content"`:
		default:
			return unsupported("include of %s is not supported: a response has nothing of the kind", short(v))
		}
	}
	return nil
}

func readMetadata(r *responsesRequest, v json.RawMessage) error {
	given := map[string]*string{}
	if v[0] != '{' || json.Unmarshal(v, &given) != nil || slices.Contains(slices.Collect(maps.Values(given)), nil) {
		return errWrong
	}
	if len(given) > maxMetadata {
		return invalid("metadata", "metadata has %d pairs; want %d at most", len(given), maxMetadata)
	}
	r.metadata = make(map[string]string, len(given))
	for key, value := range given {
		if n := utf8.RuneCountInString(key); n > maxMetadataKey {
			return invalid("metadata", "a key of metadata has %d characters; want %d at most", n, maxMetadataKey)
		}
		if n := utf8.RuneCountInString(*value); n > maxMetadataValue {
			return invalid("metadata", "metadata.%s has %d characters; want %d at most", key, n, maxMetadataValue)
		}
		r.metadata[key] = *value
	}
	return nil
}

// readResponses reads a request for a response.
func (s *Server) readResponses(x *exchange) (*responsesRequest, error) {
	data, err := s.body(x)
	if err != nil {
		return nil, err
	}
	s.notePrompt(x, data)
	r := &responsesRequest{settings: s.newSettings()}
	if err := responsesFields.decode(r, data, ""); err != nil {
		return nil, err
	}
	switch {
	case !r.hasInput:
		return nil, missing("input")
	case len(r.chat.Messages) == 0:
		return nil, invalid("input", "input is empty; want one message at least")
	case r.top != nil && *r.top > 0 && !r.logProbs:
		return nil, invalid("top_logprobs", "top_logprobs is for log-probabilities; include message.output_text.logprobs, or leave it out")
	}
	if r.instructions != nil {
		r.chat.Messages = slices.Insert(r.chat.Messages, 0, chat.Message{Role: "system", Content: *r.instructions})
	}
	if r.noTools {
		r.chat.Tools = nil
	}
	r.generation.MaxTokens = r.maxOutput
	if r.logProbs {
		if r.generation.LogProbs = r.top; r.top == nil {
			r.generation.LogProbs = new(0)
		}
	}
	return r, s.settle(&r.settings)
}

// responses is POST /v1/responses. Nothing is kept of them.
func (s *Server) responses(x *exchange) error {
	r, err := s.readResponses(x)
	if err != nil {
		return err
	}
	if err := x.watchFor(1, &r.generation); err != nil {
		return err
	}
	ctx, done, err := s.begin(x, 1)
	if err != nil {
		return err
	}
	defer done()
	p, err := s.chatPrompt(ctx, x.watch, &r.chat)
	if err != nil {
		return ofInput(err)
	}
	a := &responseAnswer{server: s, object: s.newResponse(r)}
	if r.stream {
		a.stream = &responseStream{stream: s.stream(x), object: a.object}
		a.stream.failure = a.fail
	}
	if err := s.answers(ctx, []job{{p.Tokens, r.generation}}, func(_ int, e *realizar.Event) error {
		x.watch.saw(0, e)
		return a.take(x, e)
	}); err != nil {
		return ofInput(err)
	}
	x.noteUsage(&a.used)
	if r.stream {
		return nil
	}
	return x.answer(a.object)
}

// ofInput says that errors about messages are about the input.
func ofInput(err error) error {
	var field *fieldError
	if as(err, &field) {
		if field.param != "messages" {
			return err
		}
		err = field.error
	}
	return ofField("input", err)
}

// newResponse is a response to r of which nothing has come.
func (s *Server) newResponse(r *responsesRequest) *responseObject {
	o := &responseObject{
		ID: newID("resp_"), Object: "response", CreatedAt: time.Now().Unix(), Status: statusInProgress,
		Instructions: r.instructions, MaxOutputTokens: r.maxOutput, Metadata: r.metadata, Model: s.config.Names[0],
		ParallelToolCalls: true, ServiceTier: "default", Temperature: r.generation.Temperature,
		Text: responseText{responseFormat{"text"}}, ToolChoice: "auto", Tools: r.tools, TopP: r.generation.TopP, Truncation: "disabled",
		Output: []responseMessage{{
			Type: "message", ID: newID("msg_"), Status: statusInProgress, Role: "assistant",
			Content: []responsePart{{Type: "output_text", Annotations: []json.RawMessage{}, LogProbs: []responseLogProb{}}},
		}},
	}
	if o.Metadata == nil {
		o.Metadata = map[string]string{}
	}
	if o.Tools == nil {
		o.Tools = json.RawMessage("[]")
	}
	if o.TopP == 0 {
		o.TopP = 1 // all tokens
	}
	if r.noTools {
		o.ToolChoice = "none"
	}
	if r.top != nil {
		o.TopLogProbs = *r.top
	}
	return o
}

// A responseAnswer makes a response of events.
type responseAnswer struct {
	server *Server
	object *responseObject
	stream *responseStream // nil where the answer comes as a whole
	text   []byte          // so far
	used   usage
}

// take passes an event on.
func (a *responseAnswer) take(x *exchange, e *realizar.Event) error {
	if a.stream != nil && !a.stream.opened {
		if err := a.stream.begin(); err != nil {
			return err
		}
	}
	scores := a.server.responseLogProbs(textScores(e))
	part := &a.object.Output[0].Content[0]
	a.text = append(a.text, e.Text...)
	part.LogProbs = append(part.LogProbs, scores...)
	if a.stream != nil {
		if err := a.stream.delta(e.Text, scores); err != nil {
			return err
		}
	}
	if e.Finish == nil {
		return nil
	}
	part.Text = string(a.text)
	a.used.add(0, e.Finish)
	a.object.end(e.Finish, time.Now().Unix())
	a.object.Timings = x.watch.report()
	if a.stream != nil {
		return a.stream.end()
	}
	return nil
}

// fail ends the stream with what there is of the response, and that it failed.
func (a *responseAnswer) fail(e *Error) error {
	a.object.Output[0].Content[0].Text = string(a.text)
	return a.stream.failed(e)
}

// responseLogProbs are scores in this dialect.
func (s *Server) responseLogProbs(scores []realizar.TokenLogProb) []responseLogProb {
	all := make([]responseLogProb, len(scores))
	for i := range scores {
		piece := s.piece(scores[i].Token)
		all[i] = responseLogProb{string(piece), numbers(piece), finite(scores[i].LogProb), make([]responseTopLogProb, len(scores[i].Top))}
		for j, top := range scores[i].Top {
			piece := s.piece(top.Token)
			all[i].Top[j] = responseTopLogProb{string(piece), numbers(piece), finite(top.LogProb)}
		}
	}
	return all
}

// numbers are the bytes of a token, which JSON would have in base64 otherwise.
func numbers(piece []byte) []int {
	all := make([]int, len(piece))
	for i, b := range piece {
		all[i] = int(b)
	}
	return all
}
