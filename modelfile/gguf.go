package modelfile

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/realizar/realizar/tensor"
)

// GGUF, as ggml's docs/gguf.md describes it: a header with counts, key/value pairs, tensor
// descriptions, and, from the next multiple of the alignment, the data of the tensors. All numbers
// are little-endian.
const (
	ggufMagic        = "GGUF"
	ggufAlignmentKey = "general.alignment"
	ggufAlignment    = 32 // the default
	ggufMaxDims      = 4
	ggufMaxDepth     = 16 // arrays within arrays
)

// The minimum sizes of parts of a file, in bytes. Counts are checked against the rest of the file
// before anything is allocated.
const (
	ggufMinPair   = 8 + 4 + 1     // key length, type, the shortest value
	ggufMinTensor = 8 + 4 + 4 + 8 // name length, number of dimensions, type, offset
	ggufMinString = 8             // length
	ggufMinArray  = 4 + 8         // type, length
)

// The memory in bytes that a pair and a tensor take besides their names and values: slices that
// have grown to size, and map slots.
const (
	ggufPairBytes  = 256
	ggufEntryBytes = 768
)

// A ggufReader parses a GGUF file. key and tensor name what is being read, for errors.
type ggufReader struct {
	file   string
	data   []byte // the whole file
	pos    int
	memory *allowance // for everything but the tensors' data
	key    string
	tensor string

	alignmentAt int // position of the pair with the alignment
}

// readGGUF reads the metadata and tensors of a GGUF file. The tensors are views of data, sorted by
// their position in the file.
func readGGUF(file string, data []byte, memory *allowance) (*Meta, []*tensor.Tensor, error) {
	r := &ggufReader{file: file, data: data, memory: memory}
	tensors, pairs, err := r.header()
	if err != nil {
		return nil, nil, err
	}
	meta := new(Meta)
	for range pairs {
		if err := r.pair(meta); err != nil {
			return nil, nil, err
		}
	}
	alignment, err := r.alignment(meta)
	if err != nil {
		return nil, nil, err
	}
	infos, err := r.tensorInfos(tensors)
	if err != nil {
		return nil, nil, err
	}
	views, err := r.views(infos, alignment)
	return meta, views, err
}

// header reads the magic, the version and the counts of tensors and pairs.
func (r *ggufReader) header() (tensors, pairs int, err error) {
	magic, err := r.take(4, "the magic")
	if err != nil {
		return 0, 0, err
	}
	if string(magic) != ggufMagic {
		return 0, 0, r.malformed(0, "magic %q instead of %q", magic, ggufMagic)
	}
	version, err := r.uint32("the version")
	if err != nil {
		return 0, 0, err
	}
	switch {
	case version == 2 || version == 3:
	case version&0xffff == 0 && version != 0:
		return 0, 0, r.unsupported(4, "GGUF version %d in big-endian order; convert the file to little-endian", version>>24)
	default:
		return 0, 0, r.unsupported(4, "GGUF version %d; versions 2 and 3 are supported; convert the model again", version)
	}
	if tensors, err = r.count(ggufMinTensor, "tensors"); err != nil {
		return 0, 0, err
	}
	pairs, err = r.count(ggufMinPair, "key/value pairs")
	return tensors, pairs, err
}

// pair reads one key and its value into meta.
func (r *ggufReader) pair(meta *Meta) error {
	at := r.pos
	if err := r.charge(at, ggufPairBytes); err != nil {
		return err
	}
	key, err := r.string("a key")
	if err != nil {
		return err
	}
	r.key = key
	if !printable(key) {
		return r.malformed(at, "the key is not printable UTF-8")
	}
	typ, err := r.uint32("the type of a value")
	if err != nil {
		return err
	}
	value, err := r.value(ggufType(typ), 0)
	if err != nil {
		return err
	}
	if !meta.set(key, value) {
		return r.malformed(at, "the key appears twice")
	}
	if key == ggufAlignmentKey {
		r.alignmentAt = at
	}
	r.key = ""
	return nil
}

// alignment returns the alignment of tensor offsets and of the start of the tensor data, in bytes.
func (r *ggufReader) alignment(meta *Meta) (int, error) {
	if meta.Type(ggufAlignmentKey) == "" {
		return ggufAlignment, nil
	}
	r.key = ggufAlignmentKey
	n, ok := meta.Int(ggufAlignmentKey)
	if !ok {
		return 0, r.malformed(r.alignmentAt, "alignment of type %s instead of uint32", meta.Type(ggufAlignmentKey))
	}
	if !ggufAligns(n) {
		return 0, r.malformed(r.alignmentAt, "alignment %d is neither a power of two nor a multiple of 8, below 2^31", n)
	}
	r.key = ""
	return int(n), nil
}

// ggufAligns reports whether n is a valid alignment: a multiple of 8, as the format's description
// requires, or a power of two, as llama.cpp does.
func ggufAligns(n int64) bool {
	return n > 0 && n <= math.MaxInt32 && (n%8 == 0 || n&(n-1) == 0)
}

// A ggufTensor is a tensor's description.
type ggufTensor struct {
	name   string
	shape  []int // outermost dimension first
	dtype  tensor.DType
	offset uint64 // from the start of the tensor data
	size   int    // bytes
	at     int    // position of the description in the file
}

func (r *ggufReader) tensorInfos(n int) ([]ggufTensor, error) {
	// n was checked against the whole file, but the metadata may have taken most of it.
	if most := (len(r.data) - r.pos) / ggufMinTensor; n > most {
		return nil, r.cut(r.pos, "%d tensors, but the file has room for %d", n, most)
	}
	var infos []ggufTensor
	seen := make(map[string]struct{})
	for range n {
		info, err := r.tensorInfo()
		if err != nil {
			return nil, err
		}
		if _, ok := seen[info.name]; ok {
			return nil, r.malformed(info.at, "the tensor appears twice")
		}
		seen[info.name] = struct{}{}
		infos = append(infos, info)
		r.tensor = ""
	}
	return infos, nil
}

func (r *ggufReader) tensorInfo() (ggufTensor, error) {
	t := ggufTensor{at: r.pos}
	err := r.charge(t.at, ggufEntryBytes)
	if err != nil {
		return t, err
	}
	if t.name, err = r.string("a tensor's name"); err != nil {
		return t, err
	}
	r.tensor = t.name
	if !printable(t.name) {
		return t, r.malformed(t.at, "the name is not printable UTF-8")
	}
	dims, err := r.uint32("the number of dimensions")
	if err != nil {
		return t, err
	}
	if dims > ggufMaxDims {
		return t, r.malformed(r.pos-4, "%d dimensions, more than %d", dims, ggufMaxDims)
	}
	t.shape = make([]int, dims)
	for i := range t.shape {
		dim, err := r.uint64("a dimension")
		if err != nil {
			return t, err
		}
		if dim == 0 || dim > math.MaxInt {
			return t, r.malformed(r.pos-8, "dimension %d of %d elements", i, dim)
		}
		t.shape[len(t.shape)-1-i] = int(dim) // the file has the innermost dimension first
	}
	typ, err := r.uint32("the type of a tensor")
	if err != nil {
		return t, err
	}
	name, dtype, ok := ggmlDType(typ)
	switch {
	case ok:
		t.dtype = dtype
	case name == "":
		return t, r.unsupported(r.pos-4, "unknown ggml type %d", typ)
	default:
		return t, r.unsupported(r.pos-4, "ggml type %s", name)
	}
	if t.offset, err = r.uint64("the offset of a tensor"); err != nil {
		return t, err
	}
	t.size, err = sizeOf(dtype, t.shape)
	if err != nil {
		return t, r.malformed(t.at, "%v", err)
	}
	return t, nil
}

// views creates tensors from their descriptions, sorted by offset. Their data must be within the
// file and must not overlap.
func (r *ggufReader) views(infos []ggufTensor, alignment int) ([]*tensor.Tensor, error) {
	slices.SortFunc(infos, func(a, b ggufTensor) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.at, b.at))
	})
	start := r.pos + (alignment-r.pos%alignment)%alignment
	room := uint64(max(0, len(r.data)-start))
	tensors := make([]*tensor.Tensor, len(infos))
	all := make([]tensor.Tensor, len(infos))
	for i, t := range infos {
		r.tensor = t.name
		if t.offset%uint64(alignment) != 0 {
			return nil, r.malformed(t.at, "data offset %d is not a multiple of the alignment %d", t.offset, alignment)
		}
		if t.offset > room || uint64(t.size) > room-t.offset {
			return nil, r.cut(t.at, "data of %d bytes at offset %d reaches beyond the %d bytes of tensor data in the file",
				t.size, t.offset, room)
		}
		if i > 0 {
			if before := infos[i-1]; before.offset+uint64(before.size) > t.offset {
				return nil, r.malformed(t.at, "data at offset %d overlaps that of tensor %s, %d bytes at offset %d",
					t.offset, clip(before.name), before.size, before.offset)
			}
		}
		from := start + int(t.offset)
		all[i] = tensor.Tensor{Name: t.name, DType: t.dtype, Shape: t.shape, Data: r.data[from : from+t.size : from+t.size]}
		tensors[i] = &all[i]
	}
	return tensors, nil
}

// sizeOf returns the size of a tensor in bytes. Its rows must be whole blocks.
func sizeOf(d tensor.DType, shape []int) (int, error) {
	elems, err := tensor.Elems(shape)
	if err != nil {
		return 0, err
	}
	t := tensor.Tensor{DType: d, Shape: shape}
	if block := d.BlockLen(); t.Cols()%block != 0 {
		return 0, fmt.Errorf("rows of %d elements are not a multiple of the %d in a block of %v", t.Cols(), block, d)
	}
	return d.Size(elems)
}

// take returns the next n bytes and moves past them.
func (r *ggufReader) take(n int, what string) ([]byte, error) {
	if left := len(r.data) - r.pos; n > left {
		return nil, r.cut(r.pos, "the file ends within %s: %d bytes needed, %d left", what, n, left)
	}
	b := r.data[r.pos : r.pos+n]
	r.pos += n
	return b, nil
}

func (r *ggufReader) uint32(what string) (uint32, error) {
	b, err := r.take(4, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (r *ggufReader) uint64(what string) (uint64, error) {
	b, err := r.take(8, what)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// count reads a number of items that take at least size bytes each, and checks it against the rest
// of the file.
func (r *ggufReader) count(size int, what string) (int, error) {
	n, err := r.uint64("a count")
	if err != nil {
		return 0, err
	}
	if most := uint64((len(r.data) - r.pos) / size); n > most {
		return 0, r.cut(r.pos-8, "%d %s, but the file has room for %d", n, what, most)
	}
	return int(n), nil
}

// string reads a string of arbitrary bytes: vocabulary pieces need not be UTF-8.
func (r *ggufReader) string(what string) (string, error) {
	at := r.pos
	n, err := r.count(1, "bytes of text")
	if err != nil {
		return "", err
	}
	if err := r.charge(at, textBytes(n)+16); err != nil {
		return "", err
	}
	b, err := r.take(n, what)
	return string(b), err
}

// charge counts n bytes to be allocated for the item at position at.
func (r *ggufReader) charge(at int, n int64) error {
	if !r.memory.spend(n) {
		return r.malformed(at, "the header expands out of proportion: it would take more than %d bytes of memory", r.memory.most)
	}
	return nil
}

func (r *ggufReader) malformed(at int, format string, args ...any) error {
	return r.error(ErrFormat, at, format, args...)
}

// incomplete ends the message for a file that is shorter than it says.
const incomplete = "; it is probably an incomplete download"

// cut returns an error for a file that is shorter than it says.
func (r *ggufReader) cut(at int, format string, args ...any) error {
	return r.malformed(at, format+incomplete, args...)
}

func (r *ggufReader) unsupported(at int, format string, args ...any) error {
	return r.error(ErrUnsupported, at, format, args...)
}

func (r *ggufReader) error(kind error, at int, format string, args ...any) error {
	return &FormatError{
		File:    r.file,
		Key:     r.key,
		Tensor:  r.tensor,
		Offset:  int64(at),
		Problem: fmt.Sprintf(format, args...),
		Err:     kind,
	}
}
