package jsonschema

import (
	"errors"
	"fmt"
	"sync"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/internal/rx"
)

// A compiler turns one schema into rules.
type compiler struct {
	*loader
	o       Options
	b       *grammar.Builder
	space   *rx.Space
	strings *spelling // of names, and of strings that a schema constrains
	free    *spelling // of all other strings
	plain   *spelling
	numbers *numberTexts

	truth, falsity *schema

	scalarMemo map[*schema]scalars
	entered    map[*schema]bool
	patterns   map[string]stringSet
	formats    map[string]stringSet

	atoms       []atom
	atomIDs     map[atom]int32
	expanded    map[expandKey][]alternative
	expanding   map[expandKey]bool
	refutations map[refuteKey]bool
	work        int // steps spent on alternatives

	goals map[string]*goal
	order []*goal

	mu sync.Mutex // rules are also made while texts are read
	*tokens
}

// Compile adds rules to b whose language is the values valid under a schema, and returns the start
// symbol. The error is a *SchemaError or an *UnsupportedError, or matches [ErrTooLarge] or
// [ErrUnsatisfiable].
func Compile(b *grammar.Builder, schema []byte, o Options) (grammar.Symbol, error) {
	if o.Strict {
		if err := CheckStrict(schema); err != nil {
			return grammar.Symbol{}, err
		}
	}
	l, root, err := load(schema)
	if err != nil {
		return grammar.Symbol{}, err
	}
	c := newCompiler(b, l, o)
	g, err := c.goal([]literal{is(root)})
	if err != nil {
		return grammar.Symbol{}, err
	}
	for i := 0; i < len(c.order); i++ {
		if err := c.build(c.order[i]); err != nil {
			return grammar.Symbol{}, c.blame(err)
		}
	}
	for _, g := range c.order {
		for _, f := range g.arrays {
			if f.unique {
				if err := c.checkUnique(f); err != nil {
					return grammar.Symbol{}, err
				}
			}
		}
	}
	c.fixpoint()
	if g == nil || !g.inhabited {
		return grammar.Symbol{}, ErrUnsatisfiable
	}
	s := c.symbolOf(g)
	return s, c.blame(c.space.Err())
}

// Any returns a symbol for any JSON value.
func Any(b *grammar.Builder, o Options) (grammar.Symbol, error) {
	o.Strict = false
	return Compile(b, []byte(`true`), o)
}

// Object returns a symbol for any JSON object.
func Object(b *grammar.Builder, o Options) (grammar.Symbol, error) {
	o.Strict = false
	return Compile(b, []byte(`{"type": "object"}`), o)
}

func newCompiler(b *grammar.Builder, l *loader, o Options) *compiler {
	space := b.Space()
	c := &compiler{
		loader: l, o: o, b: b, space: space,
		scalarMemo: map[*schema]scalars{}, entered: map[*schema]bool{}, patterns: map[string]stringSet{}, formats: map[string]stringSet{},
		atomIDs: map[atom]int32{}, expanded: map[expandKey][]alternative{}, expanding: map[expandKey]bool{}, refutations: map[refuteKey]bool{},
		goals: map[string]*goal{},
	}
	c.free = newSpelling(space, false)
	c.plain = newSpelling(space, true)
	c.strings = c.plain
	if o.Spelling == AnySpelling {
		c.strings = c.free
	}
	c.numbers = newNumberTexts(space, o.Spelling == PlainSpelling)
	c.truth, c.falsity = l.synthetic("#"), l.synthetic("#")
	c.falsity.never = true
	c.tokens = newTokens(b, o.Whitespace)
	return c
}

// blame adds the cause to an error of the space.
func (c *compiler) blame(err error) error {
	if full := c.space.Err(); full != nil && errors.Is(err, full) {
		return fmt.Errorf("%w: its patterns and strings take more than the limit of expressions", ErrTooLarge)
	}
	return err
}

// fixpoint finds the goals that have values: those with scalars, and those with arrays or objects
// all of whose required parts have values.
func (c *compiler) fixpoint() {
	for changed := true; changed; {
		changed = false
		for i := len(c.order) - 1; i >= 0; i-- {
			g := c.order[i]
			if g.inhabited {
				continue
			}
			g.inhabited = g.some
			for _, f := range g.arrays {
				g.inhabited = g.inhabited || f.inhabited()
			}
			for _, f := range g.objects {
				g.inhabited = g.inhabited || f.inhabited()
			}
			changed = changed || g.inhabited
		}
	}
	// Results cached so far were based on incomplete knowledge.
	for _, g := range c.order {
		for _, f := range g.arrays {
			f.fates = nil
		}
		for _, f := range g.objects {
			f.needs = nil
		}
	}
}
