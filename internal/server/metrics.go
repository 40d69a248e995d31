package server

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/budget"
	"github.com/realizar/realizar/internal/kvtransfer"
)

// metrics are what GET /metrics shows: the model's metrics, under vLLM's names, which gateways in
// front of such servers read; the server's own; and those of the process.
type metrics struct {
	registry *prometheus.Registry
	handler  http.Handler // of the registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	panics   prometheus.Counter
}

// A state is the current state of a server.
type state struct {
	admitted    int // answers that were admitted
	memory      budget.Stats
	connections ConnectionStats
	pool        poolState
}

// newMetrics returns metrics of each model that read reports by name, of the server's state, which
// stands returns, and of a peer, or nil.
func newMetrics(read func(each func(name string, m realizar.Metrics)), stands func() state, transfer *kvtransfer.Peer) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "realizar_http_requests_total", Help: "Answered requests, by route and status; 499 means that the client left before.",
		}, []string{"route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "realizar_http_request_seconds", Help: "Seconds from a request's headers to the end of its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640},
		}, []string{"route"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{Name: "realizar_http_panics_total", Help: "Requests that ended in a panic of the server."}),
	}
	m.registry.MustRegister(
		&modelMetrics{read}, &poolMetrics{func() poolState { return stands().pool }}, &transferMetrics{transfer}, m.requests, m.seconds, m.panics,
		&slowMetrics{Collector: collectors.NewGoCollector()}, &slowMetrics{Collector: collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})},
	)
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true}) // compression costs more than the rest
	gauge := func(name, help string, of func(state) float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return of(stands()) }))
	}
	counter := func(name, help string, of func(state) int64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(of(stands())) }))
	}
	gauge("realizar_answers_admitted", "Admitted answers that have not ended: running or queued.", func(s state) float64 { return float64(s.admitted) })
	gauge("realizar_request_memory_bytes", "Memory held by requests: bodies, texts, tokens, and answers that are not sent yet.", func(s state) float64 { return float64(s.memory.Used - s.memory.Spare) })
	gauge("realizar_request_memory_spare_bytes", "Memory that keeps earlier answers for later requests; it is freed for any request.", func(s state) float64 { return float64(s.memory.Spare) })
	gauge("realizar_request_memory_limit_bytes", "Limit of the memory held by all requests.", func(s state) float64 { return float64(s.memory.Limit) })
	counter("realizar_request_memory_refused_total", "Requests refused because of the memory limit.", func(s state) int64 { return s.memory.Refused })
	counter("realizar_request_memory_evicted_total", "Requests ended to free their memory for others while they waited for their client.", func(s state) int64 { return s.memory.Evicted })
	gauge("realizar_connections_open", "Open connections of clients.", func(s state) float64 { return float64(s.connections.Open) })
	gauge("realizar_connections_limit", "Limit of open connections.", func(s state) float64 { return float64(s.connections.Most) })
	counter("realizar_connections_refused_total", "Connections refused because the limit was reached and all were busy.", func(s state) int64 { return s.connections.Refused })
	counter("realizar_connections_evicted_total", "Connections closed to make room for others while they waited for their client.", func(s state) int64 { return s.connections.Evicted })
	counter("realizar_connections_costly_total", "Connections whose refusals are delayed, because so many of their requests were refused or cancelled.", func(s state) int64 { return s.connections.Costly })
	return m
}

// show handles GET /metrics.
func (m *metrics) show(x *Exchange) error {
	whole := &wholeWriter{ResponseWriter: x.w}
	m.handler.ServeHTTP(whole, x.Request)
	_, err := x.w.Write(whole.body.Bytes())
	return err
}

// A wholeWriter keeps the body of an answer, which is otherwise written a metric at a time.
type wholeWriter struct {
	http.ResponseWriter
	body bytes.Buffer
}

func (w *wholeWriter) Write(p []byte) (int, error) { return w.body.Write(p) }

// answered counts a request that has ended.
func (m *metrics) answered(x *Exchange) {
	route := x.Pattern
	if route == "" {
		route = "none" // it was answered before it was routed
	}
	m.requests.WithLabelValues(route, strconv.Itoa(x.status)).Inc()
	m.seconds.WithLabelValues(route).Observe(time.Since(x.begun).Seconds())
	var failure *panicError
	if as(x.err, &failure) {
		m.panics.Inc()
	}
}

// modelMetrics calls each with the metrics of every model, loaded or not.
func (s *Server) modelMetrics(each func(name string, m realizar.Metrics)) {
	for _, status := range s.models.Models() {
		s.Look(status.Name, func(*Model) {}) // so that its record follows it
		each(status.Name, s.records.of(status.Name).metrics())
	}
}

// modelMetrics reads each model's metrics once for each scrape, so that the numbers of
// a scrape belong together.
type modelMetrics struct {
	read func(each func(name string, m realizar.Metrics))
}

// A modelNumber is a gauge or a counter.
type modelNumber struct {
	desc  *prometheus.Desc
	value func(*realizar.Metrics) float64
}

// A modelHistogram is one of the histograms of [realizar.Metrics].
type modelHistogram struct {
	desc  *prometheus.Desc
	value func(*realizar.Metrics) *realizar.Histogram
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"model_name"}, labels...), nil)
}

var modelGauges = []modelNumber{
	{describe("vllm:num_requests_running", "Answers that have memory in the cache."),
		func(m *realizar.Metrics) float64 { return float64(m.Running) }},
	{describe("vllm:num_requests_waiting", "Answers that wait for memory in the cache."),
		func(m *realizar.Metrics) float64 { return float64(m.Waiting) }},
	{describe("vllm:kv_cache_usage_perc", "Share of the cache that answers hold, from 0 to 1, of the pool with the largest share. Pages that are kept for reuse alone are free."),
		func(m *realizar.Metrics) float64 { return cacheUsage(m) }},
	{describe("realizar_target_inter_token_seconds", "The longest that an answer should wait for its next token as prompts of others are read."),
		func(m *realizar.Metrics) float64 { return m.TargetITL.Seconds() }},
	{describe("realizar_step_prompt_tokens", "Tokens of prompts that the step made last had room for."),
		func(m *realizar.Metrics) float64 { return float64(m.StepPromptTokens) }},
	{describe("realizar_prompt_token_seconds", "Seconds that a token of a prompt adds to a step, as was learnt from steps; 0 before that."),
		func(m *realizar.Metrics) float64 { return m.PromptTokenTime.Seconds() }},
}

var modelCounters = []modelNumber{
	{describe("vllm:prompt_tokens_total", "Prompt tokens of answers that have started."),
		func(m *realizar.Metrics) float64 { return m.PromptLength.Sum }},
	{describe("vllm:generation_tokens_total", "Generated tokens."),
		func(m *realizar.Metrics) float64 { return float64(m.AnswerTokens) }},
	{describe("vllm:prefix_cache_queries_total", "Tokens looked up in the KV cache."),
		func(m *realizar.Metrics) float64 { return float64(m.CacheQueries) }},
	{describe("vllm:prefix_cache_hits_total", "Tokens found in the KV cache."),
		func(m *realizar.Metrics) float64 { return float64(m.CacheHits) }},
	{describe("vllm:num_preemptions_total", "Preempted answers."),
		func(m *realizar.Metrics) float64 { return float64(m.Preemptions) }},
	{describe("vllm:spec_decode_num_drafts_total", "Proposals of speculative decoding."),
		func(m *realizar.Metrics) float64 { return float64(m.Proposals) }},
	{describe("vllm:spec_decode_num_draft_tokens_total", "Proposed tokens."),
		func(m *realizar.Metrics) float64 { return float64(m.ProposedTokens) }},
	{describe("vllm:spec_decode_num_accepted_tokens_total", "Proposed tokens that the model sampled."),
		func(m *realizar.Metrics) float64 { return float64(m.AcceptedTokens) }},
	{describe("realizar_steps_total", "Steps of the model."),
		func(m *realizar.Metrics) float64 { return float64(m.Steps) }},
	{describe("realizar_step_seconds_total", "Seconds during which at least one step was running."),
		func(m *realizar.Metrics) float64 { return m.Busy.Seconds() }},
	{describe("realizar_computed_tokens_total", "Computed tokens of prompts and of preempted answers, without those found in the KV cache."),
		func(m *realizar.Metrics) float64 { return float64(m.PromptTokens) }},
	{describe("realizar_cache_evictions_total", "Pages evicted from the KV cache."),
		func(m *realizar.Metrics) float64 { return float64(m.Evictions) }},
	{describe("realizar_cache_saves_total", "Pages copied to host memory."),
		func(m *realizar.Metrics) float64 { return float64(m.Saves) }},
	{describe("realizar_cache_restores_total", "Pages copied back from host memory."),
		func(m *realizar.Metrics) float64 { return float64(m.Restores) }},
}

var modelHistograms = []modelHistogram{
	{describe("vllm:time_to_first_token_seconds", "Seconds from a request to an answer's first token."),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.TimeToFirst }},
	{describe("vllm:inter_token_latency_seconds", "Seconds from one token of an answer to the next."),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.BetweenTokens }},
	{describe("vllm:e2e_request_latency_seconds", "Seconds from a request to the end of an answer."),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.EndToEnd }},
	{describe("vllm:request_queue_time_seconds", "Seconds from a request to an answer's first step."),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.Queue }},
	{describe("vllm:request_prefill_time_seconds", "Seconds from an answer's first step to its first token."),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.Prefill }},
	{describe("vllm:request_decode_time_seconds", "Seconds from an answer's first token to its last."),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.Decode }},
	{describe("vllm:request_prompt_tokens", "Tokens of an answer's prompt."),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.PromptLength }},
	{describe("vllm:request_generation_tokens", "Tokens of an answer."),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.AnswerLength }},
}

var (
	successDesc  = describe("vllm:request_success_total", "Ended answers, by reason.", "finished_reason")
	acceptedDesc = describe("vllm:spec_decode_num_accepted_tokens_per_pos_total", "Proposed tokens that the model sampled, by their position in the proposal.", "position")
	configDesc   = describe("vllm:cache_config_info", "The KV cache: tokens of a page, and pages on the device and in host memory, of the first pool.",
		"block_size", "num_gpu_blocks", "num_cpu_blocks", "enable_prefix_caching")
	pagesDesc       = describe("realizar_cache_pages", "Pages of the KV cache, by pool, place and state.", "pool", "place", "state")
	memoryTotalDesc = describe("realizar_device_memory_total_bytes", "Memory of the model's device; 0 if the system does not report it.", "device")
	memoryFreeDesc  = describe("realizar_device_memory_free_bytes", "Free memory of the model's device; 0 if the system does not report it.", "device")
)

// finishedReasons are vLLM's words for endings. Each is shown from the start, so that a rate over
// it begins at 0.
var finishedReasons = []struct {
	reason string
	of     []realizar.Ending
}{
	{"stop", []realizar.Ending{realizar.EndedByStop, realizar.EndedByStopString}},
	{"length", []realizar.Ending{realizar.EndedByLength}},
	{"abort", []realizar.Ending{realizar.Cancelled}},
	{"error", []realizar.Ending{realizar.EndedByError}},
}

// cacheUsage returns the used share, from 0 to 1, of the fullest pool: if one pool has no page
// left, no further request is admitted.
func cacheUsage(m *realizar.Metrics) (share float64) {
	for _, p := range m.Pools {
		if p.Pages > 0 {
			share = max(share, float64(p.Used)/float64(p.Pages))
		}
	}
	return share
}

// Describe is called when the collector is registered.
func (c *modelMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, n := range slices.Concat(modelGauges, modelCounters) {
		out <- n.desc
	}
	for _, h := range modelHistograms {
		out <- h.desc
	}
	out <- successDesc
	out <- acceptedDesc
	out <- configDesc
	out <- pagesDesc
	out <- memoryTotalDesc
	out <- memoryFreeDesc
}

// Collect is called for each scrape.
func (c *modelMetrics) Collect(out chan<- prometheus.Metric) {
	c.read(func(name string, m realizar.Metrics) { collect(out, name, &m) })
}

// collect sends the metrics of the model of that name.
func collect(out chan<- prometheus.Metric, name string, m *realizar.Metrics) {
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		metric, err := prometheus.NewConstMetric(desc, kind, v, append([]string{name}, labels...)...)
		if err != nil {
			metric = prometheus.NewInvalidMetric(desc, err)
		}
		out <- metric
	}
	for _, n := range modelGauges {
		send(n.desc, prometheus.GaugeValue, n.value(m))
	}
	for _, n := range modelCounters {
		send(n.desc, prometheus.CounterValue, n.value(m))
	}
	for _, r := range finishedReasons {
		var ended uint64
		for _, how := range r.of {
			ended += m.Ended[how]
		}
		send(successDesc, prometheus.CounterValue, float64(ended), r.reason)
	}
	for i, n := range m.AcceptedAt {
		if n > 0 || i == 0 {
			send(acceptedDesc, prometheus.CounterValue, float64(n), strconv.Itoa(i))
		}
	}
	for i, p := range m.Pools {
		pool := strconv.Itoa(i)
		if i == 0 {
			send(configDesc, prometheus.GaugeValue, 1, strconv.Itoa(p.PageTokens), strconv.Itoa(p.Pages), strconv.Itoa(p.HostPages), "True")
		}
		send(pagesDesc, prometheus.GaugeValue, float64(p.Used), pool, "device", "used")
		send(pagesDesc, prometheus.GaugeValue, float64(p.Idle), pool, "device", "idle")
		send(pagesDesc, prometheus.GaugeValue, float64(p.Pages-p.Used-p.Idle), pool, "device", "empty")
		send(pagesDesc, prometheus.GaugeValue, float64(p.HostUsed), pool, "host", "used")
		send(pagesDesc, prometheus.GaugeValue, float64(p.HostPages-p.HostUsed), pool, "host", "empty")
	}
	if m.Device.Name != "" {
		send(memoryTotalDesc, prometheus.GaugeValue, float64(m.Device.Total), m.Device.Name)
		send(memoryFreeDesc, prometheus.GaugeValue, float64(m.Device.Free), m.Device.Name)
	}
	for _, h := range modelHistograms {
		out <- constHistogram(h.desc, name, h.value(m))
	}
}

// constHistogram returns h in Prometheus' form, in which a bucket counts all values up to its
// bound.
func constHistogram(desc *prometheus.Desc, name string, h *realizar.Histogram) prometheus.Metric {
	buckets := make(map[float64]uint64, len(h.Bounds))
	var below uint64
	for i, bound := range h.Bounds {
		below += h.Counts[i]
		buckets[bound] = below
	}
	metric, err := prometheus.NewConstHistogram(desc, h.Count(), h.Sum, buckets, name)
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	return metric
}
