package plan

import "slices"

// A Scratch assigns each value of a program to a buffer of the scratch memory. Values whose
// lifetimes do not overlap share buffers.
type Scratch struct {
	Buffer []int // by Value: index into Widths, -1 for a value that no stage writes
	Widths []int // by buffer: columns
	Dims   []Dim // by buffer: the dimension of its rows
}

// A Stage is a part of a program that a backend runs as one. In are the values that it reads. Out
// are the values that it writes for other stages or as outputs of the program.
type Stage struct{ In, Out []Value }

// Stages returns the nodes of p, each as a stage of its own.
func (p *Program) Stages() []Stage {
	var all []Stage
	for i := range p.Nodes {
		all = append(all, Stage{In: p.Nodes[i].In, Out: []Value{p.Nodes[i].Out}})
	}
	return all
}

// PlanScratch assigns buffers in the order of stages. A value takes the narrowest free buffer that
// is wide enough, or else widens the widest free one. A stage never writes to a buffer that it
// reads. The program's outputs and its residual keep their buffers to the end of the step.
func PlanScratch(p *Program, stages []Stage) *Scratch {
	s := &Scratch{Buffer: make([]int, len(p.Shapes))}
	last := make([]int, len(p.Shapes)) // the last stage that reads the value
	for v := range s.Buffer {
		s.Buffer[v], last[v] = -1, -1
	}
	for i, st := range stages {
		for _, v := range slices.Concat(st.Out, st.In) {
			last[v] = i
		}
	}
	for _, v := range p.Kept() {
		last[v] = len(stages)
	}
	var free []int
	for i, st := range stages {
		for _, v := range st.Out {
			s.Buffer[v] = s.take(&free, p.Shapes[v])
		}
		for v, at := range last {
			if at == i {
				free = append(free, s.Buffer[v])
			}
		}
	}
	return s
}

// take removes a buffer from free, or adds one.
func (s *Scratch) take(free *[]int, shape [2]Dim) int {
	width, best := int(shape[1]), -1
	for i, f := range *free {
		if s.Dims[f] != shape[0] {
			continue
		}
		if best < 0 {
			best = i
			continue
		}
		w, b := s.Widths[f], s.Widths[(*free)[best]]
		if fits := w >= width; fits && (b < width || w < b) || !fits && w > b {
			best = i
		}
	}
	if best < 0 {
		s.Widths, s.Dims = append(s.Widths, width), append(s.Dims, shape[0])
		return len(s.Widths) - 1
	}
	f := (*free)[best]
	*free = append((*free)[:best], (*free)[best+1:]...)
	s.Widths[f] = max(s.Widths[f], width)
	return f
}

// Bytes returns the size of the buffers in bytes, in float32, for the largest step of l. stride
// returns the distance of rows in elements for a number of columns.
func (s *Scratch) Bytes(l *Limits, stride func(width int) int) int {
	n := 0
	for i, w := range s.Widths {
		n += 4 * stride(w) * l.Size(s.Dims[i])
	}
	return n
}

// Size returns the largest value of d in a step.
func (l *Limits) Size(d Dim) int {
	switch d {
	case Tokens:
		return l.Tokens
	case Seqs:
		return l.Seqs
	case Rows:
		return l.Rows
	}
	return int(d)
}
