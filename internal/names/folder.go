package names

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// besideWeights are the extensions of the files to include with a folder of safetensors: texts,
// tokenizers, templates. Code and the weights of other frameworks are left out.
var besideWeights = map[string]bool{".json": true, ".txt": true, ".model": true, ".jinja": true, ".tiktoken": true, ".md": true}

// WeightsIndex is the name of the file that maps tensors to weights files.
const WeightsIndex = "model.safetensors.index.json"

// isRootWeights reports whether f is a safetensors file at the top level of the repository.
func isRootWeights(f string) bool { return !strings.Contains(f, "/") && path.Ext(f) == ".safetensors" }

// chooseFolder selects a folder of safetensors. The other files come first, then the weights, and
// last the index or the only weights file.
func chooseFolder(files []string) (Choice, error) {
	var weights, beside []string
	indexed, config := false, false
	for _, f := range slices.Sorted(slices.Values(files)) {
		dir := path.Dir(f)
		switch {
		case f == WeightsIndex:
			indexed = true
		case isRootWeights(f):
			weights = append(weights, f)
		case dir == "." && (besideWeights[path.Ext(f)] || strings.HasPrefix(f, "LICENSE")) && !strings.HasSuffix(f, ".index.json"):
			config = config || f == "config.json"
			beside = append(beside, f)
		case dir == "additional_chat_templates" && path.Ext(f) == ".jinja", f == "1_Pooling/config.json":
			beside = append(beside, f)
		}
	}
	weights = modelWeights(weights)
	switch {
	case len(weights) == 0:
		return Choice{}, fmt.Errorf("%w: there is no .safetensors file", ErrNoModel)
	case !config:
		return Choice{}, fmt.Errorf("%w: there are safetensors files but no config.json", ErrNoModel)
	}
	if err := wholeShards(weights, indexed); err != nil {
		return Choice{}, err
	}
	all := slices.Concat(beside, weights)
	if indexed && len(weights) > 1 {
		all = append(all, WeightsIndex)
	}
	if err := CheckFiles(all); err != nil {
		return Choice{}, err
	}
	return Choice{Files: all, Quant: "safetensors"}, nil
}

// modelWeights removes copies of the weights in other layouts.
func modelWeights(weights []string) []string {
	if slices.Contains(weights, "model.safetensors") {
		return []string{"model.safetensors"}
	}
	shards := slices.DeleteFunc(slices.Clone(weights), func(f string) bool {
		return partForm.FindStringSubmatch(f) == nil || strings.HasPrefix(f, "consolidated")
	})
	if len(shards) == 0 {
		return weights
	}
	return shards
}

// wholeShards returns an error if a shard is missing, or if there are several shards and no index.
func wholeShards(weights []string, indexed bool) error {
	count := map[string]int{}
	for _, f := range weights {
		m := partForm.FindStringSubmatch(f)
		if m == nil {
			continue
		}
		count[m[1]+"-of-"+m[3]]++
	}
	for name, n := range count {
		want, _ := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
		if n != want {
			return fmt.Errorf("%w: %s has %d of %d files", ErrNoModel, name, n, want)
		}
	}
	if len(weights) > 1 && !indexed {
		return fmt.Errorf("%w: there are %d .safetensors files and no %s", ErrNoModel, len(weights), WeightsIndex)
	}
	return nil
}
