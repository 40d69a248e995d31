package modelfile_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/modelfile"
)

// maxHostileAlloc is how many bytes reading a file of some hundred bytes may allocate.
const maxHostileAlloc = 512 << 10

// allocated returns the bytes allocated since the process began. Unlike runtime.ReadMemStats, it
// does not stop the process. Small objects are counted late and in batches, large ones at once.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// openMeasured opens a file and returns how many bytes that allocates. The counter covers the whole
// process and lags, so an excess counts only if it repeats when the file is opened again.
func openMeasured(path string) (f *modelfile.File, bytes uint64, err error) {
	for i := range 4 {
		before := allocated()
		again, err2 := modelfile.Open(path)
		n := allocated() - before
		if i == 0 {
			f, bytes, err = again, n, err2
		} else {
			bytes = min(bytes, n)
			if again != nil {
				_ = again.Close()
			}
		}
		if bytes <= maxHostileAlloc {
			break
		}
	}
	return f, bytes, err
}

// openHostile opens a file that may be broken in any way. It fails the test on a panic, a large
// allocation, or an error that does not name the file or is not printable.
func openHostile(t testing.TB, path string) error {
	t.Helper()
	f, n, err := openMeasured(path)
	if n > maxHostileAlloc {
		t.Fatalf("opening allocated %d bytes", n)
	}
	if err != nil {
		checkPrintable(t, err)
		// In a model of several files the error may name another file of the folder.
		if !strings.Contains(err.Error(), path) && !strings.Contains(err.Error(), filepath.Dir(path)) {
			t.Fatalf("error %q does not name %s", err, path)
		}
		kinds := []error{modelfile.ErrFormat, modelfile.ErrUnsupported, modelfile.ErrNotModel, fs.ErrNotExist}
		if !slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
			t.Fatalf("error %q is of no kind that Open has", err)
		}
		return err
	}
	for _, x := range f.Tensors() {
		if _, err := x.Float32s(); err != nil {
			t.Fatalf("a tensor of an accepted file: %v", err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return nil
}

// small returns a GGUF and a safetensors file of some hundred bytes, and the length below which
// each is incomplete.
func small(t testing.TB) map[string]struct {
	data     []byte
	complete int
} {
	gguf := ggufBytes(t, allValues, smallTensors())
	last := smallTensors()[len(smallTensors())-1].Data
	var st bytes.Buffer
	tensors := smallTensors()
	if err := modelfile.WriteSafetensors(&st, append(tensors[:1:1], tensors[2:]...)); err != nil {
		t.Fatal(err)
	}
	return map[string]struct {
		data     []byte
		complete int
	}{
		"small.gguf":        {gguf, bytes.LastIndex(gguf, last) + len(last)},
		"small.safetensors": {st.Bytes(), st.Len()},
	}
}

func TestTruncatedAnywhere(t *testing.T) {
	dir := t.TempDir()
	for name, file := range small(t) {
		truncateAnywhere(t, writeTo(t, dir, name, nil), "", file.data, file.complete)
	}
}

// The error about a truncated part names that part, whichever part was opened.
func TestTruncatedPart(t *testing.T) {
	files := splitModel(t)
	dir := folder(t, files)
	for name, content := range files {
		complete := len(strings.TrimRight(content, "\x00"))
		for _, opened := range []string{"m-00001-of-00003.gguf", "m-00003-of-00003.gguf"} {
			truncateAnywhere(t, filepath.Join(dir, name), filepath.Join(dir, opened), []byte(content), complete)
		}
	}
}

func TestTruncatedShard(t *testing.T) {
	files := map[string]string{
		"model.safetensors.index.json": `{"metadata": {"total_size": 2}, "weight_map": {"a": "s1.safetensors", "b": "s2.safetensors"}}`,
		"s1.safetensors":               shard(t, map[string]byte{"a": 1}),
		"s2.safetensors":               shard(t, map[string]byte{"b": 2}),
	}
	dir := folder(t, files)
	for name, content := range files {
		truncateAnywhere(t, filepath.Join(dir, name), dir, []byte(content), len(content))
	}
}

// truncateAnywhere truncates the file at path at every byte and opens the model. The error must
// name that file and, if a header begins, say that the download is incomplete. opened
// defaults to path.
func truncateAnywhere(t *testing.T, path, opened string, data []byte, complete int) {
	t.Helper()
	for n := range len(data) + 1 {
		if err := os.WriteFile(path, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		err := openHostile(t, cmp.Or(opened, path))
		switch {
		case n < complete && err == nil:
			t.Errorf("%s: no error for the first %d of %d bytes", path, n, complete)
		case n < complete && !strings.Contains(err.Error(), path):
			t.Errorf("%s: the first %d bytes: error %q names another file", path, n, err)
		case n > 8 && n < complete && filepath.Ext(path) != ".json" && !strings.Contains(err.Error(), "incomplete download"):
			t.Errorf("%s: the first %d bytes: error %q does not say that the download is incomplete", path, n, err)
		case n == len(data) && err != nil:
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Every count, length, type and offset of a file takes every value that may be misread.
func TestNumbersThatLie(t *testing.T) {
	dir := t.TempDir()
	values := []uint64{1, 1 << 40, math.MaxUint64, 0, 1 << 31, 1<<32 - 1, 1 << 32, math.MaxInt64, 1 << 63, math.MaxUint64 - 31}
	values = longtest.Cases(values, values[:3])
	for name, file := range small(t) {
		path := filepath.Join(dir, name)
		data := bytes.Clone(file.data)
		for at := range len(data) - 8 {
			for _, v := range values {
				binary.LittleEndian.PutUint64(data[at:], v)
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				_ = openHostile(t, path)
			}
			copy(data[at:], file.data[at:at+8])
		}
	}
}

// A large file of zeros that claims to be full of tensors must not make the reader allocate memory
// for them.
func TestSparseFile(t *testing.T) {
	path := write(t, "sparse.gguf", newRawGGUF(10_000_000, 0).b)
	if err := os.Truncate(path, 1<<30); err != nil {
		t.Skipf("this system makes no sparse files: %v", err)
	}
	if err := openHostile(t, path); err == nil {
		t.Error("no error")
	}
}
