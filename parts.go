package realizar

import (
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/hub"
	"github.com/realizar/realizar/tokenizer"
)

// OpenTokenizer reads the tokenizer of the model at path without the model. path is as in [Open],
// or names a GGUF file without weights, a tokenizer.json or tokenizer.model file (with the
// tokenizer_config.json in the same folder, if any), or a folder with one of these. If there is no
// tokenizer that can be used, the error wraps [ErrNoTokenizer].
func OpenTokenizer(path string) (*tokenizer.Tokenizer, error) { return OpenTokenizerWith(path, "") }

// OpenTokenizerWith is like [OpenTokenizer] but uses preTokenizer as [Options.PreTokenizer].
func OpenTokenizerWith(path, preTokenizer string) (*tokenizer.Tokenizer, error) {
	tok, err := hub.OpenTokenizer(path, preTokenizer)
	if err != nil {
		return nil, wrap(err)
	}
	return tok, nil
}

// OpenTemplate reads the chat template of the model at path without the model. path is as in
// [OpenTokenizer], or names a tokenizer_config.json file. If tools is set, OpenTemplate prefers the
// model's template for conversations with tools. The map has the texts of special tokens by the
// names that templates use, such as "bos_token". If there is no template that can be used, the
// error wraps [ErrNoTemplate].
func OpenTemplate(path string, tools bool) (*chat.Template, map[string]string, error) {
	template, special, err := hub.OpenTemplate(path, tools)
	if err != nil {
		return nil, nil, wrap(err)
	}
	return template, special, nil
}
