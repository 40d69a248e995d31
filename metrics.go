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

	Device DeviceMemory // memory of the model's devices

	// Replicas are the copies of the model, see [Options.Replicas]. All other counts are their sums,
	// and Busy is their mean.
	Replicas []ReplicaMetrics

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
	// last had room for (of replicas, the largest), and PromptTokenTime how long one of them makes a step, as was learnt
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

// ReplicaMetrics describe a copy of a model.
type ReplicaMetrics struct {
	Running, Waiting int // as in [Metrics]
	// Failed says that a step of the copy has failed. It gets no requests until it has run a step
	// again; it is asked to after a second, and then after twice as long each time, up to a minute.
	Failed                  bool
	Steps                   uint64
	PromptTokens            uint64
	AnswerTokens            uint64
	CacheQueries, CacheHits uint64
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
	all := metricsOf(m.engine.Metrics()...)
	all.Device = m.device.memory()
	return all
}

// metricsOf returns the metrics of a model's replicas together.
func metricsOf(replicas ...engine.Metrics) Metrics {
	all := Metrics{Ended: map[Ending]uint64{}}
	for i := range replicas {
		all.add(&replicas[i])
	}
	all.Busy /= time.Duration(len(replicas))
	return all
}

// add adds a replica's metrics.
func (m *Metrics) add(e *engine.Metrics) {
	m.Replicas = append(m.Replicas, ReplicaMetrics{
		Running: e.Running, Waiting: e.Waiting, Failed: e.Failed, Steps: e.Steps, PromptTokens: e.PromptTokens, AnswerTokens: e.ChosenTokens,
		CacheQueries: e.CacheQueries, CacheHits: e.CacheHits,
	})
	m.Running += e.Running
	m.Waiting += e.Waiting
	m.Steps += e.Steps
	m.Busy += e.Busy
	m.PromptTokens += e.PromptTokens
	m.AnswerTokens += e.ChosenTokens
	m.Proposals += e.Drafts
	m.ProposedTokens += e.DraftedTokens
	m.AcceptedTokens += e.AcceptedTokens
	for i, n := range e.AcceptedAt {
		m.AcceptedAt[i] += n
	}
	m.CacheQueries += e.CacheQueries
	m.CacheHits += e.CacheHits
	m.Preemptions += e.Preemptions
	m.Evictions += e.Evictions
	m.Saves += e.Saves
	m.Restores += e.Restores
	m.TargetITL = max(m.TargetITL, e.Pace.Gap)
	m.StepPromptTokens = max(m.StepPromptTokens, e.Pace.PromptTokens)
	m.PromptTokenTime = max(m.PromptTokenTime, e.Pace.Token)
	for how, n := range e.Ended {
		m.Ended[endings[how]] += n
	}
	for _, h := range []struct {
		sum *Histogram
		own *engine.Histogram
	}{
		{&m.TimeToFirst, &e.TimeToFirst}, {&m.BetweenTokens, &e.BetweenTokens}, {&m.EndToEnd, &e.EndToEnd}, {&m.Queue, &e.Queue},
		{&m.Prefill, &e.Prefill}, {&m.Decode, &e.Decode}, {&m.PromptLength, &e.PromptLength}, {&m.AnswerLength, &e.AnswerLength},
	} {
		h.sum.add(h.own)
	}
	for i, g := range e.Groups {
		if len(m.Pools) == i {
			m.Pools = append(m.Pools, PoolMetrics{PageTokens: g.PageTokens})
		}
		p := &m.Pools[i]
		p.Pages += g.Pages
		p.Used += g.Used
		p.Idle += g.Idle
		p.HostPages += g.HostPages
		p.HostUsed += g.HostUsed
	}
}

// add adds a replica's values, which have the same bounds.
func (h *Histogram) add(own *engine.Histogram) {
	if h.Counts == nil {
		*h = Histogram(*own)
		return
	}
	h.Sum += own.Sum
	for i, n := range own.Counts {
		h.Counts[i] += n
	}
}

// endings maps the engine's endings.
var endings = map[engine.Ending]Ending{
	engine.EndedByStop: EndedByStop, engine.EndedByLength: EndedByLength, engine.EndedByCaller: EndedByStopString,
	engine.Cancelled: Cancelled, engine.EndedByError: EndedByError,
}
