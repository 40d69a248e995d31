package watch

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/load"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// recorded returns pages of a realizar server under load, a second apart.
func recorded(t testing.TB, name string, at time.Time) *Sample {
	t.Helper()
	page, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(page, at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parse(t *testing.T, at time.Time, lines ...string) *Sample {
	t.Helper()
	s, err := Parse([]byte("vllm:num_requests_running 1\n"+strings.Join(lines, "\n")+"\n"), at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A server's metrics are read, and an interval is the difference of two pages.
func TestRecorded(t *testing.T) {
	from, to := recorded(t, "first.txt", noon), recorded(t, "second.txt", noon.Add(2*time.Second))
	if diff := cmp.Diff([]string{"babble"}, to.Models); diff != "" || to.Running != 16 || to.Waiting < 1 || to.CacheUse <= 0 {
		t.Errorf("models %q, %v running, %v waiting, %v of the cache", to.Models, to.Running, to.Waiting, to.CacheUse)
	}
	if len(to.Pools) != 1 || to.Pools[0].Used+to.Pools[0].Idle+to.Pools[0].Empty != 512 || to.Pools[0].Used < 16 {
		t.Errorf("pools %+v", to.Pools)
	}
	if len(to.Devices) != 1 || to.Devices[0].Name != "cpu" || to.Devices[0].Free <= 0 || to.Devices[0].Free >= to.Devices[0].Total {
		t.Errorf("devices %+v", to.Devices)
	}
	for c := range counters {
		if math.IsNaN(to.Counter(c)) != (c == Other) {
			t.Errorf("counter %d is %v", c, to.Counter(c))
		}
	}
	i := Between(from, to)
	if i.Restarted || i.Seconds != 2 {
		t.Errorf("%v seconds, restarted: %v", i.Seconds, i.Restarted)
	}
	for c := range counters {
		grown := to.Counter(c) - from.Counter(c)
		if c != Other && (i.Grown(c) != grown || i.Rate(c) != grown/2) {
			t.Errorf("counter %d has grown by %v, at a rate of %v; want %v", c, i.Grown(c), i.Rate(c), grown)
		}
	}
	if b := i.Busy(); !(b > .4 && b <= 1) { // the pages were a second apart
		t.Errorf("busy: %v", b)
	}
	if r := i.Right(); !math.IsNaN(r) {
		t.Errorf("%v of no proposed tokens are right", r)
	}
	if h := i.Hits(); !(h > 0 && h < to.Hits()+1) || to.Hits() <= 0 {
		t.Errorf("hits: %v, %v in all", h, to.Hits())
	}
	for l := range latencies {
		came, all := i.Latency(l), to.Latency(l)
		if came.Count() <= 0 || came.Count() >= all.Count() || came.Count() != all.Count()-from.Latency(l).Count() {
			t.Errorf("latency %d: %v values of %v", l, came.Count(), all.Count())
		}
		if low, high := came.Quantile(.5), came.Quantile(.99); !(low.Value > 0 && low.Value <= high.Value && high.Value < 10) {
			t.Errorf("latency %d: %v at half, %v at 99%%", l, low, high)
		}
	}
}

// If a server has restarted, all of its counters count.
func TestRestarted(t *testing.T) {
	i := Between(recorded(t, "second.txt", noon), recorded(t, "restarted.txt", noon.Add(4*time.Second)))
	if !i.Restarted || i.Grown(AnswerTokens) != i.To.Counter(AnswerTokens) || i.Rate(Full) != i.To.Counter(Full)/4 {
		t.Errorf("restarted: %v, %v tokens in %v s", i.Restarted, i.Grown(AnswerTokens), i.Seconds)
	}
	if got, want := i.Latency(EndToEnd).Count(), i.To.Latency(EndToEnd).Count(); got != want || got == 0 {
		t.Errorf("%v answers ended, want %v", got, want)
	}
	for _, test := range []struct {
		what     string
		from, to []string
		want     bool
	}{
		{"the same", []string{"realizar_steps_total 5"}, []string{"realizar_steps_total 5"}, false},
		{"more", []string{"realizar_steps_total 5"}, []string{"realizar_steps_total 6"}, false},
		{"a counter went back", []string{"realizar_steps_total 5"}, []string{"realizar_steps_total 4"}, true},
		{"a histogram did", histogramLines(5), histogramLines(4), true},
		{"a counter did, of the same process", []string{"process_start_time_seconds 1000", "realizar_steps_total 5"}, []string{"process_start_time_seconds 1000", "realizar_steps_total 4"}, false},
		{"another process", []string{"process_start_time_seconds 1000"}, []string{"process_start_time_seconds 1005", "realizar_steps_total 6"}, true},
		{"a start that is not quite the same", []string{"process_start_time_seconds 1000"}, []string{"process_start_time_seconds 1000.01"}, false},
		{"a counter that is not there any more", []string{"realizar_steps_total 5"}, nil, false},
		{"one that is new", nil, []string{"realizar_steps_total 5"}, false},
	} {
		if got := Between(parse(t, noon, test.from...), parse(t, noon.Add(time.Second), test.to...)); got.Restarted != test.want {
			t.Errorf("%s: restarted: %v", test.what, got.Restarted)
		}
	}
}

func histogramLines(n int) []string {
	return []string{
		"# TYPE vllm:e2e_request_latency_seconds histogram", `vllm:e2e_request_latency_seconds_bucket{le="1"} ` + fmt.Sprint(n),
		`vllm:e2e_request_latency_seconds_bucket{le="+Inf"} ` + fmt.Sprint(n), "vllm:e2e_request_latency_seconds_sum 1", "vllm:e2e_request_latency_seconds_count " + fmt.Sprint(n),
	}
}

// Several metrics of one name are summed; invalid and missing ones are not known.
func TestParse(t *testing.T) {
	s := parse(t, noon,
		`vllm:num_requests_running{model_name="b",engine="0"} 2`, `vllm:num_requests_running{model_name="a"} 3`, `vllm:num_requests_running{model_name="b",engine="1"} 4`,
		`vllm:num_requests_waiting -1`, `vllm:kv_cache_usage_perc 1.5`, `realizar_steps_total NaN`, `realizar_step_seconds_total +Inf`,
		`vllm:generation_tokens_total 1e30`, `vllm:prompt_tokens_total 7`,
		`vllm:request_success_total{finished_reason="stop"} 1`, `vllm:request_success_total{finished_reason="stop",engine="1"} 2`, `vllm:request_success_total{finished_reason="boredom"} 5`,
		`realizar_http_requests_total{route="POST /v1/completions",code="200"} 10`, `realizar_http_requests_total{route="POST /v1/completions",code="429"} 3`,
		`realizar_http_requests_total{route="none",code="503"} 4`, `realizar_http_requests_total{route="GET /nothing",code="404"} 50`, `realizar_http_requests_total{route="POST /",code="x"} 50`,
		`realizar_cache_pages{pool="1",place="device",state="used"} 5`, `realizar_cache_pages{pool="0",place="host",state="empty"} 6`, `realizar_cache_pages{pool="0",place="host",state="used"} NaN`,
		`realizar_cache_pages{pool="x",place="device",state="used"} 5`, `realizar_cache_pages{pool="0",place="device",state="lost"} 5`,
		`realizar_device_memory_free_bytes{device="y"} 9`, `realizar_device_memory_total_bytes{device="y"} 8`, `realizar_device_memory_total_bytes{device="x"} 3`,
	)
	nan := math.NaN()
	want := map[Counter]float64{PromptTokens: 7, AnswerTokens: nan, Steps: nan, StepSeconds: nan, Stopped: 3, Full: nan, Other: 5, Errors: 7}
	for c, v := range want {
		if got := s.Counter(c); got != v && !(math.IsNaN(got) && math.IsNaN(v)) {
			t.Errorf("counter %d is %v, want %v", c, got, v)
		}
	}
	if s.Running != 10 || !math.IsNaN(s.Waiting) || s.CacheUse != 1 || s.Up != 0 {
		t.Errorf("%v running, %v waiting, %v of the cache, up %v", s.Running, s.Waiting, s.CacheUse, s.Up)
	}
	if diff := cmp.Diff([]string{"a", "b"}, s.Models); diff != "" {
		t.Errorf("models (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]Pool{{Number: 0, HostEmpty: 6}, {Number: 1, Used: 5}}, s.Pools); diff != "" {
		t.Errorf("pools (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]Device{{"x", 0, 3}, {"y", 8, 8}}, s.Devices); diff != "" {
		t.Errorf("devices (-want +got)\n%s", diff)
	}
	for what, page := range map[string]string{"nothing": "", "another program's": "go_goroutines 5\n", "a web page": "<html>", "a broken line": "vllm:num_requests_running{ 1\n"} {
		if s, err := Parse([]byte(page), noon); err == nil {
			t.Errorf("%s is taken for %+v", what, s)
		}
	}
	loading := `realizar_model_state{model_name="m",state="loading"} 1` + "\n"
	if s, err := Parse([]byte(loading), noon); err == nil || !strings.Contains(err.Error(), "is being loaded") {
		t.Errorf("a server that loads its model is taken for %+v, %v", s, err)
	}
}

// The models of a server are listed separately, the most interesting first. Their counters,
// requests and latencies are summed, their caches are not.
func TestSeveralModels(t *testing.T) {
	lines := []string{
		`vllm:kv_cache_usage_perc{model_name="a"} 0.25`, `vllm:kv_cache_usage_perc{model_name="b"} 0.5`, `realizar_steps_total{model_name="a"} 5`, `realizar_steps_total{model_name="b"} 6`,
		`realizar_cache_pages{model_name="b",pool="0",place="device",state="used"} 5`, `realizar_cache_pages{model_name="a",pool="0",place="device",state="used"} 6`,
		`realizar_models_memory_bytes{device="x"} 5`, `realizar_models_memory_limit_bytes{device="x"} 9`, `realizar_models_memory_limit_bytes{device="w"} 8`, `realizar_models_memory_bytes{device="v"} 5`,
		`realizar_models_memory_limit_bytes{device="u"} -3`,
		`realizar_model_memory_bytes{model_name="c",device="x"} 3`, `realizar_model_memory_bytes{model_name="c",device="w"} 1`, `realizar_model_memory_bytes{model_name="nobody",device="w"} 1`,
		`realizar_model_requests{model_name="f"} 2`, `realizar_model_waiting_requests{model_name="e"} 7`, `realizar_model_requests{model_name="a"} NaN`,
		"# TYPE vllm:e2e_request_latency_seconds histogram",
		`vllm:e2e_request_latency_seconds_bucket{model_name="a",le="+Inf"} 0`, `vllm:e2e_request_latency_seconds_count{model_name="a"} 0`,
	}
	for _, name := range []string{"b", "c"} {
		lines = append(lines, `vllm:e2e_request_latency_seconds_bucket{model_name="`+name+`",le="1"} 2`, `vllm:e2e_request_latency_seconds_bucket{model_name="`+name+`",le="+Inf"} 2`,
			`vllm:e2e_request_latency_seconds_count{model_name="`+name+`"} 2`)
	}
	for name, state := range map[string]string{"a": "absent", "b": "ready", "c": "loading", "d": "failed", "e": "absent", "f": "ready", "g": "bored", "h": "draining"} {
		lines = append(lines, `realizar_model_state{model_name="`+name+`",state="`+state+`"} 1`, `realizar_model_state{model_name="`+name+`",state="other"} 0`)
	}
	s := parse(t, noon, lines...)
	want := []ModelStatus{
		{"c", ModelLoading, 0, 0, 4}, {"h", ModelDraining, 0, 0, 0}, {"e", ModelAbsent, 0, 7, 0}, {"f", ModelReady, 2, 0, 0}, {"b", ModelReady, 0, 0, 0},
		{"d", ModelFailed, 0, 0, 0}, {"a", ModelAbsent, 0, 0, 0}, {"g", ModelUnknown, 0, 0, 0},
	}
	if diff := cmp.Diff(want, s.Statuses); diff != "" || !s.Several() {
		t.Errorf("models (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]Reserve{{"w", 0, 8}, {"x", 5, 9}}, s.Reserves); diff != "" {
		t.Errorf("memory (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]Pool{{Model: "a", Used: 6}, {Model: "b", Used: 5}}, s.Pools); diff != "" {
		t.Errorf("pools (-want +got)\n%s", diff)
	}
	if h := s.Latency(EndToEnd); s.CacheUse != .5 || s.Counter(Steps) != 11 || h.Count() != 4 || h.Quantile(1).Value != 1 {
		t.Errorf("%v of the cache, %v steps, %v answers %+v", s.CacheUse, s.Counter(Steps), h.Count(), h)
	}
	many := make([]string, 0, 2*maxModels)
	for i := range 2 * maxModels {
		many = append(many, fmt.Sprintf(`realizar_model_state{model_name="%d",state="ready"} 1`, i))
	}
	if n := len(parse(t, noon, many...).Statuses); n != maxModels {
		t.Errorf("%d models are taken", n)
	}
	if parse(t, noon, many[0]).Several() {
		t.Error("one model is several")
	}
}

// Loading and unloading a model is no restart of the server, and a model that is no longer served
// subtracts nothing from the others.
func TestModelGone(t *testing.T) {
	start := "process_start_time_seconds 1000"
	i := Between(parse(t, noon, append(histogramLines(5), start, "realizar_steps_total 5")...), parse(t, noon.Add(time.Second), append(histogramLines(4), start, "realizar_steps_total 4")...))
	if i.Restarted || i.Grown(Steps) != 0 || i.Latency(EndToEnd).Count() != 0 {
		t.Errorf("restarted: %v, %v steps, %v answers", i.Restarted, i.Grown(Steps), i.Latency(EndToEnd).Count())
	}
}

func TestRead(t *testing.T) {
	page, err := os.ReadFile("testdata/first.txt")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/large/metrics":
			_, _ = w.Write(bytes.Repeat([]byte("# much to say\n"), 1<<20))
		case r.URL.Path != "/metrics" && r.URL.Path != "/a/metrics":
			http.NotFound(w, r)
		case r.Header.Get("Authorization") != "Bearer sesame":
			http.Error(w, `{"error": {"message": "which key?"}}`, http.StatusUnauthorized)
		default:
			w.Header().Set("Date", time.UnixMilli(int64(1000*startOf(page))).Add(90*time.Second).UTC().Format(http.TimeFormat))
			_, _ = w.Write(page)
		}
	}))
	defer s.Close()
	for _, test := range []struct{ address, key, says string }{
		{s.URL, "sesame", ""},
		{s.URL + "/", "sesame", ""},
		{s.URL + "/v1", "sesame", ""},
		{s.URL + "/metrics", "sesame", ""},
		{s.URL + "/a/v1/", "sesame", ""},
		{s.URL, "", "status 401: which key?"},
		{s.URL + "/b", "sesame", "status 404"},
		{s.URL + "/large", "sesame", "more than 8388608 bytes"},
	} {
		w, err := New(test.address, test.key)
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.Read(t.Context())
		switch {
		case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%s: error %v, want one that says %q", test.address, err, test.says)
		case test.says != "":
		case err != nil:
			t.Errorf("%s: %v", test.address, err)
		case got.Running != 16 || got.Up.Round(2*time.Second) != 90*time.Second || time.Since(got.At) > time.Minute:
			t.Errorf("%s: %v running, up %v, at %v", test.address, got.Running, got.Up, got.At)
		}
	}
	for _, address := range []string{"", "localhost", "ftp://localhost", "http://", "http://localhost?x=1"} {
		if _, err := New(address, ""); !errors.Is(err, load.ErrOptions) {
			t.Errorf("%q is taken for an address: %v", address, err)
		}
	}
}

// startOf returns the start time of a page's process.
func startOf(page []byte) float64 {
	s, err := Parse(page, noon)
	if err != nil {
		return 0
	}
	return s.started
}

// Whatever two pages contain, numbers are sound or NaN.
func FuzzBetween(f *testing.F) {
	for _, name := range []string{"first.txt", "second.txt", "restarted.txt"} {
		page, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(page, page[:len(page)/2])
	}
	for _, line := range append(histogramLines(5), "vllm:kv_cache_usage_perc 0.5", `realizar_cache_pages{pool="0",place="device",state="used"} 1`, `realizar_device_memory_total_bytes{device="\n"} 8`,
		`realizar_model_state{model_name="a",state="ready"} 1`, `realizar_model_memory_bytes{model_name="a",device="x"} 8`, `realizar_models_memory_limit_bytes{device="x"} 8`) {
		f.Add([]byte("vllm:num_requests_running 1\n"+line+"\n"), []byte(line+"\nvllm:num_requests_running{model_name=\"\x1b\"} 1\n"))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		from, err := Parse(a, noon)
		if err != nil {
			return
		}
		to, err := Parse(b, noon.Add(time.Second))
		if err != nil {
			return
		}
		sensible := func(what string, v, most float64) {
			if v < 0 || v > most || math.IsInf(v, 0) {
				t.Errorf("%s is %v", what, v)
			}
		}
		i := Between(from, to)
		for c := range counters {
			sensible("a rate", i.Rate(c), most)
		}
		for l := range latencies {
			for _, h := range []Histogram{i.Latency(l), to.Latency(l)} {
				sensible("a count", h.Count(), 1e3*most)
				if low, high := h.Quantile(.5).Value, h.Quantile(.99).Value; low > high || math.IsInf(low, 0) || math.IsInf(high, 0) || math.IsNaN(low) != math.IsNaN(high) {
					t.Errorf("half are below %v, 99%% below %v", low, high)
				}
			}
		}
		sensible("the busy share", i.Busy(), 1)
		sensible("the share of hits", i.Hits(), 1)
		sensible("the share of hits", to.Hits(), 1)
		for _, d := range to.Devices {
			sensible("free memory", d.Free, d.Total)
		}
		for _, m := range to.Statuses {
			sensible("requests", m.Requests, most)
			sensible("requests that wait", m.Waiting, most)
			sensible("a model's memory", m.Memory, most)
		}
		for _, r := range to.Reserves {
			sensible("memory of models", r.Used, most)
			sensible("its limit", r.Limit, most)
		}
	})
}
