package jinja

import "time"

// An interp is the state of one rendering.
type interp struct {
	meter
	now        clock
	when       time.Time // of this rendering, once it was asked for
	out        *builder
	autoescape bool
}

// A frame holds the variables of one activation of a function. A variable
// that is not set is nil.
type frame struct {
	in    *interp
	outer *frame // of the function around this one
	ctx   *nameTable
	slots []Value
}

func (in *interp) frame(fn *function, outer *frame, ctx *nameTable) *frame {
	in.items(len(fn.slots))
	return &frame{in: in, outer: outer, ctx: ctx, slots: make([]Value, len(fn.slots))}
}

// up returns the frame n functions out.
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
func (in *interp) capture(f func() error) (*Str, error) {
	outer := in.out
	in.out = in.builder()
	err := f()
	text := in.out
	in.out = outer
	if err != nil {
		return nil, err
	}
	return text.done(), nil
}

// A nameTable is where the names are looked up that no scope has.
type nameTable struct {
	in      *interp
	tmpl    *Template
	vars    *Dict            // of the caller
	locals  map[string]Value // of the place where a scoped block stands
	exports map[string]Value // assigned at the top level
}

func (c *nameTable) resolve(name string) Value {
	c.in.scan(len(name))
	if v, ok := c.exports[name]; ok {
		return v
	}
	if v, ok := c.locals[name]; ok {
		return v
	}
	if v, ok := c.vars.Get(name); ok {
		return v
	}
	if v, ok := globals[name]; ok {
		return v
	}
	return nil
}

// export makes an assignment at the top level known to the blocks.
func (c *nameTable) export(name string, v Value) {
	if len(c.tmpl.blocks) == 0 {
		return
	}
	if c.exports == nil {
		c.exports = map[string]Value{}
	}
	c.exports[name] = v
}

// derive returns a table that starts with the names of c.
func (c *nameTable) derive() *nameTable {
	d := *c
	d.exports = nil
	d.locals = map[string]Value{}
	for _, m := range []map[string]Value{c.locals, c.exports} {
		c.in.items(3 * len(m))
		for k, v := range m {
			d.locals[k] = v
		}
	}
	return &d
}

// runBlock renders a block into the output.
func (in *interp) runBlock(b *blockCode, ctx *nameTable) error {
	in.enter()
	defer in.leave()
	_, err := in.run(&b.code, ctx, b.node.name)
	return err
}

// run runs the template or a block.
func (in *interp) run(c *code, ctx *nameTable, block string) (control, error) {
	fr := in.frame(c.fn, nil, ctx)
	if c.self != nil {
		fr.slots[c.self.index] = &templateReference{ctx}
	}
	if c.super != nil {
		fr.slots[c.super.index] = &undefined{
			hint: "there is no parent block called '" + block + "'.", name: String("super", true),
		}
	}
	c.enter(fr)
	return c.body(fr)
}

// A templateReference is the variable self: the blocks of the template.
type templateReference struct{ ctx *nameTable }

func (*templateReference) typeName() string { return "TemplateReference" }

func (t *templateReference) attr(_ *interp, name string) (Value, bool, error) {
	if b, ok := t.ctx.tmpl.blocks[name]; ok {
		return &blockReference{b, t.ctx}, true, nil
	}
	return nil, false, nil
}

// block finds a block by name; none by that name is undefined.
func (t *templateReference) block(key Value) (Value, error) {
	if name, ok := key.(*Str); ok {
		if b, ok := t.ctx.tmpl.blocks[name.s]; ok {
			return &blockReference{b, t.ctx}, nil
		}
	}
	return &undefined{obj: t, name: key}, nil
}

// A blockReference renders a block when it is called.
type blockReference struct {
	block *blockCode
	ctx   *nameTable
}

func (*blockReference) typeName() string { return "BlockReference" }

func (b *blockReference) call(in *interp, a *callArgs) (Value, error) {
	a.name = b.block.node.name
	if _, err := a.positional(0, 0); err != nil {
		return nil, err
	}
	out, err := in.capture(func() error { return in.runBlock(b.block, b.ctx) })
	if err != nil {
		return nil, err
	}
	out.safe = in.autoescape
	return out, nil
}
