package main_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/internal/modeltest"
)

// A benchResult is one line of --json.
type benchResult struct {
	Test          string   `json:"test"`
	Rate          float64  `json:"tok_s"`
	Min           float64  `json:"min"`
	Max           float64  `json:"max"`
	Share         *float64 `json:"share_of_limit"`
	Device        string   `json:"device"`
	Batch         int      `json:"batch"`
	Depth         int      `json:"depth"`
	Model         string   `json:"model"`
	FirstToken    float64  `json:"ttft_ms"`
	Longest       float64  `json:"ttft_max_ms"`
	Bandwidth     *float64 `json:"bandwidth_bytes_s"`
	StepBytes     *int64   `json:"step_bytes"`
	PeakProducts  *float64 `json:"peak_products_s"`
	PeakFloats    *float64 `json:"peak_floats_s"`
	TokenProducts *int64   `json:"token_products"`
	TokenFloats   *int64   `json:"token_floats"`
	Proposed      *int64   `json:"proposed"`
	Accepted      *int64   `json:"accepted"`
}

// benchResults runs bench with --json and checks that it writes nothing else.
func benchResults(t *testing.T, args ...string) []benchResult {
	t.Helper()
	var all []benchResult
	for line := range strings.Lines(output(t, "", append([]string{"bench", "--json", "-r", "2"}, args...)...)) {
		var r benchResult
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if !(0 < r.Min && r.Min <= r.Rate && r.Rate <= r.Max) || !(0 < r.FirstToken && r.FirstToken <= r.Longest) || r.Device != "cpu" {
			t.Errorf("%s: %s", r.Test, line)
		}
		all = append(all, r)
	}
	return all
}

// near reports whether a share has the expected value.
func near(share *float64, want float64) bool {
	return share != nil && math.Abs(*share-want) <= 1e-9*want
}

func TestBenchJSON(t *testing.T) {
	model := modeltest.Llama(t)
	all := benchResults(t, model, "-p", "16", "-n", "8", "-d", "5")
	if len(all) != 2 {
		t.Fatalf("results %+v, want two", all)
	}
	pp, tg := all[0], all[1]
	if pp.Test != "pp16" || pp.Batch != 1 || pp.Depth != 0 || pp.Model != model || pp.Bandwidth != nil || pp.StepBytes != nil {
		t.Errorf("pp16: %+v", pp)
	}
	const floats = 2 * (64*(4+2+2+4)*16 + 3*64*96)
	if pp.TokenProducts == nil || *pp.TokenProducts != 0 || pp.TokenFloats == nil || *pp.TokenFloats != floats {
		t.Errorf("pp16 multiplies %v and %v", pp.TokenProducts, pp.TokenFloats)
	}
	if pp.PeakFloats != nil && !near(pp.Share, pp.Rate*floats / *pp.PeakFloats) || pp.PeakFloats == nil && pp.Share != nil {
		t.Errorf("pp16: share of limit %v", pp.Share)
	}
	if tg.Test != "tg8" || tg.Batch != 1 || tg.Depth != 5 || tg.PeakProducts != nil || tg.TokenProducts != nil ||
		tg.Bandwidth == nil || tg.StepBytes == nil || !near(tg.Share, tg.Rate*float64(*tg.StepBytes) / *tg.Bandwidth) {
		t.Errorf("tg8: %+v", tg)
	}
}

// Of the proposals that --right asks for, none or all are right, for one answer and for several.
func TestBenchWrite(t *testing.T) {
	read, write := filepath.Join(t.TempDir(), "read"), filepath.Join(t.TempDir(), "write")
	for name, text := range map[string]string{read: "Once upon a time", write: "there was a king of whom nobody has heard since that day."} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := benchResults(t, "demo", "--read", read, "--write", write, "--right", "0", "--right", "1", "--speculative", "eagle", "--batch", "1,3", "--speculative-tokens", "2")
	if len(all) != 10 {
		t.Fatalf("results %+v, want ten", all)
	}
	for i, r := range all {
		names := []string{"off", "suffix", "eagle", "right 0", "right 1"}
		if batch := []int{1, 3}[i/5]; r.Batch != batch || !strings.HasSuffix(r.Test, names[i%5]) || strings.Contains(r.Test, " x3 ") != (batch == 3) {
			t.Errorf("test %d: %+v", i, r)
		}
		if i%5 < 2 {
			continue
		}
		if *r.Proposed == 0 || i%5 > 2 && *r.Accepted != *r.Proposed*int64(i%5-3) {
			t.Errorf("%s: of %d proposed tokens %d are right", r.Test, *r.Proposed, *r.Accepted)
		}
	}
}

func TestBenchBatch(t *testing.T) {
	model := modeltest.Llama(t)
	all := benchResults(t, model, "-p", "0", "-n", "8", "-d", "100", "--batch", "1,4,300")
	want := []struct {
		test  string
		batch int
	}{{"tg8 x1", 1}, {"tg8 x4", 4}, {"tg8 x300", 300}}
	if len(all) != len(want) {
		t.Fatalf("results %+v, want three", all)
	}
	const token = 2 * 2 * 2 * 16 * 2 // bytes that a sequence keeps of one token
	weights := *all[0].StepBytes - 103*token
	for i, r := range all {
		if r.Test != want[i].test || r.Batch != want[i].batch || r.Depth != 100 || r.Model != model {
			t.Errorf("%s: %+v", want[i].test, r)
		}
		if bytes := weights + int64(r.Batch)*103*token; *r.StepBytes != bytes {
			t.Errorf("%s: a step reads %d bytes, want %d", r.Test, *r.StepBytes, bytes)
		}
		if !near(r.Share, r.Rate/float64(r.Batch)*float64(*r.StepBytes) / *r.Bandwidth) {
			t.Errorf("%s: share of limit %v", r.Test, r.Share)
		}
		if (r.FirstToken == r.Longest) != (r.Batch == 1) {
			t.Errorf("%s: the first tokens take %v ms, and %v at most", r.Test, r.FirstToken, r.Longest)
		}
	}
	if all = benchResults(t, model, "-p", "4", "--batch", "2", "--activations", "f32"); len(all) != 2 || all[0].Test != "pp4" ||
		all[1].Test != "tg128 x2" || all[1].Depth != 128 {
		t.Errorf("results %+v, want a prompt's and a batch's", all)
	}
}

// TestBenchBatchServer checks that requests are queued as on a server with the same flags, and that
// they take no more of the context than they ask for.
func TestBenchBatchServer(t *testing.T) {
	model := modeltest.Llama(t)
	cases := [][]string{
		{"--parallel", "1"},
		{"--memory", "4MiB"},
		{"--parallel", "8"},
		{"--context", "256", "-p", "200"},
		{"--activations", "f32", "--kv-cache", "f16"},
	}
	for _, args := range longtest.Cases(cases, cases[:2]) {
		all := benchResults(t, append([]string{model, "-p", "0", "-n", "4", "-d", "40", "--batch", "3,2"}, args...)...)
		if n := len(all); n < 2 || all[n-2].Test != "tg4 x3" || all[n-1].Test != "tg4 x2" {
			t.Errorf("%v: results %+v, want those of two batches", args, all)
		}
	}
}

// TestBench checks the words of the table, with all numbers replaced.
func TestBench(t *testing.T) {
	model := modeltest.Llama(t)
	number := regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
	plain := func(s string) string {
		s = number.ReplaceAllString(s, "N")
		s = regexp.MustCompile(`, resident memory .*`).ReplaceAllString(s, "") // some systems do not report it
		s = regexp.MustCompile(`, multiplies and adds N G N-bit or N G floatN values a second`).ReplaceAllString(s, "")
		s = regexp.MustCompile(`N(µs|ms|s)`).ReplaceAllString(s, "TIME")
		s = regexp.MustCompile(`([KM]iB|bytes)`).ReplaceAllString(s, "BYTES")
		return regexp.MustCompile(` +`).ReplaceAllString(s, " ")
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-p", "16", "-n", "4"}, `test depth tok/s min max first token longest share of limit
ppN N N N N TIME TIME SHARE
tgN N N N N TIME TIME N%

device: cpu, threads: N, runs: N, reads N GB/s, a step reads N BYTES
`},
		{[]string{"-p", "256", "-n", "0", "--threads", "1"}, `test depth tok/s min max first token longest share of limit
ppN N N N N TIME TIME SHARE

device: cpu, threads: N, runs: N
`},
		{[]string{"-p", "0", "-n", "4", "--batch", "2,3"}, `test depth tok/s min max first token longest share of limit
tgN xN N N N N TIME TIME N%
tgN xN N N N N TIME TIME N%

device: cpu, threads: N, runs: N, reads N GB/s, a step reads N BYTES
`},
	} {
		out := output(t, "", append([]string{"bench", model, "-r", "1"}, test.args...)...)
		got := plain(out)
		got = regexp.MustCompile(`(?m)^(pp.*) (N%|-)$`).ReplaceAllString(got, "$1 SHARE")
		if got != test.want {
			t.Errorf("%v: wrote %q, which is like %q, want %q", test.args, out, got, test.want)
		}
	}
	output(t, "", "bench", model, "-p", "0", "-n", "255", "-r", "1")
}

// TestBenchSmallContext checks that the default lengths are shortened to the context, and that the
// tests are named by what was measured.
func TestBenchSmallContext(t *testing.T) {
	model := modeltest.Llama(t)
	cases := []struct {
		args  []string
		tests []string
		notes []string
	}{
		{nil, []string{"pp256", "tg128"}, []string{"measuring pp256 instead of pp512: the context is 256"}},
		{[]string{"-n", "0"}, []string{"pp256"}, []string{"measuring pp256 instead of pp512: the context is 256"}},
		{[]string{"--context", "1"}, []string{"pp1"}, []string{
			"measuring pp1 instead of pp512: the context is 1", "skipping tg128: the context is 1"}},
		{[]string{"-p", "8", "-d", "200", "--batch", "2"}, []string{"pp8", "tg56 x2"}, []string{"measuring tg56 instead of tg128: the context is 256"}},
		{[]string{"-p", "8"}, []string{"pp8", "tg128"}, nil},
		{[]string{"--context", "64"}, []string{"pp64", "tg63"}, []string{
			"measuring pp64 instead of pp512: the context is 64", "measuring tg63 instead of tg128: the context is 64"}},
		{[]string{"-p", "8", "-d", "200"}, []string{"pp8", "tg56"}, []string{"measuring tg56 instead of tg128: the context is 256"}},
	}
	for _, test := range longtest.Cases(cases, cases[:4]) {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			r := realizarRun(t, append([]string{"bench", model, "-r", "1", "--json"}, test.args...)...)
			var tests []string
			for line := range strings.Lines(r.stdout) {
				var m benchResult
				if err := json.Unmarshal([]byte(line), &m); err != nil || m.Rate <= 0 {
					t.Errorf("%s: %v", line, err)
				}
				tests = append(tests, m.Test)
			}
			var notes string
			for _, n := range test.notes {
				notes += "realizar: " + n + "\n"
			}
			if r.code != 0 || !slices.Equal(tests, test.tests) || r.stderr != notes {
				t.Errorf("measured %v with exit code %d and notes %q, want %v with %q", tests, r.code, r.stderr, test.tests, notes)
			}
		})
	}
}

// TestBenchTooLong checks that a requested length that does not fit is an error with the ways out
// that exist.
func TestBenchTooLong(t *testing.T) {
	model := modeltest.Llama(t)
	for _, test := range []struct {
		args  []string
		says  []string
		raise bool
	}{
		{[]string{"-p", "257"}, []string{"-p 257 ", "257 tokens", "is 256;", "256 at most"}, false},
		{[]string{"-n", "256"}, []string{"-n 256 ", "257 tokens", "is 256;", "255 at most"}, false},
		{[]string{"-n", "9223372036854775807"}, []string{"-n 9223372036854775807 ", "9223372036854775808 tokens", "255 at most"}, false},
		{[]string{"-p", "100", "--context", "64"}, []string{"is 64;", "64 at most", "--context to 100"}, true},
		{[]string{"-n", "255", "--context", "64"}, []string{"is 64;", "63 at most", "--context to 256"}, true},
		{[]string{"-p", "257", "--context", "64"}, []string{"is 64;", "64 at most"}, false},
		{[]string{"-p", "0", "--context", "1"}, []string{"nothing to measure"}, false},
		{[]string{"-d", "256"}, []string{"-d 256 ", "257 tokens", "is 256;", "255 at most"}, false},
		{[]string{"-d", "200", "-n", "100"}, []string{"-n 100 ", "300 tokens", "is 256;", "56 at most"}, false},
		{[]string{"-d", "200", "-n", "50", "--context", "100"}, []string{"-d 200 ", "201 tokens", "is 100;", "99 at most", "--context to 201"}, true},
		{[]string{"-d", "9223372036854775807", "--batch", "2"}, []string{"-d 9223372036854775807 ", "9223372036854775808 tokens"}, false},
		{[]string{"-n", "256", "--batch", "2"}, []string{"-n 256 ", "257 tokens", "is 256;", "255 at most"}, false},
		{[]string{"--batch", "2", "--context", "1"}, []string{"--batch ", "2 tokens", "is 1"}, false},
		{[]string{"--batch", "2", "--context", "257"}, []string{"--context 257", "256 tokens"}, false},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			r := realizarRun(t, append([]string{"bench", model}, test.args...)...)
			fails(t, r, 2, test.says...)
			if strings.Contains(r.stderr, "raise") != test.raise {
				t.Errorf("%q: whether to raise the context should be %v", r.stderr, test.raise)
			}
		})
	}
}

func TestBenchWrongUsage(t *testing.T) {
	model := modeltest.Llama(t)
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"-d", "0"}, "-d 0: want 1 or more"},
		{[]string{"--batch", "0"}, "--batch 0: want 1 to 4096"},
		{[]string{"--batch", "1,4097"}, "--batch 4097: want 1 to 4096"},
		{[]string{"--batch", "1,many"}, "many"},
		{[]string{"-n", "0", "-d", "4"}, "-n 0 leaves nothing to measure after -d 4"},
		{[]string{"-n", "0", "--batch", "4"}, "-n 0 leaves nothing to measure with --batch"},
	} {
		fails(t, realizarRun(t, append([]string{"bench", model}, test.args...)...), 2, test.says)
	}
}

// TestBenchBatchLimit checks that a memory limit applies to batches.
func TestBenchBatchLimit(t *testing.T) {
	fails(t, realizarRun(t, "bench", modeltest.Llama(t), "-d", "64", "--batch", "1,64", "--memory", "8KiB"), 2,
		"--batch 1: 1 sequences of 192 tokens take", "but 8.0 KiB may be taken; lower --batch, --depth or -n")
}

// TestBenchBatchMemory checks that a batch that does not fit into memory is a usage error, reported
// before anything is measured.
func TestBenchBatchMemory(t *testing.T) {
	free := cpu.New(0).Memory().Free
	if free == 0 {
		t.Skip("the system does not say what memory is free")
	}
	const token, batch = 2 * 2 * 2 * 16 * 2, 4096
	depth := int(min(free/token/batch*2, math.MaxInt32/2))
	if free > int64(depth)*token*batch {
		t.Skip("there is memory for everything")
	}
	model := modeltest.Llama(t, modeltest.Context(depth+128))
	fails(t, realizarRun(t, "bench", model, "-d", strconv.Itoa(depth), "--batch", "1,4096"), 2,
		"--batch 4096: 4096 sequences of", "of cache", "of scratch", "are free; lower --batch, --depth or -n")
}

// TestBenchBatchProblem checks that a model that cannot run is an error.
func TestBenchBatchProblem(t *testing.T) {
	fails(t, realizarRun(t, "bench", modeltest.Llama(t, modeltest.Architecture("abacus")), "--batch", "2"), 1, "abacus")
	fails(t, realizarRun(t, "bench", modeltest.Llama(t, modeltest.Overflow("blk.1.ffn_down.weight")), "-p", "0", "--batch", "2"), 1, "not finite")
}
