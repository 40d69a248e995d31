//go:build unix

package realizar_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// cutShort checks that err reports a file that was truncated to the given size.
func cutShort(t *testing.T, what string, err error, path string, left int64) {
	t.Helper()
	var e *modelfile.FormatError
	switch {
	case !errors.Is(err, modelfile.ErrFormat) || !errors.As(err, &e):
		t.Errorf("%s: %v", what, err)
	case e.File != path || e.Tensor == "" || e.Offset < left || !strings.Contains(err.Error(), fmt.Sprintf("to %d; put the whole file back", left)):
		t.Errorf("%s: %v, want %s from byte %d on", what, err, path, left)
	}
}

// works checks that a model answers.
func works(t *testing.T) {
	t.Helper()
	m, err := realizar.Open(t.Context(), modeltest.Llama(t), realizar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	generate(t, m, realizar.Request{Prompt: "hello", Generation: limit(3)})
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// inTable returns the offset of the middle of the embedding table in a model's file. The table
// comes before all other weights.
func inTable(t *testing.T, path string) int64 {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := f.Tensors()
	if all[0].Name != "token_embd.weight" {
		t.Fatalf("the first tensor is %s", all[0].Name)
	}
	left := f.Size()
	for _, x := range all {
		left -= int64(len(x.Data))
	}
	return left + int64(len(all[0].Data))/2
}

// A file that is truncated while it loads is an error that says where, for weights that are
// repacked and for weights that stay in the file.
func TestCutShortWhileLoading(t *testing.T) {
	modeltest.NeedsFaults(t)
	for _, d := range []tensor.DType{tensor.F32, tensor.Q8_0} {
		for _, threads := range []int{1, 3} {
			path := modeltest.Llama(t, modeltest.DType(d))
			left := inTable(t, path)
			_, err := realizar.Open(t.Context(), path, realizar.Options{Device: "cpu", Threads: threads, Progress: func(realizar.Progress) {
				if err := os.Truncate(path, left); err != nil {
					t.Error(err)
				}
			}})
			cutShort(t, fmt.Sprintf("%v, %d threads", d, threads), err, path, left)
			works(t)
		}
	}
}

// If a file is truncated after the model was loaded, requests of all kinds that need the missing
// weights fail, and no others. The model can still be closed.
func TestCutShortInSteps(t *testing.T) {
	modeltest.NeedsFaults(t)
	for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.Q8_0} {
		for _, threads := range []int{1, 3} {
			path := modeltest.Llama(t, modeltest.DType(d))
			left := inTable(t, path)
			o := realizar.Options{Device: "cpu", Threads: threads}
			if d != tensor.Q8_0 {
				o.Activations = realizar.ActivationsF32 // steps read all weights from the file
			}
			m, err := realizar.Open(t.Context(), path, o)
			if err != nil {
				t.Fatal(err)
			}
			first, last := []int32{1, 2, 3}, []int32{1, int32(m.Vocab() - 1)} // rows of the embedding table
			requests := func(ids []int32) map[string]error {
				_, generated := collect(m.Generate(t.Context(), &realizar.Request{PromptTokens: ids, Generation: limit(1)}))
				_, embedded := m.Embed(t.Context(), &realizar.EmbedRequest{Inputs: []realizar.EmbedInput{{Tokens: ids}}, Pooling: realizar.PoolingMean})
				return map[string]error{
					"Generate": generated, "Embed": embedded,
					"Logits": m.Logits(context.Background(), ids, 0, func(int, []float32) error { return nil }),
				}
			}
			for name, err := range requests(last) {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if err := os.Truncate(path, left); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				for name, err := range requests([]int32{2, last[1], 3}) { // last[1] is missing from the file
					cutShort(t, fmt.Sprintf("%s, %v, %d threads", name, d, threads), err, path, left)
				}
				for name, err := range requests(first) {
					if d == tensor.Q8_0 && err != nil {
						t.Errorf("%s of what is still there: %v", name, err)
					}
				}
			}
			works(t)
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Open reports a weight that is not finite with the file, the tensor and the offset.
func TestDamagedWeights(t *testing.T) {
	for _, name := range []string{"token_embd.weight", "blk.0.attn_norm.weight", "blk.1.ffn_down.weight", "output_norm.weight", "output.weight"} {
		for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0} {
			path := modeltest.Llama(t, modeltest.DType(d), modeltest.NotFinite(name))
			_, err := realizar.Open(t.Context(), path, realizar.Options{Device: "cpu"})
			var e *modelfile.FormatError
			if !errors.Is(err, modelfile.ErrFormat) || !errors.As(err, &e) {
				t.Errorf("%s in %v: %v", name, d, err)
				continue
			}
			what := "the value is NaN"
			if d == tensor.Q8_0 && !strings.Contains(name, "norm") {
				what = "the scale is NaN"
			}
			if e.File != path || e.Tensor != name || e.Problem != what+": the file is damaged; download it again" {
				t.Errorf("%s in %v: %v", name, d, err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			number := float64(tensor.F16ToF32(binary.LittleEndian.Uint16(data[e.Offset:])))
			switch {
			case d == tensor.F32 || strings.Contains(name, "norm"):
				number = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[e.Offset:])))
			case d == tensor.BF16:
				number = float64(tensor.BF16ToF32(binary.LittleEndian.Uint16(data[e.Offset:])))
			}
			if !math.IsNaN(number) {
				t.Errorf("%s in %v: the number at byte %d is %v", name, d, e.Offset, number)
			}
		}
	}
	works(t)
}
