package realizar

import (
	"maps"
	"slices"
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
func metricsOf(replicas ...engine.Metrics) (all Metrics) {
	for i := range replicas {
		e := &replicas[i]
		counts := countsOf(e)
		all.AddCounts(&counts)
		all.addPresent(e)
	}
	all.Busy /= time.Duration(len(replicas))
	return all
}

// countsOf returns the counts and histograms of a replica.
func countsOf(e *engine.Metrics) Metrics {
	m := Metrics{
		Steps: e.Steps, Busy: e.Busy, PromptTokens: e.PromptTokens, AnswerTokens: e.ChosenTokens,
		Proposals: e.Drafts, ProposedTokens: e.DraftedTokens, AcceptedTokens: e.AcceptedTokens, AcceptedAt: e.AcceptedAt,
		CacheQueries: e.CacheQueries, CacheHits: e.CacheHits, Preemptions: e.Preemptions, Evictions: e.Evictions,
		Saves: e.Saves, Restores: e.Restores, Ended: map[Ending]uint64{},
		TimeToFirst: Histogram(e.TimeToFirst), BetweenTokens: Histogram(e.BetweenTokens), EndToEnd: Histogram(e.EndToEnd),
		Queue: Histogram(e.Queue), Prefill: Histogram(e.Prefill), Decode: Histogram(e.Decode),
		PromptLength: Histogram(e.PromptLength), AnswerLength: Histogram(e.AnswerLength),
	}
	for how, n := range e.Ended {
		m.Ended[endings[how]] += n
	}
	return m
}

// addPresent adds what a replica does now.
func (m *Metrics) addPresent(e *engine.Metrics) {
	m.Replicas = append(m.Replicas, ReplicaMetrics{
		Running: e.Running, Waiting: e.Waiting, Failed: e.Failed, Steps: e.Steps, PromptTokens: e.PromptTokens, AnswerTokens: e.ChosenTokens,
		CacheQueries: e.CacheQueries, CacheHits: e.CacheHits,
	})
	m.Running += e.Running
	m.Waiting += e.Waiting
	m.TargetITL = max(m.TargetITL, e.Pace.Gap)
	m.StepPromptTokens = max(m.StepPromptTokens, e.Pace.PromptTokens)
	m.PromptTokenTime = max(m.PromptTokenTime, e.Pace.Token)
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

// AddCounts adds the counts and histograms of o to those of m. What m does now, such as Running,
// stays as it is. m then shares no memory with o, nor with a copy of m made before.
func (m *Metrics) AddCounts(o *Metrics) {
	m.Steps += o.Steps
	m.Busy += o.Busy
	m.PromptTokens += o.PromptTokens
	m.AnswerTokens += o.AnswerTokens
	m.Proposals += o.Proposals
	m.ProposedTokens += o.ProposedTokens
	m.AcceptedTokens += o.AcceptedTokens
	for i, n := range o.AcceptedAt {
		m.AcceptedAt[i] += n
	}
	m.CacheQueries += o.CacheQueries
	m.CacheHits += o.CacheHits
	m.Preemptions += o.Preemptions
	m.Evictions += o.Evictions
	m.Saves += o.Saves
	m.Restores += o.Restores
	ended := map[Ending]uint64{}
	maps.Copy(ended, m.Ended)
	for how, n := range o.Ended {
		ended[how] += n
	}
	m.Ended = ended
	of := o.histograms()
	for i, h := range m.histograms() {
		h.add(of[i])
	}
}

func (m *Metrics) histograms() [8]*Histogram {
	return [...]*Histogram{&m.TimeToFirst, &m.BetweenTokens, &m.EndToEnd, &m.Queue, &m.Prefill, &m.Decode, &m.PromptLength, &m.AnswerLength}
}

// add adds the values of o, which has the same bounds, or none if one of the two has no values.
func (h *Histogram) add(o *Histogram) {
	if len(o.Counts) == 0 {
		return
	}
	counts := slices.Clone(o.Counts)
	for i, n := range h.Counts {
		counts[i] += n
	}
	h.Bounds, h.Counts, h.Sum = o.Bounds, counts, h.Sum+o.Sum
}

// endings maps the engine's endings.
var endings = map[engine.Ending]Ending{
	engine.EndedByStop: EndedByStop, engine.EndedByLength: EndedByLength, engine.EndedByCaller: EndedByStopString,
	engine.Cancelled: Cancelled, engine.EndedByError: EndedByError,
}
