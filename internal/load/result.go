package load

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Result is what was measured. Latencies are those of complete answers.
type Result struct {
	URL         string   `json:"url"`
	Model       string   `json:"model"`
	Endpoint    Endpoint `json:"endpoint"`
	Concurrency int      `json:"concurrency"` // 0: no limit
	Rate        float64  `json:"rate"`        // 0: one request for each that has ended
	Prompt      Lengths  `json:"prompt_length"`
	Answer      Lengths  `json:"answer_length"`
	Shared      int      `json:"shared_prefix"`
	Prefixes    int      `json:"prefixes"`
	Trace       string   `json:"trace,omitempty"` // its file, which says when requests are due and how long they are
	Seed        uint64   `json:"seed"`

	Seconds   float64              `json:"seconds"` // until the last answer's end
	Due       float64              `json:"due_s"`   // until the last request was due, where a rate or a trace says so
	Completed int                  `json:"completed"`
	Failed    int                  `json:"failed"`
	Abandoned int                  `json:"abandoned"` // under way when the measurement was stopped
	Errors    map[string]*Failures `json:"errors"`    // by kind

	PromptTokens int `json:"prompt_tokens"`
	CachedTokens int `json:"cached_tokens"` // of them found in the server's cache
	AnswerTokens int `json:"answer_tokens"`
	Chunks       int `json:"chunks"`
	// Uncounted are answers whose tokens the server has not counted: each chunk is
	// taken for one, and their prompts for none.
	Uncounted int `json:"uncounted"`

	RequestRate float64 `json:"requests_s"`
	PromptRate  float64 `json:"prompt_tok_s"`
	AnswerRate  float64 `json:"answer_tok_s"`

	FirstToken Latency `json:"first_token_ms"`
	InterToken Latency `json:"inter_token_ms"` // between chunks that hold text
	PerToken   Latency `json:"per_token_ms"`   // an answer's mean after its first chunk
	EndToEnd   Latency `json:"end_to_end_ms"`
	Late       Latency `json:"late_ms"` // from when a request was due until it was sent

	Goodput *Goodput `json:"goodput,omitempty"` // where there is an objective

	Series Series `json:"series"`
}

// Failures are those of one kind.
type Failures struct {
	Count int    `json:"count"`
	First string `json:"first"` // what the first one said
}

// A Latency is a distribution of times, in milliseconds.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`

	Curve []Point `json:"-"` // share of those that took at most so long
}

// A Point of a distribution: so large a part took at most so many milliseconds.
type Point struct{ Milliseconds, Share float64 }

// A Series is what happened in one interval after another.
type Series struct {
	Interval     float64   `json:"interval_s"`
	AnswerTokens []float64 `json:"answer_tokens"` // chosen, as near as chunks show
	Completed    []float64 `json:"completed"`
	Failed       []float64 `json:"failed"`
}

// A histogram counts times in microseconds, to three digits.
type histogram struct{ h *hdrhistogram.Histogram }

const longest = 24 * time.Hour

func newHistogram() histogram {
	return histogram{hdrhistogram.New(1, longest.Microseconds(), 3)}
}

func (h histogram) add(d time.Duration) {
	_ = h.h.RecordValue(min(max(d, 0), longest).Microseconds()) // it is within the limits
}

func (h histogram) latency() Latency {
	ms := func(us float64) float64 { return us / 1000 }
	at := func(percent float64) float64 { return ms(float64(h.h.ValueAtQuantile(percent))) }
	l := Latency{Count: h.h.TotalCount()}
	if l.Count == 0 {
		return l
	}
	l.Mean, l.Max = ms(h.h.Mean()), ms(float64(h.h.Max()))
	l.P50, l.P90, l.P95, l.P99 = at(50), at(90), at(95), at(99)
	var before int64
	for _, bar := range h.h.Distribution() {
		if bar.Count > 0 {
			before += bar.Count
			l.Curve = append(l.Curve, Point{ms(float64(bar.To)), float64(before) / float64(l.Count)})
		}
	}
	return l
}

// A recorder adds up answers. An answer is added when it ends, so that its tokens as
// they come cost no lock.
type recorder struct {
	begun time.Time
	slo   SLO

	mu                                               sync.Mutex
	firstToken, interToken, perToken, endToEnd, late histogram
	r                                                Result
	series                                           []tick
	met, metTokens                                   int // answers within the objective
}

// A tick is what happened in one tickLength.
type tick struct{ tokens, completed, failed float64 }

const tickLength = 100 * time.Millisecond

func newRecorder(slo SLO) *recorder {
	return &recorder{
		slo:        slo,
		firstToken: newHistogram(), interToken: newHistogram(), perToken: newHistogram(), endToEnd: newHistogram(), late: newHistogram(),
		r: Result{Errors: map[string]*Failures{}},
	}
}

// at is the tick of a time.
func (r *recorder) at(t time.Time) *tick {
	i := max(0, int(t.Sub(r.begun)/tickLength))
	for len(r.series) <= i {
		r.series = append(r.series, tick{})
	}
	return &r.series[i]
}

func (r *recorder) add(a *answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.r.Completed++
	r.at(a.ended).completed++
	r.late.add(a.sent.Sub(a.due))
	r.endToEnd.add(a.ended.Sub(a.due))

	chunks := len(a.arrivals)
	tokens := chunks
	if a.usage == nil {
		r.r.Uncounted++
	} else {
		tokens = a.usage.CompletionTokens
		r.r.PromptTokens += a.usage.PromptTokens
		r.r.CachedTokens += a.usage.Details.CachedTokens
	}
	r.r.AnswerTokens += tokens
	r.r.Chunks += chunks
	if r.slo.met(a, tokens) {
		r.met++
		r.metTokens += tokens
	}
	if chunks == 0 {
		r.at(a.ended).tokens += float64(tokens) // none of them showed
		return
	}
	first, last := a.arrivals[0], a.arrivals[chunks-1]
	r.firstToken.add(first.Sub(a.due))
	if tokens > 1 && chunks > 1 {
		r.perToken.add(last.Sub(first) / time.Duration(tokens-1))
	}
	for i, t := range a.arrivals {
		r.at(t).tokens += float64(tokens) / float64(chunks)
		if i > 0 {
			r.interToken.add(t.Sub(a.arrivals[i-1]))
		}
	}
}

func (r *recorder) fail(kind string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.r.Failed++
	if r.r.Errors[kind] == nil {
		r.r.Errors[kind] = &Failures{First: err.Error()}
	}
	r.r.Errors[kind].Count++
	r.at(time.Now()).failed++
}

// expect notes when a request is due.
func (r *recorder) expect(due time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.r.Due = due.Seconds()
}

func (r *recorder) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.r.Abandoned++
}

func (r *recorder) result(o *Options, took time.Duration) *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.r
	s.URL, s.Model, s.Endpoint, s.Concurrency, s.Rate = o.URL, o.Model, o.Endpoint, o.Concurrency, o.Rate
	s.Prompt, s.Answer, s.Shared, s.Prefixes, s.Seed = o.Prompt, o.Answer, o.Shared, o.Prefixes, o.Seed
	if o.Trace != nil {
		s.Trace = o.Trace.Name
	}
	s.Seconds = took.Seconds()
	s.RequestRate = float64(s.Completed) / s.Seconds
	s.PromptRate = float64(s.PromptTokens) / s.Seconds
	s.AnswerRate = float64(s.AnswerTokens) / s.Seconds
	s.FirstToken, s.InterToken, s.PerToken = r.firstToken.latency(), r.interToken.latency(), r.perToken.latency()
	s.EndToEnd, s.Late = r.endToEnd.latency(), r.late.latency()
	if r.slo != (SLO{}) {
		s.Goodput = &Goodput{SLO: r.slo, Met: r.met, RequestRate: float64(r.met) / s.Seconds, AnswerRate: float64(r.metTokens) / s.Seconds}
		if n := s.Completed + s.Failed; n > 0 {
			s.Goodput.Share = float64(r.met) / float64(n)
		}
	}
	s.Series = merged(r.series)
	return &s
}

// mostIntervals are enough for a curve.
const mostIntervals = 60

// merged joins as many ticks to an interval as leave few enough of them.
func merged(ticks []tick) Series {
	joined := max(1, int(math.Ceil(float64(len(ticks))/mostIntervals)))
	s := Series{Interval: float64(joined) * tickLength.Seconds()}
	for i, t := range ticks {
		if i%joined == 0 {
			s.AnswerTokens, s.Completed, s.Failed = append(s.AnswerTokens, 0), append(s.Completed, 0), append(s.Failed, 0)
		}
		n := len(s.Completed) - 1
		s.AnswerTokens[n] += t.tokens
		s.Completed[n] += t.completed
		s.Failed[n] += t.failed
	}
	return s
}
