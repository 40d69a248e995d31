package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/tokenizer"
)

// tokenizeCommand is `realizar tokenize`.
type tokenizeCommand struct {
	Model   string `arg:"" help:"A model, a GGUF file with a vocabulary alone, a tokenizer.json, or a folder with one of these."`
	Special bool   `help:"Add the special tokens that the tokenizer puts around a text, such as BOS."`
	JSONL   bool   `name:"jsonl" help:"Read one JSON string per line and write one array per line; with --decode, the reverse."`
	Decode  bool   `help:"Read ids and write text, including special tokens."`

	tokenizerFlags
}

// Help is shown below the command's line.
func (*tokenizeCommand) Help() string {
	return `Every byte of standard input counts: a line feed at its end is part of the text. Special tokens in
the text match. The ids are written as a JSON array; --decode reads one and writes exactly the bytes
of the text.

Examples:

    printf 'Hello, world' | realizar tokenize model.gguf
    printf 'Hello, world' | realizar tokenize tokenizer.json --special
    echo '[9707, 11, 1879]' | realizar tokenize ./Qwen3-0.6B --decode
    printf '"one text"\n"another"\n' | realizar tokenize tokenizer.json --jsonl`
}

// Validate implements the parser's interface.
func (c *tokenizeCommand) Validate() error {
	if c.Special && c.Decode {
		return errors.New("--special adds tokens to a text; remove it with --decode")
	}
	return nil
}

// Run converts standard input.
func (c *tokenizeCommand) Run(a *app) error {
	path, err := a.modelPath(c.Model, false)
	if err != nil {
		return err
	}
	tok, err := realizar.OpenTokenizerWith(path, c.PreTokenizer)
	if err != nil {
		return err
	}
	a.noteTokenizer(tok)
	out := bufio.NewWriter(a.out)
	convert := c.encode
	if c.Decode {
		convert = c.decode
	}
	if c.JSONL {
		err = eachLine(a.stdin, out, func(line []byte) error { return convert(tok, line, out) })
	} else {
		var data []byte
		if data, err = io.ReadAll(a.stdin); err == nil {
			err = convert(tok, data, out)
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	return nil
}

// eachLine calls do with every line, without its line feed. It flushes out when no more input is
// buffered.
func eachLine(r io.Reader, out *bufio.Writer, do func(line []byte) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			if err := do(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case in.Buffered() == 0:
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func (c *tokenizeCommand) encode(tok *tokenizer.Tokenizer, in []byte, out *bufio.Writer) error {
	text := string(in)
	if c.JSONL {
		if err := unmarshal(in, &text); err != nil {
			return fmt.Errorf("want a JSON string: %w", err)
		}
		if err := wholeCharacters(in); err != nil {
			return err
		}
	}
	buf := []byte{'['}
	for i, id := range tok.Encode(text, c.Special) {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = strconv.AppendInt(buf, int64(id), 10)
	}
	_, err := out.Write(append(buf, ']', '\n'))
	return err
}

func (c *tokenizeCommand) decode(tok *tokenizer.Tokenizer, in []byte, out *bufio.Writer) error {
	var elements []json.RawMessage // json.Number would accept a number in quotes
	if err := unmarshal(in, &elements); err != nil {
		return fmt.Errorf("want a JSON array of token ids: %w", err)
	}
	ids := make([]int32, len(elements))
	for i, e := range elements {
		id, err := strconv.ParseInt(string(e), 10, 32)
		if err != nil && !errors.Is(err, strconv.ErrRange) || id < 0 {
			return fmt.Errorf("%.40q at index %d is not a token id; want a number from 0 to %d", e, i, tok.VocabSize()-1)
		}
		if _, ok := tok.Token(int32(id)); !ok || err != nil {
			return fmt.Errorf("%.40s at index %d is not in the vocabulary of %d tokens", e, i, tok.VocabSize())
		}
		ids[i] = int32(id)
	}
	text := tok.Decode(ids, false)
	if !c.JSONL {
		_, err := out.WriteString(text)
		return err
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return enc.Encode(text)
}

// wholeCharacters returns an error if text, a JSON string, has invalid UTF-8 or an escaped half of
// a surrogate pair, which would silently become U+FFFD.
func wholeCharacters(text []byte) error {
	for i := 0; i < len(text); {
		if text[i] == '\\' {
			const unit = len(`\u0000`)
			first := escapedUnit(text[i:])
			switch {
			case first < 0:
				i += 2
			case !utf16.IsSurrogate(first):
				i += unit
			case utf16.DecodeRune(first, escapedUnit(text[i+unit:])) == utf8.RuneError:
				return fmt.Errorf("%s at byte %d is half of a surrogate pair", text[i:i+unit], i)
			default:
				i += 2 * unit
			}
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return fmt.Errorf("%#x at byte %d is not UTF-8", text[i], i)
		}
		i += size
	}
	return nil
}

// escapedUnit returns the UTF-16 code unit that text, valid JSON, begins with as \uXXXX, or -1.
func escapedUnit(text []byte) rune {
	if len(text) < len(`\u0000`) || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}

// unmarshal decodes JSON that is neither empty nor null.
func unmarshal(data []byte, v any) error {
	switch string(bytes.TrimSpace(data)) {
	case "":
		return errors.New("the input is empty")
	case "null":
		return errors.New("the input is null")
	}
	return json.Unmarshal(data, v)
}
