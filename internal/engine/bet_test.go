package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// A bettor is a device whose steps take as long as their tokens say, and proposals that are right
// with some probability and take their time, too.
type bettor struct {
	model *hashModel
	right float64
	cost  time.Duration // of a token that is prepared for all sequences; 0: nothing is prepared
	head  bool          // the model's head proposes, in steps that take cost

	always int // tokens of each draft; 0: as many as pay

	mu    sync.Mutex
	times []time.Duration // of the steps submitted
}

// A knower is a proposer that computes the answer.
type knower struct {
	b       *bettor
	request *engine.Request
	read    *reader
	ready   int // tokens after which it is prepared
	n       int // for so many
}

func (k *knower) Propose(tokens []int32, n int) (draft []int32, evidence int) {
	if k.b.cost > 0 && k.ready != len(tokens) {
		return nil, 0
	}
	if k.b.cost > 0 {
		n = min(n, k.n)
	}
	for i := len(k.read.terms[0]); i < len(tokens); i++ {
		k.read.read(tokens[i])
	}
	r := k.read.fork()
	for range n {
		id, _, _ := choose(r.out, &k.request.Sampling, nil, &adjusted{})
		r.read(id)
		if k.guess(len(tokens)+len(draft)) >= k.b.right {
			id = (id + 1) % vocab
		}
		draft = append(draft, id)
	}
	return draft, 0
}

// guess returns a number in [0, 1) for each position of each answer, so that the order in which
// answers ask has no influence.
func (k *knower) guess(at int) float64 {
	return rand.New(rand.NewPCG(k.request.Sampling.Seed, uint64(at))).Float64()
}

func (k *knower) End([]int32) {}

// A captured is a fake device that captures nothing.
type captured struct{ *fake }

func (c captured) Compile(ctx context.Context, p *plan.Program, l plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	_, err := c.fake.Compile(ctx, p, l, loaded)
	return c, err
}

func (captured) Setup() plan.Setup { return plan.Setup{} }

// run returns how long it takes to write so many answers at one time.
func (b *bettor) run(t *testing.T, seqs, tokens int, drafts bool) (took time.Duration) {
	c := engine.Config{Context: 20 + tokens, Parallel: seqs, Cache: tensor.F32, Drafts: engine.Drafts{Tokens: b.always, Always: b.always > 0}}
	if drafts && b.head {
		c.Drafts.Head = true
	} else if drafts {
		c.Drafts.New = func(r *engine.Request, _ int) engine.Proposer {
			return &knower{b: b, request: r, read: newReader(b.model, len(r.Prompt))}
		}
	}
	if drafts && b.cost > 0 && !b.head {
		c.Drafts.Prepare = func(asks []engine.Ask) {
			most := 0
			for _, a := range asks {
				k := a.Proposer.(*knower)
				k.ready, k.n, most = len(a.Tokens), a.N, max(most, a.N)
			}
			time.Sleep(time.Duration(most) * b.cost)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		f := &fake{model: b.model, broken: t.Errorf, rng: rand.New(rand.NewPCG(2, 2)), right: b.right}
		f.lose = func(batch *plan.Batch) bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			took := time.Millisecond + time.Duration(len(batch.Tokens))*20*time.Microsecond
			if batch.Head {
				took = b.cost
			}
			b.times = append(b.times, took)
			return false
		}
		f.pause = func(int, <-chan struct{}) {
			b.mu.Lock()
			took := b.times[0]
			b.times = b.times[1:]
			b.mu.Unlock()
			time.Sleep(took)
		}
		e, err := engine.New(t.Context(), b.model.program(), captured{f}, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		var all sync.WaitGroup
		rng := rand.New(rand.NewPCG(3, 3))
		for i := range seqs {
			r := &engine.Request{Prompt: ids(rng, 16), Tokens: tokens, Sampling: sample.Params{Temperature: 1, Seed: uint64(i)}, Salt: fmt.Sprint(i)}
			all.Go(func() {
				_, _ = e.Run(t.Context(), r, func(*engine.Result) (bool, error) { return true, nil }) // some are damaged
			})
		}
		all.Wait()
		took = time.Since(begun)
		if m := e.Metrics(); b.head && b.right == 1 && m.AcceptedTokens != m.DraftedTokens {
			t.Errorf("of %d tokens that a head proposed which is always right, %d were accepted", m.DraftedTokens, m.AcceptedTokens)
		}
		if m := e.Metrics(); b.always > 0 && m.DraftedTokens < uint64(b.always*tokens*9/10) {
			t.Errorf("%d tokens were proposed for an answer of %d, want %d in each step", m.DraftedTokens, tokens, b.always)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return took
}

// Drafts are made where they pay, and cost little where they do not.
func TestDraftsPay(t *testing.T) {
	const step = time.Millisecond
	type bet struct {
		seqs  int
		right float64
		cost  time.Duration
		least float64 // speed beside that without drafts
	}
	bets := []bet{
		{1, 0, 0, 0.97}, {64, 0, 0, 0.97}, {1, 0.7, 0, 1.5}, {1, 1, 0, 5},
		{1, 0, step / 8, 0.97}, {1, 0, step / 50, 0.97}, {64, 0, step / 8, 0.97}, {1, 1, step, 0.97}, {1, 0.8, step / 10, 1.8}, {1, 1, step / 10, 3}, {8, 0.9, step / 10, 1.5},
		{64, 0.8, 0, 0.97}, {16, 1, 0, 1.5}, {16, 0.7, 0, 1.05},
	}
	run := func(name string, test bet, head bool) {
		t.Run(fmt.Sprintf("%s%d/right %v/%v", name, test.seqs, test.right, test.cost), func(t *testing.T) {
			b := &bettor{model: &hashModel{windows: []int{0, 2}, head: head}, right: test.right, cost: test.cost, head: head}
			tokens := 1500
			if test.seqs > 1 {
				tokens = 400
			}
			plain, with := b.run(t, test.seqs, tokens, false), b.run(t, test.seqs, tokens, true)
			speed := plain.Seconds() / with.Seconds()
			t.Logf("%.3f times plain", speed)
			if speed < test.least {
				t.Errorf("answers come %.3f times as fast as without drafts; want at least %v", speed, test.least)
			}
		})
	}
	for _, test := range bets {
		run("", test, false)
		if test.cost > 0 {
			run("head/", test, true)
		}
	}
}

// Where drafts are always made, each step has one, even if none is ever right.
func TestDraftsAlways(t *testing.T) {
	for _, test := range []struct {
		name string
		cost time.Duration
		head bool
	}{{"free", 0, false}, {"prepared", time.Millisecond, false}, {"head", time.Millisecond, true}} {
		t.Run(test.name, func(t *testing.T) {
			b := &bettor{model: &hashModel{windows: []int{0, 2}, head: test.head}, cost: test.cost, head: test.head, always: 3}
			b.run(t, 1, 1000, true)
		})
	}
}
