package jinja

import "time"

// An interp is the state of one rendering.
type interp struct {
	meter
	vars *Dict // of the caller
	now  func() time.Time
	when time.Time // of this rendering, once it was asked for
	out  *builder
	line int // of the statement that runs
}

// A frame holds the variables of one activation of a function. An unset variable is nil.
type frame struct {
	in    *interp
	outer *frame // of the function around this one
	slots []Value
}

func (in *interp) frame(fn *function, outer *frame) *frame {
	in.items(len(fn.slots))
	return &frame{in: in, outer: outer, slots: make([]Value, len(fn.slots))}
}

// up returns the frame n functions further out.
func (fr *frame) up(n int) *frame {
	for ; n > 0; n-- {
		fr = fr.outer
	}
	return fr
}

// print appends s to the output.
func (in *interp) print(s *Str) {
	in.out.str(s)
	if int64(in.out.buf.Len()) > in.limits.Output {
		panic(&LimitError{"Output", in.limits.Output})
	}
}

// capture returns what f prints.
func (in *interp) capture(f func()) *Str {
	outer := in.out
	in.out = in.builder()
	f()
	text := in.out
	in.out = outer
	return text.done()
}

// resolve looks up a name that is in no scope, nil if it is unknown.
func (in *interp) resolve(name string) Value {
	in.scan(len(name))
	if v, ok := in.vars.Get(name); ok {
		return v
	}
	return globals[name]
}

// run runs the template.
func (in *interp) run(c *code) {
	fr := in.frame(c.fn, nil)
	c.enter(fr)
	c.body(fr)
}
