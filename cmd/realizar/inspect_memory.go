package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/machine"
)

// memoryText returns the part of a description about memory: the parts of the total, and what is
// needed in addition. layers is the model's number of layers, and m the memory of the first of
// several copies.
func memoryText(m *realizar.Memory, layers, copies int) string {
	t := newTable()
	s := m.Streaming
	switch {
	case s != nil:
		t.row("weights", byteText(s.Resident), residentText(s, layers))
		if s.Slots > 0 {
			t.row("slots", byteText(int64(s.Slots)*s.SlotBytes), fmt.Sprintf("%d of %s, which layers that stream take turns in", s.Slots, byteText(s.SlotBytes)))
		}
		if x := s.Experts; x != nil {
			t.row("experts", byteText(x.Device()), fmt.Sprintf("%d of %d kept in each of %d layers, and %d places for others, of %s", x.Kept, x.Of, x.Layers, x.Shared, byteText(x.Bytes)))
		}
	case !backends.All.Kind(m.Device).Host:
		t.row("weights", byteText(m.Resident), "in the device's memory")
	case m.Resident == 0:
		t.row("weights", byteText(m.Weights), "mapped from the file")
	default:
		t.row("weights", byteText(m.Weights), byteText(m.Resident)+" laid out for the kernels, the rest mapped from the file")
	}
	for _, s := range m.States {
		kept := fmt.Sprintf("%d tokens", m.Tokens)
		switch {
		case s.Slots > 0:
			t.row(stateName(s.Kind), byteText(s.Bytes), fmt.Sprintf("%d layers, %d slots, %d of them for checkpoints", s.Layers, s.Slots, s.Checkpoints))
			continue
		case s.Window > 0:
			kept = fmt.Sprintf("a window of %d tokens", s.Window)
		case s.Chunk > 0:
			kept = fmt.Sprintf("chunks of %d tokens", s.Chunk)
		}
		t.row(stateName(s.Kind), byteText(s.Bytes), fmt.Sprintf("%d layers, %s, %s", s.Layers, kept, m.Cache))
	}
	t.row("scratch", byteText(m.Scratch), "for one step")
	if m.Draft > 0 {
		t.row("draft model", byteText(m.Draft), "weights, cache and scratch of the model that proposes tokens")
	}
	t.row("total", byteText(m.Total), freeText(m))
	if s != nil {
		if len(s.Layers) > 0 {
			t.row("streamed", byteText(s.Streamed), streamedText(s))
		}
		if s.Pinned > 0 {
			t.row("pinned", byteText(s.Pinned), "of the host's memory, for weights")
		}
	}
	if m.Host > 0 {
		t.row("host", byteText(m.Host), "for what the cache has no room for")
	}
	answers := "one answer"
	if m.Parallel > 1 {
		answers = fmt.Sprintf("%d answers", m.Parallel)
	}
	of := ""
	if copies > 1 {
		of = fmt.Sprintf(" of the first of %d copies", copies)
	}
	return fmt.Sprintf("\nMemory%s for %s of %d tokens\n\n", of, answers, m.Context) + t.text(1) + poolText(m)
}

// residentText says which weights stay on the device. layers is the model's number of layers.
func residentText(s *realizar.Streaming, layers int) string {
	stay := layers
	for _, r := range s.Layers {
		stay -= r.Last - r.First + 1
	}
	text := fmt.Sprintf("in the device's memory: %d of %d layers", stay, layers)
	if s.Experts != nil {
		text += " without their experts"
	}
	return text + ", and what belongs to none"
}

// streamedText says which layers are copied, and from where.
func streamedText(s *realizar.Streaming) string {
	var ranges []string
	for _, r := range s.Layers {
		if r.First == r.Last {
			ranges = append(ranges, strconv.Itoa(r.First))
			continue
		}
		ranges = append(ranges, fmt.Sprintf("%d-%d", r.First, r.Last))
	}
	text := "copied in every step, from pinned memory"
	switch pinned := s.Streamed - s.Staged; {
	case pinned == 0:
		text = "copied in every step, staged from the file"
	case s.Staged > 0:
		text = fmt.Sprintf("copied in every step, %s from pinned memory and %s staged from the file", byteText(pinned), byteText(s.Staged))
	}
	if len(s.Layers) == 1 && s.Layers[0].First == s.Layers[0].Last {
		return text + ": layer " + ranges[0]
	}
	return text + ": layers " + strings.Join(ranges, ", ")
}

// freeText says how much memory is free.
func freeText(m *realizar.Memory) string {
	if m.Free == 0 {
		return ""
	}
	text := fmt.Sprintf("%s are free on %s (%s)", byteText(m.Free), cmp.Or(m.DeviceName, "this machine"), m.Device)
	if limit := machine.ReadMemory().Limit; limit != "" && backends.All.Kind(m.Device).Host {
		text += ", by " + limit
	}
	if m.Limit > 0 {
		text = byteText(m.Limit) + " may be taken, " + text
	}
	return text
}

// expectedText says how fast one answer is expected to be, and why.
func expectedText(e *realizar.Expectation, s *realizar.Streaming) string {
	if e == nil {
		return ""
	}
	t := newTable()
	t.row("read", byteText(e.Read), fmt.Sprintf("of weights by a step, at %.1f GB/s", e.Bandwidth/1e9))
	if e.Copied > 0 {
		staged := ""
		if s != nil && s.Staged > 0 {
			staged = "; the file may be slower"
		}
		t.row("copied", byteText(e.Copied), fmt.Sprintf("of layers at the same time, at %.1f GB/s%s", e.Link/1e9, staged))
	}
	if e.Fetched > 0 {
		t.row("fetched", byteText(e.Fetched), fmt.Sprintf("of experts, at %.1f GB/s, if all are used alike", e.Link/1e9))
	}
	t.row("step", fmt.Sprintf("%.3f ms", 1e3*e.Step), "at least")
	return fmt.Sprintf("\nOne answer is expected to come at %.4g tokens a second at most\n\n", e.Rate) + t.text(1)
}

// A replicasMemory is what the copies of a model take, as --json writes it. All fields but Copies are
// sums.
type replicasMemory struct {
	Parallel  int                `json:"parallel"`
	Total     int64              `json:"total"`
	Host      int64              `json:"host_cache,omitempty"`
	Sequences int                `json:"sequences"`
	Tokens    int                `json:"tokens"`
	Copies    []*realizar.Memory `json:"copies"`
}

// newReplicasMemory returns nil if there are no copies.
func newReplicasMemory(copies []*realizar.Memory) *replicasMemory {
	if len(copies) == 0 {
		return nil
	}
	all := &replicasMemory{Copies: copies}
	for _, m := range copies {
		all.Parallel += m.Parallel
		all.Total += m.Total
		all.Host += m.Host
		all.Sequences += m.Sequences
		all.Tokens += m.Tokens
	}
	return all
}

// replicasText says what each copy of the model takes of its device, one row for neighbors that take
// the same, and what all take together.
func replicasText(all *replicasMemory) string {
	if all == nil {
		return ""
	}
	t := newTable()
	for i := 0; i < len(all.Copies); {
		name, total, text := fmt.Sprintf("copy %d", i), byteText(all.Copies[i].Total), copyText(all.Copies[i])
		end := i + 1
		for end < len(all.Copies) && byteText(all.Copies[end].Total) == total && copyText(all.Copies[end]) == text {
			end++
		}
		if end > i+1 {
			name, text = fmt.Sprintf("copies %d-%d", i, end-1), "each: "+text
		}
		t.row(name, total, text)
		i = end
	}
	text := fmt.Sprintf("up to %d answers at a time", all.Parallel)
	if all.Sequences > 0 {
		text += fmt.Sprintf("; the caches hold %d sequences of %d tokens, or %d tokens in all", all.Sequences, all.Copies[0].Context, all.Tokens)
	}
	t.row("all", byteText(all.Total), text)
	if all.Host > 0 {
		t.row("host", byteText(all.Host), fmt.Sprintf("for what the caches have no room for, %s for each", byteText(all.Copies[0].Host)))
	}
	return fmt.Sprintf("\nMemory of the %d copies\n\n", len(all.Copies)) + t.text(1)
}

// copyText lists the parts of the memory that a copy takes, and what is free on its device.
func copyText(m *realizar.Memory) string {
	var states int64
	for _, s := range m.States {
		states += s.Bytes
	}
	text := fmt.Sprintf("weights %s, keys, values and states %s, scratch %s", byteText(m.Resident), byteText(states), byteText(m.Scratch))
	if m.Draft > 0 {
		text += ", draft model " + byteText(m.Draft)
	}
	if m.Free > 0 {
		text += fmt.Sprintf("; %s are free", byteText(m.Free))
	}
	return text
}

// dividedText says what each device holds of a model that is divided.
func dividedText(parts []realizar.PartMemory) string {
	if len(parts) == 0 {
		return ""
	}
	t := newTable()
	for i, p := range parts {
		t.row(fmt.Sprintf("device %d", i), byteText(p.Weights+p.States), fmt.Sprintf("weights %s, keys, values and states of one request %s", byteText(p.Weights), byteText(p.States)))
	}
	return fmt.Sprintf("\nDivided among %d devices, beside a step's scratch memory\n\n", len(parts)) + t.text(1)
}

// poolText says how many sequences the cache holds at a time.
func poolText(m *realizar.Memory) string {
	if m.Sequences == 0 {
		return ""
	}
	text := fmt.Sprintf("\nThe cache holds %d sequences of %d tokens", m.Sequences, m.Context)
	if m.Sequences == 1 {
		text = fmt.Sprintf("\nThe cache holds one sequence of %d tokens", m.Context)
	}
	return text + fmt.Sprintf(", or %d tokens in all\n", m.Tokens)
}

func stateName(kind string) string {
	switch kind {
	case "kv":
		return "keys and values"
	case "sequence":
		return "states"
	}
	return kind
}
