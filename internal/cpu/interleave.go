package cpu

import "encoding/binary"

// An interleaved weight is a quantized weight whose rows are interleaved by the number of lanes in
// a register: kernels load data in the order in which they use it, sequentially, in the layout of
// registers.
//
// Rows are taken in groups of lanes; the last group is padded with rows of zero bits. A group
// consists of the 32-bit words of its blocks without their heads, then the heads:
//
//	[blocks][words of a block][lanes] words
//	[blocks][count of a head][lanes] numbers
//
// It begins at a multiple of 64 bytes.
type interleaved struct {
	format *blockFormat
	lanes  int
	words  wordsFunc // or nil
	rows   int
	blocks int    // blocks per row
	data   []byte // [groups]
}

// A wordsFunc interleaves words 32-bit words of each of the lanes' rows. Rows are stride bytes
// apart, less than maxWordsStride.
type wordsFunc func(to, from []byte, stride, words int)

// maxWordsStride keeps the distance to the last of 16 rows below 2^31.
const maxWordsStride = 1 << 27

// words returns the number of 32-bit words of a block without its head.
func (f *blockFormat) words() int { return (f.bytes - f.head.bytes()) / 4 }

// groups returns the number of groups.
func (w *interleaved) groups() int { return (w.rows + w.lanes - 1) / w.lanes }

// groupBytes returns the size of a group in bytes.
func (w *interleaved) groupBytes() int { return (w.lanes*w.blocks*w.format.bytes + 63) &^ 63 }

// bytes returns the size of data in bytes.
func (w *interleaved) bytes() int { return w.groups() * w.groupBytes() }

// fill writes groups lo to hi, which must be zero. src holds their rows.
func (w *interleaved) fill(src []byte, lo, hi int) {
	size := w.blocks * w.format.bytes
	for g := lo; g < hi; g++ {
		rows := src[(g-lo)*w.lanes*size:]
		s := w.section(g, 1)
		for i := range w.blocks {
			if w.words != nil && size < maxWordsStride && len(rows) >= w.lanes*size {
				s.setBlocks(rows[i*w.format.bytes:], w, size, i)
				continue
			}
			for r := range min(w.lanes, len(rows)/size) {
				s.setBlock(rows[r*size+i*w.format.bytes:][:w.format.bytes], w, i, r)
			}
		}
	}
}

// row reads row r into dst.
func (w *interleaved) row(dst []byte, r int) {
	s := w.section(r/w.lanes, 1)
	for i := range w.blocks {
		s.block(dst[i*w.format.bytes:][:w.format.bytes], w.format, w.lanes, 0, i, r%w.lanes)
	}
}

// A section is a sequence of groups.
type section struct {
	words, heads   []byte // from the first group to the end of the weight
	stride         int    // bytes between groups
	groups, blocks int
}

// section returns groups groups from g on.
func (w *interleaved) section(g, groups int) section {
	data := w.data[g*w.groupBytes():]
	return section{words: data, heads: data[w.blocks*w.format.words()*4*w.lanes:], stride: w.groupBytes(), groups: groups, blocks: w.blocks}
}

// setBlocks writes block i of all rows of the first group; the rows in src are size bytes apart.
func (s *section) setBlocks(src []byte, w *interleaved, size, i int) {
	f, h := w.format, w.format.head
	to := s.words[i*f.words()*4*w.lanes:]
	if h.at > 0 {
		w.words(to, src, size, h.at/4)
	}
	if end := h.at + h.bytes(); end < f.bytes {
		w.words(to[h.at*w.lanes:], src[end:], size, (f.bytes-end)/4)
	}
	for r := range w.lanes {
		s.setHead(src[r*size:], w, i, r)
	}
}

// setBlock writes block i of row r of the first group.
func (s *section) setBlock(src []byte, w *interleaved, i, r int) {
	le, f, h := binary.LittleEndian, w.format, w.format.head
	to := s.words[(i*f.words()*w.lanes+r)*4:]
	at := 0
	for _, part := range [2][]byte{src[:h.at], src[h.at+h.bytes():]} {
		for ; len(part) >= 4; part = part[4:] {
			le.PutUint32(to[at:], le.Uint32(part))
			at += 4 * w.lanes
		}
	}
	s.setHead(src, w, i, r)
}

func (s *section) setHead(src []byte, w *interleaved, i, r int) {
	h := w.format.head
	for c := range h.count {
		copy(s.heads[((i*h.count+c)*w.lanes+r)*h.width:], src[h.at+c*h.width:][:h.width])
	}
}

// block reads block i of row r of group g.
func (s *section) block(dst []byte, f *blockFormat, lanes, g, i, r int) {
	h := f.head
	words, heads := s.words[g*s.stride+(i*f.words()*lanes+r)*4:], s.heads[g*s.stride:]
	at := 0
	for _, part := range [2][]byte{dst[:h.at], dst[h.at+h.bytes():]} {
		for ; len(part) > 0; part = part[4:] {
			copy(part[:4], words[at:])
			at += 4 * lanes
		}
	}
	for c := range h.count {
		copy(dst[h.at+c*h.width:][:h.width], heads[((i*h.count+c)*lanes+r)*h.width:])
	}
}
