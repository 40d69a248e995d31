package modelfile

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/realizar/realizar/tensor"
)

// safetensors, as huggingface/safetensors describes it: the length of the header
// in 8 bytes, little-endian; the header, a JSON object of tensors by name; the
// tensors' data, without gaps.
const (
	safetensorsPrefix      = 8           // bytes of the header's length
	safetensorsMaxHeader   = 100_000_000 // bytes, the limit of the reference implementation
	safetensorsMetadataKey = "__metadata__"
)

// A safetensorsEntry is a tensor's description in the header.
type safetensorsEntry struct {
	name       string
	dtype      string
	shape      []int
	begin, end int // of the data, from the end of the header
	at         int // where the description stands in the header
	given      [3]bool
}

// readSafetensors reads the tensors of a safetensors file, as views of data in
// the order of their data.
func readSafetensors(file string, data []byte) ([]*tensor.Tensor, error) {
	if len(data) < safetensorsPrefix {
		return nil, &FormatError{File: file, Offset: 0, Err: ErrFormat,
			Problem: fmt.Sprintf("the file ends after %d of the %d bytes of the header's length", len(data), safetensorsPrefix)}
	}
	n := binary.LittleEndian.Uint64(data)
	body := data[safetensorsPrefix:]
	if n > safetensorsMaxHeader || n > uint64(len(body)) {
		return nil, &FormatError{File: file, Offset: 0, Err: ErrFormat,
			Problem: fmt.Sprintf("a header of %d bytes, where the file has %d more and %d are allowed",
				n, len(body), safetensorsMaxHeader)}
	}
	r := &safetensorsReader{
		scanner: jsonScanner{file: file, data: body[:n], base: safetensorsPrefix},
		data:    body[n:],
	}
	entries, err := r.header()
	if err != nil {
		return nil, err
	}
	return r.views(entries)
}

type safetensorsReader struct {
	scanner jsonScanner
	data    []byte // of the tensors
}

func (r *safetensorsReader) header() ([]safetensorsEntry, error) {
	s := &r.scanner
	var entries []safetensorsEntry
	seen := make(map[string]struct{})
	err := s.object(func(name string, at int) error {
		if _, ok := seen[name]; ok {
			return r.malformed(name, at, "the name stands twice in the header")
		}
		seen[name] = struct{}{}
		if name == safetensorsMetadataKey {
			_, err := s.value()
			return err
		}
		e, err := r.entry(name, at)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	return entries, s.end()
}

// entry reads the description of one tensor.
func (r *safetensorsReader) entry(name string, at int) (safetensorsEntry, error) {
	s := &r.scanner
	e := safetensorsEntry{name: name, at: at}
	members := [...]string{"dtype", "shape", "data_offsets"}
	err := s.object(func(key string, at int) error {
		which := slices.Index(members[:], key)
		if which < 0 {
			_, err := s.value()
			return err
		}
		if e.given[which] {
			return r.malformed(name, at, "%s stands twice", key)
		}
		e.given[which] = true
		var err error
		switch key {
		case "dtype":
			s.peek()
			e.dtype, err = s.string()
		case "shape":
			e.shape, err = r.integers(name)
		case "data_offsets":
			var offsets []int
			if offsets, err = r.integers(name); err != nil {
				return err
			}
			if len(offsets) != 2 {
				return r.malformed(name, at, "%d numbers in data_offsets instead of 2", len(offsets))
			}
			e.begin, e.end = offsets[0], offsets[1]
		}
		return err
	})
	if err != nil {
		return e, err
	}
	for i, given := range e.given {
		if !given {
			return e, r.malformed(name, at, "%s is missing", members[i])
		}
	}
	return e, nil
}

// integers reads an array of integers that are not negative.
func (r *safetensorsReader) integers(name string) ([]int, error) {
	s := &r.scanner
	list := []int{}
	err := s.array(func() error {
		s.peek()
		at := s.pos
		v, err := s.scalar()
		if err != nil {
			return err
		}
		n, ok := v.(int64)
		if !ok || n < 0 || int64(int(n)) != n {
			return r.malformed(name, at, "%v where an integer of at least 0 is due", v)
		}
		list = append(list, int(n))
		return nil
	})
	return list, err
}

// views makes tensors of their descriptions, sorted by the place of their data,
// which must cover the rest of the file without gap or overlap.
func (r *safetensorsReader) views(entries []safetensorsEntry) ([]*tensor.Tensor, error) {
	slices.SortStableFunc(entries, func(a, b safetensorsEntry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	tensors := make([]*tensor.Tensor, len(entries))
	covered, last := 0, ""
	for i, e := range entries {
		d, err := tensor.ParseDType(e.dtype)
		if err != nil || d.Quantized() || d.String() != e.dtype {
			return nil, r.error(ErrUnsupported, e.name, e.at, "dtype %s", clip(e.dtype))
		}
		size, err := sizeOf(d, e.shape)
		if err != nil {
			return nil, r.malformed(e.name, e.at, "%v", err)
		}
		if e.begin > e.end || e.end > len(r.data) {
			return nil, r.malformed(e.name, e.at, "data_offsets %d to %d in %d bytes of data", e.begin, e.end, len(r.data))
		}
		if e.end-e.begin != size {
			return nil, r.malformed(e.name, e.at, "%v %v takes %d bytes and data_offsets %d to %d give it %d",
				d, e.shape, size, e.begin, e.end, e.end-e.begin)
		}
		if e.begin < covered {
			return nil, r.malformed(e.name, e.at, "data from %d on overlaps that of tensor %s, which ends at %d",
				e.begin, clip(last), covered)
		}
		if e.begin > covered {
			return nil, r.malformed(e.name, e.at, "%d bytes before its data, from %d on, belong to no tensor",
				e.begin-covered, covered)
		}
		covered, last = e.end, e.name
		tensors[i] = &tensor.Tensor{Name: e.name, DType: d, Shape: e.shape, Data: r.data[e.begin:e.end:e.end]}
	}
	if covered != len(r.data) {
		return nil, &FormatError{
			File:    r.scanner.file,
			Offset:  safetensorsPrefix + int64(len(r.scanner.data)) + int64(covered),
			Problem: fmt.Sprintf("the last %d bytes belong to no tensor", len(r.data)-covered),
			Err:     ErrFormat,
		}
	}
	return tensors, nil
}

func (r *safetensorsReader) malformed(name string, at int, format string, args ...any) error {
	return r.error(ErrFormat, name, at, format, args...)
}

func (r *safetensorsReader) error(kind error, name string, at int, format string, args ...any) error {
	return &FormatError{
		File:    r.scanner.file,
		Tensor:  name,
		Offset:  safetensorsPrefix + int64(at),
		Problem: fmt.Sprintf(format, args...),
		Err:     kind,
	}
}
