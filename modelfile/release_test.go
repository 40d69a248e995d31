package modelfile_test

import (
	"bytes"
	"testing"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// pages returns a tensor of several pages and a remainder, with all values v.
func pages(name string, v byte) *tensor.Tensor {
	const size = 5<<16 + 100
	return &tensor.Tensor{Name: name, DType: tensor.U8, Shape: []int{size}, Data: bytes.Repeat([]byte{v}, size)}
}

// large returns a folder of two files with two tensors each, of several pages.
func large(t *testing.T) *modelfile.File {
	t.Helper()
	write := func(tensors ...*tensor.Tensor) string {
		var b bytes.Buffer
		if err := modelfile.WriteSafetensors(&b, tensors); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	return open(t, folder(t, map[string]string{
		"one.safetensors": write(pages("a", 1), pages("b", 2)),
		"two.safetensors": write(pages("c", 3), pages("d", 4)),
		"model.safetensors.index.json": `{"weight_map": {
			"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors", "d": "two.safetensors"}}`,
	}))
}

// Released data stays readable.
func TestRelease(t *testing.T) {
	f := large(t)
	for round := range 2 {
		for i, name := range []string{"a", "b", "c", "d"} {
			x, ok := f.Tensor(name)
			if !ok {
				t.Fatalf("no tensor %s", name)
			}
			want := pages(name, byte(i+1)).Data
			if !bytes.Equal(x.Data, want) {
				t.Errorf("tensor %s has changed in round %d", name, round)
			}
			f.Release(x.Data)
			if !bytes.Equal(x.Data, want) {
				t.Errorf("tensor %s has changed when it was released", name)
			}
			f.Release(x.Data)
		}
	}
}

// Release ignores memory outside the file, which would lose its content.
func TestReleaseOthers(t *testing.T) {
	f := large(t)
	heap := bytes.Repeat([]byte{7}, 1<<20)
	x, _ := f.Tensor("a")
	for _, data := range [][]byte{heap, heap[100:], heap[:0], heap[len(heap):], nil, {}, x.Data[:0], x.Data[len(x.Data):], x.Data[:1]} {
		f.Release(data)
	}
	empty := open(t, writeTo(t, t.TempDir(), "model.safetensors", rawSafetensors(`{}`, 0)))
	empty.Release(heap)
	empty.Release(x.Data)
	if !bytes.Equal(heap, bytes.Repeat([]byte{7}, 1<<20)) {
		t.Error("memory beside the file has changed")
	}
}
