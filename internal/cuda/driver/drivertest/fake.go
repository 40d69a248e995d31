package drivertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver"
)

// Options configure a fake driver. The zero value has CUDA 12.8 and one device.
type Options struct {
	Version driver.Version
	Init    driver.Code // what cuInit returns
	Devices []Device
	Missing []string // symbols missing from the library
	// Refused is the name of a kernel that the driver's compiler rejects, with a message in its
	// log.
	Refused string
	// Hollow are symbols whose functions do nothing: they are not counted and do not allocate.
	Hollow []string
	// Effect, if not nil, is the effect of a kernel. at returns n bytes of device memory from
	// address p, for reading and writing.
	Effect func(l *Launch, at func(p uint64, n int) []byte)
	// Run, if not nil, is called for every launch with the text of its module. Launches of different
	// devices run at the same time.
	Run func(l *Launch, text string)
	// Apart says that devices do not reach each other's memory.
	Apart bool
	// Arena, if not nil, is where device memory and pinned memory lie, at their own addresses. What
	// is allocated there is NaN.
	Arena []byte
}

// A Device is a GPU of the fake driver.
type Device struct {
	Name       string
	Memory     int               // bytes
	Capability driver.Capability // zero: 9.0
}

// A Launch is a kernel launch, in the order in which the device would begin them.
type Launch struct {
	Kernel       string
	Grid, Block  driver.Dim3
	Shared       int
	Cluster      driver.Dim3
	Programmatic bool
	Carveout     int
	Params       []byte // nil if the kernel has no parameters
	Graph        bool   // launched as part of a graph
	Device       int
}

// A Work is an item of a stream's work: one of the following.
type Work struct {
	Stream uintptr
	Launch *Launch

	// A copy to the device.
	To    uint64
	From  *byte
	Bytes int

	Record, Wait uintptr // events
	Synchronized bool    // the caller has waited for it
}

// A Fake is a fake driver.
type Fake struct {
	t       testing.TB
	options Options
	slot    *slot
	opened  func() (*driver.Driver, error)

	mu       sync.Mutex
	calls    map[string]int
	held     map[string]chan struct{} // closed when the calls may continue
	faults   []fault
	lost     driver.Code     // the context's fault, which all later calls return
	retained map[int]int     // by device
	current  map[int]int     // device + 1 by thread
	reach    map[[2]int]bool // the devices whose memory a device reaches
	next     uintptr         // handle
	objects  map[uintptr]any
	memory   deviceMemory
	host     map[uintptr][]byte
	ticks    int     // of the clock of events
	working  uintptr // the stream at work
	launches []Launch
	work     []Work
	misfits  []string
}

// A fault makes a later call fail.
type fault struct {
	call string
	left int // calls until it fails
	code driver.Code
}

// New creates a driver for a test. In a build without CUDA it skips the test.
func New(t testing.TB, options Options) *Fake {
	t.Helper()
	if !native {
		t.Skip("this build has no CUDA")
	}
	if options.Version == 0 {
		options.Version = 12080
	}
	if options.Devices == nil {
		options.Devices = []Device{{Name: "Fake GPU", Memory: 1 << 30}}
	}
	options.Devices = slices.Clone(options.Devices)
	for i := range options.Devices {
		if d := &options.Devices[i]; d.Capability == (driver.Capability{}) {
			d.Capability = driver.Capability{Major: 9}
		}
	}
	f := &Fake{
		t: t, options: options,
		calls:    map[string]int{},
		held:     map[string]chan struct{}{},
		retained: map[int]int{},
		current:  map[int]int{},
		reach:    map[[2]int]bool{},
		next:     0x1000,
		objects:  map[uintptr]any{},
		memory:   newMemory(options.Arena, len(options.Devices)),
		host:     map[uintptr][]byte{},
	}
	f.opened = sync.OnceValues(func() (*driver.Driver, error) { return driver.OpenLibrary(f.Lookup) })
	f.slot = takeSlot(f)
	t.Cleanup(func() {
		f.slot.give()
		if left := f.Live(); left != "" {
			t.Errorf("the test left in the driver: %s", left)
		}
	})
	return f
}

// Lookup returns the driver's functions.
func (f *Fake) Lookup(symbol string) (uintptr, error) {
	address, ok := f.slot.symbols[symbol]
	switch {
	case !ok || slices.Contains(f.options.Missing, symbol):
		return 0, fmt.Errorf("undefined symbol: %s", symbol)
	case slices.Contains(f.options.Hollow, symbol):
		return hollow, nil
	}
	return address, nil
}

// Driver opens the driver. A failure ends the test.
func (f *Fake) Driver() *driver.Driver {
	f.t.Helper()
	d, err := f.opened()
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

// Context opens the first device. The test closes it at its end.
func (f *Fake) Context() *driver.Context {
	f.t.Helper()
	devices, err := f.Driver().Devices()
	if err != nil {
		f.t.Fatal(err)
	}
	c, err := f.Driver().NewContext(devices[0])
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			f.t.Error(err)
		}
	})
	return c
}

// Fail makes the n-th call from now, counted from 1, return a code and do nothing else. After a
// code that means a lost device, all calls that need a context return it too. The name is that in
// the documentation: cuMemAlloc.
func (f *Fake) Fail(call string, n int, code driver.Code) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fault{call, n, code})
}

// Mend cancels all failures that have not happened yet.
func (f *Fake) Mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = nil
}

// Hold blocks future calls of a function until release is called, as if the device were at work.
// Other calls continue.
func (f *Fake) Hold(call string) (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan struct{})
	f.held[call] = c
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.held, call)
		close(c)
	})
}

// Calls returns how often a function was called, by its name in the documentation.
func (f *Fake) Calls(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[call]
}

// Launches returns the kernels launched so far.
func (f *Fake) Launches() []Launch {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.launches)
}

// Work returns the work that streams have done so far, in the order in which it was queued.
func (f *Fake) Work() []Work {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.work)
}

// HostBytes returns the amount of pinned host memory, in bytes.
func (f *Fake) HostBytes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, b := range f.host {
		n += len(b)
	}
	return n
}

// Misfits returns the launches whose parameters have another size than the kernel's text declares,
// each with both sizes in bytes. The real driver accepts them.
func (f *Fake) Misfits() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.misfits)
}

// Live names the resources that were created and not destroyed: "1 stream, 2 memory". It is empty
// if there are none, or if they were lost with the device.
func (f *Fake) Live() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := map[string]int{}
	for _, n := range f.retained {
		counts["context"] += n
	}
	if f.lost == driver.Success {
		counts["memory"] = len(f.memory.blocks)
		counts["host memory"] = len(f.host)
		for _, o := range f.objects {
			if o, ok := o.(interface{ kind() string }); ok {
				counts[o.kind()]++
			}
		}
	}
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		if counts[kind] != 0 {
			words = append(words, fmt.Sprintf("%d %s", counts[kind], kind))
		}
	}
	return strings.Join(words, ", ")
}

// call wraps every function: it counts the call, and fails if it was told to. It runs body with
// f.mu held.
func (f *Fake) call(name string, body func() driver.Code) driver.Code {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[name]++
	if c := f.held[name]; c != nil {
		f.mu.Unlock()
		<-c
		f.mu.Lock()
	}
	code := driver.Success
	for i := range f.faults {
		if x := &f.faults[i]; x.call == name {
			if x.left--; x.left == 0 {
				code = x.code
			}
		}
	}
	if code != driver.Success {
		if code.Lost() {
			f.lost = code
		}
		return code
	}
	return body()
}

// callInContext is call for functions that need a context.
func (f *Fake) callInContext(name string, body func(device int) driver.Code) driver.Code {
	return f.call(name, func() driver.Code {
		device := f.current[thread()] - 1
		switch {
		case device < 0:
			return driver.InvalidContext
		case f.lost != driver.Success:
			return f.lost
		}
		return body(device)
	})
}

// add stores an object under a new handle.
func (f *Fake) add(o any) uintptr {
	f.next += 16
	f.objects[f.next] = o
	return f.next
}

// object returns the object of a handle.
func object[T any](f *Fake, handle uintptr) (T, bool) {
	o, ok := f.objects[handle].(T)
	return o, ok
}

// remove destroys an object of type T.
func remove[T any](f *Fake, handle uintptr) driver.Code {
	if _, ok := object[T](f, handle); !ok {
		return driver.InvalidHandle
	}
	delete(f.objects, handle)
	return driver.Success
}
