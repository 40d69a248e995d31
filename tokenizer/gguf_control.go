package tokenizer

import "slices"

// endTexts are the spellings of tokens that end a text, a turn, or one file of several.
var endTexts = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
	"<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
	"<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
	"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]",
	"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>",
}

// middleTexts are the spellings of tokens around a gap to fill in a text.
var middleTexts = []string{
	"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>",
	"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>",
	"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>",
}

// ggufTypes returns the types of all tokens. Tokens that the file gives no type are normal. As in
// llama.cpp, a token with a known spelling is a control token whatever the file says.
func ggufTypes(texts []string, m Metadata) []int64 {
	said, _ := m.Ints(keyTypes)
	types := make([]int64, len(texts))
	for i := copy(types, said); i < len(types); i++ {
		types[i] = typeNormal
	}
	var ends []string
	for i, text := range texts {
		end := slices.Contains(endTexts, text)
		if end || slices.Contains(middleTexts, text) {
			types[i] = typeControl
		}
		if end {
			ends = append(ends, text)
		}
	}
	for i, text := range texts {
		if text == "</s>" && slices.Contains(ends, "<|tool_response>") {
			types[i] = typeNormal // Gemma 4 has one without a meaning
		}
	}
	return types
}

// ggufEnds returns the tokens that end a text: the named ones and those with a known spelling.
func ggufEnds(texts []string, named ...int32) []int32 {
	var ends []int32
	for _, id := range named {
		if id >= 0 {
			ends = append(ends, id)
		}
	}
	found := map[string]int32{}
	for i, text := range texts {
		if slices.Contains(endTexts, text) {
			found[text] = int32(i)
		}
	}
	has := func(text string) bool { _, ok := found[text]; return ok }
	if calls := has("<|call|>") || has("<|calls|>"); calls && (has("<|return|>") || has("<|flush|>")) {
		delete(found, "<|end|>") // it ends a message, and the answer may continue
	}
	if has("<|tool_response>") {
		delete(found, "</s>")
	}
	for _, id := range found {
		ends = append(ends, id)
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}
