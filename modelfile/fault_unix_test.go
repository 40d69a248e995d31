//go:build unix

package modelfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// readAll reads every byte of data.
func readAll(data []byte) error {
	_ = bytes.Count(data, []byte{0xa5})
	return nil
}

// If an open file is truncated, reading data after the cut is an error that says where. Data before
// it stays readable.
func TestCutShort(t *testing.T) {
	modeltest.NeedsFaults(t)
	f := large(t)
	path := filepath.Join(f.Path(), "two.safetensors")
	var all []*tensor.Tensor
	for _, name := range []string{"a", "b", "c", "d"} {
		x, _ := f.Tensor(name)
		all = append(all, x)
	}
	for _, x := range all {
		if err := f.Guard(func() error { return readAll(x.Data) }); err != nil {
			t.Fatalf("%s of a whole file: %v", x.Name, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// The cut is within c: c loses its last pages, and d all of its data.
	cut := info.Size() - int64(len(all[3].Data)) - 3<<16
	if err := os.Truncate(path, cut); err != nil {
		t.Fatal(err)
	}
	for i, x := range all {
		err := f.Guard(func() error { return readAll(x.Data) })
		if i < 2 {
			if err != nil {
				t.Errorf("%s of the whole file: %v", x.Name, err)
			}
			continue
		}
		wantError(t, err, modelfile.ErrFormat, path, x.Name, "truncated", "open the model again")
		var e *modelfile.FormatError
		if !errors.As(err, &e) {
			t.Fatalf("%s: %v", x.Name, err)
		}
		start := info.Size() - int64(len(x.Data))*int64(4-i)
		if page := int64(os.Getpagesize()); e.Tensor != x.Name || e.File != path || e.Offset < max(cut, start) || e.Offset > max(cut, start)+page {
			t.Errorf("%s: %+v, want byte %d or the first one of the next page", x.Name, e, max(cut, start))
		}
	}
	// A file that has its length again may be a different file, and is read as it is.
	if err := os.Truncate(path, info.Size()); err != nil {
		t.Fatal(err)
	}
	if err := f.Guard(func() error { return readAll(all[3].Data) }); err != nil {
		t.Errorf("a file that has grown again: %v", err)
	}
}

// If a file is truncated while its header is read, Open returns an error. How far it has read by
// then is up to chance.
func TestCutShortInOpen(t *testing.T) {
	modeltest.NeedsFaults(t)
	var list []string
	for i := range 1 << 17 {
		list = append(list, fmt.Sprintf("an entry of a long header, number %d", i))
	}
	var file bytes.Buffer
	if err := modelfile.WriteGGUF(&file, []modelfile.KeyValue{{Key: "list", Value: list}}, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	for range 100 {
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		var cut sync.WaitGroup
		cut.Go(func() {
			if err := os.Truncate(path, 1<<12); err != nil {
				t.Error(err)
			}
		})
		f, err := modelfile.Open(path)
		cut.Wait()
		if err == nil {
			if err := f.Close(); err != nil { // it was read before the cut
				t.Error(err)
			}
			continue
		}
		wantError(t, err, modelfile.ErrFormat, path)
		if strings.Contains(err.Error(), "while it was open") {
			return
		}
	}
	t.Skip("the file was never cut while its header was read")
}

// Guard does not change errors unrelated to the file's memory.
func TestGuardOthers(t *testing.T) {
	modeltest.NeedsFaults(t)
	f := large(t)
	wrong := errors.New("wrong")
	if err := f.Guard(func() error { return wrong }); err != wrong { //nolint:errorlint // it must be the same
		t.Errorf("an error became %v", err)
	}
	for name, fail := range map[string]func(){
		"a panic":       func() { panic(wrong) },
		"a nil pointer": func() { var x *tensor.Tensor; x.Name = "" },
		"an index":      func() { _ = f.Tensors()[len(f.Path())] },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s came to nothing", name)
				}
			}()
			t.Errorf("%s: %v", name, f.Guard(func() error { fail(); return nil }))
		}()
	}
	path := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(path, make([]byte, 1<<18), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data, err := unix.Mmap(int(file.Fd()), 0, 1<<18, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(data) }()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	var fault *tensor.FaultError
	if err := f.Guard(func() error { return readAll(data) }); !errors.As(err, &fault) || errors.Is(err, modelfile.ErrFormat) {
		t.Errorf("another file's memory: %v", err)
	}
}

// A non-finite value is located in its file, however its error is wrapped.
func TestLocateNumber(t *testing.T) {
	x := &tensor.Tensor{Name: "x", DType: tensor.F16, Shape: []int{4}, Data: []byte{0, 0, 0, 0, 0, 0x7c, 0, 0}}
	var file bytes.Buffer
	if err := modelfile.WriteSafetensors(&file, []*tensor.Tensor{pages("a", 1), x}); err != nil {
		t.Fatal(err)
	}
	f := open(t, folder(t, map[string]string{"one.safetensors": file.String()}))
	mapped, _ := f.Tensor("x")
	err := f.Locate(errors.Join(nil, tensor.CheckFinite(tensor.F16, mapped.Data)))
	wantError(t, err, modelfile.ErrFormat, "one.safetensors", `tensor "x"`, "the value is +Inf", "download it again")
	var e *modelfile.FormatError
	if want := int64(bytes.Index(file.Bytes(), x.Data)) + 4; !errors.As(err, &e) || e.Offset != want {
		t.Errorf("%+v, want byte %d", e, want)
	}
	if err := f.Locate(tensor.CheckFinite(tensor.F16, bytes.Clone(mapped.Data))); errors.Is(err, modelfile.ErrFormat) || err == nil {
		t.Errorf("a copy's number: %v", err)
	}
	if err := f.Locate(nil); err != nil {
		t.Error(err)
	}
}
