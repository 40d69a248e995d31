package modelfile

import (
	"fmt"
	"slices"
	"strings"
)

// conventions are the supported conventions, by the quant_method in config.json.
var conventions = map[string]func(*quantization) *convention{
	"fp8":                blockFP8,
	"fbgemm_fp8":         rowFP8,
	"modelopt":           modeloptFP8,
	"compressed-tensors": compressedTensors,
	"gptq":               gptq,
	"awq":                awq,
	"mxfp4":              mxfp4,
}

// supportedMethods lists the conventions for error messages.
const supportedMethods = "supported are fp8, fbgemm_fp8, modelopt with FP8, compressed-tensors with float-quantized or 4-bit pack-quantized, " +
	"gptq and awq with 4 bits, mxfp4; use those, the model's bf16 files or a GGUF"

// A quantization reads the description of quantized weights in config.json. It keeps the first
// error, about a value that is missing, has the wrong type or is not supported, so that a
// convention reads as a list.
type quantization struct {
	meta   *Meta
	file   string // config.json
	prefix string // of the keys
	err    error
}

// quantizationOf returns the convention that config.json, flattened, names. It returns nil if
// config.json names none.
func quantizationOf(m *Meta, file string) (*convention, error) {
	for _, prefix := range []string{"quantization_config", "compression_config", "text_config.quantization_config"} {
		q := &quantization{meta: m, file: file, prefix: prefix + "."}
		kind := m.Type(prefix)
		if kind == "null" || kind == "" && !q.any("") {
			continue
		}
		method := q.text("quant_method", "")
		read := conventions[method]
		switch {
		case q.err != nil:
		case method == "":
			q.failf(ErrUnsupported, "quant_method", "missing, so it is unknown how the weights are quantized; %s", supportedMethods)
		case read == nil:
			q.failf(ErrUnsupported, "quant_method", "weights quantized by %s; %s", clip(method), supportedMethods)
		default:
			c := read(q)
			return c, q.err
		}
		return nil, q.err
	}
	return nil, nil
}

func (q *quantization) failf(kind error, key, format string, args ...any) {
	if q.err == nil {
		q.err = &FormatError{File: q.file, Key: q.prefix + key, Offset: -1, Problem: fmt.Sprintf(format, args...), Err: kind}
	}
}

// has reports whether key has a value other than null.
func (q *quantization) has(key string) bool {
	t := q.meta.Type(q.prefix + key)
	return t != "" && t != "null"
}

// any reports whether a key with this prefix has a value other than null or an empty object.
func (q *quantization) any(key string) bool {
	return slices.ContainsFunc(q.meta.Keys(), func(k string) bool {
		t := q.meta.Type(k)
		return strings.HasPrefix(k, q.prefix+key) && t != "null" && t != "object"
	})
}

// text returns the string at key, or def if there is none.
func (q *quantization) text(key, def string) string {
	if !q.has(key) {
		return def
	}
	s, ok := q.meta.String(q.prefix + key)
	if !ok {
		q.failf(ErrFormat, key, "of type %s, want a string", q.meta.Type(q.prefix+key))
	}
	return s
}

// flag returns the bool at key, or false if there is none.
func (q *quantization) flag(key string) bool {
	if !q.has(key) {
		return false
	}
	v, ok := q.meta.Bool(q.prefix + key)
	if !ok {
		q.failf(ErrFormat, key, "of type %s, want true or false", q.meta.Type(q.prefix+key))
	}
	return v
}

// integer returns the number at key. A missing key is an error.
func (q *quantization) integer(key string) int {
	n, ok := q.meta.Int(q.prefix + key)
	switch {
	case !q.has(key):
		q.failf(ErrFormat, key, "missing")
	case !ok || int64(int32(n)) != n:
		v, _ := q.meta.Value(q.prefix + key)
		q.failf(ErrFormat, key, "%v of type %s, want an integer", v, q.meta.Type(q.prefix+key))
	}
	return int(n)
}

// only returns the string at key, or def if there is none. It fails unless the string is one of
// supported, ignoring case.
func (q *quantization) only(key, def string, supported ...string) string {
	s := strings.ToLower(q.text(key, def))
	if !slices.Contains(supported, s) {
		q.failf(ErrUnsupported, key, "%s; supported: %s", clip(s), strings.Join(supported, ", "))
	}
	return s
}

// bits fails unless the number of bits at key is 4.
func (q *quantization) bits(key string) {
	if n := q.integer(key); n != 4 {
		q.failf(ErrUnsupported, key, "numbers of %d bits; supported are those of 4", n)
	}
}

// wholeGroup is the size of a group that spans a whole row.
const wholeGroup = -1

// group returns how many elements of a row share a scale.
func (q *quantization) group(key string) int {
	n := q.integer(key)
	switch {
	case n == wholeGroup:
	case n < 1:
		q.failf(ErrFormat, key, "%d, want a number above 0, or -1 for whole rows", n)
	case n%blockElems != 0:
		q.failf(ErrUnsupported, key, "groups of %d elements; supported are multiples of %d", n, blockElems)
	}
	return n
}

// block returns the rows and columns that share a scale. ok is false if key has no value.
func (q *quantization) block(key string) (shape [2]int, ok bool) {
	if !q.has(key) {
		return shape, false
	}
	list, _ := q.meta.Ints(q.prefix + key)
	const most = 1 << 30
	if len(list) != 2 || list[0] < 1 || list[1] < 1 || list[0] > most || list[1] > most {
		v, _ := q.meta.Value(q.prefix + key)
		q.failf(ErrFormat, key, "%v, want the rows and the columns of a block", v)
		return shape, false
	}
	if list[1]%blockElems != 0 {
		q.failf(ErrUnsupported, key, "blocks of %d columns; supported are multiples of %d", list[1], blockElems)
	}
	return [2]int{int(list[0]), int(list[1])}, true
}

// blockElems is the number of elements in a block of every format that weights are converted to.
const blockElems = 32
