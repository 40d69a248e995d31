package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A stub answers requests within the process, so that only the bubble's clock counts.
type stub struct {
	first, gap time.Duration // before the first part, and between parts
	pieces     int
	tokens     int // in usage; 0 for no usage
	script     func(n int, w *io.PipeWriter) error
	status     func(n int) int // nil: 200

	mu     sync.Mutex
	bodies []map[string]any
	under  int // way
	most   int
	busy   sync.WaitGroup
}

func (s *stub) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.URL.Path {
	case "/v1/models":
		return response(200, `{"data":[{"id":"only"}]}`), nil
	case "/tokenize":
		return response(404, `{"error":{"message":"no such path"}}`), nil
	}
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	s.mu.Lock()
	n := len(s.bodies)
	s.bodies = append(s.bodies, body)
	s.under++
	s.most = max(s.most, s.under)
	s.mu.Unlock()
	left := func() {
		s.mu.Lock()
		s.under--
		s.mu.Unlock()
	}
	if s.status != nil {
		if status := s.status(n); status != 200 {
			left()
			return response(status, `{"error":{"message":"too much","type":"x"}}`), nil
		}
	}
	in, out := io.Pipe()
	stop := context.AfterFunc(r.Context(), func() { out.CloseWithError(r.Context().Err()) })
	s.busy.Go(func() {
		defer stop()
		defer left()
		script := s.script
		if script == nil {
			script = s.answer
		}
		out.CloseWithError(script(n, out))
	})
	return &http.Response{StatusCode: 200, Body: in, Header: http.Header{}}, nil
}

func response(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}
}

// answer writes the answer of a chat.
func (s *stub) answer(_ int, w *io.PipeWriter) error {
	say(w, `{"choices":[{"delta":{"role":"assistant","content":""}}]}`)
	for i := range s.pieces {
		if i == 0 {
			time.Sleep(s.first)
		} else {
			time.Sleep(s.gap)
		}
		say(w, `{"choices":[{"delta":{"content":"word "}}]}`)
	}
	say(w, `{"choices":[{"delta":{},"finish_reason":"length"}]}`)
	if s.tokens > 0 {
		say(w, fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":3}}}`, s.tokens))
	}
	say(w, "[DONE]")
	return io.EOF
}

func say(w io.Writer, data string) { _, _ = io.WriteString(w, "data: "+data+"\n\n") }

// lengths parses s, and panics on an error.
func lengths(s string) Lengths {
	l, err := ParseLengths(s)
	if err != nil {
		panic(err)
	}
	return l
}

func usual() Options {
	return Options{URL: "http://stub", Endpoint: Chat, Prompt: lengths("5"), Answer: lengths("4"), Seed: 1, Requests: 6, Concurrency: 2}
}

// run returns the measurement of the stub.
func run(t *testing.T, ctx context.Context, s *stub, o Options) (*Result, error) {
	t.Helper()
	g, err := newGenerator(ctx, o, s)
	if err != nil {
		t.Fatal(err)
	}
	defer s.busy.Wait()
	return g.Run(ctx)
}

// near reports whether ms equals want to the three digits of a histogram.
func near(ms float64, want time.Duration) bool {
	w := float64(want) / float64(time.Millisecond)
	return ms >= w*0.999-1e-3 && ms <= w*1.001+1e-3
}

func TestOneForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{first: 30 * time.Millisecond, gap: 10 * time.Millisecond, pieces: 4, tokens: 8}
		r, err := run(t, t.Context(), s, usual())
		if err != nil {
			t.Fatal(err)
		}
		if r.Model != "only" || r.Completed != 6 || r.Failed != 0 || r.PromptTokens != 42 || r.CachedTokens != 18 || r.AnswerTokens != 48 || r.Chunks != 24 || r.Uncounted != 0 {
			t.Errorf("got %+v", r)
		}
		if s.most != 2 {
			t.Errorf("%d requests under way at most, want 2", s.most)
		}
		// Three answers of 60 ms, one after the other.
		if !near(1000*r.Seconds, 180*time.Millisecond) || !near(1000*48/r.AnswerRate, 180*time.Millisecond) || !near(1000*6/r.RequestRate, 180*time.Millisecond) {
			t.Errorf("%v s, %v tok/s, %v requests/s", r.Seconds, r.AnswerRate, r.RequestRate)
		}
		if l := r.FirstToken; l.Count != 6 || !near(l.P50, s.first) || !near(l.Max, s.first) || !near(l.Mean, s.first) {
			t.Errorf("first token %+v", l)
		}
		if l := r.InterToken; l.Count != 18 || !near(l.P50, s.gap) || !near(l.Max, s.gap) {
			t.Errorf("inter-token %+v", l)
		}
		if l := r.PerToken; l.Count != 6 || !near(l.P99, 30*time.Millisecond/7) {
			t.Errorf("per token %+v", l)
		}
		if l := r.EndToEnd; l.Count != 6 || !near(l.P95, 60*time.Millisecond) {
			t.Errorf("end to end %+v", l)
		}
		if l := r.Late; l.Count != 6 || l.Max != 0 {
			t.Errorf("late %+v", l)
		}
	})
}

// The latency of a request that is sent late counts from when it was due.
func TestLatencyCountsFromWhenARequestWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{first: time.Second, pieces: 1, tokens: 1}
		o := usual()
		o.Rate, o.Concurrency, o.Requests = 1000, 1, 5
		r, err := run(t, t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		if s.most != 1 || r.Completed != 5 {
			t.Errorf("%d under way, %d answered, want 1 and 5", s.most, r.Completed)
		}
		// All are due within a few milliseconds; the last one waits for four answers.
		if l := r.Late; l.Max < 3900 || l.Max > 4000 {
			t.Errorf("late by %+v", l)
		}
		if l := r.FirstToken; l.Max < 4900 || l.Max > 5000 || l.P50 < 2900 || l.P50 > 3000 {
			t.Errorf("first token %+v", l)
		}
		if l := r.EndToEnd; l.Max < 4900 || l.Max > 5000 {
			t.Errorf("end to end %+v", l)
		}
	})
}

// Requests are sent at their times, whether or not earlier ones have ended.
func TestRate(t *testing.T) {
	due := func(seed uint64) (times []time.Duration, r *Result) {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			var mu sync.Mutex
			s := &stub{}
			s.script = func(n int, w *io.PipeWriter) error {
				mu.Lock()
				times = append(times, time.Since(begun))
				mu.Unlock()
				time.Sleep(time.Minute)
				return s.answer(n, w)
			}
			o := usual()
			o.Rate, o.Concurrency, o.Requests, o.Duration, o.Seed = 100, 0, 0, 20*time.Second, seed
			var err error
			if r, err = run(t, t.Context(), s, o); err != nil {
				t.Fatal(err)
			}
			if s.most != len(s.bodies) {
				t.Errorf("%d of %d under way at one time", s.most, len(s.bodies))
			}
		})
		return times, r
	}
	times, r := due(7)
	// 2000 requests are expected, with a standard deviation of 45.
	if n := len(times); n < 1800 || n > 2200 || r.Completed != n || times[n-1] >= 20*time.Second || times[n-1] < 19*time.Second {
		t.Fatalf("%d requests, %d answered, the last after %v", n, r.Completed, times[n-1])
	}
	// The times between them are exponential: their deviation is their mean.
	var sum, squares float64
	for i := range times[1:] {
		d := (times[i+1] - times[i]).Seconds()
		sum, squares = sum+d, squares+d*d
	}
	n := float64(len(times) - 1)
	mean := sum / n
	if spread := (squares/n - mean*mean) / (mean * mean); spread < 0.8 || spread > 1.25 {
		t.Errorf("the gaps' variance is %.2f of the mean's square, want 1", spread)
	}
	again, _ := due(7)
	other, _ := due(8)
	if !slices.Equal(times, again) || slices.Equal(times, other) {
		t.Error("the times do not come from the seed")
	}
}

func TestDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{first: 400 * time.Millisecond, pieces: 1, tokens: 1}
		o := usual()
		o.Requests, o.Duration, o.Concurrency = 0, time.Second, 3
		r, err := run(t, t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		// Those sent at 0.8 s are waited for.
		if r.Completed != 9 || !near(1000*r.Seconds, 1200*time.Millisecond) {
			t.Errorf("%d answered in %v s, want 9 in 1.2", r.Completed, r.Seconds)
		}
	})
}

func TestErrorsByKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{pieces: 2, tokens: 2}
		s.status = func(n int) int {
			if n == 0 {
				return 429
			}
			return 200
		}
		s.script = func(n int, w *io.PipeWriter) error {
			switch n {
			case 1: // the end is missing
				say(w, `{"choices":[{"delta":{"content":"wor"}}]}`)
				return io.EOF
			case 2:
				say(w, `{"choices":[{"delta":{"content":"wor"}}]}`)
				return io.ErrUnexpectedEOF
			case 3:
				say(w, `{"choices":[{"delta":{"content":"wor"}}]}`)
				say(w, `{"error":{"message":"out of luck"}}`)
				return io.EOF
			case 4:
				_, _ = io.WriteString(w, "<html>hello</html>\n")
				return io.EOF
			case 5:
				time.Sleep(time.Hour)
				return io.EOF
			case 6: // an end without a reason is incomplete
				say(w, `{"choices":[{"delta":{"content":"wor"}}]}`)
				say(w, "[DONE]")
				return io.EOF
			}
			return s.answer(n, w)
		}
		o := usual()
		o.Requests, o.Concurrency, o.Timeout = 10, 1, time.Minute
		r, err := run(t, t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for kind, f := range r.Errors {
			got[kind] = f.Count
		}
		want := map[string]int{"status 429": 1, "cut off": 3, "error in the stream": 1, "no stream of events": 1, "no end within 1m0s": 1}
		if !maps.Equal(got, want) || r.Failed != 7 || r.Completed != 3 || r.FirstToken.Count != 3 || r.EndToEnd.Count != 3 {
			t.Errorf("errors %v, %d failed, %d answered", got, r.Failed, r.Completed)
		}
		if first := r.Errors["status 429"].First; first != "status 429: too much" {
			t.Errorf("the first failure said %q", first)
		}
		if first := r.Errors["error in the stream"].First; !strings.Contains(first, "out of luck") {
			t.Errorf("the error in the stream said %q", first)
		}
	})
}

func TestStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{first: 10 * time.Second, pieces: 1, tokens: 1}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		o := usual()
		o.Requests = 100
		r, err := run(t, ctx, s, o)
		if !errors.Is(err, context.DeadlineExceeded) || r.Completed != 2 || r.Abandoned != 2 || r.Failed != 0 || len(r.Errors) != 0 {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

// If a server sends no usage, each part counts as a token.
func TestNoUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := run(t, t.Context(), &stub{pieces: 3}, usual())
		if err != nil || r.Completed != 6 || r.Uncounted != 6 || r.AnswerTokens != 18 || r.PromptTokens != 0 {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

func TestSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{first: 50 * time.Millisecond, gap: 100 * time.Millisecond, pieces: 3, tokens: 6}
		o := usual()
		o.Requests, o.Concurrency = 2, 1
		r, err := run(t, t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		// Parts arrive at 50, 150, 250, 300, 400 and 500 ms and hold two tokens each.
		if got := r.Series; got.Interval != 0.1 || !slices.Equal(got.AnswerTokens, []float64{2, 2, 2, 2, 2, 2}) || !slices.Equal(got.Completed, []float64{0, 0, 1, 0, 0, 1}) {
			t.Errorf("series %+v", got)
		}
	})
	ticks := make([]tick, 250)
	for i := range ticks {
		ticks[i].tokens = 1
	}
	got := merged(ticks)
	if got.Interval != 0.5 || len(got.AnswerTokens) != 50 || got.AnswerTokens[0] != 5 || got.AnswerTokens[49] != 5 {
		t.Errorf("250 ticks merged: %+v", got)
	}
}

func TestOptions(t *testing.T) {
	for name, change := range map[string]func(*Options){
		`"mail"`:           func(o *Options) { o.Endpoint = "mail" },
		"0 requests":       func(o *Options) { o.Requests = 0 },
		"running requests": func(o *Options) { o.Concurrency = 0 },
		"rate of -1":       func(o *Options) { o.Rate = -1 },
		"rate of NaN":      func(o *Options) { o.Rate = math.NaN() },
		"want 1e-06":       func(o *Options) { o.Rate = 1e-300 },
		"to 1000000":       func(o *Options) { o.Rate = math.Inf(1) },
		"beginnings":       func(o *Options) { o.Shared = 5 },
		"shared":           func(o *Options) { o.Shared = -5 },
		"time limit":       func(o *Options) { o.Timeout = -1 },
		"address":          func(o *Options) { o.URL = "ftp://x" },
		"fields":           func(o *Options) { o.Fields = map[string]any{"f": func() {}} },
	} {
		o := usual()
		change(&o)
		if _, err := newGenerator(t.Context(), o, &stub{}); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
