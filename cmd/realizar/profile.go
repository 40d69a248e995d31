package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/realizar/realizar"
)

// A profile sums up the spans of all steps, by kernel and by layer: of devices that work at the same
// time, those of the first. For the trace file it keeps whole steps, up to a total of most spans.
type profile struct {
	model      string
	device     string
	deviceName string // as [realizar.Model.DeviceName] has it

	together int     // devices that work at the same time; 0 if there is one
	reads    float64 // bandwidth of the memory of all of them in bytes per second; 0 if unknown
	cached   bool    // some part was read faster than that

	answers work // decode steps: one token for each answer
	prompts work // all other steps

	most    int // spans to keep at most
	spans   int // spans kept
	kept    []tracedStep
	dropped int // steps not kept
}

// maxTraced bounds the spans of a trace file. About 900 steps of 300 kernels make a file of 50 MB.
const maxTraced = 1 << 18

// A work sums up steps of one kind.
type work struct {
	steps  int
	tokens int
	device time.Duration // time of the steps on the device
	clock  time.Duration // time of the steps for the host
	all    share

	kernels map[string]*share
	layers  map[int]*share
}

// A share sums up some of the spans.
type share struct {
	calls int
	time  time.Duration
	bytes int64
}

func (s *share) add(span *realizar.Span) {
	s.calls++
	s.time += span.Time
	s.bytes += span.Bytes
}

func newProfile(model string, most int) *profile {
	sort := func() work { return work{kernels: map[string]*share{}, layers: map[int]*share{}} }
	return &profile{model: model, most: most, answers: sort(), prompts: sort()}
}

// step adds a step.
func (p *profile) step(s *realizar.StepTiming) {
	w := &p.prompts
	if s.Tokens == s.Answers {
		w = &p.answers
	}
	w.steps++
	w.tokens += s.Tokens
	w.device += s.Device
	w.clock += s.Done.Sub(s.Begun)
	device, alone, end := 0, true, time.Duration(0) // of the spans before, and when the last one ended
	for i := range s.Spans {
		span := &s.Spans[i]
		if span.Device != device {
			if device, alone = span.Device, span.Begin >= end; !alone {
				p.together = max(p.together, device+1)
			}
		}
		if !alone {
			continue
		}
		end = max(end, span.Begin+span.Time)
		w.all.add(span)
		shareOf(w.kernels, span.Kernel).add(span)
		shareOf(w.layers, span.Layer).add(span)
	}
	if p.dropped > 0 || p.spans+len(s.Spans) > p.most {
		p.dropped++
		return
	}
	p.spans += len(s.Spans)
	p.kept = append(p.kept, newTracedStep(s))
}

// shareOf returns the share of a key, and adds one if there is none.
func shareOf[K comparable](all map[K]*share, key K) *share {
	s := all[key]
	if s == nil {
		s = &share{}
		all[key] = s
	}
	return s
}

// write writes the tables.
func (p *profile) write(w io.Writer) {
	text := ""
	for _, sort := range []struct {
		name string
		work *work
	}{{"one token for each answer", &p.answers}, {"prompts", &p.prompts}} {
		if sort.work.steps > 0 {
			text += p.text(sort.name, sort.work)
		}
	}
	switch {
	case text == "":
		text = "\nno step was made: there is nothing to take apart\n"
	case p.reads > 0:
		text += fmt.Sprintf("\nof memory: %.1f GB/s, as %s reads it from first to last, measured after these steps\n", p.reads/1e9, cmp.Or(p.deviceName, p.device))
		if p.together > 1 {
			text += fmt.Sprintf("The tables are those of the first of %d devices that work at the same time; of memory is of the rate of one.\n", p.together)
		}
		if p.cached {
			text += "More than 100% of memory: a cache holds a part of what is read.\n"
		}
	}
	_, _ = io.WriteString(w, text)
}

// text returns the tables of steps of one kind.
func (p *profile) text(name string, w *work) string {
	text := fmt.Sprintf("\nsteps of %s: %d, of %d tokens\n", name, w.steps, w.tokens)
	text += fmt.Sprintf("on %s %s, by the clock %s; the parts below add up to %s", p.device, durationText(w.device), durationText(w.clock), durationText(w.all.time))
	whole := w.device
	if whole > 0 {
		text += fmt.Sprintf(", %.1f%% of the former", partOf(w.all.time, whole))
		if w.all.time > whole {
			text += ", as parts that are timed do not overlap"
		}
	} else {
		whole = w.all.time
	}
	kernels := newTable()
	kernels.row("kernel", "calls", "total ms", "mean us", "share", "mean bytes", "GB/s", "of memory")
	row := func(name string, s *share) {
		n := max(1, s.calls)
		kernels.row(append([]string{name, strconv.Itoa(s.calls), millisecondsText(s.time), microsecondsText(s.time, n), shareText(s.time, whole), byteText(s.bytes / int64(n))},
			p.speed(s)...)...)
	}
	for _, name := range slices.SortedFunc(maps.Keys(w.kernels), func(a, b string) int {
		return cmp.Or(cmp.Compare(w.kernels[b].time, w.kernels[a].time), cmp.Compare(a, b))
	}) {
		row(name, w.kernels[name])
	}
	row("all", &w.all)

	layers := newTable()
	layers.row("layer", "total ms", "us a step", "share", "bytes a step", "GB/s", "of memory")
	for _, layer := range slices.Sorted(maps.Keys(w.layers)) {
		s, name := w.layers[layer], strconv.Itoa(layer)
		if layer < 0 {
			name = "none"
		}
		layers.row(append([]string{name, millisecondsText(s.time), microsecondsText(s.time, w.steps), shareText(s.time, whole), byteText(s.bytes / int64(w.steps))}, p.speed(s)...)...)
	}
	return text + "\n\n" + kernels.text(1, 2, 3, 4, 5, 6, 7) + "\n" + layers.text(0, 1, 2, 3, 4, 5, 6)
}

// speed returns how fast s read and wrote, in GB/s and as a share of the memory's bandwidth.
func (p *profile) speed(s *share) []string {
	if s.bytes == 0 || s.time <= 0 {
		return []string{"-", "-"}
	}
	rate := float64(s.bytes) / s.time.Seconds()
	if p.reads == 0 {
		return []string{fmt.Sprintf("%.1f", rate/1e9), "-"}
	}
	reads := p.reads / float64(max(1, p.together))
	p.cached = p.cached || rate > reads
	return []string{fmt.Sprintf("%.1f", rate/1e9), fmt.Sprintf("%.1f%%", 100*rate/reads)}
}

func microsecondsText(d time.Duration, n int) string {
	return fmt.Sprintf("%.2f", float64(d)/float64(time.Microsecond)/float64(n))
}

func durationText(d time.Duration) string { return millisecondsText(d) + " ms" }

func partOf(part, whole time.Duration) float64 { return 100 * float64(part) / float64(whole) }

func shareText(part, whole time.Duration) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", partOf(part, whole))
}
