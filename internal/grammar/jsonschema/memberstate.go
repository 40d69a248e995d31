package jsonschema

import "math"

// A memberState is the state after some members.
type memberState struct {
	next   int   // index of the first key that may follow, in the form's order
	wanted uint8 // demands not yet met
	count  int   // number of members, capped by counted
}

// counted returns n, capped at the minimum if there is no maximum.
func (f *objectForm) counted(n int) int {
	if f.max < 0 {
		return min(n, f.min)
	}
	return n
}

const never = math.MaxInt32

// need returns the least number of members from key next on that contain all required keys and meet
// the demands, or never if none do.
func (f *objectForm) need(next int, wanted uint8) int {
	if f.needs == nil {
		f.needs = make([][]int, len(f.keys)+1)
	}
	for i := len(f.keys); i >= next; i-- {
		if f.needs[i] == nil {
			f.needs[i] = f.needsFrom(i)
		}
	}
	return f.needs[next][wanted]
}

// needsFrom returns row i of f.needs, given row i+1.
func (f *objectForm) needsFrom(i int) []int {
	row := make([]int, int(f.wanted)+1)
	if i == len(f.keys) {
		return f.openNeeds(row)
	}
	key, after := &f.keys[i], f.needs[i+1]
	for wanted := range row {
		row[wanted] = never
		if !key.required {
			row[wanted] = after[wanted]
		}
		for _, v := range key.variants {
			if v.goal.inhabited {
				row[wanted] = min(row[wanted], 1+after[uint8(wanted)&^v.claims])
			}
		}
	}
	return row
}

func (f *objectForm) openNeeds(row []int) []int {
	for wanted := 1; wanted < len(row); wanted++ {
		row[wanted] = never
		for _, open := range f.open {
			for _, v := range open.variants {
				if left := uint8(wanted) &^ v.claims; v.goal.inhabited && int(left) < wanted {
					row[wanted] = min(row[wanted], 1+row[left])
				}
			}
		}
	}
	return row
}

// room returns the largest number of members that may follow from key next on.
func (f *objectForm) room(next int) int {
	for _, open := range f.open {
		if usable(open.variants) {
			return never
		}
	}
	n := 0
	for _, key := range f.keys[next:] {
		if usable(key.variants) {
			n++
		}
	}
	return n
}

func usable(variants []variant) bool {
	for _, v := range variants {
		if v.goal.inhabited {
			return true
		}
	}
	return false
}

// alive reports whether an object can be completed from state s.
func (f *objectForm) alive(s memberState) bool {
	need := f.need(s.next, s.wanted)
	if need >= never || f.max >= 0 && max(f.min, s.count+need) > f.max {
		return false
	}
	return s.count+need >= f.min || s.count+f.room(s.next) >= f.min
}

// inhabited reports whether the form has an object, as far as goals are known to have values.
func (f *objectForm) inhabited() bool {
	f.needs = nil
	return f.alive(memberState{wanted: f.wanted})
}
