package openai

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
)

// A responsesRequest is the body of POST /v1/responses.
type responsesRequest struct {
	settings
	chat         realizar.ChatRequest
	hasInput     bool
	instructions *string
	maxOutput    *int
	logProbs     bool
	top          *int
	metadata     map[string]string
	tools        json.RawMessage // as sent, to be repeated in the answer, as the next two are
	toolChoice   json.RawMessage
	format       json.RawMessage
	choice       toolChoice
	given        Tools
	kept         *keptItems // items of earlier answers
	borrowed     int        // bytes of kept items that the request refers to
	unkept       bool       // store is false: the answer's items are not kept
	summary      *string    // of the reasoning
	names        server.ChatFields
}

// The limits of metadata, as in OpenAI's API.
const (
	maxMetadata      = 16
	maxMetadataKey   = 64
	maxMetadataValue = 512
)

var responsesFields = append(fields.Within(func(r *responsesRequest) *settings { return &r.settings },
	settingsFields.Without("n", "stream_options", "prompt_logprobs", "kv_transfer_params", "metadata", "prediction", "store")), fields.List[responsesRequest]{
	fields.New("input", "a string, or a list of items", "", func(r *responsesRequest, v json.RawMessage) (err error) {
		r.hasInput = true
		r.chat.Messages, err = readInput(v, r.referred)
		return err
	}),
	fields.New("instructions", "a string, which becomes the first message, of role system", "none", func(r *responsesRequest, v json.RawMessage) error {
		r.instructions = new("")
		return fields.ReadText(v, r.instructions)
	}),
	fields.New("store", "false: the items of the answer are not kept either", "the response is not kept, but for a while its items are, for those of type item_reference", func(r *responsesRequest, v json.RawMessage) error {
		r.unkept = string(v) == "false"
		if !r.unkept {
			return fields.Unsupported("store %s is not supported: responses are not kept; leave it out to have their items be kept for a while", fields.Short(v))
		}
		return nil
	}),
	fields.Optional("max_output_tokens", "until the context is full", 1, math.MaxInt32, func(r *responsesRequest) **int { return &r.maxOutput }),
	fields.New("tools", toolsTake, "none", func(r *responsesRequest, v json.RawMessage) (err error) {
		r.tools = v
		r.given, err = readResponseTools(v)
		r.chat.Tools = r.given.Functions
		return err
	}),
	fields.New("tool_choice", toolChoiceTakes, `"auto"`, func(r *responsesRequest, v json.RawMessage) (err error) {
		r.toolChoice = v
		r.choice, err = readToolChoice(v)
		return err
	}),
	parallelCalls(func(r *responsesRequest) *realizar.ChatRequest { return &r.chat }),
	fields.Ignored[responsesRequest]("max_tool_calls"), // counts tools that a server runs; this one runs none
	fields.Ignored[responsesRequest]("client_metadata"),
	fields.New("include", `a list of "message.output_text.logprobs" and "reasoning.encrypted_content", of which there is none`, "none", readInclude),
	fields.Optional("top_logprobs", "0", 0, maxTop, func(r *responsesRequest) **int { return &r.top }),
	fields.New("metadata", "an object of up to 16 strings, which the answer has too", "none", readMetadata),
	fields.New("text", "an object", "free text", func(r *responsesRequest, v json.RawMessage) error {
		return responseTextFields.Decode(r, v, "text")
	}),
	fields.New("reasoning", "an object", "the chat template's default", func(r *responsesRequest, v json.RawMessage) error {
		return reasoningFields.Decode(r, v, "reasoning")
	}),
	fields.New("stream_options", "an object", "none", func(_ *responsesRequest, v json.RawMessage) error {
		return responseStreamFields.Decode(&struct{}{}, v, "stream_options")
	}),
	fields.New("chat_template_kwargs", "an object of values for the chat template", "none", func(r *responsesRequest, v json.RawMessage) error {
		return ReadVars(&r.chat, v)
	}),
	fields.Only[responsesRequest]("truncation", `"disabled"`, "nothing is cut; shorten the input", `"disabled"`),
	fields.Only[responsesRequest]("background", "false", "responses are not kept, so that there would be nothing to ask for later", "false"),
	fields.Refused[responsesRequest]("previous_response_id", "responses are not kept; send the conversation so far as input"),
	fields.Refused[responsesRequest]("conversation", "conversations are not kept; send the one so far as input"),
	fields.Refused[responsesRequest]("prompt", "there are no stored prompts; send it as instructions and input"),
	fields.Refused[responsesRequest]("context_management", "nothing is cut or summed up; shorten the input"),
}...)

var (
	responseTextFields = fields.List[responsesRequest]{
		fields.New("format", "an object", "free text", func(r *responsesRequest, v json.RawMessage) error {
			r.format = v
			return readForm(&r.settings, v, "text.format", responseFormatFields)
		}),
		fields.Only[responsesRequest]("verbosity", `"medium"`, "ask for it in a message", `"medium"`),
	}
	reasoningFields = fields.List[responsesRequest]{
		fields.New("effort", effortTakes, "the chat template's default", func(r *responsesRequest, v json.RawMessage) error {
			return readEffort(v, &r.chat.Effort)
		}),
		fields.New("summary", summaryTakes, "thoughts have no summary", readSummary),
		fields.New("generate_summary", summaryTakes, "thoughts have no summary", readSummary),
	}
	responseStreamFields = fields.List[struct{}]{fields.Ignored[struct{}]("include_obfuscation")}
)

const summaryTakes = `"auto" or "detailed": the whole thought is its summary, too`

func readSummary(r *responsesRequest, v json.RawMessage) error {
	switch string(v) {
	case `"auto"`, `"detailed"`:
		r.summary = new("")
		return fields.ReadText(v, r.summary)
	case `"concise"`:
		return fields.Unsupported("a summary %s is not supported: nothing sums thoughts up; want auto or detailed, which give them as a whole", v)
	}
	return fields.ErrWrong
}

func readInclude(r *responsesRequest, v json.RawMessage) error {
	list, err := fields.Elements(v)
	if err != nil {
		return err
	}
	for _, v := range list {
		switch string(v) {
		case `"message.output_text.logprobs"`:
			r.logProbs = true
		case `"reasoning.encrypted_content"`:
		default:
			return fields.Unsupported("include of %s is not supported: a response has nothing of the kind", fields.Short(v))
		}
	}
	return nil
}

func readMetadata(r *responsesRequest, v json.RawMessage) error {
	given := map[string]*string{}
	if v[0] != '{' || json.Unmarshal(v, &given) != nil || slices.Contains(slices.Collect(maps.Values(given)), nil) {
		return fields.ErrWrong
	}
	if len(given) > maxMetadata {
		return fields.Invalid("metadata", "metadata has %d pairs; want %d at most", len(given), maxMetadata)
	}
	r.metadata = make(map[string]string, len(given))
	for key, value := range given {
		if n := utf8.RuneCountInString(key); n > maxMetadataKey {
			return fields.Invalid("metadata", "a key of metadata has %d characters; want %d at most", n, maxMetadataKey)
		}
		if n := utf8.RuneCountInString(*value); n > maxMetadataValue {
			return fields.Invalid("metadata", "metadata.%s has %d characters; want %d at most", key, n, maxMetadataValue)
		}
		r.metadata[key] = *value
	}
	return nil
}

// referred returns an item of an earlier answer.
func (r *responsesRequest) referred(id, at string) (*inputItem, error) {
	found, ok := r.kept.find(id)
	if !ok {
		return nil, fields.Invalid(at+".id", "%s.id is %.100q, and no such item is kept: those of answers are for a while, unless store is false; send the item itself", at, id)
	}
	r.borrowed += found.bytes
	return &found.item, nil
}

// readResponses reads a responsesRequest and checks it.
func readResponses(x *server.Exchange, kept *keptItems) (*responsesRequest, error) {
	r, err := server.ReadFor(x, responsesFields, func() *responsesRequest { return &responsesRequest{settings: newSettings(x), kept: kept} })
	if err != nil {
		return nil, err
	}
	if err := x.Reserve(r.borrowed); err != nil { // as if the items were in the body
		return nil, err
	}
	switch {
	case !r.hasInput:
		return nil, fields.Missing("input")
	case len(r.chat.Messages) == 0:
		return nil, fields.Invalid("input", "input is empty; want one message at least")
	case r.top != nil && *r.top > 0 && !r.logProbs:
		return nil, fields.Invalid("top_logprobs", "top_logprobs is for log-probabilities; include message.output_text.logprobs, or leave it out")
	}
	if r.instructions != nil {
		r.chat.Messages = slices.Insert(r.chat.Messages, 0, chat.Message{Role: "system", Content: *r.instructions})
	}
	r.names = server.ChatFields{Messages: "input", Tools: "tools", ToolChoice: "tool_choice", Effort: "reasoning.effort"}
	if err := r.choice.apply(&r.chat, &r.names, "tools[%d].parameters", r.given.numbers); err != nil {
		return nil, err
	}
	r.generation.MaxTokens = r.maxOutput
	if r.logProbs {
		if r.generation.LogProbs = r.top; r.top == nil {
			r.generation.LogProbs = new(0)
		}
	}
	if err := r.settle(x); err != nil {
		return nil, err
	}
	r.chat.Generation = r.generation
	x.LeftOut(r.given.LeftOut...)
	return r, nil
}

// responses handles POST /v1/responses. The server keeps only an answer's items, for a while.
func responses(x *server.Exchange, kept *keptItems) error {
	r, err := readResponses(x, kept)
	if err != nil {
		return err
	}
	g, err := r.grammar()
	if err != nil {
		return err
	}
	return x.Answer(&server.Request{Chat: &r.chat, Seeded: r.seeded, Fields: r.names, Grammar: g}, newResponsesWriter(x, r))
}
