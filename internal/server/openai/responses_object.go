package openai

import (
	"encoding/json"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
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
	Output             []responseItem      `json:"output"`
	ParallelToolCalls  bool                `json:"parallel_tool_calls"`
	PreviousResponseID *string             `json:"previous_response_id"`
	Reasoning          responseReasoning   `json:"reasoning"`
	ServiceTier        string              `json:"service_tier"`
	Store              bool                `json:"store"`
	Temperature        float32             `json:"temperature"`
	Text               responseText        `json:"text"`
	ToolChoice         json.RawMessage     `json:"tool_choice"`
	Tools              json.RawMessage     `json:"tools"`
	TopLogProbs        int                 `json:"top_logprobs"`
	TopP               float32             `json:"top_p"`
	Truncation         string              `json:"truncation"`
	Usage              *responseUsage      `json:"usage"`
	User               *string             `json:"user"`
	Timings            *server.Timings     `json:"timings,omitempty"`
}

// The states of a response and of its items.
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
	Format json.RawMessage `json:"format"`
}

// A responseItem is one of those that a response puts out: *responseMessage,
// *responseThought or *responseCall.
type responseItem interface {
	base() *itemBase
	// empty is the item while nothing of it has come.
	empty() responseItem
}

// An itemBase is what all items have.
type itemBase struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Status string `json:"status"`
}

func (b *itemBase) base() *itemBase { return b }

// A responseMessage is a text.
type responseMessage struct {
	itemBase
	Role    string         `json:"role"`
	Content []responsePart `json:"content"` // one
}

func (m responseMessage) empty() responseItem {
	m.Content = []responsePart{}
	return &m
}

type responsePart struct {
	Type        string            `json:"type"`
	Text        string            `json:"text"`
	Annotations []json.RawMessage `json:"annotations"`
	LogProbs    []responseLogProb `json:"logprobs"`
}

func newResponseMessage() *responseMessage {
	return &responseMessage{
		itemBase: itemBase{"message", server.NewID("msg_"), statusInProgress}, Role: "assistant",
		Content: []responsePart{{Type: "output_text", Annotations: []json.RawMessage{}, LogProbs: []responseLogProb{}}},
	}
}

// A responseThought is what the model thought before it answered.
type responseThought struct {
	itemBase
	Summary []thoughtPart `json:"summary"` // one, where it is asked for
	Content []thoughtPart `json:"content"` // one
}

func (t responseThought) empty() responseItem {
	t.Summary, t.Content = []thoughtPart{}, []thoughtPart{}
	return &t
}

type thoughtPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func newResponseThought(summary bool) *responseThought {
	t := &responseThought{
		itemBase: itemBase{"reasoning", server.NewID("rs_"), statusInProgress},
		Summary:  []thoughtPart{}, Content: []thoughtPart{{Type: "reasoning_text"}},
	}
	if summary {
		t.Summary = []thoughtPart{{Type: "summary_text"}}
	}
	return t
}

// A responseCall is a call of a tool.
type responseCall struct {
	itemBase
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (c responseCall) empty() responseItem {
	c.Arguments = ""
	return &c
}

func newResponseCall(id, name string) *responseCall {
	return &responseCall{itemBase: itemBase{"function_call", server.NewID("fc_"), statusInProgress}, CallID: id, Name: name}
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
		OutputTokens: u.CompletionTokens, OutputTokensDetails: responseOutputDetails{u.ReasoningTokens}, TotalTokens: u.PromptTokens + u.CompletionTokens,
	}
}

// end makes the response one that ended so.
func (r *responseObject) end(reason realizar.FinishReason, result *server.Result) {
	r.Status, r.Usage, r.Timings = statusCompleted, newResponseUsage(result.Usage), result.Timings
	if reason == realizar.FinishLength {
		r.Status, r.IncompleteDetails = statusIncomplete, &responseIncomplete{"max_output_tokens"}
	} else {
		r.CompletedAt = new(time.Now().Unix())
	}
}

// newResponse is a response to r of which nothing has come.
func newResponse(model string, r *responsesRequest) *responseObject {
	o := &responseObject{
		ID: server.NewID("resp_"), Object: "response", CreatedAt: time.Now().Unix(), Status: statusInProgress,
		Instructions: r.instructions, MaxOutputTokens: r.maxOutput, Metadata: r.metadata, Model: model,
		ParallelToolCalls: !r.chat.SingleCall || r.choice.Mode == realizar.ToolNamed, ServiceTier: "default", Temperature: r.generation.Temperature,
		Text: responseText{r.format}, ToolChoice: r.toolChoice, Tools: r.tools, TopP: r.generation.TopP, Truncation: "disabled",
		Reasoning: responseReasoning{Summary: r.summary}, Output: []responseItem{},
	}
	if r.chat.Effort != "" {
		o.Reasoning.Effort = &r.chat.Effort
	}
	if o.Text.Format == nil {
		o.Text.Format = json.RawMessage(`{"type":"text"}`)
	}
	if o.ToolChoice == nil {
		o.ToolChoice = json.RawMessage(`"auto"`)
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
	if r.top != nil {
		o.TopLogProbs = *r.top
	}
	return o
}

// responseLogProbs are scores in this dialect.
func responseLogProbs(x *server.Exchange, scores []realizar.TokenLogProb) []responseLogProb {
	all := make([]responseLogProb, len(scores))
	for i := range scores {
		piece := x.Piece(scores[i].Token)
		all[i] = responseLogProb{string(piece), numbers(piece), jsontext.FiniteLogProb(scores[i].LogProb), make([]responseTopLogProb, len(scores[i].Top))}
		for j, top := range scores[i].Top {
			piece := x.Piece(top.Token)
			all[i].Top[j] = responseTopLogProb{string(piece), numbers(piece), jsontext.FiniteLogProb(top.LogProb)}
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
