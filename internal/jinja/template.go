package jinja

import (
	"context"
	"fmt"
	"time"
)

// A Template is a compiled template. It is safe for concurrent use.
type Template struct {
	name     string
	root     *code
	mentions map[string]bool
}

// Parse compiles a template. Errors use name as the template's name. The error is a *SyntaxError.
func Parse(name, source string) (t *Template, err error) {
	defer func() {
		if r := recover(); r != nil {
			t, err = nil, &RuntimeError{Name: name, Class: classInternal, Message: fmt.Sprint(r)}
		}
	}()
	if len(source) > maxSource {
		return nil, &SyntaxError{
			Name: name, Line: 1,
			Message: fmt.Sprintf("a template of %d bytes; at most %d are allowed", len(source), maxSource),
		}
	}
	body, err := parse(name, source)
	if err != nil {
		return nil, err
	}
	root, err := compile(name, body)
	if err != nil {
		return nil, err
	}
	t = &Template{name, root, map[string]bool{}}
	for _, n := range body {
		t.collect(n)
	}
	return t, nil
}

// Mentions reports whether the template has a variable, an attribute or a
// string literal that is exactly name: whether it can look at a variable or a
// key of that name.
func (t *Template) Mentions(name string) bool { return t.mentions[name] }

func (t *Template) collect(n node) {
	switch n := n.(type) {
	case *nameExpr:
		t.mentions[n.name] = true
	case *getattrExpr:
		t.mentions[n.attr] = true
	case *constExpr:
		if s, ok := n.value.(*Str); ok && isIdentifier(s.s) {
			t.mentions[s.s] = true
		}
	}
	children(n, t.collect)
}

// Options are the options of a rendering. The zero value is useful.
type Options struct {
	// Now returns the time that strftime_now formats; nil means time.Now. It is called at most once
	// per rendering.
	Now func() time.Time
	// Limits bounds what the template may use.
	Limits Limits
}

// Render renders the template with the given variables, which it does not change. The error matches
// one of the kinds of this package, or is a *CanceledError soon after ctx ends. With an error it
// returns no text.
func (t *Template) Render(ctx context.Context, vars *Dict, opt Options) (text Text, err error) {
	if vars == nil {
		vars = NewDict()
	}
	in := &interp{vars: vars, meter: meter{ctx: ctx, limits: opt.Limits.withDefaults()}, now: opt.Now}
	if in.now == nil {
		in.now = time.Now
	}
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		text = nil
		switch stop := r.(type) {
		case *LimitError:
			err = stop
			return
		case *CanceledError:
			err = stop
			return
		case *RuntimeError:
			stop.Name, stop.Line = t.name, in.line
			err = stop
			return
		case *RaiseError:
			stop.Name, stop.Line = t.name, in.line
			err = stop
			return
		}
		err = &RuntimeError{Name: t.name, Class: classInternal, Message: fmt.Sprint(r)}
	}()
	in.out = in.builder()
	in.run(t.root)
	return in.out.done().text(), nil
}
