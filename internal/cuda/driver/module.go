package driver

import (
	"fmt"
	"strings"
	"unsafe"
)

// A Module is code loaded on the device.
type Module struct {
	// Log is the output of the driver's compiler, usually empty.
	Log string

	c      *Context
	handle uintptr
}

// Options of the driver's compiler, a CUjit_option.
const (
	jitInfoLog      = 3
	jitInfoLogSize  = 4
	jitErrorLog     = 5
	jitErrorLogSize = 6
)

// jit is the memory that a call to the driver's compiler reads and writes.
type jit struct {
	image   []byte
	options [4]uint32
	values  [4]uintptr
	info    [4 << 10]byte
	errors  [16 << 10]byte
}

// LoadModule loads a cubin, or PTX text, which the driver compiles for the device. If the code is
// invalid, the error has the compiler's log.
func (c *Context) LoadModule(image []byte) (*Module, error) {
	if len(image) == 0 {
		return nil, c.invalid(fnModuleLoadDataEx, "the image is empty")
	}
	if c.lost != nil {
		return nil, c.lost
	}
	j := &jit{options: [4]uint32{jitInfoLog, jitInfoLogSize, jitErrorLog, jitErrorLogSize}}
	// The text must end with a NUL.
	j.image = make([]byte, len(image)+1)
	copy(j.image, image)
	base := c.hold(unsafe.Pointer(j))
	info, errors := base+unsafe.Offsetof(j.info), base+unsafe.Offsetof(j.errors)
	j.values = [4]uintptr{info, uintptr(len(j.info)), errors, uintptr(len(j.errors))}
	code := c.call(fnModuleLoadDataEx, at(&c.out.handle), uintptr(unsafe.Pointer(&j.image[0])), uintptr(len(j.options)), base+unsafe.Offsetof(j.options), base+unsafe.Offsetof(j.values))
	log := strings.TrimSpace(cString(j.info[:]))
	if code != Success {
		return nil, c.failed(fnModuleLoadDataEx, code, strings.TrimSpace(cString(j.errors[:])+"\n"+log))
	}
	return &Module{Log: log, c: c, handle: c.out.handle}, nil
}

// Unload unloads the code. A second call does nothing.
func (m *Module) Unload() error { return destroy(m.c, fnModuleUnload, &m.handle) }

// A Function is a kernel of a module, valid while the module is loaded.
type Function struct {
	c          *Context
	name       string
	handle     uintptr
	attributes *FunctionAttributes // nil until they are known
}

// Function returns a kernel by its name in the PTX: the mangled C++ name unless the kernel is
// extern "C".
func (m *Module) Function(name string) (*Function, error) {
	c := m.c
	if m.handle == 0 {
		return nil, c.invalid(fnModuleGetFunction, "the module is unloaded")
	}
	if c.lost != nil {
		return nil, c.lost
	}
	text := append([]byte(name), 0)
	if code := c.call(fnModuleGetFunction, at(&c.out.handle), m.handle, c.hold(unsafe.Pointer(&text[0]))); code != Success {
		return nil, c.failed(fnModuleGetFunction, code, fmt.Sprintf("kernel %q", name))
	}
	return &Function{c: c, name: name, handle: c.out.handle}, nil
}

// In returns the kernel for use in another context of the same device. It is valid while its module
// is loaded; the module must be unloaded in its own context.
func (f *Function) In(c *Context) *Function { return &Function{c: c, name: f.name, handle: f.handle} }

// Name returns the kernel's name.
func (f *Function) Name() string { return f.name }

// FunctionAttributes are the resources that a kernel needs.
type FunctionAttributes struct {
	MaxThreadsPerBlock int
	SharedBytes        int // declared by the kernel; a launch may add more
	LocalBytes         int // per thread, for spilled registers
	Registers          int // per thread
}

// Attributes of a function, a CUfunction_attribute.
const (
	functionMaxThreadsPerBlock = 0
	functionSharedBytes        = 1
	functionLocalBytes         = 3
	functionRegisters          = 4
	functionMaxDynamicShared   = 8
)

// Attributes returns the resources that the kernel needs.
func (f *Function) Attributes() (FunctionAttributes, error) {
	if f.attributes != nil {
		return *f.attributes, nil
	}
	var a FunctionAttributes
	for _, want := range []struct {
		attribute uintptr
		value     *int
	}{
		{functionMaxThreadsPerBlock, &a.MaxThreadsPerBlock},
		{functionSharedBytes, &a.SharedBytes},
		{functionLocalBytes, &a.LocalBytes},
		{functionRegisters, &a.Registers},
	} {
		if err := f.c.do(fnFuncGetAttribute, at(&f.c.out.i), want.attribute, f.handle); err != nil {
			return FunctionAttributes{}, err
		}
		*want.value = int(f.c.out.i)
	}
	f.attributes = &a
	return a, nil
}

// SetMaxDynamicShared allows launches of the kernel with up to the given bytes of shared memory. Otherwise
// the limit is 48 KiB, including the kernel's declared shared memory.
func (f *Function) SetMaxDynamicShared(bytes int) error {
	if f.c.lost != nil {
		return f.c.lost
	}
	if code := f.c.call(fnFuncSetAttribute, f.handle, functionMaxDynamicShared, uintptr(bytes)); code != Success {
		return f.c.failed(fnFuncSetAttribute, code, fmt.Sprintf("kernel %s, %d bytes of shared memory", f.name, bytes))
	}
	return nil
}

// Occupancy returns how many blocks fit a multiprocessor at a time, given the threads of a block
// and its bytes of shared memory in addition to the declared ones.
func (f *Function) Occupancy(threads, shared int) (int, error) {
	if err := f.c.do(fnOccupancy, at(&f.c.out.i), f.handle, uintptr(threads), uintptr(shared)); err != nil {
		return 0, err
	}
	return int(f.c.out.i), nil
}
