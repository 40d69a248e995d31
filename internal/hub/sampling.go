package hub

import (
	"fmt"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/modelfile"
)

// ReadGeneration reads generation_config.json. It returns nil if there is none.
func ReadGeneration(f Source) (*modelfile.Meta, error) {
	return asset(f, "generation_config.json")
}

// ReadSampling returns the sampling parameters that generation_config.json or GGUF's
// general.sampling recommends, and whether there are any. A value that no request may have is an
// error.
func ReadSampling(f Source, generation *modelfile.Meta) (sample.Params, bool, error) {
	m, prefix, temperature := generation, "", "temperature"
	if f.Format() == modelfile.GGUF {
		m, prefix, temperature = f.Meta(), "general.sampling.", "temp"
	}
	s := sample.Params{Temperature: 1}
	said := false
	var wrong error
	number := func(key string, most float64, to *float32) {
		v, ok := m.Float(prefix + key)
		switch {
		case !ok:
		case v >= 0 && v <= most:
			*to, said = float32(v), true
		case wrong == nil:
			wrong = fmt.Errorf("%w: %s: the recommended %s is %v, want 0 to %v", arch.ErrConfig, f.Path(), prefix+key, v, most)
		}
	}
	number(temperature, 1e6, &s.Temperature)
	number("top_p", 1, &s.TopP)
	number("min_p", 1, &s.MinP)
	if f.Format() != modelfile.GGUF { // GGUF knows a penalty only for the last few tokens
		number("typical_p", 1, &s.Typical)
		number("repetition_penalty", 100, &s.Repetition)
	}
	if wrong != nil {
		return sample.Params{}, false, wrong
	}
	// Some files have -1 for all tokens.
	if k, ok := m.Int(prefix + "top_k"); ok && k >= 0 && k < 1<<31 {
		s.TopK, said = int(k), true
	}
	samples, ok := m.Bool("do_sample")
	switch {
	case ok && !samples:
		return sample.Params{Repetition: s.Repetition}, true, nil
	case ok && samples, said && f.Format() == modelfile.GGUF:
		return s, true, nil
	}
	return sample.Params{}, false, nil // without do_sample, transformers samples greedily whatever else is set
}
