package ollama

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
)

// A catalog is what lists say of a model, which is found once: files may have a hundred
// thousand tensors.
type catalog struct {
	size    int64
	tensors int
	digest  string
	details details
}

// catalogKey is that of a model's catalog.
type catalogKey struct{}

// catalogOf is the catalog of m.
func catalogOf(m *server.Model) *catalog {
	return server.Note(m, catalogKey{}, func() *catalog {
		d := m.Description()
		return &catalog{d.FileBytes, d.TensorCount, digest(d), detailsOf(d)}
	})
}

// details say what kind of model it is.
type details struct {
	Parent       string   `json:"parent_model"`
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Parameters   string   `json:"parameter_size"`
	Quantization string   `json:"quantization_level"`
}

func detailsOf(d *realizar.Description) details {
	family := familyOf(d)
	return details{
		Format: strings.ToLower(d.Format), Family: family, Families: []string{family},
		Parameters: short(d.Parameters), Quantization: quantization(d),
	}
}

// familyOf is the architecture as GGUF has it, or config.json's model_type.
func familyOf(d *realizar.Description) string {
	if name, ok := textOf(d, "model_type"); ok {
		return name
	}
	return d.Architecture
}

// short is a number of parameters as people write it.
func short(n int64) string {
	switch f := float64(n); {
	case f >= 999.95e6:
		return fmt.Sprintf("%.1fB", f/1e9)
	case f >= 999.95e3:
		return fmt.Sprintf("%.2fM", f/1e6)
	}
	return fmt.Sprintf("%.2fK", float64(n)/1e3)
}

// fileTypes are the mixes of number formats by GGUF's general.file_type.
var fileTypes = map[string]string{
	"0": "F32", "1": "F16", "2": "Q4_0", "3": "Q4_1", "7": "Q8_0", "8": "Q5_0", "9": "Q5_1", "10": "Q2_K", "11": "Q3_K_S", "12": "Q3_K_M",
	"13": "Q3_K_L", "14": "Q4_K_S", "15": "Q4_K_M", "16": "Q5_K_S", "17": "Q5_K_M", "18": "Q6_K", "19": "IQ2_XXS", "20": "IQ2_XS", "21": "Q2_K_S",
	"22": "IQ3_XS", "23": "IQ3_XXS", "24": "IQ1_S", "25": "IQ4_NL", "26": "IQ3_S", "27": "IQ3_M", "28": "IQ2_S", "29": "IQ2_M", "30": "IQ4_XS",
	"31": "IQ1_M", "32": "BF16", "36": "TQ1_0", "37": "TQ2_0", "38": "MXFP4",
}

// quantization is the mix that the file names, or the format of most weights.
func quantization(d *realizar.Description) string {
	for _, e := range d.Metadata {
		if e.Key == "general.file_type" {
			if name, ok := fileTypes[fmt.Sprint(e.Value)]; ok {
				return name
			}
		}
	}
	if len(d.DTypes) == 0 {
		return "unknown"
	}
	return d.DTypes[0].Name
}

// digest tells models apart by what their files say. It is no hash of the weights, which
// would take minutes of a large file.
func digest(d *realizar.Description) string {
	h := sha256.New()
	add := func(a ...any) { _, _ = fmt.Fprintln(h, a...) } // a hash takes all
	add(d.Format, d.FileBytes, d.Architecture)
	for _, e := range d.Metadata {
		v := reflect.ValueOf(e.Value)
		if v.Kind() == reflect.Slice {
			add(e.Key, e.Type, v.Len())
			continue
		}
		add(e.Key, e.Type, e.Value)
	}
	for i := range d.Tensors {
		t := &d.Tensors[i]
		add(t.Name, t.DType, t.Shape, t.Bytes)
	}
	return hex.EncodeToString(h.Sum(nil))
}
