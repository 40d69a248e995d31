package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/realizar/realizar"
)

// A tracedStep is a step in the trace file.
type tracedStep struct {
	number  uint64
	answers int
	tokens  int
	chosen  int
	done    time.Time
	clock   time.Duration
	device  time.Duration // at least the time of the spans
	spans   []realizar.Span
}

func newTracedStep(s *realizar.StepTiming) tracedStep {
	t := tracedStep{number: s.Step, answers: s.Answers, tokens: s.Tokens, chosen: s.Chosen, done: s.Done, clock: s.Done.Sub(s.Begun), device: s.Device, spans: slices.Clone(s.Spans)}
	for i := range t.spans {
		t.device = max(t.device, t.spans[i].Begin+t.spans[i].Time)
	}
	return t
}

// The threads of a trace file: steps, and the kernels of each device.
const (
	stepsThread = 1 + iota
	kernelsThread
)

// A traceEvent is an event of the Trace Event Format, which Chrome's viewer and Perfetto open.
// Phase M names a process or a thread; phase X has a beginning and a duration.
type traceEvent struct {
	Name     string        `json:"name"`
	Category string        `json:"cat,omitempty"`
	Phase    string        `json:"ph"`
	Time     *microseconds `json:"ts,omitempty"`
	Duration *microseconds `json:"dur,omitempty"`
	Process  int           `json:"pid"`
	Thread   int           `json:"tid"`
	Args     any           `json:"args"`
}

// The arguments of an event that names something, of a step and of a kernel.
type (
	nameArgs struct {
		Name string `json:"name"`
	}
	stepArgs struct {
		Step    uint64       `json:"step"`
		Answers int          `json:"answers"`
		Tokens  int          `json:"tokens"`
		Chosen  int          `json:"chosen"`
		Clock   microseconds `json:"clock_us"`
	}
	kernelArgs struct {
		Where string `json:"where"`
		Layer *int   `json:"layer,omitempty"`
		Bytes int64  `json:"bytes"`
	}
)

// microseconds are written with nanoseconds after the decimal point.
type microseconds time.Duration

// MarshalJSON returns a number.
func (m microseconds) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d.%03d", m/1000, m%1000), nil
}

// complete returns an event of a thread with a beginning and a duration.
func complete(thread int, category, name string, begin, took time.Duration, args any) *traceEvent {
	at, d := microseconds(begin), microseconds(took)
	return &traceEvent{Name: name, Category: category, Phase: "X", Time: &at, Duration: &d, Process: 1, Thread: thread, Args: args}
}

// named returns the event that names a process or a thread.
func named(what string, thread int, name string) *traceEvent {
	return &traceEvent{Name: what, Phase: "M", Process: 1, Thread: thread, Args: nameArgs{name}}
}

// writeTrace writes the kept steps as a trace file: a JSON object with an event for each step and
// each of its spans, by device and in the order of their beginnings. A thread shows the steps, and
// one for each device its kernels at the same time. Devices and host have no common clock, so a step
// ends when the host learned that it was done, or later by the time of the steps before it.
func (p *profile) writeTrace(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<20)
	head, err := json.Marshal(map[string]any{"model": p.model, "device": p.device, "device_name": p.deviceName, "steps": len(p.kept), "steps_left_out": p.dropped})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "{\"displayTimeUnit\":\"ms\",\"otherData\":%s,\"traceEvents\":[", head) //nolint:errcheck // Flush says
	separator := "\n"
	put := func(e *traceEvent) error {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, err = out.WriteString(separator + string(line))
		separator = ",\n"
		return err
	}
	names := []*traceEvent{named("process_name", 0, p.model), named("thread_name", stepsThread, "steps"), named("thread_name", kernelsThread, "kernels")}
	for device := 1; device < p.devices(); device++ {
		names = append(names, named("thread_name", kernelsThread+device, fmt.Sprintf("kernels of device %d", device)))
	}
	for _, e := range names {
		if err := put(e); err != nil {
			return err
		}
	}
	var begun time.Time // of the first step
	end := time.Duration(0)
	for i := range p.kept {
		s := &p.kept[i]
		if i == 0 {
			begun = s.done.Add(-s.device)
		}
		at := max(end, s.done.Sub(begun)-s.device)
		end = at + s.device
		if err := s.events(at, put); err != nil {
			return err
		}
	}
	if _, err := out.WriteString("\n]}\n"); err != nil {
		return err
	}
	return out.Flush()
}

// devices returns how many devices the kept spans are of, at least 1.
func (p *profile) devices() int {
	n := 1
	for i := range p.kept {
		for j := range p.kept[i].spans {
			n = max(n, p.kept[i].spans[j].Device+1)
		}
	}
	return n
}

// events writes the events of s, which begins at the time at.
func (s *tracedStep) events(at time.Duration, put func(*traceEvent) error) error {
	name := "step of " + strconv.Itoa(s.tokens) + " tokens"
	if s.tokens == 1 {
		name = "step of 1 token"
	}
	if err := put(complete(stepsThread, "step", name, at, s.device, stepArgs{s.number, s.answers, s.tokens, s.chosen, microseconds(s.clock)})); err != nil {
		return err
	}
	device, past := 0, time.Duration(0) // of the previous span
	for i := range s.spans {
		span := &s.spans[i]
		if span.Device != device {
			device, past = span.Device, 0
		}
		// Timers round: a span begins only after the previous one has ended.
		begin := max(past, span.Begin)
		past = max(begin, span.Begin+span.Time)
		args := kernelArgs{Where: span.Where, Bytes: span.Bytes}
		if span.Layer >= 0 {
			args.Layer = &span.Layer
		}
		if err := put(complete(kernelsThread+device, "kernel", span.Kernel, at+begin, past-begin, args)); err != nil {
			return err
		}
	}
	return nil
}
