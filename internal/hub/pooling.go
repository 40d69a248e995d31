package hub

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/modelfile"
)

// The files in which sentence-transformers lists a model's modules and configures the pooling.
const (
	modulesFile   = "modules.json"
	poolingFolder = "1_Pooling"
	poolingFile   = poolingFolder + "/config.json"
)

// The ways to combine the hidden states of a text's tokens into one vector.
const (
	PoolingMean = "mean" // of all tokens
	PoolingLast = "last" // the last token
	PoolingCLS  = "cls"  // the first token
	PoolingMax  = "max"  // the maximum of each element over all tokens
)

// modes maps the names of sentence-transformers to the constants above.
var modes = map[string]string{
	"mean_tokens": PoolingMean, "mean": PoolingMean, "lasttoken": PoolingLast, "cls_token": PoolingCLS, "cls": PoolingCLS, "max_tokens": PoolingMax, "max": PoolingMax,
}

// Pooling returns the pooling that a model's files declare: GGUF's pooling_type, or the
// configuration of sentence-transformers. The default is PoolingMean for a model that reads texts
// as a whole, and PoolingLast for others.
func Pooling(f Source, whole bool) (string, error) {
	unsaid := PoolingLast
	if whole {
		unsaid = PoolingMean
	}
	if f.Format() == modelfile.GGUF {
		return ggufPooling(f, unsaid)
	}
	if err := checkModules(f); err != nil {
		return "", err
	}
	config, err := asset(f, poolingFile)
	switch {
	case err != nil:
		return "", err
	case config == nil:
		return unsaid, nil
	}
	var said []string
	for _, key := range config.Keys() {
		mode, ok := strings.CutPrefix(key, "pooling_mode_")
		if on, _ := config.Bool(key); ok && on {
			said = append(said, mode)
		}
	}
	if mode, ok := config.String("pooling_mode"); ok && len(said) == 0 {
		said = append(said, mode)
	}
	if len(said) == 1 && modes[said[0]] != "" {
		return modes[said[0]], nil
	}
	return "", fmt.Errorf("%w: %s: %s has the modes %q, want one of mean_tokens, lasttoken, cls_token and max_tokens; choose a pooling",
		arch.ErrConfig, f.Path(), poolingFile, said)
}

// checkModules returns an error if a model has a module after its hidden states other than pooling
// and normalization, or if its pooling is configured elsewhere.
func checkModules(f Source) error {
	data, ok := f.Asset(modulesFile)
	if !ok {
		return nil
	}
	var modules []struct{ Type, Path string }
	if err := json.Unmarshal(data, &modules); err != nil {
		return fmt.Errorf("%w: %s: %s: %w", arch.ErrConfig, f.Path(), modulesFile, err)
	}
	for _, m := range modules {
		switch kind := m.Type[strings.LastIndex(m.Type, ".")+1:]; {
		case kind == "Transformer", kind == "Normalize", kind == "Pooling" && m.Path == poolingFolder:
		case kind == "Pooling":
			return fmt.Errorf("%w: %s: %s has the pooling in %q, want %q; choose a pooling", arch.ErrConfig, f.Path(), modulesFile, m.Path, poolingFolder)
		default:
			return fmt.Errorf("%w: %s: %s has a part of type %q, which is not supported; choose a pooling for the vectors without it",
				arch.ErrConfig, f.Path(), modulesFile, kind)
		}
	}
	return nil
}

// ggufPooling returns the pooling that GGUF's metadata declares, or unsaid if there is none.
func ggufPooling(f Source, unsaid string) (string, error) {
	architecture, _ := f.Meta().String("general.architecture")
	key := architecture + ".pooling_type"
	kind, ok := f.Meta().Int(key)
	kinds := [...]string{unsaid, PoolingMean, PoolingCLS, PoolingLast} // 0 is none: the model returns a vector for each token
	switch {
	case !ok:
		return unsaid, nil
	case kind >= 0 && kind < int64(len(kinds)):
		return kinds[kind], nil
	}
	return "", fmt.Errorf("%w: %s: %s is %d, want 0 to 3; choose a pooling", arch.ErrConfig, f.Path(), key, kind)
}

// Sigmoid reports whether scores are the sigmoid of the logits. As in sentence-transformers, they
// are if there is one label, unless config.json names another function.
func Sigmoid(f Source, labels int) (sigmoid bool, err error) {
	sigmoid = labels == 1
	if f.Format() == modelfile.GGUF {
		return sigmoid, nil
	}
	for _, key := range []string{"sentence_transformers.activation_fn", "sbert_ce_default_activation_function"} {
		name, ok := f.Meta().String(key)
		if !ok {
			continue
		}
		switch name[strings.LastIndex(name, ".")+1:] {
		case "Sigmoid":
			return true, nil
		case "Identity":
			return false, nil
		}
		return false, fmt.Errorf("%w: %s: %s is %q, want a function called Sigmoid or Identity", arch.ErrConfig, f.Path(), key, name)
	}
	return sigmoid, nil
}

// WithoutTypes reports whether tokenizer_config.json lists the model's inputs and token types are
// not among them.
func WithoutTypes(f Source) bool {
	config, err := asset(f, "tokenizer_config.json")
	if err != nil || config == nil {
		return false
	}
	names, ok := config.Strings("model_input_names")
	return ok && len(names) > 0 && !slices.Contains(names, "token_type_ids")
}
