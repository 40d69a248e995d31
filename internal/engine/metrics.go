package engine

import (
	"slices"
	"sort"
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// Metrics are an engine's counters since it was opened, and its present state.
type Metrics struct {
	Running int  // answers with pages
	Waiting int  // answers without pages
	Failed  bool // the engine has failed, see [Group]

	Groups []GroupMetrics

	Steps         uint64
	Busy          time.Duration // time with at least one step in flight
	PromptTokens  uint64        // run, of prompts and again after preemption
	ChosenTokens  uint64
	Drafts        uint64 // drafts run
	DraftedTokens uint64
	// AcceptedTokens are drafted tokens that were right, and AcceptedAt those by their place in the
	// draft.
	AcceptedTokens uint64
	AcceptedAt     [MostDraft]uint64
	Preparing      time.Duration // time of [Drafts.Prepare] or of the program's head
	CacheQueries   uint64        // tokens of the answers that were given pages, counted each time
	CacheHits      uint64        // of CacheQueries, tokens that were cached
	Preemptions    uint64
	Evictions      uint64 // pages evicted
	Saves          uint64 // pages copied to host memory
	Restores       uint64 // pages copied from host memory
	Ended          map[Ending]uint64
	Pace           Pace
	TimeToFirst    Histogram // seconds from [Engine.Run] to an answer's first token
	BetweenTokens  Histogram // seconds
	EndToEnd       Histogram // seconds of an answer that did not end with an error
	Queue          Histogram // seconds from Run to the first step
	Prefill        Histogram // seconds from the first step to the first token
	Decode         Histogram // seconds from the first token to the last
	PromptLength   Histogram // tokens
	AnswerLength   Histogram // tokens
}

// Pace is the engine's plan for the length of steps.
type Pace struct {
	Gap          time.Duration // the longest that a step with decode and prefill should take
	PromptTokens int           // room for prompt tokens in the last step
	Token        time.Duration // time that a prompt token adds to a step, as measured; 0 if not known
}

// GroupMetrics describe the pages, or slots, of one group of states.
type GroupMetrics struct {
	Pages      int // on the device
	Used       int // by answers
	Idle       int // cached
	HostPages  int // room in host memory, in pages
	HostUsed   int
	PageTokens int // tokens per page; for slots, the least distance of checkpoints
}

// An Ending says how an answer ended.
type Ending string

// The endings.
const (
	EndedByStop   Ending = "stop"      // a token of [Request.Stop]
	EndedByLength Ending = "length"    // the number of tokens asked for
	EndedByCaller Ending = "left"      // the caller wanted no more
	Cancelled     Ending = "cancelled" // the caller's context ended, or yield or a mask returned an error
	EndedByError  Ending = "error"

	moved Ending = "moved" // to another engine of a group; it does not count
)

// A Histogram counts values by upper bounds.
type Histogram struct {
	Bounds []float64 // ascending
	Counts []uint64  // values up to each bound and above the previous one; the last counts those above all
	Sum    float64
}

// Count returns the number of values.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

func newHistogram(bounds []float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

func (h *Histogram) add(v float64) {
	h.Counts[sort.SearchFloat64s(h.Bounds, v)]++
	h.Sum += v
}

func (h *Histogram) addTime(d time.Duration) { h.add(d.Seconds()) }

var (
	secondBounds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640}
	tokenBounds  = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000}
)

// measures are the scheduler's counters. The engine's mutex guards them.
type measures struct {
	Metrics
	counted time.Time // Busy includes the time up to here
}

// NewMetrics returns the metrics of an engine that has done nothing.
func NewMetrics() Metrics {
	m := Metrics{Ended: map[Ending]uint64{}}
	for _, h := range []*Histogram{&m.TimeToFirst, &m.BetweenTokens, &m.EndToEnd, &m.Queue, &m.Prefill, &m.Decode} {
		*h = newHistogram(secondBounds)
	}
	for _, h := range []*Histogram{&m.PromptLength, &m.AnswerLength} {
		*h = newHistogram(tokenBounds)
	}
	return m
}

func (m *measures) submitted(f *flight) {
	m.Steps++
	for i := range f.parts {
		p := &f.parts[i]
		m.PromptTokens += uint64(max(0, min(p.end, p.known)-p.start))
	}
}

// busy adds the time until now, while steps are in flight. A stale now adds nothing.
func (m *measures) busy(now time.Time) {
	if d := now.Sub(m.counted); d > 0 {
		m.Busy += d
		m.counted = now
	}
}

// placed records that s continues from its cached tokens.
func (m *measures) placed(s *sequence) {
	m.CacheQueries += uint64(len(s.tokens))
	m.CacheHits += uint64(s.sent)
	if r := s.run; !r.placed {
		r.placed, r.stats.Cached = true, s.sent
	}
}

// began records the first step of s.
func (m *measures) began(s *sequence, now time.Time) {
	s.began = now
	m.Queue.addTime(now.Sub(s.run.arrived))
	m.PromptLength.add(float64(s.prompt()))
	if s.choice == 0 {
		s.run.stats.Queue = now.Sub(s.run.arrived)
	}
}

// chose records a sampled or forced token.
func (m *measures) chose(s *sequence, now time.Time) {
	m.ChosenTokens++
	if s.first.IsZero() {
		s.first = now
		m.TimeToFirst.addTime(now.Sub(s.run.arrived))
		m.Prefill.addTime(now.Sub(s.began))
	} else {
		m.BetweenTokens.addTime(now.Sub(s.last))
	}
	s.last = now
}

// ended records the end of s.
func (m *measures) ended(s *sequence, how Ending) {
	if how == moved {
		return
	}
	m.Ended[how]++
	if how == EndedByError || how == Cancelled {
		return
	}
	m.EndToEnd.addTime(time.Since(s.run.arrived))
	m.AnswerLength.add(float64(s.chosen()))
	if !s.first.IsZero() {
		m.Decode.addTime(s.last.Sub(s.first))
	}
}

// Metrics returns a copy of the engine's metrics.
func (e *Engine) Metrics() Metrics {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.flights) > 0 {
		e.measures.busy(time.Now())
	}
	m := e.measures.Metrics
	m.Failed = e.out
	m.Pace = Pace{Gap: e.pace.gap, PromptTokens: e.pace.tokens, Token: time.Duration(e.pace.each * float64(time.Second))}
	m.Ended = map[Ending]uint64{}
	for how, n := range e.measures.Ended {
		m.Ended[how] = n
	}
	for _, h := range []*Histogram{&m.TimeToFirst, &m.BetweenTokens, &m.EndToEnd, &m.Queue, &m.Prefill, &m.Decode, &m.PromptLength, &m.AnswerLength} {
		h.Counts = slices.Clone(h.Counts)
	}
	for _, s := range e.queue.active {
		if s.placed {
			m.Running++
		} else {
			m.Waiting++
		}
	}
	m.Waiting += len(e.queue.waiting)
	for g, p := range e.pools {
		h, tokens := e.host[g], pageTokens
		if e.program.Groups[g].Kind == plan.PerSequence {
			tokens = e.checks.every
		}
		m.Groups = append(m.Groups, GroupMetrics{
			Pages: p.size(), Used: p.size() - p.available(), Idle: p.idle,
			HostPages: h.size(), HostUsed: h.size() - len(h.free), PageTokens: tokens,
		})
	}
	return m
}
