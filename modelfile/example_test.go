package modelfile_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

func Example() {
	dir, err := os.MkdirTemp("", "modelfile")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	path := filepath.Join(dir, "tiny.gguf")

	w, err := os.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	err = modelfile.WriteGGUF(w, []modelfile.KeyValue{
		{Key: "general.architecture", Value: "llama"},
		{Key: "llama.block_count", Value: uint32(2)},
	}, []*tensor.Tensor{
		{Name: "output_norm.weight", DType: tensor.F16, Shape: []int{2}, Data: []byte{0x00, 0x3c, 0x00, 0xc0}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	f, err := modelfile.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	blocks, ok := f.Meta().Int("llama.block_count")
	fmt.Println(f.Format(), blocks, ok)
	for _, t := range f.Tensors() {
		values, err := t.Float32s()
		fmt.Println(t.Name, t.DType, t.Shape, values, err)
	}
	// Output:
	// GGUF 2 true
	// output_norm.weight F16 [2] [1 -2] <nil>
}
