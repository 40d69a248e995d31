package modelfile_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/modelfile"
)

// A registered model opens by its name alone, whatever exists at that path, and its bytes do not
// change.
func TestRegister(t *testing.T) {
	const name = "a-model-of-this-test"
	data := ggufBytes(t, allValues, smallTensors())
	before := bytes.Clone(data)
	modelfile.Register(name, data)
	if !modelfile.Registered(name) || modelfile.Registered("another") {
		t.Error("not registered as it should be")
	}
	t.Chdir(t.TempDir())
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := modelfile.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if f.Path() != name || f.Size() != int64(len(data)) || len(f.Tensors()) != len(smallTensors()) {
		t.Errorf("opened %s of %d bytes with %d tensors", f.Path(), f.Size(), len(f.Tensors()))
	}
	for i, x := range f.Tensors() {
		f.Release(x.Data)
		if want := smallTensors()[i]; x.Name != want.Name || !bytes.Equal(x.Data, want.Data) {
			t.Errorf("tensor %d is %s, and its data are as registered: %v", i, x.Name, bytes.Equal(x.Data, want.Data))
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if !cmp.Equal(data, before) {
		t.Error("the data changed")
	}
	if _, err := modelfile.Open("." + string(filepath.Separator) + name); err == nil {
		t.Error("a path is taken for the name")
	}
	defer func() {
		if recover() == nil {
			t.Error("a second model of the same name is registered")
		}
	}()
	modelfile.Register(name, data)
}

// The bytes of a file open as the file does, and errors have their name.
func TestOpenBytes(t *testing.T) {
	data := ggufBytes(t, allValues, smallTensors())
	f, err := modelfile.OpenBytes("some bytes", data)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	if f.Path() != "some bytes" || f.Size() != want.Size() || !cmp.Equal(f.Meta(), want.Meta(), cmp.AllowUnexported(modelfile.Meta{})) {
		t.Errorf("%s has %d bytes and %v", f.Path(), f.Size(), f.Meta())
	}
	for i, x := range want.Tensors() {
		if got := f.Tensors()[i]; got.Name != x.Name || !bytes.Equal(got.Data, x.Data) {
			t.Errorf("tensor %d is %s, want %s with the same data", i, got.Name, x.Name)
		}
	}
	if _, err := modelfile.OpenBytes("some bytes", data[:len(data)/2]); !errors.Is(err, modelfile.ErrFormat) || !strings.Contains(err.Error(), "some bytes") {
		t.Errorf("bytes that are cut: %v", err)
	}
}
