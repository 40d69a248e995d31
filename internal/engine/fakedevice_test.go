package engine_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// The fake device computes the same for many sequences in one step, with scattered and shared pages
// that move to host memory and back, as for each sequence alone.
func TestFakeDevice(t *testing.T) {
	const size, seqs, common, length = 4, 3, 8, 48
	m := &hashModel{windows: []int{0, 5, recurrent}, longFrom: 20}
	rng := rand.New(rand.NewPCG(7, 7))
	f := &fake{model: m, broken: t.Errorf, pause: func(int, <-chan struct{}) {}, rng: rng, room: 1 << 20}
	p := m.program()
	const pages = (common + seqs*(length-common)) / size
	l := plan.Limits{Tokens: seqs * length, Seqs: seqs, Rows: seqs, PageTokens: size, Pages: []int{pages, pages, pages}, Masks: 3, Cache: tensor.F32}
	exe, err := f.Compile(t.Context(), p, l, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	bytes, err := l.PageBytes(p, 0)
	if err != nil || bytes != 8*size {
		t.Fatalf("a page has %d bytes (%v), the device's have %d", bytes, err, 8*size)
	}
	host, err := exe.AllocHost(2 * bytes)
	if err != nil {
		t.Fatal(err)
	}
	// The first pages are shared by all.
	var tables [2][seqs][]int32
	slots := [seqs]int32{-1, -1, -1} // of each sequence's state
	for g := range tables {
		free := rng.Perm(pages)
		for s := range seqs {
			for i := range length / size {
				if i >= common/size {
					i += s * (length - common) / size
				}
				tables[g][s] = append(tables[g][s], int32(free[i]))
			}
		}
	}
	past := []*reader{newReader(m, 10), nil, nil}
	ids := make([]int32, common)
	for i := range ids {
		ids[i] = rng.Int32N(vocab)
		past[0].read(ids[i])
	}
	past[1], past[2] = past[0].fork(), past[0].fork()
	run := func(b *plan.Batch) *plan.Result {
		step, err := exe.Submit(b)
		if err != nil {
			t.Fatal(err)
		}
		res, err := step.Wait(t.Context())
		if err != nil || res.Err != nil {
			t.Fatal(err, res)
		}
		return res
	}
	// add adds a sequence to a step.
	add := func(b *plan.Batch, s int, ids ...int32) {
		start := len(past[s].terms[0])
		if len(b.Start) == 1 && start == common && len(ids) == common {
			start = 0 // of the common beginning
		}
		for i, id := range ids {
			b.Tokens, b.From = append(b.Tokens, id), append(b.From, -1)
			b.Positions = append(b.Positions, int32(start+i))
		}
		b.Start, b.Lengths = append(b.Start, int32(len(b.Tokens))), append(b.Lengths, int32(past[s].prompt))
		for g := range tables {
			first := p.Groups[g].FirstVisible(start) / size
			b.Tables[g].Add(first, tables[g][s][first:]...)
		}
		out := rng.Int32N(pages)
		for slices.Contains(slots[:], out) { // the others may still continue from it
			out = rng.Int32N(pages)
		}
		b.Tables[2].AddSlots(slots[s], out)
		slots[s] = out
	}
	empty := func() *plan.Batch {
		b := &plan.Batch{Start: []int32{0}, Tables: make([]plan.PageTable, 3)}
		for g := range b.Tables {
			b.Tables[g].Reset()
		}
		return b
	}
	b := empty()
	add(b, 0, ids...)
	run(b)
	slots[1], slots[2] = slots[0], slots[0]

	masks := map[int32][]uint32{1: {0xf0f0, 7}, 2: {0x0ff0, 0xff}}
	for id, words := range masks {
		if err := exe.SetMask(id, words); err != nil {
			t.Fatal(err)
		}
	}
	before := map[int]int32{} // rows of the previous step, by sequence
	var chosen [seqs]int32
	away := false
	for range 12 {
		b := empty()
		rows := map[int]int32{}
		var want []int32
		for _, s := range rng.Perm(seqs)[:1+rng.IntN(seqs)] {
			ids := []int32{rng.Int32N(vocab), rng.Int32N(vocab)}[:1+rng.IntN(2)]
			row, chained := before[s]
			if chained {
				ids[0] = 0 // does not run
			}
			add(b, s, ids...)
			if chained {
				b.From[len(b.From)-len(ids)], ids[0] = row, chosen[s]
			}
			for _, id := range ids {
				past[s].read(id)
			}
			if rng.IntN(3) > 0 {
				r := plan.Row{Token: int32(len(b.Tokens) - 1), Want: plan.WantToken, Sampling: sample.Params{Seed: rng.Uint64(), Frequency: 1}, Mask: 1 + rng.Int32N(2)}
				r.Adjustments = []sample.Adjustment{{Token: 5, Count: 3}, {Token: ids[len(ids)-1], Count: 9}}[:rng.IntN(2)]
				known := adjusted{}
				if len(r.Adjustments) > 0 {
					known[5].count = 3
				}
				if b.From[r.Token] >= 0 {
					known[chosen[s]].count++
				}
				rows[s] = int32(len(b.Rows))
				b.Rows = append(b.Rows, r)
				chosen[s], _, _ = choose(past[s].out, &r.Sampling, masks[r.Mask], &known)
				want = append(want, chosen[s])
			}
		}
		page := tables[0][0][0]
		if away = !away; away {
			b.States = []plan.StateOp{{Kind: plan.SavePage, Page: page, Host: host[bytes:]}}
		} else {
			clear(f.pools[0][int(page)*size:][:size])
			b.States = []plan.StateOp{{Kind: plan.RestorePage, Page: page, Host: host[bytes:]}}
		}
		if res := run(b); !slices.Equal(res.Tokens, want) {
			t.Errorf("%v, want %v", res.Tokens, want)
		}
		before = rows
	}
	if err := exe.FreeHost(host); err != nil {
		t.Error(err)
	}
}

// Each of these breaks a rule that the fake device checks.
func TestFakeDeviceTells(t *testing.T) {
	var told int
	m := &hashModel{windows: []int{0, recurrent}}
	p := m.program()
	for name, test := range map[string]func(b *plan.Batch, f *fake, host []byte){
		"two write one page": func(b *plan.Batch, _ *fake, _ []byte) { b.Tables[0].Pages[3] = 1 },
		"one reads what another writes": func(b *plan.Batch, _ *fake, _ []byte) {
			b.Tables[0].Pages[2], b.Positions[1] = 1, 5
		},
		"two write one slot":              func(b *plan.Batch, _ *fake, _ []byte) { b.Tables[1].Pages[3] = 1 },
		"one reads a slot another writes": func(b *plan.Batch, _ *fake, _ []byte) { b.Tables[1].Pages[2] = 1 },
		"a token of another position":     func(b *plan.Batch, _ *fake, _ []byte) { b.From = []int32{0, -1} },
		"a page never saved": func(b *plan.Batch, _ *fake, host []byte) {
			b.States = []plan.StateOp{{Kind: plan.RestorePage, Host: host}}
		},
		"memory of its own": func(b *plan.Batch, _ *fake, host []byte) {
			b.States = []plan.StateOp{{Kind: plan.SavePage, Host: make([]byte, len(host))}}
		},
		"memory given back": func(b *plan.Batch, f *fake, host []byte) {
			_ = f.FreeHost(host)
			b.States = []plan.StateOp{{Kind: plan.SavePage, Host: host}}
		},
		"a mask of a step under way": func(_ *plan.Batch, f *fake, _ []byte) { _ = f.SetMask(1, make([]uint32, 2)) },
		"a mask that is too short":   func(_ *plan.Batch, f *fake, _ []byte) { _ = f.SetMask(2, make([]uint32, 1)) },
		"a mask that was never set":  func(b *plan.Batch, _ *fake, _ []byte) { b.Rows[0].Mask = 2 },
		"more memory than there is":  func(_ *plan.Batch, f *fake, _ []byte) { _, _ = f.AllocHost(1) },
		"what Check finds":           func(_ *plan.Batch, f *fake, _ []byte) { f.verify = func() error { return errors.New("wrong") } },
	} {
		told = 0
		f := &fake{model: m, pause: func(int, <-chan struct{}) {}, rng: rand.New(rand.NewPCG(1, 1)), room: 32}
		f.broken = func(string, ...any) { told++ }
		exe, err := f.Compile(t.Context(), p, plan.Limits{Tokens: 8, Seqs: 2, Rows: 8, PageTokens: 4, Pages: []int{4, 4}, Masks: 3, Cache: tensor.F32}, nil)
		if err != nil {
			t.Fatal(err)
		}
		host, err := exe.AllocHost(32)
		if err != nil {
			t.Fatal(err)
		}
		if err := exe.SetMask(1, make([]uint32, 2)); err != nil {
			t.Fatal(err)
		}
		batch := func() *plan.Batch {
			return &plan.Batch{
				Tokens: []int32{1, 2}, Positions: []int32{5, 5}, Start: []int32{0, 1, 2}, Lengths: []int32{1, 1},
				Tables: []plan.PageTable{
					{Pages: []int32{0, 1, 0, 2}, Start: []int32{0, 2, 4}, First: []int32{0, 0}},
					{Pages: []int32{0, 1, 0, 2}, Start: []int32{0, 2, 4}, First: []int32{0, 0}},
				},
				Rows: []plan.Row{{Token: 0, Want: plan.WantToken, Mask: 1}},
			}
		}
		if _, err := exe.Submit(batch()); err != nil || told > 0 {
			t.Fatalf("%s: before it: %v, %d told", name, err, told)
		}
		b := batch()
		test(b, f, host)
		_, _ = exe.Submit(b)
		f.verify = nil
		if err := exe.Close(); err != nil {
			t.Error(err)
		}
		if told == 0 {
			t.Errorf("%s: nobody is told", name)
		}
	}
}
