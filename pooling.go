package realizar

import (
	"fmt"
	"strings"

	"github.com/realizar/realizar/modelfile"
)

// Pooling says how the hidden states of a text's tokens become one vector.
type Pooling uint8

const (
	// PoolingAuto is what the model's files say, or else the last token.
	PoolingAuto Pooling = iota
	// PoolingMean is the mean over all tokens.
	PoolingMean
	// PoolingLast is the last token, which alone has seen all others.
	PoolingLast
	// PoolingCLS is the first token.
	PoolingCLS
)

var poolingNames = [...]string{PoolingAuto: "auto", PoolingMean: "mean", PoolingLast: "last", PoolingCLS: "cls"}

// String is "auto", "mean", "last" or "cls".
func (p Pooling) String() string {
	if int(p) < len(poolingNames) {
		return poolingNames[p]
	}
	return fmt.Sprintf("pooling(%d)", uint8(p))
}

// poolingFile is where sentence-transformers keeps the pooling.
const poolingFile = "1_Pooling/config.json"

// readPooling is what a model's files say: GGUF's pooling_type, or the configuration
// of sentence-transformers; PoolingLast where they say nothing.
func readPooling(f textSource) (Pooling, error) {
	if f.Format() == modelfile.GGUF {
		return ggufPooling(f)
	}
	config, err := asset(f, poolingFile)
	switch {
	case err != nil:
		return PoolingAuto, err
	case config == nil:
		return PoolingLast, nil
	}
	var modes []string
	for _, key := range config.Keys() {
		mode, ok := strings.CutPrefix(key, "pooling_mode_")
		if on, _ := config.Bool(key); ok && on {
			modes = append(modes, mode)
		}
	}
	if len(modes) == 1 {
		switch modes[0] {
		case "mean_tokens":
			return PoolingMean, nil
		case "lasttoken":
			return PoolingLast, nil
		case "cls_token":
			return PoolingCLS, nil
		}
	}
	return PoolingAuto, fmt.Errorf("%w: %s: %s has the modes %q, want one of mean_tokens, lasttoken and cls_token; choose a pooling",
		ErrConfig, f.Path(), poolingFile, modes)
}

// ggufPooling is what GGUF's metadata says.
func ggufPooling(f textSource) (Pooling, error) {
	architecture, _ := f.Meta().String("general.architecture")
	key := architecture + ".pooling_type"
	kind, ok := f.Meta().Int(key)
	if !ok {
		return PoolingLast, nil
	}
	switch kind {
	case 0: // none: a vector for each token is what the model was made for
		return PoolingLast, nil
	case 1:
		return PoolingMean, nil
	case 2:
		return PoolingCLS, nil
	case 3:
		return PoolingLast, nil
	}
	return PoolingAuto, fmt.Errorf("%w: %s: %s is %d, want 0 to 3; choose a pooling", ErrConfig, f.Path(), key, kind)
}
