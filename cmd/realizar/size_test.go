package main

import "testing"

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "12b": 12, "512MiB": 512 << 20, "8GiB": 8 << 30, "4G": 4 << 30, "4g": 4 << 30, "1.5 GiB": 3 << 29,
		"64K": 64 << 10, "2T": 2 << 40, "3kb": 3000, "3MB": 3e6, "3 GB": 3e9, " 1TB ": 1e12, "1e3": 1000,
	} {
		var s byteSize
		if err := s.UnmarshalText([]byte(text)); err != nil || int64(s) != want {
			t.Errorf("%q is %d, %v, want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "G", "8X", "-1", "-8GiB", "8GiBs", "nan", "inf", "1e30", "9000000T", "1 2", "0x"} {
		s := byteSize(7)
		if err := s.UnmarshalText([]byte(text)); err == nil || s != 7 {
			t.Errorf("%q is %d, want an error", text, s)
		}
	}
}
