package server

import (
	"encoding/json"

	"github.com/realizar/realizar"
)

// A responseObject is an answer as /v1/responses has it, complete or not.
type responseObject struct {
	ID                 string              `json:"id"`
	Object             string              `json:"object"`
	CreatedAt          int64               `json:"created_at"`
	CompletedAt        *int64              `json:"completed_at"`
	Status             string              `json:"status"`
	Background         bool                `json:"background"`
	Error              *responseFailure    `json:"error"`
	IncompleteDetails  *responseIncomplete `json:"incomplete_details"`
	Instructions       *string             `json:"instructions"`
	MaxOutputTokens    *int                `json:"max_output_tokens"`
	MaxToolCalls       *int                `json:"max_tool_calls"`
	Metadata           map[string]string   `json:"metadata"`
	Model              string              `json:"model"`
	Output             []responseMessage   `json:"output"`
	ParallelToolCalls  bool                `json:"parallel_tool_calls"`
	PreviousResponseID *string             `json:"previous_response_id"`
	Reasoning          responseReasoning   `json:"reasoning"`
	ServiceTier        string              `json:"service_tier"`
	Store              bool                `json:"store"`
	Temperature        float32             `json:"temperature"`
	Text               responseText        `json:"text"`
	ToolChoice         string              `json:"tool_choice"`
	Tools              json.RawMessage     `json:"tools"`
	TopLogProbs        int                 `json:"top_logprobs"`
	TopP               float32             `json:"top_p"`
	Truncation         string              `json:"truncation"`
	Usage              *responseUsage      `json:"usage"`
	User               *string             `json:"user"`
	Timings            *timings            `json:"timings,omitempty"`
}

// The states of a response and of its message.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
)

type responseFailure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type responseIncomplete struct {
	Reason string `json:"reason"`
}

type responseReasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

type responseText struct {
	Format responseFormat `json:"format"`
}

type responseFormat struct {
	Type string `json:"type"`
}

// A responseMessage is the one item that a response puts out.
type responseMessage struct {
	Type    string         `json:"type"`
	ID      string         `json:"id"`
	Status  string         `json:"status"`
	Role    string         `json:"role"`
	Content []responsePart `json:"content"`
}

type responsePart struct {
	Type        string            `json:"type"`
	Text        string            `json:"text"`
	Annotations []json.RawMessage `json:"annotations"`
	LogProbs    []responseLogProb `json:"logprobs"`
}

type responseLogProb struct {
	Token   string               `json:"token"`
	Bytes   []int                `json:"bytes"`
	LogProb float64              `json:"logprob"`
	Top     []responseTopLogProb `json:"top_logprobs"`
}

type responseTopLogProb struct {
	Token   string  `json:"token"`
	Bytes   []int   `json:"bytes"`
	LogProb float64 `json:"logprob"`
}

type responseUsage struct {
	InputTokens         int                   `json:"input_tokens"`
	InputTokensDetails  responseInputDetails  `json:"input_tokens_details"`
	OutputTokens        int                   `json:"output_tokens"`
	OutputTokensDetails responseOutputDetails `json:"output_tokens_details"`
	TotalTokens         int                   `json:"total_tokens"`
}

type responseInputDetails struct {
	CachedTokens     int `json:"cached_tokens"`
	CacheWriteTokens int `json:"cache_write_tokens"`
}

type responseOutputDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// newResponseUsage is u in this dialect. What the cache keeps costs nothing here, so
// that no token counts as written to it.
func newResponseUsage(u realizar.Usage) *responseUsage {
	return &responseUsage{
		InputTokens: u.PromptTokens, InputTokensDetails: responseInputDetails{CachedTokens: u.CachedTokens},
		OutputTokens: u.CompletionTokens, TotalTokens: u.PromptTokens + u.CompletionTokens,
	}
}

// end makes the response one that ended as f says.
func (r *responseObject) end(f *realizar.Finish, now int64) {
	r.Status, r.Usage = statusCompleted, newResponseUsage(f.Usage)
	if f.Reason == realizar.FinishLength {
		r.Status, r.IncompleteDetails = statusIncomplete, &responseIncomplete{"max_output_tokens"}
	} else {
		r.CompletedAt = &now
	}
	r.Output[0].Status = r.Status
}

// A responseEvent is one of a stream. Only what belongs to its type is there.
type responseEvent struct {
	Type           string             `json:"type"`
	SequenceNumber int                `json:"sequence_number"`
	Response       *responseObject    `json:"response,omitempty"`
	ItemID         string             `json:"item_id,omitempty"`
	OutputIndex    *int               `json:"output_index,omitempty"`
	ContentIndex   *int               `json:"content_index,omitempty"`
	Item           *responseMessage   `json:"item,omitempty"`
	Part           *responsePart      `json:"part,omitempty"`
	Delta          *string            `json:"delta,omitempty"`
	Text           *string            `json:"text,omitempty"`
	LogProbs       *[]responseLogProb `json:"logprobs,omitempty"`
}

// A responseStream sends a response as it comes.
type responseStream struct {
	*stream
	object *responseObject // with its one message of one part, once that has begun
	number int             // of the next event
	opened bool            // the message was begun
}

// emit sends an event of the response's.
func (t *responseStream) emit(e responseEvent) error {
	e.SequenceNumber = t.number
	t.number++
	data, err := encode(&e)
	if err != nil {
		return err
	}
	return t.sendNamed(e.Type, data)
}

// about is an event of the message, and of its part where content is true.
func (t *responseStream) about(kind string, content bool) responseEvent {
	e := responseEvent{Type: kind, OutputIndex: new(0)}
	if content {
		e.ItemID, e.ContentIndex = t.message().ID, new(0)
	}
	return e
}

func (t *responseStream) message() *responseMessage { return &t.object.Output[0] }
func (t *responseStream) part() *responsePart       { return &t.message().Content[0] }

// begin sends the response while nothing has come, and its empty message.
func (t *responseStream) begin() error {
	whole := *t.object
	whole.Output = []responseMessage{}
	for _, kind := range []string{"response.created", "response.in_progress"} {
		if err := t.emit(responseEvent{Type: kind, Response: &whole}); err != nil {
			return err
		}
	}
	added := t.about("response.output_item.added", false)
	empty := *t.message()
	empty.Content = []responsePart{}
	added.Item = &empty
	if err := t.emit(added); err != nil {
		return err
	}
	t.opened = true
	opened := t.about("response.content_part.added", true)
	opened.Part = t.part()
	return t.emit(opened)
}

// delta sends what the text goes on with.
func (t *responseStream) delta(text string, logProbs []responseLogProb) error {
	if text == "" && len(logProbs) == 0 {
		return nil
	}
	e := t.about("response.output_text.delta", true)
	e.Delta, e.LogProbs = &text, &logProbs
	return t.emit(e)
}

// end sends the whole text, message and response.
func (t *responseStream) end() error {
	text := t.about("response.output_text.done", true)
	text.Text, text.LogProbs = &t.part().Text, &t.part().LogProbs
	part := t.about("response.content_part.done", true)
	part.Part = t.part()
	item := t.about("response.output_item.done", false)
	item.Item = t.message()
	for _, e := range []responseEvent{text, part, item, {Type: "response." + t.object.Status, Response: t.object}} {
		if err := t.emit(e); err != nil {
			return err
		}
	}
	return nil
}

// failed sends that the response failed, as its last event.
func (t *responseStream) failed(e *Error) error {
	t.object.Status, t.object.Error = statusFailed, &responseFailure{Code: "server_error", Message: e.Message}
	t.message().Status = statusIncomplete
	return t.emit(responseEvent{Type: "response.failed", Response: t.object})
}
