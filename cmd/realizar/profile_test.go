package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
)

// at returns a time for the tests, in microseconds.
func at(us int) time.Time { return time.Unix(1_700_000_000, int64(us)*1000) }

func us(n float64) time.Duration { return time.Duration(n * 1000) }

// TestProfileText checks the tables of a profile with a prompt and two tokens of two answers.
func TestProfileText(t *testing.T) {
	p := newProfile("model.gguf", 100)
	p.device, p.deviceName, p.reads = "abacus", "Large Abacus", 4e9
	spans := func(scale float64) []realizar.Span {
		return []realizar.Span{
			{Kernel: "embed", Where: "the embedding", Layer: -1, Time: us(2 * scale), Bytes: 800},
			{Kernel: "beads", Where: "layer 0: a row", Layer: 0, Begin: us(2 * scale), Time: us(10 * scale), Bytes: 30_000},
			{Kernel: "beads", Where: "layer 1: a row", Layer: 1, Begin: us(12 * scale), Time: us(20 * scale), Bytes: 30_000},
			{Kernel: "choose", Where: "the choice", Layer: -1, Begin: us(32 * scale), Time: us(8 * scale)},
		}
	}
	p.step(&realizar.StepTiming{Step: 1, Answers: 2, Tokens: 40, Prompt: 39, Chosen: 1, Submitted: at(0), Begun: at(0), Done: at(450), Device: us(420), Spans: spans(10)})
	p.step(&realizar.StepTiming{Step: 2, Answers: 2, Tokens: 2, Chosen: 2, Submitted: at(10), Begun: at(450), Done: at(500), Device: us(41), Spans: spans(1)})
	p.step(&realizar.StepTiming{Step: 3, Answers: 2, Tokens: 2, Chosen: 2, Submitted: at(460), Begun: at(500), Done: at(545), Device: us(41), Spans: spans(1)})
	var text bytes.Buffer
	p.write(&text)
	const want = `
steps of one token for each answer: 2, of 4 tokens
on abacus 0.082 ms, by the clock 0.095 ms; the parts below add up to 0.080 ms, 97.6% of the former

kernel  calls  total ms  mean us  share  mean bytes  GB/s  of memory
beads       4     0.060    15.00  73.2%    29.3 KiB   2.0      50.0%
choose      2     0.016     8.00  19.5%     0 bytes     -          -
embed       2     0.004     2.00   4.9%   800 bytes   0.4      10.0%
all         8     0.080    10.00  97.6%    14.8 KiB   1.5      38.0%

layer  total ms  us a step  share  bytes a step  GB/s  of memory
 none     0.020      10.00  24.4%     800 bytes   0.1       2.0%
    0     0.020      10.00  24.4%      29.3 KiB   3.0      75.0%
    1     0.040      20.00  48.8%      29.3 KiB   1.5      37.5%

steps of prompts: 1, of 40 tokens
on abacus 0.420 ms, by the clock 0.450 ms; the parts below add up to 0.400 ms, 95.2% of the former

kernel  calls  total ms  mean us  share  mean bytes  GB/s  of memory
beads       2     0.300   150.00  71.4%    29.3 KiB   0.2       5.0%
choose      1     0.080    80.00  19.0%     0 bytes     -          -
embed       1     0.020    20.00   4.8%   800 bytes   0.0       1.0%
all         4     0.400   100.00  95.2%    14.8 KiB   0.2       3.8%

layer  total ms  us a step  share  bytes a step  GB/s  of memory
 none     0.100     100.00  23.8%     800 bytes   0.0       0.2%
    0     0.100     100.00  23.8%      29.3 KiB   0.3       7.5%
    1     0.200     200.00  47.6%      29.3 KiB   0.1       3.8%

of memory: 4.0 GB/s, as Large Abacus reads it from first to last, measured after these steps
`
	if d := cmp.Diff(want, text.String()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	text.Reset()
	p.reads = 1e9
	p.step(&realizar.StepTiming{Step: 4, Answers: 2, Tokens: 2, Chosen: 2, Submitted: at(510), Begun: at(545), Done: at(590), Device: us(30), Spans: spans(1)})
	p.write(&text)
	mentions(t, text.String(), ", 107.1% of the former, as parts that are timed do not overlap\n", "300.0%", "\nMore than 100% of memory: a cache holds a part of what is read.\n")
	text.Reset()
	newProfile("model.gguf", 100).write(&text)
	mentions(t, text.String(), "no step was made")
}

// A parsedTrace is a trace file as viewers read it.
type parsedTrace struct {
	DisplayTimeUnit string
	OtherData       struct {
		Model, Device string
		Steps         int
		LeftOut       int `json:"steps_left_out"`
	}
	Events []parsedEvent `json:"traceEvents"`
}

type parsedEvent struct {
	Name, Cat string
	Phase     string `json:"ph"`
	Time      *json.Number
	At        *json.Number `json:"ts"`
	Duration  *json.Number `json:"dur"`
	Process   *int         `json:"pid"`
	Thread    *int         `json:"tid"`
	Args      map[string]any
}

// nanoseconds converts a time of the file, which has three decimal places, to nanoseconds.
func nanoseconds(t *testing.T, n *json.Number) int64 {
	t.Helper()
	if n == nil {
		t.Fatal("an event has no time or no duration")
	}
	var whole, part int64
	if _, err := fmt.Sscanf(n.String(), "%d.%03d", &whole, &part); err != nil {
		t.Fatalf("%s: %v", n, err)
	}
	return 1000*whole + part
}

// checkTrace checks what viewers rely on: threads have names, the events of a thread are in order
// and do not overlap, and a step contains its kernels. It returns the kernels of each step.
func checkTrace(t *testing.T, data []byte) (parsed parsedTrace, kernels [][]parsedEvent) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&parsed); err != nil || d.More() {
		t.Fatalf("%v, more: %v", err, d.More())
	}
	names := map[string]int{}
	ends := map[int]int64{}
	var begin, end int64 // of the step
	for i, e := range parsed.Events {
		if e.Process == nil || e.Thread == nil || *e.Process != 1 {
			t.Fatalf("event %d has no process or thread", i)
		}
		if e.Phase == "M" {
			names[e.Name+" "+e.Args["name"].(string)] = *e.Thread
			continue
		}
		if e.Phase != "X" || e.Name == "" {
			t.Fatalf("event %d is %q of phase %q", i, e.Name, e.Phase)
		}
		from := nanoseconds(t, e.At)
		to := from + nanoseconds(t, e.Duration)
		if from < ends[*e.Thread] || to < from {
			t.Fatalf("event %d of thread %d lasts from %d to %d ns, the one before to %d", i, *e.Thread, from, to, ends[*e.Thread])
		}
		ends[*e.Thread] = to
		if *e.Thread > kernelsThread && names[fmt.Sprintf("thread_name kernels of device %d", *e.Thread-kernelsThread)] != *e.Thread {
			t.Fatalf("event %d is of thread %d, which has no name", i, *e.Thread)
		}
		if e.Cat == "step" {
			begin, end = from, to
			kernels = append(kernels, nil)
		} else if last := len(kernels) - 1; from < begin || to > end {
			t.Fatalf("event %d lasts from %d to %d ns, its step from %d to %d", i, from, to, begin, end)
		} else {
			kernels[last] = append(kernels[last], e)
		}
	}
	if names["thread_name steps"] != stepsThread || names["thread_name kernels"] != kernelsThread || len(names) < 3 {
		t.Errorf("names of threads: %v", names)
	}
	if parsed.DisplayTimeUnit != "ms" || parsed.OtherData.Steps != len(kernels) {
		t.Errorf("%+v with %d steps", parsed.OtherData, len(kernels))
	}
	return parsed, kernels
}

// alone counts the spans of devices that begin when those counted before have ended.
func alone(all []realizar.Span) int {
	var counted []realizar.Span
	for i := 0; i < len(all); {
		to := i + 1
		for to < len(all) && all[to].Device == all[i].Device {
			to++
		}
		if !slices.ContainsFunc(counted, func(s realizar.Span) bool { return s.Begin+s.Time > all[i].Begin }) {
			counted = append(counted, all[i:to]...)
		}
		i = to
	}
	return len(counted)
}

// Of devices that work at the same time the tables are those of the first; of devices that work one
// after the other they are those of all.
func TestProfileOfSeveral(t *testing.T) {
	for _, together := range []bool{true, false} {
		p := newProfile("model.gguf", 100)
		p.device, p.reads = "abacus", 4e9
		second := us(10)
		if together {
			second = 0
		}
		p.step(&realizar.StepTiming{Step: 1, Answers: 1, Tokens: 1, Begun: at(0), Done: at(30), Device: us(20), Spans: []realizar.Span{
			{Kernel: "beads", Where: "layer 0", Time: us(10), Bytes: 10_000}, {Device: 1, Kernel: "beads", Where: "layer 1", Layer: 1, Begin: second, Time: us(10), Bytes: 10_000},
		}})
		var text bytes.Buffer
		p.write(&text)
		rows := []string{"beads       2     0.020    10.00  100.0%     9.8 KiB   1.0      25.0%"}
		if together {
			rows = []string{"beads       1     0.010    10.00  50.0%     9.8 KiB   1.0      50.0%", "\nThe tables are those of the first of 2 devices that work at the same time; of memory is of the rate of one.\n"}
		}
		mentions(t, text.String(), rows...)
	}
}

// TestTraceFile checks that for any times of a device the file can be opened by viewers, has no
// more spans than allowed, and counts the steps left out, and that the tables count all spans.
func TestTraceFile(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 200 {
		p := newProfile("a \"model\"\n", 1+rng.IntN(400))
		p.device = "abacus"
		var steps [][]realizar.Span
		clock, calls := 0, 0
		for n := range rng.IntN(30) {
			clock += rng.IntN(500)
			s := realizar.StepTiming{Step: uint64(n + 1), Answers: 1, Tokens: 1 + rng.IntN(2), Begun: at(clock)}
			clock += 1 + rng.IntN(500)
			s.Done = at(clock)
			s.Device = us(float64(rng.IntN(600))) // not limited to the host's times
			begin := time.Duration(0)
			device, together := 0, rng.IntN(2) == 0
			for range rng.IntN(40) {
				if rng.IntN(20) == 0 {
					if device++; together {
						begin = 0
					}
				}
				span := realizar.Span{Device: device, Kernel: "k<\"é\x00", Where: "here", Layer: rng.IntN(4) - 1, Begin: max(0, begin+time.Duration(rng.IntN(40)-20)), Time: time.Duration(rng.IntN(20_000)), Bytes: rng.Int64N(1e9)}
				begin = span.Begin + span.Time
				s.Spans = append(s.Spans, span)
			}
			calls += alone(s.Spans)
			p.step(&s)
			steps = append(steps, slices.Clone(s.Spans))
			clear(s.Spans) // the model owns them
		}
		var data bytes.Buffer
		if err := p.writeTrace(&data); err != nil {
			t.Fatal(err)
		}
		parsed, kernels := checkTrace(t, data.Bytes())
		if n := len(kernels) + parsed.OtherData.LeftOut; n != len(steps) || parsed.OtherData.LeftOut != p.dropped {
			t.Errorf("%d steps are there or left out, of %d", n, len(steps))
		}
		all := 0
		for i := range kernels {
			all += len(kernels[i])
			if len(kernels[i]) != len(steps[i]) {
				t.Fatalf("step %d has %d kernels of %d", i, len(kernels[i]), len(steps[i]))
			}
			for k, e := range kernels[i] {
				want := steps[i][k]
				layer, has := e.Args["layer"].(float64)
				if e.Args["where"] != want.Where || e.Args["bytes"] != float64(want.Bytes) || *e.Thread != kernelsThread+want.Device || has != (want.Layer >= 0) || has && int(layer) != want.Layer {
					t.Fatalf("a kernel has %v, want %+v", e.Args, want)
				}
			}
		}
		if all > p.most || p.dropped > 0 && all+len(steps[len(kernels)]) <= p.most {
			t.Errorf("trial %d: %d spans are there, %d may be, %d steps are left out", trial, all, p.most, p.dropped)
		}
		if got := p.answers.all.calls + p.prompts.all.calls; got != calls {
			t.Errorf("the tables count %d spans of %d", got, calls)
		}
	}
}
