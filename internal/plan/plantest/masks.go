package plantest

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// maskOf returns a mask of a vocabulary that allows only tokens.
func maskOf(vocab int, tokens ...int32) []uint32 {
	words := make([]uint32, (vocab+31)/32)
	for _, id := range tokens {
		words[id/32] |= 1 << (id % 32)
	}
	return words
}

// set sets mask id to words.
func (c *chooser) set(t *testing.T, id int32, words []uint32) {
	t.Helper()
	if err := c.exe.SetMask(id, words); err != nil {
		t.Fatal(err)
	}
	c.masks[id] = slices.Clone(words)
	for i := range words {
		words[i] = 0x55555555 // SetMask has copied it
	}
}

// masked returns a batch that samples a token for each sequence under these masks. If chained, the
// tokens are the previous step's.
func (c *chooser) masked(rng *rand.Rand, position int, chained bool, masks ...int32) *plan.Batch {
	b := c.batch(ids(rng, len(masks), c.vocab), position)
	for i, id := range masks {
		b.Rows[i].Want |= plan.WantToken | plan.WantLogProbability
		b.Rows[i].Mask = id
		if rng.IntN(2) == 0 {
			b.Rows[i].Sampling = sample.Params{Temperature: 2, Seed: rng.Uint64()}
		}
		if chained {
			b.From = append(b.From, int32(i))
		}
	}
	return b
}

// A mask applies to any rows of any steps until it is set again, once no step that uses it is in
// flight; others may be.
func masks(t *testing.T, b plan.Backend) {
	for _, vocab := range []int{7, 1000, 5003} {
		c := newChooser(t, b, vocab)
		rng := newRand(uint64(37))
		half := func() []uint32 {
			words := maskOf(vocab, rng.Int32N(int32(vocab)))
			for i := range words {
				words[i] |= rng.Uint32()
			}
			return words
		}
		type under struct {
			step  plan.Step
			batch *plan.Batch
			masks map[int32][]uint32 // masks at the time of Submit
			res   *plan.Result
		}
		var all []*under
		done := 0
		submit := func(b *plan.Batch) {
			t.Helper()
			u := &under{step: c.submit(t, b), batch: b, masks: map[int32][]uint32{}}
			for _, row := range b.Rows {
				u.masks[row.Mask] = c.masks[row.Mask]
			}
			all = append(all, u)
		}
		finish := func() {
			t.Helper()
			all[done].res = wait(t, all[done].step)
			done++
		}
		c.set(t, 1, half())
		c.set(t, 2, half())
		submit(c.masked(rng, 0, false, 1, 1, 2, 0)) // several rows share a mask
		c.set(t, 5, half())                         // while that step is in flight
		c.set(t, 4, half())
		c.set(t, 4, half()) // again, before any use
		submit(c.masked(rng, 1, true, 5, 1, 4, 5))
		finish()
		c.set(t, 2, maskOf(vocab, int32(vocab-1))) // its only step is done; the other step is not
		submit(c.masked(rng, 2, true, 2, 1, 0, 2))
		finish()
		for _, id := range []int32{4, 5, 6, 16} {
			c.set(t, id, half())
		}
		submit(c.masked(rng, 3, true, 16, 6, 4, 5))
		finish()
		finish()
		submit(c.masked(rng, 4, false, 2, 2, 1)) // still the earlier masks
		finish()
		if got := all[4].res.Tokens[:2]; !slices.Equal(got, []int32{int32(vocab - 1), int32(vocab - 1)}) {
			t.Errorf("a mask of token %d alone gives %v", vocab-1, got)
		}
		for i, u := range all {
			last := slices.Repeat([]int32{-1}, len(u.batch.Rows))
			for k, row := range u.batch.From {
				last[k] = all[i-1].res.Tokens[row]
			}
			c.masks = u.masks
			c.check(t, u.batch, u.res, last)
			u.step.Release()
		}

		batch := c.masked(rng, 0, false, 7, 1)
		step := c.submit(t, batch)
		if res := wait(t, step); res.Err == nil || !errors.Is(res.Err[0], sample.ErrEmptyMask) || res.Err[1] != nil {
			t.Errorf("a mask that was never set: %v", res.Err)
		}
		step.Release()
		for _, id := range []int32{-1, 0, 2*chooserRows + 1} {
			if c.exe.SetMask(id, half()) == nil {
				t.Errorf("there is a mask %d", id)
			}
		}
		for _, n := range []int{0, (vocab+31)/32 - 1, (vocab+31)/32 + 1} {
			if c.exe.SetMask(1, make([]uint32, n)) == nil {
				t.Errorf("a mask of %d words for a vocabulary of %d was taken", n, vocab)
			}
		}
		if err := c.exe.Close(); err != nil {
			t.Fatal(err)
		}
		if c.exe.SetMask(1, half()) == nil {
			t.Error("a mask was taken after Close")
		}
	}
}

// The masks of a late step are set while it runs, after the previous step has returned the tokens
// that it continues with.
func lateMasks(t *testing.T, b plan.Backend) {
	for _, vocab := range []int{7, 5003} {
		c := newChooser(t, b, vocab)
		rng := newRand(38)
		half := func() []uint32 {
			words := maskOf(vocab, rng.Int32N(int32(vocab)))
			for i := range words {
				words[i] |= rng.Uint32()
			}
			return words
		}
		choose := func(s plan.Step, fails bool) {
			t.Helper()
			if err := c.exe.Choose(s); (err != nil) != fails {
				t.Fatalf("Choose gives %v, want an error: %v", err, fails)
			}
		}
		type done struct {
			batch *plan.Batch
			masks map[int32][]uint32
			res   *plan.Result
			step  plan.Step
		}
		var all []*done
		c.set(t, 1, half())
		c.set(t, 2, half())
		first := c.masked(rng, 0, false, 1, 0, 1)
		all = append(all, &done{batch: first, step: c.submit(t, first), masks: maps.Clone(c.masks)})
		choose(all[0].step, true)
		for n := range 6 {
			own := int32(3 + n%2) // a token by id, not of the previous step
			batch := c.masked(rng, n+1, true, own, 2, own)
			if n == 5 {
				batch.Rows = nil
			}
			if batch.Late = n != 3; !batch.Late {
				c.set(t, own, half())
			}
			next := &done{batch: batch, step: c.submit(t, batch)}
			if batch.Late {
				if _, err := c.exe.Submit(c.masked(rng, n+2, true, 1, 1, 1)); err == nil {
					t.Fatal("a step was submitted before Choose of the late step before it")
				}
			}
			all[n].res = wait(t, all[n].step)
			if batch.Late {
				c.set(t, own, half())
				choose(next.step, false)
				choose(next.step, true)
			}
			next.masks = maps.Clone(c.masks)
			all = append(all, next)
		}
		if res := wait(t, all[6].step); len(res.Tokens) > 0 {
			t.Errorf("a late step without rows gives %v", res.Tokens)
		}
		for i, u := range all[:6] {
			last := slices.Repeat([]int32{-1}, len(u.batch.Rows))
			for k, row := range u.batch.From {
				last[k] = all[i-1].res.Tokens[row]
			}
			c.masks = u.masks
			c.check(t, u.batch, u.res, last)
			u.step.Release()
		}
		last := c.masked(rng, 7, false, 1, 1)
		last.Late = true
		c.submit(t, last) // closed without Choose
		if err := c.exe.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
