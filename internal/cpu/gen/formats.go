package main

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/realizar/realizar/tensor"
)

// A format computes values and scales from the words and heads of interleaved rows, with one row
// per lane. Places are byte offsets in a block of the format.
type format struct {
	tensor.Format
	sub    int // number of values in a piece, which share a scale here and in a record
	signed bool
	head   head
	// scale returns the scale of a piece and, unless values are signed, the minimum to add.
	scale func(e *env, piece int) (scale, low reg.VecVirtual)
}

// A head is the part of a block that is stored separately.
type head struct{ at, count, width int }

func (h head) bytes() int { return h.count * h.width }

// scales has the functions of formats whose groups have a factor each.
var scales = map[tensor.DType]func(e *env, piece int) (scale, low reg.VecVirtual){
	tensor.Q2_K:   scaleQ2,
	tensor.Q3_K:   scaleQ3,
	tensor.Q4_K:   scaleK4,
	tensor.Q5_K:   scaleK4,
	tensor.Q6_K:   scaleQ6,
	tensor.IQ4_XS: scaleIQ4,
}

// formats are those whose products are computed in bytes, small blocks first.
var formats = func() (all []*format) {
	for _, t := range tensor.Formats() {
		if t.InBytes {
			all = append(all, formatOf(t))
		}
	}
	slices.SortStableFunc(all, func(a, b *format) int { return a.BlockLen - b.BlockLen })
	return all
}()

func formatOf(t tensor.Format) *format {
	f := &format{Format: t, sub: min(t.Group, 32), signed: t.Minimum == tensor.NoMinimum}
	f.head = head{at: t.Scales[0], count: len(t.Scales), width: 2}
	f.scale = headScale
	if t.Scale == tensor.E8M0Scale {
		f.head.width, f.scale = 1, headPower
	}
	for (t.BlockBytes-f.head.bytes())%4 != 0 { // the rest of a block is a whole number of 32-bit words
		f.head.count++
	}
	if t.Factor.Bits > 0 {
		f.scale = scales[t.DType]
	}
	return f
}

// most returns the largest magnitude of a value.
func (f *format) most() (most int) {
	for _, v := range f.Levels() {
		most = max(most, int(v), -int(v))
	}
	return most
}

// raises reports whether values keep their bit positions and are too large by powers of two. The
// scales compensate, which costs nothing since they are computed for each piece anyway.
func (f *format) raises() bool { return len(f.Planes) == 1 && !f.signed && f.Factor.Bits > 0 }

// mask returns the lowest bits of a plane in a byte.
func mask(p tensor.Plane) byte { return byte(1<<p.Bits - 1) }

// masks returns the constants of groups in wide registers.
func (f *format) masks() (all []byte) {
	low := f.Planes[0]
	if low.Bits == 8 {
		return []byte{0x80}
	}
	all = []byte{mask(low)}
	if f.raises() {
		for up := low.Bits; up < 8; up += low.Bits {
			all = append(all, mask(low)<<up)
		}
	}
	for _, high := range f.Planes[1:] {
		all = append(all, mask(high)<<low.Bits)
	}
	return all
}

// group returns group g of four values, as bytes.
func (e *env) group(g int) reg.VecVirtual {
	low := e.Planes[0]
	at, up := low.Place(4 * g)
	if low.Bits == 8 {
		if !e.wide() {
			return e.column(at)
		}
		return e.xor(e.column(at), e.octets(0x80))
	}
	if e.raises() && e.wide() {
		return e.and(e.column(at), e.octets(mask(low)<<up))
	}
	v := e.and(e.shift(e.column(at), up), e.octets(mask(low)))
	for _, high := range e.Planes[1:] {
		if high.Run == 1 {
			v = e.fifth(high.At, g, v)
			continue
		}
		at, up := high.Place(4 * g)
		v = e.join(v, e.shift(e.column(at), up-low.Bits), e.octets(mask(high)<<low.Bits))
	}
	switch {
	case e.Table != nil:
		return e.lookUp(v)
	case e.signed:
		return e.less(v)
	}
	return v
}

// lookUp returns the table's values of four-bit codes.
func (e *env) lookUp(v reg.VecVirtual) reg.VecVirtual {
	table, ok := e.constant(e.stands()).(reg.VecVirtual)
	if !ok {
		table = e.quarters(e.stands())
	}
	out := e.vec()
	VPSHUFB(v, table, out)
	return out
}

// less subtracts the format's offset from unsigned values.
func (e *env) less(v reg.VecVirtual) reg.VecVirtual {
	if e.bias == e.Offset {
		return v
	}
	return e.addBytes(v, e.octets(byte(e.bias-e.Offset)))
}

// fifth adds the fifth bits to v, which is group g. Bit i of the words at offset at is that of
// value i.
func (e *env) fifth(at, g int, v reg.VecVirtual) reg.VecVirtual {
	var spread, which [16]byte
	for i := range 16 {
		spread[i] = byte(i/4*4 + g/2)
		which[i] = 1 << (g%2*4 + i%4)
	}
	bytes, ones := e.shuffle(e.column(at), e.constant(spread)), e.constant(which)
	if e.wide() {
		k := K()
		VPTESTMB(ones, bytes, k)
		VPADDB(e.octets(16), v, k, v)
		return v
	}
	found := e.and(bytes, ones)
	VPCMPEQB(ones, found, found)
	return e.join(v, found, e.octets(16))
}

// headScale returns the scale in the head and, if there is one, the minimum after it.
func headScale(e *env, _ int) (scale, low reg.VecVirtual) {
	scale = e.keep("d", func() reg.VecVirtual { return e.half(0) })
	if !e.signed {
		low = e.keep("low", func() reg.VecVirtual { return e.half(1) })
	}
	return scale, low
}

// headPower returns half the power of two in the head: values are doubled.
func headPower(e *env, _ int) (scale, low reg.VecVirtual) {
	v := e.vec()
	VPMOVZXBD(e.headAt(0), v)
	return e.powers(v), nil
}

// powers returns 2^(v-128), NaN for 255.
func (e *env) powers(v reg.VecVirtual) reg.VecVirtual {
	out, small := e.vec(), e.vec()
	VPSLLD(operand.U8(23), e.subWords(v, e.word(1)), out)
	VPSLLVD(v, e.everywhere(pattern([16]byte{2: 0x20})), small) // for 0 and 1 the power is below the normal numbers
	if e.wide() {
		k := K()
		VPCMPD(operand.U8(1), e.word(2), v, k)
		VMOVDQA32(small, k, out)
		k = K()
		VPCMPD(operand.U8(0), e.word(255), v, k)
		VMOVDQU32(e.word(0x7fc00000), k, out) // patterns are not aligned
		return out
	}
	is := e.vec()
	VPCMPGTD(e.word(1), v, is)
	VPBLENDVB(is, out, small, out)
	VPCMPEQD(e.word(255), v, is)
	VPBLENDVB(is, e.word(0x7fc00000), out, out)
	return out
}

// byteAt returns byte i of each lane as an unsigned number.
func (e *env) byteAt(v operand.Op, i int) reg.VecVirtual {
	var p [16]byte
	for j := range p {
		p[j] = 0x80
		if j%4 == 0 {
			p[j] = byte(j + i)
		}
	}
	return e.shuffle(v, e.constant(p))
}

// scaled returns d times numbers.
func (e *env) scaled(d, numbers reg.VecVirtual) reg.VecVirtual {
	VCVTDQ2PS(numbers, numbers)
	VMULPS(d, numbers, numbers)
	return numbers
}

// halves returns the scale and the negated minimum of the whole block.
func (e *env) halves() (d, low reg.VecVirtual) {
	d = e.keep("d", func() reg.VecVirtual { return e.half(0) })
	low = e.keep("low", func() reg.VecVirtual { return e.xor(e.half(1), e.word(1<<31)) })
	return d, low
}

// scaleK4 decodes six bits each: those of the first four pieces are in one byte, those of the
// others in four bits and two bits.
func scaleK4(e *env, piece int) (scale, low reg.VecVirtual) {
	d, m := e.halves()
	six := func(at, up int) reg.VecVirtual {
		return e.keep(fmt.Sprint(at, piece/4), func() reg.VecVirtual {
			v := e.load(e.place(at))
			if piece < 4 {
				return e.and(v, e.octets(63))
			}
			return e.join(e.and(e.shift(e.load(e.place(12)), up), e.octets(15)), e.shift(v, 2), e.octets(0x30))
		})
	}
	return e.scaled(d, e.byteAt(six(4, 0), piece%4)), e.scaled(m, e.byteAt(six(8, 4), piece%4))
}

func scaleQ2(e *env, piece int) (scale, low reg.VecVirtual) {
	d, m := e.halves()
	four := func(up int) reg.VecVirtual {
		return e.keep(fmt.Sprint(piece/4, up), func() reg.VecVirtual {
			return e.and(e.shift(e.load(e.place(piece/4*4)), up), e.octets(15))
		})
	}
	return e.scaled(d, e.byteAt(four(0), piece%4)), e.scaled(m, e.byteAt(four(4), piece%4))
}

// scaleQ3 decodes six bits: four in the first eight bytes, two in the last four.
func scaleQ3(e *env, piece int) (scale, low reg.VecVirtual) {
	d := e.keep("d", func() reg.VecVirtual { return e.half(0) })
	i := piece / 4
	six := e.keep(fmt.Sprint(i), func() reg.VecVirtual {
		v := e.and(e.shift(e.load(e.place(96+i%2*4)), i/2*4), e.octets(15))
		return e.join(v, e.shift(e.load(e.place(104)), 2*i-4), e.octets(0x30))
	})
	return e.scaled(d, e.subWords(e.byteAt(six, piece%4), e.word(32))), nil
}

func scaleQ6(e *env, piece int) (scale, low reg.VecVirtual) {
	d := e.keep("d", func() reg.VecVirtual { return e.half(0) })
	four := e.keep(fmt.Sprint(piece/4), func() reg.VecVirtual { return e.load(e.place(192 + piece/4*4)) })
	return e.scaled(d, e.signedByte(four, piece%4)), nil
}

// scaleIQ4 decodes six bits: four in nibbles, two in the head.
func scaleIQ4(e *env, piece int) (scale, low reg.VecVirtual) {
	d := e.keep("d", func() reg.VecVirtual { return e.half(0) })
	high := e.keep("high", func() reg.VecVirtual {
		v := e.vec()
		VPMOVZXWD(e.headAt(1), v)
		return v
	})
	v := e.and(e.shift(e.load(e.place(4)), 4*piece), e.word(15))
	v = e.join(v, e.shift(high, 2*piece-4), e.word(0x30))
	return e.scaled(d, e.subWords(v, e.word(32))), nil
}
