package tokenizer

// An Infill is the tokens around the parts of a text with a gap, by which a model that was
// trained so fills it: Prefix, the text before the gap, Suffix, the text after it, Middle.
type Infill struct {
	Prefix, Suffix, Middle int32
	// Repository begins the name of a repository, and Separator that of a file of it. -1: none.
	Repository, Separator int32
}

// The metadata of the tokens around a gap, in GGUF; files had the second names before.
var (
	keysPrefix = []string{"tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"}
	keysSuffix = []string{"tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"}
	keysMiddle = []string{"tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"}
)

// gapTexts are the spellings of the tokens around a gap, as families of models have them.
var gapTexts = [][3]string{
	{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
	{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
	{"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
	{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
	{"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},
	{"▁<PRE>", "▁<SUF>", "▁<MID>"},
	{"<PRE>", "<SUF>", "<MID>"},
}

// fileTexts are the spellings of the tokens around files, a family each.
var fileTexts = [][2]string{
	{"<|repo_name|>", "<|file_sep|>"},
	{"<|fim_repo|>", "<|file_sep|>"},
	{"<reponame>", "<file_sep>"},
}

// Infill returns the tokens by which the model fills a gap in a text: those that the
// metadata of a GGUF file names, or those whose spelling is known. ok is false where there
// are none.
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

// ggufInfill are the tokens that the metadata names by its keys, or nil. id is -1 for a key
// that names none.
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
