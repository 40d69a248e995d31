package arch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// built returns a tiny's file and its program.
func built(t *testing.T, m tiny) (*modelfile.File, *arch.Model) {
	t.Helper()
	f, err := modelfile.Open(m.write(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	model, err := arch.Build(f)
	if err != nil {
		t.Fatal(err)
	}
	return f, model
}

// values returns the values of the program's weight or bias of that name.
func values(t *testing.T, p *plan.Program, name string) []float32 {
	t.Helper()
	for _, w := range p.Weights() {
		if w.Name == name {
			v, err := w.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("the program has no %s", name)
	return nil
}

// Queries, keys and values that a checkpoint stores by head are separated, rows and biases.
func TestGrouped(t *testing.T) {
	const dim = 8
	perHead := func(part int) func(head int) int { return func(h int) int { return 3*h + part } }
	for _, c := range []struct {
		name  string
		model tiny
		of    string
		parts map[string]func(head int) int // by row name: the file's block for each head
	}{
		{"heads of their own", goldenModel(t, "gptneox-hub"), "gpt_neox.layers.1.attention.query_key_value", map[string]func(int) int{
			"[0:32]": perHead(0), "[32:64]": perHead(1), "[64:96]": perHead(2),
		}},
		{"two heads to one", goldenModel(t, "falcon-hub-groups"), "transformer.h.1.self_attention.query_key_value", map[string]func(int) int{
			"[0:32]":  func(h int) int { return h/2*4 + h%2 },
			"[32:48]": func(h int) int { return h*4 + 2 },
			"[48:64]": func(h int) int { return h*4 + 3 },
		}},
		{"all heads to one", goldenModel(t, "falcon-hub"), "transformer.h.1.self_attention.query_key_value", map[string]func(int) int{
			"[0:32]": func(h int) int { return h }, "[32:40]": func(int) int { return 4 }, "[40:48]": func(int) int { return 5 },
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, model := built(t, c.model)
			for _, kind := range []string{".weight", ".bias"} {
				whole, ok := f.Tensor(c.of + kind)
				if !ok {
					continue
				}
				from, err := whole.Float32s()
				if err != nil {
					t.Fatal(err)
				}
				size := dim * len(from) / whole.Shape[0]
				for rows, block := range c.parts {
					got := values(t, model.Program, c.of+kind+rows)
					for h := range len(got) / size {
						want := from[block(h)*size:][:size]
						if fmt.Sprint(got[h*size:][:size]) != fmt.Sprint(want) {
							t.Errorf("%s%s%s: head %d is not block %d of the file", c.of, kind, rows, h, block(h))
						}
					}
				}
			}
		})
	}
}

// A weight stored as [in, out] becomes [out, in].
func TestTransposed(t *testing.T) {
	f, model := built(t, goldenModel(t, "gpt2-hub"))
	for _, c := range []struct{ name, rows string }{{"attn.c_attn", "[32:64]"}, {"attn.c_proj", ""}, {"mlp.c_fc", ""}, {"mlp.c_proj", ""}} {
		name := "transformer.h.1." + c.name + ".weight"
		kept, ok := f.Tensor(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		from, err := kept.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		first := 0
		if c.rows != "" {
			first = 32
		}
		got, in := values(t, model.Program, name+c.rows), kept.Shape[0]
		for i, v := range got {
			if want := from[i%in*kept.Shape[1]+first+i/in]; v != want {
				t.Fatalf("%s: row %d, column %d is %v, want %v", name, i/in, i%in, v, want)
			}
		}
	}
}

// Any range of rows equals that of the whole tensor.
func TestRowsOfLayouts(t *testing.T) {
	for _, m := range []tiny{goldenModel(t, "gpt2-hub"), goldenModel(t, "gptneox-hub"), goldenModel(t, "falcon-hub-groups")} {
		_, model := built(t, m)
		derived := 0
		for _, w := range model.Program.Weights() {
			if w.Source == nil {
				continue
			}
			derived++
			n := w.RowBytes()
			whole := make([]byte, w.Size())
			if err := w.ReadRows(whole, 0, w.Rows()); err != nil {
				t.Fatal(err)
			}
			for _, span := range [][2]int{{0, 1}, {3, 4}, {3, 13}, {7, 8}, {7, 9}, {8, 16}, {w.Rows() - 3, w.Rows()}} {
				got := make([]byte, (span[1]-span[0])*n)
				if err := w.ReadRows(got, span[0], span[1]); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, whole[span[0]*n:span[1]*n]) {
					t.Errorf("%s: rows %v are not those of the whole", w.Name, span)
				}
			}
		}
		if derived == 0 {
			t.Error("no weight is derived")
		}
	}
}

// The error of a number that is not finite names the file's own tensor.
func TestNotFiniteInLayouts(t *testing.T) {
	for _, c := range []struct {
		model tiny
		name  string
	}{{goldenModel(t, "gpt2-hub"), "transformer.h.1.attn.c_attn.weight"}, {goldenModel(t, "gptneox-hub"), "gpt_neox.layers.1.attention.query_key_value.weight"}} {
		t.Run(c.name, func(t *testing.T) {
			path := c.model.write(t)
			spoil(t, path, c.name, 777, float32(math.Inf(1)))
			f, err := modelfile.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			model, err := arch.Build(f)
			if err != nil {
				t.Fatal(err)
			}
			_, err = plantest.NewRunner(cpu.New(2), model.Program, plantest.LimitsFor(model.Program, 8, 1, 32, 4, plan.Limits{Cache: tensor.F32}))
			var number *tensor.NotFiniteError
			if !errors.As(err, &number) || number.Offset != 4*777 {
				t.Fatalf("error %v, want one of byte %d", err, 4*777)
			}
			if err := f.Locate(err); !strings.Contains(err.Error(), c.name) {
				t.Errorf("error %q does not name %s", err, c.name)
			}
		})
	}
}

// spoil overwrites an element of a tensor in a folder's file with v.
func spoil(t *testing.T, folder, name string, element int, v float32) {
	t.Helper()
	f, err := modelfile.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "model.safetensors")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w, ok := f.Tensor(name)
	if !ok {
		t.Fatalf("no %s", name)
	}
	at := bytes.Index(data, w.Data)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(data[at+4*element:], math.Float32bits(v))
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
