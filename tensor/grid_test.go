package tensor

import (
	"crypto/sha256"
	"fmt"
	"testing"
)

// The grids equal those of ggml-common.h in every point; reference data covers only some of them.
// The checksums are of that file's tables, one byte per coordinate.
func TestGrids(t *testing.T) {
	for _, test := range []struct {
		name string
		got  []byte
		want string
	}{
		{"iq1s_grid", coordinates8(iq1Grid()[:]), "07540ffc1aeaf6ad4d97e96b0fcc765aae39671d4ae4a27bbd0e796fde167c6a"},
		{"iq2xxs_grid", coordinates8(iq2xxsGrid()[:]), "05826b5d3e472a3a78f196be62ac78acf81df0f909626e12ab9fa2a5d490dd54"},
		{"iq2xs_grid", coordinates8(iq2xsGrid()[:]), "06e47aaca60b4dc1d9b5a3f34540437058a6b142b4d7a59d5ded769b4d1bf1de"},
		{"iq2s_grid", coordinates8(iq2sGrid()[:]), "e1aa1473412b0552c2174c30ef22ab4073f6a181b85a17056e8249bd2932fd88"},
		{"iq3xxs_grid", coordinates4(iq3xxsGrid()[:]), "46e35f5a997efdee6c99ce57854c8a0d4f0ff8ca57e5e8a60c0793ea580acf5d"},
		{"iq3s_grid", coordinates4(iq3sGrid()[:]), "bd1af4945a1717c65610b0284e4628b9a1ba3b306fae3a06f6e5f597356e349f"},
	} {
		if got := fmt.Sprintf("%x", sha256.Sum256(test.got)); got != test.want {
			t.Errorf("%s: the checksum of %d coordinates is %s, want %s", test.name, len(test.got), got, test.want)
		}
	}
}

func coordinates8(points []point8) (all []byte) {
	for _, p := range points {
		for _, v := range p {
			all = append(all, byte(v))
		}
	}
	return all
}

func coordinates4(points []point4) (all []byte) {
	for _, p := range points {
		for _, v := range p {
			all = append(all, byte(v))
		}
	}
	return all
}

// Seven stored signs belong to seven values, and the eighth sign makes the number of negative
// values even.
func TestSigns7(t *testing.T) {
	for stored := range uint32(1 << 8) {
		negative := 0
		for j := range 8 {
			sign := signed(3, signs7(stored), j)
			if sign < 0 {
				negative++
			}
			if j < 7 && sign != 3-6*float32(stored>>j&1) {
				t.Errorf("signs %#x: value %d is %v", stored, j, sign)
			}
		}
		if negative%2 != 0 {
			t.Errorf("signs %#x: %d values are negative", stored, negative)
		}
	}
}
