package sample

import "math/bits"

// philox returns Philox4x32-10 of counter and key, the counter-based generator of Salmon, Moraes,
// Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011: ten rounds of a keyed
// bijection on 128 bits. It has no state, so the number for a position does not require the numbers
// before it.
func philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	const (
		multiplier0, multiplier1 = 0xD2511F53, 0xCD9E8D57
		weyl0, weyl1             = 0x9E3779B9, 0xBB67AE85 // added to the key after each round
	)
	for range 10 {
		hi0, lo0 := bits.Mul32(multiplier0, counter[0])
		hi1, lo1 := bits.Mul32(multiplier1, counter[2])
		counter = [4]uint32{hi1 ^ counter[1] ^ key[0], lo1, hi0 ^ counter[3] ^ key[1], lo0}
		key[0] += weyl0
		key[1] += weyl1
	}
	return counter
}

// uniform returns 64 random bits for the token at position pos of an answer. Key and counter
// together identify the token; the counter's last word is 0.
func uniform(seed uint64, choice uint32, pos uint64) uint64 {
	r := philox(
		[4]uint32{uint32(pos), uint32(pos >> 32), choice, 0},
		[2]uint32{uint32(seed), uint32(seed >> 32)},
	)
	return uint64(r[1])<<32 | uint64(r[0])
}
