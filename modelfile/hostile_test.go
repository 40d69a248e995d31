package modelfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/realizar/realizar/modelfile"
)

// maxHostileAlloc is what reading a file of some hundred bytes may allocate.
const maxHostileAlloc = 512 << 10

// allocated returns the bytes allocated since the process began, without stopping
// it as runtime.ReadMemStats does. Small objects are counted late and in batches,
// large ones at once.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// measuredOpen opens a file and counts the bytes that the process allocated
// meanwhile.
func measuredOpen(path string) (f *modelfile.File, bytes uint64, err error) {
	before := allocated()
	f, err = modelfile.Open(path)
	return f, allocated() - before, err
}

// openHostile opens a file that may be broken in any way. Whatever comes of it:
// no panic, no large allocation, and an error that names the file.
func openHostile(t testing.TB, path string) error {
	t.Helper()
	f, n, err := measuredOpen(path)
	// The counter is the whole process's, the fuzzing engine's included: what one
	// opening seems to allocate must show again in the next ones.
	for range 3 {
		if n <= maxHostileAlloc {
			break
		}
		again, m, _ := measuredOpen(path)
		if again != nil {
			_ = again.Close()
		}
		n = min(n, m)
	}
	if n > maxHostileAlloc {
		t.Fatalf("opening allocated %d bytes", n)
	}
	if err != nil {
		checkPrintable(t, err)
		if !strings.Contains(err.Error(), path) {
			t.Fatalf("error %q does not name %s", err, path)
		}
		if !errors.Is(err, modelfile.ErrFormat) && !errors.Is(err, modelfile.ErrUnsupported) && !errors.Is(err, modelfile.ErrNotModel) {
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

// small are a GGUF and a safetensors file of some hundred bytes, and the length
// without which each of them is incomplete.
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
		path := filepath.Join(dir, name)
		for n := range len(file.data) + 1 {
			if err := os.WriteFile(path, file.data[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			err := openHostile(t, path)
			if n < file.complete && err == nil {
				t.Errorf("%s: no error for the first %d of %d bytes", name, n, file.complete)
			}
			if n == len(file.data) && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Every count, length, type and offset of a file takes every value that could be
// taken for something else.
func TestNumbersThatLie(t *testing.T) {
	dir := t.TempDir()
	values := []uint64{0, 1, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 40, math.MaxInt64, 1 << 63, math.MaxUint64, math.MaxUint64 - 31}
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

// A large file of zeros that claims to be full of tensors must not make the reader
// allocate for what it claims.
func TestSparseFile(t *testing.T) {
	path := write(t, "sparse.gguf", newRawGGUF(10_000_000, 0).b)
	if err := os.Truncate(path, 1<<30); err != nil {
		t.Skipf("this system makes no sparse files: %v", err)
	}
	if err := openHostile(t, path); err == nil {
		t.Error("no error")
	}
}

func fuzzFile(f *testing.F, name string) {
	for _, file := range small(f) {
		f.Add(file.data)
	}
	f.Add(newRawGGUF(1, 0).tensor("w", 2, 0, 32).data(32))
	f.Add(rawSafetensors(`{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 4))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<12 {
			return
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = openHostile(t, path)
	})
}

func FuzzGGUF(f *testing.F) { fuzzFile(f, "fuzz.gguf") }

func FuzzSafetensors(f *testing.F) { fuzzFile(f, "fuzz.safetensors") }

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a": {"b": [1, 2.5, "x\u00e9\ud83d\ude00", null, {"c": NaN}]}, "a.b": -Infinity, "d": 1e-5}`))
	f.Add([]byte(`{"a":`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := modelfile.ParseJSON("fuzz.json", data)
		if err != nil {
			var formatError *modelfile.FormatError
			if !errors.As(err, &formatError) || formatError.File != "fuzz.json" || formatError.Offset > int64(len(data)) {
				t.Fatalf("error %#v", err)
			}
			return
		}
		for _, key := range m.Keys() {
			if _, ok := m.Value(key); !ok || m.Type(key) == "" {
				t.Fatalf("key %q has no value", key)
			}
			m.Ints(key)
			m.Floats(key)
			m.Strings(key)
			m.Bools(key)
		}
	})
}
