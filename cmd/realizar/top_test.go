package main_test

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// metricsServer serves pages in order, and the last one from then on. An empty page is an error.
// looks counts the requests.
func metricsServer(t *testing.T, pages ...string) (url string, looks *atomic.Int64) {
	t.Helper()
	looks = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch page := pages[min(int(looks.Add(1)), len(pages))-1]; {
		case r.URL.Path != "/metrics":
			http.NotFound(w, r)
		case r.Header.Get("Authorization") != "Bearer sesame":
			http.Error(w, `{"error": {"message": "which key?"}}`, http.StatusUnauthorized)
		case page == "":
			http.Error(w, `{"error": {"message": "the model is being loaded"}}`, http.StatusServiceUnavailable)
		default:
			_, _ = io.WriteString(w, page)
		}
	}))
	t.Cleanup(s.Close)
	t.Setenv("REALIZAR_API_KEY", "sesame")
	return s.URL, looks
}

func recordedPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "internal", "watch", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTopOnce checks that top reads twice and writes one frame if standard output is not a
// terminal.
func TestTopOnce(t *testing.T) {
	for _, args := range [][]string{nil, {"--once"}} {
		url, looks := metricsServer(t, recordedPage(t, "first.txt"), recordedPage(t, "second.txt"))
		got := output(t, "", append([]string{"top", url, "--interval", "100ms"}, args...)...)
		for _, part := range []string{"babble   " + url, "16 running   8 waiting\n", "since start\n", "\nfirst token ", "17% used   83% kept   of 512 pages\n"} {
			if !strings.Contains(got, part) {
				t.Errorf("there is no %q in\n%s", part, got)
			}
		}
		if strings.Contains(got, "\x1b") || strings.Contains(got, "leaves") || looks.Load() != 2 {
			t.Errorf("after %d looks it writes\n%s", looks.Load(), got)
		}
	}
}

// A topLine is the part of the output of --json that the tests check.
type topLine struct {
	Error     string
	Away      *float64 `json:"away_s"`
	Models    []string
	Up        *float64 `json:"up_s"`
	Seconds   float64
	Restarted bool
	Running   float64
	Ended     map[string]*float64 `json:"ended_s"`
	Answer    float64             `json:"answer_tok_s"`
	Busy      *float64
	Cache     []struct{ Pool, Used, Idle, Empty, HostUsed, HostEmpty float64 }
	Hits      *float64 `json:"prefix_hits"`
	Memory    []struct {
		Device string
		Total  float64 `json:"total_bytes"`
	}
	Latency map[string]map[string]struct {
		N     float64
		P50   *float64 `json:"p50_ms"`
		P99   *float64 `json:"p99_ms"`
		Above []string
	}
}

func TestTopJSON(t *testing.T) {
	url, _ := metricsServer(t, recordedPage(t, "first.txt"), recordedPage(t, "second.txt"))
	var got topLine
	text := output(t, "", "top", url, "--once", "--json", "--interval", "100ms")
	if err := json.Unmarshal([]byte(text), &got); err != nil || strings.Count(text, "\n") != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	first := got.Latency["first_token"]
	switch {
	case len(got.Models) != 1 || got.Models[0] != "babble" || got.Running != 16 || got.Restarted || got.Error != "":
		t.Errorf("of the server: %s", text)
	case math.Abs(got.Answer*got.Seconds-(22361-15445)) > 1e-6 || got.Ended["length"] == nil || got.Ended["other"] != nil || got.Hits == nil || got.Busy == nil:
		t.Errorf("of the interval: %s", text)
	case len(got.Cache) != 1 || got.Cache[0].Used == 0 || len(got.Memory) != 1 || got.Memory[0].Device != "cpu" || got.Memory[0].Total == 0:
		t.Errorf("of the memory: %s", text)
	case len(got.Latency) != 4 || first["interval"].N >= first["all"].N || first["interval"].P50 == nil || *first["interval"].P99 <= *first["interval"].P50 || len(first["all"].Above) != 0:
		t.Errorf("of the latencies: %s", text)
	}
}

// TestTopJSONSeveral checks that the output has the state of each model if there are several, and
// no such members for one.
func TestTopJSONSeveral(t *testing.T) {
	page := recordedPage(t, "second.txt")
	for _, name := range []string{"a", "b"} {
		page += `realizar_model_state{model_name="` + name + `",state="ready"} 1` + "\n"
	}
	page += `realizar_model_waiting_requests{model_name="b"} 2` + "\n" + `realizar_model_memory_bytes{model_name="b",device="cpu"} 8` + "\n" +
		`realizar_models_memory_bytes{device="cpu"} 8` + "\n" + `realizar_models_memory_limit_bytes{device="cpu"} 9` + "\n"
	url, _ := metricsServer(t, page)
	got := output(t, "", "top", url, "--once", "--json", "--interval", "100ms")
	for _, want := range []string{
		`"states":{"ready":2}`, `"statuses":[{"model":"b","state":"ready","requests":0,"waiting":2,"memory_bytes":8},{"model":"a",`,
		`"reserved":[{"device":"cpu","used_bytes":8,"limit_bytes":9}]`, `"cache":[{"model":"babble","pool":0,`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s in %s", want, got)
		}
	}
	url, _ = metricsServer(t, recordedPage(t, "second.txt"))
	got = output(t, "", "top", url, "--once", "--json", "--interval", "100ms")
	for _, name := range []string{"states", "statuses", "reserved", "model"} {
		if strings.Contains(got, `"`+name+`":`) {
			t.Errorf("of one model there is %s: %s", name, got)
		}
	}
}

func TestTopErrors(t *testing.T) {
	url, _ := metricsServer(t, "")
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{url, "--once"}, 1, url + ": GET /metrics: status 503: the model is being loaded"},
		{[]string{url, "--api-key", "knock"}, 1, "status 401: which key?"},
		{[]string{url + "/nothing", "--once", "--json"}, 1, "status 404"},
		{[]string{gone.URL}, 1, "connection refused); start one with realizar serve MODEL, or give the address of another: realizar top URL"},
		{[]string{"localhost"}, 2, `"localhost" is not the address of a server`},
		{[]string{url, "--interval", "50ms"}, 2, "--interval=50ms: want 100ms to 1h0m0s"},
		{[]string{url, "--interval", "2h"}, 2, "--interval=2h0m0s"},
	} {
		fails(t, realizarRun(t, append([]string{"top"}, test.args...)...), test.code, test.says)
	}
	pages, _ := metricsServer(t, "go_goroutines 5\n")
	fails(t, realizarRun(t, "top", pages), 1, "no metrics of a server of language models")
}
