package jsonschema

import (
	"fmt"
	"math/big"
)

// and returns the rule of the numbers within both rules.
func (r *numberRule) and(o *numberRule) numberRule {
	out := *r
	out.integer = r.integer || o.integer
	switch {
	case out.multipleOf == nil:
		out.multipleOf = o.multipleOf
	case o.multipleOf != nil:
		both := leastCommon(*r.multipleOf, *o.multipleOf)
		out.multipleOf = &both
	}
	if o.min != nil {
		switch {
		case r.min != nil && o.min.compare(*r.min) < 0:
		case r.min != nil && o.min.compare(*r.min) == 0:
			out.exclusiveMin = r.exclusiveMin || o.exclusiveMin
		default:
			out.min, out.exclusiveMin = o.min, o.exclusiveMin
		}
	}
	if o.max != nil {
		switch {
		case r.max != nil && o.max.compare(*r.max) > 0:
		case r.max != nil && o.max.compare(*r.max) == 0:
			out.exclusiveMax = r.exclusiveMax || o.exclusiveMax
		default:
			out.max, out.exclusiveMax = o.max, o.exclusiveMax
		}
	}
	return out
}

// leastCommon returns the least common multiple of a and b.
func leastCommon(a, b decimal) decimal {
	scale := max(a.scale, b.scale)
	x, y := a.unscaled(scale), b.unscaled(scale)
	n := new(big.Int).Mul(x, y)
	n.Div(n, new(big.Int).GCD(nil, nil, x, y))
	return decimal{digits: n.String(), scale: scale}.normal()
}

// contains reports whether a number is within the rule.
func (r *numberRule) contains(d decimal) bool {
	if r.min != nil {
		if o := d.compare(*r.min); o < 0 || o == 0 && r.exclusiveMin {
			return false
		}
	}
	if r.max != nil {
		if o := d.compare(*r.max); o > 0 || o == 0 && r.exclusiveMax {
			return false
		}
	}
	return (r.multipleOf == nil || d.multipleOf(*r.multipleOf)) && (!r.integer || d.isInteger())
}

// key returns the same text for equal rules.
func (r *numberRule) key() string {
	text := func(d *decimal, exclusive bool) string {
		switch {
		case d == nil:
			return ""
		case exclusive:
			return d.String() + "!"
		}
		return d.String()
	}
	return fmt.Sprintf("%s %s %s %t ", text(r.min, r.exclusiveMin), text(r.max, r.exclusiveMax), text(r.multipleOf, false), r.integer)
}
