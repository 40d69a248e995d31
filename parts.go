package realizar

import (
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/hub"
	"github.com/realizar/realizar/tokenizer"
)

// OpenTokenizer reads a tokenizer alone. path is what [Open] takes, or a GGUF
// file that holds only a vocabulary, a tokenizer.json or tokenizer.model (a
// tokenizer_config.json beside it is read with it), or a folder with one. The error wraps
// [ErrNoTokenizer] where the file has none that can be used.
func OpenTokenizer(path string) (*tokenizer.Tokenizer, error) { return OpenTokenizerWith(path, "") }

// OpenTokenizerWith is [OpenTokenizer] with a pre-tokenizer as in [Options].
func OpenTokenizerWith(path, preTokenizer string) (*tokenizer.Tokenizer, error) {
	tok, err := hub.OpenTokenizer(path, preTokenizer)
	if err != nil {
		return nil, wrap(err)
	}
	return tok, nil
}

// OpenTemplate reads a chat template alone, and the texts of the special tokens
// that it may name ("bos_token" and so on). path is what [OpenTokenizer] takes,
// or a tokenizer_config.json. With tools it is the template for conversations
// with tools where the model has one of its own for them. The error wraps
// [ErrNoTemplate] where there is none that can be used.
func OpenTemplate(path string, tools bool) (*chat.Template, map[string]string, error) {
	template, special, err := hub.OpenTemplate(path, tools)
	if err != nil {
		return nil, nil, wrap(err)
	}
	return template, special, nil
}
