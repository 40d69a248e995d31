//go:build gpu

package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/cuda/measure"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// The kernel keep agrees with a keeper.
func TestGPUKeep(t *testing.T) {
	b := openGPU(t, Options{})
	rng := newRand()
	for _, c := range []struct{ experts, kept, used int }{{8, 0, 2}, {8, 3, 2}, {8, 7, 2}, {64, 16, 8}, {128, 100, 4}, {2048, 700, 8}, {2048, 2047, 8}} {
		m := weights.CachedExperts{Experts: c.experts, Kept: c.kept, First: 5, Bytes: 1000}
		k := &keeper{first: 5, shared: 9000}
		all := device.Words[int32](m.Table(c.kept))
		k.table, k.heat, k.holders = all[:c.experts], all[c.experts:2*c.experts], all[2*c.experts:]
		err := b.Main.Do(func() (err error) {
			f, err := b.Function("expertcache", "keep")
			if err != nil {
				return err
			}
			s, err := b.Main.NewStream()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Destroy()) }()
			n := c.experts
			tables, actives, count, lost, uses := 0, weights.Align(m.TableBytes()), 0, 0, 0
			count = actives + weights.Align(lower.ActiveBytes*n)
			lost = count + 256
			uses = lost + weights.Align(lower.MissingBytes*n) + 256
			at, err := b.Main.Alloc(uses + 256)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, b.Main.Free(at)) }()
			to := func(offset int) driver.DevicePtr { return at + driver.DevicePtr(offset) }
			if err := errors.Join(b.Main.Memset8(at, 0, uses+256), b.Main.CopyToDevice(at, m.Table(c.kept))); err != nil {
				return err
			}
			for step := range 40 {
				list := choose(rng, n, c.used, 1+rng.IntN(1<<(step%8)))
				in := make([]byte, lower.ActiveBytes*len(list))
				copy(device.Words[active](in), list)
				number := make([]byte, 4)
				device.Words[int32](number)[0] = int32(len(list))
				a := lower.KeepArgs{
					Active: to(actives), Count: to(count), Table: to(tables), Heat: to(tables + 4*n), Holders: to(tables + 8*n),
					Experts: int32(n), Kept: int32(c.kept), First: k.first, Shared: k.shared,
					Missing: to(lost), Missed: to(uses - 256), Uses: to(uses), Bytes: int64(m.Bytes),
				}
				if err := errors.Join(b.Main.CopyToDevice(a.Active, in), b.Main.CopyToDevice(a.Count, number),
					f.Launch(s, driver.LaunchConfig{Grid: driver.Dim3{X: 1}, Block: driver.Dim3{X: 256}}, device.Arguments(&a)), s.Synchronize()); err != nil {
					return err
				}
				want := k.keep(list)
				got, table, fetched, missed, counts := make([]byte, len(in)), make([]byte, m.TableBytes()), make([]byte, lower.MissingBytes*len(want)), make([]byte, 4), make([]byte, lower.UsesBytes)
				if err := errors.Join(b.Main.CopyToHost(got, a.Active), b.Main.CopyToHost(table, a.Table), b.Main.CopyToHost(fetched, a.Missing),
					b.Main.CopyToHost(missed, a.Missed), b.Main.CopyToHost(counts, a.Uses)); err != nil {
					return err
				}
				if !slices.Equal(device.Words[active](got), list) || !slices.Equal(device.Words[int32](table), all) || !slices.Equal(device.Words[missing](fetched), want) || int(device.Words[int32](missed)[0]) != len(want) ||
					device.Words[expertUse](counts)[0] != (expertUse{k.chosen, k.missing, 1000 * k.missing}) {
					return fmt.Errorf("%+v: step %d is not the keeper's: %v, want %v", c, step, device.Words[missing](fetched), want)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestGPUFetchRate logs how fast blocks fetch experts, compared with the link.
func TestGPUFetchRate(t *testing.T) {
	const experts, bytes = 16, 6 << 20
	b := openGPU(t, Options{})
	link, err := b.Link(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("link %.1f GB/s\n", link/1e9)
	err = b.Main.Do(func() (err error) {
		c := b.Main
		f, err := b.Function("expertcache", "fetch")
		if err != nil {
			return err
		}
		host, err := c.AllocHost(experts * bytes)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.FreeHost(host)) }()
		for i := range host {
			host[i] = byte(i ^ i>>8 ^ i>>17)
		}
		at, err := c.Alloc(experts*bytes + 256)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Free(at)) }()
		list := make([]byte, 4+lower.MissingBytes*experts)
		for i := range experts {
			device.Words[missing](list)[i] = missing{int32(i), int32(experts - 1 - i)}
		}
		number := make([]byte, 4)
		lists, err := c.Alloc(1024)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Free(lists)) }()
		if err := c.CopyToDevice(lists, list); err != nil {
			return err
		}
		for _, n := range []int{1, 4, experts} {
			device.Words[int32](number)[0] = int32(n)
			if err := c.CopyToDevice(lists+512, number); err != nil {
				return err
			}
			fmt.Printf("%2d experts of %d MiB:", n, bytes>>20)
			for _, blocks := range []int{8, 16, 32, 64, 132, 264} {
				if err := c.Memset8(at, 0, experts*bytes); err != nil {
					return err
				}
				a := lower.FetchArgs{Missing: lists, Missed: lists + 512, Images: c.Reach(host), Places: at, Bytes: bytes, Apart: bytes}
				rate, err := measure.Fastest(context.Background(), b.Main, n*bytes, 5, func(s *driver.Stream) error {
					return f.Launch(s, driver.LaunchConfig{Grid: driver.Dim3{X: blocks}, Block: driver.Dim3{X: 256}}, device.Arguments(&a))
				})
				if err != nil {
					return err
				}
				fmt.Printf("  %d blocks %.1f GB/s", blocks, rate/1e9)
			}
			fmt.Println()
			got := make([]byte, bytes)
			for i := range n {
				if err := c.CopyToHost(got, at+driver.DevicePtr((experts-1-i)*bytes)); err != nil {
					return err
				}
				if !slices.Equal(got, host[i*bytes:][:bytes]) {
					t.Errorf("expert %d of %d came otherwise", i, n)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fed returns the logits of sequences: of one, first its prompt in one step and then token by
// token, and of several at the same time.
func fed(t *testing.T, b plan.Backend, p *plan.Program, lim plan.Limits, seqs int) (all [][]float32) {
	t.Helper()
	r, err := plantest.NewRunner(b, p, lim)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Exe.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, group := range [][2]int{{1, 1}, {1, 7}, {seqs, 1}, {1, 40}, {seqs, 9}} {
		var some []*plantest.Seq
		for q := range group[0] {
			var ids []int32
			for i := range 48 {
				ids = append(ids, int32((i*i*7+i*5+q*13)%p.Vocab))
			}
			some = append(some, r.Add(ids, group[1]))
		}
		for more := true; more; {
			if more, err = r.Step(); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range some {
			all = append(all, s.Logits...)
			r.Drop(s)
		}
	}
	if e := r.Exe.(*executable); e.weights.Experts != nil && e.expertUse().Fetched == 0 {
		t.Error("nothing was fetched")
	}
	return all
}

// However many of a program's experts stay on the device, its bits are the same, in every format
// and kind of product.
func TestGPUCachedFormats(t *testing.T) {
	graphs := openGPU(t, Options{})
	const seqs = 5
	check := func(name string, b *Backend, p *plan.Program, activations tensor.DType) {
		t.Helper()
		lim := plantest.LimitsFor(p, 64, seqs, testContext, testPageTokens, plan.Limits{Cache: tensor.F32, Activations: activations, Pinned: 1 << 30})
		all := b.Weights(p, lim)
		want := fed(t, b, p, lim, seqs)
		for _, share := range []float64{0, 0.5, 0.97} {
			lim.Weights = max(1, int(share*float64(all)))
			if s := b.Streaming(p, lim); s.Experts.Layers == 0 {
				t.Errorf("%s: %.2f of the memory: no cache: %+v", name, share, s)
			}
			sameLogits(t, fmt.Sprintf("%s, %.2f of the memory", name, share), fed(t, b, p, lim, seqs), want)
		}
	}
	begun := time.Now()
	for _, d := range plantest.Dtypes {
		check(fmt.Sprintf("%v, activations F32", d), graphs, mixed(t, d, true, 4), tensor.F32)
		for _, joined := range []bool{true, false} {
			check(fmt.Sprintf("%v, joined %v", d, joined), graphs, mixed(t, d, joined, 4), tensor.F16)
		}
	}
	fmt.Printf("formats: %.1f s\n", time.Since(begun).Seconds())
	for name, b := range map[string]*Backend{"graphs": graphs, "eager": openGPU(t, Options{Eager: true}), "base": openGPU(t, Options{Base: true})} {
		check("a model, "+name, b, plantest.MoEModel(t, nil), tensor.F16)
	}
}

// The models in MODELS have the same bits with some of their experts on the device. The test logs
// the rates, which the link bounds.
func TestGPUCachedModels(t *testing.T) {
	const prompt, last, several, steps = 300, 6, 8, 128
	eachModel(t, func(t *testing.T, p *plan.Program) {
		b := openGPU(t, Options{})
		link, err := b.Link(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		lim := plan.Limits{Tokens: 512, Seqs: 16, Rows: 16, PageTokens: gpuPageTokens, Cache: tensor.F16, Activations: tensor.F16, Pinned: 1 << 40}
		for range p.Groups {
			lim.Pages = append(lim.Pages, gpuSequences*gpuContext/gpuPageTokens)
		}
		all := b.Weights(p, lim)
		fmt.Printf("  %.2f GB of weights, link %.1f GB/s\n", float64(all)/1e9, link/1e9)
		var want [3][][]float32
		var alone [3]time.Duration // time of a step with all weights resident, by kind
		for _, share := range []float64{1, 1.0 / 2, 1.0 / 3, 0.2} {
			t.Run(fmt.Sprintf("%.2f", share), func(t *testing.T) {
				if lim.Weights = int(share * float64(all)); share == 1 {
					lim.Weights = 0
				}
				s := b.Streaming(p, lim)
				x := s.Experts
				fmt.Printf("  %.2f: %d of %d experts kept of %d mixtures, %d places shared of %.2f MB, %d layers stream, pinned %.2f GB, on the device %.2f GB\n",
					share, x.Kept, x.Of, x.Layers, x.Shared, float64(x.Bytes)/1e6, len(s.Layers), float64(s.Pinned)/1e9, float64(s.Device())/1e9)
				r := &reader{t, p, compiled(t, b, p, lim)}
				e := r.x.(*executable)
				whole := r.textOf(0, prompt+last)
				var others []*text
				for i := range several - 1 {
					o := r.textOf(i+1, gpuContext)
					r.feed(portion{o, 40 + i, 0})
					others = append(others, o)
				}
				got := [3][][]float32{r.read(whole, prompt, last), r.read(whole, 64, last), r.read(whole, prompt, last, others...)}
				for i, what := range []string{"a prompt", "a prompt in chunks", "a prompt among others"} {
					if share == 1 {
						want[i] = got[i]
					} else {
						sameLogits(t, what, got[i], want[i])
					}
				}
				for kind, what := range []string{"one sequence", "eight sequences", "a prompt of 300"} {
					n, count := 1, steps
					switch kind {
					case 1:
						n = several
					case 2:
						count = 4
					}
					var texts []*text
					for i := range n {
						o := r.textOf(20+i, gpuContext)
						r.feed(portion{o, 16, 0})
						texts = append(texts, o)
					}
					step := func() {
						if kind == 2 {
							o := r.textOf(40, prompt)
							r.feed(portion{o, prompt, plan.WantToken})
							return
						}
						var portions []portion
						for _, o := range texts {
							portions = append(portions, portion{o, 1, plan.WantToken})
						}
						r.feed(portions...)
					}
					for range max(2, count/4) {
						step()
					}
					before, begun := e.expertUse(), time.Now()
					for range count {
						step()
					}
					took, use := time.Since(begun)/time.Duration(count), e.expertUse()
					if share == 1 {
						alone[kind] = took
					}
					chosen, fetched, bytes := use.Chosen-before.Chosen, use.Fetched-before.Fetched, float64(use.Bytes-before.Bytes)/float64(count)
					expected := alone[kind] + time.Duration(bytes/link*1e9)
					fmt.Printf("    %-16s %9.1f us a step (resident and link: %9.1f), of chosen experts fetched %5.1f%%, %8.2f MB a step, %5.1f%% of the link\n",
						what, took.Seconds()*1e6, expected.Seconds()*1e6, 100*float64(fetched)/float64(max(1, chosen)), bytes/1e6, 100*bytes/took.Seconds()/link)
				}
			})
		}
	})
}
