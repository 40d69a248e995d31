package realizar

import (
	"time"

	"github.com/realizar/realizar/internal/engine"
)

// Metrics are the current state of a model, and counters since it was opened. An answer is one of a
// request's [Generation.Choices]. Each input of [Model.Logits], [Model.Embed] and [Model.Rank]
// counts as an answer without tokens.
type Metrics struct {
	Running int // answers that have pages in the KV cache
	Waiting int // answers that have none

	Pools []PoolMetrics // of the KV cache, one for each attention window

	Device DeviceMemory // memory of the model's device

	Steps        uint64
	Busy         time.Duration // time during which at least one step was running
	PromptTokens uint64        // tokens computed in prefill, including those of preempted answers
	AnswerTokens uint64        // tokens generated
	// Proposals are the times that tokens were proposed for an answer, ProposedTokens those tokens,
	// and AcceptedTokens those of them that the model sampled; AcceptedAt are these by their place
	// in their proposal.
	Proposals, ProposedTokens, AcceptedTokens uint64
	AcceptedAt                                [MaxSpeculativeTokens]uint64

	CacheQueries uint64 // tokens looked up in the KV cache, each time an answer gets pages
	CacheHits    uint64 // tokens of CacheQueries that the cache held
	Preemptions  uint64 // times an answer lost its pages to another
	Evictions    uint64 // idle pages reused for other tokens
	Saves        uint64 // pages copied to host memory
	Restores     uint64 // pages copied back to the device

	// TargetITL is [Options.TargetITL], StepPromptTokens how many tokens of prompts the step made
	// last had room for, and PromptTokenTime how long one of them makes a step, as was learnt
	// from steps; 0: it is not known.
	TargetITL        time.Duration
	StepPromptTokens int
	PromptTokenTime  time.Duration

	Ended map[Ending]uint64 // answers, by how they ended

	TimeToFirst   Histogram // seconds from the request to the answer's first token
	BetweenTokens Histogram // seconds between tokens of an answer
	EndToEnd      Histogram // seconds from the request to the end of an answer, without cancelled and failed answers
	Queue         Histogram // seconds from the request to the answer's first step
	Prefill       Histogram // seconds from the first step to the first token
	Decode        Histogram // seconds from the first token to the last
	PromptLength  Histogram // tokens
	AnswerLength  Histogram // tokens
}

// PoolMetrics counts the pages of the layers of one attention window.
type PoolMetrics struct {
	PageTokens int // tokens of a page
	Pages      int
	Used       int // pages of running answers
	Idle       int // cached pages that no answer uses
	HostPages  int // pages for which host memory has room
	HostUsed   int // pages in host memory
}

// DeviceMemory is the memory of a device, including the use by other programs. It is read a few
// times per second at most.
type DeviceMemory struct {
	Name        string // [Model.DeviceName], or [Model.Device] if that is empty
	Free, Total int64  // bytes; 0 if unknown
}

// An Ending is how an answer ended.
type Ending string

// The endings.
const (
	EndedByStop       Ending = "stop"        // an end token or a stop token
	EndedByLength     Ending = "length"      // MaxTokens, or the context is full
	EndedByStopString Ending = "stop_string" // a string of Generation.Stop
	Cancelled         Ending = "cancelled"   // the loop was left, or the context was cancelled
	EndedByError      Ending = "error"
)

// A Histogram counts values in buckets.
type Histogram struct {
	Bounds []float64 // upper bounds of the buckets, inclusive, ascending
	Counts []uint64  // values in each bucket [len(Bounds)+1]; the last bucket has no bound
	Sum    float64   // sum of all values
}

// Count returns the number of values.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// NewMetrics returns the metrics of a model that has done nothing: its histograms have bounds and no
// values.
func NewMetrics() Metrics { return metricsOf(engine.NewMetrics()) }

// Metrics returns a snapshot of the model's metrics.
func (m *Model) Metrics() Metrics {
	all := metricsOf(m.engine.Metrics())
	all.Device = m.device.memory()
	return all
}

func metricsOf(e engine.Metrics) Metrics {
	all := Metrics{
		Running: e.Running, Waiting: e.Waiting,
		Steps: e.Steps, Busy: e.Busy, PromptTokens: e.PromptTokens, AnswerTokens: e.ChosenTokens,
		Proposals: e.Drafts, ProposedTokens: e.DraftedTokens, AcceptedTokens: e.AcceptedTokens, AcceptedAt: e.AcceptedAt,
		CacheQueries: e.CacheQueries, CacheHits: e.CacheHits, Preemptions: e.Preemptions, Evictions: e.Evictions,
		TargetITL: e.Pace.Gap, StepPromptTokens: e.Pace.PromptTokens, PromptTokenTime: e.Pace.Token,
		Saves: e.Saves, Restores: e.Restores, Ended: map[Ending]uint64{},
		TimeToFirst: Histogram(e.TimeToFirst), BetweenTokens: Histogram(e.BetweenTokens), EndToEnd: Histogram(e.EndToEnd),
		Queue: Histogram(e.Queue), Prefill: Histogram(e.Prefill), Decode: Histogram(e.Decode),
		PromptLength: Histogram(e.PromptLength), AnswerLength: Histogram(e.AnswerLength),
	}
	for how, n := range e.Ended {
		all.Ended[endings[how]] += n
	}
	for _, g := range e.Groups {
		all.Pools = append(all.Pools, PoolMetrics{
			PageTokens: g.PageTokens, Pages: g.Pages, Used: g.Used, Idle: g.Idle, HostPages: g.HostPages, HostUsed: g.HostUsed,
		})
	}
	return all
}

// endings maps the engine's endings.
var endings = map[engine.Ending]Ending{
	engine.EndedByStop: EndedByStop, engine.EndedByLength: EndedByLength, engine.EndedByCaller: EndedByStopString,
	engine.Cancelled: Cancelled, engine.EndedByError: EndedByError,
}
