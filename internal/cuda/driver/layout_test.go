package driver

import (
	"testing"
	"unsafe"
)

// The structures that the driver reads have the layout of cuda.h.
func TestLayouts(t *testing.T) {
	var l launchSpace
	var a launchAttribute
	for _, test := range []struct {
		name      string
		got, want uintptr
	}{
		{"CUlaunchConfig.sharedMemBytes", unsafe.Offsetof(l.config.shared), 24},
		{"CUlaunchConfig.hStream", unsafe.Offsetof(l.config.stream), 32},
		{"CUlaunchConfig.attrs", unsafe.Offsetof(l.config.attributes), 40},
		{"CUlaunchConfig.numAttrs", unsafe.Offsetof(l.config.count), 48},
		{"CUlaunchConfig", unsafe.Sizeof(l.config), 56},
		{"CUlaunchAttribute.value", unsafe.Offsetof(a.value), 8},
		{"CUlaunchAttribute", unsafe.Sizeof(a), 72},
		{"CUtensorMap", unsafe.Sizeof(TensorMap{}), 128},
	} {
		if test.got != test.want {
			t.Errorf("%s: %d, want %d", test.name, test.got, test.want)
		}
	}
}

func TestSymbols(t *testing.T) {
	seen := map[string]function{}
	for f, symbol := range symbols {
		if symbol == "" {
			t.Errorf("function %d has no symbol", f)
		}
		if other, ok := seen[symbol]; ok {
			t.Errorf("%s is both function %d and %d", symbol, other, f)
		}
		seen[symbol] = function(f)
	}
}
