package server

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/budget"
	"github.com/realizar/realizar/internal/kvtransfer"
	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server/promtext"
)

// metrics are what GET /metrics shows: the metrics of models, under vLLM's names, which gateways in
// front of such servers read; the server's own; and those of the process.
type metrics struct {
	read  func() state
	slow  *slowMetrics
	texts sync.Pool // buffers of earlier texts, *[]byte

	mu     sync.Mutex
	routes []routeCounts // by route
	panics uint64
}

// A state is the current state of a server.
type state struct {
	admitted    int // answers that were admitted
	memory      budget.Stats
	connections ConnectionStats
	pool        poolState
	transfers   kvtransfer.Stats
	models      []modelMetrics
}

// modelMetrics are the metrics of a model's name.
type modelMetrics struct {
	name string
	realizar.Metrics
}

// A number is a gauge or a counter of a T.
type number[T any] struct {
	*promtext.Metric
	value func(*T) float64
}

// appendNumbers appends numbers of all, each with a label, or without labels if label is nil.
func appendNumbers[T any](b []byte, numbers []number[T], all []T, label func(*T) string) []byte {
	for _, n := range numbers {
		b = n.AppendHead(b)
		for i := range all {
			if label == nil {
				b = n.Append(b, n.value(&all[i]))
			} else {
				b = n.Append(b, n.value(&all[i]), label(&all[i]))
			}
		}
	}
	return b
}

// newMetrics returns metrics of the states that read returns, and of requests that are counted.
func newMetrics(read func() state) *metrics {
	return &metrics{read: read, slow: newSlowMetrics(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))}
}

// show handles GET /metrics.
func (m *metrics) show(x *Exchange) error {
	buffer, _ := m.texts.Get().(*[]byte)
	if buffer == nil {
		buffer = new([]byte)
	}
	defer m.texts.Put(buffer)
	b, err := m.append((*buffer)[:0])
	*buffer = b
	if err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", promtext.ContentType)
	x.w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, err = x.w.Write(b)
	return err
}

// append appends all metrics to b. The state is read once, so that numbers belong together.
func (m *metrics) append(b []byte) ([]byte, error) {
	s := m.read()
	b = appendModels(b, s.models)
	b = appendReplicas(b, s.models)
	b = s.pool.append(b)
	b = appendNumbers(b, transferNumbers, []kvtransfer.Stats{s.transfers}, nil)
	b = appendNumbers(b, stateNumbers, []state{s}, nil)
	b = m.appendRequests(b)
	return m.slow.append(b)
}

var stateNumbers = []number[state]{
	{promtext.Gauge("realizar_answers_admitted", "Admitted answers that have not ended: running or queued."),
		func(s *state) float64 { return float64(s.admitted) }},
	{promtext.Gauge("realizar_request_memory_bytes", "Memory held by requests: bodies, texts, tokens, and answers that are not sent yet."),
		func(s *state) float64 { return float64(s.memory.Used - s.memory.Spare) }},
	{promtext.Gauge("realizar_request_memory_spare_bytes", "Memory that keeps earlier answers for later requests; it is freed for any request."),
		func(s *state) float64 { return float64(s.memory.Spare) }},
	{promtext.Gauge("realizar_request_memory_limit_bytes", "Limit of the memory held by all requests."),
		func(s *state) float64 { return float64(s.memory.Limit) }},
	{promtext.Counter("realizar_request_memory_refused_total", "Requests refused because of the memory limit."),
		func(s *state) float64 { return float64(s.memory.Refused) }},
	{promtext.Counter("realizar_request_memory_evicted_total", "Requests ended to free their memory for others while they waited for their client."),
		func(s *state) float64 { return float64(s.memory.Evicted) }},
	{promtext.Gauge("realizar_connections_open", "Open connections of clients."),
		func(s *state) float64 { return float64(s.connections.Open) }},
	{promtext.Gauge("realizar_connections_limit", "Limit of open connections."),
		func(s *state) float64 { return float64(s.connections.Most) }},
	{promtext.Counter("realizar_connections_refused_total", "Connections refused because the limit was reached and all were busy."),
		func(s *state) float64 { return float64(s.connections.Refused) }},
	{promtext.Counter("realizar_connections_evicted_total", "Connections closed to make room for others while they waited for their client."),
		func(s *state) float64 { return float64(s.connections.Evicted) }},
	{promtext.Counter("realizar_connections_costly_total", "Connections whose refusals are delayed, because so many of their requests were refused or cancelled."),
		func(s *state) float64 { return float64(s.connections.Costly) }},
}

// modelMetrics returns the metrics of models.
func (s *Server) modelMetrics(models []pool.Status) []modelMetrics {
	all := make([]modelMetrics, len(models))
	for i := range models {
		name := models[i].Name
		s.Look(name, func(*Model) {}) // so that its record follows it
		all[i] = modelMetrics{name, s.records.of(name).metrics()}
	}
	return all
}

// A modelHistogram is one of the histograms of [realizar.Metrics].
type modelHistogram struct {
	*promtext.Metric
	value func(*realizar.Metrics) *realizar.Histogram
}

// modelNumbers have the label model_name.
var modelNumbers = []number[modelMetrics]{
	{promtext.Gauge("vllm:num_requests_running", "Answers that have memory in the cache.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.Running) }},
	{promtext.Gauge("vllm:num_requests_waiting", "Answers that wait for memory in the cache.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.Waiting) }},
	{promtext.Gauge("vllm:kv_cache_usage_perc", "Share of the cache that answers hold, from 0 to 1, of the pool with the largest share. Pages that are kept for reuse alone are free.", "model_name"),
		func(m *modelMetrics) float64 { return cacheUsage(m.Pools) }},
	{promtext.Gauge("realizar_target_inter_token_seconds", "The longest that an answer should wait for its next token as prompts of others are read.", "model_name"),
		func(m *modelMetrics) float64 { return m.TargetITL.Seconds() }},
	{promtext.Gauge("realizar_step_prompt_tokens", "Tokens of prompts that the step made last had room for.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.StepPromptTokens) }},
	{promtext.Gauge("realizar_prompt_token_seconds", "Seconds that a token of a prompt adds to a step, as was learnt from steps; 0 before that.", "model_name"),
		func(m *modelMetrics) float64 { return m.PromptTokenTime.Seconds() }},
	{promtext.Counter("vllm:prompt_tokens_total", "Prompt tokens of answers that have started.", "model_name"),
		func(m *modelMetrics) float64 { return m.PromptLength.Sum }},
	{promtext.Counter("vllm:generation_tokens_total", "Generated tokens.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.AnswerTokens) }},
	{promtext.Counter("vllm:prefix_cache_queries_total", "Tokens looked up in the KV cache.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.CacheQueries) }},
	{promtext.Counter("vllm:prefix_cache_hits_total", "Tokens found in the KV cache.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.CacheHits) }},
	{promtext.Counter("vllm:num_preemptions_total", "Preempted answers.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.Preemptions) }},
	{promtext.Counter("vllm:spec_decode_num_drafts_total", "Proposals of speculative decoding.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.Proposals) }},
	{promtext.Counter("vllm:spec_decode_num_draft_tokens_total", "Proposed tokens.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.ProposedTokens) }},
	{promtext.Counter("vllm:spec_decode_num_accepted_tokens_total", "Proposed tokens that the model sampled.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.AcceptedTokens) }},
	{promtext.Counter("realizar_steps_total", "Steps of the model.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.Steps) }},
	{promtext.Counter("realizar_step_seconds_total", "Seconds during which at least one step was running.", "model_name"),
		func(m *modelMetrics) float64 { return m.Busy.Seconds() }},
	{promtext.Counter("realizar_computed_tokens_total", "Computed tokens of prompts and of preempted answers, without those found in the KV cache.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.PromptTokens) }},
	{promtext.Counter("realizar_cache_evictions_total", "Pages evicted from the KV cache.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.Evictions) }},
	{promtext.Counter("realizar_cache_saves_total", "Pages copied to host memory.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.Saves) }},
	{promtext.Counter("realizar_cache_restores_total", "Pages copied back from host memory.", "model_name"),
		func(m *modelMetrics) float64 { return float64(m.Restores) }},
}

// A replicaMetrics is a copy of a model.
type replicaMetrics struct {
	model, number string
	realizar.ReplicaMetrics
}

// replicaNumbers have the labels model_name and replica. They are of models with several copies.
var replicaNumbers = []number[replicaMetrics]{
	{promtext.Gauge("realizar_replica_up", "1 for a copy of the model that works, 0 for one that has failed and gets no requests until it works again.", "model_name", "replica"),
		func(r *replicaMetrics) float64 {
			if r.Failed {
				return 0
			}
			return 1
		}},
	{promtext.Gauge("realizar_replica_answers_running", "Answers that have memory in the cache of the copy.", "model_name", "replica"),
		func(r *replicaMetrics) float64 { return float64(r.Running) }},
	{promtext.Gauge("realizar_replica_answers_waiting", "Answers that wait for memory in the cache of the copy.", "model_name", "replica"),
		func(r *replicaMetrics) float64 { return float64(r.Waiting) }},
	{promtext.Gauge("realizar_replica_generated_tokens", "Tokens that the copy has generated since the model was loaded.", "model_name", "replica"),
		func(r *replicaMetrics) float64 { return float64(r.AnswerTokens) }},
}

// appendReplicas appends the numbers of the copies of models that have several.
func appendReplicas(b []byte, models []modelMetrics) []byte {
	var all []replicaMetrics
	for i := range models {
		for k, r := range models[i].Replicas {
			if len(models[i].Replicas) > 1 {
				all = append(all, replicaMetrics{models[i].name, strconv.Itoa(k), r})
			}
		}
	}
	for _, n := range replicaNumbers {
		b = n.AppendHead(b)
		for i := range all {
			b = n.Append(b, n.value(&all[i]), all[i].model, all[i].number)
		}
	}
	return b
}

// modelHistograms have the label model_name.
var modelHistograms = []modelHistogram{
	{promtext.Histogram("vllm:time_to_first_token_seconds", "Seconds from a request to an answer's first token.", "model_name"),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.TimeToFirst }},
	{promtext.Histogram("vllm:inter_token_latency_seconds", "Seconds from one token of an answer to the next.", "model_name"),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.BetweenTokens }},
	{promtext.Histogram("vllm:e2e_request_latency_seconds", "Seconds from a request to the end of an answer.", "model_name"),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.EndToEnd }},
	{promtext.Histogram("vllm:request_queue_time_seconds", "Seconds from a request to an answer's first step.", "model_name"),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.Queue }},
	{promtext.Histogram("vllm:request_prefill_time_seconds", "Seconds from an answer's first step to its first token.", "model_name"),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.Prefill }},
	{promtext.Histogram("vllm:request_decode_time_seconds", "Seconds from an answer's first token to its last.", "model_name"),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.Decode }},
	{promtext.Histogram("vllm:request_prompt_tokens", "Tokens of an answer's prompt.", "model_name"),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.PromptLength }},
	{promtext.Histogram("vllm:request_generation_tokens", "Tokens of an answer.", "model_name"),
		func(m *realizar.Metrics) *realizar.Histogram { return &m.AnswerLength }},
}

var (
	successes   = promtext.Counter("vllm:request_success_total", "Ended answers, by reason.", "model_name", "finished_reason")
	accepted    = promtext.Counter("vllm:spec_decode_num_accepted_tokens_per_pos_total", "Proposed tokens that the model sampled, by their position in the proposal.", "model_name", "position")
	cacheConfig = promtext.Gauge("vllm:cache_config_info", "The KV cache: tokens of a page, and pages on the device and in host memory, of the first pool.", "model_name",
		"block_size", "num_gpu_blocks", "num_cpu_blocks", "enable_prefix_caching")
	cachePages = promtext.Gauge("realizar_cache_pages", "Pages of the KV cache, by pool, place and state.", "model_name", "pool", "place", "state")
)

// deviceMemory has the labels model_name and device.
var deviceMemory = []number[realizar.DeviceMemory]{
	{promtext.Gauge("realizar_device_memory_total_bytes", "Memory of the model's device; 0 if the system does not report it.", "model_name", "device"), func(d *realizar.DeviceMemory) float64 { return float64(d.Total) }},
	{promtext.Gauge("realizar_device_memory_free_bytes", "Free memory of the model's device; 0 if the system does not report it.", "model_name", "device"), func(d *realizar.DeviceMemory) float64 { return float64(d.Free) }},
}

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
func cacheUsage(pools []realizar.PoolMetrics) (share float64) {
	for _, p := range pools {
		if p.Pages > 0 {
			share = max(share, float64(p.Used)/float64(p.Pages))
		}
	}
	return share
}

// appendModels appends the metrics of models.
func appendModels(b []byte, models []modelMetrics) []byte {
	b = appendNumbers(b, modelNumbers, models, func(m *modelMetrics) string { return m.name })
	for _, h := range modelHistograms {
		b = h.AppendHead(b)
		for i := range models {
			v := h.value(&models[i].Metrics)
			b = h.AppendHistogram(b, v.Bounds, v.Counts, v.Sum, models[i].name)
		}
	}
	b = successes.AppendHead(b)
	for _, m := range models {
		for _, r := range finishedReasons {
			var ended uint64
			for _, how := range r.of {
				ended += m.Ended[how]
			}
			b = successes.Append(b, float64(ended), m.name, r.reason)
		}
	}
	b = accepted.AppendHead(b)
	for _, m := range models {
		for i, n := range m.AcceptedAt {
			if n > 0 || i == 0 {
				b = accepted.Append(b, float64(n), m.name, strconv.Itoa(i))
			}
		}
	}
	b = cacheConfig.AppendHead(b)
	for _, m := range models {
		if len(m.Pools) > 0 {
			p := &m.Pools[0]
			b = cacheConfig.Append(b, 1, m.name, strconv.Itoa(p.PageTokens), strconv.Itoa(p.Pages), strconv.Itoa(p.HostPages), "True")
		}
	}
	b = cachePages.AppendHead(b)
	for _, m := range models {
		for i, p := range m.Pools {
			pool := strconv.Itoa(i)
			b = cachePages.Append(b, float64(p.Used), m.name, pool, "device", "used")
			b = cachePages.Append(b, float64(p.Idle), m.name, pool, "device", "idle")
			b = cachePages.Append(b, float64(p.Pages-p.Used-p.Idle), m.name, pool, "device", "empty")
			b = cachePages.Append(b, float64(p.HostUsed), m.name, pool, "host", "used")
			b = cachePages.Append(b, float64(p.HostPages-p.HostUsed), m.name, pool, "host", "empty")
		}
	}
	for _, of := range deviceMemory {
		b = of.AppendHead(b)
		for i := range models {
			if d := &models[i].Device; d.Name != "" {
				b = of.Append(b, of.value(d), models[i].name, d.Name)
			}
		}
	}
	return b
}
