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

func TestMemoryLimit(t *testing.T) {
	var l memoryLimit
	if err := l.UnmarshalText([]byte("25%")); err != nil || l != (memoryLimit{Fraction: 0.25}) {
		t.Errorf("25%% is %+v, %v", l, err)
	}
	if err := l.UnmarshalText([]byte("101%")); err == nil || l != (memoryLimit{Fraction: 0.25}) {
		t.Errorf("101%% is %+v, want an error", l)
	}
}
