package cuda

import (
	"errors"
	"slices"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/plan"
)

// diagnose runs the step again, with every node as a separate stage, and replaces each ErrNotFinite
// by an error that names its origin. The rerun stores keys and values again, in pages that later
// steps may already have reused, so diagnose saves these pages and restores them. Its memory is the
// only one that is not planned: it is allocated for the rerun, and if that fails the origin stays
// unknown.
func (s *step) diagnose() {
	open := 0
	for _, err := range s.failed {
		if errors.Is(err, plan.ErrNotFinite) {
			open++
		}
	}
	if open == 0 || s.e.b.link != nil {
		return // parts that run a step again would have to do so together
	}
	// If this fails, the failures stay without an origin.
	_ = s.e.b.Main.Do(func() error {
		err := s.look(open)
		s.e.torn = s.e.torn || err != nil
		return err
	})
}

// look finds the first value that is not finite in each of open sequences.
func (s *step) look(open int) (err error) {
	e, b := s.e, s.Batch
	c := e.b.Main
	defer c.Doing(c.Doing("looking for a value that is not finite"))
	apart := lower.NewLayout(e.p, &e.lim, true)
	r := lower.NewRoom(e.p, &e.lim, apart.Bytes)
	at, err := e.alloc(r.Bytes, "a diagnosis")
	if err != nil {
		return err
	}
	defer func() { _ = c.Free(at) }()
	if err := c.Memset8(at, 0, r.Bytes); err != nil {
		return err
	}
	// The step's input, with the tokens that it actually used.
	tokens := device.Words[int32](s.in[e.room.Tokens-e.room.Counts:])[:len(b.Tokens)]
	if e.p.Inputs == 0 { // otherwise they are known
		copy(tokens, device.Words[int32](s.out[e.room.Ids-e.room.Failed:]))
	}
	from := device.Words[int32](s.in[e.room.From-e.room.Counts:])
	for t := range tokens {
		from[t] = -1
	}
	if err := c.CopyToDevice(at+driver.DevicePtr(r.Counts), s.in[:e.room.FlagsEnd-e.room.Counts]); err != nil {
		return err
	}
	inputs, _ := apart.Inputs(at)
	if err := s.copyInputs(inputs); err != nil {
		return err
	}
	if err := e.setConstants(at, r); err != nil {
		return err
	}
	for i := range r.Freqs {
		if r.Ropes[i].Dynamic == nil {
			continue
		}
		n := len(r.Ropes[i].Freqs) * (2 + e.lim.Tokens)
		if err := c.CopyOnDevice(at+driver.DevicePtr(r.Freqs[i]), e.scratchAt+driver.DevicePtr(e.room.Freqs[i]), 8*n); err != nil {
			return err
		}
	}
	var pages []driver.DevicePtr
	defer func() {
		for _, p := range pages {
			_ = c.Free(p)
		}
	}()
	for g := range b.Tables {
		p, err := e.alloc(max(4, 4*len(b.Tables[g].Pages)), "a diagnosis")
		if err != nil {
			return err
		}
		pages = append(pages, p)
		if err := c.CopyToDevice(p, s.pages[g][:4*len(b.Tables[g].Pages)]); err != nil {
			return err
		}
	}
	back, err := s.keepPages()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, back()) }()
	comp := e.compiler()
	comp.Layout, comp.Room, comp.ScratchAt, comp.Step = apart, r, at, r.Addresses(at, pages)
	before, stages, err := comp.Compile()
	if err != nil {
		return err
	}
	if err := lower.Give(e.stream, &s.sh, before); err != nil {
		return err
	}
	var row []byte
	first, end := apart.Part(b.Head)
	for i := first; i < end; i++ {
		if open == 0 {
			break
		}
		if err := lower.Give(e.stream, &s.sh, stages[i]); err != nil {
			return err
		}
		if err := e.stream.Synchronize(); err != nil {
			return err
		}
		n := apart.Stages[i].Node()
		count := len(b.Tokens)
		if e.p.Shapes[n.Out][0] == plan.Rows {
			count = len(b.Rows)
		}
		f := apart.Forms(at, n.Out)
		for t := range count {
			token := t
			if e.p.Shapes[n.Out][0] == plan.Rows {
				token = int(b.Rows[t].Token)
			}
			q := slices.IndexFunc(b.Start[1:], func(end int32) bool { return token < int(end) })
			if s.failed[q] != plan.ErrNotFinite { //nolint:errorlint // the bare sentinel marks a sequence still to be explained
				continue
			}
			row = fill(row, 4*int(f.Cols), 0)
			if err := c.CopyToHost(row, f.F32+driver.DevicePtr(4*t*int(f.Stride))); err != nil {
				return err
			}
			for _, v := range device.Words[float32](row) {
				if v-v != 0 {
					s.failed[q] = &plan.NotFiniteError{Where: n.Where(), Layer: n.Layer, Position: int(b.Positions[token]), Value: v}
					open--
					break
				}
			}
		}
	}
	return nil
}

// keepPages copies the pages that the step writes, in the state that the steps submitted so far
// leave them. back restores them.
func (s *step) keepPages() (back func() error, err error) {
	e := s.e
	c := e.b.Main
	type kept struct {
		page, at driver.DevicePtr // the page's address, and its copy's offset from the start of all copies
		bytes    int
	}
	var all []kept
	bytes := 0
	for _, k := range e.pools {
		for _, page := range s.writtenPages(k.State.Group) {
			all = append(all, kept{k.Base + driver.DevicePtr(int(page)*k.Apart), driver.DevicePtr(bytes), k.Bytes})
			bytes += k.Apart
		}
	}
	copies, err := e.alloc(bytes, "a diagnosis")
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		if err := e.stream.CopyOnDevice(copies+k.at, k.page, k.bytes); err != nil {
			return nil, errors.Join(err, c.Free(copies))
		}
	}
	return func() error {
		var errs []error
		for _, k := range all {
			errs = append(errs, e.stream.CopyOnDevice(k.page, copies+k.at, k.bytes))
		}
		return errors.Join(append(errs, e.stream.Synchronize(), c.Free(copies))...)
	}, nil
}

// writtenPages returns the pages of a group that the step writes: those of its tokens, or the slots
// of the states after it.
func (s *step) writtenPages(group int) (pages []int32) {
	b, t := s.Batch, &s.Batch.Tables[group]
	if !s.e.p.Uses(group, b.Head) {
		return nil
	}
	for q := range b.Seqs() {
		if s.e.p.Groups[group].Kind == plan.PerSequence {
			_, out := t.Slots(q)
			pages = append(pages, out)
			continue
		}
		tokens := int32(s.e.lim.PageTokens)
		first, last := b.Positions[b.Start[q]]/tokens, b.Positions[b.Start[q+1]-1]/tokens
		pages = append(pages, t.Pages[t.Start[q]+first-t.First[q]:][:last-first+1]...)
	}
	return pages
}
