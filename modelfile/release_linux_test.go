package modelfile_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/realizar/realizar/internal/modeltest"
)

// resident returns how many bytes of the mapping that contains data are in the process's memory.
func resident(t *testing.T, data []byte) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skipf("the system does not say what is resident: %v", err)
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	within := false
	for line := range strings.Lines(string(maps)) {
		var start, end uintptr
		var kib int
		if n, _ := fmt.Sscanf(line, "%x-%x ", &start, &end); n == 2 {
			within = start <= at && at < end
		} else if n, _ := fmt.Sscanf(line, "Rss: %d kB", &kib); n == 1 && within {
			return kib << 10
		}
	}
	t.Fatalf("no mapping holds %#x", at)
	return 0
}

// touch reads all pages of data, which brings them into memory.
func touch(data []byte) {
	var all byte
	for _, x := range data {
		all ^= x
	}
	runtime.KeepAlive(all)
}

// Release removes from memory the pages that belong to a tensor alone. Pages shared with a neighbor
// and those of other files stay.
func TestReleaseLetsGo(t *testing.T) {
	f, other := large(t), large(t)
	page := uintptr(os.Getpagesize())
	for _, name := range []string{"a", "b", "c", "d"} {
		for _, x := range append(f.Tensors(), other.Tensors()...) {
			touch(x.Data)
		}
		x, _ := f.Tensor(name)
		elsewhere, _ := other.Tensor(name)
		before, beside := resident(t, x.Data), resident(t, elsewhere.Data)
		other.Release(x.Data)
		if got := resident(t, x.Data); got != before {
			t.Errorf("another file that releases tensor %s lets go of %d bytes", name, before-got)
		}

		f.Release(x.Data)
		lo := uintptr(unsafe.Pointer(unsafe.SliceData(x.Data)))
		hi := lo + uintptr(len(x.Data))
		lo = (lo + page - 1) / page * page
		if name == "a" || name == "c" {
			hi = hi / page * page // the next tensor begins within the page
		} else {
			hi = (hi + page - 1) / page * page // the tensor is the last of the file
		}
		if got, want := before-resident(t, x.Data), int(hi-lo); got != want {
			t.Errorf("releasing tensor %s lets go of %d bytes, want its own pages, %d", name, got, want)
		}
		if got := resident(t, elsewhere.Data); got != beside {
			t.Errorf("releasing tensor %s lets go of %d bytes of another file", name, beside-got)
		}
	}
}

// Releasing a derived tensor releases its parts.
func TestReleaseTensorLetsGo(t *testing.T) {
	l := modeltest.LayoutOf(t, "gptq")
	raw, _ := stored(l, "x.weight", 512, 1024)
	dir := t.TempDir()
	writeQuantised(t, dir, l.Config, raw...)
	f := opened(t, dir)
	x, _ := f.Tensor("x.weight")
	if _, err := x.Float32s(); err != nil {
		t.Fatal(err)
	}
	words := x.Source.Parts()[0].Data
	before := resident(t, words)
	f.ReleaseTensor(x.RowSlice(1, 2))
	if got := resident(t, words); before < len(words) || before-got < len(words)-2*os.Getpagesize() {
		t.Errorf("%d bytes are resident, %d before; the numbers are %d", got, before, len(words))
	}
}
