package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/memory"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A lockstepModel is a model that runs batches of sequences without the engine.
type lockstepModel struct {
	file    *modelfile.File
	model   *arch.Model
	options realizar.Options
	device  *backends.Device
	memory  memory.Planner
}

func openLockstep(path, kernels string, o realizar.Options) (*lockstepModel, error) {
	f, err := modelfile.Open(path)
	if err != nil {
		return nil, err
	}
	m := &lockstepModel{file: f, options: o}
	if m.model, err = arch.Build(f); err == nil {
		err = m.open(kernels)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return m, nil
}

// open opens the device as a model does, even if not all batches fit.
func (m *lockstepModel) open(kernels string) error {
	o, program := &m.options, m.model.Program
	_, err := backends.All.Use(context.Background(), backends.Choice{
		Name: o.Device, Threads: o.Threads, Kernels: kernels, Split: mesh.Split(o.Split), Memory: o.DeviceMemory != (realizar.MemoryLimit{}) || o.StreamWeights == realizar.StreamAlways,
		Single: o.StreamWeights == realizar.StreamAlways,
	}, func(a backends.Attempt) error {
		m.device = a.Devices[0]
		m.memory = memory.Planner{Program: program, Made: m.model.Spec.Context, Device: m.device, Backend: m.device, Host: backends.HostMemory(), Options: memory.Options{
			Context: o.Context, Parallel: 1, Limit: o.Memory, Cache: m.cache(), Activations: m.activations(), Ample: a.Ample,
		}}
		if !m.device.Kind.Host {
			p := &m.memory.Options
			p.Limit, p.Pinned, p.HostCache = o.DeviceMemory.Of(m.device.Memory().Total), o.Memory, o.HostCache
		}
		if a.Ample {
			if _, err := m.memory.Config(); err != nil {
				return backends.TooFew(err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", realizar.ErrDevice, err)
	}
	return nil
}

func (m *lockstepModel) close() error { return errors.Join(m.device.Close(), m.file.Close()) }

// A batchShape is a number of sequences with depth tokens each, and the tokens of their answers.
type batchShape struct{ seqs, depth, answer int }

// chunkTokens is the most prompt tokens in a step.
const chunkTokens = 256

// limits returns the limits of an engine for one sequence of this length, with room for more
// sequences. On a device, weights stream as the options say.
func (m *lockstepModel) limits(s batchShape) (plan.Limits, error) {
	c := engine.Config{Context: s.depth + s.answer, Parallel: 1, Cache: m.cache(), Activations: m.activations()}
	l := c.Limits(m.model.Program)
	l.Tokens, l.Seqs, l.Rows = max(s.seqs, chunkTokens), s.seqs, s.seqs
	for g := range l.Pages {
		l.Pages[g] = s.seqs * s.pages(m.model.Program.Groups[g], l.PageTokens)
	}
	if m.device.Kind.Host || m.options.StreamWeights == realizar.StreamNever {
		return l, nil
	}
	if m.options.StreamWeights == realizar.StreamAlways {
		l.Weights, l.Pinned = 1, m.memory.Pinned()
		return l, nil
	}
	size, err := m.size(l)
	free := m.memory.Free()
	if err != nil || free == 0 || size.Weights+size.States+size.Scratch <= int(free) {
		return l, err
	}
	l.Pinned = m.memory.Pinned()
	return memory.Beside(m.device, m.model.Program, l, free)
}

// size returns the memory of the model with these limits.
func (m *lockstepModel) size(l plan.Limits) (size engine.Memory, err error) {
	size.States, err = l.StateBytes(m.model.Program)
	size.Weights, size.Scratch = m.device.Weights(m.model.Program, l), m.device.Scratch(m.model.Program, l)
	return size, err
}

// cache returns the type of keys and values.
func (m *lockstepModel) cache() tensor.DType {
	switch o := &m.options; {
	case o.Cache == realizar.CacheQ8:
		return tensor.Q8_0
	case o.Cache == realizar.CacheF8:
		return tensor.F8_E4M3
	case o.Cache == realizar.CacheF32, o.Cache == realizar.CacheAuto && o.Activations == realizar.ActivationsF32:
		return tensor.F32
	}
	return tensor.F16
}

// activations returns the type that activations are rounded to.
func (m *lockstepModel) activations() tensor.DType {
	switch m.options.Activations {
	case realizar.ActivationsF32:
		return tensor.F32
	case realizar.ActivationsF8:
		return tensor.F8_E4M3
	}
	return m.device.Rounds()
}

// pages returns the number of a sequence's pages of a group. Every answer follows the same prompt,
// so a window's pages hold what its first token sees and what its last one writes, and one slot
// holds the state after the prompt.
func (s batchShape) pages(g plan.Group, pageTokens int) int {
	pagesOf := func(tokens int) int { return (tokens + pageTokens - 1) / pageTokens }
	all := pagesOf(s.depth + s.answer)
	if g.Kind == plan.PerSequence {
		return lockstepSlots
	}
	seen := max(g.Window, g.Chunk)
	if seen == 0 || seen > s.depth+s.answer {
		return all
	}
	return min(all, pagesOf(seen+max(chunkTokens, s.answer))+1)
}

// check returns an error if a batch does not fit into memory.
func (m *lockstepModel) check(s batchShape) error {
	l, err := m.limits(s)
	if err != nil {
		return err
	}
	size, err := m.size(l)
	if err != nil {
		return err
	}
	free, have := m.memory.Free(), "are free"
	if limit := m.memory.Options.Limit; limit > 0 && free == limit {
		have = "may be taken"
	}
	if free > 0 && int64(size.States) > free-int64(size.Scratch)-int64(size.Weights) {
		return usagef("--batch %d: %d sequences of %d tokens take %s of cache and %s of scratch beside %s of weights, but %s %s; lower --batch, --depth or -n",
			s.seqs, s.seqs, s.depth+s.answer, byteText(int64(size.States)), byteText(int64(size.Scratch)), byteText(int64(size.Weights)), byteText(free), have)
	}
	return nil
}

// A lockstep is a batch of sequences that run one token each in every step. Page i of sequence s is
// page i%n of its n pages, so that windows reuse the pages that they have left.
type lockstep struct {
	batchShape
	program *plan.Program
	exe     plan.Executable
	limits  plan.Limits
	first   []int32 // sampled after the prompts, by sequence
	from    []int32 // the rows 0, 1, ... of the previous step
	batches [2]plan.Batch
}

func (m *lockstepModel) start(ctx context.Context, s batchShape) (*lockstep, error) {
	limits, err := m.limits(s)
	if err != nil {
		return nil, err
	}
	l := &lockstep{batchShape: s, program: m.model.Program, limits: limits}
	for i := range s.seqs {
		l.from = append(l.from, int32(i))
	}
	var spare []*tensor.Tensor
	l.exe, err = m.device.Compile(ctx, m.model.Program, l.limits, func(w *tensor.Tensor, isSpare bool) {
		if isSpare {
			m.file.ReleaseTensor(w)
			spare = append(spare, w)
		}
	})
	for _, w := range spare { // later reads may have loaded some again
		m.file.ReleaseTensor(w)
	}
	return l, err
}

// close waits for the steps in flight and frees the executable.
func (l *lockstep) close() error { return l.exe.Close() }

// prompt prefills the prompt ids for the next sequence and samples the token after it.
func (l *lockstep) prompt(ctx context.Context, ids []int32) error {
	b := &l.batches[0]
	for start := 0; start < len(ids); start += chunkTokens {
		end := min(start+chunkTokens, len(ids))
		l.reset(b)
		l.add(b, len(l.first), start, ids[start:end])
		if end == len(ids) {
			b.Rows = append(b.Rows, plan.Row{Token: int32(end - start - 1), Want: plan.WantToken})
		}
		step, err := l.exe.Submit(b)
		if err != nil {
			return err
		}
		if l.first, err = l.take(ctx, step, l.first); err != nil {
			return err
		}
	}
	return nil
}

// choose decodes the answers of all sequences, leaves the states of their prompts as they are, and
// returns the time. If each is not nil, it gets the tokens of each step, after the next step began.
func (l *lockstep) choose(ctx context.Context, each func([]int32)) (time.Duration, error) {
	begun := time.Now()
	var before plan.Step
	var tokens []int32
	for i := range l.answer + 1 {
		var step plan.Step
		if i < l.answer {
			b := &l.batches[i%len(l.batches)]
			l.reset(b)
			for s := range l.seqs {
				b.Rows = append(b.Rows, plan.Row{Token: int32(s), Want: plan.WantToken})
				l.add(b, s, l.depth+i, l.first[s:s+1])
			}
			if i > 0 {
				b.From = l.from
			}
			var err error
			if step, err = l.exe.Submit(b); err != nil {
				return 0, err
			}
		}
		if before != nil {
			var err error
			if tokens, err = l.take(ctx, before, tokens[:0]); err != nil {
				return 0, err
			}
			if each != nil {
				each(tokens)
			}
		}
		before = step
	}
	return time.Since(begun), nil
}

// reset empties b and keeps its memory.
func (l *lockstep) reset(b *plan.Batch) {
	b.Tokens, b.From, b.Positions, b.Lengths, b.Rows = b.Tokens[:0], nil, b.Positions[:0], b.Lengths[:0], b.Rows[:0]
	b.Start = append(b.Start[:0], 0)
	if b.Tables == nil {
		b.Tables = make([]plan.PageTable, len(l.program.Groups))
	}
	for g := range b.Tables {
		b.Tables[g].Reset()
	}
}

// add appends ids of sequence s, beginning at position start.
func (l *lockstep) add(b *plan.Batch, s, start int, ids []int32) {
	end := start + len(ids)
	b.Tokens = append(b.Tokens, ids...)
	for at := start; at < end; at++ {
		b.Positions = append(b.Positions, int32(at))
	}
	b.Start = append(b.Start, int32(len(b.Tokens)))
	b.Lengths = append(b.Lengths, int32(l.depth))
	for g := range b.Tables {
		t, n := &b.Tables[g], l.limits.Pages[g]/l.seqs
		group := l.program.Groups[g]
		if group.Kind == plan.PerSequence {
			in, out := int32(-1), int32(-1)
			if group.Taken(start) > 0 {
				in = int32(s*n + l.slot(group, start))
			}
			if group.Taken(end) > group.Taken(start) {
				out = int32(s*n + l.slot(group, end))
			}
			t.AddSlots(in, out)
			continue
		}
		first := group.FirstVisible(start) / l.limits.PageTokens
		for i := first; i*l.limits.PageTokens < end; i++ {
			t.Pages = append(t.Pages, int32(s*n+i%n))
		}
		t.Start = append(t.Start, int32(len(t.Pages)))
		t.First = append(t.First, int32(first))
	}
}

// lockstepSlots is the number of slots of each sequence.
const lockstepSlots = 3

// slot returns the slot with the state of a sequence of that many tokens. The states before and
// after are in other slots, and an answer does not overwrite the slot of the prompt.
func (s batchShape) slot(g plan.Group, tokens int) int {
	tokens, prompt := g.Taken(tokens), g.Taken(s.depth)
	if tokens > prompt {
		return 1 + (tokens-prompt)/max(1, g.Every)%2
	}
	return (prompt - tokens + chunkTokens - 1) / chunkTokens % lockstepSlots
}

// take waits for a step and appends its tokens.
func (l *lockstep) take(ctx context.Context, step plan.Step, tokens []int32) ([]int32, error) {
	r, err := step.Wait(ctx)
	if err != nil {
		return nil, err
	}
	for s, err := range r.Err {
		if err != nil {
			return nil, fmt.Errorf("sequence %d: %w", s, err)
		}
	}
	tokens = append(tokens, r.Tokens...)
	step.Release()
	return tokens, nil
}

// batches measures one batch after the other; first holds the times to their first tokens.
func (b *benchmark) batches(m *lockstepModel, shapes []batchShape, first [][]float64) error {
	for i, s := range shapes {
		t, err := b.batch(m, s, first[i])
		if err != nil {
			return err
		}
		b.results = append(b.results, t)
		debug.FreeOSMemory() // for the next batch
	}
	return nil
}

func (b *benchmark) batch(m *lockstepModel, s batchShape, first []float64) (t *measurement, err error) {
	l, err := m.start(b.app.ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, l.close()) }()
	for i := range s.seqs {
		if err := l.prompt(b.app.ctx, randomTokens(i, s.depth, m.model.Spec.Vocab)); err != nil {
			return nil, err
		}
	}
	var rates []float64
	for i := range b.Runs + 1 {
		took, err := l.choose(b.app.ctx, nil)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			rates = append(rates, float64(s.seqs*s.answer)/took.Seconds())
		}
	}
	t = b.measurement(fmt.Sprintf("tg%d x%d", s.answer, s.seqs), m.device.Name(), m.device.Description(), rates, first)
	streaming := m.device.Streaming(m.model.Program, l.limits)
	copied := copies{int64(streaming.Streamed), streaming.Experts.Layers > 0}
	b.shares = append(b.shares, func() error { return b.readShare(t, s, copied) })
	return t, nil
}
