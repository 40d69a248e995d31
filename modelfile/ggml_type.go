package modelfile

import "github.com/realizar/realizar/tensor"

// ggmlTypes maps the numbers of ggml's tensor types to formats.
var ggmlTypes = func() map[uint32]tensor.DType {
	all := map[uint32]tensor.DType{}
	for _, f := range tensor.Formats() {
		if f.GGML >= 0 {
			all[uint32(f.GGML)] = f.DType
		}
	}
	return all
}()

// unreadTypes are the names of types that package tensor has no format for, including types that
// are no longer used (enum ggml_type of ggml.h).
var unreadTypes = map[uint32]string{
	4: "Q4_2", 5: "Q4_3", 9: "Q8_1", 15: "Q8_K", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8",
	36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8", 40: "NVFP4", 41: "Q1_0", 42: "Q2_0",
}

// ggmlDType returns the name and the format of a ggml type. The name is empty if the type is
// unknown. ok is false if the format cannot be read.
func ggmlDType(id uint32) (name string, d tensor.DType, ok bool) {
	if d, ok = ggmlTypes[id]; ok {
		return d.String(), d, true
	}
	return unreadTypes[id], 0, false
}

// ggmlID returns the number of the ggml type of a format, and whether ggml has one.
func ggmlID(d tensor.DType) (uint32, bool) {
	f := d.Format()
	return uint32(f.GGML), f.GGML >= 0
}
