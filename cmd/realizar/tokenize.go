package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/tokenizer"
)

// tokenizeCommand is `realizar tokenize`.
type tokenizeCommand struct {
	Model   string `arg:"" help:"A model, a GGUF file that holds only a vocabulary, a tokenizer.json, or a folder with one of these."`
	Special bool   `help:"Add what the tokenizer puts around a text, such as a token for its beginning."`
	JSONL   bool   `name:"jsonl" help:"Read one JSON string per line and write one array per line; with --decode, the other way."`
	Decode  bool   `help:"Read ids and write text. Special tokens are kept."`
}

// Help is shown below the command's line.
func (*tokenizeCommand) Help() string {
	return `Standard input is taken to the byte: a line feed at its end is part of the text. Special tokens in the
text match. The ids are written as a JSON array; --decode reads one and writes the text to the byte.

Examples:

    printf 'Hello, world' | realizar tokenize model.gguf
    printf 'Hello, world' | realizar tokenize tokenizer.json --special
    echo '[9707, 11, 1879]' | realizar tokenize ./Qwen3-0.6B --decode
    printf '"one text"\n"another"\n' | realizar tokenize tokenizer.json --jsonl`
}

// Validate is called by the parser.
func (c *tokenizeCommand) Validate() error {
	if c.Special && c.Decode {
		return errors.New("--special adds tokens to a text; it has no meaning with --decode")
	}
	return nil
}

// Run converts standard input.
func (c *tokenizeCommand) Run(a *app) error {
	tok, err := realizar.OpenTokenizer(c.Model)
	if err != nil {
		return err
	}
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

// eachLine calls do for every line without its line feed, and flushes out when
// there is nothing more to read at the moment.
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
	var numbers []json.Number
	if err := unmarshal(in, &numbers); err != nil {
		return fmt.Errorf("want a JSON array of token ids: %w", err)
	}
	ids := make([]int32, len(numbers))
	for i, n := range numbers {
		id, err := strconv.ParseInt(n.String(), 10, 64)
		if err != nil || id < 0 || id > math.MaxInt32 {
			return fmt.Errorf("%q at index %d is no token id", n, i)
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

// unmarshal reads JSON that is not empty and not null.
func unmarshal(data []byte, v any) error {
	switch string(bytes.TrimSpace(data)) {
	case "":
		return errors.New("there is nothing")
	case "null":
		return errors.New("there is null")
	}
	return json.Unmarshal(data, v)
}
