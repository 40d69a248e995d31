package modelfile

import "github.com/realizar/realizar/tensor"

// ggmlTypes are the names of ggml's tensor types by their number in a GGUF file
// (enum ggml_type of ggml.h), those that files no longer use included. A type can
// be read when package tensor knows a format of its name.
var ggmlTypes = [...]string{
	0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 4: "Q4_2", 5: "Q4_3", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1",
	10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K",
	16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
	24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16",
	31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8", 34: "TQ1_0", 35: "TQ2_0",
	36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8", 39: "MXFP4", 40: "NVFP4", 41: "Q1_0", 42: "Q2_0",
}

// ggmlDType returns the name and the format of a ggml type; the name is empty when
// the number is unknown, and ok tells whether the format can be read.
func ggmlDType(id uint32) (name string, d tensor.DType, ok bool) {
	if id >= uint32(len(ggmlTypes)) {
		return "", 0, false
	}
	name = ggmlTypes[id]
	d, err := tensor.ParseDType(name)
	return name, d, err == nil
}

// ggmlID returns the number of the ggml type of that format, and whether ggml has
// one.
func ggmlID(d tensor.DType) (uint32, bool) {
	for id, name := range ggmlTypes {
		if name == d.String() {
			return uint32(id), true
		}
	}
	return 0, false
}
