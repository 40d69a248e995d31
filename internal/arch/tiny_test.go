package arch_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

var update = flag.Bool("update", false, "rewrite the golden programs")

// A tiny describes a model file: its metadata and the shapes of its tensors, whose values are
// random.
type tiny struct {
	config  map[string]any
	tensors map[string][]int
	dtypes  map[string]tensor.DType // F32 by default
	gguf    bool
}

// Marks in the names of a tiny's tensors: # stands for the number of each layer, @ for that of each
// expert.
const (
	tinyLayers  = 2
	tinyExperts = 4
)

// with returns the tiny with other values and shapes; nil removes an entry.
func (m tiny) with(config map[string]any, tensors map[string][]int) tiny {
	m.config, m.tensors = maps.Clone(m.config), maps.Clone(m.tensors)
	for key, value := range config {
		if m.config[key] = value; value == nil {
			delete(m.config, key)
		}
	}
	maps.Copy(m.tensors, tensors)
	return m
}

// architecture returns the architecture in the model's metadata.
func (m tiny) architecture() string {
	if m.gguf {
		name, _ := m.config["general.architecture"].(string)
		return name
	}
	list, _ := m.config["architectures"].([]any)
	if len(list) == 0 {
		return ""
	}
	name, _ := list[0].(string)
	return name
}

// write writes the model: a folder with a config.json, or a GGUF file, whose keys are given without
// the architecture's prefix.
func (m tiny) write(t *testing.T) string {
	t.Helper()
	shapes := expand(expand(m.tensors, "#", tinyLayers), "@", tinyExperts)
	dtypes := expand(expand(m.dtypes, "#", tinyLayers), "@", tinyExperts)
	maps.DeleteFunc(shapes, func(_ string, shape []int) bool { return shape == nil })
	rng := rand.New(rand.NewPCG(5, 6))
	var list []*tensor.Tensor
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		w := plantest.Weight(rng, name, dtypes[name], 0.15, shapes[name]...)
		switch {
		case strings.HasSuffix(name, ".ssm_a"): // decays in F32
			for i := 3; i < len(w.Data); i += 4 {
				w.Data[i] |= 0x80
			}
		case strings.HasPrefix(name, "rope_f"): // factors, which are positive
			for i := range w.Elems() {
				binary.LittleEndian.PutUint32(w.Data[4*i:], math.Float32bits(float32(i+1)))
			}
		case strings.Contains(name, "tid2eid"): // numbers of experts
			for i := range w.Elems() {
				binary.LittleEndian.PutUint32(w.Data[4*i:], math.Float32bits(float32(i%tinyExperts)))
			}
		}
		list = append(list, w)
	}
	return writeModel(t, m.config, list, m.gguf)
}

// writeModel writes a model of given values.
func writeModel(t *testing.T, config map[string]any, list []*tensor.Tensor, gguf bool) string {
	t.Helper()
	var weights bytes.Buffer
	files := map[string][]byte{}
	if gguf {
		if err := modelfile.WriteGGUF(&weights, ggufMeta(config), list); err != nil {
			t.Fatal(err)
		}
		files["model.gguf"] = weights.Bytes()
	} else {
		data, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := modelfile.WriteSafetensors(&weights, list); err != nil {
			t.Fatal(err)
		}
		files["config.json"], files["model.safetensors"] = data, weights.Bytes()
	}
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if gguf {
		return filepath.Join(dir, "model.gguf")
	}
	return dir
}

// expand replaces mark in names by the numbers below n. A name with an explicit number takes
// precedence; nil removes an entry.
func expand[V any](tensors map[string]V, mark string, n int) map[string]V {
	all := map[string]V{}
	for name, shape := range tensors {
		if !strings.Contains(name, mark) {
			all[name] = shape
			continue
		}
		for i := range n {
			numbered := strings.ReplaceAll(name, mark, strconv.Itoa(i))
			if _, own := tensors[numbered]; !own {
				all[numbered] = shape
			}
		}
	}
	return all
}

// ggufMeta adds the architecture's prefix to keys, and gives numbers the types of real files.
func ggufMeta(config map[string]any) []modelfile.KeyValue {
	var meta []modelfile.KeyValue
	for _, key := range slices.Sorted(maps.Keys(config)) {
		value := config[key]
		switch v := value.(type) {
		case int:
			if value = uint32(v); v < 0 {
				value = int32(v)
			}
		case float64:
			value = float32(v)
		}
		if !strings.HasPrefix(key, "general.") && !strings.HasPrefix(key, "xielu.") {
			key = config["general.architecture"].(string) + "." + key
		}
		meta = append(meta, modelfile.KeyValue{Key: key, Value: value})
	}
	return meta
}

// A refusal is a model that does not build, and a part of its error.
type refusal struct {
	name  string
	model tiny
	is    error
	says  string
}

func tinyErrors(t *testing.T, cases []refusal) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { refused(t, c.model.write(t), c.is, c.says) })
	}
}
