package modelfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/realizar/realizar/tensor"
)

// safetensors, as huggingface/safetensors describes it: the length of the header in 8 bytes,
// little-endian; the header, a JSON object of tensors by name; the data of the tensors, without
// gaps.
const (
	safetensorsPrefix      = 8           // bytes of the header's length
	safetensorsMaxHeader   = 100_000_000 // bytes, the limit of the reference implementation
	safetensorsMetadataKey = "__metadata__"
	// The most dimensions that any program gives a tensor: the limit of NumPy.
	safetensorsMaxDims = 64
)

// The memory in bytes that a tensor takes: its description, and, besides that and the name, the
// tensor and its slots in slices and a map that have grown to size.
const (
	safetensorsEntryBytes  = 72
	safetensorsTensorBytes = 256
)

// A safetensorsEntry is a tensor's description in the header.
type safetensorsEntry struct {
	name       string
	dtype      tensor.DType
	shape      []int
	begin, end int // of the data, from the end of the header
	at         int // position of the description in the header
}

// readSafetensors reads the tensors of a safetensors file. They are views of data, sorted by their
// position in the file.
func readSafetensors(file string, data []byte, memory *allowance) ([]*tensor.Tensor, error) {
	if len(data) < safetensorsPrefix {
		return nil, &FormatError{File: file, Offset: 0, Err: ErrFormat,
			Problem: fmt.Sprintf("the file ends after %d of the %d bytes of the header's length"+incomplete, len(data), safetensorsPrefix)}
	}
	n := binary.LittleEndian.Uint64(data)
	body := data[safetensorsPrefix:]
	if n > safetensorsMaxHeader {
		return nil, &FormatError{File: file, Offset: 0, Err: ErrFormat,
			Problem: fmt.Sprintf("a header of %d bytes, more than %d", n, safetensorsMaxHeader)}
	}
	if n > uint64(len(body)) {
		return nil, &FormatError{File: file, Offset: 0, Err: ErrFormat,
			Problem: fmt.Sprintf("a header of %d bytes, but %d bytes follow in the file"+incomplete, n, len(body))}
	}
	r := &safetensorsReader{
		scanner: jsonScanner{file: file, data: body[:n], base: safetensorsPrefix, memory: memory},
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
	expected := bytes.Count(s.data, []byte(`"data_offsets"`))
	if err := s.charge(0, safetensorsEntryBytes*int64(expected)); err != nil {
		return nil, err
	}
	entries := make([]safetensorsEntry, 0, expected)
	metadata := false
	more, err := s.begin('{')
	for more {
		key, at, err := s.key()
		if err != nil {
			return nil, err
		}
		if string(key) == safetensorsMetadataKey {
			if metadata {
				return nil, r.twice(safetensorsMetadataKey, at)
			}
			metadata = true
			err = s.skip()
		} else {
			var e safetensorsEntry
			if e, err = r.entry(key, at); err == nil {
				entries, err = push(s, entries, e, safetensorsEntryBytes)
			}
		}
		if err != nil {
			return nil, err
		}
		if more, err = s.next('{'); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b safetensorsEntry) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.at, b.at))
	})
	for i := 1; i < len(entries); i++ {
		if e := &entries[i]; e.name == entries[i-1].name {
			return nil, r.twice(e.name, e.at)
		}
	}
	return entries, nil
}

func (r *safetensorsReader) twice(name string, at int) error {
	return r.malformed(name, at, "the name appears twice in the header")
}

// entry reads the description of one tensor. at is the position of its name. The name may be a view
// of the text.
func (r *safetensorsReader) entry(view []byte, at int) (safetensorsEntry, error) {
	s := &r.scanner
	e := safetensorsEntry{at: at}
	if err := s.charge(at, safetensorsTensorBytes+textBytes(len(view))); err != nil {
		return e, err
	}
	name := string(view)
	e.name = name
	if !printable(name) {
		return e, r.malformed(name, at, "the name is not printable")
	}
	members := [...]string{"dtype", "shape", "data_offsets"}
	var given [len(members)]bool
	more, err := s.begin('{')
	for more {
		key, at, err := s.key()
		if err != nil {
			return e, err
		}
		which := slices.Index(members[:], string(key))
		if which >= 0 {
			if given[which] {
				return e, r.malformed(name, at, "%s appears twice", members[which])
			}
			given[which] = true
		}
		switch which {
		case 0:
			err = r.dtype(&e)
		case 1:
			e.shape, err = r.integers(name)
		case 2:
			err = r.offsets(&e, at)
		default:
			err = s.skip()
		}
		if err != nil {
			return e, err
		}
		if more, err = s.next('{'); err != nil {
			return e, err
		}
	}
	if err != nil {
		return e, err
	}
	for i, given := range given {
		if !given {
			return e, r.malformed(name, at, "%s is missing", members[i])
		}
	}
	return e, nil
}

// dtype reads the format of a tensor.
func (r *safetensorsReader) dtype(e *safetensorsEntry) error {
	s := &r.scanner
	s.peek()
	at := s.pos
	text, err := s.bytes()
	if err != nil {
		return err
	}
	if err := s.charge(at, textBytes(len(text))); err != nil {
		return err
	}
	name := string(text)
	d, err := tensor.ParseDType(name[:min(len(name), 32)]) // longer than any format's name
	if err != nil || d.Quantized() || d.String() != name {
		return r.error(ErrUnsupported, e.name, at, "dtype %s", clip(name))
	}
	e.dtype = d
	return nil
}

// offsets reads the range of a tensor's data. at is the position of the member.
func (r *safetensorsReader) offsets(e *safetensorsEntry, at int) error {
	offsets, err := r.integers(e.name)
	if err != nil {
		return err
	}
	if len(offsets) != 2 {
		return r.malformed(e.name, at, "%d numbers in data_offsets instead of 2", len(offsets))
	}
	e.begin, e.end = offsets[0], offsets[1]
	return nil
}

// integers reads a short array of non-negative integers.
func (r *safetensorsReader) integers(name string) ([]int, error) {
	s := &r.scanner
	var list [safetensorsMaxDims]int
	n := 0
	more, err := s.begin('[')
	for more {
		s.peek()
		at := s.pos
		if n == len(list) {
			return nil, r.error(ErrUnsupported, name, at, "more than %d dimensions", len(list))
		}
		if s.pos < len(s.data) && s.data[s.pos] == '"' {
			return nil, r.malformed(name, at, "a string, want an integer of at least 0")
		}
		v, err := s.scalar()
		if err != nil {
			return nil, err
		}
		i, ok := v.(int64)
		if !ok || i < 0 || int64(int(i)) != i {
			return nil, r.malformed(name, at, "%v, want an integer of at least 0", v)
		}
		list[n] = int(i)
		n++
		if more, err = s.next('['); err != nil {
			return nil, err
		}
	}
	if err == nil {
		err = s.charge(s.pos, textBytes(8*n))
	}
	if err != nil {
		return nil, err
	}
	return append(make([]int, 0, n), list[:n]...), nil
}

// views creates tensors from their descriptions, sorted by offset. Their data must cover the rest
// of the file without gaps or overlaps.
func (r *safetensorsReader) views(entries []safetensorsEntry) ([]*tensor.Tensor, error) {
	slices.SortFunc(entries, func(a, b safetensorsEntry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.at, b.at))
	})
	tensors := make([]*tensor.Tensor, len(entries))
	all := make([]tensor.Tensor, len(entries))
	covered, last := 0, ""
	for i, e := range entries {
		size, err := sizeOf(e.dtype, e.shape)
		if err != nil {
			return nil, r.malformed(e.name, e.at, "%v", err)
		}
		if e.begin > e.end {
			return nil, r.malformed(e.name, e.at, "data_offsets %d to %d", e.begin, e.end)
		}
		if e.end > len(r.data) {
			return nil, r.malformed(e.name, e.at, "data_offsets %d to %d in %d bytes of data"+incomplete, e.begin, e.end, len(r.data))
		}
		if e.end-e.begin != size {
			return nil, r.malformed(e.name, e.at, "%v %v takes %d bytes, but data_offsets %d to %d give it %d",
				e.dtype, e.shape, size, e.begin, e.end, e.end-e.begin)
		}
		if e.begin < covered {
			return nil, r.malformed(e.name, e.at, "data from byte %d overlaps that of tensor %s, which ends at %d",
				e.begin, clip(last), covered)
		}
		if e.begin > covered {
			return nil, r.malformed(e.name, e.at, "the %d bytes before its data, from byte %d, belong to no tensor",
				e.begin-covered, covered)
		}
		covered, last = e.end, e.name
		all[i] = tensor.Tensor{Name: e.name, DType: e.dtype, Shape: e.shape, Data: r.data[e.begin:e.end:e.end]}
		tensors[i] = &all[i]
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
