package realizar

import (
	"time"

	"github.com/realizar/realizar/internal/engine"
)

// Metrics are what a model has done since it was opened, and how it stands. An
// answer is one of a request's [Generation.Choices]; [Model.Logits], [Model.Embed]
// and [Model.Rank] count as answers of no tokens.
type Metrics struct {
	Running int // answers that have memory in the cache
	Waiting int // answers that have none

	Pools []PoolMetrics // of the cache, one for each length of window

	Device DeviceMemory // of the device that the model runs on

	Steps        uint64
	Busy         time.Duration // during which at least one step was under way
	PromptTokens uint64        // computed: those of prompts, and what answers that lost their memory had
	AnswerTokens uint64        // chosen
	CacheQueries uint64        // tokens that the cache was asked for, when an answer was given memory
	CacheHits    uint64        // of these, those that it held
	Preemptions  uint64        // answers that lost their memory to others
	Evictions    uint64        // pages that were forgotten to make room
	Saves        uint64        // pages copied to the host's memory
	Restores     uint64        // pages copied back

	// TargetITL is [Options.TargetITL], StepPromptTokens how many tokens of prompts the step made
	// last had room for, and PromptTokenTime how long one of them makes a step, as was learnt
	// from steps; 0: it is not known.
	TargetITL        time.Duration
	StepPromptTokens int
	PromptTokenTime  time.Duration

	Ended map[Ending]uint64 // answers, by how they ended

	TimeToFirst   Histogram // seconds from the request to an answer's first token
	BetweenTokens Histogram // seconds from one token of an answer to the next
	EndToEnd      Histogram // seconds from the request to the end of an answer that came to one
	Queue         Histogram // seconds from the request to an answer's first step
	Prefill       Histogram // seconds from there to the first token
	Decode        Histogram // seconds from there to the last token
	PromptLength  Histogram // tokens
	AnswerLength  Histogram // tokens
}

// PoolMetrics are a part of the cache: the pages that keep layers of one window.
type PoolMetrics struct {
	PageTokens int // tokens of a page
	Pages      int
	Used       int // by answers
	Idle       int // by nobody, but found again by their tokens
	HostPages  int // for which the host's memory has room
	HostUsed   int
}

// DeviceMemory is the memory of a device, whoever uses it. It is read anew a few times
// a second at most.
type DeviceMemory struct {
	Name        string // of the device, as [Model.DeviceName] or else [Model.Device] has it
	Free, Total int64  // bytes; 0 where the system does not say
}

// An Ending is how an answer ended.
type Ending string

// The endings.
const (
	EndedByStop       Ending = "stop"        // an end token or a stop token
	EndedByLength     Ending = "length"      // MaxTokens, or the context is full
	EndedByStopString Ending = "stop_string" // one of Generation.Stop
	Cancelled         Ending = "cancelled"   // its loop was left, or its context ended
	EndedByError      Ending = "error"
)

// A Histogram counts values by upper bounds.
type Histogram struct {
	Bounds []float64 // ascending
	Counts []uint64  // of values up to each bound and above the one before; the last one of those above all bounds
	Sum    float64   // of all values
}

// Count is the number of values.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Metrics are a copy of how things stand.
func (m *Model) Metrics() Metrics {
	e := m.engine.Metrics()
	all := Metrics{
		Running: e.Running, Waiting: e.Waiting,
		Device: m.device.memory(),
		Steps:  e.Steps, Busy: e.Busy, PromptTokens: e.PromptTokens, AnswerTokens: e.ChosenTokens,
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

// endings are the engine's words for them.
var endings = map[engine.Ending]Ending{
	engine.EndedByStop: EndedByStop, engine.EndedByLength: EndedByLength, engine.EndedByCaller: EndedByStopString,
	engine.Cancelled: Cancelled, engine.EndedByError: EndedByError,
}
