package cuda

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

const tunedDevice = "GPU of tests"

// writeTable writes a table of the fake device's kernels with choices for products, and returns its
// folder.
func writeTable(t *testing.T, products ...lower.ProductTimes) string {
	t.Helper()
	b, _ := openFake(t, tunedOptions(), Options{Tables: t.TempDir()})
	if _, err := b.addToTable(products); err != nil {
		t.Fatal(err)
	}
	return b.tables
}

func tunedOptions() drivertest.Options {
	return drivertest.Options{Devices: []drivertest.Device{{Name: tunedDevice, Memory: 1 << 30}}}
}

func choices(p lower.Product, all ...lower.ChoiceTime) lower.ProductTimes {
	return lower.NewProductTimes(p, all)
}

func choice(input int, kernel string, cluster int) lower.ChoiceTime {
	c := lower.Choice{Kernel: kernel}
	if cluster > 0 {
		c.Cluster = lower.Cluster{Split: cluster, Parts: 1}
	}
	return lower.ChoiceTime{Input: input, Choice: c}
}

// decoderProducts returns the products of decoder without the head. The down product is like that of
// attention's output.
func decoderProducts(d tensor.DType) (qkv, o, gated lower.Product) {
	return lower.Product{Format: d, Rows: 512, Cols: 256}, lower.Product{Format: d, Rows: 256, Cols: 256}, lower.Product{Format: d, Gated: true, Rows: 256, Cols: 256}
}

// A table's entry decides which kernel is launched, in clusters of which size. Where there is none,
// and on a device with other kernels, the estimate decides.
func TestTableChoosesKernels(t *testing.T) {
	qkv, _, gated := decoderProducts(tensor.Q4_K)
	folder := writeTable(t,
		choices(qkv, choice(1, "wide_16", 8), choice(8, "wide_32", 2), choice(16, "linear_8", 0)),
		choices(gated, choice(1, "gated_8", 0), choice(8, "wide_gated_64", 4)),
	)
	type launched struct {
		kernel  string
		cluster int
	}
	for _, test := range []struct {
		what    string
		options Options
		tokens  int
		qkv     launched
		gated   launched
	}{
		// A single row is normalized by the product, which only its own kernel does.
		{"one row", Options{Tables: folder}, 1, launched{"linear_1", 0}, launched{"gated_1", 0}},
		{"8 rows", Options{Tables: folder}, 8, launched{"wide_32", 2}, launched{"wide_gated_64", 4}},
		{"6 rows, as 8", Options{Tables: folder}, 6, launched{"wide_32", 2}, launched{"wide_gated_64", 4}},
		{"16 rows, of which one has an entry", Options{Tables: folder}, 16, launched{"linear_8", 0}, launched{"wide_gated_16", 8}},
		{"8 rows without a table", Options{}, 8, launched{"linear_8", 0}, launched{"gated_8", 0}},
		{"16 rows without a table", Options{}, 16, launched{"wide_16", 8}, launched{"wide_gated_16", 8}},
		{"kernels for 8.0", Options{Tables: folder, Base: true}, 8, launched{"linear_8", 0}, launched{"gated_8", 0}},
	} {
		for _, eager := range []bool{false, true} {
			test.options.Eager = eager
			b, f := openFake(t, tunedOptions(), test.options)
			p := decoder(t, tensor.Q4_K)
			e := compiled(t, b, p, limitsFor(p, 16, 2))
			before := len(f.Launches())
			if err := run(e, batchOf(p, 1, 0, test.tokens)); err != nil {
				t.Fatal(err)
			}
			var got []launched
			for _, l := range f.Launches()[before:] {
				if strings.HasPrefix(l.Kernel, "linear_") || strings.HasPrefix(l.Kernel, "gated_") || strings.HasPrefix(l.Kernel, "wide_") {
					got = append(got, launched{l.Kernel, l.Cluster.X})
				}
			}
			if len(got) != 5 || got[0] != test.qkv || got[2] != test.gated {
				t.Errorf("%s: the products are %v, want first %v and third %v", test.what, got, test.qkv, test.gated)
			}
			if len(f.Misfits()) > 0 {
				t.Errorf("%s: arguments of %v", test.what, f.Misfits())
			}
		}
	}
}

// A product whose input is not a norm's takes the table's choice for a single row, too.
func TestTableChoosesForOneRow(t *testing.T) {
	_, o, _ := decoderProducts(tensor.BF16)
	b, f := openFake(t, tunedOptions(), Options{Eager: true, Tables: writeTable(t, choices(o, choice(1, "wide_16", 4)))})
	p := decoder(t, tensor.BF16)
	e := compiled(t, b, p, limitsFor(p, 8, 2))
	before := len(f.Launches())
	if err := run(e, batchOf(p, 1, 0, 1)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, l := range f.Launches()[before:] {
		if l.Kernel == "wide_16" && l.Cluster.X == 4 {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d launches of wide_16, want those of attention's output and of the down product", n)
	}
}

// A table that is damaged changes nothing but the description.
func TestDamagedTable(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, lower.TableName(tunedDevice))
	if err := os.WriteFile(path, []byte(`{"device": "`+tunedDevice+`", "kernels": 7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b, _ := openFake(t, tunedOptions(), Options{Tables: folder})
	if text, err := b.Tuning(); text != "" || err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "kernels") {
		t.Errorf("the table is %q, %v", text, err)
	}
	p := decoder(t, tensor.F16)
	if err := run(compiled(t, b, p, limitsFor(p, 8, 2)), batchOf(p, 1, 0, 3)); err != nil {
		t.Error(err)
	}
}

// Kernels says for how many rows a kernel is chosen, and why.
func TestKernelsTellChoices(t *testing.T) {
	qkv, o, gated := decoderProducts(tensor.Q8_0)
	folder := writeTable(t, choices(qkv, choice(4, "wide_16", 8), choice(8, "wide_16", 8)), choices(o, choice(1, "linear_8", 0)), choices(gated, choice(32, "wide_gated_128", 1)))
	for _, test := range []struct {
		what    string
		options Options
		want    []string
	}{
		{"measured", Options{Tables: folder}, []string{
			"weights_q8_0 linear_1, linear_8 from 2 rows (estimated), wide_16 cluster 8x1 from 4 rows (measured), wide_16 cluster 8x1 from 16 rows (estimated), wide_32 cluster 8x1 from 32 rows (estimated)",
			"weights_q8_0 linear_8 (measured), linear_8 from 2 rows (estimated), wide_16 cluster 8x1 from 16 rows (estimated), wide_32 cluster 8x1 from 32 rows (estimated)",
			"weights_q8_0 gated_1, gated_8 from 2 rows (estimated), wide_gated_16 cluster 8x1 from 16 rows (estimated), wide_gated_128 cluster 1x1 from 32 rows (measured)",
		}},
		{"estimated", Options{}, []string{"weights_q8_0 linear_1 (estimated), linear_8 from 2 rows (estimated), wide_16 cluster 8x1 from 16 rows (estimated), wide_32 cluster 8x1 from 32 rows (estimated)"}},
		{"for 8.0", Options{Tables: folder, Base: true}, []string{"weights_q8_0 linear_1, linear_8 from 2 rows (estimated), linear_16 from 16 rows (estimated), linear_32 from 32 rows (estimated)"}},
	} {
		b, _ := openFake(t, tunedOptions(), test.options)
		p := decoder(t, tensor.Q8_0)
		lim := limitsFor(p, 32, 2)
		lim.Rows = 2
		lines := strings.Join(b.Kernels(p, lim), "\n") + "\n"
		for _, w := range test.want {
			if !strings.Contains(lines, w) {
				t.Errorf("%s: no %q in\n%s", test.what, w, lines)
			}
		}
		// No step has more than two rows of logits.
		if head := "weights_q8_0 linear_1 (estimated), linear_8 from 2 rows (estimated)\n"; strings.Count(lines, head) != 1 {
			t.Errorf("%s: no line of the head in\n%s", test.what, lines)
		}
	}
}

// Tune measures every product of a program with every number of rows, and writes a table that later
// backends use. On a device whose kernels all take the same time, these are the estimates.
func TestTuneOnFake(t *testing.T) {
	if raceDetector {
		t.Skip("the launches are many, and the race detector makes them slow")
	}
	b, f := openFake(t, tunedOptions(), Options{Tables: filepath.Join(t.TempDir(), "a", "tune")})
	before := b.Memory()
	p := decoder(t, tensor.Q4_K)
	var done, all int
	path, err := b.Tune(t.Context(), []*plan.Program{p, decoder(t, tensor.Q4_K)}, func(d, a int, _ string) { done, all = d, a })
	if err != nil {
		t.Fatal(err)
	}
	if now := b.Memory(); now != before {
		t.Errorf("%d bytes free after the measurement, %d before", now.Free, before.Free)
	}
	if m := f.Misfits(); len(m) > 0 {
		t.Errorf("arguments of %v", m)
	}
	qkv, o, gated := decoderProducts(tensor.Q4_K)
	head := lower.Product{Format: tensor.Q4_K, Rows: decoderVocab, Cols: 256}
	table, err := lower.ReadTable(path, tunedDevice, b.Digest)
	if err != nil || table == nil || done != 4 || all != 4 || filepath.Base(path) != "gpu-of-tests.json" {
		t.Fatalf("%s: %v, %v, %d products of %d", path, table, err, done, all)
	}
	cases := table.Table()
	for _, of := range []lower.Product{qkv, o, gated, head} {
		most := tunedTokens
		if of == head {
			most = tunedRows
		}
		for input := 1; input <= most; input *= 2 {
			if _, ok := cases[lower.Case{Product: of, Input: input}]; !ok {
				t.Errorf("%v of %d rows is not in the table", of, input)
			}
			delete(cases, lower.Case{Product: of, Input: input})
		}
	}
	if len(cases) > 0 {
		t.Errorf("the table has also %v", cases)
	}
	later, _ := openFake(t, tunedOptions(), Options{Tables: b.tables})
	if text, err := later.Tuning(); err != nil || !strings.HasPrefix(text, "4 products, measured on 20") {
		t.Errorf("the table is %q, %v", text, err)
	}
	measured := later.Kernels(p, limitsFor(p, 64, 2))
	for i, l := range b.Kernels(p, limitsFor(p, 64, 2)) {
		if got := strings.ReplaceAll(measured[i], "(measured)", "(estimated)"); got != l {
			t.Errorf("of equal times, %s is chosen, want %s", got, l)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// Tune fails without leaving anything if there is no folder, no product with a choice, no room, or
// an interrupt.
func TestTuneFails(t *testing.T) {
	floats := program(t, func(b *plan.Builder) {
		x := b.Pick(b.Embed(plantest.Weight(newRand(), "embed", tensor.F32, 1, 32, 64)))
		b.Output(x, b.Linear(x, plantest.Weight(newRand(), "head", tensor.F32, 1, 32, 64), nil))
	})
	ended, end := context.WithCancel(t.Context())
	end()
	quantized := decoder(t, tensor.Q8_0)
	for _, test := range []struct {
		what   string
		ctx    context.Context
		memory int
		folder string
		p      *plan.Program
		is     error
		says   string
	}{
		{"no folder", t.Context(), 1 << 30, "", quantized, nil, "REALIZAR_HOME"},
		{"floats alone", t.Context(), 1 << 30, t.TempDir(), floats, nil, "nothing to measure"},
		{"no room", t.Context(), 1 << 20, t.TempDir(), quantized, nil, "bytes of the GPU's memory"},
		{"an interrupt", ended, 1 << 30, t.TempDir(), quantized, context.Canceled, "Q8_0"},
	} {
		b, _ := openFake(t, drivertest.Options{Devices: []drivertest.Device{{Name: tunedDevice, Memory: test.memory}}}, Options{Tables: test.folder})
		before := b.Memory()
		path, err := b.Tune(test.ctx, []*plan.Program{test.p}, func(int, int, string) {})
		if path != "" || err == nil || !strings.Contains(err.Error(), test.says) || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%s: %q, %v", test.what, path, err)
		}
		if now := b.Memory(); now != before {
			t.Errorf("%s: %d bytes free afterwards, %d before", test.what, now.Free, before.Free)
		}
		if test.folder == "" {
			continue
		}
		if entries, err := os.ReadDir(test.folder); err != nil || len(entries) > 0 {
			t.Errorf("%s: the folder has %v, %v", test.what, entries, err)
		}
	}
}

// A driver's failure at any call ends a measurement, which frees all that it took.
func TestTuneFaults(t *testing.T) {
	for _, call := range []string{"cuMemAlloc", "cuStreamCreate", "cuEventCreate", "cuMemcpyDtoDAsync", "cuStreamBeginCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuEventElapsedTime"} {
		b, f := openFake(t, tunedOptions(), Options{Tables: t.TempDir()})
		calls := f.Calls(call)
		f.Fail(call, 2, driver.OutOfMemory)
		if _, err := b.Tune(t.Context(), []*plan.Program{decoder(t, tensor.Q8_0)}, func(int, int, string) {}); err == nil {
			t.Errorf("%s failed, and the measurement did not (%d calls)", call, f.Calls(call)-calls)
		}
		if left := strings.Split(f.Live(), ", "); slices.ContainsFunc(left, func(s string) bool { return !strings.HasSuffix(s, "context") && !strings.HasSuffix(s, "module") }) {
			t.Errorf("after a failure of %s, left are %s", call, f.Live())
		}
	}
}

// sameByChoice checks that products of format d have the same bits by every kernel that a table may
// choose. The numbers of weight rows are not those of whole tiles.
func sameByChoice(t *testing.T, b *Backend, d tensor.DType, inputs ...int) {
	t.Helper()
	const rows, cols, vocab = 200, 768, 31
	rng := newRand()
	table := plantest.Weight(rng, "table", tensor.F32, 1, vocab, cols)
	w, up := plantest.Weight(rng, "w", d, 0.5, rows, cols), plantest.Weight(rng, "up", d, 0.5, rows, cols)
	for _, gated := range []bool{false, true} {
		of := lower.Product{Format: d, Gated: gated, Rows: rows, Cols: cols}
		p := program(t, func(b *plan.Builder) {
			x := b.Embed(table)
			y := b.Linear(x, w, nil)
			if gated {
				y = b.GLU(y, b.Linear(x, up, nil), plan.GLUAttr{Act: plan.SiLU})
			}
			y = b.Pick(y)
			b.Output(y, y)
		})
		for _, input := range inputs {
			var want [][]float32
			for i, c := range lower.Candidates(b.Hopper(), lower.Case{Product: of, Input: input}) {
				b.tuning = &lower.TableFile{Products: []lower.ProductTimes{choices(of, lower.ChoiceTime{Input: input, Choice: c})}}
				if lines := strings.Join(b.Kernels(p, plantest.LimitsFor(p, input, 1, input, testPageTokens, plan.Limits{Activations: tensor.F16})), "\n"); !strings.Contains(lines, "(measured)") {
					t.Fatalf("%v of %d rows is not by the table's choice:\n%s", of, input, lines)
				}
				r, err := plantest.NewRunner(b, p, plantest.LimitsFor(p, input, 1, input, testPageTokens, plan.Limits{Cache: tensor.F16, Activations: tensor.F16}))
				if err != nil {
					t.Fatal(err)
				}
				var list []int32
				for i := range input {
					list = append(list, int32(i*7%vocab))
				}
				s := r.Add(list, input)
				if err := errors.Join(r.Run(), r.Exe.Close()); err != nil {
					t.Fatalf("%v of %d rows by %v: %v", of, input, c, err)
				}
				if i == 0 {
					want = s.Logits
				}
				for k := range want {
					if !slices.Equal(s.Logits[k], want[k]) {
						t.Errorf("%v of %d rows: row %d has other bits by %v", of, input, k, c)
						break
					}
				}
			}
		}
	}
	b.tuning = nil
}

// Kernels for 8.0 compute the same bits, if REALIZAR_EMULATED names a folder for compiled kernels.
func TestEmulatedChoices(t *testing.T) {
	if os.Getenv("REALIZAR_EMULATED") == "" {
		t.Skip("REALIZAR_EMULATED names no folder")
	}
	sameByChoice(t, openEmulated(t), tensor.Q4_K, 1, 4, 16, 32)
}

// Products of many rows on Hopper, in clusters of all sizes, have each other's bits and those of the
// kernel for eight: of weights that become operands, and of weights of which blocks share copies; of
// all formats if REALIZAR_EMULATED names a folder for compiled kernels.
func TestEmulatedWideProducts(t *testing.T) {
	b, _ := openEmulatedOf(t, driver.Capability{Major: 9}, "sample") // a token of each row would take most of the time
	formats := []tensor.DType{tensor.Q4_K, tensor.BF16}
	if os.Getenv("REALIZAR_EMULATED") != "" {
		formats = slices.DeleteFunc(slices.Clone(plantest.Dtypes), func(d tensor.DType) bool {
			return d == tensor.F32 || weights.LaidAs(d, &plan.Limits{Activations: tensor.F16}) != d // no choice, or that of another format
		})
	}
	for _, d := range formats {
		t.Run(d.String(), func(t *testing.T) { sameByChoice(t, b, d, 8, 128) })
	}
}
