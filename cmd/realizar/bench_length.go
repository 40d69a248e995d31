package main

import (
	"fmt"

	"github.com/realizar/realizar"
)

// The default lengths of the tests.
const (
	defaultPrompt = 512
	defaultAnswer = 128
	defaultDepth  = 128
)

// testLengths are the tokens of the tests; a test of 0 is skipped. An answer follows depth tokens.
type testLengths struct{ prompt, depth, answer int }

// lengths returns the lengths of the flags, or else those that fit into context.
func (c *benchCommand) lengths(context int, d *realizar.Description) (testLengths, error) {
	var n testLengths
	var err error
	if n.prompt, err = c.promptLength(context, d); err != nil {
		return n, err
	}
	// An answer follows at least one prompt token, and its last token takes no position.
	before := 1
	if c.Depth != nil {
		if before, err = c.length("-d", c.Depth, 0, 1, context, d); err != nil {
			return n, err
		}
	}
	if n.answer, err = c.length("-n", c.Tokens, defaultAnswer, before, context, d); err != nil {
		return n, err
	}
	if n.depth = before; c.Depth == nil {
		n.depth = max(1, min(defaultDepth, context-n.answer))
	}
	if n.prompt == 0 && n.answer == 0 {
		return n, usagef("-p 0 leaves nothing to measure: decode needs a context of 2 tokens, but it is %d", context)
	}
	return n, nil
}

func (c *benchCommand) promptLength(context int, d *realizar.Description) (int, error) {
	return c.length("-p", c.Prompt, defaultPrompt, 0, context, d)
}

// length returns the value of a flag, or else the usual length if it fits into context with besides
// other tokens.
func (c *benchCommand) length(flag string, given *int, usual, besides, context int, d *realizar.Description) (int, error) {
	most := context - besides
	if given == nil {
		return min(usual, most), nil
	}
	if *given == 0 || *given <= most {
		return *given, nil
	}
	need := uint64(*given) + uint64(besides) // the flag may be as large as an int
	way := fmt.Sprintf("lower it to %d at most", most)
	if need <= uint64(d.Dimensions.Context) && c.affordable(int(need), d) {
		way += fmt.Sprintf(", or raise --context to %d", need)
	}
	return 0, usagef("%s %d needs a context of %d tokens, but it is %d; %s", flag, *given, need, context, way)
}

// affordable reports whether the model can be opened with a context.
func (c *benchCommand) affordable(context int, d *realizar.Description) bool {
	o := c.options()
	o.Context = context
	need, err := d.Memory(o)
	if err != nil {
		return false
	}
	taken := need.Resident + need.Scratch
	for _, s := range need.States {
		taken += s.Bytes
	}
	return need.Free == 0 || taken <= need.Free
}
