package realizar

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/realizar/realizar/modelfile"
)

// Pooling says how the hidden states of a text's tokens become one vector.
type Pooling uint8

const (
	// PoolingAuto is what the model's files say, or else the last token; of a model that
	// reads texts as a whole, the mean.
	PoolingAuto Pooling = iota
	// PoolingMean is the mean over all tokens.
	PoolingMean
	// PoolingLast is the last token, which alone has seen all others where tokens see
	// none after them.
	PoolingLast
	// PoolingCLS is the first token.
	PoolingCLS
	// PoolingMax is the largest value of each element over all tokens.
	PoolingMax
)

var poolingNames = [...]string{PoolingAuto: "auto", PoolingMean: "mean", PoolingLast: "last", PoolingCLS: "cls", PoolingMax: "max"}

// String is "auto", "mean", "last", "cls" or "max".
func (p Pooling) String() string {
	if int(p) < len(poolingNames) {
		return poolingNames[p]
	}
	return fmt.Sprintf("pooling(%d)", uint8(p))
}

// Where sentence-transformers lists the parts of a model, and keeps the pooling.
const (
	modulesFile   = "modules.json"
	poolingFolder = "1_Pooling"
	poolingFile   = poolingFolder + "/config.json"
)

// readPooling is what a model's files say: GGUF's pooling_type, or the configuration
// of sentence-transformers. Where they say nothing it is PoolingMean of a model that
// reads texts as a whole, and PoolingLast of others.
func readPooling(f textSource, whole bool) (Pooling, error) {
	unsaid := PoolingLast
	if whole {
		unsaid = PoolingMean
	}
	if f.Format() == modelfile.GGUF {
		return ggufPooling(f, unsaid)
	}
	if err := checkModules(f); err != nil {
		return PoolingAuto, err
	}
	config, err := asset(f, poolingFile)
	switch {
	case err != nil:
		return PoolingAuto, err
	case config == nil:
		return unsaid, nil
	}
	var modes []string
	for _, key := range config.Keys() {
		mode, ok := strings.CutPrefix(key, "pooling_mode_")
		if on, _ := config.Bool(key); ok && on {
			modes = append(modes, mode)
		}
	}
	if mode, ok := config.String("pooling_mode"); ok && len(modes) == 0 {
		modes = append(modes, mode)
	}
	if len(modes) == 1 {
		switch modes[0] {
		case "mean_tokens", "mean":
			return PoolingMean, nil
		case "lasttoken":
			return PoolingLast, nil
		case "cls_token", "cls":
			return PoolingCLS, nil
		case "max_tokens", "max":
			return PoolingMax, nil
		}
	}
	return PoolingAuto, fmt.Errorf("%w: %s: %s has the modes %q, want one of mean_tokens, lasttoken, cls_token and max_tokens; choose a pooling",
		ErrConfig, f.Path(), poolingFile, modes)
}

// checkModules refuses a model that computes more than a pooling after its hidden
// states, or whose pooling is elsewhere.
func checkModules(f textSource) error {
	data, ok := f.Asset(modulesFile)
	if !ok {
		return nil
	}
	var modules []struct{ Type, Path string }
	if err := json.Unmarshal(data, &modules); err != nil {
		return fmt.Errorf("%w: %s: %s: %w", ErrConfig, f.Path(), modulesFile, err)
	}
	for _, m := range modules {
		switch kind := m.Type[strings.LastIndex(m.Type, ".")+1:]; {
		case kind == "Transformer", kind == "Normalize", kind == "Pooling" && m.Path == poolingFolder:
		case kind == "Pooling":
			return fmt.Errorf("%w: %s: %s has the pooling in %q, want %q; choose a pooling", ErrConfig, f.Path(), modulesFile, m.Path, poolingFolder)
		default:
			return fmt.Errorf("%w: %s: %s has a part of type %q, which is not supported; choose a pooling for the vectors without it",
				ErrConfig, f.Path(), modulesFile, kind)
		}
	}
	return nil
}

// ggufPooling is what GGUF's metadata says, or else unsaid.
func ggufPooling(f textSource, unsaid Pooling) (Pooling, error) {
	architecture, _ := f.Meta().String("general.architecture")
	key := architecture + ".pooling_type"
	kind, ok := f.Meta().Int(key)
	if !ok {
		return unsaid, nil
	}
	switch kind {
	case 0: // none: a vector for each token is what the model was made for
		return unsaid, nil
	case 1:
		return PoolingMean, nil
	case 2:
		return PoolingCLS, nil
	case 3:
		return PoolingLast, nil
	}
	return PoolingAuto, fmt.Errorf("%w: %s: %s is %d, want 0 to 3; choose a pooling", ErrConfig, f.Path(), key, kind)
}
