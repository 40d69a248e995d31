package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cpu"
)

// A benchmark is one run of the command.
type benchmark struct {
	*benchCommand
	app         *app
	description *realizar.Description
	results     []*measurement
	asked       int            // answers
	shares      []func() error // measure rates as shares of the limits, once no model holds memory

	// The machine's limits; 0 if not measured or not known.
	reads, copies    float64 // bytes per second: of memory, and over the link to a device
	products, floats float64 // multiply-adds per second
}

// A measurement is one test's result, as --json writes it.
type measurement struct {
	Test          string   `json:"test"`
	Rate          float64  `json:"tok_s"`
	Min           float64  `json:"min"`
	Max           float64  `json:"max"`
	ShareOfLimit  *float64 `json:"share_of_limit"`
	Device        string   `json:"device"`
	DeviceName    *string  `json:"device_name"`
	Batch         int      `json:"batch"`
	Depth         int      `json:"depth"`
	Model         string   `json:"model"`
	Threads       int      `json:"threads"`
	FirstToken    float64  `json:"ttft_ms"`
	Longest       float64  `json:"ttft_max_ms"` // to a first token
	RSS           *int64   `json:"rss_bytes"`
	PeakRSS       *int64   `json:"peak_rss_bytes"`
	Bandwidth     *float64 `json:"bandwidth_bytes_s"`
	StepBytes     *int64   `json:"step_bytes"`
	Link          *float64 `json:"link_bytes_s"`
	CopiedBytes   *int64   `json:"copied_bytes"`
	PeakProducts  *float64 `json:"peak_products_s"`
	PeakFloats    *float64 `json:"peak_floats_s"`
	TokenProducts *int64   `json:"token_products"`
	TokenFloats   *int64   `json:"token_floats"`
	Proposed      *int64   `json:"proposed"` // tokens, in the last run
	Accepted      *int64   `json:"accepted"`
}

// measurement returns the result of a test on a device of a kind, which may have a name.
func (b *benchmark) measurement(test, device, name string, rates, first []float64) *measurement {
	slices.Sort(rates)
	slices.Sort(first)
	t := &measurement{
		Test: test, Rate: median(rates), Min: rates[0], Max: rates[len(rates)-1],
		Device: device, Batch: 1, Model: b.Model, FirstToken: median(first), Longest: first[len(first)-1],
	}
	if name != "" {
		t.DeviceName = &name
	}
	if t.onHost() {
		t.Threads = cpu.Threads(b.Threads)
	}
	t.RSS, t.PeakRSS = residentMemory()
	return t
}

// onHost reports whether the CPU computes.
func (t *measurement) onHost() bool { return backends.All.Kind(t.Device).Host }

// median returns the median of sorted values.
func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// copies describes what a step copies to a device.
type copies struct {
	layers  int64 // bytes
	experts bool  // experts are copied as needed
}

// readShare sets the rate of t's answers as a share of the memory's limit. A step reads the weights
// once, and the keys and values of each sequence. Streamed layers are copied at the same time. The
// bytes of streamed experts are not known.
func (b *benchmark) readShare(t *measurement, s batchShape, copied copies) error {
	t.Batch, t.Depth = s.seqs, s.depth
	if copied.experts {
		return nil
	}
	if b.reads == 0 || b.copies == 0 && copied.layers > 0 {
		var err error
		name := ""
		if t.DeviceName != nil {
			name = *t.DeviceName
		}
		if b.reads, b.copies, err = memoryRates(b.app.ctx, &b.modelFlags, t.Device, name, copied.layers > 0); err != nil {
			return err
		}
	}
	o := b.options()
	weights := b.description.TokenBytes(0, o.Activations, o.Cache)
	// The tokens that are run follow depth, depth+1, ... tokens.
	cache := b.description.TokenBytes(s.depth+(s.answer-1)/2, o.Activations, o.Cache) - weights
	bytes := weights + int64(s.seqs)*cache
	least := float64(bytes) / b.reads // seconds
	if copied.layers > 0 {
		least = max(least, float64(copied.layers)/b.copies)
		t.Link, t.CopiedBytes = &b.copies, &copied.layers
	}
	share := t.Rate / float64(s.seqs) * least
	t.ShareOfLimit, t.Bandwidth, t.StepBytes = &share, &b.reads, &bytes
	return nil
}

// productShare sets the rate of t's prompt as a share of the CPU's limit, if that is known.
func (b *benchmark) productShare(t *measurement) {
	quantized, floats := b.description.TokenProducts(b.options().Activations)
	t.TokenProducts, t.TokenFloats = &quantized, &floats
	if !t.onHost() {
		return
	}
	b.products, b.floats = cpu.PeakProducts(b.Threads), cpu.PeakFloats(b.Threads)
	if b.products == 0 || b.floats == 0 {
		return
	}
	share := t.Rate * (float64(quantized)/b.products + float64(floats)/b.floats)
	t.ShareOfLimit, t.PeakProducts, t.PeakFloats = &share, &b.products, &b.floats
}

// write writes the results in lines of at most width columns if possible; 0 is any number.
func (b *benchmark) write(w io.Writer, width int) error {
	if b.JSON {
		out := json.NewEncoder(w)
		out.SetEscapeHTML(false)
		for _, t := range b.results {
			if err := out.Encode(t); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable()
	t.row("test", "depth", "tok/s", "min", "max", "first token", "longest", "share of limit")
	for _, r := range b.results {
		share := "-"
		if r.ShareOfLimit != nil {
			share = fmt.Sprintf("%.1f%%", 100**r.ShareOfLimit)
		}
		t.row(r.Test, strconv.Itoa(r.Depth), fmt.Sprintf("%.2f", r.Rate), fmt.Sprintf("%.2f", r.Min), fmt.Sprintf("%.2f", r.Max),
			waitText(r.FirstToken), waitText(r.Longest), share)
	}
	_, err := io.WriteString(w, t.fit(width, 1, 2, 3, 4, 5, 6, 7)+"\n"+fitted(b.machine()+b.beyondLimit()+b.proposals(), width)+"\n")
	return err
}

// beyondLimit returns a line that explains shares above 100%, or "" if there are none.
func (b *benchmark) beyondLimit() string {
	for _, r := range b.results {
		if r.ShareOfLimit == nil || *r.ShareOfLimit <= 1 {
			continue
		}
		if r.StepBytes != nil && r.Link == nil {
			return "\nA share of more than 100%: caches hold a part of what a step reads, and the limit is that of memory."
		}
		return "\nA share of more than 100%: the machine was faster than when its limit was measured."
	}
	return ""
}

// proposals returns lines that count the proposed tokens of each test.
func (b *benchmark) proposals() (text string) {
	for _, r := range b.results {
		if r.Proposed != nil && *r.Proposed > 0 {
			text += fmt.Sprintf("\n%s: %d tokens were proposed, %d of them were right.", r.Test, *r.Proposed, *r.Accepted)
		}
	}
	return text
}

// waitText formats a time in milliseconds.
func waitText(ms float64) string {
	return time.Duration(ms * float64(time.Millisecond)).Round(10 * time.Microsecond).String()
}

// machine returns a line that describes the machine.
func (b *benchmark) machine() string {
	last := b.results[len(b.results)-1]
	text := "device: " + last.Device
	if last.DeviceName != nil {
		text += fmt.Sprintf(" (%s)", *last.DeviceName)
	}
	if last.onHost() {
		text += fmt.Sprintf(", threads: %d", last.Threads)
	}
	text += fmt.Sprintf(", runs: %d", b.Runs)
	if b.products > 0 && b.floats > 0 {
		text += fmt.Sprintf(", multiplies and adds %.1f G 8-bit or %.1f G float32 values a second", b.products/1e9, b.floats/1e9)
	}
	if last.Bandwidth != nil {
		text += fmt.Sprintf(", reads %.1f GB/s, a step reads %s", *last.Bandwidth/1e9, byteText(*last.StepBytes))
	}
	if last.Link != nil {
		text += fmt.Sprintf(", is copied to at %.1f GB/s, a step copies %s", *last.Link/1e9, byteText(*last.CopiedBytes))
	}
	if last.RSS != nil {
		text += fmt.Sprintf(", resident memory %s, at most %s", byteText(*last.RSS), byteText(*last.PeakRSS))
	}
	return text
}
