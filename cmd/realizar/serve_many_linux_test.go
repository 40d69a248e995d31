package main_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/demo"
	"github.com/realizar/realizar/internal/modeltest"
)

// fiveModels are the demo and four models of random weights, of several sizes, by name, or what
// REALIZAR_MANY_MODELS lists, with commas.
func fiveModels(t *testing.T) map[string]string {
	t.Helper()
	if list := os.Getenv("REALIZAR_MANY_MODELS"); list != "" {
		models := map[string]string{}
		for path := range strings.SplitSeq(list, ",") {
			models[strings.TrimSuffix(filepath.Base(path), ".gguf")] = path
		}
		return models
	}
	return map[string]string{
		"demo": demo.Name,
		"one":  modeltest.Llama(t, modeltest.Seed(1), modeltest.Context(512)),
		"two":  modeltest.Llama(t, modeltest.Seed(2), modeltest.Context(4096)),
		"wide": modeltest.Llama(t, modeltest.Seed(3), modeltest.HeadDim(128), modeltest.Context(1024)),
		"hub":  modeltest.Hub(t, modeltest.Seed(4), modeltest.Context(2048)),
	}
}

// A question is a request of many clients, by model.
type question struct{ model, body string }

// ask sends it, and returns the text of the answer.
func (s *served) ask(q question) (text string, err error) {
	status, _, text, err := s.completion(q.body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", q.model, status, text)
	}
	return text, err
}

// Five models in the memory of two, and 32 clients that ask at random: every answer is that of a
// server with the one model, and what the models take is never above the limit. It goes on for
// REALIZAR_MANY_TIME, or until each client has four answers.
func TestServeMany(t *testing.T) {
	models := fiveModels(t)
	names := make([]string, 0, len(models))
	needs := map[string]int64{}
	var sorted []int64
	for name, path := range models {
		names = append(names, name)
		d, err := realizar.Describe(path)
		if err != nil {
			t.Fatal(err)
		}
		least, err := d.Least(t.Context(), realizar.Options{Device: "cpu", Parallel: 16, Context: 512})
		if err != nil {
			t.Fatal(err)
		}
		needs[name] = least.Bytes
		sorted = append(sorted, least.Bytes)
	}
	slices.Sort(names)
	slices.Sort(sorted)
	limit := sorted[len(sorted)-1] + sorted[len(sorted)-2]
	questions := map[string][]question{}
	want := map[question]string{}
	for _, name := range names {
		s := serve(t, models[name], "--context", "512", "--parallel", "16", "--served-model-name", name)
		for i := range 4 {
			body := fmt.Sprintf(`{"model":%q,"prompt":"This is number %d of the questions.","max_tokens":%d,"seed":%d,"temperature":0.8,"ignore_eos":true}`, name, i, 4+8*i, i)
			q := question{name, body}
			text, err := s.ask(q)
			if err != nil {
				t.Fatal(err)
			}
			questions[name], want[q] = append(questions[name], q), text
		}
		s.signal(syscall.SIGTERM)
		if code := s.exit(); code != 0 {
			t.Fatalf("exit code %d: %s", code, s.log)
		}
	}
	file := new(strings.Builder)
	for _, name := range names {
		fmt.Fprintf(file, "%s:\n  source: %s\n", name, models[name])
	}
	s := serveAll(t, nil, "--models", writeFile(t, "models.yaml", file.String()), "--context", "512", "--parallel", "16", "--memory", fmt.Sprint(limit), "--max-queue", "64")
	if text := os.Getenv("REALIZAR_MANY_TIME"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		askMany(t, s, names, questions, want, func(_ int, begun time.Time) bool { return time.Since(begun) < d })
	} else {
		askMany(t, s, names, questions, want, func(asked int, _ time.Time) bool { return asked < 4 })
	}
	var total strings.Builder
	for _, name := range names {
		fmt.Fprintf(&total, " %s %.1f MB", name, float64(needs[name])/1e6)
	}
	t.Logf("limit %.1f MB:%s", float64(limit)/1e6, &total)
	s.signal(syscall.SIGTERM)
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d: %s", code, s.log)
	}
}

// askMany has 32 clients ask while more says so, and a watcher look at the memory.
func askMany(t *testing.T, s *served, names []string, questions map[string][]question, want map[question]string, more func(asked int, begun time.Time) bool) {
	const clients = 32
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		waits   []time.Duration
		answers [clients]int
		anon    int64
		ended   atomic.Bool
	)
	begun := time.Now()
	for client := range clients {
		all.Go(func() {
			r := rand.New(rand.NewPCG(27, uint64(client)))
			for more(answers[client], begun) {
				name := names[r.IntN(len(names))]
				q := questions[name][r.IntN(len(questions[name]))]
				asked := time.Now()
				got, err := s.ask(q)
				if err != nil || got != want[q] {
					t.Errorf("%q is answered with %q (%v), want %q", q.body, got, err, want[q])
					return
				}
				answers[client]++
				mu.Lock()
				waits = append(waits, time.Since(asked))
				mu.Unlock()
			}
		})
	}
	var watcher sync.WaitGroup
	looks := 0
	watcher.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for !ended.Load() {
			var list struct {
				Memory map[string]struct{ Used, Limit int64 }
			}
			if _, body := s.get("/models"); json.Unmarshal([]byte(body), &list) != nil {
				t.Error(body)
				return
			}
			if m := list.Memory["cpu"]; m.Used > m.Limit {
				t.Errorf("models take %d bytes, and may take %d", m.Used, m.Limit)
			}
			anon = max(anon, residentOf(t, s.cmd.Process.Pid))
			looks++
			<-tick.C
		}
	})
	all.Wait()
	ended.Store(true)
	watcher.Wait()
	slices.Sort(waits)
	var list struct {
		Data []struct {
			ID               string
			Loads, Evictions int
		}
	}
	if _, body := s.get("/models"); json.Unmarshal([]byte(body), &list) != nil {
		t.Fatal(body)
	}
	if slices.Min(answers[:]) == 0 {
		t.Errorf("answers by client: %v", answers)
	}
	t.Logf("%d answers in %v, by client %d to %d; from request to answer %v at the median, %v at the 99th percentile, %v at most; anonymous memory at most %.1f MB in %d looks; %+v",
		len(waits), time.Since(begun).Round(time.Second), slices.Min(answers[:]), slices.Max(answers[:]),
		waits[len(waits)/2].Round(time.Millisecond), waits[len(waits)*99/100].Round(time.Millisecond), waits[len(waits)-1].Round(time.Millisecond), float64(anon)/1e6, looks, list.Data)
}

// residentOf is a process's memory that is no file's, in bytes.
func residentOf(t *testing.T, pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Error(err)
		return 0
	}
	for line := range strings.Lines(string(data)) {
		var kilobytes int64
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kilobytes); n == 1 {
			return kilobytes << 10
		}
	}
	return 0
}
