package realizar

import (
	"errors"
	"fmt"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tokenizer"
)

// A textSource is what a model's tokenizer, templates and sampling are read
// from: an opened model, or a [hubFolder].
type textSource interface {
	Path() string
	Format() modelfile.Format
	Meta() *modelfile.Meta
	Asset(name string) ([]byte, bool)
}

// readTokenizer reads the tokenizer from GGUF's metadata, from tokenizer.json, or
// where there is none from tokenizer.model. pre is the pre-tokenizer of [Options].
func readTokenizer(f textSource, pre string) (*tokenizer.Tokenizer, error) {
	t, err := tokenizerOf(f, pre)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoTokenizer, f.Path(), err)
	}
	return t, nil
}

func tokenizerOf(f textSource, pre string) (*tokenizer.Tokenizer, error) {
	if f.Format() == modelfile.GGUF {
		return ggufTokenizer(f.Meta(), pre)
	}
	if pre != "" {
		return nil, fmt.Errorf("%w: pre-tokenizer %q: the file's tokenizer has none to choose: only GGUF files have", ErrOptions, pre)
	}
	config, _ := f.Asset("tokenizer_config.json")
	if data, ok := f.Asset("tokenizer.json"); ok {
		return tokenizer.FromJSON(data, config)
	}
	if data, ok := f.Asset("tokenizer.model"); ok {
		return tokenizer.FromSentencePiece(data, config)
	}
	return nil, fmt.Errorf("there is no tokenizer.json and no tokenizer.model beside the weights")
}

func ggufTokenizer(m *modelfile.Meta, pre string) (*tokenizer.Tokenizer, error) {
	if pre == "" {
		t, err := tokenizer.FromGGUF(m)
		if errors.Is(err, tokenizer.ErrPreTokenizer) {
			err = fmt.Errorf("%w; --pre-tokenizer (Options.PreTokenizer) takes another one", err)
		}
		return t, err
	}
	chosen, err := tokenizer.WithPreTokenizer(m, pre)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return tokenizer.FromGGUF(chosen)
}

// endTokens are the ids that end an answer: all that the tokenizer, GGUF's
// metadata, generation_config.json and config.json name.
func endTokens(f textSource, tok *tokenizer.Tokenizer, generation *modelfile.Meta) map[int32]bool {
	ends := map[int32]bool{}
	if tok != nil {
		for _, id := range tok.EndTokens() {
			ends[id] = true
		}
	}
	if f.Format() == modelfile.GGUF {
		for _, key := range []string{"eos", "eot", "eom"} {
			addIDs(ends, f.Meta(), "tokenizer.ggml."+key+"_token_id")
		}
		return ends
	}
	addIDs(ends, generation, "eos_token_id")
	addIDs(ends, f.Meta(), "eos_token_id")
	return ends
}

// addIDs adds the id or the list of ids under key.
func addIDs(set map[int32]bool, m *modelfile.Meta, key string) {
	ids, ok := m.Ints(key)
	if id, one := m.Int(key); one {
		ids, ok = []int64{id}, true
	}
	if !ok {
		return
	}
	for _, id := range ids {
		if id >= 0 && id < 1<<31 {
			set[int32(id)] = true
		}
	}
}

// asset is a JSON file beside the weights; empty where there is none.
func asset(f textSource, name string) (*modelfile.Meta, error) {
	data, ok := f.Asset(name)
	if !ok {
		return nil, nil
	}
	m, err := modelfile.ParseJSON(name, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, f.Path(), err)
	}
	return m, nil
}

// readGeneration is generation_config.json.
func readGeneration(f textSource) (*modelfile.Meta, error) {
	return asset(f, "generation_config.json")
}

// readSampling reads what generation_config.json or GGUF's general.sampling
// recommends. A number that no request may have is an error.
func readSampling(f textSource, generation *modelfile.Meta) (Sampling, bool, error) {
	m, prefix, temperature := generation, "", "temperature"
	if f.Format() == modelfile.GGUF {
		m, prefix, temperature = f.Meta(), "general.sampling.", "temp"
	}
	s := Sampling{Temperature: 1}
	said := false
	var wrong error
	number := func(key string, most float64, to *float32) {
		v, ok := m.Float(prefix + key)
		switch {
		case !ok:
		case v >= 0 && v <= most:
			*to, said = float32(v), true
		case wrong == nil:
			wrong = fmt.Errorf("%w: %s: the recommended %s is %v, want 0 to %v", ErrConfig, f.Path(), prefix+key, v, most)
		}
	}
	number(temperature, 1e6, &s.Temperature)
	number("top_p", 1, &s.TopP)
	number("min_p", 1, &s.MinP)
	if f.Format() != modelfile.GGUF { // which knows a penalty for the last few tokens alone
		number("typical_p", 1, &s.Typical)
		number("repetition_penalty", 100, &s.RepetitionPenalty)
	}
	if wrong != nil {
		return Sampling{}, false, wrong
	}
	// Some write -1 for all tokens.
	if k, ok := m.Int(prefix + "top_k"); ok && k >= 0 && k < 1<<31 {
		s.TopK, said = int(k), true
	}
	sample, ok := m.Bool("do_sample")
	switch {
	case ok && !sample:
		return Sampling{RepetitionPenalty: s.RepetitionPenalty}, true, nil
	case ok && sample, said && f.Format() == modelfile.GGUF:
		return s, true, nil
	}
	return Sampling{}, false, nil // without do_sample, transformers is greedy whatever else is set
}

// templates are a model's chat templates by name; most have one.
type templates map[string]*chat.Template

const (
	defaultTemplate = "default"
	toolTemplate    = "tool_use"
)

// readTemplates reads chat_template.jinja, or what tokenizer_config.json or
// GGUF's metadata holds.
func readTemplates(f textSource) (templates, error) {
	sources := map[string]string{}
	if f.Format() == modelfile.GGUF {
		if s, ok := f.Meta().String("tokenizer.chat_template"); ok {
			sources[defaultTemplate] = s
		}
		if s, ok := f.Meta().String("tokenizer.chat_template." + toolTemplate); ok {
			sources[toolTemplate] = s
		}
	} else if err := hubTemplates(f, sources); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoTemplate, err)
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("%w: %s has none", ErrNoTemplate, f.Path())
	}
	all := templates{}
	for name, source := range sources {
		t, err := chat.ParseTemplate(source)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: template %q: %w", ErrNoTemplate, f.Path(), name, err)
		}
		all[name] = t
	}
	return all, nil
}

func hubTemplates(f textSource, sources map[string]string) error {
	config, err := asset(f, "tokenizer_config.json")
	if err != nil {
		return err
	}
	if s, ok := config.String("chat_template"); ok {
		sources[defaultTemplate] = s
	}
	if list, ok := config.Value("chat_template"); ok {
		if list, ok := list.([]any); ok {
			for _, e := range list {
				if m, ok := e.(*modelfile.Meta); ok {
					name, _ := m.String("name")
					if s, ok := m.String("template"); ok {
						sources[name] = s
					}
				}
			}
		}
	}
	if s, ok := f.Asset("chat_template.jinja"); ok {
		sources[defaultTemplate] = string(s)
	}
	if s, ok := f.Asset("additional_chat_templates/" + toolTemplate + ".jinja"); ok {
		sources[toolTemplate] = string(s)
	}
	return nil
}

// template is the one to use: that for tools where there are tools and one for
// them.
func (m *Model) template(tools bool) (*chat.Template, error) {
	if m.templateErr != nil {
		return nil, m.templateErr
	}
	return m.templates.choose(m.file.Path(), tools)
}

func (t templates) choose(path string, tools bool) (*chat.Template, error) {
	if one, ok := t[toolTemplate]; ok && tools {
		return one, nil
	}
	if one, ok := t[defaultTemplate]; ok {
		return one, nil
	}
	return nil, fmt.Errorf("%w: %s has none called %q", ErrNoTemplate, path, defaultTemplate)
}

// specialTexts are the texts of the tokens that chat templates name, by name.
func specialTexts(tok *tokenizer.Tokenizer) map[string]string {
	texts := map[string]string{}
	if tok == nil {
		return texts
	}
	for _, name := range []string{"bos_token", "eos_token", "pad_token", "unk_token"} {
		if text, ok := tok.SpecialText(name); ok {
			texts[name] = text
		}
	}
	return texts
}
