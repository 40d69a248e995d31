package plan

import (
	"errors"
	"fmt"
	"strings"
)

// Gather joins the columns that the parts of a program have computed, see [GatherAttr].
var Gather = &Op{Name: "gather"}

// GatherAttr holds the parameters of [Gather], an all-gather among executables that run the parts of
// one program at the same time. Part i holds columns Columns[i] of a value; every part's result is
// the whole value, [rows, Columns[last].Hi]. A column that several parts hold has the same bits in
// each, and is read from the first of them. Nothing is added, so the bits are those of a program
// that is not divided.
type GatherAttr struct{ Columns Cut }

func (a GatherAttr) String() string { return "{" + a.Columns.String() + "}" }

// ErrPeer reports that a step of a part of a program failed because that of another part did.
var ErrPeer = errors.New("another part of the model failed")

// A Range is the numbers Lo <= i < Hi.
type Range struct{ Lo, Hi int }

// Len returns the size of r.
func (r Range) Len() int { return r.Hi - r.Lo }

// A Cut divides columns, rows of a weight or heads among the parts of a program: a range for each
// part, in ascending order. Neighbors may overlap, but there are no gaps.
type Cut []Range

func (c Cut) String() string {
	var s []string
	for _, r := range c {
		s = append(s, fmt.Sprintf("%d:%d", r.Lo, r.Hi))
	}
	return strings.Join(s, " ")
}

// New returns the range of numbers that part i is the first to have.
func (c Cut) New(i int) Range {
	r := c[i]
	if i > 0 {
		r.Lo = max(r.Lo, c[i-1].Hi)
	}
	return r
}
