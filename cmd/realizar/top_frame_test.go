package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/watch"
)

var update = flag.Bool("update", false, "write the golden frames anew")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// page returns a recorded page of a server as read at a time.
func page(t testing.TB, name string, at time.Time) topReading {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "internal", "watch", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return read(t, string(text), at)
}

func read(t testing.TB, text string, at time.Time) topReading {
	t.Helper()
	s, err := watch.Parse([]byte(text), at)
	if err != nil {
		t.Fatal(err)
	}
	return topReading{sample: s, at: at}
}

var errNobody = &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, Err: errors.New("connect: connection refused")}

// refused returns the reading of a server that cannot be reached.
func refused(at time.Time) topReading {
	return topReading{err: &url.Error{Op: "Get", URL: "http://127.0.0.1:8080/metrics", Err: errNobody}, at: at}
}

func newState(readings ...topReading) *serverState {
	s := &serverState{url: "http://127.0.0.1:8080", interval: time.Second}
	for _, r := range readings {
		s.take(r)
	}
	return s
}

// rich returns a page with several of everything, waiting requests, errors, and latencies above the
// last bound.
func rich(n int) string {
	var b strings.Builder
	for _, line := range []string{
		`vllm:num_requests_running{model_name="Qwen3-0.6B"} 12`, `vllm:num_requests_waiting{model_name="Qwen3-0.6B"} 3`,
		`vllm:prompt_tokens_total %d00`, `realizar_computed_tokens_total %d0`, `vllm:generation_tokens_total %d000`, `realizar_steps_total %d0`, `realizar_step_seconds_total ` + fmt.Sprint(float64(n)/1000),
		`vllm:prefix_cache_queries_total %d00`, `vllm:prefix_cache_hits_total %d0`, `vllm:num_preemptions_total %d`, `realizar_cache_evictions_total %d`,
		`realizar_cache_saves_total %d`, `realizar_cache_restores_total %d`, `vllm:spec_decode_num_draft_tokens_total %d00`, `vllm:spec_decode_num_accepted_tokens_total %d0`,
		`vllm:request_success_total{finished_reason="stop"} %d`, `vllm:request_success_total{finished_reason="length"} %d0`, `vllm:request_success_total{finished_reason="abort"} 0`,
		`vllm:request_success_total{finished_reason="error"} %d`, `vllm:request_success_total{finished_reason="repetition"} %d`,
		`realizar_http_requests_total{route="POST /v1/completions",code="429"} %d`,
		`realizar_cache_pages{pool="0",place="device",state="used"} 250`, `realizar_cache_pages{pool="0",place="device",state="idle"} 500`,
		`realizar_cache_pages{pool="0",place="device",state="empty"} 250`, `realizar_cache_pages{pool="0",place="host",state="used"} 40`,
		`realizar_cache_pages{pool="0",place="host",state="empty"} 60`, `realizar_cache_pages{pool="1",place="device",state="used"} 1`, `realizar_cache_pages{pool="1",place="device",state="empty"} 999`,
		`realizar_device_memory_total_bytes{device="NVIDIA H200"} 150121545728`, `realizar_device_memory_free_bytes{device="NVIDIA H200"} 35433480192`,
		`realizar_device_memory_total_bytes{device="another"} 0`,
		"# TYPE vllm:time_to_first_token_seconds histogram",
		`vllm:time_to_first_token_seconds_bucket{le="0.5"} %d`, `vllm:time_to_first_token_seconds_bucket{le="640"} %d`, `vllm:time_to_first_token_seconds_bucket{le="+Inf"} %d0`,
		`vllm:time_to_first_token_seconds_sum 1`, `vllm:time_to_first_token_seconds_count %d0`,
	} {
		b.WriteString(strings.ReplaceAll(line, "%d", fmt.Sprint(n)) + "\n")
	}
	return b.String()
}

// manyModels returns the page of a server with n models in all states, each with its own cache.
func manyModels(n int) string {
	var b strings.Builder
	b.WriteString(`realizar_models_memory_bytes{device="NVIDIA H200"} 97e9` + "\n" + `realizar_models_memory_limit_bytes{device="NVIDIA H200"} 140e9` + "\n")
	for i := range n {
		name := []string{"llama-3.1-8b", "Qwen/Qwen3-0.6B-GGUF:Q8_0", "embeddings", "broken", "gpt-oss-120b", "smol"}[i%6]
		if i >= 6 {
			name += fmt.Sprint("-", i)
		}
		fmt.Fprintf(&b, "realizar_model_state{model_name=%q,state=%q} 1\n", name, []string{"ready", "loading", "absent", "failed", "ready", "draining"}[i%6])
		fmt.Fprintf(&b, "vllm:num_requests_running{model_name=%q} %d\n", name, []int{3, 0, 0, 0, 0, 1}[i%6])
		fmt.Fprintf(&b, "realizar_model_requests{model_name=%q} %d\n", name, []int{4, 0, 0, 0, 0, 2}[i%6])
		fmt.Fprintf(&b, "realizar_model_waiting_requests{model_name=%q} %d\n", name, []int{0, 12, 0, 0, 0, 0}[i%6])
		if memory := []float64{9.1e9, 700e6, 0, 0, 65.3e9, 250e6}[i%6]; memory > 0 {
			fmt.Fprintf(&b, "realizar_model_memory_bytes{model_name=%q,device=\"NVIDIA H200\"} %g\n", name, memory)
		}
		if i == 0 || i == 4 {
			fmt.Fprintf(&b, "realizar_cache_pages{model_name=%[1]q,pool=\"0\",place=\"device\",state=\"used\"} %[2]d\nrealizar_cache_pages{model_name=%[1]q,pool=\"0\",place=\"device\",state=\"empty\"} 100\n", name, 5+10*i)
		}
	}
	return b.String()
}

// TestTopFrames compares frames with golden files and checks their widths and heights.
func TestTopFrames(t *testing.T) {
	begun := newState(page(t, "first.txt", noon), page(t, "second.txt", noon.Add(time.Second)))
	begun.last.Up = 3*time.Hour + 25*time.Minute
	long := newState(read(t, rich(1), noon))
	for i := 2; i < 400; i++ {
		long.take(read(t, rich(i*i), noon.Add(time.Duration(i)*time.Second)))
	}
	for _, test := range []struct {
		name          string
		state         *serverState
		width, height int
	}{
		{"begun-100", begun, 100, 40},
		{"begun-60", begun, 60, 0},
		{"begun-40", begun, 40, 0},
		{"begun-low", begun, 80, 12},
		{"one-look", newState(page(t, "first.txt", noon)), 80, 0},
		{"rich-120", long, 120, 40},
		{"rich-48", long, 48, 0},
		{"nobody", newState(), 80, 24},
		{"never", newState(refused(noon), refused(noon.Add(90*time.Second))), 80, 24},
		{"away", newState(page(t, "first.txt", noon), page(t, "second.txt", noon.Add(time.Second)), refused(noon.Add(2*time.Second)), refused(noon.Add(14*time.Second))), 80, 0},
		{"restarted", newState(page(t, "second.txt", noon), refused(noon.Add(time.Second)), page(t, "restarted.txt", noon.Add(4*time.Second))), 80, 0},
		{"models-120", newState(read(t, manyModels(6), noon)), 120, 40},
		{"models-80", newState(read(t, manyModels(6), noon)), 80, 24},
		{"models-60", newState(read(t, manyModels(8), noon)), 60, 0},
		{"models-40", newState(read(t, manyModels(40), noon)), 40, 44},
		{"models-many", newState(read(t, manyModels(200), noon)), 100, 0},
		{"another-server", newState(read(t, "vllm:num_requests_running 1\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0.25\n", noon)), 80, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.state.frame(test.width, test.height, "q leaves", plain) + "\n"
			path := filepath.Join("testdata", "top-"+test.name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the frame (-want +got)\n%s", diff)
			}
			if painted := ansi.Strip(test.state.frame(test.width, test.height, "q leaves", colours)); trimRows(painted) != strings.TrimSuffix(got, "\n") {
				t.Errorf("in colours it is another frame (-plain +colours)\n%s", cmp.Diff(got, painted))
			}
		})
	}
}

// trimRows returns text without spaces at the ends of rows; colored rows may have some.
func trimRows(text string) string {
	rows := strings.Split(text, "\n")
	for i, r := range rows {
		rows[i] = strings.TrimRight(r, " ")
	}
	return strings.Join(rows, "\n")
}

// TestTopFrameFits checks that a frame fits a terminal of any size.
func TestTopFrameFits(t *testing.T) {
	states := []*serverState{
		newState(), newState(refused(noon)), newState(read(t, rich(1), noon), read(t, rich(7), noon.Add(time.Second))),
		newState(read(t, rich(1), noon), read(t, rich(7), noon.Add(time.Second)), refused(noon.Add(time.Hour))),
		newState(read(t, manyModels(7), noon)), newState(read(t, manyModels(1000), noon)),
	}
	rapid.Check(t, func(t *rapid.T) {
		s := states[rapid.IntRange(0, len(states)-1).Draw(t, "state")]
		width, height := rapid.IntRange(1, 200).Draw(t, "width"), rapid.IntRange(1, 60).Draw(t, "height")
		rows := strings.Split(s.frame(width, height, "q leaves", colours), "\n")
		if len(rows) > height {
			t.Fatalf("%d rows in a terminal of %d", len(rows), height)
		}
		for _, r := range rows {
			if ansi.StringWidth(r) > width {
				t.Fatalf("%q is wider than %d columns", r, width)
			}
		}
	})
}

// TestTopIsPrintable checks that no text of a server can steer the terminal.
func TestTopIsPrintable(t *testing.T) {
	evil := `\u001b[2J\n\t\u202e` + "\x1b]0;title\x07\x9b31m\u202e" + strings.Repeat("x", 300)
	text := fmt.Sprintf("vllm:num_requests_running{model_name=\"%[1]s\"} 1\nrealizar_device_memory_total_bytes{device=\"%[1]s\"} 5\n", "\x1b[2J\\n\u202e\u0085"+strings.Repeat("x", 300))
	several := strings.Repeat("x", 300) + "\x1b[2J\\n\u202e\u0085"
	for _, name := range []string{several, "\u202e\u0085\x1b]0;" + several} {
		text += fmt.Sprintf("realizar_model_state{model_name=\"%[1]s\",state=\"ready\"} 1\nrealizar_model_requests{model_name=\"%[1]s\"} 1e18\n"+
			"realizar_model_memory_bytes{model_name=\"%[1]s\",device=\"%[1]s\"} 1e18\nrealizar_models_memory_limit_bytes{device=\"%[1]s\"} 1e18\nrealizar_cache_pages{model_name=\"%[1]s\",pool=\"0\",place=\"device\",state=\"used\"} 5\n", name)
	}
	states := []*serverState{
		newState(read(t, text, noon)),
		newState(topReading{err: errors.New(evil), at: noon}),
		newState(read(t, text, noon), topReading{err: &url.Error{Err: errors.New(evil)}, at: noon}),
	}
	for _, s := range states {
		s.url = "http://" + evil
		for _, r := range s.frame(80, 0, "", plain) {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Errorf("%q is shown", r)
			}
		}
	}
}

func TestSparkline(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		values []float64
		rows   int
		want   string
	}{
		{nil, 1, ""},
		{[]float64{nan, nan}, 1, ""},
		{[]float64{0, 0}, 1, "▁▁"},
		{[]float64{1, 2, 4, 8}, 1, "▁▂▄█"},
		{[]float64{0, nan, 8, 1e-9}, 1, "▁ █▁"},
		{[]float64{8, 4, 2, 0}, 2, "█   \n██▄▁"},
	} {
		lines, _ := sparkline(test.values, test.rows)
		if got := strings.Join(lines, "\n"); got != test.want {
			t.Errorf("%v in %d rows is\n%s\nwant\n%s", test.values, test.rows, got, test.want)
		}
	}
}

// TestHistory checks that a curve's columns are means of neighboring values, that neighbors stay
// together, and that all values count.
func TestHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h history
		n, width := rapid.IntRange(1, 2*historyLength).Draw(t, "n"), rapid.IntRange(1, historyLength+50).Draw(t, "width")
		for i := range n {
			h.add(float64(i))
		}
		columns, each := h.columns(width)
		if len(columns) > width || each*width < historyLength {
			t.Fatalf("%d columns of %d values in a width of %d", len(columns), each, width)
		}
		if !slices.IsSorted(columns) {
			t.Fatalf("of rising values the means are %v", columns)
		}
		h.add(float64(n))
		next, _ := h.columns(width)
		for _, v := range columns[:len(columns)-1] {
			if v >= float64(n-min(n, historyLength)+each) && v >= next[0] && !slices.Contains(next, v) {
				t.Fatalf("a value more changes %v to %v", columns, next)
			}
		}
	})
	var h history
	h.add(math.NaN())
	if c, _ := h.columns(10); len(c) != 1 || !math.IsNaN(c[0]) {
		t.Errorf("of nothing the columns are %v", c)
	}
}

func TestTopTexts(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{countText(math.NaN()), "-"}, {countText(0), "0"}, {countText(3), "3"}, {rateText(0), "0"}, {rateText(3), "3.00"}, {rateText(.004), "0.00"}, {rateText(9.994), "9.99"}, {rateText(9.996), "10.0"},
		{countText(123.4), "123"}, {countText(12345), "12345"}, {countText(1.234e6), "1.2M"}, {countText(5e9), "5.0G"}, {countText(1e18), "1e+18"},
		{latencyText(0), "0.00 ms"}, {latencyText(.0012), "1.20 ms"}, {latencyText(.0425), "42.5 ms"}, {latencyText(.9), "900 ms"}, {latencyText(.9996), "1.0 s"},
		{latencyText(640), "640 s"}, {latencyText(1e6), "> 1 day"}, {latencyText(math.NaN()), "-"},
		{spanText(1500 * time.Millisecond), "1.5s"}, {spanText(59 * time.Second), "59s"}, {spanText(61 * time.Second), "1m01s"}, {spanText(26 * time.Hour), "1d02h"}, {spanText(2*time.Hour + 5*time.Minute), "2h05m"},
		{percent(.996), "100%"}, {percent(math.NaN()), "-"},
		{briefly("a\x1b[1m\n b", 10), "a[1m b"}, {briefly("äöüä", 3), "äö…"},
		{awayText(fmt.Errorf("reading: %w", context.DeadlineExceeded)), "no answer within 5s"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}

// TestTopView follows a server that disappears and returns, and checks that readings do not overlap
// and that keys end the view.
func TestTopView(t *testing.T) {
	readings := []topReading{refused(noon), page(t, "first.txt", noon.Add(time.Second)), page(t, "second.txt", noon.Add(2*time.Second)), refused(noon.Add(3 * time.Second)), page(t, "restarted.txt", noon.Add(9*time.Second))}
	shows := []string{"realizar\nserve MODEL starts a server", "16 running", "rates over 1.0s", "This is of 12:00:02.", "The server was restarted; seen at 12:00:09."}
	hides := []string{"answers", "no answer", "no answer", "up ", "no answer"}
	looks := 0
	v := &topView{ctx: t.Context(), state: newState(), read: func(context.Context) (*watch.Sample, error) {
		r := readings[looks]
		looks++
		return r.sample, r.err
	}}
	v.state.interval = 0
	v.Update(tea.WindowSizeMsg{Width: 100, Height: 40})
	look := v.Init()
	for i, r := range readings {
		if msg, ok := look().(topReading); !ok || msg.sample != r.sample || !errors.Is(msg.err, r.err) {
			t.Fatalf("look %d: %+v", i, msg)
		}
		_, next := v.Update(r)
		shown := ansi.Strip(v.View().Content)
		if !strings.Contains(shown, shows[i]) || strings.Contains(shown, hides[i]) {
			t.Errorf("after look %d it shows\n%s\nwant %q, and no %q", i, shown, shows[i], hides[i])
		}
		if looks != i+1 {
			t.Errorf("%d looks after %d readings", looks, i+1)
		}
		_, look = v.Update(next())
	}
	if !v.View().AltScreen {
		t.Error("what was on the terminal before is lost")
	}
	for _, k := range []tea.KeyPressMsg{{Code: 'q', Text: "q"}, keyNamed("ctrl+c")} {
		if _, cmd := v.Update(k); cmd == nil || cmd() != (tea.QuitMsg{}) {
			t.Errorf("%s does not leave", k)
		}
	}
	if _, cmd := v.Update(tea.KeyPressMsg{Code: 'x', Text: "x"}); cmd != nil {
		t.Error("any key leaves")
	}
}
