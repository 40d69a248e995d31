package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/tensor"
)

// A family is a set of kernels that are compiled together, with their source.
type family struct {
	name, source string
	only         string // the only target to compile for; all targets if empty
}

// ofFormats are the families that exist for each weight format. f32 is the source for F32. others
// is the source for the other float formats and for the formats that products read as bytes.
var ofFormats = []struct{ name, f32, others, only string }{
	{"weights", "#include \"weights.cuh\"\nWEIGHTS(F32)\n", "#include \"weights.cuh\"\nLINEARS(FORMAT)\nWEIGHTS(FORMAT)\n", ""},
	{"floats", "#include \"linear_floats.cuh\"\n#include \"split.cuh\"\nLINEAR_OF_A_ROW(F32)\nLINEAR_SPLIT(F32)\nLINEARS_OF_FLOATS\n", "#include \"linear.cuh\"\nLINEAR_OF_FLOATS(FORMAT)\n", ""},
	{"several", "", "#include \"linear.cuh\"\nLINEARS_OF_SEVERAL(FORMAT)\n", base},
	{"wide", "", "#include \"wide.cuh\"\nWIDES(FORMAT)\n", hopper},
	{"experts", "", "#include \"experts.cuh\"\nEXPERTS(FORMAT)\n", ""},
	{"several_experts", "", "#include \"experts.cuh\"\nEXPERTS_OF_SEVERAL(FORMAT)\n", base},
	{"wide_float8", "", "#include \"wide.cuh\"\nWIDES_FLOAT8(FORMAT)\n", hopper},
	{"wide_experts", "", "#include \"wide.cuh\"\nWIDE_EXPERTS(FORMAT)\n", hopper},
	{"experts_floats", "#include \"experts.cuh\"\nEXPERTS_OF_FLOATS(F32)\n", "#include \"experts.cuh\"\nEXPERTS_OF_FLOATS(FORMAT)\n", ""},
}

// inFloat8 are the formats that products convert to float8 if activations are: those of files with
// numbers of 8 and 16 bits, and the K-quantized ones.
var inFloat8 = []tensor.DType{tensor.F16, tensor.BF16, tensor.F8_E4M3_32, tensor.Q8_0, tensor.Q2_K, tensor.Q3_K, tensor.Q4_K, tensor.Q5_K, tensor.Q6_K}

// has reports whether a family of ofFormats exists for a format. With activations in float32, blocks
// of E4M3 numbers are laid out as F32.
func has(family string, f *tensor.Format) bool {
	switch family {
	case "wide_float8":
		return slices.Contains(inFloat8, f.DType)
	case "floats", "experts_floats":
		return !f.E4M3
	}
	return true
}

// A cache is a format of a KV cache: its name in names of kernels, and that in CUDA C++.
type cache struct{ name, format string }

// caches are the formats of a KV cache other than float32, by name.
var caches = []cache{{"f16", "CacheF16"}, {"q8", "CacheQ8"}, {"f8", "CacheF8"}}

// heads are the head dimensions that have attention kernels; length 0 stands for any. blocks lists
// how many heads a block of a decode step serves with a float32 cache.
var heads = []struct {
	name   string
	length int
	blocks []int
}{{"64", 64, []int{1, 2, 4}}, {"128", 128, []int{1, 2, 4}}, {"any", 0, []int{1, 4}}}

// decodes are the kinds of decode kernels: their names, and the most tokens of a sequence.
var decodes = []struct{ name, most string }{{"decode", "1"}, {"several", "decodeTokens"}}

// families returns all families: one for each .cu file, and those of formats and caches.
func families() ([]family, error) {
	files, err := filepath.Glob("*.cu")
	if err != nil {
		return nil, err
	}
	var all []family
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		all = append(all, family{name: strings.TrimSuffix(f, ".cu"), source: string(text)})
	}
	for _, f := range formats() {
		for _, of := range ofFormats {
			source := of.others
			if f.DType == tensor.F32 {
				source = of.f32
			}
			if source != "" && has(of.name, &f) {
				all = append(all, family{of.name + "_" + strings.ToLower(f.Name), strings.ReplaceAll(source, "FORMAT", f.Name), of.only})
			}
		}
	}
	for _, h := range heads {
		source := "#include \"decode_floats.cuh\"\n"
		for _, n := range h.blocks {
			source += fmt.Sprintf("DECODE_FLOATS(decode_%d, %d, %d)\n", n, h.length, n)
		}
		all = append(all, family{name: "decode_f32_" + h.name, source: source})
		for _, c := range caches {
			attention := fmt.Sprintf("ATTENTION(attend, %s, %d)\n", c.format, h.length)
			decode := ""
			for _, of := range decodes {
				decode += fmt.Sprintf("DECODE_MANY(%s_many, %s, %d, %s)\n", of.name, c.format, h.length, of.most)
				for _, rows := range []int{4, 8} {
					if h.length > 0 {
						decode += fmt.Sprintf("DECODE_ONE(%s_%d, %s, %d, %[2]d, %[5]s)\n", of.name, rows, c.format, h.length, of.most)
					}
				}
			}
			if h.length > 0 {
				decode += fmt.Sprintf("DECODE_WARPS(decode_warps, %s, %d)\n", c.format, h.length)
			} else {
				attention = fmt.Sprintf("ATTENTION_ANY(attend, %s)\n", c.format)
			}
			all = append(all,
				family{name: "attention_" + c.name + "_" + h.name, source: "#include \"attention.cuh\"\n" + attention},
				family{name: "decode_" + c.name + "_" + h.name, source: "#include \"decode_warps.cuh\"\n" + decode})
			if h.length > 0 {
				all = append(all, family{name: "prefix_" + c.name + "_" + h.name, source: fmt.Sprintf("#include \"prefix.cuh\"\nPREFIXES(attend, %s, %d)\n", c.format, h.length)})
			}
		}
	}
	for _, c := range caches { // heads of 256 decode by the kernels for any number of segments
		source := fmt.Sprintf("#include \"decode_warps.cuh\"\nDECODE_WARPS(decode_warps, %s, 256)\n", c.format)
		for _, of := range decodes {
			source += fmt.Sprintf("DECODE_MANY(%s_many, %s, 256, %s)\n", of.name, c.format, of.most)
		}
		all = append(all, family{name: "decode_" + c.name + "_256", source: source})
	}
	for _, dim := range []int{64, 128, 256} {
		all = append(all, family{fmt.Sprint("wide_attention_f16_", dim), fmt.Sprintf("#include \"attention_wide.cuh\"\nATTENTION_WIDE(attend, %d)\n", dim), hopper})
	}
	for _, c := range append(slices.Clone(caches), cache{"f32", "CacheF32"}) {
		all = append(all, family{name: "anyattention_" + c.name, source: fmt.Sprintf("#include \"anyattention.cuh\"\nANY_ATTENTION(%s)\n", c.format)},
			family{name: "score_" + c.name, source: fmt.Sprintf("#include \"score.cuh\"\nSCORE(score, %s)\n", c.format)})
	}
	for _, m := range weights.Mixed {
		all = append(all, family{name: weights.MixedFamily(m[0], m[1]), source: fmt.Sprintf("#include \"linear.cuh\"\nLINEAR_MIXED(mixed_1, %v, %v)\n", m[0], m[1])})
	}
	all = append(all, family{"wide_latent", "#include \"latent_wide.cuh\"\n", hopper})
	all = append(all, family{"wide_quantize", "#include \"quantize.cuh\"\n", hopper})
	all = append(all, family{name: "attention_f32", source: "#include \"attention_floats.cuh\"\nATTENTION_FLOATS(attend)\n"})
	return all, nil
}

// formats returns the weight formats that have kernels.
func formats() []tensor.Format {
	var all []tensor.Format
	for _, f := range tensor.Formats() {
		if f.Planes != nil || f.DType == tensor.F32 || f.DType == tensor.F16 || f.DType == tensor.BF16 {
			all = append(all, f)
		}
	}
	return all
}

// header returns formats.h, which describes the blocks of each format to CUDA C++.
func header() []byte {
	var b strings.Builder
	b.WriteString(`// Code generated by gen from package tensor's table of formats. DO NOT EDIT.
#pragma once

// Blocks of a file: their elements and bytes, how many elements share a factor, and what
// codes are too large by. Of codes, the low bits lie at one byte and in runs of so many, and
// the high ones at another, see tensor.Plane; where there is a table, it says what codes of 4
// bits stand for. The scale is at a byte, and so is the minimum.
namespace file {
`)
	for _, f := range formats() {
		if f.Planes == nil {
			continue
		}
		low, high := f.Planes[0], tensor.Plane{Run: 1}
		if len(f.Planes) > 1 {
			high = f.Planes[1]
		}
		fmt.Fprintf(&b, "struct %s {\n", f.Name)
		fmt.Fprintf(&b, "  static constexpr int fileLen = %d, fileBytes = %d, group = %d, offset = %d;\n", f.BlockLen, f.BlockBytes, f.Group, f.Offset)
		fmt.Fprintf(&b, "  static constexpr int low = %d, lowAt = %d, lowRun = %d;\n", low.Bits, low.At, low.Run)
		fmt.Fprintf(&b, "  static constexpr int high = %d, highAt = %d, highRun = %d;\n", high.Bits, high.At, high.Run)
		fmt.Fprintf(&b, "  static constexpr int scaleAt = %d;\n", f.Scales[0])
		if len(f.Scales) > 1 {
			fmt.Fprintf(&b, "  static constexpr int minimumAt = %d;\n", f.Scales[1])
		}
		fmt.Fprintf(&b, "  static constexpr bool minimum = %t, table = %t;\n", f.Minimum != tensor.NoMinimum, f.Table != nil)
		for i := 0; i < len(f.Table); i += 4 {
			fmt.Fprintf(&b, "  static constexpr unsigned table%d = 0x%02x%02x%02x%02x;\n", i/4, uint8(f.Table[i+3]), uint8(f.Table[i+2]), uint8(f.Table[i+1]), uint8(f.Table[i]))
		}
		b.WriteString("};\n")
	}
	b.WriteString("} // namespace file\n")
	return []byte(b.String())
}
