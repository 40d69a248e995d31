package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/realizar/realizar/internal/backends/backendstest"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// carry imports the pages of an export of from into to. It returns the tokens exported and those
// that to had before.
func carry(ctx context.Context, from, to *engine.Engine, prompt []int32, salt string) (tokens, skipped int, err error) {
	x, err := from.Export(ctx, prompt, salt)
	if err != nil {
		return 0, 0, err
	}
	defer x.Release()
	err = to.Import(ctx, prompt, salt, x.Tokens(), func(ctx context.Context, skip int, in [][]byte) error {
		skipped = skip
		return x.Read(ctx, skip, func(_ context.Context, out [][]byte) error {
			if len(in) != len(out) {
				return errors.New("the engines differ in the pages")
			}
			for i := range in {
				if copy(in[i], out[i]) != len(in[i]) {
					return errors.New("the engines differ in the size of a page")
				}
			}
			return nil
		})
	})
	return x.Tokens(), skipped, err
}

var exportModels = map[string]func(*testing.T, func(*tensor.Tensor)) *plan.Program{
	"windows": plantest.Model, "recurrent": plantest.RecurrentModel, "states": plantest.StatesModel, "delta": plantest.DeltaModel,
	"latent": plantest.LatentModel, "sparse": plantest.SparseModel, "compressed": plantest.CompressedModel,
}

// Requests whose prompts one engine has run are answered by another one that has imported the
// pages, bit for bit as the model answers them alone.
func TestExportedAnswers(t *testing.T) {
	for name, model := range exportModels {
		for _, cache := range []tensor.DType{tensor.F32, tensor.F16, tensor.Q8_0} {
			if cache != tensor.F16 && name != "windows" && name != "latent" && name != "delta" {
				continue
			}
			t.Run(name+" "+cache.String(), func(t *testing.T) {
				p := model(t, nil)
				if p.MisfitHead(cache) > 0 {
					t.Skip("its heads have another width")
				}
				exportedAnswers(t, cpu.New(2), p, engine.Config{Context: 500, Parallel: 4, Cache: cache, Host: 64 << 20})
			})
		}
	}
}

func exportedAnswers(t *testing.T, b plan.Backend, p *plan.Program, c engine.Config) {
	o, prefill, decode := newOracle(t, b, p, c.Context+60, c), open(t, b, p, c), open(t, b, p, c)
	all := requests(rand.New(rand.NewPCG(3, 3)), 12, c.Context)
	var found, exported sync.Map
	var working sync.WaitGroup
	for worker := range 3 {
		working.Go(func() {
			for i := worker; i < len(all); i += 3 {
				r := all[i]
				r.Salt = string(rune('a' + i%4))
				if _, err := ask(t.Context(), prefill, &engine.Request{Prompt: r.Prompt, Tokens: 1, Salt: r.Salt}, nil); err != nil {
					t.Errorf("request %d: prefill: %v", i, err)
				}
				n, _, err := carry(t.Context(), prefill, decode, r.Prompt, r.Salt)
				if err != nil {
					t.Errorf("request %d: %v", i, err)
				}
				a, err := ask(t.Context(), decode, r, nil)
				if err == nil {
					err = o.differs(r, a)
				}
				if err != nil {
					t.Errorf("request %d: %v", i, err)
					continue
				}
				exported.Store(i, n)
				if found.Store(i, a.stats.Cached); len(r.Outputs) == 0 && a.stats.Cached < n {
					t.Errorf("request %d: %d tokens were imported and %d found", i, n, a.stats.Cached)
				}
			}
		})
	}
	working.Wait()
	sum := func(m *sync.Map) (n int) {
		m.Range(func(_, v any) bool { n += v.(int); return true })
		return n
	}
	if sum(&exported) < 500 || sum(&found) < 300 {
		t.Errorf("%d tokens were exported, and %d found", sum(&exported), sum(&found))
	}
	for _, e := range []*engine.Engine{prefill, decode} {
		for g, m := range e.Metrics().Groups {
			if m.Used != 0 {
				t.Errorf("group %d: %d pages are held", g, m.Used)
			}
		}
	}
}

// An export has only the pages that are missing, and finds nothing of another salt.
func TestExportOfMissingPages(t *testing.T) {
	p, b := plantest.LatentModel(t, nil), cpu.New(2)
	c := engine.Config{Context: 400, Parallel: 2, Cache: tensor.F16, Host: 64 << 20}
	prefill, decode := open(t, b, p, c), open(t, b, p, c)
	prompt := tokens(200, 7)
	run := func(e *engine.Engine, prompt []int32) {
		t.Helper()
		if _, err := ask(t.Context(), e, &engine.Request{Prompt: prompt, Tokens: 1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	run(prefill, prompt)
	run(decode, prompt[:100])
	for _, test := range []struct {
		salt          string
		tokens, skips int
	}{{"", 192, 96}, {"", 192, 192}, {"other", 0, 0}} {
		n, skipped, err := carry(t.Context(), prefill, decode, prompt, test.salt)
		if err != nil || n != test.tokens || skipped != test.skips {
			t.Errorf("salt %q: %d tokens, %d skipped: %v; want %d, %d", test.salt, n, skipped, err, test.tokens, test.skips)
		}
	}
}

// Exports and imports hold at most half of host memory and release what they hold, whatever ends
// them.
func TestExportsEnd(t *testing.T) {
	p, b := plantest.LatentModel(t, nil), cpu.New(2)
	c := engine.Config{Context: 800, Parallel: 2, Cache: tensor.F16, Host: 64 << 20}
	whole := open(t, b, p, c)
	size := c.Host / whole.Metrics().Groups[0].HostPages // at most, of a page
	c.Host = size * 12
	prefill, decode := open(t, b, p, c), open(t, b, p, c)
	prompt := tokens(170, 7)
	if _, err := ask(t.Context(), prefill, &engine.Request{Prompt: prompt, Tokens: 1}, nil); err != nil {
		t.Fatal(err)
	}
	x, err := prefill.Export(t.Context(), prompt, "")
	if err != nil || x.Tokens() != 160 {
		t.Fatalf("%v: %+v", err, x)
	}
	if x.Bytes() == 0 {
		t.Error("the pages have no bytes")
	}
	again, err := prefill.Export(t.Context(), prompt, "") // of the same pages
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(prefill.Check(), decode.Check()); err != nil {
		t.Error(err)
	}
	other := tokens(170, 11)
	if _, err := ask(t.Context(), prefill, &engine.Request{Prompt: other, Tokens: 1}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := prefill.Export(t.Context(), other, ""); !errors.Is(err, engine.ErrNoRoom) {
		t.Errorf("more than half is exported: %v", err)
	}
	read := func(context.Context, [][]byte) error { return nil }
	if err := x.Read(t.Context(), 0, func(_ context.Context, pages [][]byte) error {
		x.Release()
		x.Release()
		if err := prefill.Check(); err != nil {
			t.Error(err)
		}
		if len(pages) < 5 {
			t.Errorf("%d pages of 160 tokens", len(pages))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := x.Read(t.Context(), 0, read); err == nil {
		t.Error("a released export is read")
	}
	again.Release()
	x, err = prefill.Export(t.Context(), other, "")
	if err != nil {
		t.Fatal(err)
	}
	fails := errors.New("no")
	fill := func(context.Context, int, [][]byte) error { return fails }
	if err := decode.Import(t.Context(), other, "", 160, fill); !errors.Is(err, fails) {
		t.Errorf("a failed import: %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = decode.Import(t.Context(), other, "", 160, func(context.Context, int, [][]byte) error { panic("no") })
	}()
	for _, n := range []int{-32, 1, 192} {
		if err := decode.Import(t.Context(), other, "", n, fill); err == nil || errors.Is(err, fails) {
			t.Errorf("%d tokens are imported: %v", n, err)
		}
	}
	if err := decode.Import(t.Context(), tokens(400, 5), "", 384, fill); !errors.Is(err, engine.ErrNoRoom) {
		t.Errorf("more than half is imported: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = prefill.Export(gone, other, "")
	if err := errors.Join(err, decode.Import(gone, other, "", 160, fill), x.Read(gone, 0, read)); !errors.Is(err, context.Canceled) || errors.Is(err, fails) {
		t.Errorf("with a context that has ended: %v", err)
	}
	a, err := ask(t.Context(), decode, &engine.Request{Prompt: other, Tokens: 1}, nil)
	if err != nil || a.stats.Cached != 0 {
		t.Errorf("%v: %d tokens are found after imports that failed", err, a.stats.Cached)
	}
	x.Release()
}

// An engine that closes ends the calls that use its host memory, and waits for them.
func TestCloseWaitsForCopies(t *testing.T) {
	p, b := plantest.LatentModel(t, nil), cpu.New(2)
	e, err := engine.New(t.Context(), p, b, engine.Config{Context: 400, Parallel: 2, Cache: tensor.F16, Host: 64 << 20}, nil)
	if err != nil {
		t.Fatal(err)
	}
	prompt := tokens(200, 7)
	if _, err := ask(t.Context(), e, &engine.Request{Prompt: prompt, Tokens: 1}, nil); err != nil {
		t.Fatal(err)
	}
	x, err := e.Export(t.Context(), prompt, "")
	if err != nil {
		t.Fatal(err)
	}
	var working sync.WaitGroup
	begun := make(chan struct{}, 2)
	use := func(ctx context.Context, pages [][]byte) error {
		begun <- struct{}{}
		<-ctx.Done()
		for _, p := range pages {
			p[0]++ // the memory is still there
		}
		return context.Cause(ctx)
	}
	working.Go(func() {
		if err := x.Read(t.Context(), 0, use); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("a read ends with %v", err)
		}
	})
	working.Go(func() {
		err := e.Import(t.Context(), tokens(200, 9), "", 192, func(ctx context.Context, _ int, pages [][]byte) error { return use(ctx, pages) })
		if !errors.Is(err, engine.ErrClosed) {
			t.Errorf("an import ends with %v", err)
		}
	})
	<-begun
	<-begun
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	working.Wait()
	if err := x.Read(t.Context(), 0, use); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a read of a closed engine: %v", err)
	}
	x.Release()
	if _, err := e.Export(t.Context(), prompt, ""); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("an export of a closed engine: %v", err)
	}
}

// If the step that saves its pages fails, an export is an error and leaves nothing behind.
func TestExportFails(t *testing.T) {
	w := &refusing{Backend: cpu.New(2)}
	e := open(t, w, plantest.LatentModel(t, nil), engine.Config{Context: 400, Parallel: 2, Cache: tensor.F16, Host: 64 << 20})
	r := &engine.Request{Prompt: tokens(200, 7), Tokens: 3, Sampling: sample.Params{Temperature: 1, Seed: 1}}
	first, err := ask(t.Context(), e, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.err = errors.New("the device is busy")
	if _, err := e.Export(t.Context(), r.Prompt, ""); err == nil {
		t.Error("an export succeeds without a step")
	}
	w.err = nil
	if err := e.Check(); err != nil {
		t.Error(err)
	}
	x, err := e.Export(t.Context(), r.Prompt, "")
	if err != nil {
		t.Fatal(err)
	}
	x.Release()
	if a, err := ask(t.Context(), e, r, nil); err != nil || !slices.Equal(a.tokens[0], first.tokens[0]) {
		t.Errorf("%v: the answer has changed", err)
	}
}

// A refusing backend refuses steps while err is set. Only a test without other requests sets it.
type refusing struct {
	plan.Backend
	err error
}

func (r *refusing) Compile(ctx context.Context, p *plan.Program, l plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	exe, err := r.Backend.Compile(ctx, p, l, loaded)
	return backendstest.Failing(exe, func() error { return r.err }), err
}
