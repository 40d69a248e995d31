package jinja

import "context"

// Limits bounds the resources of one rendering. A zero field means its default. The figures are
// totals over the rendering, not peaks, so they bound time as well as space.
type Limits struct {
	Steps  int64 // units of work, of some 20 ns each: an expression, an item, 16 bytes searched; 30 million
	Memory int64 // bytes of strings and containers the template makes; 512 MiB
	Output int64 // bytes of text rendered; 64 MiB
	Depth  int64 // nested calls of macros, recursive loops and filters; 200
	// Reserve is called before the template takes more memory, some tens of kibibytes at a time.
	// Its error ends the rendering as a [CanceledError]. It may be nil.
	Reserve func(bytes int) error
}

func (l Limits) withDefaults() Limits {
	if l.Steps == 0 {
		l.Steps = 30e6
	}
	if l.Memory == 0 {
		l.Memory = 512 << 20
	}
	if l.Output == 0 {
		l.Output = 64 << 20
	}
	if l.Depth == 0 {
		l.Depth = 200
	}
	return l
}

const (
	// maxNesting bounds the nesting of values that are printed, compared, hashed or decoded. Python
	// would reach its recursion limit.
	maxNesting = 500
	// maxSource is the length of the longest template, in bytes.
	maxSource = 1 << 20
	// maxSyntaxDepth bounds the depth of the syntax tree.
	maxSyntaxDepth = 1000
	// maxTagDepth bounds the nesting of tags; Python allows 100 levels of
	// indentation in what jinja2 compiles a template to.
	maxTagDepth = 100
	// maxIntDigits is the largest number of digits of an integer in JSON, as in Python.
	maxIntDigits = 4300
	// maxRange is the length of the longest range the sandbox allows.
	maxRange = 100000
	// bytesPerStep is the number of bytes of a string that one step copies, searches or compares.
	// Work that reads each character counts one step per byte.
	bytesPerStep = 16
	// stepsPerLook is the number of steps between two checks of the context.
	stepsPerLook = 4096
	// stepsPerError is the cost in steps of making an error that need not end a rendering.
	stepsPerError = 16
	// valueSize is the size in bytes of one item of a container.
	valueSize = 16
)

// A meter counts the resources of a rendering. It panics with a *LimitError at a bound and with a
// *CanceledError at the end of the context.
//
// Allocations are charged before they happen. Reads are charged after every short stretch of work,
// so that no operation runs long without a check.
type meter struct {
	ctx    context.Context
	limits Limits
	steps  int64
	look   int64 // the count of steps at which to look at the bound and at ctx
	memory int64
	asked  int64 // for how much of memory Limits.Reserve was asked
	depth  int64
}

// reserveBytes is the number of bytes that one call of Limits.Reserve asks for.
const reserveBytes = 64 << 10

// step charges n steps.
func (m *meter) step(n int) {
	m.steps += int64(n)
	if m.steps >= m.look || n < 0 {
		m.pause(n < 0)
	}
}

// pause ends the rendering if it has to end.
func (m *meter) pause(overflow bool) {
	if m.steps > m.limits.Steps || overflow {
		panic(&LimitError{"Steps", m.limits.Steps})
	}
	if err := m.ctx.Err(); err != nil {
		panic(&CanceledError{Err: err, Cause: context.Cause(m.ctx)})
	}
	m.look = min(m.steps+stepsPerLook, m.limits.Steps+1)
}

// scan charges the copying, searching or comparing of n bytes.
func (m *meter) scan(n int) { m.step(1 + n/bytesPerStep) }

// grow charges the making of n bytes.
func (m *meter) grow(n int) {
	m.memory += int64(n)
	if m.memory > m.limits.Memory || n < 0 {
		panic(&LimitError{"Memory", m.limits.Memory})
	}
	if m.memory > m.asked && m.limits.Reserve != nil {
		more := max(m.memory-m.asked, reserveBytes)
		if err := m.limits.Reserve(int(more)); err != nil {
			panic(&CanceledError{Err: err, Cause: err})
		}
		m.asked += more
	}
	m.scan(n)
}

// growTimes charges the making of count pieces of size bytes, whose product
// need not fit an int.
func (m *meter) growTimes(count, size int) {
	m.fits(count, size)
	if count > 0 {
		m.grow(count * size)
	}
}

// fits refuses count pieces of size bytes, if there can never be room for
// them, and charges nothing.
func (m *meter) fits(count, size int) {
	if count > 0 && size > 0 && int64(count) > m.limits.Memory/int64(size) {
		panic(&LimitError{"Memory", m.limits.Memory})
	}
}

// items charges the making of n items of a container.
func (m *meter) items(n int) {
	m.growTimes(n, valueSize)
	m.step(n)
}

// enter charges one level of nested calls; leave gives it back.
func (m *meter) enter() {
	m.depth++
	if m.depth > m.limits.Depth {
		panic(&LimitError{"Depth", m.limits.Depth})
	}
}

func (m *meter) leave() { m.depth-- }

// nesting refuses values nested deeper than Python could walk them.
func nesting(depth int) {
	if depth > maxNesting {
		panic(&LimitError{"Depth", maxNesting})
	}
}
