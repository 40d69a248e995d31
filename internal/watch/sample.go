package watch

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// A Sample is a server's metrics at one time. A number that the server does not show is NaN.
type Sample struct {
	At     time.Time
	Up     time.Duration // of the server's process; 0 if not known
	Models []string      // names, as the server writes them

	Running, Waiting float64 // answers
	CacheUse         float64 // share of the cache in use, 0 to 1, of the model with the largest share
	Pools            []Pool  // of the caches, by model and number
	Devices          []Device
	Statuses         []ModelStatus // the most interesting first; none if the server does not show them
	Reserves         []Reserve     // memory that models share, by device

	started   float64 // start of the process, in seconds since 1970
	counters  [counters]float64
	latencies [latencies]Histogram
}

// A Pool is the pages of a part of a model's cache.
type Pool struct {
	Model               string // as the server writes it
	Number              int
	Used, Idle, Empty   float64
	HostUsed, HostEmpty float64 // in host memory
}

// A Device is the memory of a device, in bytes; 0 if the server does not know it.
type Device struct {
	Name        string // as the server writes it
	Free, Total float64
}

// A Counter is a number that grows while a server runs.
type Counter int

// The counters.
const (
	PromptTokens   Counter = iota // of prompts that were started
	ComputedTokens                // prompt tokens that were not cached
	AnswerTokens
	Steps
	StepSeconds // with a step in flight
	CacheQueries
	CacheHits
	Preemptions
	Evictions
	Saves
	Restores
	Proposed // tokens, in speculative decoding
	Accepted // of these, tokens that the model sampled
	Stopped  // answers ended by a stop token or string
	Full     // answers ended by their length
	Left     // answers ended by their client
	Failed   // answers ended by an error
	Other    // answers ended otherwise
	Errors   // requests with a status of 400 or more, without 499, for a client that left before

	counters
)

// A Latency is a time whose distribution a server shows.
type Latency int

// The latencies.
const (
	FirstToken Latency = iota
	BetweenTokens
	EndToEnd
	Queue

	latencies
)

// Counter returns the value of a counter.
func (s *Sample) Counter(c Counter) float64 { return s.counters[c] }

// Latency returns the distribution of a latency since the server started.
func (s *Sample) Latency(l Latency) Histogram { return s.latencies[l] }

// The metrics by name. Counters with a label are identified by its value.
var (
	counterNames = map[Counter]string{
		PromptTokens: "vllm:prompt_tokens_total", ComputedTokens: "realizar_computed_tokens_total", AnswerTokens: "vllm:generation_tokens_total",
		Steps: "realizar_steps_total", StepSeconds: "realizar_step_seconds_total",
		CacheQueries: "vllm:prefix_cache_queries_total", CacheHits: "vllm:prefix_cache_hits_total", Preemptions: "vllm:num_preemptions_total",
		Evictions: "realizar_cache_evictions_total", Saves: "realizar_cache_saves_total", Restores: "realizar_cache_restores_total",
		Proposed: "vllm:spec_decode_num_draft_tokens_total", Accepted: "vllm:spec_decode_num_accepted_tokens_total",
	}
	endings = map[string]Counter{"stop": Stopped, "length": Full, "abort": Left, "error": Failed}

	latencyNames = [latencies]string{
		"vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds", "vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds",
	}
)

// Bounds for the items of a page.
const (
	maxModels  = 1024
	maxPools   = 64
	maxDevices = 64
)

var (
	// errNoServer reports a page without the metrics of a server of models.
	errNoServer = errors.New("it has no metrics of a server of language models")
	// errLoading reports the page of a server that has not loaded its models yet.
	errLoading = errors.New("the model is being loaded")
)

// Parse parses a page of metrics in Prometheus' text format, which was read at the given time.
func Parse(page []byte, at time.Time) (*Sample, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		return nil, err
	}
	f := metricFamilies(families)
	if f["vllm:num_requests_running"] == nil {
		if f["realizar_model_state"] != nil {
			return nil, errLoading
		}
		return nil, errNoServer
	}
	s := &Sample{At: at, Running: f.sum("vllm:num_requests_running"), Waiting: f.sum("vllm:num_requests_waiting"), started: f.sum("process_start_time_seconds")}
	s.CacheUse = min(1, f.largest("vllm:kv_cache_usage_perc"))
	for c := range s.counters {
		s.counters[c] = math.NaN()
	}
	for c, name := range counterNames {
		s.counters[c] = f.sum(name)
	}
	for l, name := range latencyNames {
		s.latencies[l] = f.histogram(name)
	}
	s.endings(f)
	s.errors(f)
	s.models(f)
	s.pools(f)
	s.devices(f)
	s.statuses(f)
	return s, nil
}

// up returns how long the process has run, by the given clock.
func (s *Sample) up(clock time.Time) time.Duration {
	seconds := float64(clock.UnixMilli())/1e3 - s.started
	if !(seconds > 0 && seconds < maxUp.Seconds()) {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// maxUp is longer than processes run.
const maxUp = 100 * 365 * 24 * time.Hour

func (s *Sample) endings(f metricFamilies) {
	for _, m := range f["vllm:request_success_total"].GetMetric() {
		c, ok := endings[label(m, "finished_reason")]
		if !ok {
			c = Other
		}
		s.counters[c] = sum(s.counters[c], value(m))
	}
}

// errors counts failed requests. It ignores GET: clients that read the server's state, like this
// one, use it.
func (s *Sample) errors(f metricFamilies) {
	for _, m := range f["realizar_http_requests_total"].GetMetric() {
		if route := label(m, "route"); route == "none" || len(route) > 5 && route[:5] == "POST " {
			if code, err := strconv.Atoi(label(m, "code")); err == nil {
				failed := 0.0
				if code >= 400 {
					failed = value(m)
				}
				s.counters[Errors] = sum(s.counters[Errors], failed)
			}
		}
	}
}

func (s *Sample) models(f metricFamilies) {
	for _, m := range f["vllm:num_requests_running"].GetMetric() {
		if name := label(m, "model_name"); name != "" && !slices.Contains(s.Models, name) {
			if s.Models = append(s.Models, name); len(s.Models) == maxModels {
				break
			}
		}
	}
	slices.Sort(s.Models)
}

func (s *Sample) pools(f metricFamilies) {
	for _, m := range f["realizar_cache_pages"].GetMetric() {
		number, err := strconv.Atoi(label(m, "pool"))
		if err != nil {
			continue
		}
		name := label(m, "model_name")
		i := slices.IndexFunc(s.Pools, func(p Pool) bool { return p.Model == name && p.Number == number })
		if i < 0 {
			if len(s.Pools) == maxPools {
				continue
			}
			i = len(s.Pools)
			s.Pools = append(s.Pools, Pool{Model: name, Number: number})
		}
		p, pages := &s.Pools[i], sum(0, value(m))
		switch label(m, "place") + " " + label(m, "state") {
		case "device used":
			p.Used += pages
		case "device idle":
			p.Idle += pages
		case "device empty":
			p.Empty += pages
		case "host used":
			p.HostUsed += pages
		case "host empty":
			p.HostEmpty += pages
		}
	}
	slices.SortFunc(s.Pools, func(a, b Pool) int { return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Number, b.Number)) })
}

func (s *Sample) devices(f metricFamilies) {
	of := func(m *dto.Metric) *Device {
		name := label(m, "device")
		i := slices.IndexFunc(s.Devices, func(d Device) bool { return d.Name == name })
		if i < 0 {
			if len(s.Devices) == maxDevices {
				return new(Device)
			}
			i = len(s.Devices)
			s.Devices = append(s.Devices, Device{Name: name})
		}
		return &s.Devices[i]
	}
	for _, m := range f["realizar_device_memory_total_bytes"].GetMetric() {
		of(m).Total = sum(0, value(m))
	}
	for _, m := range f["realizar_device_memory_free_bytes"].GetMetric() {
		d := of(m)
		d.Free = min(d.Total, sum(0, value(m)))
	}
	slices.SortFunc(s.Devices, func(a, b Device) int { return cmp.Compare(a.Name, b.Name) })
}

// metricFamilies is a page, by name.
type metricFamilies map[string]*dto.MetricFamily

// sum returns the sum of a family's metrics, NaN if there are none.
func (f metricFamilies) sum(name string) float64 {
	total := math.NaN()
	for _, m := range f[name].GetMetric() {
		total = sum(total, value(m))
	}
	return total
}

// largest returns the largest of a family's metrics, NaN if there are none.
func (f metricFamilies) largest(name string) float64 {
	largest := math.NaN()
	for _, m := range f[name].GetMetric() {
		if v := value(m); math.IsNaN(largest) || v > largest {
			largest = v
		}
	}
	return largest
}

// histogram returns the sum of a family's histograms.
func (f metricFamilies) histogram(name string) (h Histogram) {
	for _, m := range f[name].GetMetric() {
		h = h.plus(newHistogram(m.GetHistogram()))
	}
	return h
}

// label returns the value of a label, or "".
func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// value returns the value of a metric of any type, NaN if it is not sound.
func value(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return sound(m.Counter.GetValue())
	case m.Gauge != nil:
		return sound(m.Gauge.GetValue())
	case m.Untyped != nil:
		return sound(m.Untyped.GetValue())
	}
	return math.NaN()
}

// most is larger than any sound number, and small enough for sums and differences.
const most = 1e18

// sound returns v, or NaN if no count, time or size can be v.
func sound(v float64) float64 {
	if !(v >= 0 && v <= most) {
		return math.NaN()
	}
	return v
}

// sum returns a+b without terms that are NaN.
func sum(a, b float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return min(most, a+b)
}
