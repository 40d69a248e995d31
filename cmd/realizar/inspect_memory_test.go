package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/tensor"
)

func TestMemoryText(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	keys := realizar.StateMemory{Kind: "kv", Layers: 32, Bytes: 512 * mib}
	memory := func(s *realizar.Streaming) *realizar.Memory {
		return &realizar.Memory{
			Context: 4096, Parallel: 1, Weights: 20 * gib, Resident: 5 * gib, Scratch: 300 * mib, Total: 6 * gib, Limit: 8 * gib, Free: 130 * gib, Device: "cuda", DeviceName: "NVIDIA H200",
			Cache: "F16", States: []realizar.StateMemory{keys}, Sequences: 1, Tokens: 4096, Streaming: s,
		}
	}
	for _, test := range []struct {
		name     string
		s        *realizar.Streaming
		expected *realizar.Expectation
		want     string
	}{
		{name: "resident", expected: &realizar.Expectation{Bandwidth: 4e12, Read: 5 * gib, Step: 1.342e-3, Rate: 745.06}, want: `
Memory for one answer of 4096 tokens

weights            5.0 GiB  in the device's memory
keys and values  512.0 MiB  32 layers, 4096 tokens, F16
scratch          300.0 MiB  for one step
total              6.0 GiB  8.0 GiB may be taken, 130.0 GiB are free on NVIDIA H200 (cuda)

The cache holds one sequence of 4096 tokens, or 4096 tokens in all

One answer is expected to come at 745.1 tokens a second at most

read   5.0 GiB  of weights by a step, at 4000.0 GB/s
step  1.342 ms  at least
`},
		{
			name: "pinned", s: &realizar.Streaming{
				Resident: 3 * gib, Layers: []realizar.LayerRange{{First: 0, Last: 9}, {First: 11, Last: 11}, {First: 13, Last: 31}}, Slots: 2, SlotBytes: 512 * mib, Streamed: 15 * gib, Pinned: 15 * gib,
			}, expected: &realizar.Expectation{Bandwidth: 4e12, Link: 55e9, Read: 20 * gib, Copied: 15 * gib, Step: 0.2928, Rate: 3.4149}, want: `
Memory for one answer of 4096 tokens

weights            3.0 GiB  in the device's memory: 2 of 32 layers, and what belongs to none
slots              1.0 GiB  2 of 512.0 MiB, which layers that stream take turns in
keys and values  512.0 MiB  32 layers, 4096 tokens, F16
scratch          300.0 MiB  for one step
total              6.0 GiB  8.0 GiB may be taken, 130.0 GiB are free on NVIDIA H200 (cuda)
streamed          15.0 GiB  copied in every step, from pinned memory: layers 0-9, 11, 13-31
pinned            15.0 GiB  of the host's memory, for weights

The cache holds one sequence of 4096 tokens, or 4096 tokens in all

One answer is expected to come at 3.415 tokens a second at most

read      20.0 GiB  of weights by a step, at 4000.0 GB/s
copied    15.0 GiB  of layers at the same time, at 55.0 GB/s
step    292.800 ms  at least
`,
		},
		{
			name: "staged and experts", s: &realizar.Streaming{
				Resident: 3 * gib, Layers: []realizar.LayerRange{{First: 4, Last: 4}}, Slots: 2, SlotBytes: 512 * mib, Streamed: 512 * mib, Staged: 512 * mib, Pinned: 12 * gib,
				Experts: &realizar.ExpertCache{Layers: 32, Of: 64, Kept: 1, Used: 8, Shared: 63, Bytes: 6 * mib},
			}, expected: &realizar.Expectation{Bandwidth: 4e12, Link: 55e9, Read: 4 * gib, Copied: 512 * mib, Fetched: 2 * gib, Step: 0.04881, Rate: 20.488}, want: `
Memory for one answer of 4096 tokens

weights            3.0 GiB  in the device's memory: 31 of 32 layers without their experts, and what belongs to none
slots              1.0 GiB  2 of 512.0 MiB, which layers that stream take turns in
experts          570.0 MiB  1 of 64 kept in each of 32 layers, and 63 places for others, of 6.0 MiB
keys and values  512.0 MiB  32 layers, 4096 tokens, F16
scratch          300.0 MiB  for one step
total              6.0 GiB  8.0 GiB may be taken, 130.0 GiB are free on NVIDIA H200 (cuda)
streamed         512.0 MiB  copied in every step, staged from the file: layer 4
pinned            12.0 GiB  of the host's memory, for weights

The cache holds one sequence of 4096 tokens, or 4096 tokens in all

One answer is expected to come at 20.49 tokens a second at most

read       4.0 GiB  of weights by a step, at 4000.0 GB/s
copied   512.0 MiB  of layers at the same time, at 55.0 GB/s; the file may be slower
fetched    2.0 GiB  of experts, at 55.0 GB/s, if all are used alike
step     48.810 ms  at least
`,
		},
	} {
		if diff := cmp.Diff(test.want, memoryText(memory(test.s), 32, 1)+expectedText(test.expected, test.s)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
	m := memory(nil)
	m.States = append(m.States, realizar.StateMemory{Kind: "sequence", Layers: 24, Bytes: 300 * mib, Slots: 14, Checkpoints: 6}, realizar.StateMemory{Kind: "kv", Chunk: 64, Layers: 24, Bytes: 9 * mib})
	const want = `
keys and values  512.0 MiB  32 layers, 4096 tokens, F16
states           300.0 MiB  24 layers, 14 slots, 6 of them for checkpoints
keys and values    9.0 MiB  24 layers, chunks of 64 tokens, F16
`
	if got := memoryText(m, 32, 1); !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	both := &realizar.Streaming{Layers: []realizar.LayerRange{{First: 0, Last: 1}}, Streamed: 3 * mib, Staged: mib}
	if got, want := streamedText(both), "copied in every step, 2.0 MiB from pinned memory and 1.0 MiB staged from the file: layers 0-1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestReplicasText checks that copies that take the same have one row, and that sums are of all.
func TestReplicasText(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	of := func(tokens int, states, free int64) *realizar.Memory {
		return &realizar.Memory{
			Context: 4096, Parallel: 64, Weights: 9 * gib, Resident: 5 * gib, Scratch: 512 * mib, Total: 5*gib + 512*mib + states, Free: free, Device: "cuda",
			States: []realizar.StateMemory{{Kind: "kv", Bytes: states / 4}, {Kind: "sequence", Bytes: states - states/4}}, Sequences: tokens / 4096, Tokens: tokens,
		}
	}
	with := func(m *realizar.Memory, change func(m *realizar.Memory)) *realizar.Memory {
		change(m)
		return m
	}
	draft := func(m *realizar.Memory) { m.Draft, m.Host, m.Total = gib, 2*gib, m.Total+gib }
	plain := func(m *realizar.Memory) { m.Sequences, m.Tokens, m.Free = 0, 0, 0 }
	for _, test := range []struct {
		name   string
		copies []*realizar.Memory
		want   string
	}{
		{name: "one"},
		{name: "alike", copies: []*realizar.Memory{of(8192, gib, 130*gib), of(8192, gib, 130*gib)}, want: `
Memory of the 2 copies

copies 0-1   6.5 GiB  each: weights 5.0 GiB, keys, values and states 1.0 GiB, scratch 512.0 MiB; 130.0 GiB are free
all         13.0 GiB  up to 128 answers at a time; the caches hold 4 sequences of 4096 tokens, or 16384 tokens in all
`},
		{name: "one has less", copies: []*realizar.Memory{of(8192, gib, 130*gib), of(8192, gib, 130*gib), of(4096, gib/2, 8*gib), of(8192, gib, 130*gib)}, want: `
Memory of the 4 copies

copies 0-1   6.5 GiB  each: weights 5.0 GiB, keys, values and states 1.0 GiB, scratch 512.0 MiB; 130.0 GiB are free
copy 2       6.0 GiB  weights 5.0 GiB, keys, values and states 512.0 MiB, scratch 512.0 MiB; 8.0 GiB are free
copy 3       6.5 GiB  weights 5.0 GiB, keys, values and states 1.0 GiB, scratch 512.0 MiB; 130.0 GiB are free
all         25.5 GiB  up to 256 answers at a time; the caches hold 7 sequences of 4096 tokens, or 28672 tokens in all
`},
		{name: "a draft model and host memory", copies: []*realizar.Memory{with(of(4096, gib, 9*gib), draft), with(of(4096, gib, 9*gib), draft)}, want: `
Memory of the 2 copies

copies 0-1   7.5 GiB  each: weights 5.0 GiB, keys, values and states 1.0 GiB, scratch 512.0 MiB, draft model 1.0 GiB; 9.0 GiB are free
all         15.0 GiB  up to 128 answers at a time; the caches hold 2 sequences of 4096 tokens, or 8192 tokens in all
host         4.0 GiB  for what the caches have no room for, 2.0 GiB for each
`},
		{name: "without states", copies: []*realizar.Memory{with(of(0, 0, 0), plain), with(of(0, 0, 0), plain)}, want: `
Memory of the 2 copies

copies 0-1   5.5 GiB  each: weights 5.0 GiB, keys, values and states 0 bytes, scratch 512.0 MiB
all         11.0 GiB  up to 128 answers at a time
`},
	} {
		if diff := cmp.Diff(test.want, replicasText(newReplicasMemory(test.copies))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
}

// TestInspectReplicas checks that each copy has the requests of --parallel and its part of --kv-host,
// and that the text and the JSON add them up.
func TestInspectReplicas(t *testing.T) {
	a := withAbacus(t)
	model := modeltest.Llama(t, modeltest.DType(tensor.Q8_0))
	run := func(replicas, devices int, asJSON bool) string {
		t.Helper()
		app, out, notes := testApp(t)
		c := inspectCommand{Model: model, Context: 128, Parallel: 3, Activations: "auto", Device: "abacus", Replicas: replicas, Devices: devices, JSON: asJSON}
		c.KVHost = 8 << 20
		before := a.closed
		if err := c.Run(app); err != nil || notes.Len() > 0 {
			t.Fatal(err, notes)
		}
		if a.closed-before < replicas {
			t.Errorf("%d devices were closed, want %d or more", a.closed-before, replicas)
		}
		return out.String()
	}
	mentions(t, run(4, 1, false), "\nMemory of the first of 4 copies for 3 answers of 128 tokens\n", "\nhost               2.0 MiB  for what the cache has no room for\n",
		"\nMemory of the 4 copies\n\ncopies 0-3 ", "  each: weights ", "; 1.0 TiB are free\nall ",
		"up to 12 answers at a time; the caches hold 12 sequences of 128 tokens, or 1536 tokens in all\nhost ", " 8.0 MiB  for what the caches have no room for, 2.0 MiB for each\n")
	mentions(t, run(2, 2, false), "\nMemory of the 2 copies\n", "\nDivided among 2 devices, beside a step's scratch memory\n")

	type memory struct {
		Memory   realizar.Memory
		Replicas *replicasMemory
	}
	of := func(replicas int) (m memory) {
		t.Helper()
		if err := json.Unmarshal([]byte(run(replicas, 1, true)), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	one, four := of(1), of(4)
	if one.Replicas != nil || four.Replicas == nil || len(four.Replicas.Copies) != 4 {
		t.Fatalf("%+v of one, %+v of four", one.Replicas, four.Replicas)
	}
	if one.Memory.Host != 8<<20 || one.Memory.Total == 0 {
		t.Errorf("%+v", one.Memory)
	}
	one.Memory.Host /= 4
	for i, m := range four.Replicas.Copies {
		if diff := cmp.Diff(&one.Memory, m); diff != "" {
			t.Errorf("copy %d (-one +copy)\n%s", i, diff)
		}
	}
	want := &replicasMemory{Parallel: 12, Total: 4 * one.Memory.Total, Host: 8 << 20, Sequences: 12, Tokens: 4 * one.Memory.Tokens, Copies: four.Replicas.Copies}
	if diff := cmp.Diff(want, four.Replicas); diff != "" {
		t.Errorf("sums (-want +got)\n%s", diff)
	}
	if text := run(1, 1, false); strings.Contains(text, "cop") {
		t.Errorf("copies of one: %s", text)
	}
}

// TestInspectStreaming checks that inspect shows the plan and the measured speeds of a device, and
// what does not work there.
func TestInspectStreaming(t *testing.T) {
	a := withAbacus(t)
	model := modeltest.Llama(t, modeltest.DType(tensor.Q8_0))
	run := func(c inspectCommand) (string, error) {
		t.Helper()
		app, out, notes := testApp(t)
		c.Model, c.Parallel, c.Activations, c.StreamWeights = model, 1, "auto", "always"
		err := c.Run(app)
		if notes.Len() > 0 {
			t.Errorf("notes %q", notes)
		}
		return out.String(), err
	}
	text, err := run(inspectCommand{Device: "auto"})
	if err != nil {
		t.Fatal(err)
	}
	mentions(t, text, "Memory for one answer of 256 tokens\n", "in the device's memory: 0 of 2 layers, and what belongs to none\n", "\nslots ", "\nstreamed ",
		"copied in every step, from pinned memory: layers 0-1\n", "\npinned ", "\nOne answer is expected to come at ", "of weights by a step, at 2.0 GB/s\n", "of layers at the same time, at 1.0 GB/s\n")

	c := inspectCommand{Device: "abacus", JSON: true}
	c.Memory, c.KVHost = 1<<20, 1<<20
	if text, err = run(c); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Memory   realizar.Memory
		Expected realizar.Expectation
	}
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	s, e := d.Memory.Streaming, d.Expected
	if s == nil || len(s.Layers) != 1 || s.Layers[0] != (realizar.LayerRange{First: 0, Last: 1}) || s.Staged != s.Streamed || s.Streamed == 0 || s.Pinned != 0 ||
		e.Copied != s.Streamed || e.Link != 1e9 || e.Bandwidth != 2e9 || !nearly(e.Step, float64(e.Copied)/1e9) || !nearly(e.Rate*e.Step, 1) {
		t.Errorf("%s", text)
	}

	c = inspectCommand{Device: "abacus"}
	c.GPUMemory = memoryLimit{Bytes: 100 << 10}
	if text, err = run(c); err == nil || text != "" {
		t.Fatalf("in too little memory: %v, %s", err, text)
	}
	mentions(t, err.Error(), " even with streaming, 100.0 KiB may be taken on Large Abacus", "a device memory of ")
	if a.closed == 0 {
		t.Error("no device was closed")
	}
}

// TestBenchStreaming checks that if weights stream, the speed is a share of the link's.
func TestBenchStreaming(t *testing.T) {
	withAbacus(t)
	model := modeltest.Llama(t, modeltest.DType(tensor.Q8_0))
	for _, batch := range [][]int{nil, {2}} {
		a, out, _ := testApp(t)
		none, four := 0, 4
		flags := modelFlags{Activations: "auto", Device: "abacus", memoryFlags: memoryFlags{StreamWeights: "always"}}
		c := &benchCommand{Model: model, Prompt: &none, Tokens: &four, Batch: batch, Runs: 1, JSON: true, modelFlags: flags}
		if err := c.Run(a); err != nil {
			t.Fatal(err)
		}
		var r measurement
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Link == nil || *r.Link != 1e9 || r.CopiedBytes == nil || *r.CopiedBytes == 0 || !nearly(*r.ShareOfLimit, r.Rate/float64(r.Batch)*max(float64(*r.CopiedBytes)/1e9, float64(*r.StepBytes)/2e9)) {
			t.Errorf("%s", out)
		}
		out.Reset()
		c.JSON = false
		if err := c.Run(a); err != nil {
			t.Fatal(err)
		}
		mentions(t, out.String(), ", is copied to at 1.0 GB/s, a step copies ")
	}
}

// TestLockstepStreams checks that a batch streams the weights that it leaves no room for, and no
// others.
func TestLockstepStreams(t *testing.T) {
	withAbacus(t)
	model := modeltest.Llama(t, modeltest.DType(tensor.Q8_0), modeltest.Context(4096))
	s := batchShape{seqs: 3, depth: 100, answer: 10}
	open := func(o realizar.Options) *lockstepModel {
		t.Helper()
		o.Device = "abacus"
		m, err := openLockstep(model, "", o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.close() })
		return m
	}
	m := open(realizar.Options{})
	l, err := m.limits(s)
	if err != nil || l.Weights != 0 {
		t.Fatalf("without a limit: %+v, %v", l, err)
	}
	size, err := m.size(l)
	if err != nil {
		t.Fatal(err)
	}
	all := int64(size.Weights + size.States + size.Scratch)
	for limit, streams := range map[int64]bool{all: false, all - 1: true} {
		m := open(realizar.Options{DeviceMemory: realizar.MemoryLimit{Bytes: limit}})
		l, err := m.limits(s)
		if err != nil || (l.Weights > 0) != streams {
			t.Errorf("%d bytes of %d: %+v, %v", limit, all, l, err)
		}
	}
	m = open(realizar.Options{DeviceMemory: realizar.MemoryLimit{Bytes: all / 8}})
	if err := m.check(s); err == nil || !strings.Contains(err.Error(), "may be taken") {
		t.Errorf("in an eighth of the memory: %v", err)
	}
	m = open(realizar.Options{DeviceMemory: realizar.MemoryLimit{Bytes: all - 1}, StreamWeights: realizar.StreamNever})
	if err := m.check(s); err == nil || !strings.Contains(err.Error(), "may be taken") {
		t.Errorf("in a byte less, where nothing may stream: %v", err)
	}
}
