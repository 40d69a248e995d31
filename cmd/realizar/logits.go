package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// logitsCommand is `realizar logits`.
type logitsCommand struct {
	Model string `arg:"" help:"${model}"`
	IDs   string `name:"ids" required:"" placeholder:"FILE" common:"" help:"Token ids: numbers separated by white space or commas; - is standard input."`
	Out   string `required:"" placeholder:"FILE.safetensors" common:"" help:"The file to write."`

	modelFlags
}

// Help is shown below the command's line.
func (*logitsCommand) Help() string {
	return `logits runs the ids through the model without adding any, and writes the logits of the token that
follows each of them: one tensor called logits, F32, of shape [ids, vocabulary]. The file appears
when it is complete.

Examples:

    echo 1 15043 3186 | realizar logits model.gguf --ids - --out logits.safetensors
    realizar logits model.gguf --ids ids.json --out logits.safetensors --activations f32
    realizar tokenize model.gguf --special < text.txt > ids.json`
}

// Run writes the logits.
func (c *logitsCommand) Run(a *app) error {
	ids, err := readIDs(a, c.IDs)
	if err != nil {
		return fmt.Errorf("--ids: %w", err)
	}
	// A file that cannot be written is reported before the model is loaded.
	out, err := newOutFile(c.Out)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return out.finish(c.write(a, ids, out))
}

func (c *logitsCommand) write(a *app, ids []int32, w io.Writer) error {
	m, err := a.open(c.Model, &c.modelFlags)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	out := bufio.NewWriterSize(w, 1<<20)
	if err := writeLogitsHeader(out, len(ids), m.Vocab()); err != nil {
		return err
	}
	row := make([]byte, 0, 4*m.Vocab())
	err = m.Logits(a.ctx, ids, 0, func(_ int, logits []float32) error {
		row = row[:0]
		for _, v := range logits {
			row = binary.LittleEndian.AppendUint32(row, math.Float32bits(v))
		}
		_, err := out.Write(row)
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// readIDs reads numbers separated by white space or commas, optionally in the brackets of a JSON
// array.
func readIDs(a *app, name string) ([]int32, error) {
	data, err := a.read(name)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(string(data))
	if inner, ok := strings.CutPrefix(text, "["); ok {
		if text, ok = strings.CutSuffix(inner, "]"); !ok {
			return nil, errors.New("the list begins with [ but does not end with ]")
		}
	}
	var ids []int32
	for field := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		id, err := strconv.ParseInt(field, 10, 32)
		if err != nil || id < 0 {
			return nil, fmt.Errorf("%.40q at index %d is not a token id; want a number from 0 to %d", field, len(ids), math.MaxInt32)
		}
		ids = append(ids, int32(id))
	}
	if len(ids) == 0 {
		return nil, errors.New("there are no ids")
	}
	return ids, nil
}

// writeLogitsHeader writes the header of a safetensors file with one tensor [tokens, vocab]. The
// rows follow, so they need not be in memory together.
func writeLogitsHeader(w io.Writer, tokens, vocab int) error {
	if tokens > math.MaxInt/4/max(1, vocab) {
		return fmt.Errorf("the logits of %d tokens of %d are too many for one file", tokens, vocab)
	}
	header := fmt.Sprintf(`{"logits":{"dtype":"F32","shape":[%d,%d],"data_offsets":[0,%d]}}`, tokens, vocab, 4*tokens*vocab)
	header += strings.Repeat(" ", (8-len(header)%8)%8) // aligns the data
	if err := binary.Write(w, binary.LittleEndian, uint64(len(header))); err != nil {
		return err
	}
	_, err := io.WriteString(w, header)
	return err
}
