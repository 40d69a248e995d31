package vllm

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/fields"
	"github.com/realizar/realizar/internal/server/jsontext"
	"github.com/realizar/realizar/internal/server/openai"
	"github.com/realizar/realizar/tokenizer"
)

// A tokenizeRequest is the body of POST /tokenize: a prompt, or a conversation.
type tokenizeRequest struct {
	model        string
	prompt       *string
	chat         *realizar.ChatRequest
	continuation openai.Continuation
	added        *bool // whether to add the tokens that the tokenizer adds to every text
	special      bool
	strings      bool
	pieces       bool
	left         []string // tools that are left out
	content      bool     // the prompt is llama.cpp's field content, with another default of added
}

// conversation returns r.chat. It makes one for the first field of a conversation.
func (r *tokenizeRequest) conversation() *realizar.ChatRequest {
	if r.chat == nil {
		r.chat = &realizar.ChatRequest{}
	}
	return r.chat
}

var tokenizeFields = slices.Concat(fields.List[tokenizeRequest]{
	fields.Text("model", "the model that is served", func(r *tokenizeRequest) *string { return &r.model }),
	fields.New("prompt", "a string", "there are messages", func(r *tokenizeRequest, v json.RawMessage) error {
		if r.content {
			return fields.Invalid("prompt", "there are both content and a prompt; leave one out")
		}
		r.prompt = new("")
		return fields.ReadText(v, r.prompt)
	}),
	fields.New("content", "a string: the prompt, as llama.cpp's clients send it", "there is a prompt, or messages", func(r *tokenizeRequest, v json.RawMessage) error {
		if r.prompt != nil {
			return fields.Invalid("content", "there are both content and a prompt; leave one out")
		}
		r.prompt, r.content = new(""), true
		return fields.ReadText(v, r.prompt)
	}),
	fields.New("messages", "a list of messages", "there is a prompt", func(r *tokenizeRequest, v json.RawMessage) (err error) {
		r.conversation().Messages, err = openai.ReadMessages(v)
		return err
	}),
	fields.New("tools", "a list of tools of type function, with messages; others are left out, and the header X-Left-Out names them", "none", func(r *tokenizeRequest, v json.RawMessage) error {
		tools, err := openai.ReadTools(v)
		r.conversation().Tools, r.left = tools.Functions, tools.LeftOut
		return err
	}),
	fields.New("chat_template_kwargs", "an object of values for the chat template, with messages", "none", func(r *tokenizeRequest, v json.RawMessage) error {
		return openai.ReadVars(r.conversation(), v)
	}),
	fields.New("add_special_tokens", "true or false: whether to add what the tokenizer adds to every text", "true for a prompt, false for content; the chat template decides for messages", readAdded),
	fields.New("add_special", "true or false: add_special_tokens, as llama.cpp calls it", "add_special_tokens", readAdded),
	fields.Flag("with_pieces", "false: tokens are ids, and no objects of id and piece", func(r *tokenizeRequest) *bool { return &r.pieces }),
	fields.Flag("parse_special", "false: what looks like a special token is plain text", func(r *tokenizeRequest) *bool { return &r.special }),
	fields.Flag("return_token_strs", "false", func(r *tokenizeRequest) *bool { return &r.strings }),
}, fields.Within(func(r *tokenizeRequest) *openai.Continuation { return &r.continuation }, openai.ContinuationFields))

// readAdded reads whether to add the tokens that the tokenizer adds to every text.
func readAdded(r *tokenizeRequest, v json.RawMessage) error {
	if r.added != nil {
		return fields.Invalid("add_special", "add_special and add_special_tokens are one thing; leave one out")
	}
	r.added = new(false)
	return fields.ReadFlag(v, r.added)
}

// tokenize handles POST /tokenize. It returns the token ids of a prompt or a conversation.
func tokenize(x *server.Exchange) error {
	if err := x.NoTimings(); err != nil {
		return err
	}
	r, err := server.ReadFor(x, tokenizeFields, nil)
	if err != nil {
		return err
	}
	tok, err := tokenizerOf(x)
	if err != nil {
		return err
	}
	ids, err := tokensOf(x, r)
	if err != nil {
		return err
	}
	x.LeftOut(r.left...)
	b := appendLength(x, []byte{'{'}, ids)
	b = append(b, `,"tokens":`...)
	if r.pieces {
		b = appendPieces(x, b, ids)
	} else {
		b = appendIDs(x, b, ids)
	}
	b = append(b, `,"token_strs":`...)
	if !r.strings {
		x.WriteJSON(append(b, `null}`...))
		return nil
	}
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		text, _ := tok.Token(id)
		b = x.Spill(jsontext.AppendString(b, text))
	}
	x.WriteJSON(append(b, `]}`...))
	return nil
}

// appendLength appends the number of ids and the model's context.
func appendLength(x *server.Exchange, b []byte, ids []int32) []byte {
	b = jsontext.AppendInt(append(b, `"count":`...), len(ids))
	return jsontext.AppendInt(append(b, `,"max_model_len":`...), x.Model().Context())
}

// appendIDs appends a list of ids.
func appendIDs(x *server.Exchange, b []byte, ids []int32) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = x.Spill(jsontext.AppendInt(b, int(id)))
	}
	return append(b, ']')
}

// appendPieces appends a list of ids with their texts, or with their bytes if they are not valid
// UTF-8.
func appendPieces(x *server.Exchange, b []byte, ids []int32) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsontext.AppendInt(append(b, `{"id":`...), int(id)), `,"piece":`...)
		if piece := x.Piece(id); utf8.Valid(piece) {
			b = jsontext.AppendString(b, piece)
		} else {
			b = jsontext.AppendBytes(b, piece)
		}
		b = x.Spill(append(b, '}'))
	}
	return append(b, ']')
}

func tokensOf(x *server.Exchange, r *tokenizeRequest) (ids []int32, err error) {
	if r.content && r.added == nil {
		r.added = new(false)
	}
	if continues, err := r.continuation.Settle(); err != nil {
		return nil, err
	} else if continues {
		r.conversation().Continue = true
	}
	switch {
	case r.prompt == nil && r.chat == nil:
		return nil, fields.Missing("prompt")
	case r.prompt != nil && r.chat != nil:
		return nil, fields.Invalid("prompt", "there are both a prompt and messages, or what goes with them; leave one out")
	case r.chat != nil && r.added != nil:
		return nil, fields.Invalid("add_special_tokens", "add_special_tokens is for a prompt; a chat template says itself what its text begins with")
	case r.chat != nil && r.special:
		return nil, fields.Invalid("parse_special", "parse_special is for a prompt; special tokens in messages are plain text")
	case r.chat != nil && len(r.chat.Messages) == 0:
		return nil, fields.Missing("messages")
	}
	var p realizar.Prompt
	if r.chat != nil {
		p, err = x.ChatPrompt(r.chat, server.ChatFields{Messages: "messages", Tools: "tools"})
	} else {
		p, err = x.Prompt(&realizar.Request{Prompt: *r.prompt, Special: r.special, Plain: r.added != nil && !*r.added}, "prompt")
	}
	return p.Tokens, err
}

// render handles POST /v1/chat/completions/render. It returns the prompt of a chat request without
// running the model.
func render(x *server.Exchange) error {
	if err := x.NoTimings(); err != nil {
		return err
	}
	r, names, err := openai.ReadChat(x)
	if err != nil {
		return err
	}
	p, err := x.ChatPrompt(r, names)
	if err != nil {
		return err
	}
	b := jsontext.AppendString([]byte(`{"model":`), x.Name())
	b = appendText(x, append(b, `,"prompt":`...), p.Text.String())
	b = appendIDs(x, append(b, `,"token_ids":`...), p.Tokens)
	x.WriteJSON(append(appendLength(x, append(b, ','), p.Tokens), '}'))
	return nil
}

// appendText appends a long text in pieces that end between characters.
func appendText(x *server.Exchange, b []byte, text string) []byte {
	const piece = 16 << 10
	b = append(b, '"')
	for text != "" {
		n := min(piece, len(text))
		for n < len(text) && n > piece-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		at := len(b)
		b = jsontext.AppendString(b, text[:n])
		copy(b[at:], b[at+1:]) // without the quotes
		b = x.Spill(b[:len(b)-2])
		text = text[n:]
	}
	return append(b, '"')
}

// A detokenizeRequest is the body of POST /detokenize.
type detokenizeRequest struct {
	model  string
	tokens []int32
	given  bool
}

var detokenizeFields = fields.List[detokenizeRequest]{
	fields.Text("model", "the model that is served", func(r *detokenizeRequest) *string { return &r.model }),
	fields.New("tokens", "a list of token ids", "", func(r *detokenizeRequest, value json.RawMessage) (err error) {
		r.given = true
		r.tokens, err = fields.ReadIDs(value)
		return err
	}),
}

// detokenize handles POST /detokenize. It returns the text of ids, with special tokens.
func detokenize(x *server.Exchange) error {
	if err := x.NoTimings(); err != nil {
		return err
	}
	r, err := server.ReadFor(x, detokenizeFields, nil)
	if err != nil {
		return err
	}
	tok, err := tokenizerOf(x)
	switch {
	case err != nil:
		return err
	case !r.given:
		return fields.Missing("tokens")
	}
	for i, id := range r.tokens {
		if _, ok := tok.Token(id); !ok {
			return fields.Invalid("tokens", "tokens[%d] is %d, which is not in the vocabulary of %d tokens", i, id, tok.VocabSize())
		}
	}
	b, err := appendDecoded(x, []byte(`{"prompt":`), tok, r.tokens)
	if err != nil {
		return err
	}
	if b, err = appendDecoded(x, append(b, `,"content":`...), tok, r.tokens); err != nil { // content is llama.cpp's name
		return err
	}
	x.WriteJSON(append(b, '}'))
	return nil
}

// decodedBytes is the memory reserved for each byte of decoded text, in bytes. A token's text may
// be much longer than its id.
const decodedBytes = 2

// appendDecoded appends the text of ids.
func appendDecoded(x *server.Exchange, b []byte, tok *tokenizer.Tokenizer, ids []int32) ([]byte, error) {
	n := 0
	for _, id := range ids {
		text, _ := tok.Token(id)
		n += decodedBytes * len(text)
	}
	if err := x.Reserve(n); err != nil {
		return nil, err
	}
	return appendText(x, b, tok.Decode(ids, false)), nil
}

// tokenizerOf returns the tokenizer of the request's model.
func tokenizerOf(x *server.Exchange) (*tokenizer.Tokenizer, error) {
	tok, err := x.Model().Tokenizer()
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	return tok, nil
}
