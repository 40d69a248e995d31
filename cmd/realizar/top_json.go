package main

import (
	"math"
	"time"

	"github.com/realizar/realizar/internal/watch"
)

// A topAway reports a server that does not answer.
type topAway struct {
	At    time.Time `json:"at"`
	URL   string    `json:"url"`
	Error string    `json:"error"`
	Away  float64   `json:"away_s"`
}

// A topResult is a server's state, and what it did in an interval.
type topResult struct {
	At        time.Time `json:"at"`
	URL       string    `json:"url"`
	Models    []string  `json:"models"`
	Up        *float64  `json:"up_s"`
	Seconds   float64   `json:"seconds"`
	Restarted bool      `json:"restarted"`

	Running     *float64            `json:"running"`
	Waiting     *float64            `json:"waiting"`
	Ended       map[string]*float64 `json:"ended_s"`
	Errors      *float64            `json:"errors_s"`
	Prompt      *float64            `json:"prompt_tok_s"`
	Computed    *float64            `json:"computed_tok_s"`
	Answer      *float64            `json:"answer_tok_s"`
	Steps       *float64            `json:"steps_s"`
	Busy        *float64            `json:"busy"`
	Proposed    *float64            `json:"proposed_tok_s"`
	Accepted    *float64            `json:"accepted_tok_s"`
	CacheUse    *float64            `json:"cache_use"`
	Cache       []topPool           `json:"cache"`
	Hits        *float64            `json:"prefix_hits"`
	HitsAll     *float64            `json:"prefix_hits_all"`
	Preemptions *float64            `json:"preemptions_s"`
	Evictions   *float64            `json:"evictions_s"`
	Saves       *float64            `json:"saves_s"`
	Restores    *float64            `json:"restores_s"`
	Memory      []topMemory         `json:"memory"`

	Latency map[string]topLatency `json:"latency"`

	States   map[watch.ModelState]int `json:"states,omitempty"` // only with several models, as the next two
	Statuses []topModel               `json:"statuses,omitempty"`
	Reserved []topReserve             `json:"reserved,omitempty"`
}

type topModel struct {
	Model    string           `json:"model"`
	State    watch.ModelState `json:"state"`
	Requests float64          `json:"requests"`
	Waiting  float64          `json:"waiting"`
	Memory   float64          `json:"memory_bytes"`
}

type topReserve struct {
	Device string  `json:"device"`
	Used   float64 `json:"used_bytes"`
	Limit  float64 `json:"limit_bytes"`
}

type topPool struct {
	Model     string  `json:"model,omitempty"` // only with several models
	Pool      int     `json:"pool"`
	Used      float64 `json:"used"`
	Idle      float64 `json:"idle"`
	Empty     float64 `json:"empty"`
	HostUsed  float64 `json:"host_used"`
	HostEmpty float64 `json:"host_empty"`
}

type topMemory struct {
	Device string  `json:"device"`
	Free   float64 `json:"free_bytes"`
	Total  float64 `json:"total_bytes"`
}

type topLatency struct {
	Interval topQuantiles `json:"interval"`
	All      topQuantiles `json:"all"`
}

// topQuantiles are in milliseconds.
type topQuantiles struct {
	N     float64  `json:"n"`
	P50   *float64 `json:"p50_ms"`
	P90   *float64 `json:"p90_ms"`
	P99   *float64 `json:"p99_ms"`
	Above []string `json:"above"` // percentiles that are above the given number
}

// known returns v, or nil if JSON cannot represent it.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// newTopResult returns the result for the last interval, which must exist.
func newTopResult(s *serverState) *topResult {
	rate := func(c watch.Counter) *float64 { return known(s.between.Rate(c)) }
	r := &topResult{
		At: s.at, URL: s.url, Models: append([]string{}, s.last.Models...), Seconds: s.between.Seconds, Restarted: s.between.Restarted,
		Running: known(s.last.Running), Waiting: known(s.last.Waiting),
		Ended:  map[string]*float64{"stop": rate(watch.Stopped), "length": rate(watch.Full), "abort": rate(watch.Left), "error": rate(watch.Failed), "other": rate(watch.Other)},
		Errors: rate(watch.Errors), Prompt: rate(watch.PromptTokens), Computed: rate(watch.ComputedTokens), Answer: rate(watch.AnswerTokens),
		Steps: rate(watch.Steps), Busy: known(s.between.Busy()), Proposed: rate(watch.Proposed), Accepted: rate(watch.Accepted), CacheUse: known(s.last.CacheUse), Cache: []topPool{},
		Hits: known(s.between.Hits()), HitsAll: known(s.last.Hits()), Preemptions: rate(watch.Preemptions), Evictions: rate(watch.Evictions),
		Saves: rate(watch.Saves), Restores: rate(watch.Restores), Memory: []topMemory{}, Latency: map[string]topLatency{},
	}
	if s.last.Up > 0 {
		r.Up = known(s.last.Up.Seconds())
	}
	several := s.last.Several()
	for _, p := range s.last.Pools {
		if !several {
			p.Model = ""
		}
		r.Cache = append(r.Cache, topPool{p.Model, p.Number, p.Used, p.Idle, p.Empty, p.HostUsed, p.HostEmpty})
	}
	for _, d := range s.last.Devices {
		r.Memory = append(r.Memory, topMemory{d.Name, d.Free, d.Total})
	}
	for l, name := range []string{"first_token", "between_tokens", "end_to_end", "queue"} {
		l := watch.Latency(l)
		r.Latency[name] = topLatency{newTopQuantiles(s.between.Latency(l)), newTopQuantiles(s.last.Latency(l))}
	}
	if several {
		r.States = counted(s.last.Statuses)
		for _, m := range s.last.Statuses {
			r.Statuses = append(r.Statuses, topModel{m.Name, m.State, m.Requests, m.Waiting, m.Memory})
		}
		for _, m := range s.last.Reserves {
			r.Reserved = append(r.Reserved, topReserve(m))
		}
	}
	return r
}

func newTopQuantiles(h watch.Histogram) topQuantiles {
	q := topQuantiles{N: h.Count(), Above: []string{}}
	for i, p := range []**float64{&q.P50, &q.P90, &q.P99} {
		v := h.Quantile(levels[i])
		*p = known(1e3 * v.Value)
		if v.Above {
			q.Above = append(q.Above, []string{"p50", "p90", "p99"}[i])
		}
	}
	return q
}
