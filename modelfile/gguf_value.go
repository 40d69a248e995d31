package modelfile

import "encoding/binary"

// A ggufType is the number of a metadata value's type.
type ggufType uint32

const (
	ggufUint8 ggufType = iota
	ggufInt8
	ggufUint16
	ggufInt16
	ggufUint32
	ggufInt32
	ggufFloat32
	ggufBool
	ggufString
	ggufArray
	ggufUint64
	ggufInt64
	ggufFloat64
)

// value reads one value of a type. depth is the number of enclosing arrays.
func (r *ggufReader) value(typ ggufType, depth int) (any, error) {
	switch typ {
	case ggufUint8:
		return scalar[uint8](r)
	case ggufInt8:
		return scalar[int8](r)
	case ggufUint16:
		return scalar[uint16](r)
	case ggufInt16:
		return scalar[int16](r)
	case ggufUint32:
		return scalar[uint32](r)
	case ggufInt32:
		return scalar[int32](r)
	case ggufUint64:
		return scalar[uint64](r)
	case ggufInt64:
		return scalar[int64](r)
	case ggufFloat32:
		return scalar[float32](r)
	case ggufFloat64:
		return scalar[float64](r)
	case ggufBool:
		v, err := r.bools(1)
		if err != nil {
			return nil, err
		}
		return v[0], nil
	case ggufString:
		return r.string("a string")
	case ggufArray:
		return r.array(depth)
	}
	return nil, r.malformed(r.pos-4, "unknown value type %d", typ)
}

// array reads an array: the type of its elements, their number and the elements.
func (r *ggufReader) array(depth int) (any, error) {
	at := r.pos
	if depth >= ggufMaxDepth {
		return nil, r.malformed(at, "arrays more than %d deep", ggufMaxDepth)
	}
	typ, err := r.uint32("the type of an array")
	if err != nil {
		return nil, err
	}
	switch ggufType(typ) {
	case ggufUint8:
		return array[uint8](r)
	case ggufInt8:
		return array[int8](r)
	case ggufUint16:
		return array[uint16](r)
	case ggufInt16:
		return array[int16](r)
	case ggufUint32:
		return array[uint32](r)
	case ggufInt32:
		return array[int32](r)
	case ggufUint64:
		return array[uint64](r)
	case ggufInt64:
		return array[int64](r)
	case ggufFloat32:
		return array[float32](r)
	case ggufFloat64:
		return array[float64](r)
	case ggufBool:
		n, err := r.count(1, "elements")
		if err != nil {
			return nil, err
		}
		return r.bools(n)
	case ggufString:
		return r.strings()
	case ggufArray:
		n, err := r.count(ggufMinArray, "arrays")
		if err != nil {
			return nil, err
		}
		if err := r.charge(at, arrayBytes(n, anyBytes)); err != nil {
			return nil, err
		}
		elements := make([]any, n)
		for i := range elements {
			if elements[i], err = r.array(depth + 1); err != nil {
				return nil, err
			}
		}
		return elements, nil
	}
	return nil, r.malformed(r.pos-4, "unknown type %d of array elements", typ)
}

// arrayBytes returns the memory that an array of n elements of size bytes takes.
func arrayBytes(n, size int) int64 { return 32 + int64(n)*int64(size) }

// strings reads an array of strings. They share one copy of the bytes, because a vocabulary has
// hundreds of thousands of strings.
func (r *ggufReader) strings() ([]string, error) {
	n, err := r.count(ggufMinString, "strings")
	if err != nil {
		return nil, err
	}
	start := r.pos
	if err := r.charge(start, arrayBytes(0, 0)+textBytes(0)); err != nil {
		return nil, err
	}
	for range n {
		at := r.pos
		length, err := r.count(1, "bytes of text")
		if err != nil {
			return nil, err
		}
		if err := r.charge(at, 16+8+int64(length)); err != nil {
			return nil, err
		}
		r.pos += length
	}
	all := string(r.data[start:r.pos])
	elements := make([]string, n)
	at := 0
	for i := range elements {
		length := int(binary.LittleEndian.Uint64(r.data[start+at:]))
		at += 8
		elements[i] = all[at : at+length]
		at += length
	}
	return elements, nil
}

func (r *ggufReader) bools(n int) ([]bool, error) {
	b, err := r.take(n, "a bool")
	if err != nil {
		return nil, err
	}
	if err := r.charge(r.pos-n, arrayBytes(n, 1)); err != nil {
		return nil, err
	}
	v := make([]bool, n)
	for i, c := range b {
		if c > 1 {
			return nil, r.malformed(r.pos-n+i, "a bool of %d, want 0 or 1", c)
		}
		v[i] = c == 1
	}
	return v, nil
}

// A ggufNumber is a number type of metadata.
type ggufNumber interface {
	uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64
}

func scalar[T ggufNumber](r *ggufReader) (any, error) {
	v, err := numbers[T](r, 1)
	if err != nil {
		return nil, err
	}
	return v[0], nil
}

func array[T ggufNumber](r *ggufReader) (any, error) {
	var zero T
	n, err := r.count(binary.Size(zero), "elements")
	if err != nil {
		return nil, err
	}
	return numbers[T](r, n)
}

func numbers[T ggufNumber](r *ggufReader, n int) ([]T, error) {
	var zero T
	size := binary.Size(zero)
	b, err := r.take(n*size, "a number")
	if err != nil {
		return nil, err
	}
	if err := r.charge(r.pos-len(b), arrayBytes(n, size)); err != nil {
		return nil, err
	}
	v := make([]T, n)
	if _, err := binary.Decode(b, binary.LittleEndian, v); err != nil {
		return nil, r.malformed(r.pos, "%v", err)
	}
	return v, nil
}
