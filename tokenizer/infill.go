package tokenizer

// An Infill holds the tokens that ask a model to fill a gap in a text, if it was trained to. The
// order is: Prefix, the text before the gap, Suffix, the text after it, Middle.
type Infill struct {
	Prefix, Suffix, Middle int32
	// Repository precedes the name of a repository, and Separator the name of a file in it. -1:
	// none.
	Repository, Separator int32
}

// The GGUF metadata keys of the tokens around a gap. Older files use the second names.
var (
	keysPrefix = []string{"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"}
	keysSuffix = []string{"tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"}
	keysMiddle = []string{"tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"}
)

// gapTexts are the spellings of the tokens around a gap, by family of models.
var gapTexts = [][3]string{
	{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
	{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
	{"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
	{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
	{"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},
	{"▁<PRE>", "▁<SUF>", "▁<MID>"},
	{"<PRE>", "<SUF>", "<MID>"},
}

// fileTexts are the spellings of the tokens around files, by family of models.
var fileTexts = [][2]string{
	{"<|repo_name|>", "<|file_sep|>"},
	{"<|fim_repo|>", "<|file_sep|>"},
	{"<reponame>", "<file_sep>"},
}

// Infill returns the tokens that ask the model to fill a gap in a text: those that the metadata of
// a GGUF file names, or those with a known spelling. ok is false if there are none.
func (t *Tokenizer) Infill() (f Infill, ok bool) {
	if t.infill != nil {
		return *t.infill, true
	}
	for _, texts := range gapTexts {
		prefix, is := t.vocab.find(texts[0])
		suffix, was := t.vocab.find(texts[1])
		middle, ends := t.vocab.find(texts[2])
		if is && was && ends {
			f = Infill{prefix, suffix, middle, -1, -1}
			f.Repository, f.Separator = t.aroundFiles()
			return f, true
		}
	}
	return Infill{}, false
}

func (t *Tokenizer) aroundFiles() (repository, separator int32) {
	for _, texts := range fileTexts {
		repository, is := t.vocab.find(texts[0])
		separator, was := t.vocab.find(texts[1])
		if is && was {
			return repository, separator
		}
	}
	return -1, -1
}

// ggufInfill returns the tokens that the metadata names, or nil. id returns -1 for a key without a
// token.
func (t *Tokenizer) ggufInfill(id func(key string) int32) *Infill {
	named := func(keys ...string) int32 {
		for _, key := range keys {
			if id := id(key); id >= 0 {
				return id
			}
		}
		return -1
	}
	f := Infill{named(keysPrefix...), named(keysSuffix...), named(keysMiddle...), id(keyFIMRepository), id(keyFIMSeparator)}
	if f.Prefix < 0 || f.Suffix < 0 || f.Middle < 0 {
		return nil
	}
	if f.Repository < 0 || f.Separator < 0 {
		f.Repository, f.Separator = t.aroundFiles()
	}
	return &f
}
