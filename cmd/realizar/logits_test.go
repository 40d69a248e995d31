package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// readLogits reads the file that the command wrote: a tensor [ids, vocabulary].
func readLogits(t *testing.T, path string) (shape []int, values []float32) {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	x, ok := f.Tensor("logits")
	if !ok || len(f.Tensors()) != 1 || x.DType != tensor.F32 {
		t.Fatalf("the file holds %v, want one tensor called logits of F32", f.Tensors())
	}
	values, err = x.Float32s()
	if err != nil {
		t.Fatal(err)
	}
	return x.Shape, values
}

func TestLogits(t *testing.T) {
	ids := []int32{5, 71, 0, 271, 9, 9}
	for name, model := range map[string]string{"GGUF": modeltest.Llama(t, modeltest.DType(tensor.Q8_0)), "hub": modeltest.Hub(t)} {
		t.Run(name, func(t *testing.T) {
			m, err := realizar.Open(t.Context(), model, realizar.Options{Activations: realizar.ActivationsF32})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = m.Close() }()
			var want []float32
			if err := m.Logits(t.Context(), ids, 0, func(_ int, logits []float32) error {
				want = append(want, logits...)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for _, list := range []string{"5 71 0 271 9 9", "5,71,0,271,9,9\n", "[5, 71, 0,\n271,\t9 9]\n"} {
				out := filepath.Join(t.TempDir(), "logits.safetensors")
				if got := output(t, list, "logits", model, "--ids", "-", "--out", out, "--activations", "f32"); got != "" {
					t.Errorf("standard output is %q, want none", got)
				}
				shape, got := readLogits(t, out)
				if !cmp.Equal(shape, []int{len(ids), m.Vocab()}) || !cmp.Equal(got, want) {
					t.Errorf("%q: logits of shape %v differ from the library's, %d of them", list, shape, len(want))
				}
				out2 := filepath.Join(t.TempDir(), "logits.safetensors")
				output(t, "", "logits", model, "--ids", writeFile(t, "ids", list), "--out", out2, "--activations", "f32", "--threads", "1")
				if _, got := readLogits(t, out2); !cmp.Equal(got, want) {
					t.Errorf("%q from a file: other logits", list)
				}
			}
		})
	}
}

func TestLogitsErrors(t *testing.T) {
	model := modeltest.Llama(t)
	for _, test := range []struct {
		list string
		says []string
	}{
		{"", []string{"no ids"}},
		{" \n", []string{"no ids"}},
		{"[]", []string{"no ids"}},
		{"1 2 three", []string{`"three"`, "index 2"}},
		{"1, -2", []string{`"-2"`, "index 1"}},
		{"1, 2.5", []string{`"2.5"`, "index 1"}},
		{"99999999999", []string{"99999999999", "index 0"}},
		{"1 2 272", []string{"272", "index 2", "vocabulary of 272"}},
		{"[1, 2", []string{"]"}},
		{strings.Repeat("1 ", 257), []string{"257", "256"}},
	} {
		t.Run(test.list[:min(len(test.list), 20)], func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "logits.safetensors")
			fails(t, realizarIn(t, test.list, "logits", model, "--ids", "-", "--out", out), 1, test.says...)
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%v is left behind", left)
			}
		})
	}
	fails(t, realizarIn(t, "1", "logits", model, "--ids", "absent", "--out", filepath.Join(t.TempDir(), "o")), 1, "absent")
	fails(t, realizarIn(t, "1", "logits", model, "--ids", "-", "--out", t.TempDir()), 1, "folder")
	fails(t, realizarIn(t, "1", "logits", model, "--ids", "-", "--out="), 1, "--out", "empty")
}

// TestLogitsNowhere checks that an output that cannot be written is reported before the model is
// opened, by the given name.
func TestLogitsNowhere(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "no")
	file := writeFile(t, "file", "")
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		folder string
		says   []string
	}{
		"absent":   {absent, []string{"there is no folder " + absent + ";", "create it"}},
		"a file":   {file, []string{"in the folder " + file + ":", "name a file in a folder that you can write to"}},
		"unwanted": {closed, []string{"in the folder " + closed + ":", "denied", "name a file in a folder that you can write to"}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.folder == closed {
				probe := filepath.Join(closed, "probe")
				if err := os.WriteFile(probe, nil, 0o600); err == nil {
					_ = os.Remove(probe)
					t.Skip("this user may write to any folder")
				}
			}
			out := filepath.Join(test.folder, "x.safetensors")
			r := realizarIn(t, "1", "logits", "absent.gguf", "--ids", "-", "--out", out)
			fails(t, r, 1, append(test.says, "--out: "+out+" ")...)
			for _, not := range []string{"absent.gguf", "partial"} {
				if strings.Contains(r.stderr, not) {
					t.Errorf("standard error %q speaks of %s", r.stderr, not)
				}
			}
		})
	}
	// If the model is missing, nothing is left behind either.
	dir := t.TempDir()
	fails(t, realizarIn(t, "1", "logits", "absent.gguf", "--ids", "-", "--out", filepath.Join(dir, "o")), 1, "absent.gguf")
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left behind (%v)", left, err)
	}
}

// TestLogitsKeepsTheOld checks that an existing file stays until the new one is complete.
func TestLogitsKeepsTheOld(t *testing.T) {
	out := writeFile(t, "logits.safetensors", "old")
	fails(t, realizarIn(t, "1 2", "logits", modeltest.Llama(t, modeltest.Overflow("output_norm.weight")), "--ids", "-", "--out", out), 1, "not finite")
	if data, err := os.ReadFile(out); err != nil || string(data) != "old" {
		t.Errorf("after a failure the file holds %q (%v), want what was there", data, err)
	}
	output(t, "1 2", "logits", modeltest.Llama(t), "--ids", "-", "--out", out)
	if shape, _ := readLogits(t, out); !cmp.Equal(shape, []int{2, 272}) {
		t.Errorf("shape %v, want [2 272]", shape)
	}
}
