package main

import "testing"

func TestByteSize(t *testing.T) {
	var s byteSize
	if err := s.UnmarshalText([]byte("1.5 GiB")); err != nil || s != 3<<29 {
		t.Errorf("1.5 GiB is %d, %v", s, err)
	}
	if err := s.UnmarshalText([]byte("8X")); err == nil || s != 3<<29 {
		t.Errorf("8X is %d, want an error", s)
	}
}
