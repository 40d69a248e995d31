package load

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Result is a measurement. Latencies are those of complete answers.
type Result struct {
	URL         string   `json:"url"`
	Model       string   `json:"model"`
	Endpoint    Endpoint `json:"endpoint"`
	Concurrency int      `json:"concurrency"` // 0 for no limit
	Rate        float64  `json:"rate"`        // if 0, one for each that has ended
	Prompt      Lengths  `json:"prompt_length"`
	Answer      Lengths  `json:"answer_length"`
	Shared      int      `json:"shared_prefix"`
	Prefixes    int      `json:"prefixes"`
	Trace       string   `json:"trace,omitempty"` // the file with the times and lengths of requests
	Seed        uint64   `json:"seed"`

	Seconds   float64              `json:"seconds"` // until the last answer's end
	Due       float64              `json:"due_s"`   // until the last request was due, with a rate or a trace
	Completed int                  `json:"completed"`
	Failed    int                  `json:"failed"`
	Abandoned int                  `json:"abandoned"` // running when the measurement was stopped
	Errors    map[string]*Failures `json:"errors"`    // by kind

	PromptTokens int `json:"prompt_tokens"`
	CachedTokens int `json:"cached_tokens"` // of PromptTokens, found in the server's cache
	AnswerTokens int `json:"answer_tokens"`
	Chunks       int `json:"chunks"`
	// Uncounted is the number of answers without token counts from the server: each chunk counts as
	// one token, and their prompts as none.
	Uncounted int `json:"uncounted"`

	RequestRate float64 `json:"requests_s"`
	PromptRate  float64 `json:"prompt_tok_s"`
	AnswerRate  float64 `json:"answer_tok_s"`

	FirstToken Latency `json:"first_token_ms"`
	InterToken Latency `json:"inter_token_ms"` // between chunks with text
	PerToken   Latency `json:"per_token_ms"`   // mean of an answer after its first chunk
	EndToEnd   Latency `json:"end_to_end_ms"`
	Late       Latency `json:"late_ms"` // from when a request was due until it was sent

	Goodput *Goodput `json:"goodput,omitempty"` // if there is an objective

	Series Series `json:"series"`
}

// Failures counts the failures of one kind.
type Failures struct {
	Count int    `json:"count"`
	First string `json:"first"` // message of the first one
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

	Curve []Point `json:"-"` // share of the times up to each value
}

// A Point of a distribution says that a share of the times is at most that many milliseconds.
type Point struct{ Milliseconds, Share float64 }

// A Series has a number for each interval of time.
type Series struct {
	Interval     float64   `json:"interval_s"`
	AnswerTokens []float64 `json:"answer_tokens"` // sampled, as far as chunks show
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
	_ = h.h.RecordValue(min(max(d, 0), longest).Microseconds()) // the value is within the limits
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

// A recorder adds up answers. It adds an answer when it ends, so its tokens need no lock as they
// arrive.
type recorder struct {
	begun time.Time
	slo   SLO

	mu                                               sync.Mutex
	firstToken, interToken, perToken, endToEnd, late histogram
	r                                                Result
	series                                           []tick
	met, metTokens                                   int // answers within the objective
}

// A tick counts the events in one tickLength.
type tick struct{ tokens, completed, failed float64 }

const tickLength = 100 * time.Millisecond

func newRecorder(slo SLO) *recorder {
	return &recorder{
		slo:        slo,
		firstToken: newHistogram(), interToken: newHistogram(), perToken: newHistogram(), endToEnd: newHistogram(), late: newHistogram(),
		r: Result{Errors: map[string]*Failures{}},
	}
}

// at returns the tick of a time.
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
		r.at(a.ended).tokens += float64(tokens) // no chunk showed them
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

// expect records when a request is due.
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

// mostIntervals is enough for a curve.
const mostIntervals = 60

// merged joins ticks to at most mostIntervals intervals.
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
