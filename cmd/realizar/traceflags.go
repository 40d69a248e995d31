package main

import (
	"errors"
	"fmt"

	"github.com/realizar/realizar"
)

// traceFlags say what to report about the steps of an answer.
type traceFlags struct {
	TraceTiming bool    `help:"Report the time of each token and the parts of the time to the first token, on standard error or, with --json, in the object."`
	Profile     *string `placeholder:"FILE" help:"Profile every step: report the time of kernels and layers on standard error, and write a trace for the trace viewer of Chrome to FILE. Steps take longer."`
}

// Validate checks the values.
func (f *traceFlags) Validate() error {
	if f.Profile != nil && *f.Profile == "" {
		return errors.New("--profile: the name is empty: name a file")
	}
	return nil
}

// allow returns an error if a flag does not go with n answers, or with a chat.
func (f *traceFlags) allow(n int, interactive bool) error {
	name := "--trace-timing"
	if f.Profile != nil {
		name = "--profile"
	}
	switch {
	case interactive && (f.TraceTiming || f.Profile != nil):
		return usagef("%s is not supported in a chat; give a prompt as an argument or on standard input", name)
	case n > 1 && f.TraceTiming:
		return usagef("--trace-timing supports one answer, and --n asks for %d; remove one of them", n)
	}
	return nil
}

// A tracing collects what the flags ask for. Parts that they do not ask for are nil.
type tracing struct {
	timings *tokenTimings
	profile *profile
	file    *outFile // of the profile
	steps   int      // steps seen
}

// startTracing prepares what the flags ask for. A file that cannot be written is reported before
// the model is loaded.
func (f *traceFlags) startTracing(model string) (t *tracing, err error) {
	t = &tracing{}
	if f.TraceTiming {
		t.timings = newTokenTimings()
	}
	if f.Profile != nil {
		if t.file, err = newOutFile(*f.Profile); err != nil {
			return nil, fmt.Errorf("--profile: %w", err)
		}
		t.profile = newProfile(model, maxTraced)
	}
	return t, nil
}

// watch makes o report its steps to t.
func (t *tracing) watch(o *realizar.Options) {
	if t.timings == nil && t.profile == nil {
		return
	}
	o.Profile = t.profile != nil
	o.Watch = func(s realizar.StepTiming) {
		t.steps++
		if t.timings != nil {
			t.timings.step(&s)
		}
		if t.profile != nil {
			t.profile.step(&s)
		}
	}
}

// opened notes the model and its device.
func (t *tracing) opened(m *realizar.Model) {
	if t.timings != nil {
		t.timings.opened(m)
	}
	if t.profile != nil {
		t.profile.device, t.profile.deviceName = m.Device(), m.DeviceName()
	}
}

// end writes what the flags asked for, after the model is closed. err is the answer's error; an
// answer that failed or was interrupted is reported as far as it came. The memory's bandwidth, for
// comparison, is measured now because no model uses the memory.
func (t *tracing) end(a *app, c *runCommand, err error) error {
	nothing := err != nil && t.steps == 0
	if t.timings != nil && !c.JSON && !nothing {
		t.timings.write(a.err)
	}
	p := t.profile
	switch {
	case p == nil:
		return err
	case nothing:
		return t.file.finish(err)
	}
	if a.ctx.Err() == nil {
		var wrong error
		if p.reads, _, wrong = memoryRates(a.ctx, &c.modelFlags, p.device, p.deviceName, false); wrong != nil {
			a.notef("the memory bandwidth cannot be measured: %s", message(wrong))
		}
	}
	p.write(a.err)
	if p.dropped > 0 {
		a.notef("%s shows the first %d of %d steps, which have as many parts as a file may have; the tables cover all steps", *c.Profile, len(p.kept), t.steps)
	}
	if wrong := t.file.finish(p.writeTrace(t.file)); wrong != nil {
		return errors.Join(err, fmt.Errorf("--profile: %w", wrong))
	}
	return err
}
