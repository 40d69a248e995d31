package driver

import "unsafe"

// A TensorMap describes a tensor in device memory to the copy engine of capability 9.0 (TMA). It is
// a kernel parameter; see [Args.TensorMap].
type TensorMap struct {
	opaque [16]uint64
}

const tensorMapAlign = 128 // the driver requires 64 bytes, newer headers 128

// A TensorType is the type of a tensor map's elements, a CUtensorMapDataType.
type TensorType uint32

// The types of elements.
const (
	TensorUint8    TensorType = 0
	TensorUint16   TensorType = 1
	TensorUint32   TensorType = 2
	TensorInt32    TensorType = 3
	TensorUint64   TensorType = 4
	TensorInt64    TensorType = 5
	TensorFloat16  TensorType = 6
	TensorFloat32  TensorType = 7
	TensorFloat64  TensorType = 8
	TensorBFloat16 TensorType = 9
)

// A Swizzle is the way a box's bytes are spread over the banks of shared memory, a
// CUtensorMapSwizzle. The box's innermost dimension must not exceed the swizzle's size in bytes.
type Swizzle uint32

// The swizzles.
const (
	SwizzleNone Swizzle = 0
	Swizzle32   Swizzle = 1
	Swizzle64   Swizzle = 2
	Swizzle128  Swizzle = 3
)

// A Promotion is the minimum size of fetches by the second-level cache, a CUtensorMapL2promotion.
type Promotion uint32

// The promotions.
const (
	PromotionNone Promotion = 0
	Promotion64   Promotion = 1
	Promotion128  Promotion = 2
	Promotion256  Promotion = 3
)

// A TiledTensor describes a tensor for a tensor map. Dimensions begin with the innermost, whose
// elements are adjacent. There are at most 5.
type TiledTensor struct {
	Type      TensorType
	Address   DevicePtr // a multiple of 16
	Shape     []uint64  // [rank], elements
	Strides   []uint64  // [rank-1], bytes between indexes of dimensions 1 and up: multiples of 16
	Box       []uint32  // [rank], elements of one copy, at most 256
	Swizzle   Swizzle
	Promotion Promotion
	NaN       bool // elements outside the tensor are NaN, not 0
}

const maxTensorRank = 5

// encoding is the memory that cuTensorMapEncodeTiled reads and writes.
type encoding struct {
	out     [2*tensorMapAlign - 8]byte // a tensor map, at whatever offset the alignment requires
	shape   [maxTensorRank]uint64
	strides [maxTensorRank]uint64
	box     [maxTensorRank]uint32
	steps   [maxTensorRank]uint32
}

// EncodeTensorMap creates a tensor map. It does not access the device.
func (c *Context) EncodeTensorMap(t TiledTensor) (TensorMap, error) {
	rank := len(t.Shape)
	if rank < 1 || rank > maxTensorRank || len(t.Strides) != rank-1 || len(t.Box) != rank {
		return TensorMap{}, c.invalid(fnTensorMapEncodeTiled, "a shape of %d dimensions, %d strides, a box of %d; there are 1 to %d dimensions, one stride less and a box of as many", rank, len(t.Strides), len(t.Box), maxTensorRank)
	}
	e := &encoding{}
	copy(e.shape[:], t.Shape)
	copy(e.strides[:], t.Strides)
	copy(e.box[:], t.Box)
	for i := range rank {
		e.steps[i] = 1
	}
	var fill uintptr
	if t.NaN {
		fill = 1
	}
	base := c.hold(unsafe.Pointer(e))
	shift := -(base + unsafe.Offsetof(e.out)) & (tensorMapAlign - 1)
	const interleaveNone = 0
	if err := c.do(fnTensorMapEncodeTiled, base+unsafe.Offsetof(e.out)+shift, uintptr(t.Type), uintptr(rank), uintptr(t.Address),
		base+unsafe.Offsetof(e.shape), base+unsafe.Offsetof(e.strides), base+unsafe.Offsetof(e.box), base+unsafe.Offsetof(e.steps),
		interleaveNone, uintptr(t.Swizzle), uintptr(t.Promotion), fill); err != nil {
		return TensorMap{}, err
	}
	var m TensorMap
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&m.opaque)), unsafe.Sizeof(m.opaque)), e.out[shift:])
	return m, nil
}
