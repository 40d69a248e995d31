package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/cuda/measure"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// The maximum number of input rows for which products are measured: of all tokens of a step, and of
// the rows whose logits are wanted.
const (
	tunedTokens = 2048
	tunedRows   = 256
)

// usualProducts returns the products of Llama 3.2 1B, Llama 3.1 8B and Qwen3 8B in usual formats,
// each with the maximum number of its input rows.
func usualProducts() map[lower.Product]int {
	all := map[lower.Product]int{}
	for _, d := range []tensor.DType{tensor.Q4_K, tensor.Q6_K, tensor.Q8_0, tensor.BF16} {
		for _, m := range []struct{ hidden, ffn, attention, vocab int }{
			{2048, 8192, 3072, 128256}, {4096, 14336, 6144, 128256}, {4096, 12288, 6144, 151936},
		} {
			for _, p := range []lower.Product{
				{Format: d, Rows: m.attention, Cols: m.hidden}, // queries, keys and values
				{Format: d, Rows: m.hidden, Cols: m.hidden},
				{Format: d, Gated: true, Rows: m.ffn, Cols: m.hidden},
				{Format: d, Rows: m.hidden, Cols: m.ffn},
			} {
				all[p] = tunedTokens
			}
			all[lower.Product{Format: d, Rows: m.vocab, Cols: m.hidden}] = tunedRows
		}
	}
	return all
}

// Tune measures which kernels are the fastest for the products of programs, or for those of usual
// models if there are no programs, and writes them to the user's table of the device, whose path it
// returns. Backends that are opened later use the table. Executables of b must not be at work. report
// is called after each product with the number of all products and a description. If ctx ends, the
// table stays as it is.
func (b *Backend) Tune(ctx context.Context, programs []*plan.Program, report func(done, all int, text string)) (path string, err error) {
	if b.tables == "" {
		return "", errors.New("cuda: there is no folder for the table; set REALIZAR_HOME to one")
	}
	products := usualProducts()
	if len(programs) > 0 {
		products = map[lower.Product]int{}
		lim := &plan.Limits{Tokens: tunedTokens, Seqs: tunedRows, Rows: tunedRows, Activations: tensor.F16}
		for _, p := range programs {
			for of, most := range lower.Products(p, lim) {
				products[of] = max(products[of], most)
			}
		}
		if len(products) == 0 {
			return "", errors.New("cuda: there is nothing to measure: no product of the model has a choice of kernels")
		}
	}
	all, err := measure.Tune(ctx, measure.NewBench(b.GPU), products, func(done int, t lower.ProductTimes) {
		report(done, len(products), t.String())
	})
	if err != nil {
		return "", fmt.Errorf("cuda: %w", err)
	}
	return b.addToTable(all)
}

// addToTable adds choices to the user's table, and replaces a table of other kernels.
func (b *Backend) addToTable(all []lower.ProductTimes) (path string, err error) {
	digest, err := b.Digest()
	if err != nil {
		return "", fmt.Errorf("cuda: %w", err)
	}
	path = filepath.Join(b.tables, lower.TableName(b.Info.Name))
	table, err := lower.ReadTable(path, b.Info.Name, b.Digest)
	if table == nil || err != nil {
		table = &lower.TableFile{Device: b.Info.Name, Kernels: digest}
	}
	table.Date = time.Now().UTC().Format(time.DateOnly)
	table.Add(all)
	text, err := table.Text()
	if err == nil {
		err = replace(path, text)
	}
	if err != nil {
		return "", fmt.Errorf("cuda: %w", err)
	}
	return path, nil
}

// replace writes a file. Readers see either the old file or the complete new one.
func replace(path string, text []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, "tune-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Tuning describes the table of the device. The error says what is wrong with the user's table,
// which is then not used.
func (b *Backend) Tuning() (string, error) {
	if b.tuning == nil {
		return "", b.untuned
	}
	return fmt.Sprintf("%d products, measured on %s", len(b.tuning.Products), b.tuning.Date), b.untuned
}
