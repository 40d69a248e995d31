package sample

import "testing"

// The known answers published by the authors with Random123 1.14 (kat_vectors).
func TestPhiloxKnownAnswers(t *testing.T) {
	const ones = 0xffffffff
	for _, test := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{
			[4]uint32{}, [2]uint32{},
			[4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
		},
		{
			[4]uint32{ones, ones, ones, ones}, [2]uint32{ones, ones},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := philox(test.counter, test.key); got != test.want {
			t.Errorf("philox(%#x, %#x) = %#x, want %#x", test.counter, test.key, got, test.want)
		}
	}
}

// Every bit of seed, choice and position reaches the generator.
func TestUniformDependsOnEveryBit(t *testing.T) {
	seen := map[uint64]string{uniform(0, 0, 0): "nothing set"}
	note := func(u uint64, what string) {
		if other, ok := seen[u]; ok {
			t.Errorf("%s gives the same number as %s", what, other)
		}
		seen[u] = what
	}
	for i := range 64 {
		note(uniform(1<<i, 0, 0), "a seed bit")
		note(uniform(0, 0, 1<<i), "a position bit")
	}
	for i := range 32 {
		note(uniform(0, 1<<i, 0), "a choice bit")
	}
	if want := uint64(0xe169c58d6627e8d5); uniform(0, 0, 0) != want {
		t.Errorf("uniform(0, 0, 0) = %#x, want %#x", uniform(0, 0, 0), want)
	}
}
